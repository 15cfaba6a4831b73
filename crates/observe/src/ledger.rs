//! The ledger of a trial, from the counts of its programs and the counters of its hosts.
//!
//! Each packet counts as lost at one place at most. The places of each host (`losses`) are lines, except those that
//! both ends of a link count:
//!
//! - A backlog drop on veth is in softnet_stat, in the sending interface's tx_dropped, in the receiving one's
//!   rx_dropped and in the sender's Udp.SndbufErrors. The line is softnet's.
//! - A drop by a full ring is in tx_dropped, SndbufErrors and Ip.OutDiscards. The line is tx_dropped less softnet's
//!   count.
//!
//! Each end of a line between cards counts its own drops. Frames that all interfaces together sent but did not receive
//! were lost on the wire, in a switch or in a bridge; frames of others that arrive meanwhile hide as many losses.
//!
//! Drop reasons beyond a counter are separate lines after the counters'; the other counters are cross-checks. The
//! kernel counts sends that it refused as lost; they are not offered packets, and are subtracted from the lines. Trials
//! over IPv4 use IPv4's protocol counters, so IPv6 control traffic is not mistaken for a loss.

use std::collections::BTreeMap;

use nicpoll_model::{
    ControlKind, ControlLine, CrossCheck, DropProtocol, DropReason, Ledger, LedgerLine, LossPlace,
    Side, Way,
};

use crate::losses::{Account, COUNTED, Families};
use crate::proc::LinkCounters;

/// Datagrams of a trial, counted by the programs at both ends.
#[derive(Clone, Debug, Default)]
pub struct CountedDatagrams {
    /// Handed to sockets.
    pub offered: u64,
    /// Distinct datagrams read from sockets.
    pub delivered: u64,
    /// Datagrams read again; `None` if datagrams have no numbers.
    pub duplicates: Option<u64>,
    /// Datagrams that are not the workload's own. The kernel's control packets are added.
    pub control: Vec<ControlLine>,
}

/// What joins the hosts, and so who counts a packet that was lost between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Between {
    /// A veth pair a hop: an end counts what the other one had no room for.
    #[default]
    Veth,
    /// Veths that something else joins, such as a bridge.
    DistantVeth,
    /// Cards, or other interfaces.
    Cards,
}

/// The hosts of a trial.
#[derive(Clone, Copy, Debug)]
pub struct LedgerHosts<'a> {
    /// The sending host.
    pub sender: Account<'a>,
    /// The forwarding host, if there is one.
    pub router: Option<Account<'a>>,
    /// The receiving host.
    pub receiver: Account<'a>,
    /// What joins them.
    pub between: Between,
    /// Whether IPv6 carries the traffic: then its counters are included.
    pub is_ipv6: bool,
}

impl<'a> LedgerHosts<'a> {
    /// Makes a pair of hosts connected directly, over IPv4.
    pub fn pair(sender: Account<'a>, receiver: Account<'a>) -> Self {
        LedgerHosts {
            sender,
            router: None,
            receiver,
            between: Between::Veth,
            is_ipv6: false,
        }
    }

    fn families(self) -> Families {
        match self.is_ipv6 {
            true => Families::All,
            false => Families::Ipv4,
        }
    }

    /// Returns the increase of a counter, over the interfaces of all hosts.
    fn frames(self, of: impl Fn(&LinkCounters) -> u64) -> Option<u64> {
        let hosts = [Some(self.sender), self.router, Some(self.receiver)];
        let hosts = hosts.into_iter().flatten();
        hosts
            .map(|host| host.interfaces(|one| Some(of(&one.link))))
            .sum()
    }

    /// Returns the two ends, each with its peer.
    fn ends(self) -> [(Side, Account<'a>, Account<'a>); 2] {
        [
            (Side::Sender, self.sender, self.receiver),
            (Side::Receiver, self.receiver, self.sender),
        ]
    }
}

/// Makes the ledger of a UDP trial, in datagrams.
pub fn packet_ledger(datagrams: CountedDatagrams, hosts: LedgerHosts<'_>) -> Ledger {
    let mut lines = loss_lines(hosts);
    lines.extend(beyond_counters(&lines, hosts));
    let filtered = lines
        .iter()
        .filter(|line| matches!(line.place, LossPlace::Nftables | LossPlace::Xdp))
        .any(|line| line.packets.is_some_and(|packets| packets > 0));
    for (side, host, _) in hosts.ends() {
        leave_out_refused(&mut lines, &datagrams.control, side, host);
    }
    let mut control = datagrams.control;
    // Behind a router is not the other end of the host's own link.
    if hosts.router.is_none() {
        control.extend(link_control(hosts, filtered));
    }
    let mut ledger = Ledger {
        offered_packets: Some(datagrams.offered),
        delivered_packets: Some(datagrams.delivered),
        duplicate_packets: datagrams.duplicates,
        lines,
        control,
        cross_checks: cross_checks(hosts),
        ..Ledger::default()
    };
    ledger.residual_packets = Some(ledger.balance_packets());
    ledger
}

