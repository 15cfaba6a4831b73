use super::*;
use crate::host::{HostSnapshot, InterfaceCounters};

fn host(tx: u64, tx_dropped: u64, rx: u64, protocols: &[(&str, u64)]) -> HostSnapshot {
    let interface = InterfaceCounters {
        link: LinkCounters {
            tx_packets: tx,
            tx_dropped,
            rx_packets: rx,
            ..LinkCounters::default()
        },
        qdisc_drops: Some(0),
        xdp_drops: Some(0),
        peer_tx_dropped: Some(0),
        ..InterfaceCounters::default()
    };
    HostSnapshot {
        interfaces: Some([(2, interface)].into()),
        nftables_drops: Some(0),
        protocols: protocols
            .iter()
            .map(|&(name, count)| (String::from(name), count))
            .collect(),
        softnet_dropped: Some(vec![0, 0]),
        ..HostSnapshot::default()
    }
}

fn since<'a>(before: &'a HostSnapshot, after: &'a HostSnapshot) -> Account<'a> {
    Account { before, after }
}

/// The ledger of a trial whose hosts had equal counters before it.
fn ledger(counted: CountedDatagrams, before: &HostSnapshot, after: [&HostSnapshot; 2]) -> Ledger {
    let [sender, receiver] = after.map(|after| since(before, after));
    packet_ledger(counted, LedgerHosts::pair(sender, receiver))
}

fn packets(ledger: &Ledger, place: LossPlace, side: Side) -> Option<u64> {
    ledger
        .lines
        .iter()
        .find(|line| line.place == place && line.side == side)
        .unwrap()
        .packets
}

fn datagrams(offered: u64, delivered: u64) -> CountedDatagrams {
    CountedDatagrams {
        offered,
        delivered,
        ..CountedDatagrams::default()
    }
}

fn reason(protocol: DropProtocol, packets: u64) -> DropReason {
    DropReason {
        reason: String::from("NETFILTER_DROP"),
        function: None,
        protocol,
        place: Some(LossPlace::Nftables),
        explanation: None,
        packets,
    }
}

#[test]
fn datagrams_beyond_a_counter_are_a_line_and_other_protocols_are_not() {
    let mut before = host(0, 0, 0, &[]);
    before.drop_reasons = Some(vec![reason(DropProtocol::Udp, 3)]);
    let mut after = host(0, 0, 0, &[]);
    // Two of the counter are of the other protocol.
    after.nftables_drops = Some(2);
    let reasons = [(DropProtocol::Udp, 43), (DropProtocol::Other, 9)];
    after.drop_reasons = Some(
        reasons
            .map(|(kind, packets)| reason(kind, packets))
            .to_vec(),
    );
    let ledger = ledger(datagrams(100, 58), &before, [&before, &after]);
    let last = ledger.lines.last().unwrap();
    assert_eq!(
        (last.place, last.side),
        (LossPlace::Nftables, Side::Receiver)
    );
    assert_eq!(last.packets, Some(40));
    assert_eq!(last.counter, "drop reason NETFILTER_DROP less the counter");
    assert_eq!(ledger.residual_packets, Some(0));
}

/// A host's counters of IP and UDP.
const FORWARDING: [&str; 9] = [
    "Ip.OutDiscards",
    "Ip.InHdrErrors",
    "Ip.InAddrErrors",
    "Ip.InUnknownProtos",
    "Ip.ReasmFails",
    "Udp.NoPorts",
    "Udp.InCsumErrors",
    "Udp.MemErrors",
    "Udp.RcvbufErrors",
];

