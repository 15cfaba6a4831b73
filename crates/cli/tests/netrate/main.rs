//! `nicpoll netblast`, `netreceive` and `netsend` for a user: every sent datagram is received or reported lost, as
//! the kernel counts it.

#[path = "../common/mod.rs"]
mod common;
mod losses;

use crate::common::prelude::*;
use std::os::unix::fs::symlink;

const SCHEMA_PAGE: &str = include_str!("../../../../docs/schema.md");
const PORT: &str = "9000";
const ADDRESSES: [&str; 2] = ["198.18.0.2", "2001:2::2"];

/// Time after which a shaper's queue at the sender is empty.
const QUIET_AFTER: Duration = Duration::from_millis(50);

/// Two hosts with a link between them.
struct Hosts {
    veth: Veth,
    _alone: MutexGuard<'static, ()>,
}

impl Hosts {
    fn new() -> Self {
        let _alone = alone();
        let veth = Veth::build().unwrap();
        Hosts { veth, _alone }
    }

    fn counters(&self, side: Side) -> HostSnapshot {
        counters(self.veth.inside(side))
    }

    /// Runs a sender to its end.
    fn send(&self, args: &[&str]) -> Output {
        run_in(self.veth.inside(Side::Sender), nicpoll(args))
    }

    /// Runs a sender against a netreceive, and returns both JSON objects.
    fn run(&self, args: &[&str]) -> (Value, Value) {
        let receiver = Receiver::start(self.veth.inside(Side::Receiver), &["--json"]);
        let sent = self.send(args);
        assert_code(&sent, 0);
        thread::sleep(QUIET_AFTER);
        (json_of(&sent), receiver.end_with_object())
    }
}

/// A netreceive that listens.
struct Receiver {
    child: Child,
    errors: BufReader<std::process::ChildStderr>,
    said: String,
}

impl Receiver {
    fn start(host: &NetnsThread<()>, options: &[&str]) -> Self {
        let args = [&["netreceive"], options, &[PORT]].concat();
        let mut child = spawn_in(host, nicpoll(args));
        let mut receiver = Receiver {
            errors: BufReader::new(child.stderr.take().unwrap()),
            child,
            said: String::new(),
        };
        receiver.said = read_until(&mut receiver.errors, "start at ");
        receiver
    }

    /// Ends it like Ctrl-C, and returns both outputs.
    fn end(mut self) -> (String, String) {
        send_signal(&self.child, Signal::INT);
        self.errors.read_to_string(&mut self.said).unwrap();
        let output = self.child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", self.said);
        (stdout(&output), self.said)
    }

    fn end_with_object(self) -> Value {
        serde_json::from_str(&self.end().0).unwrap()
    }
}

fn count(object: &Value, path: &str) -> u64 {
    let found = object.pointer(path).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("no {path} in {object:#}"))
}

#[test]
fn what_was_sent_was_received_or_is_accounted_for() {
    needs!(Root);
    let hosts = Hosts::new();
    for address in ADDRESSES {
        for options in [&[][..], &["--batch"], &["--blocking"]] {
            let before = hosts.counters(Side::Receiver);
            let blast = ["netblast", "--json", address, PORT, "64", "1"];
            let (sent, received) = hosts.run(&[&blast, options].concat());
            let after = hosts.counters(Side::Receiver);
            let case = format!("{address} {options:?}\n{sent:#}\n{received:#}");
            let successes = count(&sent, "/send_successes");
            let delivered = count(&received, "/received_packets");
            let dropped = count(&received, "/socket_dropped_packets");
            assert!(delivered > 0, "{case}");
            assert_eq!(
                successes,
                count(&sent, "/send_calls") - count(&sent, "/send_errors")
            );
            assert_eq!(successes, delivered + dropped, "{case}");
            let dot = if address.contains(':') { "6" } else { "." };
            let grown = |name: &str| {
                let name = format!("Udp{dot}{name}");
                after.protocols[&name] - before.protocols[&name]
            };
            assert_eq!(grown("InDatagrams"), delivered, "{case}");
            assert_eq!(grown("RcvbufErrors"), dropped, "{case}");
            let told = count(&received, "/host/dropped_packets/socket_buffer");
            assert_eq!(told, dropped, "{case}");
            let datagrams = count(&sent, "/datagrams_per_system_call");
            let most = if options == ["--batch"] { 64 } else { 1 };
            assert!((1..=most).contains(&datagrams), "{case}");
        }
    }
}

