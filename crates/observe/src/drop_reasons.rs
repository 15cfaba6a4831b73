//! Packets that the kernel dropped, by its own reasons, counted at the tracepoint `skb:kfree_skb`.
//!
//! Finds losses that no counter has, such as those of a filter rule without one. Every packet that was dropped in a
//! watched namespace is counted; those that could not be are counted as gaps. Packets that the kernel frees after use are
//! no losses. Names of reasons are those of the running kernel, since their numbers differ between versions.
//!
//! Where a driver gives no reason, the reason is `NOT_SPECIFIED` and the function that dropped the packet is named. Two
//! losses never reach the tracepoint: frames that an XDP program drops in the driver (`rx_queue_N_xdp_drops` counts them
//! on veth), and frames for which a card had no receive descriptor (`rx_missed_errors`).

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::iter::Sum;
use std::ops::Add;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::{fs, io};

use aya::maps::{HashMap, MapData, MapError, PerCpuArray, PerCpuHashMap};
use aya::programs::BtfTracePoint;
use aya::{Ebpf, EbpfError, EbpfLoader};
use nicpoll_model::{DropProtocol, DropReason, DropReasonGaps, LossPlace};
use nicpoll_sys::bpf_maps::{Drop, Dropped, Uncounted};
use thiserror::Error;

use crate::bpf;
use crate::bpf::{BpfError, KernelTypes, OrRefused, TimedRuns};

const DROPS: &str = "dropped packets";
const PROGRAM: &str = "count_drops";
const TRACEPOINT: &str = "kfree_skb";
/// Groups that are told apart at the most; packets of others are only counted.
const MAX_GROUPS: u32 = 1024;