/// Makes the ledger of a TCP trial, in bytes of payload. TCP retransmits dropped packets, so drops are not in the
/// balance: they are cross-checks.
pub fn tcp_ledger(offered_bytes: u64, delivered_bytes: u64, hosts: LedgerHosts<'_>) -> Ledger {
    let (sender, receiver) = (hosts.sender, hosts.receiver);
    let acknowledged = [
        receiver.protocol("Tcp.OutSegs"),
        sender.protocol("Tcp.InSegs"),
    ];
    let sent_again = [sender.protocol("Tcp.RetransSegs"), None];
    let mut control = vec![
        control_line(ControlKind::Acknowledgement, Side::Receiver, acknowledged),
        control_line(ControlKind::Retransmission, Side::Sender, sent_again),
    ];
    control.extend(discovery(hosts));
    let dropped = loss_lines(hosts).into_iter().filter_map(|line| {
        let counter = format!("packets, {}: {}", line.place, line.counter);
        check(
            line.side,
            counter,
            line.packets.filter(|&packets| packets > 0),
        )
    });
    let mut cross_checks = cross_checks(hosts);
    cross_checks.extend(dropped);
    Ledger {
        offered_bytes: Some(offered_bytes),
        delivered_bytes: Some(delivered_bytes),
        control,
        residual_bytes: Some(offered_bytes as i64 - delivered_bytes as i64),
        cross_checks,
        ..Ledger::default()
    }
}

/// Lines for datagrams dropped at a place beyond its counter, by drop reasons.
fn beyond_counters(lines: &[LedgerLine], hosts: LedgerHosts<'_>) -> Vec<LedgerLine> {
    let mut dropped: BTreeMap<(LossPlace, Side), Vec<DropReason>> = BTreeMap::new();
    for (side, host, _) in hosts.ends() {
        for reason in host.drop_reasons().unwrap_or_default() {
            match reason.place {
                // Drops by a driver are in tx_dropped, which the ring's line includes.
                None | Some(LossPlace::DeviceTx) => {}
                Some(place) => {
                    let side = if is_of_link(place) {
                        Side::Receiver
                    } else {
                        side
                    };
                    dropped.entry((place, side)).or_default().push(reason);
                }
            }
        }
    }
    let beyond = |((place, side), reasons): ((LossPlace, Side), Vec<DropReason>)| {
        let mut counted = lines
            .iter()
            .filter(|line| (line.place, line.side) == (place, side));
        let counted = counted.next().and_then(|line| line.packets).unwrap_or(0);
        let all: u64 = reasons.iter().map(|reason| reason.packets).sum();
        let udp = || {
            reasons
                .iter()
                .filter(|one| one.protocol == DropProtocol::Udp)
        };
        let of_udp: u64 = udp().map(|reason| reason.packets).sum();
        let packets = of_udp.min(all.saturating_sub(counted));
        let names: Vec<String> = udp().map(DropReason::name).collect();
        let less = if counted > 0 { " less the counter" } else { "" };
        let counter = format!("drop reason {}{less}", names.join(" + "));
        (packets > 0).then(|| line(place, side, &counter, Some(packets)))
    };
    dropped.into_iter().filter_map(beyond).collect()
}

/// Places where the kernel counts a send that it refused, in the order in which it would have passed them.
const REFUSED_AT: [LossPlace; 6] = [
    LossPlace::IpOutput,
    LossPlace::SendQueue,
    LossPlace::DeviceTx,
    LossPlace::Router,
    LossPlace::RxRing,
    LossPlace::Backlog,
];

