//! Drop reasons on a real kernel: at each place, sent datagrams equal those that arrive plus those in the reasons.

mod common;

use std::cell::RefCell;
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::ops::Deref;
use std::thread;
use std::time::Duration;

use common::*;
use nicpoll_model::{DropProtocol, DropReason, HostDelta, LossPlace};
use nicpoll_observe::{DropReasons, HostAccount};
use nicpoll_sys::socket;
use nicpoll_testkit::needs;

/// A pair of hosts, with drop reasons counted on each.
struct Watched {
    pair: Pair,
    sender_drops: RefCell<DropReasons>,
    receiver_drops: RefCell<DropReasons>,
}

impl Deref for Watched {
    type Target = Pair;

    fn deref(&self) -> &Pair {
        &self.pair
    }
}

/// Datagrams dropped for this reason and no other. Nothing may be left uncounted.
fn datagrams(drops: &RefCell<DropReasons>) -> Vec<(String, u64)> {
    thread::sleep(QUIET);
    let (reasons, gaps) = drops.borrow_mut().read().unwrap();
    assert_eq!(gaps.overflow_packets, 0);
    let of_udp = reasons
        .iter()
        .filter(|one| one.protocol == DropProtocol::Udp);
    of_udp.map(|one| (one.name(), one.packets)).collect()
}

impl Watched {
    fn new() -> Self {
        let pair = Pair::new();
        let watch = |side: &Side| DropReasons::begin(&[side.netns_inode()]).unwrap().into();
        Watched {
            sender_drops: watch(&pair.sender),
            receiver_drops: watch(&pair.receiver),
            pair,
        }
    }

    /// A pair with a receiving socket.
    fn listening(receive_buffer_bytes: usize) -> Self {
        let pair = Self::new();
        pair.listen(receive_buffer_bytes);
        pair
    }

    /// Fails unless the receiver, or the sender, dropped this many datagrams for this reason and the other host none.
    fn assert_dropped(&self, by_receiver: bool, reason: &str, packets: u64) {
        let mut drops = [&self.receiver_drops, &self.sender_drops];
        if !by_receiver {
            drops.reverse();
        }
        let [by_this, by_other] = drops.map(datagrams);
        assert_eq!(by_this, [(String::from(reason), packets)]);
        assert_eq!(by_other, []);
    }
}

/// Each chain drops some of 100 datagrams, without a counter.
#[test]
fn rules_and_policies_and_maps_of_the_receivers_filter() {
    needs!(Root, Ip, Nft);
    for (chain, rules, dropped) in [
        (
            "input priority 0",
            &["udp dport 9000 numgen inc mod 4 == 0 drop"][..],
            25,
        ),
        ("input priority 0; policy drop", &[], 100),
        ("input priority 0", &["udp dport 9000 reject"], 100),
        (
            "prerouting priority 0",
            &["udp dport vmap { 9000 : drop }"],
            100,
        ),
    ] {
        let pair = Watched::listening(8 << 20);
        filter(&pair.receiver, chain, rules);
        pair.send(SENDER, RECEIVER, 100);
        assert_eq!(pair.received(100 - dropped), 100 - dropped);
        pair.assert_dropped(true, "NETFILTER_DROP", dropped);
    }
}

#[test]
fn the_senders_own_filter() {
    needs!(Root, Ip, Nft);
    let pair = Watched::listening(8 << 20);
    let rule = "udp dport 9000 numgen inc mod 2 == 0 drop";
    filter(&pair.sender, "output priority 0", &[rule]);
    pair.send(SENDER, RECEIVER, 100);
    assert_eq!(pair.received(50), 50);
    pair.assert_dropped(false, "NETFILTER_DROP", 50);
}

/// Neither gives a reason, although the kernel has one of that name: the dropping function identifies it.
#[test]
fn xdp_programs_generic_and_in_the_driver() {
    needs!(Root, Ip);
    for (mode, function) in [
        ("xdpgeneric", "do_xdp_generic"),
        ("xdpdrv", "veth_xdp_rcv_skb"),
    ] {
        let pair = Watched::listening(8 << 20);
        drop_eighth(&pair, mode);
        pair.send(SENDER, RECEIVER, 800);
        let received = pair.received(700);
        // The program counts neighbour discovery too.
        assert!((699..=701).contains(&received), "{received}");
        let reason = format!("NOT_SPECIFIED in {function}");
        pair.assert_dropped(true, &reason, 800 - received);
    }
}