/// Why drop reasons cannot be had.
#[derive(Debug, Error)]
pub enum DropReasonsError {
    /// The kernel is too old.
    #[error(
        "the kernel gives no reasons for the packets that it drops; Linux 5.17 and later versions do"
    )]
    NoReasons,
    /// The namespace of the caller is not known.
    #[error("cannot tell which network namespace to watch")]
    Namespace(#[source] io::Error),
    /// BPF is not there or not permitted.
    #[error(transparent)]
    Bpf(#[from] BpfError),
}

/// A loaded and attached program that counts dropped packets.
pub struct DropReasons {
    // Declared first: the program is detached before its maps go.
    ebpf: Ebpf,
    drops: PerCpuHashMap<MapData, Drop, Dropped>,
    uncounted: PerCpuArray<MapData, Uncounted>,
    names: ReasonNames,
    symbols: KernelSymbols,
}

impl DropReasons {
    /// Counts the packets that are dropped from now on in the namespaces with these inode numbers, 64 at the most.
    ///
    /// # Errors
    /// Without kernel types, CAP_BPF or CAP_PERFMON, and before Linux 5.17.
    pub fn begin(netns_inodes: &[u64]) -> Result<Self, DropReasonsError> {
        Self::with_room_for(MAX_GROUPS, netns_inodes)
    }

    fn with_room_for(groups: u32, netns_inodes: &[u64]) -> Result<Self, DropReasonsError> {
        let types = bpf::kernel_types(DROPS)?;
        let btf = bpf::names_of(&types, DROPS)?;
        let names = KernelTypes::of_bytes(&types).and_then(|types| ReasonNames::of_types(&types));
        let names = names.ok_or(DropReasonsError::NoReasons)?;
        let object = aya::include_bytes_aligned!("../bpf/drop_reasons.bpf.o");
        let mut ebpf = EbpfLoader::new()
            .map_max_entries("DROPS", groups)
            .load(object)
            .or_refused(DROPS)?;
        let mut watched: HashMap<_, u32, u32> = bpf::take_map(&mut ebpf, DROPS, "WATCHED")?;
        for &inode in netns_inodes {
            watched.insert(inode as u32, 0, 0).or_refused(DROPS)?;
        }
        let mut reasons = DropReasons {
            drops: bpf::take_map(&mut ebpf, DROPS, "DROPS")?,
            uncounted: bpf::take_map(&mut ebpf, DROPS, "UNCOUNTED")?,
            ebpf,
            names,
            symbols: KernelSymbols::default(),
        };
        let program = reasons.program()?;
        let loaded = program.load(TRACEPOINT, &btf).map_err(EbpfError::from);
        let attached = loaded.and_then(|()| Ok(program.attach()?));
        attached.or_refused(DROPS)?;
        Ok(reasons)
    }

    /// What was dropped since [`begin`](Self::begin).
    pub fn read(&self) -> Result<DropCounts, BpfError> {
        let mut counts = DropCounts::default();
        for entry in self.drops.iter() {
            match entry {
                Ok((drop, by_cpu)) => counts.add(&drop, by_cpu.iter()),
                // An entry that another reader would take away; there is none.
                Err(MapError::KeyNotFound) => {}
                Err(error) => return Err(BpfError::refused(DROPS, &error)),
            }
        }
        let uncounted = self.uncounted.get(&0, 0).or_refused(DROPS)?;
        for of_cpu in uncounted.iter() {
            counts.gaps.overflow_packets += of_cpu.overflow_packets;
            counts.gaps.unattributed_packets += of_cpu.unattributed_packets;
        }
        counts.gaps.missed_events = self.missed_events();
        Ok(counts)
    }

    /// The running kernel's names of the reasons.
    pub fn names(&self) -> &ReasonNames {
        &self.names
    }

    /// The same in words, of the groups that `is_meant`, most packets first.
    pub fn explain(
        &mut self,
        counts: &DropCounts,
        is_meant: impl Fn(&DropGroup) -> bool,
    ) -> Vec<DropReason> {
        let meant = || counts.groups.iter().filter(|(group, _)| is_meant(group));
        self.symbols
            .learn(meant().filter_map(|(group, _)| group.location));
        let mut reasons: BTreeMap<_, u64> = BTreeMap::new();
        for (group, dropped) in meant() {
            let location = group.location;
            let function = location.and_then(|at| self.symbols.function_at(at));
            let key = (group.reason, function, group.protocol.kind());
            *reasons.entry(key).or_default() += dropped.packets;
        }
        let explain = |((reason, function, protocol), packets): ((u32, Option<&str>, _), u64)| {
            let reason = self.names.of(reason).into_owned();
            let meaning = match function {
                Some(function) => Meaning::of_function(function),
                None => Meaning::of_reason(&reason),
            };
            DropReason {
                reason,
                function: function.map(String::from),
                protocol,
                place: meaning.map(|meaning| meaning.place),
                explanation: meaning.map(|meaning| String::from(meaning.explanation)),
                packets,
            }
        };
        let mut reasons: Vec<DropReason> = reasons.into_iter().map(explain).collect();
        reasons.sort_by_key(|reason| Reverse(reason.packets));
        reasons
    }

    /// What the runs that were timed so far took; see [`start_timing`](crate::bpf::start_timing).
    pub fn timed_runs(&mut self) -> Result<TimedRuns, BpfError> {
        let info = self.program()?.info().or_refused(DROPS)?;
        Ok(TimedRuns::of(&info))
    }

    fn program(&mut self) -> Result<&mut BtfTracePoint, BpfError> {
        bpf::program(&mut self.ebpf, PROGRAM).or_refused(DROPS)
    }

    /// Drops during which the program was running on the same CPU already: a soft interrupt came upon it. The
    /// kernel says so with the descriptor, since Linux 5.12.
    fn missed_events(&self) -> Option<u64> {
        let program: &BtfTracePoint = self.ebpf.program(PROGRAM)?.try_into().ok()?;
        let fd = program.fd().ok()?.as_fd().as_raw_fd();
        let text = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
        let misses = text
            .lines()
            .find_map(|line| line.strip_prefix("recursion_misses:"));
        misses?.trim().parse().ok()
    }
}

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
    pub(crate) fn add<'a>(&mut self, drop: &Drop, by_cpu: impl Iterator<Item = &'a Dropped>) {
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

/// The kernel's type that numbers the reasons.
const REASONS: &str = "skb_drop_reason";
/// What the kernel's names have in common.
const PREFIX: &str = "SKB_DROP_REASON_";

/// Names of drop reasons by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonNames(BTreeMap<u32, String>);

impl ReasonNames {
    /// The names in a description of a kernel's types; `None` when it has no drop reasons.
    fn of_types(types: &KernelTypes<'_>) -> Option<Self> {
        let names = types.values_of(REASONS)?;
        Some(ReasonNames(names.into_iter().collect()))
    }

    /// The kernel's name of a reason without `SKB_DROP_REASON_`; its number where the kernel has none for it.
    pub fn of(&self, reason: u32) -> Cow<'_, str> {
        match self.0.get(&reason) {
            Some(name) => Cow::Borrowed(name.strip_prefix(PREFIX).unwrap_or(name)),
            None => Cow::Owned(format!("reason {reason}")),
        }
    }
}

