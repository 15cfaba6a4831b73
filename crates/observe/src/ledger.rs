//! Builds a trial's ledger from what the programs counted and from both hosts' counters.
//!
//! What must hold: each packet is counted as lost at one place at the most. The [places of each
//! host](crate::losses) are lines of the ledger, but for those that the two ends of a link count together:
//!
//! - A backlog drop on veth shows in softnet_stat, in the sending interface's tx_dropped, in the
//!   receiving one's rx_dropped and in the sending host's Udp.SndbufErrors. The line is softnet's.
//! - A full ring shows in tx_dropped, SndbufErrors and Ip.OutDiscards. The line is tx_dropped less
//!   softnet's count.
//!
//! What the kernel's drop reasons have beyond a counter is a line of its own after the counters'. The other counters
//! of these are cross-checks. The trials run over IPv4, so the protocol counters are IPv4's;
//! IPv6 control traffic cannot be mistaken for a loss then.

use std::collections::BTreeMap;

use nicpoll_model::{
    ControlKind, ControlLine, CrossCheck, DropProtocol, DropReason, Ledger, LedgerLine, LossPlace,
    Side, Way,
};

use crate::losses::{Account, COUNTED, Families};

/// Datagrams of a trial, as the programs at both ends counted them.
#[derive(Clone, Debug, Default)]
pub struct CountedDatagrams {
    /// Handed to sockets.
    pub offered: u64,
    /// Read from sockets, each once.
    pub delivered: u64,
    /// Read again; `None` when they have no numbers.
    pub duplicates: Option<u64>,
    /// Those besides the workload's own. The kernel's control packets are added to them.
    pub control: Vec<ControlLine>,
}

/// The ledger of a UDP trial, in datagrams.
pub fn packet_ledger(
    datagrams: CountedDatagrams,
    sender: Account<'_>,
    receiver: Account<'_>,
) -> Ledger {
    let mut lines = loss_lines(sender, receiver);
    lines.extend(beyond_counters(&lines, sender, receiver));
    let filtered = lines
        .iter()
        .filter(|line| matches!(line.place, LossPlace::Nftables | LossPlace::Xdp))
        .any(|line| line.packets.is_some_and(|packets| packets > 0));
    let mut control = datagrams.control;
    control.extend(link_control(sender, receiver, filtered));
    let mut ledger = Ledger {
        offered_packets: Some(datagrams.offered),
        delivered_packets: Some(datagrams.delivered),
        offered_bytes: None,
        delivered_bytes: None,
        duplicate_packets: datagrams.duplicates,
        lines,
        control,
        residual_packets: None,
        residual_bytes: None,
        cross_checks: cross_checks(sender, receiver),
    };
    ledger.residual_packets = Some(ledger.balance_packets());
    ledger
}

/// The ledger of a TCP trial, in bytes of payload. TCP sends again what is dropped, so packets that were take no part
/// in it: they are cross-checks.
pub fn tcp_ledger(
    offered_bytes: u64,
    delivered_bytes: u64,
    sender: Account<'_>,
    receiver: Account<'_>,
) -> Ledger {
    let mut control = vec![
        ControlLine {
            kind: ControlKind::Acknowledgement,
            from: Side::Receiver,
            sent_packets: receiver.protocol("Tcp.OutSegs"),
            received_packets: sender.protocol("Tcp.InSegs"),
            in_balance: false,
        },
        ControlLine {
            kind: ControlKind::Retransmission,
            from: Side::Sender,
            sent_packets: sender.protocol("Tcp.RetransSegs"),
            received_packets: None,
            in_balance: false,
        },
    ];
    control.extend(discovery(sender, receiver));
    let dropped = loss_lines(sender, receiver).into_iter().filter_map(|line| {
        Some(CrossCheck {
            side: line.side,
            counter: format!("packets, {}: {}", line.place, line.counter),
            packets: line.packets.filter(|&packets| packets > 0)?,
        })
    });
    let mut checks = cross_checks(sender, receiver);
    checks.extend(dropped);
    Ledger {
        offered_packets: None,
        delivered_packets: None,
        offered_bytes: Some(offered_bytes),
        delivered_bytes: Some(delivered_bytes),
        duplicate_packets: None,
        lines: Vec::new(),
        control,
        residual_packets: None,
        residual_bytes: Some(offered_bytes as i64 - delivered_bytes as i64),
        cross_checks: checks,
    }
}

