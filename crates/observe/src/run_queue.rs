//! How long threads wait for a CPU after something made them ready to run, by BPF programs.
//!
//! What must hold: only threads of the processes that were named are in the figures.

use aya::maps::{HashMap, MapData, PerCpuArray};
use aya::{Ebpf, EbpfLoader};
use nicpoll_sys::bpf_maps;

use crate::bpf::{self, BpfError, TimedPrograms, TimedRuns};
use crate::octaves::Histogram;
use crate::packet_delay::{histogram, keep_only};

const WHAT: &str = "waiting for a CPU";

/// Programs and their tracepoints.
const PROGRAMS: [(&str, &str); 3] = [
    ("on_switch", "sched_switch"),
    ("on_wakeup", "sched_wakeup"),
    ("on_first_wakeup", "sched_wakeup_new"),
];

/// Loaded and attached programs that time the waits of threads.
pub struct RunQueue {
    // Declared first: the programs are detached before their maps go.
    programs: Ebpf,
    delays: PerCpuArray<MapData, bpf_maps::Delays>,
    processes: HashMap<MapData, u32, u32>,
}

impl RunQueue {
    /// Times the threads of all processes but this one, by number, or, with `is_by_process`, of those alone that
    /// [`RunQueue::watch`] names.
    ///
    /// # Errors
    /// Without kernel types, CAP_BPF or CAP_PERFMON.
    pub fn begin(own_process: u32, is_by_process: bool) -> Result<Self, BpfError> {
        let btf = bpf::tracepoints(WHAT)?;
        let mut ebpf = EbpfLoader::new()
            .override_global("OWN_TGID", &own_process, true)
            .override_global("ALL_PROGRAMS", &u32::from(!is_by_process), true)
            .load(aya::include_bytes_aligned!("../bpf/run_queue.bpf.o"))
            .map_err(|error| BpfError::refused(WHAT, &error))?;
        let delays = bpf::take_map(&mut ebpf, WHAT, "DELAYS")?;
        let processes = bpf::take_map(&mut ebpf, WHAT, "PROGRAMS")?;
        for (program, tracepoint) in PROGRAMS {
            bpf::attach(&mut ebpf, program, tracepoint, &btf)
                .map_err(|error| BpfError::refused(WHAT, &error))?;
        }
        Ok(RunQueue {
            programs: ebpf,
            delays,
            processes,
        })
    }

    /// Times the threads of these processes from now on, and of no others.
    pub fn watch(&mut self, processes: impl Iterator<Item = u32>) -> Result<(), BpfError> {
        keep_only(
            &mut self.processes,
            &processes.map(|process| (process, 1)).collect(),
        )
    }

    /// The waits so far.
    pub fn read(&self) -> Result<Histogram, BpfError> {
        histogram(&self.delays, 0, WHAT)
    }
}

impl TimedPrograms for RunQueue {
    fn timed_runs(&self) -> Result<TimedRuns, BpfError> {
        bpf::timed_runs(&self.programs, WHAT)
    }
}