#[test]
fn a_source_that_the_reverse_path_filter_refuses() {
    needs!(Root, Ip);
    let pair = Watched::listening(8 << 20);
    refuse_reverse_paths(&pair);
    pair.send(NO_WAY_BACK, RECEIVER, 100);
    assert_eq!(pair.received(0), 0);
    pair.assert_dropped(true, "IP_RPFILTER", 100);
}

#[test]
fn a_full_socket_buffer() {
    needs!(Root, Ip);
    let pair = Watched::listening(4096);
    pair.send(SENDER, RECEIVER, 200);
    let received = pair.received(0);
    assert!(received > 0 && received < 200, "{received}");
    pair.assert_dropped(true, "SOCKET_RCVBUFF", 200 - received);
}

/// The sender's reader watches another namespace and counts none of them.
#[test]
fn a_port_without_a_socket() {
    needs!(Root, Ip);
    let pair = Watched::new();
    pair.send(SENDER, RECEIVER, 100);
    pair.send("2001:2::1", "2001:2::2", 50);
    pair.assert_dropped(true, "NO_SOCKET", 150);
}

/// A queue of at most 0.1 s: its content arrives while the test waits.
const SHAPER: &str = "tc qdisc add dev em0 root tbf rate 1mbit burst 8kb limit 4000";

#[test]
fn a_queueing_discipline_that_drops() {
    needs!(Root, Ip, Tc);
    let pair = Watched::listening(8 << 20);
    run(&pair.sender, SHAPER);
    pair.send_at_once(SENDER, RECEIVER, 400);
    thread::sleep(Duration::from_millis(200));
    let received = pair.received(1);
    assert!(received > 20 && received < 300, "{received}");
    pair.assert_dropped(false, "QDISC_DROP", 400 - received);
}

/// The qdisc's own count is in batches; the loss is in datagrams.
#[test]
fn a_batch_is_dropped_as_the_datagrams_that_it_holds() {
    const IN_A_BATCH: u64 = 8;
    needs!(Root, Ip, Tc);
    let pair = Watched::listening(8 << 20);
    run(&pair.sender, SHAPER);
    let batches = 50;
    let send = move |_: &mut State| {
        let socket = UdpSocket::bind((SENDER, 0)).unwrap();
        socket::set_segment(&socket, PAYLOAD_BYTES as u16).unwrap();
        for _ in 0..batches {
            let batch = [0; PAYLOAD_BYTES * IN_A_BATCH as usize];
            let _ = socket.send_to(&batch, (RECEIVER, PORT));
        }
    };
    pair.sender.run(send).unwrap();
    thread::sleep(Duration::from_millis(200));
    let received = pair.received(1);
    let lost = batches * IN_A_BATCH - received;
    assert!(lost > 0 && lost.is_multiple_of(IN_A_BATCH), "{received}");
    pair.assert_dropped(false, "QDISC_DROP", lost);
    let counted = run(&pair.sender, "tc -s qdisc show dev em0");
    let in_batches = format!("dropped {}", lost / IN_A_BATCH);
    assert!(counted.contains(&in_batches), "{counted}");
}

/// When its ring is full, veth frees packets without a reason, on the receiver's side; the function identifies the
/// loss. `tx_dropped` of the sending end counts the same.
#[test]
fn a_full_ring_of_a_veth() {
    needs!(Root, Ip, Ethtool);
    let pair = Watched::listening(8 << 20);
    poll_seldom(&pair);
    let tx_dropped = || {
        let file = "/sys/class/net/em0/statistics/tx_dropped";
        let text = run(&pair.sender, &format!("cat {file}"));
        text.trim().parse::<u64>().unwrap()
    };
    let before = tx_dropped();
    pair.send_at_once(SENDER, RECEIVER, 1000);
    thread::sleep(Duration::from_millis(500));
    let received = pair.received(1);
    assert!((200..900).contains(&received), "{received}");
    let reason = "NOT_SPECIFIED in veth_xmit";
    pair.assert_dropped(true, reason, 1000 - received);
    // Some of the kernel's own packets may have overrun the ring too.
    let (reasons, _) = pair.receiver_drops.borrow_mut().read().unwrap();
    let at_ring = reasons.iter().filter(|one| one.name() == reason);
    assert_eq!(
        tx_dropped() - before,
        at_ring.map(|one| one.packets).sum::<u64>()
    );
}

