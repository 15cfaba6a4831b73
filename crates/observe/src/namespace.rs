//! Counters of a whole network namespace, for a program that does not know by which interface its
//! traffic comes.
//!
//! What must hold: what cannot be read is absent by itself; an ordinary user sees all but nftables.

use std::collections::BTreeMap;
use std::io;

use netlink_bindings::rt_link;
use netlink_socket2::NetlinkSocket;

use crate::filters;
use crate::host::{LinkCounters, read_protocols, read_softnet_dropped};

/// One interface of the namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Its name now.
    pub name: String,
    /// What it sent, received and dropped.
    pub link: LinkCounters,
    /// Packets that its root qdisc dropped, 0 when that has no queue to drop from (`noqueue`); `None`
    /// when the qdiscs could not be listed.
    pub qdisc_drops: Option<u64>,
}

/// Everything that is counted in one namespace, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceSnapshot {
    /// Every interface, `lo` too, by its index; `None` when they could not be listed.
    pub interfaces: Option<BTreeMap<u32, InterfaceCounters>>,
    /// Packets counted by nftables rules that drop them; `None` without CAP_NET_ADMIN or nftables.
    pub nftables_drops: Option<u64>,
    /// `Protocol.Name` of /proc/net/snmp and the names of /proc/net/snmp6; empty when unreadable.
    pub protocols: BTreeMap<String, u64>,
    /// Backlog drops of each core of the *machine*; `None` when unreadable.
    pub softnet_dropped: Option<Vec<u32>>,
}

/// Reads the counters of the namespace that the caller is in at the first reading.
pub struct NamespaceCounters {
    socket: NetlinkSocket,
}

impl NamespaceCounters {
    /// Nothing is read yet.
    pub fn of_caller() -> Self {
        NamespaceCounters {
            socket: NetlinkSocket::new(),
        }
    }

    /// Reads what can be read now.
    pub fn snapshot(&mut self) -> NamespaceSnapshot {
        NamespaceSnapshot {
            interfaces: self.interfaces().ok(),
            nftables_drops: filters::nftables_drops(&mut self.socket).ok(),
            protocols: read_protocols().unwrap_or_default(),
            softnet_dropped: read_softnet_dropped().ok(),
        }
    }

    fn interfaces(&mut self) -> io::Result<BTreeMap<u32, InterfaceCounters>> {
        let qdiscs = filters::qdisc_drops(&mut self.socket).ok();
        let drops_at = |index| {
            let qdiscs = qdiscs.as_ref()?;
            Some(qdiscs.get(&index).copied().unwrap_or(0))
        };
        let request = rt_link::Request::new().op_getlink_dump(&Default::default());
        let mut reply = self.socket.request(&request)?;
        let mut interfaces = BTreeMap::new();
        while let Some(link) = reply.recv() {
            let (header, link) = link?;
            let index = header.ifi_index as u32;
            let name = link.get_ifname().map_err(io::Error::other)?;
            let stats = link.get_stats64().map_err(io::Error::other)?;
            let counters = InterfaceCounters {
                name: name.to_string_lossy().into_owned(),
                link: LinkCounters::from(stats),
                qdisc_drops: drops_at(index),
            };
            interfaces.insert(index, counters);
        }
        Ok(interfaces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn what_passes_the_loopback_is_counted() {
        let mut counters = NamespaceCounters::of_caller();
        let before = counters.snapshot();
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        socket
            .send_to(b"one", socket.local_addr().unwrap())
            .unwrap();
        let after = counters.snapshot();
        let lo = |snapshot: &NamespaceSnapshot| {
            let interfaces = snapshot.interfaces.as_ref().unwrap();
            let lo = interfaces.values().find(|one| one.name == "lo");
            lo.unwrap().link.rx_packets
        };
        assert!(lo(&after) > lo(&before));
        let datagrams = |snapshot: &NamespaceSnapshot| snapshot.protocols["Udp.OutDatagrams"];
        assert!(datagrams(&after) > datagrams(&before));
        assert!(after.softnet_dropped.is_some());
        let interfaces = after.interfaces.unwrap();
        assert!(interfaces.values().all(|one| one.qdisc_drops.is_some()));
    }
}