/// What a drop reason means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// Where the packet was lost.
    pub place: LossPlace,
    /// Why, in a sentence.
    pub explanation: &'static str,
}

/// The kernel's name, the place, and why.
type Row = (&'static str, LossPlace, &'static str);

/// By the kernel's names of reasons, without `SKB_DROP_REASON_`.
#[rustfmt::skip]
const MEANING_OF_REASONS: &[Row] = {
    use LossPlace::*;
    &[
        ("NETFILTER_DROP", Nftables, "A rule or a chain's policy of nftables or iptables dropped or rejected it."),
        ("BPF_CGROUP_EGRESS", IpOutput, "A BPF program of the sender's cgroup refused it."),
        ("IP_OUTNOROUTES", IpOutput, "There is no route to its destination."),
        ("NEIGH_CREATEFAIL", IpOutput, "There was no room for an entry of its next hop in the neighbour table."),
        ("NEIGH_FAILED", IpOutput, "Its next hop does not answer ARP or neighbour discovery."),
        ("NEIGH_QUEUEFULL", IpOutput, "Too many packets wait for the link-layer address of its next hop."),
        ("NEIGH_DEAD", IpOutput, "The entry of its next hop was being removed."),
        ("NEIGH_HH_FILLFAIL", IpOutput, "The link-layer header could not be written."),
        ("PKT_TOO_BIG", IpOutput, "It is longer than the MTU and may not be fragmented."),
        ("QDISC_DROP", SendQueue, "The queueing discipline dropped it: its queue was full, or its policy says so."),
        ("QDISC_OVERLIMIT", SendQueue, "The queue of the queueing discipline was at its limit."),
        ("QDISC_CONGESTED", SendQueue, "The queueing discipline dropped it to signal congestion."),
        ("CAKE_FLOOD", SendQueue, "cake's flood protection dropped it."),
        ("FQ_BAND_LIMIT", SendQueue, "A band of fq was full."),
        ("FQ_HORIZON_LIMIT", SendQueue, "Its departure time is beyond fq's horizon."),
        ("FQ_FLOW_LIMIT", SendQueue, "Its flow had as many packets in fq as one may have."),
        ("DUALPI2_STEP_DROP", SendQueue, "dualpi2 dropped it to signal congestion."),
        ("TC_EGRESS", SendQueue, "A tc filter of the sending interface dropped it."),
        ("TC_CHAIN_NOTFOUND", SendQueue, "A tc filter goes on to a chain that does not exist."),
        ("TC_RECLASSIFY_LOOP", SendQueue, "tc filters classified it again and again."),
        ("TC_COOKIE_ERROR", SendQueue, "A tc filter could not go on where the card had left off."),
        ("SKB_GSO_SEG", DeviceTx, "A batch could not be cut into packets."),
        ("DEV_READY", DeviceTx, "The device was not ready."),
        ("NO_TX_TARGET", DeviceTx, "The device had nowhere to send it."),
        ("RECURSION_LIMIT", DeviceTx, "Devices hand it to each other in a loop."),
        ("FULL_RING", RxRing, "The receive ring of the device was full."),
        ("XDP", Xdp, "An XDP program dropped it, or its redirect failed."),
        ("TC_INGRESS", DeviceRx, "A tc filter of the receiving interface dropped it."),
        ("TAP_FILTER", DeviceRx, "The BPF filter of the TAP device refused it."),
        ("TAP_TXFILTER", DeviceRx, "The address filter of the TAP device refused it."),
        ("DEV_HDR", DeviceRx, "Its device header is wrong."),
        ("UNHANDLED_PROTO", DeviceRx, "No protocol takes frames of its ethertype."),
        ("MAC_INVALID_SOURCE", DeviceRx, "Its source MAC address is invalid."),
        ("BRIDGE_INGRESS_STP_STATE", DeviceRx, "The spanning tree blocks the bridge's port."),
        ("CPU_BACKLOG", Backlog, "The backlog queue of a CPU was full."),
        ("IP_INHDR", IpInput, "Its IP header is wrong."),
        ("IP_CSUM", IpInput, "The checksum of its IP header is wrong."),
        ("IP_RPFILTER", IpInput, "The reverse path filter (rp_filter) refused its source address."),
        ("IP_NOPROTO", IpInput, "No transport protocol takes it."),
        ("IP_INADDRERRORS", IpInput, "Its address is not valid for this host."),
        ("IP_INNOROUTES", IpInput, "There is no route for it."),
        ("IP_LOCAL_SOURCE", IpInput, "Its source address is one of this host's own."),
        ("IP_INVALID_SOURCE", IpInput, "Its source address is invalid."),
        ("IP_LOCALNET", IpInput, "It came from outside with a loopback address."),
        ("IP_INVALID_DEST", IpInput, "Its destination address is invalid."),
        ("INVALID_PROTO", IpInput, "Its protocol is none of the interface's."),
        ("IPV6DISABLED", IpInput, "IPv6 is disabled on the interface."),
        ("IPV6_BAD_EXTHDR", IpInput, "An IPv6 extension header is wrong."),
        ("UNICAST_IN_L2_MULTICAST", IpInput, "A unicast packet came in a multicast frame."),
        ("PKT_TOO_SMALL", IpInput, "It is shorter than its headers say."),
        ("HDR_TRUNC", IpInput, "Its headers are cut short."),
        ("XFRM_POLICY", IpInput, "An IPsec policy refused it."),
        ("SECURITY_HOOK", IpInput, "A security module refused it."),
        ("NOMEM", IpInput, "The kernel had no memory for it."),
        ("PFMEMALLOC", IpInput, "It took memory that is kept for emergencies."),
        ("DUP_FRAG", Reassembly, "The same fragment came twice."),
        ("FRAG_REASM_TIMEOUT", Reassembly, "A fragment of its datagram did not come in time."),
        ("FRAG_TOO_FAR", Reassembly, "Its fragment is too far from the others."),
        ("NO_SOCKET", NoSocket, "No socket is bound to its port."),
        ("SOCKET_CLOSE", NoSocket, "Its socket was being closed."),
        ("UDP_CSUM", Checksum, "Its UDP checksum is wrong."),
        ("SKB_CSUM", Checksum, "Its checksum is wrong or could not be computed."),
        ("PROTO_MEM", ProtocolMemory, "The memory limit of the protocol (udp_mem, tcp_mem) was reached."),
        ("SOCKET_RCVBUFF", SocketBuffer, "The receive buffer of its socket was full."),
        ("SOCKET_BACKLOG", SocketBuffer, "The backlog of its socket was full while a program held the socket."),
    ]
};