/// Datagrams that the kernel says it dropped at a place beyond what the place's line has.
fn beyond_counters(
    lines: &[LedgerLine],
    sender: Account<'_>,
    receiver: Account<'_>,
) -> Vec<LedgerLine> {
    let mut dropped: BTreeMap<(LossPlace, Side), Vec<DropReason>> = BTreeMap::new();
    for (side, host) in [(Side::Sender, sender), (Side::Receiver, receiver)] {
        for reason in host.drop_reasons().unwrap_or_default() {
            // A driver's own are in tx_dropped, which the ring's line has.
            let place = reason.place.filter(|place| *place != LossPlace::DeviceTx);
            if let Some(place) = place {
                let side = if is_of_link(place) {
                    Side::Receiver
                } else {
                    side
                };
                dropped.entry((place, side)).or_default().push(reason);
            }
        }
    }
    let beyond = |((place, side), reasons): ((LossPlace, Side), Vec<DropReason>)| {
        let mut counted = lines
            .iter()
            .filter(|line| (line.place, line.side) == (place, side));
        let counted = counted.next().and_then(|line| line.packets).unwrap_or(0);
        let sum = |reasons: &[&DropReason]| reasons.iter().map(|one| one.packets).sum::<u64>();
        let all: Vec<&DropReason> = reasons.iter().collect();
        let mut udp = all.clone();
        udp.retain(|reason| reason.protocol == DropProtocol::Udp);
        let packets = sum(&udp).min(sum(&all).saturating_sub(counted));
        let names: Vec<String> = udp.iter().map(|reason| reason.name()).collect();
        let less = if counted > 0 { " less the counter" } else { "" };
        let counter = format!("drop reason {}{less}", names.join(" + "));
        (packets > 0).then(|| line(place, side, &counter, Some(packets)))
    };
    dropped.into_iter().filter_map(beyond).collect()
}

/// Every place of both hosts, in the order in which a packet passes them.
fn loss_lines(sender: Account<'_>, receiver: Account<'_>) -> Vec<LedgerLine> {
    let sides = [(Side::Sender, sender), (Side::Receiver, receiver)];
    let of_hosts = |is_way_out: bool| {
        sides.into_iter().flat_map(move |(side, host)| {
            let here = COUNTED.iter().filter(move |counted| {
                !is_of_link(counted.place) && (counted.place.way() == Way::Out) == is_way_out
            });
            here.map(move |counted| {
                let packets = counted.packets(host, Families::Ipv4);
                line(counted.place, side, counted.counter, packets)
            })
        })
    };
    let backlog = sender.softnet_dropped();
    let tx_dropped = sender.tx_dropped().zip(receiver.tx_dropped());
    let in_ring = || Some((tx_dropped?.0 + tx_dropped?.1).saturating_sub(backlog?));
    let mut lines: Vec<LedgerLine> = of_hosts(true).collect();
    lines.extend([
        line(
            LossPlace::RxRing,
            Side::Receiver,
            "tx_dropped of both ends less softnet_stat's dropped",
            in_ring(),
        ),
        line(
            LossPlace::Backlog,
            Side::Receiver,
            "softnet_stat dropped",
            backlog,
        ),
    ]);
    lines.extend(of_hosts(false));
    lines
}

/// Whether the two ends of a link count a place together.
fn is_of_link(place: LossPlace) -> bool {
    matches!(
        place,
        LossPlace::DeviceTx | LossPlace::RxRing | LossPlace::DeviceRx | LossPlace::Backlog
    )
}

