//! Drop reasons on a real kernel: for each place, what was sent is what arrived and what the reasons say, to the
//! datagram.

mod common;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::ops::Deref;
use std::thread;
use std::time::Duration;

use common::*;
use nicpoll_model::{DropProtocol, DropReason, HostDelta, LossPlace};
use nicpoll_observe::{DropCounts, DropGroup, DropReasons, HostAccount, KernelSymbols};
use nicpoll_sys::socket;
use nicpoll_testkit::needs;

/// A pair whose drops are counted.
struct Watched {
    pair: Pair,
    drops: DropReasons,
}

impl Deref for Watched {
    type Target = Pair;

    fn deref(&self) -> &Pair {
        &self.pair
    }
}

impl Watched {
    fn new() -> Self {
        let pair = Pair::new();
        let inodes = [pair.sender.netns_inode(), pair.receiver.netns_inode()];
        Watched {
            drops: DropReasons::begin(&inodes).unwrap(),
            pair,
        }
    }

    /// Datagrams that were dropped in a namespace, by the kernel's name of the reason, and how many bytes they had.
    fn dropped_in(&self, side: &Side) -> BTreeMap<String, (u64, u64)> {
        let netns = side.netns_inode() as u32;
        self.dropped(|group| {
            group.netns_inode == netns && group.protocol.kind() == DropProtocol::Udp
        })
    }

    fn dropped(&self, is_meant: impl Fn(&DropGroup) -> bool) -> BTreeMap<String, (u64, u64)> {
        let reasons = self.counts().by_reason(is_meant);
        let named = reasons.iter().map(|(&(reason, location), dropped)| {
            let mut name = self.drops.names().of(reason).into_owned();
            if let Some(location) = location {
                let mut symbols = KernelSymbols::default();
                symbols.learn([location].into_iter());
                name += &format!(" in {}", symbols.function_at(location).unwrap());
            }
            (name, (dropped.packets, dropped.bytes))
        });
        named.collect()
    }

    /// All that was counted. None of these tests may leave anything uncounted in its own namespaces.
    fn counts(&self) -> DropCounts {
        thread::sleep(QUIET);
        let counts = self.drops.read().unwrap();
        assert_eq!(counts.gaps.overflow_packets, 0);
        counts
    }

    fn assert_dropped(&self, side: &Side, reason: &str, packets: u64) {
        let expected = (packets, packets * IPV4_BYTES);
        let expected = BTreeMap::from([(String::from(reason), expected)]);
        assert_eq!(self.dropped_in(side), expected);
    }
}

#[test]
fn a_rule_that_drops_without_a_counter() {
    needs!(Root, Ip, Nft);
    let pair = Watched::new();
    pair.listen(8 << 20);
    let rule = "udp dport 9000 numgen inc mod 100 == 0 drop";
    filter(&pair.receiver, "input priority 0", &[rule]);
    pair.send(SENDER, RECEIVER, 4000);
    assert_eq!(pair.received(3960), 3960);
    pair.assert_dropped(&pair.receiver, "NETFILTER_DROP", 40);
    assert!(pair.dropped_in(&pair.sender).is_empty());
}

#[test]
fn a_chain_whose_policy_is_to_drop() {
    needs!(Root, Ip, Nft);
    let pair = Watched::new();
    pair.listen(8 << 20);
    filter(&pair.receiver, "input priority 0; policy drop", &[]);
    pair.send(SENDER, RECEIVER, 100);
    assert_eq!(pair.received(0), 0);
    pair.assert_dropped(&pair.receiver, "NETFILTER_DROP", 100);
}

#[test]
fn a_rule_that_rejects() {
    needs!(Root, Ip, Nft);
    let pair = Watched::new();
    pair.listen(8 << 20);
    filter(
        &pair.receiver,
        "input priority 0",
        &["udp dport 9000 reject"],
    );
    pair.send(SENDER, RECEIVER, 100);
    assert_eq!(pair.received(0), 0);
    pair.assert_dropped(&pair.receiver, "NETFILTER_DROP", 100);
}

#[test]
fn a_verdict_map() {
    needs!(Root, Ip, Nft);
    let pair = Watched::new();
    pair.listen(8 << 20);
    let rule = "udp dport vmap { 9000 : drop }";
    filter(&pair.receiver, "prerouting priority 0", &[rule]);
    pair.send(SENDER, RECEIVER, 100);
    assert_eq!(pair.received(0), 0);
    pair.assert_dropped(&pair.receiver, "NETFILTER_DROP", 100);
}

#[test]
fn the_senders_own_filter_drops_before_there_is_an_interface() {
    needs!(Root, Ip, Nft);
    let pair = Watched::new();
    pair.listen(8 << 20);
    let rule = "udp dport 9000 numgen inc mod 2 == 0 drop";
    filter(&pair.sender, "output priority 0", &[rule]);
    pair.send(SENDER, RECEIVER, 100);
    assert_eq!(pair.received(50), 50);
    pair.assert_dropped(&pair.sender, "NETFILTER_DROP", 50);
    let counts = pair.counts();
    let udp = |without_interface: bool| {
        let reasons = counts.by_reason(|group| {
            group.protocol.kind() == DropProtocol::Udp
                && group.ifindex.is_none() == without_interface
        });
        reasons.values().map(|dropped| dropped.packets).sum::<u64>()
    };
    assert_eq!((udp(true), udp(false)), (50, 0));
}

