//! Counters of one host: interfaces, queueing disciplines, protocols, filters, XDP programs and drop reasons.
//!
//! Each counter is read independently; an ordinary user may read all but nftables and the other end of a veth. A thread
//! inside the host's network namespace reads from `/proc/thread-self/net`: `/proc/net` shows the namespace of the
//! process's main thread.

use std::collections::BTreeMap;
use std::{fs, io};

use netlink_bindings::rt_link::{IfinfoFlags, Ifinfomsg, IterableLinkAttrs};
use netlink_bindings::tc::{GnetStatsQueue, Tcmsg};
use netlink_bindings::{rt_link, tc};
use netlink_socket2::NetlinkSocket;
use nicpoll_model::{DropReason, DropReasonGaps, LossPlace, UncountedLoss, Way};
use nicpoll_sys::ethtool;
use nicpoll_sys::netns::NetNamespace;
use serde::{Deserialize, Serialize};

use crate::drop_reasons::{DropReasons, DropReasonsError};
use crate::filters::read_filters;
use crate::proc::{LinkCounters, parse_netstat, parse_snmp, parse_snmp6, parse_softnet};

const NET: &str = "/proc/thread-self/net";

/// Modes of XDP attachment, include/uapi/linux/if_link.h; the missing numbers are for drivers and cards.
const XDP_ATTACHED_NONE: u8 = 0;
const XDP_ATTACHED_SKB: u8 = 2;
const XDP_ATTACHED_MULTI: u8 = 4;

/// Counters of one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceCounters {
    /// Its present name.
    pub name: String,
    /// Its packets sent, received and dropped.
    pub link: LinkCounters,
    /// Packets dropped by its root qdisc; 0 if that has no queue (`noqueue`); `None` if the qdiscs could not be listed.
    pub qdisc_drops: Option<u64>,
    /// Whether the root qdisc has a queue. A batch of datagrams that it drops counts as one.
    pub has_queue: bool,
    /// Frames dropped by an XDP program in the driver, 0 without one; `None` if the driver does not count them in
    /// `rx_queue_N_xdp_drops`, as veth does.
    pub xdp_drops: Option<u64>,
    /// Frames that the other end of a veth in another namespace could not deliver: this end's ring or backlog was full.
    /// 0 for other interfaces, `None` if the other end could not be read.
    pub peer_tx_dropped: Option<u64>,
}

/// All counters of one host, in one network namespace, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSnapshot {
    /// Every interface by index, including `lo`; `None` if they could not be listed.
    pub interfaces: Option<BTreeMap<u32, InterfaceCounters>>,
    /// Packets counted by rules of nftables and iptables that drop them; `None` without CAP_NET_ADMIN or nftables.
    pub nftables_drops: Option<u64>,
    /// Of these, packets on their way out. IP counts the datagrams among them as discarded, too.
    pub nftables_drops_out: Option<u64>,
    /// Counters by `Protocol.Name` of /proc/net/snmp and netstat, and by name of /proc/net/snmp6; empty if unreadable.
    pub protocols: BTreeMap<String, u64>,
    /// Backlog drops of each core of the *machine*: the kernel does not count them by namespace. `None` if unreadable.
    pub softnet_dropped: Option<Vec<u32>>,
    /// What can drop packets without counting them.
    pub uncounted: Vec<UncountedLoss>,
    /// Dropped packets by the kernel's reasons; `None` if they are not watched.
    pub drop_reasons: Option<Vec<DropReason>>,
    /// Packets missing in the drop reasons; `None` if they are not watched.
    pub drop_reason_gaps: Option<DropReasonGaps>,
}

impl HostSnapshot {
    /// Returns it with these interfaces only.
    pub fn of_interfaces(mut self, names: &[String]) -> HostSnapshot {
        if let Some(interfaces) = &mut self.interfaces {
            interfaces.retain(|_, one| names.contains(&one.name));
        }
        self
    }
}

/// Indices of a further host's interfaces are moved by this.
const FURTHER_INDEX: u32 = 1 << 20;

/// What is unknown of one is unknown of both.
fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one? + other?)
}

