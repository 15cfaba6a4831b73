//! Where one host lost packets, by its counters. The only place that says which counter counts what.
//!
//! What must hold: each packet is counted as lost at one place at the most, as far as the kernel tells them apart.
//! Where it gives drop reasons, a place holds at least what these put there, of all protocols that its counter
//! counts: what a rule without a counter drops cannot hide behind what another one counted. It counts many a loss
//! in several counters:
//!
//! - A drop by the qdisc shows in its own count, in Udp.SndbufErrors and in Ip.OutDiscards, and one by a filter on
//!   the way out in its rule's counter and in Ip.OutDiscards. The line is the qdisc's, or the rule's; IP's own is what
//!   OutDiscards counts beyond qdiscs, filters and interfaces. That has sends for which the socket had no room, too.
//! - Udp.InErrors contains RcvbufErrors, InCsumErrors and MemErrors; those three are the lines.
//! - A backlog drop shows in softnet_stat, for the machine, and in the receiving interface's rx_dropped, for the
//!   host. On veth it shows in the sending interface's tx_dropped too, as does a full ring: what that counted beyond
//!   the receiving end's rx_dropped was lost in the ring.
//!
//! What could not be read is `None`, and so is a count of interfaces one of which went away meanwhile.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use nicpoll_model::{
    DropProtocol, DropReason, DropReasonGaps, Drops, LossPlace, UncountedLoss, Way,
};

use crate::host::{HostSnapshot, InterfaceCounters};

/// One host's counters at the beginning and at the end.
#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    /// Before the first packet.
    pub before: &'a HostSnapshot,
    /// After the last one.
    pub after: &'a HostSnapshot,
}

type Interfaces = BTreeMap<u32, InterfaceCounters>;

/// Whose counters of IP and UDP count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Families {
    /// IPv4's alone.
    Ipv4,
    /// Both. IPv6 that is switched off has no counters, and nothing to count.
    All,
}

/// How a host counts the packets that are lost at a place.
pub(crate) struct Counted {
    /// The place.
    pub place: LossPlace,
    /// The kernel's counters, by their own names.
    pub counter: &'static str,
    /// Whether they count datagrams of UDP alone.
    udp_only: bool,
    read: fn(Account<'_>, Families) -> Option<u64>,
}

impl Counted {
    /// How many there were.
    pub fn packets(&self, account: Account<'_>, families: Families) -> Option<u64> {
        (self.read)(account, families)
    }

    /// Packets of the kinds that the counter counts, by the kernel's reasons.
    pub fn by_reason(&self, reasons: &[DropReason]) -> u64 {
        let here = reasons.iter().filter(|reason| self.holds(reason));
        here.map(|reason| reason.packets).sum()
    }

