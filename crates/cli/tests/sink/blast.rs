//! `nicpoll blast` at one end of a veth: an ordinary socket receives the frames that it counts as sent, and nothing
//! is left.

use crate::common::prelude::*;
use crate::common::running::{ended, nicpoll, thread_of};
use nicpoll_sys::socket::set_receive_buffer;

const TO: &str = "198.18.0.2:9000";

/// Runs a command at the sender until it ends.
fn at_sender(veth: &Veth, args: &[&str]) -> Output {
    ended(veth.inside(Side::Sender), args)
}

fn receiver(veth: &Veth) -> UdpSocket {
    let bind = |(): &mut ()| UdpSocket::bind(TO).unwrap();
    let socket = veth.inside(Side::Receiver).run(bind).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    // Holds everything that a test sends, even if the reader does not run meanwhile.
    set_receive_buffer(&socket, 8 << 20).unwrap();
    socket
}

#[test]
fn what_was_counted_came_and_the_document_is_as_its_schema_says() {
    needs!(Root, Ip);
    let veth = Veth::build().unwrap();
    let socket = receiver(&veth);
    let count = 500;
    let reading = thread::spawn(move || (0..count).all(|_| socket.recv(&mut [0; 2048]).is_ok()));
    let args = [
        "blast", "em0", "--to", TO, "--rate", "20k", "--count", "500", "--json",
    ];
    let output = at_sender(&veth, &args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(reading.join().unwrap());
    let document = json_of(&output);
    crate::common::schema::assert_described(&document, "blast");
    let account = &document["end"]["links"][0]["account"];
    for counter in ["built_frames", "handed_frames", "completed_frames"] {
        assert_eq!(account[counter], count, "{counter}: {document}");
    }
    assert_eq!(account["residual_frames"], 0);
    // 60 bytes: Ethernet, IPv4, UDP and a mark, without FCS.
    assert_eq!(document["end"]["totals"]["built_bytes"], 500 * 60);
    assert_eq!(document["start"]["links"][0]["path"], "af-xdp");
}

#[test]
fn the_text_names_the_path_and_closes_the_account() {
    needs!(Root, Ip);
    let veth = Veth::build().unwrap();
    let args = [
        "blast", "em0", "--to", TO, "--count", "1000", "--flows", "3", "--path", "af-xdp",
    ];
    let output = at_sender(&veth, &args);
    let text = stdout(&output);
    assert_has_all(
        &text,
        "em0: UDP from 198.18.0.1:49152 to 198.18.0.2:9000 | 3 flows, frames of 64 bytes with \
         FCS | sent by AF_XDP | each frame is a packet of its own | as fast as they go | 1,000 \
         frames written | 0 of these unaccounted for",
    );
}

#[test]
fn a_signal_ends_it_with_its_figures_and_a_kill_leaves_nothing() {
    needs!(Root, Ip);
    let veth = Veth::build().unwrap();
    let socket = receiver(&veth);
    let before = shell(veth.inside(Side::Sender), "ip -d link show em0");
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let child = nicpoll(
            veth.inside(Side::Sender),
            &[
                "blast",
                "em0",
                "--to",
                TO,
                "--rate",
                "1000",
                "--json-stream",
            ],
        );
        socket.recv(&mut [0; 2048]).unwrap();
        send_signal(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), code);
        let text = stdout(&output);
        assert_eq!(text.contains("\"event\":\"end\""), code.is_some(), "{text}");
        assert_eq!(
            shell(veth.inside(Side::Sender), "ip -d link show em0"),
            before
        );
        while socket.set_nonblocking(true).is_ok() && socket.recv(&mut [0; 2048]).is_ok() {}
        socket.set_nonblocking(false).unwrap();
    }
    // The queue is free again shortly after its socket was closed.
    let began = Instant::now();
    let again = at_sender(&veth, &["blast", "em0", "--to", TO, "--count", "1"]);
    assert_code(&again, 0);
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    needs!(Root, Ip);
    let veth = Veth::build().unwrap();
    assert_refused(
        "
        1 | blast em9 --to 198.18.0.2:9000 | there is no interface 'em9'
        2 | blast em0 | --to
        2 | blast em0 --to somewhere | an address was expected
        2 | blast em0 --to 198.18.0.2:9000 --rate 0 | above 0
        2 | blast em0 --to 198.18.0.2:9000 --size 63 | 64 to 9018
        1 | blast em0 --to 198.18.0.2:9000 --size 1519 | MTU of 1500
        2 | blast em0 --to 198.18.0.2:9000 --flows 0 | 1 to 16384
        2 | blast em0 --to 198.18.0.2:9000 --path raw | live, af-xdp
        2 | blast em0 em0 --to 198.18.0.2:9000 --to 198.18.0.2:9000 --to 198.18.0.2:9000 | 3 for 2
        1 | blast em0 --to 198.18.0.1 | not the address of one other host
        2 | blast em0 --replay no-such.pcap | cannot read no-such.pcap
        1 | blast lo --to 198.18.0.2:9000 | no Ethernet
        ",
        |line| at_sender(&veth, &words(line)),
    );
}

