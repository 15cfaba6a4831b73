//! Counters of one host: its interfaces, its protocols, its queues.
//!
//! What must hold: what cannot be read is absent by itself; an ordinary user sees all but nftables. They are
//! read by a thread that is inside the host's network namespace, and never from `/proc/net`, which follows the
//! process's first thread into the host machine's own namespace.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use netlink_bindings::rt_link::{self, IfinfoFlags, RtnlLinkStats64};
use netlink_socket2::NetlinkSocket;
use nicpoll_sys::ethtool;
use serde::{Deserialize, Serialize};

use crate::filters;
use crate::proc_files::{parse_snmp, parse_snmp6, parse_softnet_dropped};

const NET: &str = "/proc/thread-self/net";

/// Counters of an interface, as `ip -s link` shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounters {
    /// Frames handed to the driver and not dropped.
    pub tx_packets: u64,
    /// Their bytes, from the Ethernet header to the end of the payload.
    pub tx_bytes: u64,
    /// Frames that the driver dropped. On veth: the peer's ring or backlog was full.
    pub tx_dropped: u64,
    /// Frames received.
    pub rx_packets: u64,
    /// Their bytes, as of those sent.
    pub rx_bytes: u64,
    /// Frames received and dropped before a protocol saw them.
    pub rx_dropped: u64,
}

impl From<RtnlLinkStats64> for LinkCounters {
    fn from(stats: RtnlLinkStats64) -> Self {
        LinkCounters {
            tx_packets: stats.tx_packets,
            tx_bytes: stats.tx_bytes,
            tx_dropped: stats.tx_dropped,
            rx_packets: stats.rx_packets,
            rx_bytes: stats.rx_bytes,
            rx_dropped: stats.rx_dropped,
        }
    }
}

/// Counters of one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceCounters {
    /// Its name now.
    pub name: String,
    /// What it sent, received and dropped.
    pub link: LinkCounters,
    /// Packets that its root qdisc dropped, 0 when that has no queue to drop from (`noqueue`); `None`
    /// when the qdiscs could not be listed.
    pub qdisc_drops: Option<u64>,
    /// Frames that an XDP program dropped, 0 on the loopback and while it is down, where none runs; `None` when
    /// that is not known: only veth's count is read.
    pub xdp_drops: Option<u64>,
}

/// Everything that is counted on one host, in one network namespace, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSnapshot {
    /// Every interface, `lo` too, by its index; `None` when they could not be listed.
    pub interfaces: Option<BTreeMap<u32, InterfaceCounters>>,
    /// Packets counted by nftables rules that drop them; `None` without CAP_NET_ADMIN or nftables.
    pub nftables_drops: Option<u64>,
    /// `Protocol.Name` of /proc/net/snmp and the names of /proc/net/snmp6; empty when unreadable.
    pub protocols: BTreeMap<String, u64>,
    /// Backlog drops of each core of the *machine*, since the kernel does not keep them by namespace; `None`
    /// when unreadable.
    pub softnet_dropped: Option<Vec<u32>>,
}

/// Reads the counters of the network namespace that the caller is in at the first reading.
pub struct HostCounters {
    socket: NetlinkSocket,
}

impl HostCounters {
    /// Nothing is read yet.
    pub fn of_caller() -> Self {
        HostCounters {
            socket: NetlinkSocket::new(),
        }
    }

    /// Reads what can be read now.
    pub fn snapshot(&mut self) -> HostSnapshot {
        HostSnapshot {
            interfaces: self.interfaces().ok(),
            nftables_drops: filters::nftables_drops(&mut self.socket).ok(),
            protocols: read_protocols().unwrap_or_default(),
            softnet_dropped: read_softnet_dropped().ok(),
        }
    }