    fn holds(&self, reason: &DropReason) -> bool {
        let is_kind = !self.udp_only || reason.protocol == DropProtocol::Udp;
        reason.place == Some(self.place) && is_kind
    }
}

fn has_counter(place: LossPlace) -> bool {
    COUNTED.iter().any(|counted| counted.place == place)
}

/// Every place of a host, in the order in which a packet passes them.
pub(crate) const COUNTED: [Counted; 13] = [
    Counted {
        place: LossPlace::IpOutput,
        counter: "Ip.OutDiscards less qdisc drops, tx_dropped and what filters dropped on the way out",
        udp_only: false,
        read: |account, families| {
            let all = account.protocols(&["Ip.OutDiscards"], families)?;
            let below = account.qdisc_drops()? + account.tx_dropped()?;
            Some(all.saturating_sub(below + account.filtered_out()))
        },
    },
    Counted {
        place: LossPlace::SendQueue,
        counter: "root qdisc drops",
        udp_only: false,
        read: |account, _| account.qdisc_drops(),
    },
    Counted {
        place: LossPlace::DeviceTx,
        counter: "tx_dropped",
        udp_only: false,
        read: |account, _| account.tx_dropped(),
    },
    Counted {
        place: LossPlace::RxRing,
        counter: "rx_missed_errors, and tx_dropped of a veth's other end less rx_dropped",
        udp_only: false,
        read: |account, _| account.lost_in_rings(),
    },
    Counted {
        place: LossPlace::Xdp,
        counter: "rx_queue_N_xdp_drops",
        udp_only: false,
        read: |account, _| account.interfaces(|one| one.xdp_drops),
    },
    Counted {
        place: LossPlace::DeviceRx,
        counter: "rx_dropped",
        udp_only: false,
        read: |account, _| account.interfaces(|one| Some(one.link.rx_dropped)),
    },
    Counted {
        place: LossPlace::Backlog,
        counter: "softnet_stat dropped",
        udp_only: false,
        read: |account, _| account.softnet_dropped(),
    },
    Counted {
        place: LossPlace::Nftables,
        counter: "counters of nftables and iptables rules that drop",
        udp_only: false,
        read: |account, _| difference(account.after.nftables_drops, account.before.nftables_drops),
    },
    Counted {
        place: LossPlace::IpInput,
        counter: "Ip.InHdrErrors + InAddrErrors + InUnknownProtos + InDiscards + TcpExt.IPReversePathFilter",
        udp_only: false,
        read: |account, families| {
            let names = [
                "Ip.InHdrErrors",
                "Ip.InAddrErrors",
                "Ip.InUnknownProtos",
                "Ip.InDiscards",
            ];
            let refused = account.protocols(&names, families)?;
            Some(refused + account.protocol("TcpExt.IPReversePathFilter").unwrap_or(0))
        },
    },
    Counted {
        place: LossPlace::NoSocket,
        counter: "Udp.NoPorts",
        udp_only: true,
        read: |account, families| account.protocols(&["Udp.NoPorts"], families),
    },
    Counted {
        place: LossPlace::Checksum,
        counter: "Udp.InCsumErrors",
        udp_only: true,
        read: |account, families| account.protocols(&["Udp.InCsumErrors"], families),
    },
    Counted {
        place: LossPlace::ProtocolMemory,
        counter: "Udp.MemErrors",
        udp_only: true,
        read: |account, families| account.protocols(&["Udp.MemErrors"], families),
    },
    Counted {
        place: LossPlace::SocketBuffer,
        counter: "Udp.RcvbufErrors",
        udp_only: true,
        read: |account, families| account.protocols(&["Udp.RcvbufErrors"], families),
    },
];

impl Account<'_> {
    /// Packets that the host dropped, by place, of IPv4 and IPv6 together.
    pub fn drops(self) -> Drops {
        let reasons = self.drop_reasons().unwrap_or_default();
        let packets = |counted: &Counted| {
            let by_counter = counted.packets(self, Families::All);
            let by_reason = counted.by_reason(&reasons);
            let packets = match by_counter {
                Some(packets) => Some(packets.max(by_reason)),
                None => (by_reason > 0).then_some(by_reason),
            };
            (counted.place, packets)
        };
        let mut drops: BTreeMap<_, _> = COUNTED.iter().map(packets).collect();
        for reason in &reasons {
            if let Some(place) = reason.place.filter(|place| !has_counter(*place)) {
                let packets: &mut Option<u64> = drops.entry(place).or_default();
                *packets = Some(packets.unwrap_or(0) + reason.packets);
            }
        }
        Drops(drops)
    }

    /// Packets that were dropped between the two moments, by the kernel's reasons, most first; `None` when these were
    /// not watched.
    pub fn drop_reasons(self) -> Option<Vec<DropReason>> {
        let before = self.before.drop_reasons.as_ref()?;
        let grown = |now: &DropReason| {
            let key = |one: &DropReason| (one.name(), one.protocol);
            let then = before.iter().find(|then| key(then) == key(now));
            let packets = now
                .packets
                .saturating_sub(then.map_or(0, |then| then.packets));
            (packets > 0).then(|| DropReason {
                packets,
                ..now.clone()
            })
        };
        let after = self.after.drop_reasons.as_ref()?;
        let mut reasons: Vec<DropReason> = after.iter().filter_map(grown).collect();
        reasons.sort_by_key(|reason| Reverse(reason.packets));
        Some(reasons)
    }

    /// Packets that were dropped between the two moments and that the reasons leave out; `None` when these were not
    /// watched.
    pub fn drop_reason_gaps(self) -> Option<DropReasonGaps> {
        let now = self.after.drop_reason_gaps?;
        Some(now.since(self.before.drop_reason_gaps?))
    }

    /// Where the host lost packets that no counter has, or may have lost some.
    pub fn uncounted(self) -> Vec<UncountedLoss> {
        let Some(reasons) = self.drop_reasons() else {
            return self.maybe_uncounted();
        };
        let beyond = |counted: &Counted| {
            let by_counter = counted.packets(self, Families::All).unwrap_or(0);
            let packets = counted.by_reason(&reasons).saturating_sub(by_counter);
            let at_place = reasons.iter().filter(|reason| counted.holds(reason));
            let names: Vec<String> = at_place.map(DropReason::name).collect();
            (packets > 0).then(|| UncountedLoss {
                place: counted.place,
                packets: Some(packets),
                by: names.join(" or "),
                ways: vec![counted.place.way()],
            })
        };
        COUNTED.iter().filter_map(beyond).collect()
    }