/// Neither gives a reason, though the kernel has one of that name: the function that drops says what it is.
#[test]
fn xdp_programs_generic_and_in_the_driver() {
    needs!(Root, Ip);
    for (mode, function) in [
        ("xdpgeneric", "do_xdp_generic"),
        ("xdpdrv", "veth_xdp_rcv_skb"),
    ] {
        let pair = Watched::new();
        pair.listen(8 << 20);
        let object = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/xdp_drop_eighth.bpf.o");
        let attach = format!("ip link set dev em0 {mode} obj {object} sec xdp");
        run(&pair.receiver, &attach);
        pair.send(SENDER, RECEIVER, 800);
        let received = pair.received(700);
        // The program counts neighbour discovery too.
        assert!((699..=701).contains(&received), "{received}");
        let reason = format!("NOT_SPECIFIED in {function}");
        pair.assert_dropped(&pair.receiver, &reason, 800 - received);
    }
}

#[test]
fn a_source_that_the_reverse_path_filter_refuses() {
    needs!(Root, Ip);
    let pair = Watched::new();
    pair.listen(8 << 20);
    run(&pair.sender, "ip addr add 203.0.113.1/32 dev em0");
    run(
        &pair.receiver,
        "echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter",
    );
    pair.send("203.0.113.1", RECEIVER, 100);
    assert_eq!(pair.received(0), 0);
    pair.assert_dropped(&pair.receiver, "IP_RPFILTER", 100);
}

#[test]
fn a_full_socket_buffer() {
    needs!(Root, Ip);
    let pair = Watched::new();
    pair.listen(4096);
    pair.send(SENDER, RECEIVER, 200);
    let received = pair.received(0);
    assert!(received > 0 && received < 200, "{received}");
    pair.assert_dropped(&pair.receiver, "SOCKET_RCVBUFF", 200 - received);
}

#[test]
fn a_port_without_a_socket() {
    needs!(Root, Ip);
    let pair = Watched::new();
    pair.send(SENDER, RECEIVER, 100);
    pair.assert_dropped(&pair.receiver, "NO_SOCKET", 100);
    pair.send("2001:2::1", "2001:2::2", 50);
    let ipv6_bytes = 50 * (IPV4_BYTES + 20);
    let expected = (150, 100 * IPV4_BYTES + ipv6_bytes);
    assert_eq!(pair.dropped_in(&pair.receiver)["NO_SOCKET"], expected);
}

/// A tenth of a second's worth of queue at the most: what is in it arrives while the test waits.
const SHAPER: &str = "tc qdisc add dev em0 root tbf rate 1mbit burst 8kb limit 4000";

#[test]
fn a_queueing_discipline_that_drops() {
    needs!(Root, Ip, Tc);
    let pair = Watched::new();
    pair.listen(8 << 20);
    run(&pair.sender, SHAPER);
    pair.send_at_once(SENDER, RECEIVER, 400);
    thread::sleep(Duration::from_millis(200));
    let received = pair.received(1);
    assert!(received > 20 && received < 300, "{received}");
    pair.assert_dropped(&pair.sender, "QDISC_DROP", 400 - received);
}

/// The qdisc's own count says how many batches it dropped. The loss is in datagrams.
#[test]
fn a_batch_is_dropped_as_the_datagrams_that_it_holds() {
    const IN_A_BATCH: u64 = 8;
    needs!(Root, Ip, Tc);
    let pair = Watched::new();
    pair.listen(8 << 20);
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
    let dropped = pair.dropped_in(&pair.sender);
    assert_eq!(dropped["QDISC_DROP"].0, lost, "{dropped:?}");
    let counted = run(&pair.sender, "tc -s qdisc show dev em0");
    let in_batches = format!("dropped {}", lost / IN_A_BATCH);
    assert!(counted.contains(&in_batches), "{counted}");
}

/// veth frees what its ring has no room for without a reason, in the receiver's name; the function says what it is.
/// `tx_dropped` of the sending end counts the same.
#[test]
fn a_full_ring_of_a_veth() {
    needs!(Root, Ip, Ethtool);
    let pair = Watched::new();
    pair.listen(8 << 20);
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
    // Some of the kernel's own packets may have found the ring full too.
    let (dropped, _) = pair.dropped(|_| true)[reason];
    assert_eq!(tx_dropped() - before, dropped);
    pair.assert_dropped(&pair.receiver, reason, 1000 - received);
}

#[test]
fn namespaces_that_nobody_watches_are_not_counted() {
    needs!(Root, Ip);
    let pair = Watched::new();
    let only_sender = DropReasons::begin(&[pair.sender.netns_inode()]).unwrap();
    pair.send(SENDER, RECEIVER, 100);
    pair.assert_dropped(&pair.receiver, "NO_SOCKET", 100);
    assert!(
        only_sender
            .read()
            .unwrap()
            .by_reason(|group| group.protocol.kind() == DropProtocol::Udp)
            .is_empty()
    );
}

/// Opens a host's account, has traffic run, and closes the account.
fn account(pair: &Pair, traffic: impl FnOnce()) -> HostDelta {
    let begin = |state: &mut State| state.account = HostAccount::begin().ok();
    pair.receiver.run(begin).unwrap();
    traffic();
    thread::sleep(QUIET);
    let end = |state: &mut State| state.account.take().unwrap().end().unwrap();
    pair.receiver.run(end).unwrap()
}

/// The places at which anything was lost.
fn lost(host: &HostDelta) -> Vec<(LossPlace, u64)> {
    let drops = host.dropped_packets.0.iter();
    let lost = drops.map(|(place, packets)| (*place, packets.unwrap_or(0)));
    lost.filter(|(_, packets)| *packets > 0).collect()
}

/// A counter before the last condition counts what passes it, too.
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

/// The greater of two counts would be that of the segments, and no word of the datagrams.
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
