//! Builds a trial's ledger from what the programs counted and from both hosts' counters.
//!
//! What must hold: each packet is counted as lost at one place at the most. Where the kernel counts a
//! loss in several counters, one is a line and the others are cross-checks:
//!
//! - A backlog drop on veth shows in softnet_stat, in the sending interface's tx_dropped, in the
//!   receiving one's rx_dropped and in the sending host's Udp.SndbufErrors. The line is softnet's.
//! - A full ring shows in tx_dropped, SndbufErrors and Ip.OutDiscards. The line is tx_dropped less
//!   softnet's count.
//! - A drop by the qdisc shows in its own count, in SndbufErrors and in Ip.OutDiscards. The line is the
//!   qdisc's; IP's own is what OutDiscards counts beyond qdisc and interface.
//! - Udp.InErrors contains RcvbufErrors, InCsumErrors and MemErrors; those three are the lines.
//!
//! The trials run over IPv4, so the protocol counters are IPv4's; IPv6 control traffic cannot be
//! mistaken for a loss then.

use nicpoll_model::{
    ControlKind, ControlLine, CrossCheck, Ledger, LedgerLine, LedgerUnit, Place, Side,
};

use crate::host::HostSnapshot;

/// One host's counters before and after a trial.
#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    /// Before the first packet.
    pub before: &'a HostSnapshot,
    /// After the last one was drained.
    pub after: &'a HostSnapshot,
}

impl Account<'_> {
    fn protocol(&self, name: &str) -> Option<u64> {
        let after = self.after.protocol(name)?;
        Some(after.saturating_sub(self.before.protocol(name)?))
    }

    fn protocols(&self, names: &[&str]) -> Option<u64> {
        names.iter().map(|name| self.protocol(name)).sum()
    }

    fn read(&self, counter: impl Fn(&HostSnapshot) -> Option<u64>) -> Option<u64> {
        Some(counter(self.after)?.saturating_sub(counter(self.before)?))
    }

    fn link(&self, counter: impl Fn(&HostSnapshot) -> u64) -> u64 {
        counter(self.after).saturating_sub(counter(self.before))
    }

    /// The columns are of 32 bits and wrap.
    fn softnet_dropped(&self) -> u64 {
        let pairs = self
            .after
            .softnet_dropped
            .iter()
            .zip(&self.before.softnet_dropped);
        pairs
            .map(|(after, before)| u64::from(after.wrapping_sub(*before)))
            .sum()
    }
}

/// The ledger of a UDP trial, in datagrams. `control` names the datagrams besides the workload's own
/// that the programs counted; the kernel's control packets are added here.
pub fn packet_ledger(
    offered: u64,
    delivered: u64,
    mut control: Vec<ControlLine>,
    sender: Account<'_>,
    receiver: Account<'_>,
) -> Ledger {
    let lines = loss_lines(sender, receiver);
    let filtered = lines
        .iter()
        .filter(|line| matches!(line.place, Place::Nftables | Place::Xdp))
        .any(|line| line.packets.is_some_and(|packets| packets > 0));
    control.extend(link_control(sender, receiver, filtered));
    let mut ledger = Ledger {
        unit: LedgerUnit::Packets,
        offered,
        delivered,
        lines,
        control,
        residual_packets: None,
        residual_bytes: None,
        cross_checks: cross_checks(sender, receiver),
    };
    ledger.residual_packets = Some(ledger.balance_packets());
    ledger
}

/// The ledger of a TCP trial, in bytes of payload. Its lines say what was dropped where; TCP sent that
/// again, so they take no part in the balance.
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
            sent: receiver.protocol("Tcp.OutSegs"),
            received: sender.protocol("Tcp.InSegs"),
            in_balance: false,
        },
        ControlLine {
            kind: ControlKind::Retransmission,
            from: Side::Sender,
            sent: sender.protocol("Tcp.RetransSegs"),
            received: None,
            in_balance: false,
        },
    ];
    control.extend(discovery(sender, receiver));
    Ledger {
        unit: LedgerUnit::Bytes,
        offered: offered_bytes,
        delivered: delivered_bytes,
        lines: loss_lines(sender, receiver),
        control,
        residual_packets: None,
        residual_bytes: Some(offered_bytes as i64 - delivered_bytes as i64),
        cross_checks: cross_checks(sender, receiver),
    }
}

