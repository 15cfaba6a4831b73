//! How times are distributed, in few enough figures to be kept with each trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parts of an octave, from a power of two of nanoseconds to the next.
const PARTS: u64 = 16;

/// Times counted into buckets of which each is a sixteenth of its octave wide: between 3 % and 6 % of the time itself.
/// Only buckets that hold something are listed, the shortest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimeDistribution {
    /// Where each bucket ends: every time in it is below.
    pub below_ns: Vec<u64>,
    /// How many times each bucket holds.
    pub entries: Vec<u64>,
}

impl TimeDistribution {
    /// Times, each with how often it was seen, in any order.
    pub fn of(times: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut times: Vec<(u64, u64)> = times
            .into_iter()
            .map(|(ns, count)| (end_ns(ns), count))
            .collect();
        times.sort_unstable();
        let mut distribution = TimeDistribution::default();
        for (end, count) in times {
            match distribution.entries.last_mut() {
                Some(sum) if distribution.below_ns.last() == Some(&end) => *sum += count,
                _ => {
                    distribution.below_ns.push(end);
                    distribution.entries.push(count);
                }
            }
        }
        distribution
    }

    /// All times of both.
    #[must_use]
    pub fn and(&self, other: &TimeDistribution) -> Self {
        let buckets = self.buckets().chain(other.buckets());
        // The end of a bucket is the beginning of the next.
        TimeDistribution::of(buckets.map(|(below, count)| (below - 1, count)))
    }

    /// Each bucket's end and count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let ends = self.below_ns.iter().copied();
        ends.zip(self.entries.iter().copied())
    }

    /// The share of all times that is below the end of each bucket: the empirical distribution function there.
    pub fn shares_below(&self) -> impl Iterator<Item = (u64, f64)> {
        let all = self.entries.iter().sum::<u64>().max(1) as f64;
        self.buckets().scan(0, move |sum, (below, count)| {
            *sum += count;
            Some((below, *sum as f64 / all))
        })
    }
}

impl TimeDistribution {
    /// The time below which at least this share of all lies, to the width of a bucket; `None` without any.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let mut buckets = self.shares_below();
        let found = buckets.find(|(_, below)| *below >= share && *below > 0.0);
        found.map(|(below, _)| below)
    }
}

/// The end of the bucket that a time lies in.
fn end_ns(ns: u64) -> u64 {
    // Below 16 ns each has a bucket of its own.
    let octave = 1 << ns.max(PARTS).ilog2();
    let width = octave / PARTS;
    (ns / width + 1).saturating_mul(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_a_sixteenth_of_its_octave_wide() {
        for (ns, end) in [
            (0, 1),
            (15, 16),
            (16, 17),
            (1023, 1024),
            (1024, 1088),
            (1087, 1088),
        ] {
            assert_eq!(end_ns(ns), end, "{ns}");
        }
        assert!(end_ns(u64::MAX) > u64::MAX - (1 << 60));
        for ns in (100..100_000_000).step_by(9_999) {
            let end = end_ns(ns);
            assert!(ns < end && (end - ns) as f64 <= 0.0625 * ns as f64, "{ns}");
        }
    }

    #[test]
    fn the_share_below_a_time_grows_to_one() {
        let distribution = TimeDistribution::of([(2000, 1), (1000, 5), (1005, 2)]);
        assert_eq!(distribution.below_ns, [1024, 2048]);
        let shares: Vec<(u64, f64)> = distribution.shares_below().collect();
        assert_eq!(shares, [(1024, 0.875), (2048, 1.0)]);
        let quantiles = [0.0, 0.875, 0.9, 1.0].map(|share| distribution.quantile_ns(share));
        assert_eq!(quantiles, [1024, 1024, 2048, 2048].map(Some));
        assert_eq!(TimeDistribution::default().quantile_ns(0.5), None);
        let both = distribution.and(&TimeDistribution::of([(1000, 8)]));
        assert_eq!(both.entries, [15, 1]);
        assert_eq!(both.below_ns, distribution.below_ns);
    }
}
