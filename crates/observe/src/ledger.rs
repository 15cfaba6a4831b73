//! The ledger of a trial, from the counts of its programs and the counters of its hosts.
//!
//! Each packet is counted as lost at one place at most. The places of each host (`losses`) are lines, except those that
//! both ends of a link count:
//!
//! - A backlog drop on veth is in softnet_stat, in the sending interface's tx_dropped, in the receiving one's rx_dropped
//!   and in the sender's Udp.SndbufErrors. The line is softnet's.
//! - A full ring is in tx_dropped, SndbufErrors and Ip.OutDiscards. The line is tx_dropped less softnet's count.
//!
//! Drop reasons beyond a counter are lines of their own after the counters'; the other counters are cross-checks. Trials
//! over IPv4 use IPv4's protocol counters, and IPv6 control traffic is not mistaken for a loss.

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

/// The hosts of a trial.
#[derive(Clone, Copy, Debug)]
pub struct Hosts<'a> {
    /// The one that sends.
    pub sender: Account<'a>,
    /// The one that forwards, where there is one.
    pub router: Option<Account<'a>>,
    /// The one that receives.
    pub receiver: Account<'a>,
    /// Whether IPv6 carries the traffic: then its counters count, too.
    pub is_ipv6: bool,
}

impl<'a> Hosts<'a> {
    /// Two hosts that are joined directly, over IPv4.
    pub fn pair(sender: Account<'a>, receiver: Account<'a>) -> Self {
        Hosts {
            sender,
            router: None,
            receiver,
            is_ipv6: false,
        }
    }

    fn families(&self) -> Families {
        match self.is_ipv6 {
            true => Families::All,
            false => Families::Ipv4,
        }
    }
}

/// The ledger of a UDP trial, in datagrams.
pub fn packet_ledger(datagrams: CountedDatagrams, hosts: Hosts<'_>) -> Ledger {
    let Hosts {
        sender, receiver, ..
    } = hosts;
    let mut lines = loss_lines(hosts);
    lines.extend(beyond_counters(&lines, sender, receiver));
    for (side, host) in [(Side::Sender, sender), (Side::Receiver, receiver)] {
        add_filtered_sends(&mut lines, &datagrams.control, side, host);
    }
    let filtered = lines
        .iter()
        .filter(|line| matches!(line.place, LossPlace::Nftables | LossPlace::Xdp))
        .any(|line| line.packets.is_some_and(|packets| packets > 0));
    let mut control = datagrams.control;
    // What lies behind a router is not the other end of one's own link.
    if hosts.router.is_none() {
        control.extend(link_control(sender, receiver, filtered));
    }
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
        cross_checks: cross_checks(hosts),
    };
    ledger.residual_packets = Some(ledger.balance_packets());
    ledger
}

