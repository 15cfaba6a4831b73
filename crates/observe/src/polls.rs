//! NAPI polls: how many there were, on which CPU, what started each round, and how far apart rounds were.
//!
//! BPF programs count them in the kernel, for one NAPI instance of one namespace. Their cost is measured by the
//! kernel's BPF statistics and by traffic with and without the program ([`PollCounter::detach`]). A timer round is one
//! that began with the expiry of the NAPI's own timer, at any setting.

use std::sync::Arc;

use aya::EbpfLoader;
use aya::maps::{Array, HashMap, MapData, PerCpuArray};
use nicpoll_sys::bpf_maps::{CorePollCounts, NapiRhythm, PollTarget};
use serde::{Deserialize, Serialize};

use crate::bpf::{self, BpfError, OrRefused, Programs, bucket_lower_ns, bucket_width_ns};

/// What the program counts, as named in errors.
const POLLS: &str = "polls";
/// The program and its tracepoint.
const POLL_PROGRAM: (&str, &str) = ("count_napi_polls", "napi_poll");

/// Polls since the counter was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollCounts {
    /// Calls of the poll function, by core.
    pub polls_by_cpu: Vec<u64>,
    /// Polls with less work than the budget: each ends a round.
    pub rounds: u64,
    /// Polls that found nothing.
    pub empty_polls: u64,
    /// Frames, by the polls' own report of their work.
    pub frames: u64,
}

impl PollCounts {
    /// Returns the polls on all cores.
    pub fn polls(&self) -> u64 {
        self.polls_by_cpu.iter().sum()
    }

    /// Returns the counts since `earlier`.
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
    // Declared first: the program is detached before its maps are closed.
    /// The BPF program.
    pub programs: Programs,
    target: Array<MapData, PollTarget>,
    reader: PollReader,
}

/// Reads the counts of a [`PollCounter`] from any thread.
#[derive(Clone)]
pub struct PollReader {
    counts: Arc<PerCpuArray<MapData, CorePollCounts>>,
}

impl PollReader {
    /// Reads the counts.
    ///
    /// # Errors
    /// When the kernel does not return the map.
    pub fn read(&self) -> Result<PollCounts, BpfError> {
        let by_cpu = self.counts.get(&0, 0).or_refused(POLLS)?;
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
        let btf = bpf::tracepoints(POLLS)?;
        let object = aya::include_bytes_aligned!("../bpf/napi_poll.bpf.o");
        let mut programs = Programs::of(POLLS, &mut EbpfLoader::new(), object)?;
        programs.require(&btf, &[POLL_PROGRAM])?;
        programs.attach()?;
        Ok(PollCounter {
            target: programs.map("TARGET")?,
            reader: PollReader {
                counts: Arc::new(programs.map("COUNTS")?),
            },
            programs,
        })
    }

    /// Counts polls of one NAPI from now on; of every NAPI in the namespace if `napi_id` is `None`.
    pub fn watch(&mut self, netns_inode: u64, napi_id: Option<u32>) -> Result<(), BpfError> {
        let target = PollTarget {
            netns: netns_inode as u32,
            napi_id: napi_id.unwrap_or(0),
        };
        self.target.set(0, target, 0).or_refused(POLLS)
    }

    /// Reads the counts.
    ///
    /// # Errors
    /// When the kernel does not return the map.
    pub fn read(&self) -> Result<PollCounts, BpfError> {
        self.reader.read()
    }

    /// Returns a reader for other threads. It stays valid after the counter is dropped.
    pub fn reader(&self) -> PollReader {
        self.reader.clone()
    }
}

const RHYTHM: &str = "polls by what began them";

/// Programs with their tracepoints. Timers come first: the first round would not be recognised as a timer's if polls
/// were watched before.
const RHYTHM_PROGRAMS: [(&str, &str); 2] = [
    ("watch_napi_timers", "hrtimer_expire_entry"),
    ("watch_napi_polls", "napi_poll"),
];

