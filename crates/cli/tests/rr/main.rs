//! `nicpoll rr` in namespaces: both ends' numbers agree with each other and with the kernel's counters, over both
//! protocols and IP versions and in both loops.

#[path = "../common/mod.rs"]
mod common;
mod strangers;

use crate::common::prelude::*;
use crate::common::running::event;

fn command(args: &[&str]) -> Command {
    nicpoll([&["rr"], args].concat())
}

fn spawn(host: &NetnsThread<()>, args: &[&str]) -> Child {
    spawn_in(host, command(args))
}

/// Wraps a server that prints events and has started.
fn serving(child: Child) -> Running {
    Running::of(child).0
}

/// Parses a program's single JSON object and validates it.
fn document(output: &Output) -> Value {
    let document = json_of(output);
    assert_described(&document, "rr");
    document
}

#[test]
fn both_ends_and_the_kernel_count_the_same() {
    needs!(Root);
    let veth = Veth::build().unwrap();
    for (address, server_options) in [("198.18.0.2", &[][..]), ("2001:2::2", &["-V"])] {
        for protocol in ["udp", "tcp"] {
            for pacing in [&["--depth", "2"][..], &["--rate", "2k"]] {
                let case = format!("{address} {protocol} {pacing:?}");
                let serve = [&["-s", "--json-stream"], server_options].concat();
                let server = serving(spawn(veth.inside(Side::Receiver), &serve));
                let mut ask = vec!["-c", address, "-n", "300", "--json", "-i", "0.05"];
                ask.extend(pacing);
                if protocol == "udp" {
                    ask.push("-u");
                }
                let before = frames_received(veth.inside(Side::Receiver));
                let output = spawn(veth.inside(Side::Sender), &ask)
                    .wait_with_output()
                    .unwrap();
                let packets = frames_received(veth.inside(Side::Receiver)) - before;
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{case}: {said}");
                let asked = document(&output);
                let answered = &server.interrupt()[protocol];
                check(&asked["end"], answered, &case);
                let is_open = pacing[0] == "--rate";
                let scheduled = is_open.then_some(300);
                assert_eq!(asked["end"]["scheduled_requests"], Value::from(scheduled));
                assert!(!asked["intervals"].as_array().unwrap().is_empty());
                if protocol == "udp" {
                    // Besides requests: neighbour discovery.
                    assert!((300..=320).contains(&packets), "{case}: {packets}");
                }
            }
        }
    }
}

fn check(end: &Value, served: &Value, case: &str) {
    let case = format!("{case}\n{end}\n{served}");
    assert_eq!(end["requests_sent"], 300, "{case}");
    let [answered, lost] = ["transactions", "lost_requests"].map(|key| end[key].as_u64().unwrap());
    assert_eq!(answered + lost, 300, "{case}");
    assert_eq!(end["latency"]["samples"], answered, "{case}");
    assert_eq!(served["requests_received"], 300, "{case}");
    assert_eq!(served["responses_sent"], 300, "{case}");
    assert_eq!(served["bytes_sent"], served["bytes_received"], "{case}");
    assert!(end["latency"]["p50_ns"].as_u64().unwrap() > 0, "{case}");
    assert!(end["latency"]["p999_ns"].is_null(), "300 samples: {case}");
}

#[test]
fn a_signal_ends_a_client_with_its_report() {
    let port = free_port();
    let start = |line: &str| {
        let line = format!("{line} 127.0.0.1 -p {port} --json-stream");
        command(&words(&line)).spawn().unwrap()
    };
    let server = serving(start("-s -B"));
    let mut client = start("-t 60 --rate 500 -i 0.05 -c");
    let mut events = BufReader::new(client.stdout.take().unwrap());
    let mut text = read_until(&mut events, "\"interval\"");
    send_signal(&client, Signal::TERM);
    events.read_to_string(&mut text).unwrap();
    assert_eq!(client.wait().unwrap().code(), Some(143));
    let end = event(text.lines().last().unwrap(), "end");
    assert_eq!(
        (&end["side"], &end["is_interrupted"]),
        (&"sender".into(), &true.into())
    );
    let count = |key: &str| end[key].as_u64().unwrap();
    assert!(count("transactions") > 0);
    assert_eq!(
        count("requests_sent"),
        count("transactions") + count("lost_requests")
    );
    let told = ["requests_sent", "refused_sends", "unsent_requests"].map(count);
    assert_eq!(count("scheduled_requests"), told.iter().sum::<u64>());
    assert_eq!(
        server.interrupt()["tcp"]["requests_received"],
        count("requests_sent")
    );
}