#[test]
fn a_datagram_that_does_not_fit_the_link_is_sent_by_itself() {
    needs!(Root);
    let hosts = Hosts::new();
    for (payload, expected) in [("1400", true), ("2000", false)] {
        let blast = ["netblast", "--batch", "--json", ADDRESSES[0], PORT];
        let (sent, received) = hosts.run(&[&blast[..], &[payload, "1"]].concat());
        let has_trains = count(&sent, "/datagrams_per_system_call") > 1;
        assert_eq!(has_trains, expected, "{sent:#}");
        assert_eq!(count(&sent, "/send_errors"), 0, "{sent:#}");
        let bytes = payload.parse::<u64>().unwrap() * count(&received, "/received_packets");
        assert_eq!(count(&received, "/received_payload_bytes"), bytes);
        assert!(bytes > 0);
    }
}

#[test]
fn a_full_queue_is_a_send_error() {
    needs!(Root, Tc);
    let hosts = Hosts::new();
    let shaper = "qdisc add dev em0 root tbf rate 10mbit burst 4kb limit 2000";
    let shaped = run_in(hosts.veth.inside(Side::Sender), kept("tc", words(shaper)));
    assert_code(&shaped, 0);
    let before = hosts.counters(Side::Sender);
    let blast = ["netblast", "--json", ADDRESSES[0], PORT, "64", "1"];
    let (sent, received) = hosts.run(&blast);
    let after = hosts.counters(Side::Sender);
    let qdisc_drops = |snapshot: &HostSnapshot| -> u64 {
        let interfaces = snapshot.interfaces.as_ref().unwrap().values();
        interfaces.map(|one| one.qdisc_drops.unwrap()).sum()
    };
    let dropped = qdisc_drops(&after) - qdisc_drops(&before);
    assert!(dropped > 0);
    assert_eq!(count(&sent, "/send_errors"), dropped, "{sent:#}");
    assert_eq!(
        count(&sent, "/host/dropped_packets/send_queue"),
        dropped,
        "{sent:#}"
    );
    let errno = count(&sent, "/send_errors_by_errno/0/errno");
    assert_eq!(errno, rustix::io::Errno::NOBUFS.raw_os_error() as u64);
    let ratio = sent["error_ratio"].as_f64().unwrap();
    assert!(ratio > 0.0 && ratio < 1.0, "{sent:#}");
    let delivered = count(&received, "/received_packets");
    assert_eq!(
        count(&sent, "/send_successes"),
        delivered,
        "{sent:#}\n{received:#}"
    );
}

#[test]
fn netsend_keeps_its_schedule_and_each_datagram_arrives() {
    needs!(Time, Root);
    let hosts = Hosts::new();
    for (port, options) in [(PORT, &[][..]), ("9000-9001", &["--blocking"])] {
        let send = ["netsend", "--json", ADDRESSES[0], port, "64", "1000", "1"];
        let (sent, received) = hosts.run(&[&send, options].concat());
        let calls = count(&sent, "/send_calls");
        // A sender without its core at the very end skips the datagrams due then.
        assert!((1..=1000).contains(&calls), "{sent:#}");
        assert_eq!(sent["interval_ns"], 1_000_000);
        assert_eq!(count(&sent, "/system_calls"), calls);
        let delivered = count(&received, "/received_packets");
        if port == PORT {
            assert_eq!(delivered, calls, "{sent:#}\n{received:#}");
            assert_eq!(received["sockets"][1]["received_packets"], calls);
        } else {
            // The second port is closed.
            assert_eq!(delivered, calls.div_ceil(2), "{sent:#}\n{received:#}");
        }
    }
}