impl HostSnapshot {
    /// Returns both hosts as one. A machine counts its backlogs once.
    pub fn and(mut self, other: HostSnapshot, is_one_machine: bool) -> HostSnapshot {
        let interfaces = self.interfaces.take().zip(other.interfaces);
        self.interfaces = interfaces.map(|(mut own, others)| {
            let first = own
                .keys()
                .max()
                .map_or(0, |last| (last / FURTHER_INDEX + 1) * FURTHER_INDEX);
            own.extend(others.into_iter().map(|(index, one)| (first + index, one)));
            own
        });
        for (name, count) in other.protocols {
            *self.protocols.entry(name).or_default() += count;
        }
        self.nftables_drops = sum(self.nftables_drops, other.nftables_drops);
        self.nftables_drops_out = sum(self.nftables_drops_out, other.nftables_drops_out);
        if !is_one_machine {
            let both = self.softnet_dropped.take().zip(other.softnet_dropped);
            self.softnet_dropped = both.map(|(own, others)| [own, others].concat());
        }
        self.uncounted.extend(other.uncounted);
        let reasons = self.drop_reasons.take().zip(other.drop_reasons);
        self.drop_reasons = reasons.map(|(mut own, others)| {
            for more in others {
                let is_same = |one: &&mut DropReason| {
                    (one.name(), one.protocol) == (more.name(), more.protocol)
                };
                match own.iter_mut().find(is_same) {
                    Some(one) => one.packets += more.packets,
                    None => own.push(more),
                }
            }
            own
        });
        let gaps = self.drop_reason_gaps.zip(other.drop_reason_gaps);
        self.drop_reason_gaps = gaps.map(|(own, others)| DropReasonGaps {
            overflow_packets: own.overflow_packets + others.overflow_packets,
            unattributed_packets: own.unattributed_packets + others.unattributed_packets,
            missed_events: sum(own.missed_events, others.missed_events),
        });
        self
    }
}

/// Reads the counters of the network namespace in which the first reading is taken.
pub struct HostCounters {
    socket: NetlinkSocket,
    reasons: Option<DropReasons>,
    /// Whether to watch drop reasons as soon as something can drop without counting.
    on_demand: bool,
}

impl HostCounters {
    /// Creates a reader; nothing is read yet.
    pub fn of_caller() -> Self {
        HostCounters {
            socket: NetlinkSocket::new(),
            reasons: None,
            on_demand: false,
        }
    }

    /// Creates a reader that watches drop reasons from the first reading that finds something which can drop packets
    /// without counting each. Until then nothing is loaded, and drops have no extra cost.
    pub fn explained_on_demand() -> Self {
        HostCounters {
            on_demand: true,
            ..HostCounters::of_caller()
        }
    }

    /// Makes the kernel count drops by reason from now on, in the caller's namespace.
    ///
    /// # Errors
    /// Those of [`DropReasons::begin`].
    pub fn watch_drop_reasons(&mut self) -> Result<(), DropReasonsError> {
        let namespace = NetNamespace::current().map_err(DropReasonsError::Namespace)?;
        self.reasons = Some(DropReasons::begin(&[namespace.inode()])?);
        Ok(())
    }

    /// Returns the packets waiting in the queueing disciplines of these interfaces.
    ///
    /// # Errors
    /// When the qdiscs cannot be listed.
    pub fn waiting_packets(&mut self, interfaces: &[u32]) -> io::Result<u64> {
        let mut waiting = 0;
        each_qdisc(&mut self.socket, |header, queue| {
            if interfaces.contains(&(header.ifindex as u32)) {
                waiting += u64::from(queue.qlen);
            }
        })?;
        Ok(waiting)
    }

    /// Reads all readable counters.
    pub fn snapshot(&mut self) -> HostSnapshot {
        let mut uncounted = Vec::new();
        let filter = read_filters(&mut self.socket);
        uncounted.extend(filter.iter().flat_map(|filter| filter.uncounted.clone()));
        let interfaces = self.interfaces(&mut uncounted).ok();
        let mut of_interfaces = interfaces.iter().flat_map(BTreeMap::values);
        let may_miss = !uncounted.is_empty() || of_interfaces.any(|one| one.has_queue);
        if self.on_demand && may_miss {
            self.on_demand = false;
            // On failure the losses stay in the residual.
            let _ = self.watch_drop_reasons();
        }
        let reasons = self
            .reasons
            .as_mut()
            .and_then(|reasons| reasons.read().ok());
        HostSnapshot {
            interfaces,
            nftables_drops_out: filter.as_ref().map(|filter| filter.dropped_out),
            nftables_drops: filter.map(|filter| filter.dropped),
            protocols: read_protocols().unwrap_or_default(),
            softnet_dropped: read_softnet_dropped().ok(),
            uncounted,
            drop_reason_gaps: reasons.as_ref().map(|(_, gaps)| *gaps),
            drop_reasons: reasons.map(|(reasons, _)| reasons),
        }
    }