    /// What can drop without counting. A queue counts a batch of datagrams as one packet.
    fn maybe_uncounted(self) -> Vec<UncountedLoss> {
        let mut found = self.before.uncounted.clone();
        for after in &self.after.uncounted {
            if !found.contains(after) {
                found.push(after.clone());
            }
        }
        let queues = COUNTED.iter().filter(|counted| {
            matches!(counted.place, LossPlace::SendQueue | LossPlace::DeviceTx)
                && counted.packets(self, Families::All) > Some(0)
        });
        found.extend(queues.map(|counted| UncountedLoss {
            place: counted.place,
            packets: None,
            by: String::from("a batch of datagrams that is dropped whole counts as one packet"),
            ways: vec![counted.place.way()],
        }));
        found
    }

    /// The growth of one counter of a protocol.
    pub(crate) fn protocol(self, name: &str) -> Option<u64> {
        let [after, before] = [self.after, self.before].map(|one| one.protocols.get(name).copied());
        difference(after, before)
    }

    fn protocols(self, names: &[&str], families: Families) -> Option<u64> {
        let grown = |name: &&str| {
            let ipv4 = self.protocol(name)?;
            let ipv6 = match families {
                Families::Ipv4 => None,
                // `Udp.NoPorts` is `Udp6NoPorts` there.
                Families::All => self.protocol(&name.replace('.', "6")),
            };
            Some(ipv4 + ipv6.unwrap_or(0))
        };
        names.iter().map(grown).sum()
    }

    /// The growth of a counter, all interfaces together. An interface that is new counted from 0.
    pub(crate) fn interfaces(
        self,
        counter: impl Fn(&InterfaceCounters) -> Option<u64>,
    ) -> Option<u64> {
        let (before, after) = self.both_interfaces()?;
        let grown = |(index, now): (&u32, &InterfaceCounters)| {
            let then = before.get(index).map_or(Some(0), &counter);
            difference(counter(now), then)
        };
        after.iter().map(grown).sum()
    }

    /// `None` when an interface of the beginning is gone: what it had dropped until then is not known.
    fn both_interfaces(&self) -> Option<(&Interfaces, &Interfaces)> {
        let (before, after) = (
            self.before.interfaces.as_ref()?,
            self.after.interfaces.as_ref()?,
        );
        let is_whole = before.keys().all(|index| after.contains_key(index));
        is_whole.then_some((before, after))
    }

    /// What rules dropped on the way out, by their counters, and by drop reasons where rules without one may be what
    /// dropped.
    pub(crate) fn filtered_out(self) -> u64 {
        let [after, before] = [self.after, self.before].map(|one| one.nftables_drops_out);
        let counted = difference(after, before).unwrap_or(0);
        let may_drop = self.after.uncounted.iter().chain(&self.before.uncounted);
        let mut may_drop = may_drop.filter(|one| one.place == LossPlace::Nftables);
        if !may_drop.any(|one| one.ways.contains(&Way::Out)) {
            return counted;
        }
        let reasons = self.drop_reasons().unwrap_or_default();
        let of_filters = |reason: &&DropReason| {
            reason.place == Some(LossPlace::Nftables) && reason.protocol == DropProtocol::Udp
        };
        let told: u64 = reasons
            .iter()
            .filter(of_filters)
            .map(|one| one.packets)
            .sum();
        let all = difference(self.after.nftables_drops, self.before.nftables_drops).unwrap_or(0);
        counted + told.saturating_sub(all)
    }

    fn qdisc_drops(self) -> Option<u64> {
        self.interfaces(|one| one.qdisc_drops)
    }

    pub(crate) fn tx_dropped(self) -> Option<u64> {
        self.interfaces(|one| Some(one.link.tx_dropped))
    }

    /// What the cards had no descriptor for, and what the rings of veths had no room for.
    fn lost_in_rings(self) -> Option<u64> {
        let (before, after) = self.both_interfaces()?;
        let lost = |(index, now): (&u32, &InterfaceCounters)| {
            let new = InterfaceCounters {
                peer_tx_dropped: Some(0),
                ..InterfaceCounters::default()
            };
            let then = before.get(index).unwrap_or(&new);
            let by_peer = difference(now.peer_tx_dropped, then.peer_tx_dropped)?;
            let in_backlog = now.link.rx_dropped.saturating_sub(then.link.rx_dropped);
            let missed = now.link.rx_missed.saturating_sub(then.link.rx_missed);
            Some(missed + by_peer.saturating_sub(in_backlog))
        };
        after.iter().map(lost).sum()
    }

    /// Each core's count is of 32 bits and wraps.
    pub(crate) fn softnet_dropped(self) -> Option<u64> {
        let after = self.after.softnet_dropped.as_ref()?;
        let cores = after.iter().zip(self.before.softnet_dropped.as_ref()?);
        Some(
            cores
                .map(|(after, before)| u64::from(after.wrapping_sub(*before)))
                .sum(),
        )
    }
}

/// The growth of a counter.
pub(crate) fn difference(after: Option<u64>, before: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

#[cfg(test)]
mod tests;