/// Polls of one NAPI instance while it was watched. The first round only makes the instance known, and is in no figure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollRhythm {
    /// Calls of the poll function.
    pub polls: u64,
    /// Frames, by the polls' own report of their work.
    pub frames: u64,
    /// Polls whose work reached their budget: more packets may have been waiting.
    pub full_polls: u64,
    /// Polls with a budget other than the instance's weight: those of applications that busy-poll.
    pub foreign_polls: u64,
    /// Rounds: sequences of polls that end with one that is not full.
    pub rounds: u64,
    /// Rounds that the instance's own timer started.
    pub timer_rounds: u64,
    /// Rounds that something else started and that found nothing.
    pub empty_rounds: u64,
    /// Timer rounds less than half a period after the previous round.
    pub short_gaps: u64,
    /// Timer rounds more than two periods after the previous round.
    pub long_gaps: u64,
    /// Whole periods without a round, in the long gaps.
    pub missed_periods: u64,
    /// Gaps of more than a hundred periods.
    pub stalls: u64,
    /// Budget of the last poll; `None` without polls.
    pub budget: Option<u32>,
    /// Gaps between the start of a timer round and of the previous round: lower end of a bucket in ns (a sixteenth of
    /// an octave wide), and number of gaps.
    pub gaps_ns: Vec<(u64, u64)>,
    /// Frames per poll, and number of such polls. The last includes more than 65.
    pub work: Vec<(u32, u64)>,
    /// CPUs that polled, with the number of polls.
    pub polls_by_cpu: Vec<(u32, u64)>,
}

impl PollRhythm {
    /// Returns the median gap before timer rounds, to a thirty-second of an octave.
    pub fn median_gap_ns(&self) -> Option<u64> {
        let all: u64 = self.gaps_ns.iter().map(|(_, count)| count).sum();
        let mut below = 0;
        for &(lower, count) in &self.gaps_ns {
            below += count;
            if below * 2 >= all {
                return Some(lower + bucket_width_ns(lower) / 2);
            }
        }
        None
    }

    /// Returns the increase since `earlier`, a reading of the same instance by the same watch.
    pub fn since(&self, earlier: &PollRhythm) -> PollRhythm {
        PollRhythm {
            budget: self.budget,
            gaps_ns: grown(&self.gaps_ns, &earlier.gaps_ns),
            work: grown(&self.work, &earlier.work),
            polls_by_cpu: grown(&self.polls_by_cpu, &earlier.polls_by_cpu),
            ..self.counts_with(earlier, |now, then| now - then)
        }
    }

    /// Adds the polls of another instance. The budget is the greater one.
    pub fn plus(&self, other: &PollRhythm) -> PollRhythm {
        PollRhythm {
            budget: self.budget.max(other.budget),
            gaps_ns: merged(&self.gaps_ns, &other.gaps_ns),
            work: merged(&self.work, &other.work),
            polls_by_cpu: merged(&self.polls_by_cpu, &other.polls_by_cpu),
            ..self.counts_with(other, |own, others| own + others)
        }
    }

    fn counts_with(&self, other: &PollRhythm, join: fn(u64, u64) -> u64) -> PollRhythm {
        PollRhythm {
            polls: join(self.polls, other.polls),
            frames: join(self.frames, other.frames),
            full_polls: join(self.full_polls, other.full_polls),
            foreign_polls: join(self.foreign_polls, other.foreign_polls),
            rounds: join(self.rounds, other.rounds),
            timer_rounds: join(self.timer_rounds, other.timer_rounds),
            empty_rounds: join(self.empty_rounds, other.empty_rounds),
            short_gaps: join(self.short_gaps, other.short_gaps),
            long_gaps: join(self.long_gaps, other.long_gaps),
            missed_periods: join(self.missed_periods, other.missed_periods),
            stalls: join(self.stalls, other.stalls),
            ..PollRhythm::default()
        }
    }
}

impl From<&NapiRhythm> for PollRhythm {
    fn from(raw: &NapiRhythm) -> Self {
        PollRhythm {
            polls: raw.polls,
            frames: raw.frames,
            full_polls: raw.full_polls,
            foreign_polls: raw.foreign_polls,
            rounds: raw.rounds,
            timer_rounds: raw.timer_rounds,
            empty_rounds: raw.empty_rounds,
            short_gaps: raw.short_gaps,
            long_gaps: raw.long_gaps,
            missed_periods: raw.missed_periods,
            stalls: raw.stalls,
            budget: (raw.polls > 0).then_some(raw.budget),
            gaps_ns: filled(&raw.gaps, bucket_lower_ns),
            work: filled(&raw.work, |index| index as u32),
            polls_by_cpu: filled(&raw.polls_by_cpu, |index| index as u32),
        }
    }
}