fn line(place: LossPlace, side: Side, counter: &str, packets: Option<u64>) -> LedgerLine {
    LedgerLine {
        place,
        side,
        counter: String::from(counter),
        packets,
    }
}

fn cross_checks(sender: Account<'_>, receiver: Account<'_>) -> Vec<CrossCheck> {
    let mut checks = Vec::new();
    for (side, host) in [(Side::Sender, sender), (Side::Receiver, receiver)] {
        let mut check = |counter: &str, packets: Option<u64>| {
            checks.extend(packets.map(|packets| CrossCheck {
                side,
                counter: String::from(counter),
                packets,
            }));
        };
        check(
            "tx_packets",
            host.interfaces(|one| Some(one.link.tx_packets)),
        );
        check(
            "tx_dropped",
            host.interfaces(|one| Some(one.link.tx_dropped)),
        );
        check(
            "rx_packets",
            host.interfaces(|one| Some(one.link.rx_packets)),
        );
        check(
            "rx_dropped",
            host.interfaces(|one| Some(one.link.rx_dropped)),
        );
        check("Ip.OutDiscards", host.protocol("Ip.OutDiscards"));
        check("Udp.SndbufErrors", host.protocol("Udp.SndbufErrors"));
        check("Udp.InErrors", host.protocol("Udp.InErrors"));
        check("Udp.InDatagrams", host.protocol("Udp.InDatagrams"));
        let gaps = host.drop_reason_gaps();
        check(
            "drop reasons: no room",
            gaps.map(|gaps| gaps.overflow_packets),
        );
        check(
            "drop reasons: of no known namespace of the machine",
            gaps.map(|gaps| gaps.unattributed_packets),
        );
        check(
            "drop reasons: not seen on the machine",
            gaps.and_then(|gaps| gaps.missed_events),
        );
    }
    checks
}

/// ARP and neighbour discovery of a UDP trial. What a filter took away makes the receiving side's
/// count of other frames meaningless.
fn link_control(sender: Account<'_>, receiver: Account<'_>, filtered: bool) -> Vec<ControlLine> {
    let mut lines = Vec::new();
    for (from, host, peer) in [
        (Side::Sender, sender, receiver),
        (Side::Receiver, receiver, sender),
    ] {
        lines.push(ControlLine {
            kind: ControlKind::Arp,
            from,
            sent_packets: frames_besides_ip(
                host.interfaces(|one| Some(one.link.tx_packets + one.link.tx_dropped)),
                sum(host, ["Ip.OutTransmits", "Ip6OutTransmits"]),
            ),
            received_packets: frames_besides_ip(
                peer.interfaces(|one| Some(one.link.rx_packets)),
                sum(peer, ["Ip.InReceives", "Ip6InReceives"]),
            )
            .filter(|_| !filtered),
            in_balance: false,
        });
    }
    lines.extend(discovery(sender, receiver));
    lines
}

/// Frames that no IP layer counted. `None` when this kernel does not count what IP transmits (before
/// Linux 6.9), or when IP counted packets that never became frames.
fn frames_besides_ip(frames: Option<u64>, ip_packets: Option<u64>) -> Option<u64> {
    frames?.checked_sub(ip_packets?)
}

/// What both families of IP counted. `None` when this kernel has one of them not.
fn sum(host: Account<'_>, names: [&str; 2]) -> Option<u64> {
    names.iter().map(|name| host.protocol(name)).sum()
}