/// Every place of both hosts, in the order in which a packet passes them.
fn loss_lines(sender: Account<'_>, receiver: Account<'_>) -> Vec<LedgerLine> {
    let sides = [(Side::Sender, sender), (Side::Receiver, receiver)];
    let mut lines = Vec::new();
    for (side, host) in sides {
        lines.extend(output_lines(side, host));
    }
    let backlog = sender.softnet_dropped();
    let tx_dropped: u64 = sides
        .iter()
        .map(|(_, host)| host.link(|snapshot| snapshot.link.tx_dropped))
        .sum();
    lines.extend([
        line(
            Place::DeviceRing,
            Side::Receiver,
            "tx_dropped of both ends less softnet_stat's dropped",
            Some(tx_dropped.saturating_sub(backlog)),
        ),
        line(
            Place::SoftnetBacklog,
            Side::Receiver,
            "softnet_stat dropped",
            Some(backlog),
        ),
    ]);
    for (side, host) in sides {
        lines.extend(input_lines(side, host));
    }
    lines
}

fn line(place: Place, side: Side, counter: &str, packets: Option<u64>) -> LedgerLine {
    LedgerLine {
        place,
        side,
        counter: String::from(counter),
        packets,
    }
}

fn output_lines(side: Side, host: Account<'_>) -> [LedgerLine; 3] {
    // A qdisc without statistics (noqueue) has no queue to drop from.
    let qdisc = host.read(|snapshot| snapshot.qdisc_drops).unwrap_or(0);
    let below_ip = qdisc + host.link(|snapshot| snapshot.link.tx_dropped);
    let discarded = host.protocol("Ip.OutDiscards");
    [
        line(
            Place::IpOutput,
            side,
            "Ip.OutDiscards less qdisc drops and tx_dropped",
            discarded.map(|discarded| discarded.saturating_sub(below_ip)),
        ),
        line(
            Place::Nftables,
            side,
            "counters of nftables rules that drop",
            host.read(|snapshot| snapshot.nftables_drops),
        ),
        line(Place::Qdisc, side, "root qdisc drops", Some(qdisc)),
    ]
}

fn input_lines(side: Side, host: Account<'_>) -> [LedgerLine; 6] {
    let udp = |place, counter| line(place, side, counter, host.protocol(counter));
    [
        line(
            Place::Xdp,
            side,
            "rx_queue_N_xdp_drops",
            host.read(|snapshot| snapshot.xdp_drops),
        ),
        line(
            Place::IpInput,
            side,
            "Ip.InHdrErrors + InAddrErrors + InUnknownProtos + InDiscards",
            host.protocols(&[
                "Ip.InHdrErrors",
                "Ip.InAddrErrors",
                "Ip.InUnknownProtos",
                "Ip.InDiscards",
            ]),
        ),
        udp(Place::NoSocket, "Udp.NoPorts"),
        udp(Place::Checksum, "Udp.InCsumErrors"),
        udp(Place::ProtocolMemory, "Udp.MemErrors"),
        udp(Place::SocketBuffer, "Udp.RcvbufErrors"),
    ]
}

