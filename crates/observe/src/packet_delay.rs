//! How long packets of NAPI instances wait in this host until a program reads them, and the round trips that TCP sees,
//! by BPF programs.
//!
//! Packets are followed by chance, and never all of them: what following costs is bounded, and measured with the other
//! programs' ([`TimedPrograms`]).
//!
//! What must hold: a kind of delay that this kernel cannot show is named, and has no figures. What a packet waits before
//! its driver hands it to the stack is in no figure.

use std::collections::BTreeMap;

use aya::maps::{HashMap, MapData, PerCpuArray};
use aya::{Ebpf, EbpfLoader};
use nicpoll_model::Unseen;
use nicpoll_model::ab::AbDelayKind;
use nicpoll_sys::bpf_maps;

use crate::bpf::{self, BpfError, TimedPrograms, TimedRuns};
use crate::octaves::Histogram;

const WHAT: &str = "delays of packets";

/// The kinds in the order of the program's.
const KINDS: [AbDelayKind; 3] = [
    AbDelayKind::UdpStackToRead,
    AbDelayKind::TcpStackToRead,
    AbDelayKind::SmoothedRoundTrip,
];

/// Programs, their tracepoints, and the kinds that are not seen without.
const PROGRAMS: [(&str, &str, &[AbDelayKind]); 6] = [
    (
        "on_read",
        "sock_recv_length",
        &[AbDelayKind::UdpStackToRead],
    ),
    (
        "on_datagram",
        "sk_data_ready",
        &[AbDelayKind::UdpStackToRead],
    ),
    (
        "on_tcp_read",
        "tcp_rcv_space_adjust",
        &[AbDelayKind::TcpStackToRead],
    ),
    ("on_segment", "tcp_probe", &[AbDelayKind::SmoothedRoundTrip]),
    (
        "on_arrival",
        "napi_gro_receive_entry",
        &[AbDelayKind::UdpStackToRead, AbDelayKind::TcpStackToRead],
    ),
    // Few drivers hand packets over in this way.
    ("on_arrival_in_frags", "napi_gro_frags_entry", &[]),
];

/// Loaded and attached programs that follow packets.
pub struct PacketDelays {
    // Declared first: the programs are detached before their maps go.
    programs: Ebpf,
    delays: PerCpuArray<MapData, bpf_maps::Delays>,
    instances: HashMap<MapData, u32, u32>,
    unseen: Vec<(AbDelayKind, &'static str)>,
}

impl PacketDelays {
    /// Follows one packet in `one_in` (rounded up to a power of two) of the instances with these ids.
    ///
    /// # Errors
    /// Without kernel types, CAP_BPF or CAP_PERFMON.
    pub fn begin(napi_ids: &[u32], one_in: u32) -> Result<Self, BpfError> {
        let btf = bpf::tracepoints(WHAT)?;
        let one_in = one_in.clamp(1, 1 << 20).next_power_of_two();
        let mut ebpf = EbpfLoader::new()
            .override_global("ONE_IN", &one_in, true)
            .load(aya::include_bytes_aligned!("../bpf/packet_delay.bpf.o"))
            .map_err(|error| refused(&error))?;
        let mut delays = PacketDelays {
            delays: bpf::take_map(&mut ebpf, WHAT, "DELAYS")?,
            instances: bpf::take_map(&mut ebpf, WHAT, "INSTANCES")?,
            programs: ebpf,
            unseen: Vec::new(),
        };
        delays.watch(napi_ids)?;
        for (program, tracepoint, kinds) in PROGRAMS {
            match bpf::attach(&mut delays.programs, program, tracepoint, &btf) {
                Err(error) if bpf::lacks_tracepoint(&error) => {
                    delays
                        .unseen
                        .extend(kinds.iter().map(|kind| (*kind, tracepoint)));
                }
                attached => attached.map_err(|error| refused(&error))?,
            }
        }
        Ok(delays)
    }

    /// Follows packets of these instances from now on, and of no others.
    pub fn watch(&mut self, napi_ids: &[u32]) -> Result<(), BpfError> {
        keep_only(&mut self.instances, napi_ids.iter().copied())
    }

    /// What this kernel cannot show.
    pub fn unseen(&self) -> Vec<Unseen> {
        let one = |(kind, tracepoint): &(AbDelayKind, &str)| Unseen {
            what: String::from(kind.describe()),
            why: format!("this kernel has no tracepoint {tracepoint}"),
        };
        self.unseen.iter().map(one).collect()
    }

    /// The delays so far of each kind that is seen.
    pub fn read(&self) -> Result<BTreeMap<AbDelayKind, Histogram>, BpfError> {
        let is_seen = |kind: &AbDelayKind| self.unseen.iter().all(|(unseen, _)| unseen != kind);
        let indexed = (0..).zip(KINDS).filter(|(_, kind)| is_seen(kind));
        indexed
            .map(|(index, kind)| Ok((kind, histogram(&self.delays, index, WHAT)?)))
            .collect()
    }
}

impl TimedPrograms for PacketDelays {
    fn timed_runs(&self) -> Result<TimedRuns, BpfError> {
        bpf::timed_runs(&self.programs, WHAT)
    }
}

/// One histogram, of all CPUs.
pub(crate) fn histogram(
    map: &PerCpuArray<MapData, bpf_maps::Delays>,
    index: u32,
    what: &'static str,
) -> Result<Histogram, BpfError> {
    let by_cpu = map.get(&index, 0);
    let by_cpu = by_cpu.map_err(|error| BpfError::refused(what, &error))?;
    let mut sum = Histogram::default();
    for core in by_cpu.iter() {
        sum.add(&core.buckets);
    }
    Ok(sum)
}

/// Has a set of numbers hold these and no others.
pub(crate) fn keep_only(
    set: &mut HashMap<MapData, u32, u32>,
    numbers: impl Iterator<Item = u32>,
) -> Result<(), BpfError> {
    let wanted: std::collections::BTreeSet<u32> = numbers.collect();
    let there: Vec<u32> = set.keys().filter_map(Result::ok).collect();
    for old in there.iter().filter(|number| !wanted.contains(number)) {
        set.remove(old).map_err(|error| refused(&error))?;
    }
    for new in wanted.iter().filter(|number| !there.contains(number)) {
        set.insert(new, 1, 0).map_err(|error| refused(&error))?;
    }
    Ok(())
}

fn refused(error: &dyn std::error::Error) -> BpfError {
    BpfError::refused(WHAT, error)
}
