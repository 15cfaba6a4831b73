//! How long polls take, after a change of setting, until they are as they stay.
//!
//! What comes before is neither setting's: a timer that has to expire first, queues that empty, senders that find
//! their new rate. The rates of polls and of the packets that they take, and packets a poll, are laid over one
//! another for several changes to the same setting, in steps of [`STEP_SECONDS`]. Their second half shows where
//! each stays and how it scatters. It has settled when it begins to stay within that for five steps on end.
//!
//! What must hold: what has not settled by the middle has no settling time, since then the second half shows nothing.

use crate::moments;

/// Length of a step.
pub const STEP_SECONDS: f64 = 0.01;
/// So many steps within the band, one after the other, are settled.
const STEPS: usize = 5;
/// Half the width of the band: so many standard deviations of the second half, or a share of its mean.
const DEVIATIONS: f64 = 4.0;
const SHARE: f64 = 0.05;
/// The second half still moves when the means of its halves differ by so many standard deviations, and by that share.
const MOVED_DEVIATIONS: f64 = 2.0;

/// What polls had done by some time after a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PollCount {
    /// Time since the change.
    pub seconds: f64,
    /// Polls so far.
    pub polls: u64,
    /// Packets that these took.
    pub packets: u64,
}

/// How long it takes until polls are as they stay, from several changes to the same setting, in seconds. `None` when
/// they do not settle in the first half of the time that was looked at, or that was too short.
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

/// The count at a time between two readings.
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

/// The step from which on a series is as it stays; `None` when that is beyond its middle.
fn settled_at(series: &[f64]) -> Option<usize> {
    let middle = series.len() / 2;
    let stays = &series[middle..];
    let mean = moments::mean(stays)?;
    // Within each half of these, since one that still moves scatters more as a whole.
    let (one, other) = stays.split_at(stays.len() / 2);
    let deviation = moments::standard_deviation(one)?.max(moments::standard_deviation(other)?);
    let moved = (moments::mean(one)? - moments::mean(other)?).abs();
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
mod tests {
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