/// Runs a blast at an interface of the sender, with `change` once some frames are sent. Returns its end and its
/// messages.
fn blast_while(veth: &Veth, interface: &str, path: &str, change: &str) -> (Value, String) {
    let line = format!(
        "blast {interface} --to {TO} --mac 02:00:00:00:00:02 --from 198.18.0.1 --rate 3k --count 3000 --size 1200 \
         --path {path} --json"
    );
    let words: Vec<&str> = line.split(' ').collect();
    let counted = format!("awk '$1 == \"{interface}:\" {{print $11}}' /proc/thread-self/net/dev");
    let sent = || -> u64 {
        let text = shell(veth.inside(Side::Sender), &counted);
        text.trim().parse().unwrap()
    };
    let (began, before) = (Instant::now(), sent());
    let child = nicpoll(veth.inside(Side::Sender), &words);
    while sent() < before + 100 {
        assert!(began.elapsed() < PATIENCE, "nothing was sent");
        thread::sleep(Duration::from_millis(10));
    }
    shell(veth.inside(Side::Sender), change);
    let output = child.wait_with_output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    (json_of(&output)["end"]["links"][0].clone(), said)
}

/// Checks that all frames were written, and that each has one fate, if the kernel reports it.
fn assert_exact(link: &Value, path: &str) {
    let account = &link["account"];
    let frames = |name: &str| account[name].as_u64();
    assert_eq!(frames("built_frames"), Some(3000), "{path}: {link}");
    if path != "af-packet" {
        let fates = [
            "completed_frames",
            "refused_frames",
            "link_down_frames",
            "unfinished_frames",
        ];
        // Of a link that was never down nothing is told.
        let fates = fates.map(|name| frames(name).unwrap_or(0));
        assert_eq!(fates.iter().sum::<u64>(), 3000, "{path}: {link}");
        assert_eq!(account["residual_frames"], 0, "{path}: {link}");
    }
}

#[test]
fn a_count_is_exact_over_a_link_that_goes_down_and_each_frame_has_one_fate() {
    needs!(Root, Ip);
    let veth = Veth::build().unwrap();
    // Its program gives the interface a NAPI, which live frames need.
    let (receiving, _) = super::sink(&veth, "em0", "polling", &[]);
    for path in ["live", "af-xdp", "af-packet"] {
        let flaps = "for i in 1 2 3 4 5 6 7 8 9 10; do ip link set em0 down; sleep 0.03; ip link set em0 up; \
                     sleep 0.03; done";
        let (link, _) = blast_while(&veth, "em0", path, flaps);
        assert_exact(&link, path);
        assert_eq!(link["account"]["handed_frames"], 3000, "{path}: {link}");
        assert_eq!(link["link_loss_events"], 10, "{path}: {link}");
    }
    receiving.end_closed();
}

#[test]
fn a_blast_goes_on_when_its_interface_is_back() {
    needs!(Root, Ip);
    let veth = Veth::build().unwrap();
    let make =
        "ip link add em1 type veth peer name em2 && ip link set em1 up && ip link set em2 up";
    for path in ["af-xdp", "af-packet"] {
        shell(veth.inside(Side::Sender), make);
        let again = format!("ip link del em1; sleep 0.2; {make}");
        let (link, said) = blast_while(&veth, "em1", path, &again);
        assert_exact(&link, path);
        for step in ["em1 is gone", "em1 is back, and in use again"] {
            assert!(said.contains(step), "{path}: {said}");
        }
        shell(veth.inside(Side::Sender), "ip link del em1");
    }
}

/// What is done to `em1` or its other end, on which paths that matters, and what is told of it.
const CHANGES: [(&str, &str, &str); 4] = [
    (
        "ethtool -L em1 rx 2",
        "live af-xdp af-packet",
        "em1 has changed: receive queues 1 -> 2",
    ),
    (
        "ip link set em1 mtu 1000; sleep 0.3; ip link set em1 mtu 1500",
        "live af-xdp af-packet",
        "em1 has changed: MTU 1500 -> 1000 | cannot be used yet: frames of 1200 bytes are longer | em1 is back",
    ),
    (
        "ethtool -K em2 gro off; sleep 0.3; ethtool -K em2 gro on",
        "live",
        "takes no frames from XDP programs any more | cannot be used yet: | takes no frames from XDP programs, and all \
         would vanish | em1 is back",
    ),
    (
        "ip link set em1 netns $RECEIVER; nsenter -t $RECEIVER -n ip link set em1 netns $SENDER; sleep 0.1; \
         ip link set em1 up",
        "af-xdp af-packet",
        "em1 is gone | em1 is back, and in use again",
    ),
];

#[test]
fn a_blast_goes_on_at_an_interface_that_changes_or_moves_away_and_back() {
    needs!(Root, Ip, Ethtool);
    let veth = Veth::build().unwrap();
    let [sender, receiver] =
        [Side::Sender, Side::Receiver].map(|side| thread_of(veth.inside(side)));
    for (change, paths, told) in CHANGES {
        for path in paths.split(' ') {
            shell(
                veth.inside(Side::Sender),
                "ip link add em1 type veth peer name em2 && ethtool -K em2 gro on && ip link set em1 up && \
                 ip link set em2 up",
            );
            let change = format!("SENDER={sender}; RECEIVER={receiver}; {change}");
            let (link, said) = blast_while(&veth, "em1", path, &change);
            assert_has_all(&said, told);
            assert_exact(&link, path);
            shell(veth.inside(Side::Sender), "ip link del em1");
        }
    }
}