    fn interfaces(
        &mut self,
        uncounted: &mut Vec<UncountedLoss>,
    ) -> io::Result<BTreeMap<u32, InterfaceCounters>> {
        let qdiscs = qdisc_drops(&mut self.socket).ok();
        let request = rt_link::Request::new().op_getlink_dump(&Default::default());
        let mut reply = self.socket.request(&request)?;
        let mut interfaces = BTreeMap::new();
        let mut peers = Vec::new();
        while let Some(link) = reply.recv() {
            let (header, link) = link?;
            let index = header.ifi_index as u32;
            let name = link.get_ifname().map_err(io::Error::other)?;
            let name = name.to_string_lossy().into_owned();
            let stats = link.get_stats64().map_err(io::Error::other)?;
            if let (true, Ok(namespace)) = (is_veth(&link), link.get_link_netnsid()) {
                peers.push((index, namespace, link.get_link().ok()));
            }
            let counters = InterfaceCounters {
                link: LinkCounters::from(stats),
                qdisc_drops: qdiscs
                    .as_ref()
                    .map(|qdiscs| qdiscs.get(&index).copied().unwrap_or(0)),
                has_queue: qdiscs
                    .as_ref()
                    .is_some_and(|qdiscs| qdiscs.contains_key(&index)),
                xdp_drops: xdp_drops(&header, &link, &name, uncounted),
                peer_tx_dropped: Some(0),
                name,
            };
            interfaces.insert(index, counters);
        }
        for (index, namespace, peer) in peers {
            if let Some(counters) = interfaces.get_mut(&index) {
                counters.peer_tx_dropped =
                    peer.and_then(|peer| self.tx_dropped_in(namespace, peer).ok());
            }
        }
        Ok(interfaces)
    }

    /// Reads `tx_dropped` of an interface in another namespace, by the namespace's id here.
    fn tx_dropped_in(&mut self, namespace: i32, index: u32) -> io::Result<u64> {
        let header = Ifinfomsg {
            ifi_index: index as i32,
            ..Ifinfomsg::default()
        };
        let mut request = rt_link::Request::new().op_getlink_do(&header);
        request.encode().push_target_netnsid(namespace);
        let mut reply = self.socket.request(&request)?;
        let (_, link) = reply.recv_one()?;
        Ok(link.get_stats64().map_err(io::Error::other)?.tx_dropped)
    }
}

fn is_veth(link: &IterableLinkAttrs<'_>) -> bool {
    let kind = link.get_linkinfo().and_then(|info| info.get_kind());
    kind.is_ok_and(|kind| kind.to_bytes() == b"veth")
}

/// Reads the driver's count of XDP drops. Drops without a counter are added to `uncounted`.
fn xdp_drops(
    header: &Ifinfomsg,
    link: &IterableLinkAttrs<'_>,
    name: &str,
    uncounted: &mut Vec<UncountedLoss>,
) -> Option<u64> {
    let attached = link.get_xdp().and_then(|xdp| xdp.get_attached());
    let (in_driver, generic) = match attached {
        Ok(XDP_ATTACHED_SKB) => (false, true),
        Ok(XDP_ATTACHED_MULTI) => (true, true),
        Ok(XDP_ATTACHED_NONE) | Err(_) => (false, false),
        Ok(_) => (true, false),
    };
    if generic {
        let by = format!("{name} has a generic XDP program, whose drops no counter has");
        uncounted.push(xdp_can_drop(by));
    }
    // Reading them takes milliseconds with some drivers.
    if !in_driver && !is_veth(link) || header.ifi_flags & IfinfoFlags::Up as u32 == 0 {
        return Some(0);
    }
    let statistics = ethtool::statistics(name).ok();
    let counted = statistics.and_then(|statistics| sum_xdp_drops(&statistics));
    if in_driver && counted.is_none() {
        let by = format!("{name} has an XDP program in a driver that does not count its drops");
        uncounted.push(xdp_can_drop(by));
    }
    counted
}

/// A loss by an XDP program, which sees only incoming packets.
fn xdp_can_drop(by: String) -> UncountedLoss {
    UncountedLoss {
        place: LossPlace::Xdp,
        packets: None,
        by,
        ways: vec![Way::In],
    }
}

/// Sums veth's counters per queue, such as `rx_queue_0_xdp_drops`. `None` without such counters.
fn sum_xdp_drops(statistics: &[(String, u64)]) -> Option<u64> {
    let queues = by_queue(statistics);
    let drops = queues
        .values()
        .filter_map(|counters| counters.get("xdp_drops"));
    drops.copied().reduce(|sum, count| sum + count)
}

/// Reads the protocol counters of the caller's namespace: snmp, netstat, and snmp6, which is absent if IPv6 is
/// disabled.
fn read_protocols() -> io::Result<BTreeMap<String, u64>> {
    let mut protocols = parse_snmp(&read("snmp")?).map_err(io::Error::other)?;
    if let Ok(text) = read("netstat") {
        protocols.extend(parse_netstat(&text).map_err(io::Error::other)?);
    }
    if let Ok(text) = read("snmp6") {
        protocols.extend(parse_snmp6(&text).map_err(io::Error::other)?);
    }
    Ok(protocols)
}

