//! The program as a whole: its output without a reader, its help, its manual pages, its version; and its benchmarks,
//! which leave no program behind.

#[path = "../common/mod.rs"]
mod common;
mod doctor;
mod linerate;

use crate::common::prelude::*;

#[path = "../../build.rs"]
#[allow(dead_code)]
mod build;
#[path = "../../examples/peers/mod.rs"]
#[allow(dead_code)]
mod peers;

use std::env;
use std::fs::File;

/// Commands that only print.
const PRINTING: [&[&str]; 6] = [
    &["completions", "bash"],
    &["man"],
    &["--help"],
    &["linerate", "1g"],
    &["netblast", "--help"],
    &["sim", "ticks"],
];
/// A host file for simulations.
const HOST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sim/hosts/generic.toml");
/// Set if this program is to play a benchmark.
const IS_BENCHMARK: &str = "NICPOLL_TEST_IS_BENCHMARK";
/// Exit status of a program that SIGPIPE ended, as a shell reports it.
const UNREAD: i32 = 141;

/// Returns the output of a command that must succeed.
#[track_caller]
fn printed(args: &[&str]) -> String {
    let output = nicpoll(args).output().unwrap();
    assert_code(&output, 0);
    stdout(&output)
}

#[test]
fn a_reader_that_is_gone_ends_the_program_without_a_word() {
    for args in PRINTING {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = nicpoll(args).stdout(writer).output().unwrap();
        assert_eq!(stderr(&output), "", "{args:?}");
        assert_eq!(output.status.code(), Some(UNREAD), "{args:?}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    for args in PRINTING {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = nicpoll(args).stdout(full).output().unwrap();
        assert_code(&output, 1);
        assert_has(stderr(&output), "writing to standard output: No space left");
    }
}

#[test]
fn microseconds_are_written_as_the_locale_can_show_them() {
    let latency = |locale: &str| {
        let line = format!("sim run {HOST} --duration 10ms --workload constant:rate=1k");
        let output = nicpoll(words(&line)).env("LC_ALL", locale).output();
        stdout(&output.unwrap())
    };
    assert_has(latency("C"), " us");
    let unicode = latency("en_US.UTF-8");
    assert!(
        unicode.contains(" µs") && !unicode.contains(" us "),
        "{unicode}"
    );
}

#[test]
fn help_of_a_tool_shows_its_options() {
    for (tool, option) in [
        ("iperf", "--tradeoff"),
        ("netblast", "--json"),
        ("netsend", "--json"),
    ] {
        assert_has(printed(&["help", tool]), option);
    }
}

#[test]
fn paragraphs_of_help_fill_the_lines_of_a_terminal() {
    for (command, columns) in [("watch", 60), ("watch", 80), ("demo", 100)] {
        let mut asked = nicpoll([command, "--help"]);
        let asked = asked.env("COLUMNS", columns.to_string());
        let help = stdout(&asked.output().unwrap());
        let (about, _) = help.split_once("\n\nUsage: ").unwrap();
        for paragraph in about.split("\n\n").skip(1) {
            let mut lines: Vec<usize> = paragraph.lines().map(str::len).collect();
            lines.pop();
            let is_full = |letters: &usize| (columns - 20..=columns).contains(letters);
            assert!(
                lines.iter().all(is_full),
                "{command} {columns}: {paragraph}"
            );
        }
    }
}

/// Returns the options that a page or a help text lists between two headings.
fn options(text: &str, from: &str, to: &str) -> Vec<String> {
    let section = text
        .split_once(from)
        .unwrap_or_else(|| panic!("{from}: {text}"))
        .1;
    let section = section.split(to).next().unwrap();
    // A page has minus signs and fonts of its own.
    let section = section
        .replace("\\-", "-")
        .replace("\\f", " ")
        .replace(" B--", " --");
    let words = section.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let options = words.filter(|word| word.starts_with("--") && word.len() > 2);
    options.map(String::from).collect()
}

#[test]
fn the_heading_of_freebsd_hosts_has_their_options_only() {
    let own = words("--burst-max --each-burst --idle-poll --user-frac --reg-frac");
    let help = printed(&["set", "--help"]);
    assert_eq!(options(&help, "FreeBSD hosts (HOST:IF):", "Examples:"), own);
    let mut page = options(&printed(&["man", "set"]), "FREEBSD HOSTS (HOST:IF)", ".SH");
    page.sort();
    let mut sorted = own;
    sorted.sort();
    assert_eq!(page, sorted);
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    printed(&["man", "--out", folder.path().to_str().unwrap()]);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let whole = read("nicpoll.1");
    let entries = whole.lines().filter(|line| line.starts_with("nicpoll\\-"));
    let mut pages = 0;
    for entry in entries {
        let name = entry.replace("\\-", "-").replace("(1)", ".1");
        assert!(read(&name).contains(".SH SYNOPSIS"), "{name}");
        pages += 1;
    }
    assert!(pages > 10, "{whole}");
    assert_eq!(printed(&["man", "sim", "run"]), read("nicpoll-sim-run.1"));
    assert!(read("nicpoll-iperf.1").contains("tradeoff"));
    // Examples keep their lines.
    assert!(read("nicpoll-set.1").contains(".nf\nExamples:\n  nicpoll set eth0 polling "));
    let refused = nicpoll(["man", "sim", "walk"]).output().unwrap();
    assert_code(&refused, 2);
    assert_has(
        stderr(&refused),
        "'nicpoll sim' has no command 'walk'; it has run,",
    );
    let refused = nicpoll(["man", "frobnicate"]).output().unwrap();
    assert_has(
        stderr(&refused),
        "'nicpoll' has no command 'frobnicate'; it has demo,",
    );
}

#[test]
fn the_version_names_the_features_and_the_commit_where_there_is_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let said = printed(&["--version"]);
    let (version, features) = said.trim().split_once('\n').expect(&said);
    let has_postgres = cfg!(feature = "postgres");
    let feature = if has_postgres { "postgres" } else { "none" };
    assert_eq!(features, format!("features: {feature}"));
    match build::commit(&root) {
        // The program may have been built from the previous commit.
        Some(_) => {
            let (number, commit) = version.split_once(" (").expect(version);
            assert_eq!(number, concat!("nicpoll ", env!("CARGO_PKG_VERSION")));
            let (hash, day) = commit.trim_end_matches(')').split_once(' ').expect(version);
            assert!(
                hash.len() >= 12 && u128::from_str_radix(hash, 16).is_ok(),
                "{version}"
            );
            assert_eq!(day.len(), "2026-01-31".len(), "{version}");
        }
        None => assert_eq!(version, concat!("nicpoll ", env!("CARGO_PKG_VERSION"))),
    }
}

