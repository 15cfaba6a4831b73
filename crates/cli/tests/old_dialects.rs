//! Output of `nicpoll iperf` with iperf 2.0.x at the other end.

mod common;

use crate::common::prelude::*;

// The library's own test peers; only those of UDP are used.
#[allow(dead_code)]
#[path = "../../iperf/tests/fake/mod.rs"]
mod fake;

use fake::{V2_0_5, V2_0_8, V2_0_10, V2_0_12, V2_0_13, udp_client, udp_server};

fn start(args: &[&str]) -> Child {
    let mut command = Command::new(NICPOLL);
    command.arg("iperf").args(args).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Returns the columns after the unit of time in the last line with a jitter: jitter, lost and total.
fn receipt(printed: &str) -> Vec<String> {
    let line = printed.lines().rev().find(|line| line.contains(" ms "));
    let line = line.unwrap_or_else(|| panic!("no report in:\n{printed}"));
    let (_, rest) = line.split_once(" ms ").unwrap();
    rest.split_whitespace().map(String::from).collect()
}

#[test]
fn a_server_reports_old_clients_as_they_expect() {
    for version in fake::ALL {
        let port = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = port.local_addr().unwrap();
        drop(port);
        let port = address.port().to_string();
        let mut server = start(&["-s", "-u", "-B", "127.0.0.1", "-p", &port, "-P", "1"]);
        let mut heard = BufReader::new(server.stdout.take().unwrap());
        let mut printed = String::new();
        while !printed.contains("buffer size") {
            assert_ne!(heard.read_line(&mut printed).unwrap(), 0, "{printed}");
        }
        let client = udp_client::Client {
            ids: vec![0, 1, 2, 4, 3, 5, 6, 8],
            ..udp_client::Client::new(version, 9)
        };
        let outcome = client.run(address);
        assert!(outcome.report.is_some(), "{version:?}");
        heard.read_to_string(&mut printed).unwrap();
        assert!(server.wait().unwrap().success());
        assert_eq!(receipt(&printed), ["1/", "9", "(11%)"], "{printed}");
        assert!(printed.contains("11.5 KBytes"), "{printed}");
        let out_of_order = "1 datagrams received out-of-order";
        assert!(printed.contains(out_of_order), "{printed}");
    }
}

#[test]
fn a_client_relays_the_reports_of_old_servers() {
    for (version, dialect, figures) in [
        (V2_0_5, Some("2.0.5"), ["0/", "20", "(0%)"]),
        (V2_0_8, Some("2.0.8"), ["0/", "20", "(0%)"]),
        (V2_0_10, Some("2.0.10"), ["0/", "20", "(0%)"]),
        (V2_0_13, Some("2.0.13"), ["0/", "20", "(0%)"]),
        // The first datagram and the FIN are counted as iperf 2.1.8's own are.
        (V2_0_12, None, ["1/", "21", "(4.8%)"]),
    ] {
        let server = udp_server::Server::bind(version);
        let port = server.address().port().to_string();
        let mut args = vec!["-c", "127.0.0.1", "-u", "-p", &port];
        args.extend(["-n", "29400", "-b", "100pps"]);
        args.extend(
            dialect
                .into_iter()
                .flat_map(|version| ["--dialect", version]),
        );
        let serving = thread::spawn(move || server.run());
        let output = start(&args).wait_with_output().unwrap();
        serving.join().unwrap();
        let printed = stdout(&output);
        assert!(output.status.success(), "{printed}");
        assert_eq!(stderr(&output), "");
        assert!(printed.contains("Sent 20 datagrams"), "{printed}");
        assert!(printed.contains("Server Report:"), "{printed}");
        assert_eq!(receipt(&printed), figures, "{version:?}\n{printed}");
        // The server reports 7 microseconds and 1.01634 s.
        assert!(printed.contains("0.007 ms"), "{printed}");
        assert!(printed.contains(" 0.0- 1.0 sec"), "{printed}");
    }
}