/// Reads the backlog drops of each core of the machine.
fn read_softnet_dropped() -> io::Result<Vec<u32>> {
    let cores = parse_softnet(&read("softnet_stat")?).map_err(io::Error::other)?;
    Ok(cores.iter().map(|core| core.dropped).collect())
}

fn read(name: &str) -> io::Result<String> {
    let path = format!("{NET}/{name}");
    fs::read_to_string(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("reading {path}: {error}")))
}

/// `TC_H_ROOT`, include/uapi/linux/pkt_sched.h: the parent of an interface's root qdisc, whose drop count includes
/// those of qdiscs inside it.
const TC_H_ROOT: u32 = 0xFFFF_FFFF;

/// Returns the packets dropped by each interface's root qdisc, by interface index. A qdisc without counters is absent:
/// `noqueue`, the default of veth, cannot drop.
pub fn qdisc_drops(socket: &mut NetlinkSocket) -> io::Result<BTreeMap<u32, u64>> {
    let mut drops = BTreeMap::new();
    each_qdisc(socket, |header, queue| {
        if header.parent == TC_H_ROOT {
            drops.insert(header.ifindex as u32, u64::from(queue.drops));
        }
    })?;
    Ok(drops)
}

/// Passes every qdisc with counters to `look`.
fn each_qdisc(
    socket: &mut NetlinkSocket,
    mut look: impl FnMut(&Tcmsg, &GnetStatsQueue),
) -> io::Result<()> {
    let request = tc::Request::new().op_getqdisc_dump(&Tcmsg::default());
    let mut reply = socket.request(&request)?;
    while let Some(qdisc) = reply.recv() {
        let (header, qdisc) = qdisc?;
        if let Ok(queue) = qdisc.get_stats2().and_then(|stats| stats.get_queue()) {
            look(&header, &queue);
        }
    }
    Ok(())
}

/// Text before and after a receive queue's number: veth, virtio, ixgbe, ice and netvsc; mlx5, mlx4 and newer virtio;
/// i40e; ena; nfp; stmmac; bnxt and tg3.
const FORMS: [(&str, &str); 7] = [
    ("rx_queue_", "_"),
    ("rx", "_"),
    ("rx-", "."),
    ("queue_", "_rx_"),
    ("rvec_", "_rx_"),
    ("q", "_rx_"),
    ("[", "]: rx_"),
];

/// Counters of each receive queue, by the driver's names.
pub type QueueCounters = BTreeMap<u32, BTreeMap<String, u64>>;

/// Reads the queue counters of an interface of the caller's namespace.
///
/// # Errors
/// As [`ethtool::statistics`].
pub fn queue_counters(interface: &str) -> io::Result<QueueCounters> {
    Ok(by_queue(&ethtool::statistics(interface)?))
}

/// Selects the statistics of a driver that belong to receive queues.
fn by_queue(statistics: &[(String, u64)]) -> QueueCounters {
    let mut queues = QueueCounters::new();
    for (name, count) in statistics {
        if let Some((queue, what)) = of_queue(name) {
            let counters = queues.entry(queue).or_default();
            *counters.entry(String::from(what)).or_default() += count;
        }
    }
    queues
}

/// Splits a counter's name into the queue and what it counts.
fn of_queue(name: &str) -> Option<(u32, &str)> {
    FORMS.iter().find_map(|(before, after)| {
        let rest = name.strip_prefix(before)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = rest.split_at(digits);
        let what = rest.strip_prefix(after).filter(|what| !what.is_empty())?;
        Some((number.parse().ok()?, what))
    })
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

    #[test]
    fn names_of_many_drivers_are_understood() {
        for (name, found) in [
            ("rx_queue_0_xdp_packets", Some((0, "xdp_packets"))),
            ("rx_queue_12_packets", Some((12, "packets"))),
            ("rx3_packets", Some((3, "packets"))),
            ("rx-7.bytes", Some((7, "bytes"))),
            ("queue_2_rx_cnt", Some((2, "cnt"))),
            ("rvec_4_rx_pkts", Some((4, "pkts"))),
            ("q1_rx_pkt_n", Some((1, "pkt_n"))),
            ("[5]: rx_ucast_packets", Some((5, "ucast_packets"))),
            ("tx_queue_0_packets", None),
            ("queue_2_tx_cnt", None),
            ("rx_packets", None),
            ("rx_queue_0", None),
            ("rx_queue_0_", None),
            ("rx_1024_to_1518_byte_packets", None),
            ("rx99999999999_packets", None),
        ] {
            assert_eq!(of_queue(name), found, "{name}");
        }
    }
}
