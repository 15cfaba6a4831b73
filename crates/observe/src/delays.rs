//! Delays, by BPF programs: how long packets wait in this host until a program reads them, TCP's round trips, and how
//! long threads wait for a CPU.
//!
//! Only a random sample of packets is followed, which bounds the cost. A kind of delay that this kernel cannot show is
//! reported and has no figures. Only delays from the wire include the time before the driver hands a packet to the
//! stack; they need the card's time stamps.

use std::collections::BTreeMap;

use aya::EbpfLoader;
use aya::maps::{HashMap, MapData, PerCpuArray};
use nicpoll_model::Unseen;
use nicpoll_model::ab::{AbDelayKind, AbStamps};
use nicpoll_sys::bpf_maps;

use crate::bpf::{self, BpfError, Histogram, OrRefused, Programs};
use crate::clock::{CardClock, CardClocks, ClockAccount, ERROR_MAX_NS};

const DELAYS: &str = "delays of packets";

/// The kinds, in the BPF program's order.
const KINDS: [AbDelayKind; 5] = [
    AbDelayKind::UdpStackToRead,
    AbDelayKind::TcpStackToRead,
    AbDelayKind::SmoothedRoundTrip,
    AbDelayKind::UdpWireToRead,
    AbDelayKind::TcpWireToRead,
];

/// Programs, their tracepoints, and the kinds of delay that need them.
const PROGRAMS: [(&str, &str, &[AbDelayKind]); 6] = [
    (
        "on_read",
        "sock_recv_length",
        &[AbDelayKind::UdpStackToRead, AbDelayKind::UdpWireToRead],
    ),
    (
        "on_datagram",
        "sk_data_ready",
        &[AbDelayKind::UdpStackToRead, AbDelayKind::UdpWireToRead],
    ),
    (
        "on_tcp_read",
        "tcp_rcv_space_adjust",
        &[AbDelayKind::TcpStackToRead, AbDelayKind::TcpWireToRead],
    ),
    ("on_segment", "tcp_probe", &[AbDelayKind::SmoothedRoundTrip]),
    (
        "on_arrival",
        "napi_gro_receive_entry",
        &[
            AbDelayKind::UdpStackToRead,
            AbDelayKind::TcpStackToRead,
            AbDelayKind::UdpWireToRead,
            AbDelayKind::TcpWireToRead,
        ],
    ),
    // Few drivers use this path.
    ("on_arrival_in_frags", "napi_gro_frags_entry", &[]),
];

/// Quality of the cards' time stamps so far.
#[derive(Clone, Debug)]
pub struct Stamped {
    clocks: ClockAccount,
    left_out: BTreeMap<AbDelayKind, u64>,
}

impl Stamped {
    /// Returns the quality of a kind's stamps since an `earlier` reading. `None` if a card's clock was set meanwhile or
    /// could not be read closely: then delays of that time are meaningless.
    pub fn since(&self, earlier: &Stamped, kind: AbDelayKind) -> Option<AbStamps> {
        let left_out = |stamped: &Stamped| stamped.left_out.get(&kind).copied();
        Some(AbStamps {
            error_ns: self.clocks.error_ns_since(&earlier.clocks)?,
            left_out_packets: left_out(self)?.saturating_sub(left_out(earlier)?),
        })
    }
}

/// Loaded and attached programs that follow packets.
pub struct PacketDelays {
    // Declared first: the programs are detached before their maps are closed.
    /// The BPF programs.
    pub programs: Programs,
    delays: PerCpuArray<MapData, bpf_maps::CoreDelays>,
    left_out: PerCpuArray<MapData, u64>,
    instances: HashMap<MapData, u32, u32>,
    /// `None` if no card stamps packets.
    clocks: Option<CardClocks>,
    /// Each with a tracepoint that this kernel lacks.
    unseen: BTreeMap<AbDelayKind, &'static str>,
}

impl PacketDelays {
    /// Follows one packet in `one_in` (rounded up to a power of two) of these NAPI instances. Each instance has the
    /// index in `clocks` of its card's clock, if the card stamps packets.
    ///
    /// # Errors
    /// Without kernel types, CAP_BPF or CAP_PERFMON.
    pub fn begin(
        instances: &BTreeMap<u32, Option<usize>>,
        one_in: u32,
        clocks: Vec<CardClock>,
    ) -> Result<Self, BpfError> {
        let btf = bpf::tracepoints(DELAYS)?;
        let one_in = one_in.clamp(1, 1 << 20).next_power_of_two();
        let mut loader = EbpfLoader::new();
        loader
            .override_global("ONE_IN", &one_in, true)
            .override_global("STAMP_ERROR_NS", &ERROR_MAX_NS, true);
        let object = aya::include_bytes_aligned!("../bpf/packet_delay.bpf.o");
        let mut programs = Programs::of(DELAYS, &mut loader, object)?;
        let clocks = match clocks.is_empty() {
            true => None,
            false => Some(CardClocks::follow(clocks, programs.map("LINES")?)),
        };
        let mut unseen = BTreeMap::new();
        for (program, tracepoint, kinds) in PROGRAMS {
            if !programs.load(&btf, program, tracepoint)? {
                unseen.extend(kinds.iter().map(|kind| (*kind, tracepoint)));
            }
        }
        let mut delays = PacketDelays {
            delays: programs.map("DELAYS")?,
            left_out: programs.map("LEFT_OUT")?,
            instances: programs.map("INSTANCES")?,
            clocks,
            programs,
            unseen,
        };
        delays.watch(instances)?;
        delays.programs.attach()?;
        Ok(delays)
    }