fn cross_checks(sender: Account<'_>, receiver: Account<'_>) -> Vec<CrossCheck> {
    let mut checks = Vec::new();
    for (side, host) in [(Side::Sender, sender), (Side::Receiver, receiver)] {
        let mut check = |counter: &str, count: Option<u64>| {
            checks.extend(count.map(|count| CrossCheck {
                side,
                counter: String::from(counter),
                count,
            }));
        };
        check(
            "tx_packets",
            Some(host.link(|snapshot| snapshot.link.tx_packets)),
        );
        check(
            "tx_dropped",
            Some(host.link(|snapshot| snapshot.link.tx_dropped)),
        );
        check(
            "rx_packets",
            Some(host.link(|snapshot| snapshot.link.rx_packets)),
        );
        check(
            "rx_dropped",
            Some(host.link(|snapshot| snapshot.link.rx_dropped)),
        );
        check("Ip.OutDiscards", host.protocol("Ip.OutDiscards"));
        check("Udp.SndbufErrors", host.protocol("Udp.SndbufErrors"));
        check("Udp.InErrors", host.protocol("Udp.InErrors"));
        check("Udp.InDatagrams", host.protocol("Udp.InDatagrams"));
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
            sent: frames_besides_ip(
                host.link(|snapshot| snapshot.link.tx_packets + snapshot.link.tx_dropped),
                host.protocols(&["Ip.OutTransmits", "Ip6OutTransmits"]),
            ),
            received: frames_besides_ip(
                peer.link(|snapshot| snapshot.link.rx_packets),
                peer.protocols(&["Ip.InReceives", "Ip6InReceives"]),
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
fn frames_besides_ip(frames: u64, ip_packets: Option<u64>) -> Option<u64> {
    frames.checked_sub(ip_packets?)
}

fn discovery(sender: Account<'_>, receiver: Account<'_>) -> [ControlLine; 2] {
    [
        (Side::Sender, sender, receiver),
        (Side::Receiver, receiver, sender),
    ]
    .map(|(from, host, peer)| ControlLine {
        kind: ControlKind::NeighbourDiscovery,
        from,
        sent: host.protocol("Icmp6OutMsgs"),
        received: peer.protocol("Icmp6InMsgs"),
        in_balance: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::LinkCounters;

    fn host(tx: u64, tx_dropped: u64, rx: u64, protocols: &[(&str, u64)]) -> HostSnapshot {
        HostSnapshot {
            link: LinkCounters {
                tx_packets: tx,
                tx_dropped,
                rx_packets: rx,
                ..LinkCounters::default()
            },
            qdisc_drops: None,
            nftables_drops: Some(0),
            xdp_drops: Some(0),
            protocols: protocols
                .iter()
                .map(|&(name, count)| (String::from(name), count))
                .collect(),
            softnet_dropped: vec![0, 0],
        }
    }

    fn packets(ledger: &Ledger, place: Place, side: Side) -> Option<u64> {
        ledger
            .lines
            .iter()
            .find(|line| line.place == place && line.side == side)
            .unwrap()
            .packets
    }

    #[test]
    fn a_backlog_drop_is_counted_once() {
        let zero = host(0, 0, 0, &[("Udp.RcvbufErrors", 0)]);
        let mut sender = host(900, 100, 0, &[("Udp.RcvbufErrors", 0)]);
        let mut receiver = host(0, 0, 900, &[("Udp.RcvbufErrors", 50)]);
        // 30 of the 100 in the backlog, across the wrap of a 32-bit count; 70 in the ring.
        let mut before = zero.clone();
        before.softnet_dropped = vec![u32::MAX - 9, 0];
        sender.softnet_dropped = vec![20, 0];
        receiver.softnet_dropped = vec![20, 0];
        let account = |after| Account {
            before: &before,
            after,
        };
        let ledger = packet_ledger(1000, 850, vec![], account(&sender), account(&receiver));
        assert_eq!(
            packets(&ledger, Place::SoftnetBacklog, Side::Receiver),
            Some(30)
        );
        assert_eq!(
            packets(&ledger, Place::DeviceRing, Side::Receiver),
            Some(70)
        );
        assert_eq!(
            packets(&ledger, Place::SocketBuffer, Side::Receiver),
            Some(50)
        );
        assert_eq!(ledger.residual_packets, Some(0));
    }

    #[test]
    fn what_the_qdisc_and_the_interface_dropped_is_not_ips_loss_too() {
        let names = |discards| [("Ip.OutDiscards", discards)];
        let mut before = host(0, 0, 0, &names(0));
        let mut after = host(0, 10, 0, &names(37));
        before.qdisc_drops = Some(0);
        after.qdisc_drops = Some(25);
        let sender = Account {
            before: &before,
            after: &after,
        };
        let [ip, _, qdisc] = output_lines(Side::Sender, sender);
        assert_eq!((ip.packets, qdisc.packets), (Some(2), Some(25)));
    }

    #[test]
    fn a_missing_counter_is_null_and_leaves_its_loss_in_the_residual() {
        let (before, after) = (host(0, 0, 0, &[]), host(10, 0, 10, &[]));
        let account = Account {
            before: &before,
            after: &after,
        };
        let ledger = packet_ledger(10, 7, vec![], account, account);
        assert_eq!(packets(&ledger, Place::SocketBuffer, Side::Receiver), None);
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
        assert_eq!(arp(false).sent, Some(2));
        assert_eq!(arp(true).received, None);
        assert_eq!(frames_besides_ip(5, Some(6)), None);
    }

    #[test]
    fn tcp_closes_in_bytes() {
        let zero = host(0, 0, 0, &[]);
        let account = Account {
            before: &zero,
            after: &zero,
        };
        let ledger = tcp_ledger(1000, 990, account, account);
        assert_eq!(ledger.residual_bytes, Some(10));
        assert_eq!(ledger.residual_packets, None);
    }
}
