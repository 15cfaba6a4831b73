//! Counts napi_poll events of one NAPI instance, in the kernel, by a BPF program.
//!
//! The counts are kept by core in a map: a poll costs a few tens of nanoseconds more, and nothing
//! crosses into user space until someone reads. What counting costs is measured in two ways: by the
//! kernel's own BPF statistics ([`PollCounter::start_timing`]), and by traffic with and without the
//! program ([`PollCounter::detach`]).
//!
//! What must hold: only polls of the watched NAPI and namespace are counted. Both ends of a lab's link
//! have the same name, so a name would not do.

use std::os::fd::OwnedFd;

use aya::maps::{Array, MapData, PerCpuArray};
use aya::programs::BtfTracePoint;
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::{Btf, Ebpf};
use thiserror::Error;

use crate::map_types::{Counts, Target};

const PROGRAM: &str = "count_napi_polls";
const TRACEPOINT: &str = "napi_poll";

/// Why polls cannot be counted.
#[derive(Debug, Error)]
pub enum PollCounterError {
    /// The kernel gives no description of its types.
    #[error(
        "the kernel has no /sys/kernel/btf/vmlinux; polls are counted by BPF, which needs a kernel built \
         with CONFIG_DEBUG_INFO_BTF"
    )]
    NoBtf(#[source] aya::BtfError),
    /// The kernel refused the program.
    #[error(
        "the kernel refused the program that counts polls ({0}); CAP_BPF and CAP_PERFMON are needed"
    )]
    Refused(String),
}

/// Polls since the counter was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollCounts {
    /// Calls of the poll function, by core.
    pub polls_by_cpu: Vec<u64>,
    /// Polls whose work was below the budget: each ends a round.
    pub rounds: u64,
    /// Polls that found nothing.
    pub empty_polls: u64,
    /// Frames that the polls reported as their work.
    pub frames: u64,
}

impl PollCounts {
    /// Calls of the poll function on all cores.
    pub fn polls(&self) -> u64 {
        self.polls_by_cpu.iter().sum()
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &PollCounts) -> PollCounts {
        PollCounts {
            polls_by_cpu: self
                .polls_by_cpu
                .iter()
                .zip(&earlier.polls_by_cpu)
                .map(|(now, then)| now - then)
                .collect(),
            rounds: self.rounds - earlier.rounds,
            empty_polls: self.empty_polls - earlier.empty_polls,
            frames: self.frames - earlier.frames,
        }
    }
}

/// Mean run time of the counting program, by the kernel's BPF statistics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunTime {
    /// Events that ran the program: polls of *every* NAPI of the machine.
    pub runs: u64,
    /// Nanoseconds a run, the kernel's own measuring included.
    pub ns_per_run: f64,
}

/// Runs that the kernel timed, and their time together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedRuns {
    runs: u64,
    ns: u64,
}

impl TimedRuns {
    /// The mean of the runs since `earlier`; `None` when there were none.
    pub fn since(self, earlier: TimedRuns) -> Option<RunTime> {
        let (runs, ns) = (self.runs - earlier.runs, self.ns - earlier.ns);
        (runs > 0).then(|| RunTime {
            runs,
            ns_per_run: ns as f64 / runs as f64,
        })
    }
}

/// A loaded and attached program that counts the polls of one NAPI.
pub struct PollCounter {
    // Declared first: the program is detached before its maps go.
    ebpf: Ebpf,
    link: Option<BtfTracePointLinkId>,
    target: Array<MapData, Target>,
    counts: PerCpuArray<MapData, Counts>,
}

