//! Order and length of blocks, and the part at a block's beginning that is left out.
//!
//! The order of a pair is independent of all other pairs', and the length of a block is random, so no period of the
//! load stays in step with the settings. The same seed gives the same plan.
//!
//! The part left out is the time that polls take to settle after a change of setting: a timer that has to expire
//! first, queues that empty, senders that find their new rate. The rates of polls and packets, and packets a poll,
//! are averaged over several changes to the same setting, in steps of [`STEP_SECONDS`]. Their second half shows the
//! steady level and its scatter; polls have settled once they stay within that for five steps. Polls that have not
//! settled by the middle have no settling time.

use nicpoll_model::ab::AbPlan;
use rand_core::Rng;
use rand_pcg::Pcg64;

use crate::order::Seed;
use crate::summary;

/// The shortest and the longest block. Shorter ones lose too much of their time to the part left out; longer ones
/// make too few pairs.
pub const BLOCK_SECONDS: [f64; 2] = [2.0, 6.0];
/// The least time left out at a block's beginning. Ten round trips or three settling times of the traffic may need
/// more.
pub const LEFT_OUT_SECONDS_MIN: f64 = 0.4;
/// The fewest pairs for a verdict.
pub const PAIRS_MIN: u32 = 30;
/// The share of CPU time, and of load, from which on a difference matters.
pub const MARGIN: f64 = 0.05;
/// The share of the interval's length by which the estimate may move when twice as much is left out; more is carry-over if
/// chance does not explain it.
pub(crate) const CARRY_OVER_SHARE: f64 = 0.25;

/// One pair to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawnPair {
    /// Whether the block of the judged setting comes first.
    pub is_judged_first: bool,
    /// Lengths of the first and the second block.
    pub block_seconds: [f64; 2],
}

impl DrawnPair {
    /// Length of both blocks.
    pub fn seconds(&self) -> f64 {
        self.block_seconds.iter().sum()
    }
}

/// The pairs of a plan, one after the other, without end: the runner stops when the time is over.
#[derive(Clone, Debug)]
pub struct Draw {
    generator: Pcg64,
    shortest: f64,
    longest: f64,
}

impl Draw {
    /// Draws by the plan's seed and lengths.
    pub fn new(plan: &AbPlan) -> Self {
        let [shortest, longest] = plan.block_seconds;
        Draw {
            generator: Seed(plan.seed).generator(),
            shortest,
            longest,
        }
    }

    /// Draws a length between the plan's two.
    fn length(&mut self) -> f64 {
        let share = (self.generator.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        self.shortest + (self.longest - self.shortest) * share
    }
}

impl Iterator for Draw {
    type Item = DrawnPair;

    fn next(&mut self) -> Option<DrawnPair> {
        Some(DrawnPair {
            is_judged_first: self.generator.next_u64() >> 63 == 1,
            block_seconds: [self.length(), self.length()],
        })
    }
}

/// Length of a step.
pub const STEP_SECONDS: f64 = 0.01;
/// Steps in a row within the band that count as settled.
const STEPS: usize = 5;
/// Half the width of the band: so many standard deviations of the second half, or a share of its mean.
const DEVIATIONS: f64 = 4.0;
const SHARE: f64 = 0.05;
/// The second half still moves when the means of its halves differ by so many standard deviations, and by that share.
const MOVED_DEVIATIONS: f64 = 2.0;

/// The counts of polls at a time after a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PollCount {
    /// Time since the change.
    pub seconds: f64,
    /// Polls so far.
    pub polls: u64,
    /// Packets that these took.
    pub packets: u64,
}

/// Returns the settling time of polls, from several changes to the same setting, in seconds. `None` when they do not
/// settle in the first half of the time observed, or that was too short.
pub fn settling_seconds(changes: &[Vec<PollCount>]) -> Option<f64> {
    let begin = changes.iter().filter_map(|counts| counts.first());
    let begin = begin.map(|count| count.seconds).reduce(f64::max)?;
    let end = changes.iter().map(|counts| counts.last());
    let end = end.map(|count| count.map_or(0.0, |count| count.seconds));
    let end = end.reduce(f64::min)?;
    let steps = ((end - begin).max(0.0) / STEP_SECONDS) as usize;
    let in_step = |step: usize, count: fn(&PollCount) -> u64| {
        let edges = [step, step + 1].map(|edge| begin + edge as f64 * STEP_SECONDS);
        let grown = |counts: &Vec<PollCount>| {
            let [before, after] = edges.map(|seconds| count_at(counts, seconds, count));
            after - before
        };
        changes.iter().map(grown).sum::<f64>()
    };
    let polls: Vec<f64> = (0..steps)
        .map(|step| in_step(step, |it| it.polls))
        .collect();
    let packets: Vec<f64> = (0..steps)
        .map(|step| in_step(step, |it| it.packets))
        .collect();
    let of_poll: Vec<f64> = polls
        .iter()
        .zip(&packets)
        .map(|(polls, packets)| if *polls > 0.0 { packets / polls } else { 0.0 })
        .collect();
    let settled = [polls, packets, of_poll].map(|series| settled_at(&series));
    let steps = settled
        .into_iter()
        .try_fold(0, |last, step| Some(last.max(step?)))?;
    Some(begin + steps as f64 * STEP_SECONDS)
}

