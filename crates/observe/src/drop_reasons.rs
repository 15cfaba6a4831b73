//! The packets that the kernel drops, by the reason that it gives for each.
//!
//! What it is for: losses that no counter has, such as those of a filter's rule without one. A BPF program at the
//! tracepoint `skb:kfree_skb` counts them in the kernel; nothing crosses into user space until someone reads.
//!
//! What must hold: every packet that was dropped in a watched namespace is in the counts, and what could not be
//! counted is a number of its own. What the kernel frees after use is no loss. The names of reasons are those of
//! the running kernel: their numbers differ from one version to the next.
//!
//! Where a driver gives no reason, the reason is `NOT_SPECIFIED`, and the function that dropped the packet stands
//! in its place. Two losses are in no tracepoint at all, since there is no packet structure to free: frames that an
//! XDP program drops in the driver (`rx_queue_N_xdp_drops` counts them on veth), and frames that a card has no
//! receive descriptor for (`rx_missed_errors` and the like).

mod counts;
mod kernel_enum;
mod meaning;
mod symbols;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};

use aya::maps::{HashMap, MapData, MapError, PerCpuArray, PerCpuHashMap};
use aya::programs::BtfTracePoint;
use aya::{Ebpf, EbpfError, EbpfLoader};
use nicpoll_model::DropReason;
use thiserror::Error;

use crate::bpf::{self, BpfError, TimedRuns};
use crate::kernel_types::KernelTypes;
use nicpoll_sys::bpf_maps::{Drop, Dropped, Uncounted};

pub use counts::{DropCounts, DropGroup, DroppedPackets, DroppedProtocol};
pub use kernel_enum::ReasonNames;
pub use meaning::Meaning;
pub use symbols::KernelSymbols;

const WHAT: &str = "dropped packets";
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
        let types = bpf::kernel_types(WHAT)?;
        let btf = bpf::names_of(&types, WHAT)?;
        let names = KernelTypes::of_bytes(&types).and_then(|types| ReasonNames::of_types(&types));
        let names = names.ok_or(DropReasonsError::NoReasons)?;
        let object = aya::include_bytes_aligned!("../bpf/drop_reasons.bpf.o");
        let mut ebpf = EbpfLoader::new()
            .map_max_entries("DROPS", groups)
            .load(object)
            .map_err(|error| refused(&error))?;
        let mut watched: HashMap<_, u32, u32> = bpf::take_map(&mut ebpf, WHAT, "WATCHED")?;
        for &inode in netns_inodes {
            watched
                .insert(inode as u32, 0, 0)
                .map_err(|error| refused(&error))?;
        }
        let mut reasons = DropReasons {
            drops: bpf::take_map(&mut ebpf, WHAT, "DROPS")?,
            uncounted: bpf::take_map(&mut ebpf, WHAT, "UNCOUNTED")?,
            ebpf,
            names,
            symbols: KernelSymbols::default(),
        };
        let program = reasons.program()?;
        let loaded = program.load(TRACEPOINT, &btf).map_err(EbpfError::from);
        let attached = loaded.and_then(|()| Ok(program.attach()?));
        attached.map_err(|error| refused(&error))?;
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
                Err(error) => return Err(refused(&error)),
            }
        }
        let uncounted = self.uncounted.get(&0, 0).map_err(|error| refused(&error))?;
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

    /// What the runs that were timed so far took; see [`start_timing`](crate::start_timing).
    pub fn timed_runs(&mut self) -> Result<TimedRuns, BpfError> {
        let info = self.program()?.info().map_err(|error| refused(&error))?;
        Ok(TimedRuns::of(&info))
    }

    fn program(&mut self) -> Result<&mut BtfTracePoint, BpfError> {
        let program = self.ebpf.program_mut(PROGRAM);
        let program = program.ok_or_else(|| refused(&EbpfError::NoBTF))?;
        program
            .try_into()
            .map_err(|error: aya::programs::ProgramError| refused(&error))
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

fn refused(error: &dyn std::error::Error) -> BpfError {
    BpfError::refused(WHAT, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicpoll_sys::netns::{NetNamespace, NetnsThread};
    use nicpoll_testkit::needs;
    use std::net::UdpSocket;
    use std::process::Command;

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