/// Subtracts the sends that the kernel refused to a host's programs from the lines that count them.
fn leave_out_refused(
    lines: &mut [LedgerLine],
    control: &[ControlLine],
    side: Side,
    host: Account<'_>,
) {
    let of_kind = |kind| -> u64 {
        let own = control.iter();
        let own = own.filter(|line| (line.kind, line.from) == (kind, side));
        own.filter_map(|line| line.sent_packets).sum()
    };
    let mut leave_out = |mut packets: u64, places: &[LossPlace]| {
        for place in places {
            let is_here = |line: &&mut LedgerLine| {
                line.place == *place && (line.side == side || is_between(*place))
            };
            for line in lines.iter_mut().filter(is_here) {
                let counted = line.packets.unwrap_or(0);
                let refused = counted.min(packets);
                if refused > 0 {
                    line.packets = Some(counted - refused);
                    line.counter.push_str(" less refused sends");
                    packets -= refused;
                }
            }
        }
    };
    let filtered = of_kind(ControlKind::Filtered);
    leave_out(filtered, &[LossPlace::Nftables]);
    // IP also counts those that no rule counts.
    let uncounted = filtered.saturating_sub(host.filtered_out());
    leave_out(uncounted, &[LossPlace::IpOutput]);
    leave_out(of_kind(ControlKind::Refused), &REFUSED_AT);
}

/// Whether a place is between the hosts, in either direction.
fn is_between(place: LossPlace) -> bool {
    place.way() == Way::Line || is_of_link(place)
}