/// Returns the count at a time between two readings.
fn count_at(counts: &[PollCount], seconds: f64, count: fn(&PollCount) -> u64) -> f64 {
    let after = counts.partition_point(|one| one.seconds < seconds);
    let after = after.min(counts.len() - 1);
    let (before, after) = (&counts[after.saturating_sub(1)], &counts[after]);
    let between = after.seconds - before.seconds;
    let share = if between > 0.0 {
        ((seconds - before.seconds) / between).clamp(0.0, 1.0)
    } else {
        1.0
    };
    let [low, high] = [before, after].map(|one| count(one) as f64);
    low + share * (high - low)
}

/// Returns the step at which a series has settled; `None` when that is beyond its middle.
fn settled_at(series: &[f64]) -> Option<usize> {
    let middle = series.len() / 2;
    let stays = &series[middle..];
    let mean = summary::mean(stays)?;
    // The deviation within each half, since a series that still moves scatters more as a whole.
    let (one, other) = stays.split_at(stays.len() / 2);
    let deviation = summary::standard_deviation(one)?.max(summary::standard_deviation(other)?);
    let moved = (summary::mean(one)? - summary::mean(other)?).abs();
    if moved > (MOVED_DEVIATIONS * deviation).max(SHARE * mean) {
        return None;
    }
    let width = (DEVIATIONS * deviation).max(SHARE * mean);
    let is_within = |value: &f64| (value - mean).abs() <= width;
    let mut windows = series.windows(STEPS);
    let settled = windows.position(|steps| steps.iter().all(is_within));
    settled.filter(|step| *step <= middle)
}

#[cfg(test)]
pub(crate) mod plan_tests {
    use super::*;

    pub(crate) fn plan(seed: u64) -> AbPlan {
        AbPlan {
            is_null: false,
            seed,
            duration_seconds: 600.0,
            duty_seconds: None,
            block_seconds: BLOCK_SECONDS,
            left_out_seconds: LEFT_OUT_SECONDS_MIN,
            settling_seconds: None,
            pairs_min: PAIRS_MIN,
            confidence_ratio: 0.95,
            margin_ratio: MARGIN,
        }
    }

    #[test]
    fn a_seed_always_gives_the_same_pairs() {
        let pairs = |seed| Draw::new(&plan(seed)).take(20).collect::<Vec<_>>();
        assert_eq!(pairs(1), pairs(1));
        assert_ne!(pairs(1), pairs(2));
        // A plan of an earlier release can be drawn again.
        let first = pairs(1).into_iter().map(|pair| pair.is_judged_first);
        assert_eq!(
            first.take(6).collect::<Vec<_>>(),
            [true, true, false, true, true, false]
        );
        for pair in pairs(3) {
            let [first, second] = pair.block_seconds;
            assert_eq!(pair.seconds(), first + second);
        }
    }

    #[test]
    fn orders_are_independent_coins() {
        let first: Vec<bool> = Draw::new(&plan(7))
            .take(10_000)
            .map(|pair| pair.is_judged_first)
            .collect();
        // Standard deviation of both counts: 50.
        let heads = first.iter().filter(|it| **it).count();
        let changes = first.windows(2).filter(|it| it[0] != it[1]).count();
        assert!((4_750..=5_250).contains(&heads), "{heads}");
        assert!((4_750..=5_250).contains(&changes), "{changes}");
    }

    #[test]
    fn lengths_fill_their_range() {
        let lengths: Vec<f64> = Draw::new(&plan(3))
            .take(5_000)
            .flat_map(|pair| pair.block_seconds)
            .collect();
        assert!(lengths.iter().all(|it| (2.0..6.0).contains(it)));
        for quarter in 0..4 {
            let low = 2.0 + f64::from(quarter);
            let within = lengths.iter().filter(|it| (low..low + 1.0).contains(*it));
            // Standard deviation: 43.
            assert!((2_280..=2_720).contains(&within.count()), "{quarter}");
        }
    }
}

#[cfg(test)]
mod settling_tests {
    use rand_core::Rng;

    use super::*;
    use crate::order::Seed;

