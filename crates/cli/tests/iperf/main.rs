//! `nicpoll iperf` against iperf 2.1.8, in namespaces, either program at either end: both ends' numbers agree with
//! each other and with the kernel's counters.

#[path = "../common/mod.rs"]
mod common;
mod duplex;
mod lines;
mod pair;

use crate::common::prelude::*;
use crate::pair::{Pair, Program, bytes, lost_and_total};

const ENDS: [(Program, Program); 3] = [
    (Program::Ours, Program::Iperf),
    (Program::Iperf, Program::Ours),
    (Program::Ours, Program::Ours),
];

#[test]
fn tcp_bytes_are_the_same_at_both_ends() {
    needs!(Root, Iperf);
    let pair = Pair::new();
    for (client, server) in ENDS {
        // With -X a client of 2.1.8 waits for the header's acknowledgement before it sends.
        for options in [
            &["-t", "0.3"][..],
            &["-n", "1M"],
            &["-V", "-t", "0.3"],
            &["-X", "-t", "0.3"],
        ] {
            if client == Program::Ours && options.contains(&"-X") {
                continue;
            }
            let (sent, received) = pair.run(client, server, options);
            let case = format!("{client:?} to {server:?} {options:?}\n{sent}\n{received}");
            assert_eq!(bytes(&sent, "sec"), bytes(&received, "sec"), "{case}");
            if options.contains(&"-n") {
                assert_eq!(bytes(&sent, "sec"), 1 << 20, "{case}");
            }
        }
    }
}

#[test]
fn parallel_streams_add_up_to_the_sum() {
    needs!(Root, Iperf);
    let pair = Pair::new();
    for (client, server) in ENDS {
        let (sent, received) = pair.run(client, server, &["-P", "2", "-t", "0.3"]);
        let case = format!("{client:?} to {server:?}\n{sent}\n{received}");
        assert_eq!(bytes(&sent, "[SUM]"), bytes(&received, "[SUM]"), "{case}");
    }
}

#[test]
fn udp_datagrams_agree_with_the_other_end_and_with_the_kernel() {
    needs!(Time, Root, Iperf);
    let pair = Pair::new();
    for (client, server) in ENDS {
        for options in [
            &["-u", "-b", "20m", "-t", "0.3"][..],
            &["-u", "-V", "-b", "20m", "-t", "0.3"],
            &["-u", "-b", "2000pps", "-l", "64", "-t", "0.3"],
            &["-u", "-b", "20m", "--trip-times", "-t", "0.3"],
        ] {
            if client == Program::Ours && options.contains(&"--trip-times") {
                continue;
            }
            let counted = || {
                let before = pair.frames_received();
                let (sent, received) = pair.run(client, server, options);
                let arrived = pair.frames_received() - before;
                let case = format!("{client:?} to {server:?} {options:?}\n{sent}\n{received}");
                let (lost, total) = lost_and_total(&received);
                assert_eq!(lost, 0, "{case}");
                assert!(total > 100, "{case}");
                assert!(arrived >= total, "{arrived} arrived\n{case}");
                // The kernel also saw the FIN, perhaps again, which iperf counts as a datagram.
                (sent, total, case, arrived <= total + 3)
            };
            // An end without CPU time answers the FIN late, and it is sent again and again.
            let mut tries = (0..5).map(|_| counted());
            let told = tries.find(|(.., has_few_fins)| *has_few_fins);
            let (sent, total, case, _) = told.expect("a FIN that is answered in time");
            // The client prints the server's report unchanged. The original counts its FIN.
            let (relayed_lost, relayed_total) = lost_and_total(&sent);
            assert_eq!(relayed_lost, 0, "{case}");
            let fins = u64::from(client == Program::Iperf);
            assert!((total..=total + fins).contains(&relayed_total), "{case}");
            if client == server {
                let told = format!(" Sent {total} datagrams");
                assert!(sent.contains(&told), "{case}");
            }
        }
    }
}

#[test]
fn udp_to_and_from_the_original_is_counted_alike() {
    needs!(Root, Iperf);
    let pair = Pair::new();
    let options = ["-u", "-l", "64", "-n", "6400", "-b", "1000pps"];
    let (sent, received) = pair.run(Program::Ours, Program::Iperf, &options);
    // The original counts the FIN.
    for text in [sent, received] {
        assert_eq!(lost_and_total(&text), (0, 101), "{text}");
    }
    let options = [
        "-u", "-P", "2", "-l", "1000", "-n", "49500", "-b", "1000pps",
    ];
    let (sent, received) = pair.run(Program::Iperf, Program::Ours, &options);
    assert_eq!(sent.matches("Server Report:").count(), 2, "{sent}");
    // Each has 49 datagrams of 1000 bytes and one of 500.
    assert_eq!(received.matches(" 0/   50 (0%)").count(), 2, "{received}");
}

