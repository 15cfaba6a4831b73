//! The ledger on a real kernel: a loss that was put there shows up at its place, to the packet.

mod common;

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use common::{TestLab, in_host};
use nicpoll_model::{Ledger, LossPlace, Setting, Side, Workload};
use nicpoll_observe::{Account, HostSnapshot, packet_ledger};
use nicpoll_study::{Lab, Resident, Run, Running, apply};
use nicpoll_testkit::needs;

/// So short that the receive buffer would hold all of it, should the receiver not run meanwhile: on a
/// machine that is busy with other things no packet may be lost that the test did not want lost.
const TRAFFIC: Duration = Duration::from_millis(50);
const QUIET: Duration = Duration::from_millis(20);

/// Runs UDP traffic and returns what the programs counted and the ledger.
fn udp(lab: &Lab, receive_buffer_bytes: usize) -> (Run, Ledger) {
    thread::sleep(QUIET);
    let before = lab.hosts().map(|host| snapshot(lab, host.side()));
    let workload = Workload::Udp64;
    let mut running =
        Running::start_with_buffer(lab, workload, TRAFFIC, receive_buffer_bytes).unwrap();
    running.wait_for_sender(&AtomicBool::new(false)).unwrap();
    let run = running.drain(QUIET).unwrap();
    thread::sleep(QUIET);
    let after = lab.hosts().map(|host| snapshot(lab, host.side()));
    let account = |index: usize| Account {
        before: &before[index],
        after: &after[index],
    };
    let (offered, delivered) = run.packets.unwrap();
    let control = run.control.clone();
    let ledger = packet_ledger(offered, delivered, control, account(0), account(1));
    (run, ledger)
}

fn snapshot(lab: &Lab, side: Side) -> HostSnapshot {
    let host = if side == Side::Sender {
        &lab.sender
    } else {
        &lab.receiver
    };
    host.run(|resident: &mut Resident| resident.counters.snapshot())
        .unwrap()
}

fn lost_at(ledger: &Ledger, place: LossPlace) -> u64 {
    let lines = ledger.lines.iter().filter(|line| line.place == place);
    lines.filter_map(|line| line.packets).sum()
}

/// Every datagram that is neither delivered nor lost at `place` is a control datagram that was lost
/// there too.
fn assert_all_lost_at(ledger: &Ledger, place: LossPlace) {
    assert_eq!(ledger.residual_packets, Some(0), "{ledger:#?}");
    assert_eq!(ledger.lost_packets(), lost_at(ledger, place), "{ledger:#?}");
}

#[test]
fn without_loss_every_line_is_zero_and_the_books_close() {
    needs!(Root, PerNapi);
    let test = TestLab::build();
    for setting in [Setting::Default, Setting::Interrupt] {
        apply(&test.lab, setting, 0).unwrap();
        let (run, ledger) = udp(&test.lab, 8 << 20);
        assert!(ledger.offered > 100, "{ledger:#?}");
        assert_eq!(
            run.packets,
            Some((ledger.offered, ledger.offered)),
            "{ledger:#?}"
        );
        assert_eq!(ledger.residual_packets, Some(0));
        assert_eq!(ledger.lost_packets(), 0, "{ledger:#?}");
        assert!(
            ledger.lines.iter().all(|line| line.packets == Some(0)),
            "{ledger:#?}"
        );
    }
}

#[test]
fn one_packet_in_seven_dropped_by_nftables_is_found_to_the_packet() {
    needs!(Root, PerNapi, Nft);
    let test = TestLab::build();
    let rules = "add table inet t; \
                 add chain inet t c { type filter hook input priority 0; }; \
                 add rule inet t c udp dport 5001 numgen inc mod 7 == 3 counter drop";
    in_host(&test.lab.receiver, "nft", &[rules]);
    let (run, ledger) = udp(&test.lab, 8 << 20);
    let (offered, delivered) = run.packets.unwrap();
    assert!(offered > 100);
    assert_all_lost_at(&ledger, LossPlace::Nftables);
    // Every datagram to the port passes the rule, FINs too; one in seven stays there.
    let fins = ledger.control[0];
    assert_eq!(fins.sent, Some(run.control[0].sent.unwrap()));
    let passed = offered + fins.sent.unwrap();
    let dropped = lost_at(&ledger, LossPlace::Nftables);
    assert!(
        dropped == passed / 7 || dropped == passed.div_ceil(7),
        "{dropped} of {passed}"
    );
    assert_eq!(
        offered - delivered + fins.sent.unwrap() - fins.received.unwrap(),
        dropped
    );
}