#[test]
fn a_closed_udp_port_ends_the_client_at_once() {
    // One loop waits for the answer, the other gets the refusal when sending.
    for pacing in ["--depth 1", "--rate 2000"] {
        let port = free_port();
        let line = format!("-u -c 127.0.0.1 -p {port} -t 60 {pacing} --json");
        let output = command(&words(&line)).output().unwrap();
        assert_code(&output, 1);
        assert_has(
            stderr(&output),
            "its port is closed; see whether a server runs there",
        );
        let sent = document(&output)["end"]["requests_sent"].as_u64().unwrap();
        assert!(sent < 1000, "{sent}");
    }
}

#[test]
fn a_server_that_is_not_there_is_said_so() {
    // Bound but not answering: nobody else can take the port meanwhile.
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (protocol, told) in [(&[][..], "nicpoll rr -s"), (&["-u"], "no response came")] {
        let line = format!("-c 127.0.0.1 -p {port} -n 1 --timeout 0.05 --json");
        let args = [&words(&line), protocol].concat();
        let output = command(&args).output().unwrap();
        assert_code(&output, 1);
        assert_has(stderr(&output), told);
        let error = document(&output)["error"].clone();
        assert_has(error.as_str().unwrap(), told);
    }
}

#[test]
fn what_cannot_be_is_refused_with_exit_2() {
    assert_refused(
        "
        2 |  | --server|--client
        2 | -s -c host | cannot be used with
        2 | -s --rate 5 | cannot be used with
        2 | -c h --rate 5 --depth 2 | cannot be used with
        2 | -c h -u --response-bytes 65 | --request-bytes 65
        2 | -c h -u --request-bytes 65508 | 65507
        2 | -c h --request-bytes 63 | 64
        2 | -c h --timeout 61 | 60s
        2 | -c h -i 1ms | 10ms
        2 | -c h -p 0 | from 1 to 65535
        2 | -c h --rate 2m | to 1m a second
        ",
        |line| command(&words(line)).output().unwrap(),
    );
}

/// If an output filter drops messages, their sender reports it, and the test goes on.
#[test]
fn what_a_filter_stops_on_its_way_out_is_counted_by_the_end_that_sent_it() {
    needs!(Root, Nft);
    let veth = Veth::build().unwrap();
    let filter = |side: Side, drops: &str| {
        let rules = format!(
            "add table inet t; flush table inet t; \
             add chain inet t c {{ type filter hook output priority 0; }}; \
             add rule inet t c meta l4proto udp {drops} drop"
        );
        assert_code(&run_in(veth.inside(side), kept("nft", [rules])), 0);
    };
    let ask = || {
        let args = words("-c 198.18.0.2 -u -n 40 --timeout 50ms --json");
        let asked = spawn(veth.inside(Side::Sender), &args);
        asked.wait_with_output().unwrap()
    };
    filter(Side::Receiver, "numgen inc mod 4 == 0");
    let server = serving(spawn(veth.inside(Side::Receiver), &["-s", "--json-stream"]));
    filter(Side::Sender, "numgen inc mod 4 == 0");
    let some = ask();
    assert_eq!(some.status.code(), Some(0), "{some:?}");
    let end = serde_json::from_slice::<Value>(&some.stdout).unwrap()["end"].take();
    let count = |name: &str| end[name].as_u64().unwrap();
    assert_eq!((count("requests_sent"), count("refused_sends")), (30, 10));
    filter(Side::Sender, "");
    let none = ask();
    assert_code(&none, 1);
    let text = stderr(&none);
    assert_has(&text, "a packet filter of this host dropped every request");
    let served = &server.interrupt()["udp"];
    let count = |name: &str| served[name].as_u64().unwrap();
    // One in four of the answers.
    assert_eq!(
        (count("requests_received"), count("refused_sends")),
        (30, 8)
    );
    assert_eq!(count("responses_sent"), 22);
}