#[test]
fn an_archive_has_no_commit_even_within_another_repository() {
    let folder = tempfile::tempdir().unwrap();
    let unpacked = folder.path().join("nicpoll-0.1.0");
    fs::create_dir(&unpacked).unwrap();
    assert_eq!(build::commit(&unpacked), None);
    let mut git = Command::new("git");
    let git = git.arg("-C").arg(folder.path());
    let git = git.args(["init", "--quiet"]).status();
    if git.is_ok_and(|status| status.success()) {
        assert_eq!(build::commit(&unpacked), None);
    }
}

#[test]
fn what_is_no_number_here_is_refused_with_those_that_are() {
    for (line, expected) in [
        ("blast lo --count x", "from 1 to 18446744073709551615"),
        ("sink lo --port 70000", "from 1 to 65535"),
        ("sink lo --cpu 0,x", "from 0 to 4294967295"),
        ("rr -s --request-bytes 1k", "from 64 to 1048576"),
        ("set HOST:em0 --idle-poll 2", "from 0 to 1"),
        ("ab lo --seed x", "from 0 to 18446744073709551615"),
    ] {
        let output = nicpoll(words(line)).output().unwrap();
        assert_code(&output, 2);
        let told = format!("a whole number {expected} was expected");
        assert_has(stderr(&output), told);
    }
}

#[test]
fn errors_that_nothing_takes_change_no_exit_code() {
    let closed = {
        let socket = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        socket.local_addr().unwrap().port().to_string()
    };
    let to_closed = ["iperf", "-c", "127.0.0.1", "-p", &closed];
    for (args, code) in [
        (&["iperf", "--help"][..], 1),
        (&["iperf", "-b", "nonsense"], 1),
        (&to_closed, 1),
        (&["netblast"], 255),
        (&["set", "lo", "poling"], 2),
        (&["sim", "run", "none.toml"], 2),
        (&["study", "show", "1", "--store", "none.db"], 1),
    ] {
        let code_with = |stderr: Stdio| {
            let mut command = nicpoll(args);
            let status = command.stdout(Stdio::null()).stderr(stderr).status();
            status.unwrap().code()
        };
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (reader, unread) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(code_with(full.into()), Some(code), "{args:?}");
        assert_eq!(code_with(unread.into()), Some(code), "{args:?}");
    }
}

#[test]
fn without_proc_nothing_is_begun_and_the_remedy_is_told() {
    needs!(Root);
    let home = tempfile::tempdir().unwrap();
    for line in [
        "restore",
        "restore em0",
        "set em0 polling",
        "ab em0",
        "watch em0 --plain --count 1",
        "doctor",
    ] {
        let script = format!("umount -l /proc && exec {NICPOLL} {line}");
        let mut command = kept("unshare", ["--mount", "sh", "-c", &script]);
        let output = command.env("NICPOLL_STATE_DIR", home.path()).output();
        let output = output.unwrap();
        assert_code(&output, 5);
        assert_has(stderr(&output), "mount -t proc proc /proc");
    }
}

#[test]
fn a_browser_finds_the_pages_where_the_program_says_until_a_signal_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("studies.db");
    let mut command = nicpoll(["serve", "--listen", "127.0.0.1:0", "--store"]);
    let mut serving = command.arg(&store).spawn().unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(serving.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let address = line.trim_end().strip_prefix("http://").unwrap();
    let address = address.strip_suffix('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert!(answer.contains("nothing is stored in"), "{answer}");
    send_signal(&serving, Signal::TERM);
    assert_eq!(serving.wait().unwrap().code(), Some(143));
}

#[test]
fn what_a_killed_benchmark_started_ends_with_it() {
    if env::var_os(IS_BENCHMARK).is_some() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 1000 & echo $! >&2; wait"]);
        let mut started = peers::leashed(shell).unwrap().spawn().unwrap();
        started.wait().unwrap();
        return;
    }
    let mut benchmark = Command::new(env::current_exe().unwrap());
    benchmark.args(["--exact", "what_a_killed_benchmark_started_ends_with_it"]);
    benchmark.env(IS_BENCHMARK, "1").stdout(Stdio::null());
    let mut benchmark = benchmark.stderr(Stdio::piped()).spawn().unwrap();
    let mut of_grandchild = String::new();
    let mut output = BufReader::new(benchmark.stderr.take().unwrap());
    output.read_line(&mut of_grandchild).unwrap();
    let words = format!("/proc/{}/cmdline", of_grandchild.trim());
    // A zombie has no command line, nor has a process that is just executing its program.
    let is_there = || fs::read(&words).is_ok_and(|words| !words.is_empty());
    wait_until("the grandchild runs", is_there);
    kill(benchmark);
    wait_until("the grandchild ends", || !is_there());
}