impl PollCounter {
    /// Loads the program and attaches it. It counts nothing until [`PollCounter::watch`].
    pub fn load() -> Result<Self, PollCounterError> {
        let refused = |error: &dyn std::error::Error| {
            let causes: Vec<String> = std::iter::successors(Some(error), |error| error.source())
                .map(ToString::to_string)
                .collect();
            PollCounterError::Refused(causes.join(": "))
        };
        let btf = Btf::from_sys_fs().map_err(PollCounterError::NoBtf)?;
        let mut ebpf = Ebpf::load(aya::include_bytes_aligned!("../bpf/napi_poll.bpf.o"))
            .map_err(|error| refused(&error))?;
        let take = |ebpf: &mut Ebpf, name| {
            ebpf.take_map(name)
                .ok_or_else(|| PollCounterError::Refused(format!("it has no map {name}")))
        };
        let target = take(&mut ebpf, "TARGET")?
            .try_into()
            .map_err(|error: aya::maps::MapError| refused(&error))?;
        let counts = take(&mut ebpf, "COUNTS")?
            .try_into()
            .map_err(|error: aya::maps::MapError| refused(&error))?;
        let mut counter = PollCounter {
            ebpf,
            link: None,
            target,
            counts,
        };
        counter
            .program()
            .and_then(|program| Ok(program.load(TRACEPOINT, &btf)?))
            .map_err(|error| refused(&error))?;
        counter.attach()?;
        Ok(counter)
    }

    /// Counts polls of one NAPI from now on, or of every NAPI of the namespace when `napi_id` is
    /// `None`.
    pub fn watch(
        &mut self,
        netns_inode: u64,
        napi_id: Option<u32>,
    ) -> Result<(), PollCounterError> {
        let target = Target {
            netns: netns_inode as u32,
            napi_id: napi_id.unwrap_or(0),
        };
        self.target
            .set(0, target, 0)
            .map_err(|error| PollCounterError::Refused(error.to_string()))
    }

    /// Reads the counts.
    pub fn read(&self) -> Result<PollCounts, PollCounterError> {
        let by_cpu = self
            .counts
            .get(&0, 0)
            .map_err(|error| PollCounterError::Refused(error.to_string()))?;
        let mut sum = PollCounts::default();
        for counts in by_cpu.iter() {
            sum.polls_by_cpu.push(counts.polls);
            sum.rounds += counts.rounds;
            sum.empty_polls += counts.empty_polls;
            sum.frames += counts.frames;
        }
        Ok(sum)
    }

    /// Attaches the program; nothing happens when it is attached.
    pub fn attach(&mut self) -> Result<(), PollCounterError> {
        if self.link.is_none() {
            let link = self.program().and_then(|program| Ok(program.attach()?));
            self.link = Some(link.map_err(|error| PollCounterError::Refused(error.to_string()))?);
        }
        Ok(())
    }

    /// Takes the program out of the kernel's way; the counts stay.
    pub fn detach(&mut self) -> Result<(), PollCounterError> {
        if let Some(link) = self.link.take() {
            self.program()
                .and_then(|program| Ok(program.detach(link)?))
                .map_err(|error| PollCounterError::Refused(error.to_string()))?;
        }
        Ok(())
    }

    /// Has the kernel time every run of every BPF program until the result is dropped. The timing
    /// itself costs, so nothing else should be measured meanwhile.
    pub fn start_timing() -> Result<OwnedFd, PollCounterError> {
        aya::sys::enable_stats(aya::sys::Stats::RunTime)
            .map_err(|error| PollCounterError::Refused(error.to_string()))
    }

    /// What the runs that were timed so far took.
    pub fn timed_runs(&mut self) -> Result<TimedRuns, PollCounterError> {
        let info = self.program().and_then(|program| Ok(program.info()?));
        let info = info.map_err(|error| PollCounterError::Refused(error.to_string()))?;
        Ok(TimedRuns {
            ns: info.run_time().as_nanos() as u64,
            runs: info.run_count(),
        })
    }

    fn program(&mut self) -> Result<&mut BtfTracePoint, aya::EbpfError> {
        let program = self
            .ebpf
            .program_mut(PROGRAM)
            .ok_or(aya::EbpfError::NoBTF)?;
        Ok(program.try_into()?)
    }
}
