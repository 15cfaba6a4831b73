//! What passed within a trial, from step to step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WorkUnit;

/// Time between two readings, in seconds: the shortest of these with which a trial has at most [`STEPS_MAX`] steps.
const STEPS_SECONDS: [f64; 9] = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

/// Steps of a trial at most, except of one that takes longer than so many of the longest.
pub const STEPS_MAX: u32 = 300;

/// So often a second the kernel ends its receive softirq with packets left in a storm. Each time it has handled
/// `net.core.netdev_budget` packets (300) or worked for `netdev_budget_usecs` (2 to 20 ms) without a pause.
const STORM_PER_SECOND: f64 = 25.0;

/// What one core did from step to step, as the kernel's clock tick saw it: in parts of 10 ms, so that of short steps
/// only the sum over several trials tells much. Work in step with the tick is misjudged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoreSeries {
    /// Number of the core.
    pub core: u32,
    /// Time in which it worked: all but idle and steal.
    pub busy_seconds: Vec<f64>,
    /// Of it, the time in interrupts: irq and softirq.
    pub interrupt_seconds: Vec<f64>,
}

/// What passed in a trial from step to step, by counters of the hosts' kernels.
///
/// Each list has a figure for each step. Both hosts are read at about the same time, each by its own clock. What a
/// trial counts from its beginning to its end is more exact than the sum of its steps: the last one ends when the
/// sender does, before what is on its way has arrived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialSeries {
    /// Time from reading to reading that was asked for.
    pub step_seconds: f64,
    /// When each step ended, by the receiver's clock, in seconds since both ends of the traffic ran.
    pub end_seconds: Vec<f64>,
    /// Frames that the sender's interfaces sent, and those that their driver dropped, which it counts beside them.
    pub sent_frames: Vec<u64>,
    /// Bytes that the receiver's interfaces received: frames, from the Ethernet header to the end of the payload.
    pub received_bytes: Vec<u64>,
    /// Datagrams that programs on the receiver read; `rr`: requests. Null for TCP.
    pub read_datagrams: Option<Vec<u64>>,
    /// Frames that were lost between the sender's driver and the receiver's protocols, as far as interfaces count
    /// them. What both ends of a link count as dropped is taken once.
    pub dropped_frames: Vec<u64>,
    /// Datagrams that the receiver's sockets dropped. Null for TCP.
    pub dropped_datagrams: Option<Vec<u64>>,
    /// Polls of the NAPI instance that is studied. Null when they could not be counted.
    pub polls: Option<Vec<u64>>,
    /// The sender's and the receiver's cores. Empty in trials of earlier versions.
    #[serde(default)]
    pub cores: Vec<CoreSeries>,
    /// How often the studied machine's kernel ended its receive softirq with packets left, whatever they were
    /// (`time_squeeze` of all cores). Null in trials of earlier versions.
    #[serde(default)]
    pub cut_short_softirqs: Option<Vec<u64>>,
}

impl TrialSeries {
    /// The time between two readings of a trial that takes so long.
    pub fn step_seconds(trial_seconds: f64) -> f64 {
        let fits = |step: &&f64| trial_seconds / **step <= f64::from(STEPS_MAX);
        let fitting = STEPS_SECONDS.iter().find(fits);
        let longest = trial_seconds / f64::from(STEPS_MAX);
        fitting.copied().unwrap_or(longest)
    }

    /// The length of each step.
    pub fn lengths(&self) -> impl Iterator<Item = f64> {
        let begins = std::iter::once(0.0).chain(self.end_seconds.iter().copied());
        let ends = self.end_seconds.iter();
        ends.zip(begins).map(|(end, begin)| end - begin)
    }

    /// Counts of each step as counts a second, each with the middle of its step.
    pub fn rates<'a>(&'a self, counts: &'a [u64]) -> impl Iterator<Item = (f64, f64)> + 'a {
        let steps = self.lengths().zip(&self.end_seconds).zip(counts);
        steps.map(|((length, end), count)| (end - length / 2.0, *count as f64 / length.max(1e-9)))
    }

    /// What the receiver got in each step, in the unit of the workload: bytes of frames, or datagrams read.
    pub fn received(&self, unit: WorkUnit) -> Option<&[u64]> {
        match unit {
            WorkUnit::Bytes => Some(&self.received_bytes),
            WorkUnit::Datagrams | WorkUnit::Transactions => self.read_datagrams.as_deref(),
        }
    }

    /// Whether each step was a storm: packets came faster than the kernel took them, so that it ended its receive
    /// softirq with packets left 25 times a second or more. Empty where that was not read.
    pub fn storms(&self) -> Vec<bool> {
        let counts = self.cut_short_softirqs.as_deref().unwrap_or_default();
        let rates = self.rates(counts);
        rates.map(|(_, rate)| rate >= STORM_PER_SECOND).collect()
    }

    /// What was lost in each step: frames, and datagrams at sockets.
    pub fn dropped(&self) -> Vec<u64> {
        let none = Vec::new();
        let at_sockets = self.dropped_datagrams.as_ref().unwrap_or(&none);
        let at_sockets = at_sockets.iter().chain(std::iter::repeat(&0));
        let both = self.dropped_frames.iter().zip(at_sockets);
        both.map(|(frames, datagrams)| frames + datagrams).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_has_a_bounded_number_of_steps_whatever_it_takes() {
        for (seconds, step) in [(0.25, 0.02), (6.0, 0.02), (10.0, 0.05), (300.0, 1.0)] {
            assert_eq!(TrialSeries::step_seconds(seconds), step, "{seconds}");
        }
        let day = 86_400.0;
        assert!(day / TrialSeries::step_seconds(day) <= f64::from(STEPS_MAX) + 1e-6);
    }

    #[test]
    fn rates_are_of_the_time_that_a_step_took() {
        let series = TrialSeries {
            step_seconds: 0.5,
            end_seconds: vec![0.5, 1.5],
            sent_frames: vec![100, 100],
            received_bytes: vec![0, 0],
            read_datagrams: None,
            dropped_frames: vec![0, 3],
            dropped_datagrams: Some(vec![1, 1]),
            polls: None,
            cores: Vec::new(),
            cut_short_softirqs: Some(vec![12, 25]),
        };
        let rates: Vec<(f64, f64)> = series.rates(&series.sent_frames).collect();
        assert_eq!(rates, [(0.25, 200.0), (1.0, 100.0)]);
        assert_eq!(series.dropped(), [1, 4]);
        // A stream has no datagrams.
        assert_eq!(series.received(WorkUnit::Bytes), Some(&[0, 0][..]));
        assert_eq!(series.received(WorkUnit::Datagrams), None);
        assert_eq!(series.storms(), [false, true]);
    }
}