fn discovery(sender: Account<'_>, receiver: Account<'_>) -> [ControlLine; 2] {
    [
        (Side::Sender, sender, receiver),
        (Side::Receiver, receiver, sender),
    ]
    .map(|(from, host, peer)| ControlLine {
        kind: ControlKind::NeighbourDiscovery,
        from,
        sent_packets: host.protocol("Icmp6OutMsgs"),
        received_packets: peer.protocol("Icmp6InMsgs"),
        in_balance: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{HostSnapshot, InterfaceCounters, LinkCounters};

    fn host(tx: u64, tx_dropped: u64, rx: u64, protocols: &[(&str, u64)]) -> HostSnapshot {
        let interface = InterfaceCounters {
            name: String::from("em0"),
            link: LinkCounters {
                tx_packets: tx,
                tx_dropped,
                rx_packets: rx,
                ..LinkCounters::default()
            },
            qdisc_drops: Some(0),
            has_queue: false,
            xdp_drops: Some(0),
            peer_tx_dropped: Some(0),
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
        // The counter has two of the other protocol.
        after.nftables_drops = Some(2);
        let reasons = [(DropProtocol::Udp, 43), (DropProtocol::Other, 9)];
        after.drop_reasons = Some(
            reasons
                .map(|(kind, packets)| reason(kind, packets))
                .to_vec(),
        );
        let account = |after| Account {
            before: &before,
            after,
        };
        let ledger = packet_ledger(datagrams(100, 58), account(&before), account(&after));
        let last = ledger.lines.last().unwrap();
        assert_eq!(
            (last.place, last.side),
            (LossPlace::Nftables, Side::Receiver)
        );
        assert_eq!(last.packets, Some(40));
        assert_eq!(last.counter, "drop reason NETFILTER_DROP less the counter");
        assert_eq!(ledger.residual_packets, Some(0));
    }

    #[test]
    fn a_backlog_drop_is_counted_once() {
        let zero = host(0, 0, 0, &[("Udp.RcvbufErrors", 0)]);
        let mut sender = host(900, 100, 0, &[("Udp.RcvbufErrors", 0)]);
        let mut receiver = host(0, 0, 900, &[("Udp.RcvbufErrors", 50)]);
        // 30 of the 100 in the backlog, across the wrap of a 32-bit count; 70 in the ring.
        let mut before = zero.clone();
        before.softnet_dropped = Some(vec![u32::MAX - 9, 0]);
        sender.softnet_dropped = Some(vec![20, 0]);
        receiver.softnet_dropped = Some(vec![20, 0]);
        let account = |after| Account {
            before: &before,
            after,
        };
        let ledger = packet_ledger(datagrams(1000, 850), account(&sender), account(&receiver));
        assert_eq!(
            packets(&ledger, LossPlace::Backlog, Side::Receiver),
            Some(30)
        );
        assert_eq!(
            packets(&ledger, LossPlace::RxRing, Side::Receiver),
            Some(70)
        );
        assert_eq!(
            packets(&ledger, LossPlace::SocketBuffer, Side::Receiver),
            Some(50)
        );
        assert_eq!(ledger.residual_packets, Some(0));
    }

    #[test]
    fn a_missing_counter_is_null_and_leaves_its_loss_in_the_residual() {
        let (before, after) = (host(0, 0, 0, &[]), host(10, 0, 10, &[]));
        let account = Account {
            before: &before,
            after: &after,
        };
        let ledger = packet_ledger(datagrams(10, 7), account, account);
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
        let account = Account {
            before: &before,
            after: &after,
        };
        let arp = |filtered| link_control(account, account, filtered)[0];
        assert_eq!(arp(false).sent_packets, Some(2));
        assert_eq!(arp(true).received_packets, None);
        assert_eq!(frames_besides_ip(Some(5), Some(6)), None);
    }

    #[test]
    fn tcp_closes_in_bytes() {
        let (zero, after) = (host(0, 0, 0, &[]), host(0, 839, 0, &[]));
        let account = |after| Account {
            before: &zero,
            after,
        };
        let ledger = tcp_ledger(1000, 990, account(&after), account(&zero));
        assert_eq!(ledger.residual_bytes, Some(10));
        assert_eq!(ledger.residual_packets, None);
        assert_eq!((ledger.lines.len(), ledger.lost_packets()), (0, 0));
        let ring = |check: &&CrossCheck| check.counter.starts_with("packets, receive ring: ");
        let ring = ledger.cross_checks.iter().find(ring).unwrap();
        assert_eq!(ring.packets, 839);
    }
}
