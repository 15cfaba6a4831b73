//! The ledger on a real kernel: a deliberate loss appears at its place, to the packet.

mod common;

use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use common::TestLab;
use nicpoll_iperf::UdpWorkload;
use nicpoll_lab::WorkloadRequest;
use nicpoll_model::{ControlKind, ControlLine, Ledger, LossPlace, Side};
use nicpoll_observe::{Account, CountedDatagrams, LedgerHosts, packet_ledger};
use nicpoll_study::demo::{DEFAULT, INTERRUPT, POLLING};
use nicpoll_testkit::needs;
use nicpoll_traffic::netrate::NetrateWorkload;
use nicpoll_traffic::rr::RrWorkload;
use nicpoll_traffic::workload::Books;

/// Short enough for the receive buffer to hold all of it, even if the receiver does not run meanwhile: on a busy
/// machine only deliberate losses may happen.
const TRAFFIC: Duration = Duration::from_millis(50);
const QUIET: Duration = Duration::from_millis(20);

/// Runs iperf's UDP and returns the programs' counts and the ledger.
fn udp(test: &mut TestLab, receive_buffer_bytes: usize) -> (Books, Ledger) {
    let workload = UdpWorkload {
        payload_bytes: 64,
        packets_per_second: None,
        receive_buffer_bytes: Some(receive_buffer_bytes),
    };
    run(test, &WorkloadRequest::Udp(workload))
}

/// Runs traffic and returns the programs' counts and the ledger.
fn run(test: &mut TestLab, workload: &WorkloadRequest) -> (Books, Ledger) {
    thread::sleep(QUIET);
    let mut books = None;
    let ledger = account(test, |test| {
        let counted = books.insert(test.traffic(workload, TRAFFIC, QUIET));
        let (offered, delivered) = counted.packets.unwrap();
        CountedDatagrams {
            offered,
            delivered,
            duplicates: counted.duplicate_packets,
            control: counted.control.clone(),
        }
    });
    (books.unwrap(), ledger)
}

/// Returns the ledger of the traffic that `work` sends.
fn account(test: &mut TestLab, work: impl FnOnce(&mut TestLab) -> CountedDatagrams) -> Ledger {
    let sides = [Side::Sender, Side::Receiver];
    let before = sides.map(|side| test.counters(side));
    let counted = work(test);
    thread::sleep(QUIET);
    let after = sides.map(|side| test.counters(side));
    let account = |index: usize| Account {
        before: &before[index],
        after: &after[index],
    };
    packet_ledger(counted, LedgerHosts::pair(account(0), account(1)))
}

/// Sends `times` from the sender, with a socket of its own, to a port without a listener.
fn send(test: &TestLab, times: u64, prepare: fn(&UdpSocket), payload: &'static [u8]) {
    let send = move |(): &mut ()| {
        let socket = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
        prepare(&socket);
        for _ in 0..times {
            // The sender does not learn of drops in its own queue.
            let _ = socket.send_to(payload, ("198.18.0.2", 5002));
        }
    };
    test.veth.inside(Side::Sender).run(send).unwrap();
}

/// Gives the sender a queue that empties far more slowly than it fills.
fn shape(test: &TestLab, burst_and_limit: &'static str) {
    let shaper = format!("qdisc add dev em0 root tbf rate 10mbit {burst_and_limit}");
    test.in_host(Side::Sender, "tc", &shaper.split(' ').collect::<Vec<_>>());
}

fn lost_at(ledger: &Ledger, place: LossPlace) -> u64 {
    let lines = ledger.lines.iter().filter(|line| line.place == place);
    lines.filter_map(|line| line.packets).sum()
}

/// Checks that every other datagram was lost at `place`, control datagrams included.
fn assert_all_lost_at(ledger: &Ledger, place: LossPlace) {
    assert_eq!(ledger.residual_packets, Some(0), "{ledger:#?}");
    assert_eq!(ledger.lost_packets(), lost_at(ledger, place), "{ledger:#?}");
}