/// By the kernel's functions that drop packets without a reason.
const MEANING_OF_FUNCTIONS: &[Row] = {
    use LossPlace::*;
    &[
        (
            "veth_xmit",
            RxRing,
            "The receive ring of the veth was full.",
        ),
        (
            "veth_xdp_rcv_skb",
            Xdp,
            "An XDP program in the veth driver dropped it.",
        ),
        ("do_xdp_generic", Xdp, "A generic XDP program dropped it."),
        (
            "netif_receive_generic_xdp",
            Xdp,
            "A generic XDP program dropped it.",
        ),
    ]
};

impl Meaning {
    /// Of a reason by the kernel's name.
    fn of_reason(name: &str) -> Option<Self> {
        Self::in_table(MEANING_OF_REASONS, name)
    }

    /// Of a drop without a reason, by the kernel's function that dropped the packet.
    fn of_function(name: &str) -> Option<Self> {
        Self::in_table(MEANING_OF_FUNCTIONS, name)
    }

    fn in_table(table: &[Row], name: &str) -> Option<Self> {
        let row = table.iter().find(|(key, ..)| *key == name);
        row.map(|&(_, place, explanation)| Meaning { place, explanation })
    }
}

/// Where the kernel lists its functions.
const SYMBOLS: &str = "/proc/kallsyms";

