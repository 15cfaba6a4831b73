//! Counters of one host: its interface, its protocols, its queues.
//!
//! What must hold: they are read by a thread that is inside the host's network namespace, and
//! never from `/proc/net`, which follows the process's first thread into the host machine's own
//! namespace.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use netlink_bindings::rt_link::{self, RtnlLinkStats64};
use netlink_socket2::NetlinkSocket;
use nicpoll_sys::ethtool;

use crate::filters;
use crate::proc_files::{parse_snmp, parse_snmp6, parse_softnet_dropped};

const NET: &str = "/proc/thread-self/net";

/// Counters of an interface, as `ip -s link` shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// Everything that is counted on one host, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSnapshot {
    /// The interface.
    pub link: LinkCounters,
    /// Packets that the interface's root qdisc dropped; `None` when it keeps no statistics.
    pub qdisc_drops: Option<u64>,
    /// Packets counted by nftables rules that drop them; `None` when they could not be listed.
    pub nftables_drops: Option<u64>,
    /// Frames that an XDP program dropped; `None` when the driver does not count them.
    pub xdp_drops: Option<u64>,
    /// `Protocol.Name` of /proc/net/snmp and the names of /proc/net/snmp6.
    pub protocols: BTreeMap<String, u64>,
    /// Backlog drops of each core. They are the *machine's*: the kernel does not keep them by
    /// namespace.
    pub softnet_dropped: Vec<u32>,
}

impl HostSnapshot {
    /// A protocol counter by name; `None` when this kernel does not have it.
    pub fn protocol(&self, name: &str) -> Option<u64> {
        self.protocols.get(name).copied()
    }
}

/// Reads the counters of one host.
pub struct HostCounters {
    interface: String,
    socket: NetlinkSocket,
}

impl HostCounters {
    /// Counters of `interface` and of the namespace that the caller is in at the first reading.
    pub fn new(interface: &str) -> Self {
        HostCounters {
            interface: String::from(interface),
            socket: NetlinkSocket::new(),
        }
    }

    /// Reads all counters now.
    pub fn snapshot(&mut self) -> io::Result<HostSnapshot> {
        let (ifindex, link) = self.link()?;
        Ok(HostSnapshot {
            link,
            qdisc_drops: filters::qdisc_drops(&mut self.socket)?
                .get(&ifindex)
                .copied(),
            nftables_drops: filters::nftables_drops(&mut self.socket).ok(),
            xdp_drops: ethtool::statistics(&self.interface)
                .ok()
                .and_then(|statistics| sum_xdp_drops(&statistics)),
            protocols: read_protocols()?,
            softnet_dropped: read_softnet_dropped()?,
        })
    }

    fn link(&mut self) -> io::Result<(u32, LinkCounters)> {
        let mut request = rt_link::Request::new().op_getlink_do(&Default::default());
        request
            .encode()
            .push_ifname_bytes(self.interface.as_bytes());
        let mut reply = self.socket.request(&request)?;
        let (header, link) = reply.recv_one()?;
        let stats = link.get_stats64().map_err(io::Error::other)?;
        Ok((header.ifi_index as u32, LinkCounters::from(stats)))
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
pub(crate) fn read_protocols() -> io::Result<BTreeMap<String, u64>> {
    let mut protocols = parse_snmp(&read("snmp")?).map_err(io::Error::other)?;
    if let Ok(text) = read("snmp6") {
        protocols.extend(parse_snmp6(&text).map_err(io::Error::other)?);
    }
    Ok(protocols)
}

/// Backlog drops of each core of the machine.
pub(crate) fn read_softnet_dropped() -> io::Result<Vec<u32>> {
    parse_softnet_dropped(&read("softnet_stat")?).map_err(io::Error::other)
}

fn read(name: &str) -> io::Result<String> {
    let path = format!("{NET}/{name}");
    fs::read_to_string(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("reading {path}: {error}")))
}

#[cfg(test)]
mod tests {
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
}