#[test]
fn a_slow_link_of_its_own_costs_a_sender_of_batches_no_datagram() {
    needs!(Root, Tc, Iperf);
    let pair = Pair::new();
    // A queue just long enough for the 93 datagrams of 1512 bytes that the usual send buffer holds.
    let shaper = "qdisc add dev em0 root tbf rate 12mbit burst 32kb limit 150kb";
    let shaper: Vec<String> = shaper.split(' ').map(String::from).collect();
    let host = pair.veth.inside(Side::Sender);
    let shaped = host.run(move |_| Command::new("tc").args(shaper).status().unwrap());
    assert!(shaped.unwrap().success());
    let options = ["-u", "-b", "20m", "-t", "1"];
    for (client, more) in [
        (Program::Iperf, &[][..]),
        (Program::Ours, &["--no-batch"]),
        (Program::Ours, &[]),
    ] {
        let options = [&options[..], more].concat();
        let (sent, received) = pair.run(client, Program::Ours, &options);
        let case = format!("{client:?} {options:?}\n{sent}\n{received}");
        let (lost, total) = lost_and_total(&received);
        assert!(total > 500, "{case}");
        assert_eq!(lost, 0, "{case}");
    }
}

#[test]
fn a_sender_that_stood_still_does_not_fill_the_receivers_buffer_when_it_goes_on() {
    needs!(Root, Iperf);
    let pair = Pair::new();
    // A third of what falls due in 40 ms has room in the usual buffer.
    let options = ["-u", "-l", "18", "-b", "20000pps", "-t", "2", "-w", "208K"];
    for more in [&["--no-batch"][..], &[]] {
        let options = [&options[..], more].concat();
        let stop = |client: &Child| {
            for _ in 0..10 {
                thread::sleep(Duration::from_millis(110));
                send_signal(client, Signal::STOP);
                thread::sleep(Duration::from_millis(40));
                send_signal(client, Signal::CONT);
            }
        };
        let (sent, received) = pair.run_while(Program::Ours, Program::Ours, &options, stop);
        let case = format!("{options:?}\n{sent}\n{received}");
        let (lost, total) = lost_and_total(&received);
        assert!(total > 30_000, "{case}");
        // A tenth was lost, in batches or one a call.
        assert!(lost * 25 <= total, "{case}");
    }
}

fn ours(args: &[&str]) -> (Option<i32>, String, String) {
    let output = nicpoll([&["iperf"], args].concat()).output().unwrap();
    (output.status.code(), stdout(&output), stderr(&output))
}