#[test]
fn without_loss_every_line_is_zero_and_the_books_close() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    for setting in [DEFAULT, INTERRUPT] {
        test.put(setting, 0);
        let (run, ledger) = udp(&mut test, 8 << 20);
        assert!(ledger.offered() > 100, "{ledger:#?}");
        assert_eq!(
            run.packets,
            Some((ledger.offered(), ledger.offered())),
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
    let mut test = TestLab::build();
    let rules = "add table inet t; \
                 add chain inet t c { type filter hook input priority 0; }; \
                 add rule inet t c udp dport 5001 numgen inc mod 7 == 3 counter drop";
    test.in_host(Side::Receiver, "nft", &[rules]);
    let (run, ledger) = udp(&mut test, 8 << 20);
    let (offered, delivered) = run.packets.unwrap();
    assert!(offered > 100);
    assert_all_lost_at(&ledger, LossPlace::Nftables);
    // Every datagram to the port meets the rule, FINs too; it drops one in seven.
    let fins = ledger.control[0];
    assert_eq!(
        fins.sent_packets,
        Some(run.control[0].sent_packets.unwrap())
    );
    let passed = offered + fins.sent_packets.unwrap();
    let dropped = lost_at(&ledger, LossPlace::Nftables);
    assert!(
        dropped == passed / 7 || dropped == passed.div_ceil(7),
        "{dropped} of {passed}"
    );
    assert_eq!(
        offered - delivered + fins.sent_packets.unwrap() - fins.received_packets.unwrap(),
        dropped
    );
}

/// No counter has these drops; drop reasons do, from the reading that finds the rule.
#[test]
fn what_a_rule_without_a_counter_drops_is_a_line_to_the_packet() {
    needs!(Root, PerNapi, Nft);
    let mut test = TestLab::build();
    let rules = "add table inet t; \
                 add chain inet t c { type filter hook input priority 0; }; \
                 add rule inet t c counter udp dport 5001 numgen inc mod 7 == 3 drop";
    test.in_host(Side::Receiver, "nft", &[rules]);
    let (run, ledger) = udp(&mut test, 8 << 20);
    let (offered, delivered) = run.packets.unwrap();
    assert!(delivered < offered, "{ledger:#?}");
    assert_all_lost_at(&ledger, LossPlace::Nftables);
    let lines = || ledger.lines.iter();
    let lossy = lines().find(|line| line.packets > Some(0)).unwrap();
    assert_eq!(lossy.side, Side::Receiver);
    assert_eq!(lossy.counter, "drop reason NETFILTER_DROP");
    let counted = lines().find(|line| line.place == LossPlace::Nftables);
    assert_eq!(counted.unwrap().packets, Some(0));
}

/// A duplicate does not make up for a missing datagram.
#[test]
fn a_datagram_that_arrives_twice_is_a_duplicate_and_leaves_no_residual() {
    needs!(Root, PerNapi, Nft);
    let mut test = TestLab::build();
    let rules = "add table netdev t; \
                 add chain netdev t c { type filter hook egress device em0 priority 0; }; \
                 add rule netdev t c udp dport 5001 numgen inc mod 10 == 0 dup to em0";
    test.in_host(Side::Sender, "nft", &[rules]);
    let (run, ledger) = udp(&mut test, 8 << 20);
    let duplicates = ledger.duplicate_packets.unwrap();
    assert!(duplicates > 10, "{ledger:#?}");
    assert_eq!(run.packets, Some((ledger.offered(), ledger.offered())));
    assert_eq!(ledger.residual_packets, Some(0), "{ledger:#?}");
}

#[test]
fn what_a_buffer_a_ring_or_a_queue_loses_is_found_there_to_the_packet() {
    needs!(Root, PerNapi, Tc);
    let mut test = TestLab::build();
    // A buffer for two or three datagrams; 256 slots every 20 ms, which pass 12,800 packets a second; a queue of some
    // 20 datagrams.
    for (place, buffer_bytes) in [
        (LossPlace::SocketBuffer, 2304),
        (LossPlace::RxRing, 8 << 20),
        (LossPlace::SendQueue, 8 << 20),
    ] {
        match place {
            LossPlace::RxRing => {
                test.put(POLLING, 20_000_000);
            }
            LossPlace::SendQueue => shape(&test, "burst 4kb limit 2000"),
            _ => {}
        }
        let (run, ledger) = udp(&mut test, buffer_bytes);
        let (offered, delivered) = run.packets.unwrap();
        assert!(delivered < offered, "nothing was lost at {place:?}");
        assert_all_lost_at(&ledger, place);
        assert!(lost_at(&ledger, place) >= offered - delivered, "{place:?}");
        // The link itself loses packets at these places.
        for (place, counter) in [
            (
                LossPlace::RxRing,
                "tx_dropped of both ends less softnet_stat's dropped",
            ),
            (LossPlace::Backlog, "softnet_stat dropped"),
        ] {
            let mut lines = ledger.lines.iter();
            assert!(lines.any(|line| line.place == place && line.counter == counter));
        }
        test.lab.restore().unwrap();
    }
}

/// netblast did not offer them, but the kernel counts each as lost: no line has them.
#[test]
fn sends_that_a_queue_or_a_ring_refused_to_netblast_are_no_losses() {
    needs!(Root, PerNapi, Tc);
    let workload = WorkloadRequest::Netrate(NetrateWorkload { payload_bytes: 64 });
    let mut test = TestLab::build();
    test.put(POLLING, 20_000_000);
    let assert_left_out = |ledger: &Ledger, place| {
        assert!(ledger.refused_sends() > 0, "{ledger:#?}");
        let mut lines = ledger.lines.iter();
        let line = lines.find(|line| line.place == place && line.counter.contains("refused"));
        assert!(line.is_some(), "{ledger:#?}");
        assert_eq!(ledger.lost_packets(), 0, "{ledger:#?}");
        assert_eq!(ledger.residual_packets, Some(0), "{ledger:#?}");
    };
    assert_left_out(&run(&mut test, &workload).1, LossPlace::RxRing);
    shape(&test, "burst 4kb limit 2000");
    assert_left_out(&run(&mut test, &workload).1, LossPlace::SendQueue);
}

/// A shaped line's queue takes longer to empty than the wait for stragglers, and netblast does not wait.
#[test]
fn what_waits_in_the_queue_of_a_shaped_line_is_delivered() {
    needs!(Root, PerNapi, Tc);
    let mut test = TestLab::build();
    // At 10 Mbit/s it takes 0.2 s to empty.
    shape(&test, "burst 4kb limit 250000");
    let workload = WorkloadRequest::Netrate(NetrateWorkload { payload_bytes: 64 });
    let (books, ledger) = run(&mut test, &workload);
    let (offered, delivered) = books.packets.unwrap();
    assert!(offered > 100, "{ledger:#?}");
    assert_eq!(offered, delivered, "{ledger:#?}");
    assert_eq!(ledger.lost_packets(), 0, "{ledger:#?}");
    assert_eq!(ledger.residual_packets, Some(0), "{ledger:#?}");
}

/// A sender that waits too long for room in its socket retries; the kernel counts each try.
#[test]
fn sends_that_had_no_room_in_time_are_in_the_account() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    // The socket holds some ninety of them, and nothing drains it meanwhile.
    test.put(POLLING, 200_000_000);
    let workload = WorkloadRequest::Udp(UdpWorkload {
        payload_bytes: 1470,
        packets_per_second: None,
        receive_buffer_bytes: Some(8 << 20),
    });
    let (_, ledger) = run(&mut test, &workload);
    let mut control = ledger.control.iter();
    let refused = control.find(|line| line.kind == ControlKind::Refused);
    assert!(refused.unwrap().sent_packets > Some(0), "{ledger:#?}");
    assert_eq!(ledger.residual_packets, Some(0), "{ledger:#?}");
}