#[test]
fn the_schema_has_every_field_and_the_page_every_place() {
    needs!(Root);
    let hosts = Hosts::new();
    let blast = ["netblast", "--json", ADDRESSES[1], PORT, "64", "1"];
    let send = ["netsend", "--json", ADDRESSES[0], PORT, "64", "10", "1"];
    for args in [&blast[..], &send] {
        let (sent, received) = hosts.run(args);
        for (object, tool) in [(sent, args[0]), (received, "netreceive")] {
            let schema = format!("nicpoll.{tool}/3");
            assert_eq!(object["schema"], schema);
            assert!(SCHEMA_PAGE.contains(&format!("`{schema}`")), "{schema}");
            assert_described(&object, tool);
            for place in object["host"]["dropped_packets"]
                .as_object()
                .unwrap()
                .keys()
            {
                let is_described = SCHEMA_PAGE.contains(&format!("`{place}`"));
                assert!(is_described, "{tool}: {place}");
            }
        }
    }
}

#[test]
fn the_lines_are_the_originals_and_the_account_follows() {
    needs!(Root);
    let hosts = Hosts::new();
    let receiver = Receiver::start(hosts.veth.inside(Side::Receiver), &[]);
    let line = format!("netblast --style freebsd {} {PORT} 64 1 1", ADDRESSES[0]);
    let sent = hosts.send(&words(&line));
    let (printed, said) = receiver.end();
    let lines = stdout(&sent);
    let labels = lines.lines().map(|line| line.get(..19).unwrap_or(line));
    let labels: Vec<&str> = labels.map(str::trim_end).collect();
    let expected = "netblast 1 threads||start:|finish:|send calls:|send errors:|approx send rate:|approx error rate:";
    assert_eq!(labels.join("|"), expected);
    assert_eq!(stderr(&sent), "");
    assert_eq!(
        printed,
        "netreceive 2 sockets x 1 threads listening on UDP port 9000\n"
    );
    let figure = |line: usize| {
        lines.lines().nth(line).unwrap()[19..]
            .parse::<u64>()
            .unwrap()
    };
    let after = |mark: &str| -> u64 {
        let (_, rest) = said.split_once(mark).unwrap_or_else(|| panic!("{said}"));
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap();
        rest[..end].parse().unwrap()
    };
    let accounted = after("received: ") + after("dropped by these sockets: ");
    assert_eq!(accounted, figure(4) - figure(5), "{said}");
    assert_eq!(after("socket buffer "), after("dropped by these sockets: "));
    assert!(said.contains(" pps "), "{said}");
}

#[test]
fn a_signal_ends_a_sender_with_its_report() {
    let args = ["netblast", "127.0.0.1", "9", "64", "0"];
    let child = nicpoll(args).spawn().unwrap();
    thread::sleep(Duration::from_millis(300));
    // Like timeout(1): to the program, and at once to its process group.
    send_signal(&child, Signal::TERM);
    thread::sleep(Duration::from_millis(2));
    send_signal(&child, Signal::TERM);
    let output = child.wait_with_output().unwrap();
    assert_code(&output, 0);
    assert_has(stdout(&output), "\napprox throughput: ");
}

