//! Options of `nicpoll iperf` about the process, its payload and its columns, on this machine's loopback.

#[path = "../common/mod.rs"]
mod common;
mod json;
mod shortfall;

use crate::common::prelude::*;

fn iperf(args: &[&str]) -> Command {
    nicpoll([&["iperf"], args].concat())
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Starts a server; returns it once it listens, with its output up to then.
fn serve(args: &[&str]) -> (Child, BufReader<ChildStdout>, String) {
    let mut child = iperf(args).spawn().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap());
    let banner = read_until_it_listens(&mut printed);
    (child, printed, banner)
}

/// What a server that ends by itself prints.
fn rest(mut server: Child, printed: BufReader<ChildStdout>) -> String {
    let lines: Vec<String> = printed.lines().map(Result::unwrap).collect();
    assert!(server.wait().unwrap().success());
    lines.join("\n")
}

fn succeeded(output: &Output) -> &str {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Processes that were started with an argument, in words only they have.
fn processes_with(argument: &str) -> Vec<i32> {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_argument = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        // One that has ended and waits for its parent has no command line.
        line.split(|byte| *byte == 0)
            .any(|word| word == argument.as_bytes())
    };
    numbers.filter(has_argument).collect()
}

#[test]
fn a_daemon_serves_in_a_session_of_its_own_and_ends_with_its_reports() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("server.log");
    let log_argument = format!("--output={}", log.display());
    let port = free_port();
    let server = ["-s", "-D", "-B", "127.0.0.1", "-p", &port, &log_argument];
    // It ends although the server runs on, which thus holds neither pipe.
    let output = iperf(&server).output().unwrap();
    assert_eq!(succeeded(&output), "");
    assert_eq!(text(&output.stderr), "Running Iperf Server as a daemon\n");

    let [pid] = processes_with(&log_argument)[..] else {
        panic!("one server runs");
    };
    // A leader of its own session, and of a directory that nobody needs to unmount.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    assert_eq!(fields[3], pid.to_string(), "the session in {stat}");
    let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}")).unwrap();
    assert_eq!(link("cwd"), Path::new("/"));
    assert_eq!(link("fd/0"), Path::new("/dev/null"));
    assert_eq!((link("fd/1"), link("fd/2")), (log.clone(), log.clone()));

    let client = ["-c", "127.0.0.1", "-p", &port, "-n", "64K"];
    succeeded(&iperf(&client).output().unwrap());
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    wait_until("the server ends", || {
        processes_with(&log_argument).is_empty()
    });
    let reports = fs::read_to_string(&log).unwrap();
    assert_has(&reports, "Server listening on TCP port");
    assert!(reports.contains("64.0 KBytes"), "{reports}");
    let port: u16 = port.parse().unwrap();
    let again = std::net::TcpListener::bind(("127.0.0.1", port));
    // The connection may be in TIME_WAIT, which std passes over.
    assert!(again.is_ok(), "{again:?}");
}

#[test]
fn a_daemon_that_cannot_listen_says_so_before_it_goes() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mark = format!("--port={port}");
    let server = ["-s", "-u", "-D", "-B", "127.0.0.1", &mark];
    let output = iperf(&server).output().unwrap();
    assert_code(&output, 1);
    assert!(
        text(&output.stderr).starts_with("bind failed: "),
        "{output:?}"
    );
    assert!(processes_with(&mark).is_empty());
}

#[test]
fn a_server_says_why_it_cannot_listen() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = |arguments: &[&str]| {
        let output = iperf(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        text(&output.stderr).to_owned()
    };
    let words = said(&["-s", "-B", "127.0.0.1", "-p", &port]);
    let lines: Vec<&str> = words.lines().collect();
    assert_eq!(lines[0], "bind failed: Address already in use");
    assert!(lines[1].contains(&format!("127.0.0.1:{port}")), "{words}");
    for end in [&["-s"][..], &["-c", "127.0.0.1"]] {
        let words = said(&[end, &["-Z", "none-such", "-p", &port]].concat());
        assert_has(&words, "no congestion control 'none-such'");
        assert!(!words.contains("bind failed"), "{words}");
    }
}

#[test]
fn a_single_udp_server_takes_one_client_after_the_other() {
    let port = free_port();
    let (mut server, mut printed, banner) = serve(&["-s", "-U", "-p", &port, "-B", "127.0.0.1"]);
    assert!(banner.contains("Server listening on UDP port"), "{banner}");
    let client = format!("-U -c 127.0.0.1 -p {port} -b 800k -n 4410");
    let client = words(&client);
    for _ in 0..2 {
        let sent = iperf(&client).output().unwrap();
        assert!(succeeded(&sent).contains("Sent 3 datagrams"), "{sent:?}");
        let report = read_until(&mut printed, "%)");
        assert!(report.contains("0/    3 (0%)"), "{report}");
    }
    send_signal(&server, Signal::TERM);
    assert!(server.wait().unwrap().success());
}