/// The qdisc counts batches; a port without a socket drops the rest, datagram by datagram.
#[test]
fn what_a_queueing_discipline_drops_in_batches_is_found_to_the_datagram() {
    const BATCHES: u64 = 200;
    const IN_A_BATCH: usize = 8;
    needs!(Root, PerNapi, Tc);
    let mut test = TestLab::build();
    shape(&test, "burst 8kb limit 4000");
    let ledger = account(&mut test, |test| {
        let segmented = |socket: &UdpSocket| nicpoll_sys::socket::set_segment(socket, 64).unwrap();
        send(test, BATCHES, segmented, &[0; 64 * IN_A_BATCH]);
        thread::sleep(10 * QUIET);
        CountedDatagrams {
            offered: BATCHES * IN_A_BATCH as u64,
            ..CountedDatagrams::default()
        }
    });
    let at_queue = || {
        ledger
            .lines
            .iter()
            .filter(|line| line.place == LossPlace::SendQueue)
    };
    let by_counter = at_queue().find(|line| line.side == Side::Sender).unwrap();
    let batches = by_counter.packets.unwrap();
    assert!(batches > 0 && batches < BATCHES, "{ledger:#?}");
    let lost = lost_at(&ledger, LossPlace::SendQueue);
    assert_eq!(lost, batches * IN_A_BATCH as u64, "{ledger:#?}");
    assert_eq!(ledger.residual_packets, Some(0), "{ledger:#?}");
}