    /// Two seconds of polls at a rate that goes from one to another with a time constant, and scatters.
    fn series(from: f64, to: f64, constant: f64, scatter: f64, seed: u64) -> Vec<PollCount> {
        let mut generator = Seed(seed).generator();
        let mut now = (0.0, 0.0);
        let step = |index: u32| {
            let seconds = 0.015 + f64::from(index) * STEP_SECONDS;
            let rate = to + (from - to) * (-seconds / constant).exp();
            let noise = generator.next_u32() as f64 / f64::from(u32::MAX) * 2.0 - 1.0;
            now.0 += rate * STEP_SECONDS * (1.0 + scatter * noise);
            now.1 += 20_000.0 * STEP_SECONDS * (1.0 + scatter * noise / 2.0);
            PollCount {
                seconds,
                polls: now.0 as u64,
                packets: now.1 as u64,
            }
        };
        (0..200).map(step).collect()
    }

    fn settling(from: f64, to: f64, constant: f64, scatter: f64) -> Option<f64> {
        let changes: Vec<_> = (0..3)
            .map(|seed| series(from, to, constant, scatter, seed))
            .collect();
        settling_seconds(&changes)
    }

    #[test]
    fn what_is_as_it_stays_from_the_beginning_has_settled_when_it_was_first_read() {
        for scatter in [0.0, 0.1, 0.5] {
            assert_eq!(
                settling(4_600.0, 4_600.0, 0.1, scatter),
                Some(0.015),
                "{scatter}"
            );
        }
    }

    #[test]
    fn an_approach_takes_longer_the_slower_it_is() {
        // From 12,000 to 4,600 within 5 % in 3.5 time constants, and sooner where it scatters more.
        let quick = settling(12_000.0, 4_600.0, 0.05, 0.01).unwrap();
        assert!((0.15..0.22).contains(&quick), "{quick}");
        let slow = settling(12_000.0, 4_600.0, 0.15, 0.01).unwrap();
        assert!((0.45..0.65).contains(&slow), "{slow}");
        let scattering = settling(12_000.0, 4_600.0, 0.15, 0.2).unwrap();
        assert!((0.1..0.5).contains(&scattering), "{scattering}");
    }

    #[test]
    fn what_never_stays_has_no_settling_time() {
        assert_eq!(settling(12_000.0, 1_000.0, 1.5, 0.01), None);
        assert_eq!(settling_seconds(&[]), None);
        assert_eq!(settling_seconds(&[Vec::new()]), None);
        let short: Vec<_> = series(1.0, 1.0, 1.0, 0.0, 1).into_iter().take(4).collect();
        assert_eq!(settling_seconds(&[short]), None);
    }

    #[test]
    fn packets_a_poll_settle_as_well() {
        // Polls and packets are within 5 % from the beginning, and their ratio is not for 300 ms.
        let changed: Vec<PollCount> = (0..200u32)
            .map(|index| {
                let (early, late) = (index.min(30), index.saturating_sub(30));
                PollCount {
                    seconds: f64::from(index) * STEP_SECONDS,
                    polls: u64::from(1_040 * early + 1_000 * late),
                    packets: u64::from(9_600 * early + 10_000 * late),
                }
            })
            .collect();
        let settled = settling_seconds(&[changed]).unwrap();
        assert!((settled - 0.3).abs() < 0.011, "{settled}");
    }

    #[test]
    fn the_band_is_as_wide_as_the_second_half_scatters_or_five_per_cent() {
        // Twenty values before, and after those ten around each of two means.
        let at = |before: f64, means: [f64; 2], scatter: f64| {
            let around = |mean: f64| [mean - scatter, mean + scatter].repeat(5);
            let after = means.map(around).concat();
            settled_at(&[vec![before; 20], after].concat())
        };
        // Ten values that alternate by 4.5 have a deviation of 4.74, and twice that is more than 8.
        assert_eq!(at(100.0, [96.0, 104.0], 4.5), Some(0));
        assert_eq!(at(100.0, [96.0, 104.0], 3.0), None);
        assert_eq!(at(100.0, [98.5, 101.5], 0.0), Some(0));
        assert_eq!(at(110.0, [100.0, 100.0], 3.0), Some(0));
        assert_eq!(at(113.0, [100.0, 100.0], 3.0), Some(20));
    }

    #[test]
    fn beyond_the_last_reading_its_count_stands() {
        let counts = [(1.0, 5), (2.0, 15)].map(|(seconds, polls)| PollCount {
            seconds,
            polls,
            packets: 0,
        });
        let at = |seconds| count_at(&counts, seconds, |it| it.polls);
        assert_eq!(
            [at(0.0), at(1.0), at(1.5), at(2.0), at(3.0)],
            [5.0, 5.0, 10.0, 15.0, 15.0]
        );
    }

    #[test]
    fn without_any_poll_nothing_has_to_settle() {
        let idle: Vec<_> = (0..100)
            .map(|index| PollCount {
                seconds: f64::from(index) * STEP_SECONDS,
                polls: 7,
                packets: 3,
            })
            .collect();
        assert_eq!(settling_seconds(&[idle.clone(), idle]), Some(0.0));
    }
}