fn filled<K>(buckets: &[u64], key: impl Fn(usize) -> K) -> Vec<(K, u64)> {
    let counted = buckets.iter().enumerate().filter(|(_, count)| **count > 0);
    counted.map(|(index, count)| (key(index), *count)).collect()
}

fn merged<K: Copy + Ord>(one: &[(K, u64)], other: &[(K, u64)]) -> Vec<(K, u64)> {
    let mut sums = std::collections::BTreeMap::new();
    for &(key, count) in one.iter().chain(other) {
        *sums.entry(key).or_insert(0) += count;
    }
    sums.into_iter().collect()
}

/// Returns buckets that have grown, with their increase.
fn grown<K: Copy + Ord>(now: &[(K, u64)], then: &[(K, u64)]) -> Vec<(K, u64)> {
    let before = |key: K| then.iter().find(|(other, _)| *other == key);
    now.iter()
        .map(|&(key, count)| (key, count - before(key).map_or(0, |(_, count)| *count)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// Loaded and attached programs that watch NAPI instances.
pub struct RhythmWatch {
    // Declared first: the programs are detached before their maps are closed.
    /// The BPF programs.
    pub programs: Programs,
    rhythms: HashMap<MapData, u32, NapiRhythm>,
}

impl RhythmWatch {
    /// Watches NAPI instances from now on, given by id and by timeout in ns, to which gaps are compared, or 0.
    ///
    /// # Errors
    /// Without kernel types, CAP_BPF or CAP_PERFMON.
    pub fn begin(instances: &[(u32, u64)]) -> Result<Self, BpfError> {
        let btf = bpf::tracepoints(RHYTHM)?;
        let object = aya::include_bytes_aligned!("../bpf/poll_rhythm.bpf.o");
        let mut programs = Programs::of(RHYTHM, &mut EbpfLoader::new(), object)?;
        let mut rhythms: HashMap<_, u32, NapiRhythm> = programs.map("RHYTHMS")?;
        for &(id, period_ns) in instances {
            rhythms
                .insert(id, NapiRhythm::of_period(period_ns), 0)
                .or_refused(RHYTHM)?;
        }
        programs.require(&btf, &RHYTHM_PROGRAMS)?;
        programs.attach()?;
        Ok(RhythmWatch { programs, rhythms })
    }

    /// Returns the polls of one instance so far.
    pub fn read(&self, napi_id: u32) -> Result<PollRhythm, BpfError> {
        let raw = self.rhythms.get(&napi_id, 0);
        Ok(PollRhythm::from(&raw.or_refused(RHYTHM)?))
    }
}

#[cfg(test)]
mod tests {
    use nicpoll_sys::bpf_maps::GAP_PARTS;

    use super::*;

    #[test]
    fn the_median_is_in_the_middle_bucket() {
        let mut raw = NapiRhythm::of_period(1_000_000);
        // 1 ms is 2^19 ns plus 14.5 sixteenths.
        raw.gaps[11 * GAP_PARTS + 14] = 7;
        raw.gaps[0] = 3;
        raw.gaps[20 * GAP_PARTS] = 3;
        let rhythm = PollRhythm::from(&raw);
        let median = rhythm.median_gap_ns().unwrap() as f64;
        assert!((median / 1e6 - 1.0).abs() < 0.04, "{median}");
        assert_eq!(PollRhythm::default().median_gap_ns(), None);
    }

    #[test]
    fn what_did_not_poll_has_no_budget_and_sums_keep_their_keys() {
        let mut raw = NapiRhythm::of_period(0);
        let idle = PollRhythm::from(&raw);
        assert_eq!(idle, PollRhythm::default());
        (raw.polls, raw.budget) = (2, 64);
        raw.polls_by_cpu[1] = 2;
        raw.work[65] = 2;
        let one = PollRhythm::from(&raw);
        let both = one.plus(&one).plus(&idle);
        assert_eq!((both.polls, both.budget), (4, Some(64)));
        assert_eq!(both.polls_by_cpu, [(1, 4)]);
        assert_eq!(both.work, [(65, 4)]);
        let since = both.since(&one);
        assert_eq!((since.polls, &since.work[..]), (2, &[(65, 2)][..]));
        assert!(both.since(&both).polls_by_cpu.is_empty());
    }
}
