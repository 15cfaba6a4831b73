//! Where one host lost packets, by its counters. The only place that says which counter counts what.
//!
//! What must hold: each packet is counted as lost at one place at the most, as far as the kernel tells them apart.
//! It counts many a loss in several counters:
//!
//! - A drop by the qdisc shows in its own count, in Udp.SndbufErrors and in Ip.OutDiscards. The line is the
//!   qdisc's; IP's own is what OutDiscards counts beyond qdiscs and interfaces.
//! - Udp.InErrors contains RcvbufErrors, InCsumErrors and MemErrors; those three are the lines.
//! - A backlog drop shows in softnet_stat, for the machine, and in the receiving interface's rx_dropped, for the
//!   host. On veth it shows in the sending interface's tx_dropped too, as does a full ring; the
//!   [ledger of a trial](crate::packet_ledger), which sees both ends, tells these apart.
//!
//! What could not be read is `None`, and so is a count of interfaces one of which went away meanwhile.

use std::collections::BTreeMap;

use nicpoll_model::{Drops, LossPlace};

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
    read: fn(Account<'_>, Families) -> Option<u64>,
}

impl Counted {
    /// How many there were.
    pub fn packets(&self, account: Account<'_>, families: Families) -> Option<u64> {
        (self.read)(account, families)
    }
}

/// Every place of a host, in the order in which a packet passes them.
pub(crate) const COUNTED: [Counted; 12] = [
    Counted {
        place: LossPlace::IpOutput,
        counter: "Ip.OutDiscards less qdisc drops and tx_dropped",
        read: |account, families| {
            let all = account.protocols(&["Ip.OutDiscards"], families)?;
            Some(all.saturating_sub(account.qdisc_drops()? + account.tx_dropped()?))
        },
    },
    Counted {
        place: LossPlace::SendQueue,
        counter: "root qdisc drops",
        read: |account, _| account.qdisc_drops(),
    },
    Counted {
        place: LossPlace::DeviceTx,
        counter: "tx_dropped",
        read: |account, _| account.tx_dropped(),
    },
    Counted {
        place: LossPlace::Xdp,
        counter: "rx_queue_N_xdp_drops",
        read: |account, _| account.interfaces(|one| one.xdp_drops),
    },
    Counted {
        place: LossPlace::DeviceRx,
        counter: "rx_dropped",
        read: |account, _| account.interfaces(|one| Some(one.link.rx_dropped)),
    },
    Counted {
        place: LossPlace::Backlog,
        counter: "softnet_stat dropped",
        read: |account, _| account.softnet_dropped(),
    },
    Counted {
        place: LossPlace::Nftables,
        counter: "counters of nftables rules that drop",
        read: |account, _| difference(account.after.nftables_drops, account.before.nftables_drops),
    },
    Counted {
        place: LossPlace::IpInput,
        counter: "Ip.InHdrErrors + InAddrErrors + InUnknownProtos + InDiscards",
        read: |account, families| {
            let names = [
                "Ip.InHdrErrors",
                "Ip.InAddrErrors",
                "Ip.InUnknownProtos",
                "Ip.InDiscards",
            ];
            account.protocols(&names, families)
        },
    },
    Counted {
        place: LossPlace::NoSocket,
        counter: "Udp.NoPorts",
        read: |account, families| account.protocols(&["Udp.NoPorts"], families),
    },
    Counted {
        place: LossPlace::Checksum,
        counter: "Udp.InCsumErrors",
        read: |account, families| account.protocols(&["Udp.InCsumErrors"], families),
    },
    Counted {
        place: LossPlace::ProtocolMemory,
        counter: "Udp.MemErrors",
        read: |account, families| account.protocols(&["Udp.MemErrors"], families),
    },
    Counted {
        place: LossPlace::SocketBuffer,
        counter: "Udp.RcvbufErrors",
        read: |account, families| account.protocols(&["Udp.RcvbufErrors"], families),
    },
];

impl Account<'_> {
    /// Packets that the host dropped, by place, of IPv4 and IPv6 together.
    pub fn drops(self) -> Drops {
        let packets = |counted: &Counted| (counted.place, counted.packets(self, Families::All));
        Drops(COUNTED.iter().map(packets).collect())
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

    fn qdisc_drops(self) -> Option<u64> {
        self.interfaces(|one| one.qdisc_drops)
    }

    pub(crate) fn tx_dropped(self) -> Option<u64> {
        self.interfaces(|one| Some(one.link.tx_dropped))
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
mod tests {
    use super::*;
    use crate::host::LinkCounters;

    fn interface(name: &str, tx_dropped: u64, qdisc_drops: Option<u64>) -> InterfaceCounters {
        InterfaceCounters {
            name: String::from(name),
            link: LinkCounters {
                tx_dropped,
                ..LinkCounters::default()
            },
            qdisc_drops,
            xdp_drops: None,
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
        }
    }

    #[test]
    fn each_place_grows_by_itself_and_a_loss_is_at_one_place() {
        let before = snapshot(&[interface("lo", 0, Some(0))], &[("Ip.OutDiscards", 1)]);
        let mut after = snapshot(
            &[interface("lo", 0, Some(0)), interface("new", 3, Some(4))],
            &[("Ip.OutDiscards", 10)],
        );
        after.softnet_dropped = Some(vec![1, 5]);
        let account = Account {
            before: &before,
            after: &after,
        };
        let drops = account.drops();
        assert_eq!(drops.at(LossPlace::DeviceTx), Some(3));
        assert_eq!(drops.at(LossPlace::SendQueue), Some(4));
        assert_eq!(drops.at(LossPlace::IpOutput), Some(2));
        assert_eq!(drops.at(LossPlace::Backlog), Some(2));
    }

    #[test]
    fn what_is_not_known_is_null() {
        let gone = snapshot(&[interface("lo", 0, None), interface("gone", 0, None)], &[]);
        let after = snapshot(&[interface("lo", 9, None)], &[("Udp.NoPorts", 7)]);
        let drops = |before| {
            Account {
                before,
                after: &after,
            }
            .drops()
        };
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
        let account = Account {
            before: &before,
            after: &after,
        };
        assert_eq!(account.drops().at(LossPlace::NoSocket), Some(5));
        assert_eq!(account.protocols(&["Udp.NoPorts"], Families::Ipv4), Some(2));
    }

    #[test]
    fn a_place_is_counted_once_in_the_order_of_the_vocabulary() {
        let places: Vec<LossPlace> = COUNTED.iter().map(|counted| counted.place).collect();
        assert!(places.is_sorted_by(|one, next| one < next), "{places:?}");
    }
}