/// A server and a client with `-e`, and what each printed.
fn enhanced(options: &[&str]) -> (String, String) {
    let port = free_port();
    let style = ["-p", &port, "-e", "--style", "2.1", "-i", "0.1"];
    let udp = options.iter().filter(|option| **option == "-u").copied();
    let streams = if options.contains(&"-P") { "2" } else { "1" };
    let udp: Vec<&str> = udp.collect();
    let (server, printed, banner) = serve(&[&["-s", "-P", streams], &style[..], &udp].concat());
    let client = [&["-c", "127.0.0.1"], &style[..], options].concat();
    let sent = iperf(&client).output().unwrap();
    (
        String::from(succeeded(&sent)),
        banner + &rest(server, printed),
    )
}

#[test]
fn enhanced_lines_of_tcp_tell_what_the_sockets_did() {
    let (sent, received) = enhanced(&["-P", "2", "-t", "0.25", "-b", "80m"]);
    for part in [
        "(2 flows)",
        "Write/Err  Rtry     Cwnd/RTT(var)        NetPwr",
        " us  ",
        "[ CT] final",
    ] {
        assert!(sent.contains(part), "'{part}' in {sent}");
    }
    // Everything was read, in reads whose sizes add up to their number.
    let lines = received.lines().filter(|line| line.contains(" sec  "));
    let sizes: Vec<(&str, &str)> = lines
        .filter_map(|line| line.rsplit_once("  ")?.1.split_once('='))
        .collect();
    assert!(sizes.len() >= 6, "{received}");
    for (count, bins) in sizes {
        let bins: Vec<u64> = bins.split(':').map(|bin| bin.parse().unwrap()).collect();
        assert_eq!(bins.len(), 8);
        assert_eq!(
            bins.iter().sum::<u64>(),
            count.parse::<u64>().unwrap(),
            "{received}"
        );
    }
    assert!(received.contains("[SUM]"), "{received}");
}

#[test]
fn enhanced_lines_of_udp_tell_latency_and_gaps() {
    let (sent, received) = enhanced(&["-u", "-t", "0.25", "-b", "1m"]);
    for part in ["Write/Err  PPS", " pps\n", "] Gaps min/mean/p50/p99/max = "] {
        assert!(sent.contains(part), "'{part}' in {sent}");
    }
    for part in [
        "Latency avg/min/max/stdev PPS  Rx/inP  NetPwr",
        "(0) pkts ",
        "] Gaps ",
    ] {
        assert!(received.contains(part), "'{part}' in {received}");
    }
}

#[test]
fn fractions_of_a_datagram_a_second_are_sent_as_they_are_asked_for() {
    for (rate, datagrams) in [("0.4pps", 1), ("1.4pps", 2), ("2.6pps", 3)] {
        let port = free_port();
        let (server, printed, _) = serve(&["-s", "-u", "-P", "1", "-p", &port]);
        let args = ["-c", "127.0.0.1", "-u", "-b", rate, "-t", "1", "-p", &port];
        let client = iperf(&args).output().unwrap();
        let sent = format!("Sent {datagrams} datagrams");
        assert!(succeeded(&client).contains(&sent), "{rate}: {client:?}");
        rest(server, printed);
    }
}

#[test]
fn both_ends_tell_what_the_client_asked_for() {
    let port = free_port();
    let server = format!("-s -B 127.0.0.1 -P 1 -p {port} --style 2.1");
    let server = words(&server);
    let (mut server, rest, _) = serve(&server);
    let asked = "-n 64K -R -S 0x10 --style 2.1 --sum-only -e";
    let mut client = iperf(&["-c", "127.0.0.1", "-p", &port]);
    let output = client.args(asked.split(' ')).output().unwrap();
    let printed = text(&output.stdout);
    assert!(printed.contains("\n[SUM-1] 0.0000-"), "{printed}");
    assert!(!printed.contains("connected with"), "{printed}");
    let told = std::io::read_to_string(rest).unwrap();
    assert!(server.wait().unwrap().success());
    let remarks = " (reverse) (tos rx=0x10) (icwnd/mss/irtt=";
    assert!(told.contains(remarks), "{told}");
}

