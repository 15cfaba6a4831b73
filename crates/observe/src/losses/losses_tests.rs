use super::*;

fn interface(name: &str, tx_dropped: u64, qdisc_drops: Option<u64>) -> InterfaceCounters {
    InterfaceCounters {
        name: String::from(name),
        link: LinkCounters {
            tx_dropped,
            ..LinkCounters::default()
        },
        qdisc_drops,
        peer_tx_dropped: Some(0),
        ..InterfaceCounters::default()
    }
}

fn snapshot(interfaces: &[InterfaceCounters], protocols: &[(&str, u64)]) -> HostSnapshot {
    HostSnapshot {
        interfaces: Some((1..).zip(interfaces.iter().cloned()).collect()),
        nftables_drops: None,
        protocols: protocols
            .iter()
            .map(|&(name, count)| (String::from(name), count))
            .collect(),
        softnet_dropped: Some(vec![u32::MAX, 5]),
        ..HostSnapshot::default()
    }
}

fn since<'a>(before: &'a HostSnapshot, after: &'a HostSnapshot) -> Account<'a> {
    Account { before, after }
}

/// The packets lost at a place.
fn lost(before: &HostSnapshot, after: &HostSnapshot, place: LossPlace) -> Option<u64> {
    since(before, after).drops().at(place)
}

#[test]
fn each_place_grows_by_itself_and_a_loss_is_at_one_place() {
    let before = snapshot(&[interface("lo", 0, Some(0))], &[("Ip.OutDiscards", 1)]);
    let mut after = snapshot(
        &[interface("lo", 0, Some(0)), interface("new", 3, Some(4))],
        &[("Ip.OutDiscards", 10)],
    );
    after.softnet_dropped = Some(vec![1, 5]);
    let account = since(&before, &after);
    let drops = account.drops();
    for (place, lost) in [
        (LossPlace::DeviceTx, 3),
        (LossPlace::SendQueue, 4),
        (LossPlace::IpOutput, 2),
        (LossPlace::Backlog, 2),
    ] {
        assert_eq!(drops.at(place), Some(lost), "{place}");
    }
}

#[test]
fn what_is_not_known_is_null() {
    let gone = snapshot(&[interface("lo", 0, None), interface("gone", 0, None)], &[]);
    let after = snapshot(&[interface("lo", 9, None)], &[("Udp.NoPorts", 7)]);
    let drops = |before| since(before, &after).drops();
    let found = drops(&gone);
    for place in [
        LossPlace::DeviceTx,
        LossPlace::NoSocket,
        LossPlace::Nftables,
        LossPlace::IpOutput,
    ] {
        assert_eq!(found.at(place), None, "{place}");
    }
    let found = drops(&snapshot(
        &[interface("lo", 2, None)],
        &[("Udp.NoPorts", 3)],
    ));
    assert_eq!(found.at(LossPlace::DeviceTx), Some(7));
    assert_eq!(found.at(LossPlace::NoSocket), Some(4));
    assert_eq!(found.at(LossPlace::SendQueue), None);
}

#[test]
fn both_families_are_one_place_unless_one_is_asked_for() {
    let before = snapshot(&[], &[("Udp.NoPorts", 0), ("Udp6NoPorts", 0)]);
    let after = snapshot(&[], &[("Udp.NoPorts", 2), ("Udp6NoPorts", 3)]);
    let account = since(&before, &after);
    assert_eq!(account.drops().at(LossPlace::NoSocket), Some(5));
    assert_eq!(account.protocols(&["Udp.NoPorts"], Families::Ipv4), Some(2));
}

#[test]
fn a_place_is_counted_once_in_the_order_of_the_vocabulary() {
    let places: Vec<LossPlace> = COUNTED.iter().map(|counted| counted.place).collect();
    assert!(places.is_sorted_by(|one, next| one < next), "{places:?}");
}

fn reason(
    name: &str,
    place: Option<LossPlace>,
    protocol: DropProtocol,
    packets: u64,
) -> DropReason {
    DropReason {
        reason: String::from(name),
        function: None,
        protocol,
        place,
        explanation: None,
        packets,
    }
}

fn gaps(overflow_packets: u64) -> DropReasonGaps {
    DropReasonGaps {
        overflow_packets,
        unattributed_packets: 0,
        missed_events: None,
    }
}

