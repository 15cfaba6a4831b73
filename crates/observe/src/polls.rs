//! Counts napi_poll events of one NAPI instance, in the kernel, by a BPF program.
//!
//! The counts are kept by core in a map: a poll costs a few tens of nanoseconds more, and nothing
//! crosses into user space until someone reads. What counting costs is measured in two ways: by the
//! kernel's own BPF statistics ([`start_timing`](crate::start_timing)), and by traffic with and
//! without the program ([`PollCounter::detach`]).
//!
//! What must hold: only polls of the watched NAPI and namespace are counted. Both ends of a lab's link
//! have the same name, so a name would not do.

use std::sync::Arc;

use aya::Ebpf;
use aya::maps::{Array, MapData, PerCpuArray};
use aya::programs::BtfTracePoint;
use aya::programs::tp_btf::BtfTracePointLinkId;
use serde::{Deserialize, Serialize};

use crate::bpf::{self, BpfError, TimedRuns};
use nicpoll_sys::bpf_maps::{Counts, Target};

/// What errors say the program is for.
const WHAT: &str = "polls";
const PROGRAM: &str = "count_napi_polls";
const TRACEPOINT: &str = "napi_poll";

/// Polls since the counter was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// A loaded and attached program that counts the polls of one NAPI.
pub struct PollCounter {
    // Declared first: the program is detached before its maps go.
    ebpf: Ebpf,
    link: Option<BtfTracePointLinkId>,
    target: Array<MapData, Target>,
    reader: PollReader,
}

/// Reads what a [`PollCounter`] counts, from any thread.
#[derive(Clone)]
pub struct PollReader {
    counts: Arc<PerCpuArray<MapData, Counts>>,
}

impl PollReader {
    /// Reads the counts.
    ///
    /// # Errors
    /// When the kernel does not give the map.
    pub fn read(&self) -> Result<PollCounts, BpfError> {
        let by_cpu = self.counts.get(&0, 0).map_err(|error| refused(&error))?;
        let mut sum = PollCounts::default();
        for counts in by_cpu.iter() {
            sum.polls_by_cpu.push(counts.polls);
            sum.rounds += counts.rounds;
            sum.empty_polls += counts.empty_polls;
            sum.frames += counts.frames;
        }
        Ok(sum)
    }
}

impl PollCounter {
    /// Loads the program and attaches it. It counts nothing until [`PollCounter::watch`].
    pub fn load() -> Result<Self, BpfError> {
        let btf = bpf::tracepoints(WHAT)?;
        let mut ebpf = Ebpf::load(aya::include_bytes_aligned!("../bpf/napi_poll.bpf.o"))
            .map_err(|error| refused(&error))?;
        let target = bpf::take_map(&mut ebpf, WHAT, "TARGET")?;
        let counts = bpf::take_map(&mut ebpf, WHAT, "COUNTS")?;
        let mut counter = PollCounter {
            ebpf,
            link: None,
            target,
            reader: PollReader {
                counts: Arc::new(counts),
            },
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
    pub fn watch(&mut self, netns_inode: u64, napi_id: Option<u32>) -> Result<(), BpfError> {
        let target = Target {
            netns: netns_inode as u32,
            napi_id: napi_id.unwrap_or(0),
        };
        self.target
            .set(0, target, 0)
            .map_err(|error| refused(&error))
    }

    /// Reads the counts.
    ///
    /// # Errors
    /// When the kernel does not give the map.
    pub fn read(&self) -> Result<PollCounts, BpfError> {
        self.reader.read()
    }

    /// What reads the counts elsewhere, as long as the counter lives or longer.
    pub fn reader(&self) -> PollReader {
        self.reader.clone()
    }

    /// Attaches the program; nothing happens when it is attached.
    pub fn attach(&mut self) -> Result<(), BpfError> {
        if self.link.is_none() {
            let link = self.program().and_then(|program| Ok(program.attach()?));
            self.link = Some(link.map_err(|error| refused(&error))?);
        }
        Ok(())
    }

    /// Takes the program out of the kernel's way; the counts stay.
    pub fn detach(&mut self) -> Result<(), BpfError> {
        if let Some(link) = self.link.take() {
            self.program()
                .and_then(|program| Ok(program.detach(link)?))
                .map_err(|error| refused(&error))?;
        }
        Ok(())
    }

    /// What the runs that were timed so far took.
    pub fn timed_runs(&mut self) -> Result<TimedRuns, BpfError> {
        let info = self.program().and_then(|program| Ok(program.info()?));
        let info = info.map_err(|error| refused(&error))?;
        Ok(TimedRuns::of(&info))
    }

    fn program(&mut self) -> Result<&mut BtfTracePoint, aya::EbpfError> {
        let program = self
            .ebpf
            .program_mut(PROGRAM)
            .ok_or(aya::EbpfError::NoBTF)?;
        Ok(program.try_into()?)
    }
}

fn refused(error: &dyn std::error::Error) -> BpfError {
    BpfError::refused(WHAT, error)
}
