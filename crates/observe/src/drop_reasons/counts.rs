//! Dropped packets as they were counted: by namespace, interface, reason and protocol.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::Add;

use nicpoll_model::{DropProtocol, DropReasonGaps};

use nicpoll_sys::bpf_maps::{Drop, Dropped};

/// Their numbers in a header of IP.
const IPPROTO_TCP: u8 = 6;
const IPPROTO_UDP: u8 = 17;
/// Ethertypes of IP version 4 and 6.
const ETHERTYPES_OF_IP: [u16; 2] = [0x0800, 0x86DD];

/// What dropped packets are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DropGroup {
    /// Inode number of the network namespace.
    pub netns_inode: u32,
    /// Index of the packet's interface in that namespace; `None` where the packet had none yet, as at the filter's
    /// output hook.
    pub ifindex: Option<u32>,
    /// The kernel's number of the reason.
    pub reason: u32,
    /// Address of the instruction that dropped the packet, where the kernel gave no reason.
    pub location: Option<u64>,
    /// What the packet was.
    pub protocol: DroppedProtocol,
}

/// The protocols of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DroppedProtocol {
    /// Ethertype: 0x0800 is IPv4.
    pub ethertype: u16,
    /// What its header of IP names as the next: 17 is UDP. 0 when there was no such header.
    pub ip_protocol: u8,
}

impl DroppedProtocol {
    /// What it was.
    pub fn kind(self) -> DropProtocol {
        match self.ip_protocol {
            _ if !ETHERTYPES_OF_IP.contains(&self.ethertype) => DropProtocol::Other,
            IPPROTO_UDP => DropProtocol::Udp,
            IPPROTO_TCP => DropProtocol::Tcp,
            _ => DropProtocol::Other,
        }
    }
}

/// How much was dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedPackets {
    /// Packets. A batch counts as the datagrams or segments that it held.
    pub packets: u64,
    /// Their bytes from the header of IP on. A batch has that header once.
    pub bytes: u64,
}

impl Add for DroppedPackets {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        DroppedPackets {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl Sum for DroppedPackets {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(DroppedPackets::default(), Add::add)
    }
}

/// What was dropped in the watched namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DropCounts {
    /// Packets by group; groups without any are absent.
    pub groups: BTreeMap<DropGroup, DroppedPackets>,
    /// What is in no group.
    pub gaps: DropReasonGaps,
}

impl DropCounts {
    pub(super) fn add<'a>(&mut self, drop: &Drop, by_cpu: impl Iterator<Item = &'a Dropped>) {
        let group = DropGroup {
            netns_inode: drop.netns,
            ifindex: (drop.ifindex > 0).then_some(drop.ifindex),
            reason: drop.reason,
            location: (drop.location > 0).then_some(drop.location),
            protocol: DroppedProtocol {
                ethertype: u16::from_be(drop.ethertype),
                ip_protocol: drop.ip_protocol,
            },
        };
        let dropped = by_cpu
            .map(|one| DroppedPackets {
                packets: one.packets,
                bytes: one.bytes,
            })
            .sum();
        self.groups.insert(group, dropped);
    }

    /// What was dropped since `earlier`, a reading of the same program.
    pub fn since(&self, earlier: &DropCounts) -> DropCounts {
        let grown = |(group, now): (&DropGroup, &DroppedPackets)| {
            let then = earlier.groups.get(group).copied().unwrap_or_default();
            let grown = DroppedPackets {
                packets: now.packets - then.packets,
                bytes: now.bytes - then.bytes,
            };
            (grown.packets > 0).then_some((*group, grown))
        };
        DropCounts {
            groups: self.groups.iter().filter_map(grown).collect(),
            gaps: self.gaps.since(earlier.gaps),
        }
    }

    /// What was dropped for each reason, and by what instruction where there was none, of the groups that `is_meant`.
    pub fn by_reason(
        &self,
        is_meant: impl Fn(&DropGroup) -> bool,
    ) -> BTreeMap<(u32, Option<u64>), DroppedPackets> {
        let mut reasons = BTreeMap::new();
        for (group, dropped) in self.groups.iter().filter(|(group, _)| is_meant(group)) {
            let sum: &mut DroppedPackets =
                reasons.entry((group.reason, group.location)).or_default();
            *sum = *sum + *dropped;
        }
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drop(reason: u32, ifindex: u32, ip_protocol: u8) -> Drop {
        Drop {
            netns: 7,
            ifindex,
            reason,
            ethertype: 0x0800_u16.to_be(),
            ip_protocol,
            ..Drop::default()
        }
    }

    fn counted(packets: &[u64]) -> Vec<Dropped> {
        let dropped = |&packets| Dropped {
            packets,
            bytes: packets * 100,
        };
        packets.iter().map(dropped).collect()
    }

    #[test]
    fn cpus_add_up_and_a_difference_has_only_what_grew() {
        let mut before = DropCounts::default();
        before.add(&drop(12, 2, 17), counted(&[1, 2]).iter());
        before.add(&drop(3, 0, 17), counted(&[5]).iter());
        let mut after = DropCounts {
            gaps: DropReasonGaps {
                overflow_packets: 4,
                ..DropReasonGaps::default()
            },
            ..DropCounts::default()
        };
        after.add(&drop(12, 2, 17), counted(&[1, 9]).iter());
        after.add(&drop(12, 3, 6), counted(&[1]).iter());
        after.add(&drop(3, 0, 17), counted(&[5]).iter());
        let grown = after.since(&before);
        assert_eq!((grown.groups.len(), grown.gaps.overflow_packets), (2, 4));
        assert_eq!(grown.gaps.missed_events, None);
        let all = grown.by_reason(|_| true);
        let expected = DroppedPackets {
            packets: 8,
            bytes: 800,
        };
        assert_eq!(all, BTreeMap::from([((12, None), expected)]));
        let udp = grown.by_reason(|group| group.protocol.kind() == DropProtocol::Udp);
        assert_eq!(udp[&(12, None)].packets, 7);
        assert!(grown.by_reason(|group| group.ifindex.is_none()).is_empty());
    }

    #[test]
    fn only_packets_over_ip_have_a_protocol_of_ip() {
        let kind = |ethertype, ip_protocol| {
            let protocol = DroppedProtocol {
                ethertype,
                ip_protocol,
            };
            protocol.kind()
        };
        assert_eq!(kind(0x0800, 17), DropProtocol::Udp);
        assert_eq!(kind(0x86DD, 17), DropProtocol::Udp);
        assert_eq!(kind(0x0800, 6), DropProtocol::Tcp);
        assert_eq!(kind(0x0806, 17), DropProtocol::Other);
        assert_eq!(kind(0x86DD, 58), DropProtocol::Other);
    }
}