#[test]
fn a_closed_port_is_a_place_too() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    let datagrams = 10;
    let ledger = account(&mut test, |test| {
        send(test, datagrams, |_| (), b"nobody is here");
        CountedDatagrams {
            offered: datagrams,
            ..CountedDatagrams::default()
        }
    });
    assert_eq!(lost_at(&ledger, LossPlace::NoSocket), datagrams);
    assert_eq!(ledger.residual_packets, Some(0));
}

#[test]
fn one_frame_in_eight_dropped_by_xdp_is_found_to_the_packet() {
    needs!(Root, PerNapi, Ip);
    let mut test = TestLab::build();
    let object = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../observe/bpf/xdp_drop_eighth.bpf.o"
    );
    let attach = [
        "link", "set", "dev", "em0", "xdp", "obj", object, "sec", "xdp",
    ];
    test.in_host(Side::Receiver, "ip", &attach);
    let (run, ledger) = udp(&mut test, 8 << 20);
    assert_all_lost_at(&ledger, LossPlace::Xdp);
    let frames = run.packets.unwrap().0 + run.control[0].sent_packets.unwrap();
    assert_eq!(lost_at(&ledger, LossPlace::Xdp), frames / 8);
}

/// An output filter refuses each datagram with EPERM; its rule may count them, and IP counts them again. netblast
/// goes on, and so do a client's requests and a server's answers.
#[test]
fn sends_that_a_filter_stopped_are_no_losses() {
    needs!(Root, PerNapi, Nft);
    let mut test = TestLab::build();
    let chain = "add table inet t; \
                 add chain inet t c { type filter hook output priority 0; }; flush chain inet t c";
    let netrate = WorkloadRequest::Netrate(NetrateWorkload { payload_bytes: 64 });
    let rr = WorkloadRequest::Rr(RrWorkload::default());
    for (side, workload, counter) in [
        (Side::Sender, &netrate, "counter"),
        (Side::Sender, &netrate, ""),
        (Side::Sender, &rr, "counter"),
        (Side::Receiver, &rr, "counter"),
    ] {
        let rule =
            format!("add rule inet t c meta l4proto udp numgen inc mod 7 == 3 {counter} drop");
        test.in_host(side, "nft", &[&format!("{chain}; {rule}")]);
        let (_, ledger) = run(&mut test, workload);
        test.in_host(side, "nft", &["flush ruleset"]);
        let case = format!("{side:?} {workload:?} '{counter}': {ledger:#?}");
        let of_side = |line: &&ControlLine| (line.kind, line.from) == (ControlKind::Filtered, side);
        let stopped = ledger.control.iter().find(of_side).unwrap();
        assert!(stopped.sent_packets > Some(0), "{case}");
        assert_eq!(lost_at(&ledger, LossPlace::Nftables), 0, "{case}");
        assert_eq!(lost_at(&ledger, LossPlace::IpOutput), 0, "{case}");
        assert_eq!(ledger.residual_packets, Some(0), "{case}");
    }
}