/// The runs of `--repeat`: two as lines, and concurrently as JSON until a signal cuts one short.
#[test]
fn runs_are_told_each_and_together() {
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = receiver.local_addr().unwrap().port().to_string();
    let start = |options: &[&str]| {
        let to = ["127.0.0.1", &port, "64", "1"];
        let args = [&["netblast"], options, &to].concat();
        nicpoll(args).spawn().unwrap()
    };
    let lines = start(&["--repeat", "2"]);
    let objects = start(&["--repeat", "50", "--json"]);
    let lines = lines.wait_with_output().unwrap();
    send_signal(&objects, Signal::INT);
    let objects = objects.wait_with_output().unwrap();
    let lines = stdout(&lines);
    assert_eq!(lines.matches("\nsend success:").count(), 2, "{lines}");
    let last = lines.lines().last().unwrap();
    let rest = last
        .strip_prefix("2 runs: median ")
        .unwrap_or_else(|| panic!("{last}"));
    assert!(
        rest.ends_with(" packets/s, no interval below 6 runs"),
        "{last}"
    );

    assert_code(&objects, 0);
    let object = json_of(&objects);
    assert_described(&object, "netblast-runs");
    let runs = object["runs"].as_array().unwrap();
    let (cut_short, whole) = runs.split_last().unwrap();
    assert_eq!(cut_short["ended_by_signal"], 2);
    let summary = &object["summary"];
    assert_eq!(count(summary, "/asked_runs"), 50);
    assert_eq!(count(summary, "/done_runs"), whole.len() as u64);
    let rates = summary["values"].as_array().unwrap();
    assert_eq!(rates.len(), runs.len());
    assert_eq!(rates.last(), Some(&Value::Null));
    for (rate, run) in rates.iter().zip(whole) {
        assert_eq!(rate, &run["sent_packets_per_second"]);
    }
}

#[test]
fn netreceive_ends_when_nobody_reads_its_lines() {
    let mut command = nicpoll(["netreceive", &free_port()]);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    read_until(&mut errors, "start at ");
    drop(errors);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

fn run(program: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(program).args(args).output().unwrap();
    let printed = stdout(&output);
    (output.status.code(), printed, stderr(&output))
}

#[test]
fn what_is_wrong_is_said_in_the_originals_words_with_status_255() {
    for [line, words] in cases(
        "
        netblast | netblast [ip] [port] [payloadsize] [duration]
        netblast 127.0.0.1 9 40000 1 | payloadsize > 32768
        netblast 255.255.255.255 9 64 1 | connect: Permission denied
        netreceive | netreceive port [nthreads]
        netreceive 9 65 | netreceive port [nthreads]
        netsend 127.0.0.1 9 64 200000000 1 | packet rate at most 100000000
        netsend not/a/name 9 64 1 1 | Couldn't resolv not/a/name
        netblast 127.0.0.1 0 64 1 | Invalid port number: 0+netblast [ip] [port] [payloadsize] [duration]
        ",
    ) {
        let (code, printed, said) = run(Path::new(NICPOLL), &crate::common::run::words(line));
        assert_eq!(code, Some(255), "{line}");
        assert_eq!(said, words.replace('+', "\n") + "\n", "{line}");
        assert_eq!(printed, "", "{line}");
    }
}

#[test]
fn a_taken_port_is_told_as_the_original_tells_it() {
    // One family alone would leave the other to netreceive.
    let taken = std::net::UdpSocket::bind("[::]:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, printed, said) = run(Path::new(NICPOLL), &["netreceive", &port]);
    assert_eq!((code, printed.as_str()), (Some(255), ""));
    assert_eq!(said, "bind: Address already in use\n");
}

#[test]
fn through_a_link_with_its_name_the_program_is_the_tool() {
    let directory = tempfile::tempdir().unwrap();
    for usage in [
        "netblast [ip] [port] [payloadsize] [duration]",
        "netreceive port [nthreads]",
        "netsend [ip] [port[-port_max]] [payloadsize] [packet_rate] [duration]",
    ] {
        let name = usage.split(' ').next().unwrap();
        let link = directory.path().join(name);
        symlink(NICPOLL, &link).unwrap();
        let (code, printed, said) = run(&link, &["x"; 9]);
        assert_eq!((code, printed.as_str()), (Some(255), ""), "{name}");
        assert_eq!(said.trim_end(), usage);
        let (code, printed, said) = run(&link, &["--help"]);
        assert_eq!((code, said.as_str()), (Some(0), ""), "{name}");
        assert_has(&printed, format!("\nUsage: {name} "));
        assert_has(&printed, "\nExamples:\n");
    }
    let other = directory.path().join("other");
    symlink(NICPOLL, &other).unwrap();
    assert_eq!(run(&other, &["netreceive"]).0, Some(255));
    assert_eq!(run(&other, &[]).0, Some(2));
}