#[test]
fn what_the_router_lost_is_a_line_and_its_rings_are_told_from_the_receivers() {
    let counters = |discarded: u64| {
        let zero = FORWARDING.map(|name| (name, 0));
        [&zero[..], &[("Ip.InDiscards", discarded)]].concat()
    };
    let zero = host(0, 0, 0, &counters(0));
    let sender = host(900, 100, 0, &counters(0));
    // Of 900 received, 20 were discarded and 30 did not fit into the receiver's ring.
    let router = host(850, 30, 900, &counters(20));
    let receiver = host(0, 0, 850, &counters(0));
    let account = |after| since(&zero, after);
    let hosts = LedgerHosts {
        router: Some(account(&router)),
        ..LedgerHosts::pair(account(&sender), account(&receiver))
    };
    let ring = link_lines(hosts);
    let counted: Vec<_> = ring.iter().map(|line| (line.place, line.packets)).collect();
    assert_eq!(
        counted,
        [
            (LossPlace::Router, Some(100 + 20)),
            (LossPlace::RxRing, Some(30)),
            (LossPlace::Backlog, Some(0)),
        ]
    );
}

#[test]
fn what_cards_sent_and_none_received_was_lost_on_the_wire() {
    let zero = host(0, 0, 0, &[("Udp.RcvbufErrors", 0)]);
    // Of 1000, the driver dropped 10, a switch 20, and 30 found no descriptor. One ARP frame came back.
    let sender = host(990, 10, 1, &[("Udp.RcvbufErrors", 0)]);
    let mut receiver = host(1, 0, 940, &[("Udp.RcvbufErrors", 0)]);
    let card = receiver.interfaces.as_mut().unwrap().get_mut(&2).unwrap();
    card.link.rx_missed = 30;
    // The machines count their backlogs for themselves.
    receiver.softnet_dropped = Some(vec![0, 7]);
    let hosts = LedgerHosts {
        between: Between::Cards,
        ..LedgerHosts::pair(since(&zero, &sender), since(&zero, &receiver))
    };
    let ledger = packet_ledger(datagrams(1000, 933), hosts);
    for (place, side, lost) in [
        (LossPlace::DeviceTx, Side::Sender, 10),
        (LossPlace::Wire, Side::Receiver, 20),
        (LossPlace::RxRing, Side::Receiver, 30),
        (LossPlace::Backlog, Side::Receiver, 7),
    ] {
        assert_eq!(packets(&ledger, place, side), Some(lost));
    }
    assert_eq!(ledger.residual_packets, Some(0));
}

#[test]
fn a_backlog_drop_is_counted_once() {
    let zero = host(0, 0, 0, &[("Udp.RcvbufErrors", 0)]);
    let mut sender = host(900, 100, 0, &[("Udp.RcvbufErrors", 0)]);
    let mut receiver = host(0, 0, 900, &[("Udp.RcvbufErrors", 50)]);
    // 30 of the 100 were dropped at the backlog, across the wrap of a 32-bit count; 70 in the ring.
    let mut before = zero.clone();
    before.softnet_dropped = Some(vec![u32::MAX - 9, 0]);
    sender.softnet_dropped = Some(vec![20, 0]);
    receiver.softnet_dropped = Some(vec![20, 0]);
    let ledger = ledger(datagrams(1000, 850), &before, [&sender, &receiver]);
    for (place, lost) in [
        (LossPlace::Backlog, 30),
        (LossPlace::RxRing, 70),
        (LossPlace::SocketBuffer, 50),
    ] {
        assert_eq!(packets(&ledger, place, Side::Receiver), Some(lost));
    }
    assert_eq!(ledger.residual_packets, Some(0));
}

#[test]
fn a_missing_counter_is_null_and_leaves_its_loss_in_the_residual() {
    let (before, after) = (host(0, 0, 0, &[]), host(10, 0, 10, &[]));
    let ledger = ledger(datagrams(10, 7), &before, [&after, &after]);
    assert_eq!(
        packets(&ledger, LossPlace::SocketBuffer, Side::Receiver),
        None
    );
    assert_eq!(ledger.residual_packets, Some(3));
}