#[test]
fn what_is_wrong_is_said_in_iperfs_words_with_exit_1() {
    assert_refused(
        "
        1 | iperf | Usage: iperf [-s|-c host] [options]
        1 | iperf -q | invalid option -- q
        1 | iperf --bogus | unrecognized option `--bogus'
        1 | iperf -c | option requires an argument
        1 | iperf -c 127.0.0.1 --ipg 1 | --ipg is not supported
        1 | iperf -c 127.0.0.1 -dR | mutually exclusive
        1 | iperf -c 127.0.0.1 -J | -J is not supported; it is iperf3's: use --json
        1 | iperf -c 127.0.0.1 -O 1 | -O is not supported; it is iperf3's: use -i
        1 | iperf -c 127.0.0.1 -k 3 | -k is not supported; it is iperf3's: use -n
        1 | iperf -c 127.0.0.1 -F file | -F is not supported; use -n
        1 | iperf -s -p 5001-5003 | -p 5001-5003 is not supported; start one
        1 | iperf -c 127.0.0.1 -p 0 | -p
        ",
        |line| nicpoll(words(line)).output().unwrap(),
    );
}

#[test]
fn a_closed_port_is_told_as_the_original_tells_it() {
    // Bound but not listening: nobody else can take the port meanwhile.
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (style, words) in [("2.0", "connect failed: "), ("2.1", "tcp connect failed: ")] {
        let (code, _, said) = ours(&["-c", "127.0.0.1", "-p", &port, "--style", style]);
        assert_eq!(code, Some(1));
        assert_eq!(said, format!("{words}Connection refused\n"));
    }
}

fn start(args: &[&str]) -> Child {
    nicpoll([&["iperf"], args].concat()).spawn().unwrap()
}

#[test]
fn a_signal_ends_both_ends_with_their_reports() {
    let port = free_port();
    let mut server = start(&["-s", "-B", "127.0.0.1", "-p", &port, "-i", "0.1"]);
    let mut heard = BufReader::new(server.stdout.take().unwrap());
    read_until(&mut heard, "window size");
    let mut client = start(&words(&format!(
        "-c 127.0.0.1 -p {port} -t 30 -i 0.1 -b 80m"
    )));
    let mut told = BufReader::new(client.stdout.take().unwrap());
    // An interval is printed while the test still runs.
    read_until(&mut told, " 0.1- 0.2 sec");
    send_signal(&client, Signal::INT);
    let told: Vec<String> = told.lines().map(Result::unwrap).collect();
    assert!(told.last().unwrap().contains("]  0.0- "), "{told:?}");
    assert!(client.wait().unwrap().success());
    read_until(&mut heard, "]  0.0- 0.1 sec");
    send_signal(&server, Signal::TERM);
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_signal_ends_a_client_that_receives_with_its_report() {
    let port = free_port();
    let mut server = start(&["-s", "-B", "127.0.0.1", "-p", &port, "-P", "1"]);
    let mut heard = BufReader::new(server.stdout.take().unwrap());
    read_until(&mut heard, "window size");
    let client = format!("-c 127.0.0.1 -p {port} -R -t 30 -i 0.1");
    let client = words(&client);
    let mut client = start(&client);
    let mut told = BufReader::new(client.stdout.take().unwrap());
    read_until(&mut told, " 0.1- 0.2 sec");
    send_signal(&client, Signal::INT);
    let told: Vec<String> = told.lines().map(Result::unwrap).collect();
    assert!(told.last().unwrap().contains("]  0.0- "), "{told:?}");
    assert!(client.wait().unwrap().success());
    // The server prints why it ends.
    assert!(server.wait().unwrap().success());
    let said = std::io::read_to_string(server.stderr.take().unwrap()).unwrap();
    assert!(said.contains(" broke after "), "{said}");
}

#[test]
fn a_server_that_does_not_connect_back_is_told_of() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port().to_string();
    let reading = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        std::io::copy(&mut stream, &mut std::io::sink()).unwrap()
    });
    let back = free_port();
    let client = ["-c", "127.0.0.1", "-p", &port, "-L", &back, "-n", "64K"];
    let (code, printed, said) = ours(&[&client[..], &["-d", "-f", "B"]].concat());
    assert_eq!(code, Some(1));
    assert_eq!(said, "ERROR: expected reverse connect did not occur\n");
    assert_eq!(reading.join().unwrap(), 65_536);
    assert!(printed.contains("65536 Bytes"), "{printed}");
}

#[test]
fn a_server_says_once_that_it_sends_datagrams_to_nobody_unasked() {
    let port = free_port();
    let mut server = start(&["-s", "-u", "-B", "127.0.0.1", "-p", &port]);
    let mut heard = BufReader::new(server.stdout.take().unwrap());
    read_until(&mut heard, "buffer size");
    for _ in 0..2 {
        let client = ["-c", "127.0.0.1", "-p", &port, "-u", "-R", "-t", "0.1"];
        let (code, _, said) = ours(&client);
        assert_eq!(code, Some(1));
        assert!(said.contains("no data came from 127.0.0.1"), "{said}");
    }
    send_signal(&server, Signal::TERM);
    assert!(server.wait().unwrap().success());
    let said = std::io::read_to_string(server.stderr.take().unwrap()).unwrap();
    assert_eq!(said.matches("--allow 127.0.0.1").count(), 1, "{said}");
    let heard = std::io::read_to_string(heard).unwrap();
    assert!(!heard.contains("connected with"), "{heard}");
}

#[test]
fn client_and_server_on_one_host_do_not_share_a_port() {
    let port = free_port();
    let (code, printed, said) = ours(&["-c", "127.0.0.1", "-p", &port, "-r"]);
    assert_eq!((code, printed.as_str()), (Some(1), ""));
    assert_has(&said, "choose another port for its streams with -L");
}

#[test]
fn comma_separated_values_are_one_line_a_report() {
    let port = free_port();
    let mut server = start(&["-s", "-p", &port, "-P", "1", "-y", "C"]);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
    let (code, printed, said) = loop {
        let answer = ours(&["-c", "127.0.0.1", "-p", &port, "-n", "64K", "-y", "C"]);
        // The server prints nothing when it is up.
        if answer.0 == Some(0) || std::time::Instant::now() > deadline {
            break answer;
        }
    };
    assert_eq!(code, Some(0), "{said}");
    let fields: Vec<&str> = printed.trim_end().split(',').collect();
    assert_eq!(fields.len(), 9, "{printed}");
    assert_eq!(fields[0].len(), "20261120213840".len());
    assert_eq!(
        (fields[1], fields[3], fields[4]),
        ("127.0.0.1", "127.0.0.1", port.as_str())
    );
    assert_eq!(fields[7], "65536");
    assert!(server.wait().unwrap().success());
}