#[test]
fn a_place_has_what_its_counter_or_the_reasons_have_whichever_is_more() {
    use DropProtocol::{Other, Udp};
    let socket = Some(LossPlace::SocketBuffer);
    let mut before = snapshot(&[], &[("Udp.RcvbufErrors", 0), ("Ip.InDiscards", 0)]);
    before.drop_reasons = Some(vec![]);
    let mut after = snapshot(&[], &[("Udp.RcvbufErrors", 5), ("Ip.InDiscards", 0)]);
    let at = |after: &HostSnapshot, place| lost(&before, after, place);
    // The counter counts datagrams: losses of other sockets are not in it.
    for (protocol, packets, expected) in [(Udp, 7, 7), (Udp, 3, 5), (Other, 7, 5)] {
        after.drop_reasons = Some(vec![reason("SOCKET_RCVBUFF", socket, protocol, packets)]);
        let found = at(&after, LossPlace::SocketBuffer);
        assert_eq!(found, Some(expected), "{protocol:?} {packets}");
    }
    // A rule's counter counts all protocols, and was unreadable here; a place without a reason is then unknown.
    let nftables = Some(LossPlace::Nftables);
    after.drop_reasons = Some(vec![
        reason("NETFILTER_DROP", nftables, Other, 4),
        reason("NETFILTER_DROP", nftables, Udp, 2),
    ]);
    assert_eq!(at(&after, LossPlace::Nftables), Some(6));
    after.drop_reasons = Some(vec![]);
    assert_eq!(at(&after, LossPlace::Nftables), None);
}

#[test]
fn a_place_without_a_counter_has_the_sum_of_its_reasons() {
    let place = Some(LossPlace::Reassembly);
    let mut before = snapshot(&[], &[]);
    before.drop_reasons = Some(vec![reason(
        "FRAG_REASM_TIMEOUT",
        place,
        DropProtocol::Udp,
        2,
    )]);
    let mut after = snapshot(&[], &[]);
    let absent = lost(&before, &after, LossPlace::Reassembly);
    assert_eq!(absent, None);
    after.drop_reasons = Some(vec![
        reason("FRAG_REASM_TIMEOUT", place, DropProtocol::Udp, 5),
        reason("FRAG_TOO_FAR", place, DropProtocol::Udp, 4),
        reason("NO_WORD_FOR_IT", None, DropProtocol::Udp, 90),
    ]);
    let found = lost(&before, &after, LossPlace::Reassembly);
    assert_eq!(found, Some(3 + 4));
}

#[test]
fn reasons_and_their_gaps_are_those_since_the_beginning_most_first() {
    let udp = |name: &str, packets| reason(name, None, DropProtocol::Udp, packets);
    let mut before = snapshot(&[], &[]);
    before.drop_reasons = Some(vec![udp("OLD", 5), udp("GROWS", 1)]);
    before.drop_reason_gaps = Some(gaps(2));
    let mut after = snapshot(&[], &[]);
    assert_eq!(since(&before, &after).drop_reason_gaps(), None);
    after.drop_reasons = Some(vec![udp("OLD", 5), udp("GROWS", 4), udp("NEW", 9)]);
    after.drop_reason_gaps = Some(gaps(12));
    let reasons = since(&before, &after).drop_reasons().unwrap();
    assert_eq!(reasons, [udp("NEW", 9), udp("GROWS", 3)]);
    let left_out = since(&before, &after).drop_reason_gaps();
    assert_eq!(left_out, Some(gaps(10)));
}

#[test]
fn what_reasons_have_beyond_a_counter_is_said_with_their_names() {
    let place = Some(LossPlace::Nftables);
    let mut before = snapshot(&[], &[]);
    before.nftables_drops = Some(0);
    before.drop_reasons = Some(vec![]);
    let mut after = snapshot(&[], &[]);
    let uncounted = |after: &HostSnapshot| since(&before, after).uncounted();
    after.drop_reasons = Some(vec![
        reason("NETFILTER_DROP", place, DropProtocol::Udp, 6),
        reason("TC_DROP", place, DropProtocol::Other, 4),
    ]);
    after.nftables_drops = Some(10);
    assert_eq!(uncounted(&after), []);
    after.nftables_drops = Some(7);
    let [found] = &uncounted(&after)[..] else {
        panic!("{after:?}");
    };
    let expected = (LossPlace::Nftables, Some(3), "NETFILTER_DROP or TC_DROP");
    assert_eq!((found.place, found.packets, found.by.as_str()), expected);
    assert_eq!(found.ways, [Way::Either]);
}