#[test]
fn more_streams_than_128_are_run() {
    let port = free_port();
    let (mut server, _rest, _) = serve(&["-s", "-B", "127.0.0.1", "-P", "150", "-p", &port]);
    let mut client = iperf(&["-c", "127.0.0.1", "-p", &port, "-P", "150", "-n", "4K"]);
    let output = client.args(["-l", "4K", "--sum-only"]).output().unwrap();
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    // Streams as short as these may end before others begin: then there are several sums.
    let sums = printed
        .lines()
        .filter_map(|line| line.strip_prefix("[SUM-")?.split(']').next());
    let streams: u32 = sums.filter_map(|streams| streams.parse::<u32>().ok()).sum();
    assert_eq!(streams, 150, "{printed}");
    assert!(server.wait().unwrap().success());
}

/// What a client of three short UDP runs prints.
fn three_runs(options: &[&str]) -> String {
    let port = free_port();
    let (mut server, _rest, _) = serve(&["-s", "-u", "-B", "127.0.0.1", "-P", "3", "-p", &port]);
    // Long enough for an interval at the server, even when all that is late is sent at once.
    let mut client = iperf(&["-c", "127.0.0.1", "-p", &port, "-u", "-n", "200K"]);
    client.args(["-b", "10m", "--repeat", "3"]).args(options);
    let output = client.output().unwrap();
    let printed = succeeded(&output).to_owned();
    assert!(server.wait().unwrap().success());
    printed
}

#[test]
fn a_repeated_test_ends_with_what_its_runs_came_to() {
    let file = std::env::temp_dir().join(format!("nicpoll-repeat-{}", std::process::id()));
    assert_eq!(three_runs(&["-o", file.to_str().unwrap()]), "");
    let printed = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!(printed.matches("Server Report:").count(), 3, "{printed}");
    let last = printed.lines().last().unwrap();
    assert!(last.starts_with("3 runs: median "), "{printed}");
    assert!(
        last.ends_with("bits/sec, no interval below 6 runs"),
        "{last}"
    );
}

#[test]
fn runs_are_one_document_one_stream_of_lines_and_a_row() {
    let forms: [&[&str]; 3] = [&["--json"], &["--json-stream"], &["-y", "C"]];
    let [object, lines, rows] = thread::scope(|scope| {
        let runs = forms.map(|form| scope.spawn(|| three_runs(form)));
        runs.map(|printed| printed.join().unwrap())
    });
    let object: Value = serde_json::from_str(&object).unwrap();
    assert_described(&object, "iperf-runs");
    let runs = object["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    let mut rates = Vec::new();
    for run in runs {
        assert_described(run, "iperf");
        let report = &run["streams"][0]["total"]["server_report"];
        let bits = 8.0 * report["bytes"].as_f64().unwrap();
        rates.push(bits / report["elapsed_seconds"].as_f64().unwrap());
    }
    let summary = &object["summary"];
    assert_eq!(summary["quantity"], "bits_per_second");
    assert_eq!(summary["values"], Value::from(rates.clone()));
    rates.sort_by(f64::total_cmp);
    assert_eq!(summary["done_runs"], 3);
    assert_eq!(summary["median"], rates[1]);
    assert_eq!(summary["max"], rates[2]);
    assert_eq!(summary["interval_low"], Value::Null);

    let events: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    events
        .iter()
        .for_each(|event| assert_described(event, "iperf"));
    let of = |what: &str| {
        events
            .iter()
            .filter(|event| event["data"]["of"] == what)
            .count()
    };
    assert_eq!((of("test"), of("runs")), (6, 1), "{lines}");
    assert_eq!(events.last().unwrap()["data"]["done_runs"], 3);

    // Each run has the client's row and the server's, and all have one.
    let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.split(',').collect()).collect();
    assert_eq!(rows.len(), 7, "{rows:?}");
    let last = rows.last().unwrap();
    assert_eq!(
        (last.len(), last[5], &last[14..]),
        (16, "-2", &["3", "3"][..])
    );
    assert_eq!((last[12], last[13]), ("", ""));
    let reports = rows
        .iter()
        .filter(|row| row[1..] != last[1..] && row[2] == last[4]);
    let bytes: u64 = reports.map(|row| row[7].parse::<u64>().unwrap()).sum();
    assert_eq!(bytes.to_string(), last[7], "{rows:?}");
    let figures: Vec<f64> = last[9..12]
        .iter()
        .map(|figure| figure.parse().unwrap())
        .collect();
    assert!(
        figures[1] <= figures[0] && figures[0] <= figures[2],
        "{last:?}"
    );
}
