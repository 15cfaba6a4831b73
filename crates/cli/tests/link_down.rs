//! A link that goes down during a test, or a missing receiver: with every tool the result says how much of the time
//! was obtained, JSON has an error, and the exit code is 1.

mod common;

use crate::common::prelude::*;

/// Frames after which a test has begun, and the link's remaining time.
const BEGUN_FRAMES: u64 = 40;
const LIFE: Duration = Duration::from_millis(300);
/// Longest time until a server serves.
const TO_LISTEN: Duration = Duration::from_millis(600);

/// Runs a client whose end of the link goes down.
fn cut_off(server: &str, client: &str) -> Output {
    let veth = Veth::build().unwrap();
    let mut server_command = nicpoll(words(server));
    server_command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut serving = spawn_in(veth.inside(Side::Receiver), server_command);
    thread::sleep(TO_LISTEN);
    let client = spawn_in(veth.inside(Side::Sender), nicpoll(words(client)));
    let begun = Instant::now();
    while frames_received(veth.inside(Side::Receiver)) < BEGUN_FRAMES {
        assert!(begun.elapsed() < PATIENCE, "no traffic came");
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(LIFE);
    let mut down = Command::new("ip");
    down.args(["link", "set", "em0", "down"]);
    assert!(
        spawn_in(veth.inside(Side::Sender), down)
            .wait()
            .unwrap()
            .success()
    );
    let ended = client.wait_with_output().unwrap();
    serving.kill().unwrap();
    serving.wait().unwrap();
    ended
}

/// The seconds of "ended after 1.0 of 3.0 s: why", or of "no datagram got through after 1.0 of 3.0 s: why".
fn obtained(told: &str) -> f64 {
    let (_, rest) = told
        .split_once(" after ")
        .unwrap_or_else(|| panic!("{told}"));
    let (obtained, rest) = rest.split_once(" of ").unwrap();
    assert!(rest.contains(" s: "), "{told}");
    obtained.parse().unwrap()
}

fn assert_told(server: &str, client: &str) {
    let ended = cut_off(server, client);
    let told = stderr(&ended);
    assert!((0.0..2.9).contains(&obtained(&told)), "{client}: {told}");
    let document = json_of(&ended);
    let error = document["error"].as_str().unwrap_or_default();
    obtained(error);
    assert_eq!(ended.status.code(), Some(1), "{client}: {told}");
}

#[test]
fn a_link_that_goes_down_is_told_of() {
    needs!(Time, Root, Ip);
    let cases = [
        ("iperf -s", "iperf -c 198.18.0.2 -t 3 --json"),
        ("iperf -s -u", "iperf -c 198.18.0.2 -t 3 -u -b 1m --json"),
        ("rr -s", "rr -c 198.18.0.2 -t 3 --json"),
        ("rr -s", "rr -c 198.18.0.2 -t 3 -u --json"),
        ("netreceive 9900", "netblast 198.18.0.2 9900 64 3 --json"),
        (
            "netreceive 9900",
            "netsend 198.18.0.2 9900 64 1000 3 --json",
        ),
    ];
    // Each on a link of its own, two at a time.
    for two in cases.chunks(2) {
        thread::scope(|scope| {
            for (server, client) in two {
                scope.spawn(|| assert_told(server, client));
            }
        });
    }
}

#[test]
fn datagrams_that_nobody_receives_are_no_test() {
    let port = {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        socket.local_addr().unwrap().port()
    };
    for client in [
        format!("netblast 127.0.0.1 {port} 64 1"),
        format!("netsend 127.0.0.1 {port} 64 100 1"),
    ] {
        let ended = nicpoll(words(&client)).output().unwrap();
        let told = stderr(&ended);
        assert!(told.contains("its port is closed"), "{client}: {told}");
        assert!(obtained(&told) < 0.5, "{client}: {told}");
        assert_eq!(ended.status.code(), Some(1), "{client}: {told}");
        // The original's lines are printed all the same.
        let text = stdout(&ended);
        assert!(text.contains("send calls"), "{client}: {text}");
    }
}

#[test]
fn of_a_range_the_closed_ports_are_told_and_not_as_an_early_end() {
    // A free port after an open one.
    let (receiver, closed) = loop {
        let receiver = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let port = receiver.local_addr().unwrap().port();
        if port < u16::MAX && UdpSocket::bind(("127.0.0.1", port + 1)).is_ok() {
            break (receiver, port + 1);
        }
    };
    let range = format!("{}-{closed}", closed - 1);
    let ended = nicpoll(words(&format!("netsend 127.0.0.1 {range} 64 100 1")))
        .output()
        .unwrap();
    let told = stderr(&ended);
    assert!(
        told.contains(&format!("at least one port of {range} is closed")),
        "{told}"
    );
    assert!(
        !told.contains("got through") && !told.contains("nobody"),
        "{told}"
    );
    assert_eq!(ended.status.code(), Some(1), "{told}");
    drop(receiver);
}

#[test]
fn datagrams_that_arrive_are_a_test() {
    let receiver = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    let port = receiver.local_addr().unwrap().port();
    for client in [
        format!("netblast 127.0.0.1 {port} 64 1"),
        format!("netsend 127.0.0.1 {port} 64 3 1"),
    ] {
        let ended = nicpoll(words(&client)).output().unwrap();
        let told = stderr(&ended);
        assert_eq!(ended.status.code(), Some(0), "{client}: {told}");
    }
}