#[test]
fn frames_that_are_not_ip_are_named_unless_a_filter_took_some() {
    let before = host(0, 0, 0, &[("Ip.OutTransmits", 0), ("Ip6OutTransmits", 0)]);
    let after = host(12, 0, 0, &[("Ip.OutTransmits", 9), ("Ip6OutTransmits", 1)]);
    let account = since(&before, &after);
    let arp = |filtered| link_control(LedgerHosts::pair(account, account), filtered)[0];
    assert_eq!(arp(false).sent_packets, Some(2));
    assert_eq!(arp(true).received_packets, None);
    assert_eq!(frames_besides_ip(Some(5), Some(6)), None);
}

#[test]
fn tcp_closes_in_bytes() {
    let (zero, after) = (host(0, 0, 0, &[]), host(0, 839, 0, &[]));
    let account = |after| since(&zero, after);
    let ledger = tcp_ledger(
        1000,
        990,
        LedgerHosts::pair(account(&after), account(&zero)),
    );
    assert_eq!(ledger.residual_bytes, Some(10));
    assert_eq!(ledger.residual_packets, None);
    assert_eq!((ledger.lines.len(), ledger.lost_packets()), (0, 0));
    let dropped = |check: &&CrossCheck| check.counter.starts_with("packets, ");
    let dropped: Vec<_> = ledger.cross_checks.iter().filter(dropped).collect();
    assert_eq!(dropped.len(), 1, "places without a loss are left out");
    assert!(dropped[0].counter.starts_with("packets, receive ring: "));
    assert_eq!(dropped[0].packets, 839);
}

/// The ledger of 100 datagrams that all arrived, from the increase of both hosts' counters.
fn since_zero(sender: &HostSnapshot, receiver: &HostSnapshot) -> Ledger {
    let zero = host(0, 0, 0, &FRAMES.map(|name| (name, 0)));
    ledger(datagrams(100, 100), &zero, [sender, receiver])
}

/// The counters that distinguish IP frames from others.
const FRAMES: [&str; 4] = [
    "Ip.OutTransmits",
    "Ip6OutTransmits",
    "Ip.InReceives",
    "Ip6InReceives",
];

#[test]
fn lines_stand_in_the_order_of_a_packets_way() {
    let idle = host(0, 0, 0, &[]);
    let ledger = since_zero(&idle, &idle);
    let at = |place, side| {
        let mut lines = ledger.lines.iter();
        lines.position(|line| (line.place, line.side) == (place, side))
    };
    let way = [
        at(LossPlace::IpOutput, Side::Sender),
        at(LossPlace::SendQueue, Side::Sender),
        at(LossPlace::RxRing, Side::Receiver),
        at(LossPlace::Backlog, Side::Receiver),
        at(LossPlace::SocketBuffer, Side::Receiver),
    ];
    assert!(
        way.iter().all(Option::is_some) && way.is_sorted(),
        "{way:?}"
    );
    assert_eq!(way[0], Some(0));
}

#[test]
fn rings_of_both_ends_are_one_line_and_other_counters_are_cross_checks() {
    let ledger = since_zero(&host(0, 5, 0, &[]), &host(0, 3, 0, &[]));
    assert_eq!(packets(&ledger, LossPlace::RxRing, Side::Receiver), Some(8));
    let dropped: Vec<_> = ledger
        .cross_checks
        .iter()
        .filter(|check| check.counter == "tx_dropped")
        .map(|check| (check.side, check.packets))
        .collect();
    assert_eq!(dropped, [(Side::Sender, 5), (Side::Receiver, 3)]);
}

#[test]
fn frames_that_are_not_ip_have_both_counts_until_a_filter_dropped_one() {
    // Of twelve frames two did not fit into the ring; three are not IP.
    let sender = host(10, 2, 0, &[(FRAMES[0], 9), (FRAMES[1], 0)]);
    let mut receiver = host(0, 0, 10, &[(FRAMES[2], 8), (FRAMES[3], 0)]);
    let arp = |receiver: &HostSnapshot| since_zero(&sender, receiver).control[0];
    assert_eq!(arp(&receiver).sent_packets, Some(3));
    assert_eq!(arp(&receiver).received_packets, Some(2));
    receiver.nftables_drops = Some(1);
    assert_eq!(arp(&receiver).received_packets, None);
}