#[test]
fn without_reasons_what_may_drop_is_named_once_and_a_queue_only_when_it_dropped() {
    let rule = |by: &str| UncountedLoss {
        place: LossPlace::Nftables,
        packets: None,
        by: String::from(by),
        ways: vec![Way::In],
    };
    let mut before = snapshot(&[interface("em0", 0, Some(0))], &[]);
    before.uncounted = vec![rule("one"), rule("both")];
    let mut after = snapshot(&[interface("em0", 0, Some(0))], &[]);
    after.uncounted = vec![rule("both"), rule("other")];
    let named = |after: &HostSnapshot| -> Vec<(LossPlace, String)> {
        let found = since(&before, after).uncounted();
        found.into_iter().map(|one| (one.place, one.by)).collect()
    };
    let rules = ["one", "both", "other"].map(|by| (LossPlace::Nftables, String::from(by)));
    assert_eq!(named(&after), rules);
    after.interfaces = snapshot(&[interface("em0", 1, Some(2))], &[]).interfaces;
    let queues: Vec<LossPlace> = named(&after)[3..].iter().map(|(place, _)| *place).collect();
    assert_eq!(queues, [LossPlace::SendQueue, LossPlace::DeviceTx]);
}

#[test]
fn a_ring_lost_what_its_other_end_counts_beyond_the_backlog_and_what_the_card_missed() {
    let end = |rx_dropped, rx_missed, peer_tx_dropped| InterfaceCounters {
        link: LinkCounters {
            rx_dropped,
            rx_missed,
            ..LinkCounters::default()
        },
        peer_tx_dropped,
        ..interface("em0", 0, Some(0))
    };
    let at_ring = |before: InterfaceCounters, after: InterfaceCounters| {
        let [before, after] = [before, after].map(|one| snapshot(&[one], &[]));
        lost(&before, &after, LossPlace::RxRing)
    };
    let before = || end(10, 3, Some(20));
    assert_eq!(at_ring(before(), end(12, 3, Some(27))), Some(5));
    assert_eq!(at_ring(before(), end(19, 3, Some(27))), Some(0));
    assert_eq!(at_ring(before(), end(12, 7, Some(27))), Some(4 + 5));
    assert_eq!(at_ring(before(), end(12, 3, None)), None);
    // A new interface counted from 0.
    let [none, new] = [vec![], vec![end(2, 1, Some(6))]].map(|all| snapshot(&all, &[]));
    let at_new = lost(&none, &new, LossPlace::RxRing);
    assert_eq!(at_new, Some(1 + 4));
}

#[test]
fn what_filters_drop_on_the_way_out_is_taken_from_ip() {
    let udp = |packets| {
        let place = Some(LossPlace::Nftables);
        Some(vec![reason(
            "NETFILTER_DROP",
            place,
            DropProtocol::Udp,
            packets,
        )])
    };
    let mut before = snapshot(&[], &[("Ip.OutDiscards", 0)]);
    before.nftables_drops = Some(100);
    before.nftables_drops_out = Some(50);
    before.drop_reasons = Some(vec![]);
    let mut after = snapshot(&[], &[("Ip.OutDiscards", 30)]);
    after.nftables_drops = Some(109);
    after.nftables_drops_out = Some(57);
    after.drop_reasons = udp(15);
    let by_ip = |after: &HostSnapshot| lost(&before, after, LossPlace::IpOutput);
    assert_eq!(by_ip(&after), Some(30 - 7));
    // Six of fifteen exceed the counters, and a rule without one on the way out may have dropped them.
    let may_drop = |place, way| UncountedLoss {
        place,
        packets: None,
        by: String::from("a rule"),
        ways: vec![way],
    };
    for (place, way, expected) in [
        (LossPlace::Nftables, Way::In, 23),
        (LossPlace::SendQueue, Way::Out, 23),
        (LossPlace::Nftables, Way::Out, 17),
    ] {
        after.uncounted = vec![may_drop(place, way)];
        assert_eq!(by_ip(&after), Some(expected), "{place} {way:?}");
    }
    // IP discards none of other protocols.
    after.drop_reasons.as_mut().unwrap()[0].protocol = DropProtocol::Other;
    assert_eq!(by_ip(&after), Some(23));
}

#[test]
fn what_ip_refused_is_the_sum_of_its_counters_with_those_of_the_reverse_path_filter() {
    let names = [
        "Ip.InHdrErrors",
        "Ip.InAddrErrors",
        "Ip.InUnknownProtos",
        "Ip.InDiscards",
    ];
    let zero = snapshot(&[], &names.map(|name| (name, 0)));
    let mut after = snapshot(&[], &names.map(|name| (name, 2)));
    let at_ip = |after: &HostSnapshot| lost(&zero, after, LossPlace::IpInput);
    assert_eq!(at_ip(&after), Some(8));
    let name = String::from("TcpExt.IPReversePathFilter");
    after.protocols.insert(name.clone(), 5);
    // A kernel without these counters refused none by them.
    assert_eq!(at_ip(&after), Some(8));
    let mut before = zero.clone();
    before.protocols.insert(name, 1);
    let found = lost(&before, &after, LossPlace::IpInput);
    assert_eq!(found, Some(8 + 4));
}