/// Functions of the kernel that were asked for, by address.
#[derive(Clone, Debug, Default)]
pub struct KernelSymbols(BTreeMap<u64, Option<String>>);

impl KernelSymbols {
    /// Looks up the addresses that are not known yet. Without CAP_SYSLOG, or where the kernel lists none, they have
    /// no function.
    pub fn learn(&mut self, addresses: impl Iterator<Item = u64>) {
        let unknown: Vec<u64> = addresses
            .filter(|address| !self.0.contains_key(address))
            .collect();
        if unknown.is_empty() {
            return;
        }
        match File::open(SYMBOLS) {
            Ok(file) => self.learn_from(BufReader::new(file), &unknown),
            Err(_) => self.learn_from(&b""[..], &unknown),
        }
    }

    fn learn_from(&mut self, list: impl BufRead, addresses: &[u64]) {
        let mut nearest: Vec<Option<(u64, String)>> = vec![None; addresses.len()];
        for line in list.lines().map_while(Result::ok) {
            let Some((begin, name)) = function(&line) else {
                continue;
            };
            for (address, found) in addresses.iter().zip(&mut nearest) {
                let is_nearer = found.as_ref().is_none_or(|(before, _)| begin >= *before);
                if begin <= *address && is_nearer {
                    *found = Some((begin, String::from(name)));
                }
            }
        }
        let names = nearest.into_iter().map(|found| found.map(|(_, name)| name));
        self.0.extend(addresses.iter().copied().zip(names));
    }

    /// The function that an address is in.
    pub fn function_at(&self, address: u64) -> Option<&str> {
        self.0.get(&address)?.as_deref()
    }
}

/// `ffffffff81000000 T name [module]`. Addresses that are kept from the reader are 0.
fn function(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
    // The compiler's parts of a function: `veth_xmit.constprop.0`, `tun_net_xmit.cold`.
    let name = words.next()?.split('.').next()?;
    (is_code && address > 0).then_some((address, name))
}

#[cfg(test)]
mod drop_reasons_tests {
    use std::net::UdpSocket;
    use std::process::Command;

    use nicpoll_sys::netns::{NetNamespace, NetnsThread};
    use nicpoll_testkit::needs;

    use super::*;

    #[test]
    fn packets_of_groups_that_find_no_room_are_counted_too() {
        needs!(Root, Ip);
        let namespace = NetNamespace::create().unwrap();
        let thread = NetnsThread::enter(namespace, || ()).unwrap();
        let mut drops = DropReasons::with_room_for(1, &[thread.netns_inode()]).unwrap();
        let timing = bpf::start_timing().unwrap();
        let before = drops.timed_runs().unwrap();
        let send = || {
            let ip = Command::new("ip")
                .args(["link", "set", "lo", "up"])
                .status();
            assert!(ip.unwrap().success());
            for (address, datagrams) in [("127.0.0.1", 3), ("::1", 4)] {
                let socket = UdpSocket::bind((address, 0)).unwrap();
                for _ in 0..datagrams {
                    socket.send_to(b"nobody is here", (address, 9)).unwrap();
                }
            }
        };
        thread.run(move |()| send()).unwrap();
        let counts = drops.read().unwrap();
        let room: Vec<_> = counts.groups.iter().collect();
        let [(group, dropped)] = room[..] else {
            panic!("{counts:?}");
        };
        assert_eq!(drops.names().of(group.reason), "NO_SOCKET");
        assert_eq!((dropped.packets, counts.gaps.overflow_packets), (3, 4));
        assert!(counts.gaps.missed_events.is_some());
        assert!(drops.timed_runs().unwrap().since(before).unwrap().runs >= 7);
        drop(timing);
    }
}

#[cfg(test)]
mod counts_tests {
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

#[cfg(test)]
mod kernel_enum_tests {
    use super::*;
    use crate::bpf::kernel_types_tests::types;