/// Opens a host's account, runs traffic, and closes the account.
fn account(pair: &Pair, traffic: impl FnOnce()) -> HostDelta {
    let begin = |state: &mut State| state.account = HostAccount::begin().ok();
    pair.receiver.run(begin).unwrap();
    traffic();
    thread::sleep(QUIET);
    let end = |state: &mut State| state.account.take().unwrap().end().unwrap();
    pair.receiver.run(end).unwrap()
}

/// The places with losses.
fn lost(host: &HostDelta) -> Vec<(LossPlace, u64)> {
    let drops = host.dropped_packets.0.iter();
    let lost = drops.map(|(place, packets)| (*place, packets.unwrap_or(0)));
    lost.filter(|(_, packets)| *packets > 0).collect()
}

/// A counter before the last condition also counts packets that pass it.
#[test]
fn the_account_of_a_host_names_losses_that_no_counter_has() {
    needs!(Root, Ip, Nft);
    let cases = [
        ("udp dport 9000 numgen inc mod 10 == 0 drop", 100, 100),
        (
            "counter udp dport 9000 numgen inc mod 10 == 0 drop",
            100,
            100,
        ),
        ("udp dport 9000 numgen inc mod 10 == 0 counter drop", 100, 0),
        ("udp dport 9000 numgen inc mod 10 == 0 reject", 100, 100),
        ("udp dport 9000 counter accept", 0, 0),
    ];
    for (rule, dropped, uncounted) in cases {
        let pair = Pair::new();
        pair.listen(8 << 20);
        filter(&pair.receiver, "input priority 0", &[rule]);
        let host = account(&pair, || {
            pair.send(SENDER, RECEIVER, 1000);
            assert_eq!(pair.received(1000 - dropped), 1000 - dropped, "{rule}");
        });
        let expected = [(LossPlace::Nftables, dropped)];
        assert_eq!(lost(&host), &expected[..(dropped > 0).into()], "{rule}");
        let beyond: u64 = host.uncounted.iter().filter_map(|one| one.packets).sum();
        assert_eq!(beyond, uncounted, "{rule}: {:?}", host.uncounted);
        let reasons = host.drop_reasons.unwrap();
        let named = |name| reasons.iter().find(|reason| reason.reason == name);
        let by_filter = named("NETFILTER_DROP");
        let packets = by_filter.map_or(0, |reason| reason.packets);
        assert_eq!(packets, dropped, "{rule}: {reasons:?}");
        assert!(by_filter.is_none_or(|reason| reason.explanation.is_some()));
        assert_eq!(host.drop_reasons_missing, None);
    }
}

/// The maximum of the two counts would be that of the segments, without the datagrams.
#[test]
fn datagrams_that_nobody_counts_do_not_hide_behind_segments_that_are_counted() {
    needs!(Root, Ip, Nft);
    let pair = Pair::new();
    pair.listen(8 << 20);
    let rules = [
        "tcp dport 9000 counter drop",
        "udp dport 9000 numgen inc mod 10 == 0 drop",
    ];
    filter(&pair.receiver, "input priority 0", &rules);
    let connections = 60;
    let host = account(&pair, || {
        let connect = move |_: &mut State| {
            for _ in 0..connections {
                let patience = Duration::from_millis(1);
                let _ = TcpStream::connect_timeout(
                    &(Ipv4Addr::from([198, 18, 0, 2]), PORT).into(),
                    patience,
                );
            }
        };
        pair.sender.run(connect).unwrap();
        pair.send(SENDER, RECEIVER, 300);
        assert_eq!(pair.received(270), 270);
    });
    assert_eq!(lost(&host), [(LossPlace::Nftables, connections + 30)]);
    let [beyond] = &host.uncounted[..] else {
        panic!("{:?}", host.uncounted);
    };
    assert_eq!(
        (beyond.place, beyond.packets),
        (LossPlace::Nftables, Some(30))
    );
    let reasons = host.drop_reasons.unwrap();
    let of = |protocol| {
        let of = |reason: &&DropReason| reason.protocol == protocol && reason.place.is_some();
        reasons
            .iter()
            .filter(of)
            .map(|reason| reason.packets)
            .sum::<u64>()
    };
    assert_eq!(of(DropProtocol::Tcp), connections);
    assert_eq!(of(DropProtocol::Udp), 30);
}