/// Returns a line for every place of the hosts, in the order in which a packet passes them.
fn loss_lines(hosts: LedgerHosts<'_>) -> Vec<LedgerLine> {
    let of_hosts = |is_way_out: bool| {
        hosts.ends().into_iter().flat_map(move |(side, host, _)| {
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

/// Returns the losses between the hosts: at the interfaces, on the wire, and at the router if there is one.
fn link_lines(hosts: LedgerHosts<'_>) -> Vec<LedgerLine> {
    match hosts.between {
        Between::Veth => veth_lines(hosts),
        Between::DistantVeth => {
            let mut lines = veth_lines(hosts);
            lines.insert(0, wire_line(hosts));
            lines
        }
        Between::Cards => card_lines(hosts),
    }
}

fn link_line(place: LossPlace, counter: &str, packets: Option<u64>) -> LedgerLine {
    line(place, Side::Receiver, counter, packets)
}

fn wire_line(hosts: LedgerHosts<'_>) -> LedgerLine {
    let sent = hosts.frames(|link| link.tx_packets);
    let arrived = hosts.frames(|link| link.rx_packets + link.rx_missed);
    link_line(
        LossPlace::Wire,
        "tx_packets of all hosts less their rx_packets and rx_missed_errors",
        sent.zip(arrived)
            .map(|(sent, arrived)| sent.saturating_sub(arrived)),
    )
}

fn card_lines(hosts: LedgerHosts<'_>) -> Vec<LedgerLine> {
    let (sender, receiver) = (hosts.sender, hosts.receiver);
    let mut lines = vec![
        line(
            LossPlace::DeviceTx,
            Side::Sender,
            "tx_dropped",
            sender.tx_dropped(),
        ),
        wire_line(hosts),
    ];
    if let Some(router) = hosts.router {
        let at_router = || {
            let interfaces = router.tx_dropped()? + router.lost_in_rings()?;
            let inside = forwarding_losses(router, hosts.families())?;
            Some(interfaces + router.softnet_dropped()? + inside)
        };
        let counter =
            "its interfaces (tx_dropped, rx_missed_errors), backlog, IP, filters and queues";
        lines.push(link_line(LossPlace::Router, counter, at_router()));
    }
    let (ring, backlog) = (receiver.lost_in_rings(), receiver.softnet_dropped());
    lines.push(link_line(LossPlace::RxRing, "rx_missed_errors", ring));
    lines.push(link_line(
        LossPlace::Backlog,
        "softnet_stat dropped",
        backlog,
    ));
    lines
}

fn veth_lines(hosts: LedgerHosts<'_>) -> Vec<LedgerLine> {
    let backlog = hosts.sender.softnet_dropped();
    let ends = hosts.ends().map(|(_, host, _)| host.tx_dropped());
    let ends: Option<u64> = ends.into_iter().sum();
    let behind = link_line(LossPlace::Backlog, "softnet_stat dropped", backlog);
    let Some(router) = hosts.router else {
        let in_ring = || Some(ends?.saturating_sub(backlog?));
        let counter = "tx_dropped of both ends less softnet_stat's dropped";
        return vec![link_line(LossPlace::RxRing, counter, in_ring()), behind];
    };
    // It is unknown whose backlog it was; the receiver's ring is taken to come first.
    let onward = router.tx_dropped();
    let in_ring = || Some(onward?.saturating_sub(backlog?));
    let at_router = || {
        let spilled = backlog?.saturating_sub(onward?);
        Some(ends?.saturating_sub(spilled) + forwarding_losses(router, hosts.families())?)
    };
    vec![
        link_line(
            LossPlace::Router,
            "its rings (tx_dropped of both hosts), IP, filters and queues",
            at_router(),
        ),
        link_line(
            LossPlace::RxRing,
            "the router's tx_dropped less softnet_stat's dropped",
            in_ring(),
        ),
        behind,
    ]
}

/// Losses of a router at its own places.
fn forwarding_losses(router: Account<'_>, families: Families) -> Option<u64> {
    let own = COUNTED.iter().filter(|counted| !is_of_link(counted.place));
    own.map(|counted| counted.packets(router, families)).sum()
}

/// Whether both ends of a link count the place together.
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

fn cross_checks(hosts: LedgerHosts<'_>) -> Vec<CrossCheck> {
    let mut checks = Vec::new();
    for (side, host, _) in hosts.ends() {
        let link = |of: fn(&LinkCounters) -> u64| host.interfaces(|one| Some(of(&one.link)));
        let frames = [
            ("tx_packets", link(|link| link.tx_packets)),
            ("tx_dropped", link(|link| link.tx_dropped)),
            ("rx_packets", link(|link| link.rx_packets)),
            ("rx_dropped", link(|link| link.rx_dropped)),
        ];
        let protocols = [
            "Ip.OutDiscards",
            "Udp.SndbufErrors",
            "Udp.InErrors",
            "Udp.InDatagrams",
        ];
        let protocols = protocols.map(|name| (name, host.protocol(name)));
        let gaps = host.drop_reason_gaps().map(|gaps| {
            [
                ("no room", Some(gaps.overflow_packets)),
                (
                    "of no known namespace of the machine",
                    Some(gaps.unattributed_packets),
                ),
                ("not seen on the machine", gaps.missed_events),
            ]
        });
        let counted = frames.into_iter().chain(protocols);
        checks.extend(counted.filter_map(|(name, packets)| check(side, name, packets)));
        checks.extend(
            gaps.into_iter().flatten().filter_map(|(what, packets)| {
                check(side, format!("drop reasons: {what}"), packets)
            }),
        );
    }
    if let Some(router) = hosts.router {
        for (name, family) in [
            ("Ip.ForwDatagrams", "IPv4"),
            ("Ip6OutForwDatagrams", "IPv6"),
        ] {
            let counter = format!("forwarded by the router, {family} ({name})");
            checks.extend(check(Side::Receiver, counter, router.protocol(name)));
        }
    }
    checks
}

fn check(side: Side, counter: impl Into<String>, packets: Option<u64>) -> Option<CrossCheck> {
    Some(CrossCheck {
        side,
        counter: counter.into(),
        packets: packets?,
    })
}

/// A line of control packets outside the balance: sent by a host, and received by its peer.
fn control_line(kind: ControlKind, from: Side, [sent, received]: [Option<u64>; 2]) -> ControlLine {
    ControlLine {
        kind,
        from,
        sent_packets: sent,
        received_packets: received,
        in_balance: false,
    }
}

/// ARP and neighbour discovery of a UDP trial. Packets dropped by a filter make the receiving side's count of non-IP
/// frames meaningless.
fn link_control(hosts: LedgerHosts<'_>, filtered: bool) -> Vec<ControlLine> {
    let arp = hosts.ends().map(|(from, host, peer)| {
        let sent = frames_besides_ip(
            host.interfaces(|one| Some(one.link.tx_packets + one.link.tx_dropped)),
            sum(host, ["Ip.OutTransmits", "Ip6OutTransmits"]),
        );
        let received = frames_besides_ip(
            peer.interfaces(|one| Some(one.link.rx_packets)),
            sum(peer, ["Ip.InReceives", "Ip6InReceives"]),
        );
        control_line(
            ControlKind::Arp,
            from,
            [sent, received.filter(|_| !filtered)],
        )
    });
    arp.into_iter().chain(discovery(hosts)).collect()
}

/// Frames that no IP layer counted. `None` if this kernel does not count what IP transmits (before Linux 6.9), or if IP
/// counted packets that never became frames.
fn frames_besides_ip(frames: Option<u64>, ip_packets: Option<u64>) -> Option<u64> {
    frames?.checked_sub(ip_packets?)
}

/// Sums the counters of both IP families. `None` if this kernel lacks one of them.
fn sum(host: Account<'_>, names: [&str; 2]) -> Option<u64> {
    names.iter().map(|name| host.protocol(name)).sum()
}

fn discovery(hosts: LedgerHosts<'_>) -> [ControlLine; 2] {
    hosts.ends().map(|(from, host, peer)| {
        let counts = [host.protocol("Icmp6OutMsgs"), peer.protocol("Icmp6InMsgs")];
        control_line(ControlKind::NeighbourDiscovery, from, counts)
    })
}

#[cfg(test)]
mod tests;