    fn names_in(types: &[u8]) -> Option<ReasonNames> {
        ReasonNames::of_types(&KernelTypes::of_bytes(types)?)
    }

    #[test]
    fn reasons_have_the_kernels_names_and_unknown_ones_their_number() {
        let names = names_in(&types()).unwrap();
        assert_eq!(names.of(72), "XDP");
        assert_eq!(names.of(1), "SKB_CONSUMED");
        assert_eq!(names.of(65_537), "reason 65537");
    }

    #[test]
    fn a_kernel_without_reasons_has_no_names() {
        let mut other = types();
        let at = other.windows(8).position(|bytes| bytes == b"skb_drop");
        other[at.unwrap()] = b'S';
        assert_eq!(names_in(&other), None);
    }

    #[test]
    fn this_kernel_has_names() {
        let Ok(types) = std::fs::read(crate::bpf::KERNEL_TYPES) else {
            return;
        };
        if let Some(names) = names_in(&types) {
            assert!(names.0.values().any(|name| name.ends_with("NOT_SPECIFIED")));
        }
    }
}

#[cfg(test)]
mod meaning_tests {
    use super::*;

    #[test]
    fn a_name_has_one_row_and_an_explanation_is_a_sentence() {
        let mut names: Vec<_> = MEANING_OF_REASONS
            .iter()
            .chain(MEANING_OF_FUNCTIONS)
            .map(|row| row.0)
            .collect();
        let rows = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows);
        for (name, _, explanation) in MEANING_OF_REASONS.iter().chain(MEANING_OF_FUNCTIONS) {
            assert!(explanation.ends_with('.'), "{name}: {explanation}");
        }
    }

    #[test]
    fn what_the_table_does_not_know_has_no_place() {
        let place = |name| Meaning::of_reason(name).map(|meaning| meaning.place);
        assert_eq!(place("NETFILTER_DROP"), Some(LossPlace::Nftables));
        assert_eq!(place("TCP_OLD_DATA"), None);
        assert_eq!(Meaning::of_function("igmp_rcv"), None);
    }

    /// A name that the kernel never had would be a row for nothing.
    #[test]
    fn rows_are_spelled_as_the_kernel_spells_them() {
        let Ok(types) = std::fs::read(crate::bpf::KERNEL_TYPES) else {
            return;
        };
        let types = crate::bpf::KernelTypes::of_bytes(&types).unwrap();
        let Some(names) = ReasonNames::of_types(&types) else {
            return;
        };
        let known: Vec<String> = (0..200)
            .map(|number| names.of(number).into_owned())
            .collect();
        let unknown = MEANING_OF_REASONS
            .iter()
            .filter(|row| !known.iter().any(|name| name == row.0));
        // Some came with later versions than the oldest that has reasons at all.
        assert!(unknown.count() <= MEANING_OF_REASONS.len() / 2);
    }
}

#[cfg(test)]
mod symbols_tests {
    use super::*;

    #[test]
    fn an_address_is_in_the_function_that_begins_before_it() {
        let text = "ffffffff81000100 T second\nffffffff81000000 t first.isra.0\n\
                    ffffffff81000080 d data\nffffffffc0000000 t veth_xmit [veth]\nbroken\n";
        let mut symbols = KernelSymbols::default();
        let [first, last_of_first] = [0xffff_ffff_8100_0000, 0xffff_ffff_8100_00ff];
        let [second, module] = [0xffff_ffff_8100_0100, 0xffff_ffff_c000_0123];
        symbols.learn_from(text.as_bytes(), &[first, last_of_first, second, module, 1]);
        let at = |address| symbols.function_at(address);
        assert_eq!(at(first), Some("first"));
        assert_eq!(at(last_of_first), Some("first"));
        assert_eq!(at(second), Some("second"));
        assert_eq!(at(module), Some("veth_xmit"));
        assert_eq!(at(1), None);
    }

    #[test]
    fn addresses_that_are_hidden_name_nothing() {
        let mut symbols = KernelSymbols::default();
        symbols.learn_from(&b"0000000000000000 T hidden\n"[..], &[5]);
        assert_eq!(symbols.function_at(5), None);
    }
}