#[test]
fn a_small_receive_buffer_loses_at_the_socket_to_the_packet() {
    needs!(Root, PerNapi);
    let test = TestLab::build();
    let (run, ledger) = udp(&test.lab, 2304);
    let (offered, delivered) = run.packets.unwrap();
    assert!(
        delivered < offered,
        "a buffer for two or three datagrams lost nothing"
    );
    assert_all_lost_at(&ledger, LossPlace::SocketBuffer);
    assert!(lost_at(&ledger, LossPlace::SocketBuffer) >= offered - delivered);
}

#[test]
fn a_ring_that_is_polled_too_seldom_loses_in_the_ring_to_the_packet() {
    needs!(Root, PerNapi);
    let test = TestLab::build();
    // 256 slots every 20 ms pass 12,800 packets a second.
    apply(&test.lab, Setting::Polling, 20_000_000).unwrap();
    let (run, ledger) = udp(&test.lab, 8 << 20);
    let (offered, delivered) = run.packets.unwrap();
    assert!(
        delivered < offered,
        "the ring never overflowed: {offered} offered"
    );
    assert_all_lost_at(&ledger, LossPlace::RxRing);
}

#[test]
fn a_queueing_discipline_that_drops_is_found_to_the_packet() {
    needs!(Root, PerNapi, Tc);
    let test = TestLab::build();
    // A queue of some 20 datagrams that is emptied far more slowly than it is filled.
    let shaper = "qdisc add dev em0 root tbf rate 10mbit burst 4kb limit 2000";
    in_host(
        &test.lab.sender,
        "tc",
        &shaper.split(' ').collect::<Vec<_>>(),
    );
    let (run, ledger) = udp(&test.lab, 8 << 20);
    let (offered, delivered) = run.packets.unwrap();
    assert!(delivered < offered);
    assert_all_lost_at(&ledger, LossPlace::SendQueue);
}

#[test]
fn a_closed_port_is_a_place_too() {
    needs!(Root, PerNapi);
    let test = TestLab::build();
    let lab = &test.lab;
    let before = snapshot(lab, Side::Receiver);
    let datagrams = 10;
    lab.sender
        .run(move |_| {
            let socket = std::net::UdpSocket::bind(("0.0.0.0", 0)).unwrap();
            for _ in 0..datagrams {
                socket
                    .send_to(b"nobody is here", ("198.18.0.2", 5002))
                    .unwrap();
            }
        })
        .unwrap();
    thread::sleep(QUIET);
    let after = snapshot(lab, Side::Receiver);
    let receiver = Account {
        before: &before,
        after: &after,
    };
    let idle = Account {
        before: &before,
        after: &before,
    };
    let ledger = packet_ledger(datagrams, 0, vec![], idle, receiver);
    assert_eq!(lost_at(&ledger, LossPlace::NoSocket), datagrams);
    assert_eq!(ledger.residual_packets, Some(0));
}

#[test]
fn one_frame_in_eight_dropped_by_xdp_is_found_to_the_packet() {
    needs!(Root, PerNapi, Ip);
    let test = TestLab::build();
    let object = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../observe/bpf/xdp_drop_eighth.bpf.o"
    );
    let attach = [
        "link", "set", "dev", "em0", "xdp", "obj", object, "sec", "xdp",
    ];
    in_host(&test.lab.receiver, "ip", &attach);
    let (run, ledger) = udp(&test.lab, 8 << 20);
    assert_all_lost_at(&ledger, LossPlace::Xdp);
    let frames = run.packets.unwrap().0 + run.control[0].sent.unwrap();
    assert_eq!(lost_at(&ledger, LossPlace::Xdp), frames / 8);
}