/// The ledger of a TCP trial, in bytes of payload. TCP sends again what is dropped, so packets that were take no part
/// in it: they are cross-checks.
pub fn tcp_ledger(offered_bytes: u64, delivered_bytes: u64, hosts: Hosts<'_>) -> Ledger {
    let Hosts {
        sender, receiver, ..
    } = hosts;
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
    let dropped = loss_lines(hosts).into_iter().filter_map(|line| {
        Some(CrossCheck {
            side: line.side,
            counter: format!("packets, {}: {}", line.place, line.counter),
            packets: line.packets.filter(|&packets| packets > 0)?,
        })
    });
    let mut checks = cross_checks(hosts);
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

/// Datagrams that a filter stopped on the way out, as the sending programs were told. What no rule's counter and no
/// drop reason has of them is a line; IP counts all of them as discarded, and they leave its line.
fn add_filtered_sends(
    lines: &mut Vec<LedgerLine>,
    control: &[ControlLine],
    side: Side,
    host: Account<'_>,
) {
    let of_side = |line: &&ControlLine| (line.kind, line.from) == (ControlKind::Filtered, side);
    let told: u64 = control
        .iter()
        .filter(of_side)
        .filter_map(|line| line.sent_packets)
        .sum();
    let at = |line: &LedgerLine, place| (line.place, line.side) == (place, side);
    let by_ip = lines.iter_mut().find(|line| at(line, LossPlace::IpOutput));
    if let Some(packets) = by_ip.and_then(|line| line.packets.as_mut()) {
        *packets = packets.saturating_sub(told.saturating_sub(host.filtered_out()));
    }
    let named = lines.iter().filter(|line| at(line, LossPlace::Nftables));
    let named: u64 = named.filter_map(|line| line.packets).sum();
    if told > named {
        let less = if named > 0 {
            " less the lines before"
        } else {
            ""
        };
        let counter = format!("EPERM of sends{less}");
        lines.push(line(
            LossPlace::Nftables,
            side,
            &counter,
            Some(told - named),
        ));
    }
}

/// Every place of the hosts, in the order in which a packet passes them.
fn loss_lines(hosts: Hosts<'_>) -> Vec<LedgerLine> {
    let Hosts {
        sender, receiver, ..
    } = hosts;
    let sides = [(Side::Sender, sender), (Side::Receiver, receiver)];
    let of_hosts = |is_way_out: bool| {
        sides.into_iter().flat_map(move |(side, host)| {
            let here = COUNTED.iter().filter(move |counted| {
                !is_of_link(counted.place) && (counted.place.way() == Way::Out) == is_way_out
            });
            here.map(move |counted| {
                let packets = counted.packets(host, hosts.families());
                line(counted.place, side, counted.counter, packets)
            })
        })
    };
    let mut lines: Vec<LedgerLine> = of_hosts(true).collect();
    lines.extend(link_lines(hosts));
    lines.extend(of_hosts(false));
    lines
}

/// What was lost between the hosts: in rings, in the backlog, and at the router, if there is one.
fn link_lines(hosts: Hosts<'_>) -> Vec<LedgerLine> {
    let Hosts {
        sender,
        router,
        receiver,
        ..
    } = hosts;
    let backlog = sender.softnet_dropped();
    let ends = sender.tx_dropped().zip(receiver.tx_dropped());
    let ends = ends.map(|(sender, receiver)| sender + receiver);
    let at = |place, counter, packets| line(place, Side::Receiver, counter, packets);
    let behind = at(LossPlace::Backlog, "softnet_stat dropped", backlog);
    let Some(router) = router else {
        let in_ring = || Some(ends?.saturating_sub(backlog?));
        let counter = "tx_dropped of both ends less softnet_stat's dropped";
        return vec![at(LossPlace::RxRing, counter, in_ring()), behind];
    };
    // Whose backlog it was is not known; the receiver's ring is taken to be before it.
    let onward = router.tx_dropped();
    let in_ring = || Some(onward?.saturating_sub(backlog?));
    let at_router = || {
        let spilled = backlog?.saturating_sub(onward?);
        Some(ends?.saturating_sub(spilled) + forwarding_losses(router, hosts.families())?)
    };
    vec![
        at(
            LossPlace::Router,
            "its rings (tx_dropped of both hosts), IP, filters and queues",
            at_router(),
        ),
        at(
            LossPlace::RxRing,
            "the router's tx_dropped less softnet_stat's dropped",
            in_ring(),
        ),
        behind,
    ]
}

/// What a router lost at its own places.
fn forwarding_losses(router: Account<'_>, families: Families) -> Option<u64> {
    let own = COUNTED.iter().filter(|counted| !is_of_link(counted.place));
    own.map(|counted| counted.packets(router, families)).sum()
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

fn cross_checks(hosts: Hosts<'_>) -> Vec<CrossCheck> {
    let Hosts {
        sender, receiver, ..
    } = hosts;
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
    if let Some(router) = hosts.router {
        for (name, family) in [
            ("Ip.ForwDatagrams", "IPv4"),
            ("Ip6OutForwDatagrams", "IPv6"),
        ] {
            checks.extend(router.protocol(name).map(|packets| CrossCheck {
                side: Side::Receiver,
                counter: format!("forwarded by the router, {family} ({name})"),
                packets,
            }));
        }
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
mod tests;