    fn interfaces(&mut self) -> io::Result<BTreeMap<u32, InterfaceCounters>> {
        let qdiscs = filters::qdisc_drops(&mut self.socket).ok();
        let request = rt_link::Request::new().op_getlink_dump(&Default::default());
        let mut reply = self.socket.request(&request)?;
        let mut interfaces = BTreeMap::new();
        while let Some(link) = reply.recv() {
            let (header, link) = link?;
            let index = header.ifi_index as u32;
            let name = link.get_ifname().map_err(io::Error::other)?;
            let name = name.to_string_lossy().into_owned();
            let stats = link.get_stats64().map_err(io::Error::other)?;
            let kind = link.get_linkinfo().and_then(|info| info.get_kind());
            let is_veth = kind.is_ok_and(|kind| kind.to_bytes() == b"veth");
            let has = |flag: IfinfoFlags| header.ifi_flags & flag as u32 != 0;
            let runs_none = has(IfinfoFlags::Loopback) || !has(IfinfoFlags::Up);
            let counters = InterfaceCounters {
                link: LinkCounters::from(stats),
                qdisc_drops: qdiscs
                    .as_ref()
                    .map(|qdiscs| qdiscs.get(&index).copied().unwrap_or(0)),
                // Other drivers have other names for it, and some take milliseconds to read.
                xdp_drops: if is_veth {
                    let statistics = ethtool::statistics(&name).ok();
                    statistics.and_then(|statistics| sum_xdp_drops(&statistics))
                } else {
                    runs_none.then_some(0)
                },
                name,
            };
            interfaces.insert(index, counters);
        }
        Ok(interfaces)
    }
}

/// veth counts by queue: `rx_queue_0_xdp_drops`. `None` when there is no such counter.
fn sum_xdp_drops(statistics: &[(String, u64)]) -> Option<u64> {
    statistics
        .iter()
        .filter(|(name, _)| name.starts_with("rx_queue_") && name.ends_with("_xdp_drops"))
        .map(|&(_, count)| count)
        .reduce(|sum, count| sum + count)
}

/// The counters of the caller's namespace: those of snmp, and of snmp6, which is absent when IPv6 is
/// disabled.
fn read_protocols() -> io::Result<BTreeMap<String, u64>> {
    let mut protocols = parse_snmp(&read("snmp")?).map_err(io::Error::other)?;
    if let Ok(text) = read("snmp6") {
        protocols.extend(parse_snmp6(&text).map_err(io::Error::other)?);
    }
    Ok(protocols)
}

/// Backlog drops of each core of the machine.
fn read_softnet_dropped() -> io::Result<Vec<u32>> {
    parse_softnet_dropped(&read("softnet_stat")?).map_err(io::Error::other)
}

fn read(name: &str) -> io::Result<String> {
    let path = format!("{NET}/{name}");
    fs::read_to_string(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("reading {path}: {error}")))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn xdp_drops_are_summed_over_queues_or_absent() {
        let named = |pairs: &[(&str, u64)]| -> Vec<(String, u64)> {
            pairs
                .iter()
                .map(|&(name, count)| (String::from(name), count))
                .collect()
        };
        let statistics = named(&[
            ("peer_ifindex", 2),
            ("rx_queue_0_xdp_packets", 9),
            ("rx_queue_0_xdp_drops", 3),
            ("rx_queue_1_xdp_drops", 4),
        ]);
        assert_eq!(sum_xdp_drops(&statistics), Some(7));
        assert_eq!(sum_xdp_drops(&named(&[("rx_bytes", 1)])), None);
    }

    #[test]
    fn what_passes_the_loopback_is_counted() {
        let mut counters = HostCounters::of_caller();
        let before = counters.snapshot();
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        socket
            .send_to(b"one", socket.local_addr().unwrap())
            .unwrap();
        let after = counters.snapshot();
        let lo = |snapshot: &HostSnapshot| {
            let interfaces = snapshot.interfaces.as_ref().unwrap();
            let lo = interfaces.values().find(|one| one.name == "lo");
            lo.unwrap().link.rx_packets
        };
        assert!(lo(&after) > lo(&before));
        let datagrams = |snapshot: &HostSnapshot| snapshot.protocols["Udp.OutDatagrams"];
        assert!(datagrams(&after) > datagrams(&before));
        assert!(after.softnet_dropped.is_some());
        let interfaces = after.interfaces.unwrap();
        assert!(interfaces.values().all(|one| one.qdisc_drops.is_some()));
    }
}