#[test]
fn a_reason_is_a_line_by_itself_for_datagrams_only_and_names_no_counter_of_zero() {
    let idle = host(0, 0, 0, &[]);
    let last = |protocol| {
        let mut before = idle.clone();
        before.drop_reasons = Some(vec![]);
        let mut after = idle.clone();
        after.drop_reasons = Some(vec![reason(protocol, 7)]);
        let mut ledger = ledger(datagrams(100, 93), &before, [&before, &after]);
        ledger.lines.pop().unwrap()
    };
    let line = last(DropProtocol::Udp);
    assert_eq!(line.counter, "drop reason NETFILTER_DROP");
    assert_eq!(line.packets, Some(7));
    assert!(!last(DropProtocol::Other).counter.contains("drop reason"));
}

/// 100 datagrams, and those stopped by a filter of the sender's host, from the increase of that host's counters.
fn with_filtered_sends(stopped: u64, counted: u64, reasons: u64) -> Ledger {
    let names = [("Ip.OutDiscards", 0)];
    let mut before = host(0, 0, 0, &names);
    before.drop_reasons = Some(vec![]);
    // Twelve sends found no room.
    let mut after = host(0, 0, 0, &[("Ip.OutDiscards", stopped + 12)]);
    after.nftables_drops = Some(counted);
    after.nftables_drops_out = Some(counted);
    after.drop_reasons = Some(vec![reason(DropProtocol::Udp, reasons)]);
    let control = |kind, packets| ControlLine {
        kind,
        from: Side::Sender,
        sent_packets: Some(packets),
        received_packets: Some(0),
        in_balance: false,
    };
    let datagrams = CountedDatagrams {
        control: vec![
            control(ControlKind::Refused, 12),
            control(ControlKind::Filtered, stopped),
        ],
        ..datagrams(100, 100)
    };
    ledger(datagrams, &before, [&after, &before])
}

#[test]
fn refused_sends_are_in_no_line_whoever_counted_them() {
    // Counted by a rule, by the kernel's reasons beyond it, or only by the sends.
    for (counted, reasons) in [(40, 40), (10, 40), (10, 15), (0, 0)] {
        let ledger = with_filtered_sends(40, counted, reasons);
        let case = format!("{counted} {reasons}: {ledger:#?}");
        assert_eq!(ledger.refused_sends(), 52, "{case}");
        assert_eq!(ledger.lost_packets(), 0, "{case}");
        assert_eq!(ledger.residual_packets, Some(0), "{case}");
        let mut lines = ledger.lines.iter();
        let at_ip = lines
            .find(|line| line.place == LossPlace::IpOutput)
            .unwrap();
        assert!(at_ip.counter.contains(" less refused sends"), "{case}");
    }
}

#[test]
fn refused_sends_leave_the_places_in_order_and_losses_that_nobody_was_told_of_stay() {
    let zero = host(0, 0, 0, &[("Ip.OutDiscards", 0), ("Udp.RcvbufErrors", 0)]);
    // 7 found no room, 30 overran the ring, and the kernel reported 20 of these.
    let sender = host(0, 30, 0, &[("Ip.OutDiscards", 37), ("Udp.RcvbufErrors", 0)]);
    let refused = ControlLine {
        kind: ControlKind::Refused,
        from: Side::Sender,
        sent_packets: Some(27),
        received_packets: Some(0),
        in_balance: false,
    };
    let datagrams = CountedDatagrams {
        control: vec![refused],
        ..datagrams(100, 90)
    };
    let ledger = ledger(datagrams, &zero, [&sender, &zero]);
    assert_eq!(packets(&ledger, LossPlace::IpOutput, Side::Sender), Some(0));
    assert_eq!(
        packets(&ledger, LossPlace::RxRing, Side::Receiver),
        Some(10)
    );
    assert_eq!(
        (ledger.refused_sends(), ledger.residual_packets),
        (27, Some(0))
    );
}