    /// Follows packets of these instances from now on, as [`PacketDelays::begin`] does, and of no others.
    pub fn watch(&mut self, instances: &BTreeMap<u32, Option<usize>>) -> Result<(), BpfError> {
        let number = |clock: &Option<usize>| clock.map_or(0, |place| place as u32 + 1);
        let numbered = instances.iter().map(|(id, clock)| (*id, number(clock)));
        keep_only(&mut self.instances, &numbered.collect())
    }

    fn is_wanted(&self, kind: AbDelayKind) -> bool {
        self.clocks.is_some() || !kind.is_from_wire()
    }

    /// Returns what this kernel cannot show.
    pub fn unseen(&self) -> Vec<Unseen> {
        let one = |(kind, tracepoint): (&AbDelayKind, &&str)| Unseen {
            what: String::from(kind.name()),
            why: format!("this kernel has no tracepoint {tracepoint}"),
        };
        let wanted = self
            .unseen
            .iter()
            .filter(|(kind, _)| self.is_wanted(**kind));
        wanted.map(one).collect()
    }

    /// Returns the delays so far of each observable kind.
    pub fn read(&self) -> Result<BTreeMap<AbDelayKind, Histogram>, BpfError> {
        let is_seen = |kind: &AbDelayKind| self.is_wanted(*kind) && !self.unseen.contains_key(kind);
        let indexed = (0..).zip(KINDS).filter(|(_, kind)| is_seen(kind));
        indexed
            .map(|(index, kind)| Ok((kind, histogram(&self.delays, index, DELAYS)?)))
            .collect()
    }

    /// Returns the quality of stamps so far; `None` if no card stamps packets. Read after the delays, it covers all of
    /// them.
    pub fn stamped(&self) -> Result<Option<Stamped>, BpfError> {
        let Some(clocks) = &self.clocks else {
            return Ok(None);
        };
        let mut left_out = BTreeMap::new();
        for (index, kind) in (0..).zip(KINDS).filter(|(_, kind)| kind.is_from_wire()) {
            let by_cpu = self.left_out.get(&index, 0);
            let by_cpu = by_cpu.or_refused(DELAYS)?;
            left_out.insert(kind, by_cpu.iter().sum());
        }
        let clocks = clocks.account();
        Ok(Some(Stamped { clocks, left_out }))
    }
}

/// Reads one histogram, summed over all CPUs.
fn histogram(
    map: &PerCpuArray<MapData, bpf_maps::CoreDelays>,
    index: u32,
    what: &'static str,
) -> Result<Histogram, BpfError> {
    let by_cpu = map.get(&index, 0);
    let by_cpu = by_cpu.or_refused(what)?;
    let mut sum = Histogram::default();
    for core in by_cpu.iter() {
        sum.add(&core.buckets);
    }
    Ok(sum)
}

/// Makes a map hold exactly these entries.
fn keep_only(
    map: &mut HashMap<MapData, u32, u32>,
    wanted: &BTreeMap<u32, u32>,
) -> Result<(), BpfError> {
    let there: BTreeMap<u32, u32> = map.iter().filter_map(Result::ok).collect();
    for old in there.keys().filter(|key| !wanted.contains_key(key)) {
        map.remove(old).or_refused(DELAYS)?;
    }
    for (key, value) in wanted
        .iter()
        .filter(|(key, value)| there.get(key) != Some(value))
    {
        map.insert(key, value, 0).or_refused(DELAYS)?;
    }
    Ok(())
}

const WAITING: &str = "waiting for a CPU";

/// Programs and their tracepoints.
const WAKING_PROGRAMS: [(&str, &str); 3] = [
    ("on_switch", "sched_switch"),
    ("on_wakeup", "sched_wakeup"),
    ("on_first_wakeup", "sched_wakeup_new"),
];

/// Loaded and attached programs that time how long threads wait for a CPU.
pub struct RunQueue {
    // Declared first: the programs are detached before their maps are closed.
    /// The BPF programs.
    pub programs: Programs,
    delays: PerCpuArray<MapData, bpf_maps::CoreDelays>,
    processes: HashMap<MapData, u32, u32>,
}

impl RunQueue {
    /// Times the threads of every process except `own_process`; with `is_by_process`, only those of processes that
    /// [`RunQueue::watch`] names.
    ///
    /// # Errors
    /// Without kernel types, CAP_BPF or CAP_PERFMON.
    pub fn begin(own_process: u32, is_by_process: bool) -> Result<Self, BpfError> {
        let btf = bpf::tracepoints(WAITING)?;
        let all = u32::from(!is_by_process);
        let mut loader = EbpfLoader::new();
        loader
            .override_global("OWN_TGID", &own_process, true)
            .override_global("ALL_PROGRAMS", &all, true);
        let object = aya::include_bytes_aligned!("../bpf/run_queue.bpf.o");
        let mut programs = Programs::of(WAITING, &mut loader, object)?;
        programs.require(&btf, &WAKING_PROGRAMS)?;
        programs.attach()?;
        Ok(RunQueue {
            delays: programs.map("DELAYS")?,
            processes: programs.map("PROGRAMS")?,
            programs,
        })
    }

    /// Times the threads of these processes from now on, and no others.
    pub fn watch(&mut self, processes: impl Iterator<Item = u32>) -> Result<(), BpfError> {
        keep_only(
            &mut self.processes,
            &processes.map(|process| (process, 1)).collect(),
        )
    }

    /// Returns the waits so far.
    pub fn read(&self) -> Result<Histogram, BpfError> {
        histogram(&self.delays, 0, WAITING)
    }
}
