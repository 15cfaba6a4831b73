//! A histogram of times, with three significant digits.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use nicpoll_model::TimeDistribution;
use nicpoll_model::traffic::Latency;

/// Times are recorded up to this; longer ones count as this long.
const MAX_NS: u64 = 60_000_000_000;
/// Significant digits of a recorded time.
const DIGITS: u8 = 3;
/// Samples that must lie beyond a percentile for it to be reported.
const SAMPLES_BEYOND: u64 = 10;

/// A distribution of times: an HDR histogram of three significant digits from 1 ns to one minute.
/// ```
/// use std::time::Duration;
///
/// let mut latencies = nicpoll_stats::Latencies::default();
/// for us in 1..=1_000 {
///     latencies.record(Duration::from_micros(us));
/// }
/// let p99_us = latencies.quantile_ns(0.99) / 1_000;
/// assert!((989..=991).contains(&p99_us));
/// ```
#[derive(Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, MAX_NS, DIGITS);
        Latencies(histogram.expect("constant bounds that the histogram accepts"))
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.summary())
    }
}

impl Latencies {
    /// Records a time.
    pub fn record(&mut self, time: Duration) {
        self.record_ns(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Records a time in nanoseconds; 0 counts as 1.
    pub fn record_ns(&mut self, ns: u64) {
        self.0.saturating_record(ns.max(1));
    }

    /// Adds all times of another distribution.
    pub fn add(&mut self, other: &Latencies) {
        let added = self.0.add(&other.0);
        added.expect("both have the same bounds");
    }

    /// Removes all times.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// Returns the number of recorded times.
    pub fn samples(&self) -> u64 {
        self.0.len()
    }

    /// Returns the time that a share of all does not exceed, however few there are.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        self.0.value_at_quantile(quantile)
    }

    /// Returns the mean; 0 without any time.
    pub fn mean_ns(&self) -> f64 {
        self.0.mean()
    }

    /// Returns the shortest time, to the histogram's resolution.
    pub fn min_ns(&self) -> u64 {
        self.0.min()
    }

    /// Returns the longest time, to the histogram's resolution.
    pub fn max_ns(&self) -> u64 {
        self.0.max()
    }

    /// Returns the distribution in few figures.
    pub fn distribution(&self) -> TimeDistribution {
        let recorded = self.0.iter_recorded();
        TimeDistribution::of(recorded.map(|at| (at.value_iterated_to(), at.count_at_value())))
    }

    /// Returns the figures that the number of samples supports.
    pub fn summary(&self) -> Latency {
        let samples = self.samples();
        // One in `share` lies beyond the percentile.
        let percentile = |quantile, share| {
            (samples >= SAMPLES_BEYOND * share).then(|| self.quantile_ns(quantile))
        };
        let has_any = samples > 0;
        Latency {
            samples,
            min_ns: has_any.then(|| self.min_ns()),
            p50_ns: percentile(0.5, 2),
            p90_ns: percentile(0.9, 10),
            p99_ns: percentile(0.99, 100),
            p999_ns: percentile(0.999, 1000),
            max_ns: has_any.then(|| self.max_ns()),
            mean_ns: has_any.then(|| self.mean_ns()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(times: &[u64]) -> Latencies {
        let mut latencies = Latencies::default();
        for &ns in times {
            latencies.record(Duration::from_nanos(ns));
        }
        latencies
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_times(
            mut times in proptest::collection::vec(1..10_000_000_000u64, 1..3000),
        ) {
            let summary = of(&times).summary();
            times.sort_unstable();
            let count = times.len();
            let told = [
                (summary.p50_ns, 0.5, 20),
                (summary.p90_ns, 0.9, 100),
                (summary.p99_ns, 0.99, 1000),
                (summary.p999_ns, 0.999, 10_000),
            ];
            for (told, quantile, least) in told {
                prop_assert_eq!(told.is_some(), count >= least);
                let Some(told) = told else { continue };
                // The least time that the share does not exceed; equal to a thousandth.
                let rank = (quantile * count as f64).ceil() as usize;
                let true_ns = times[rank - 1] as f64;
                prop_assert!((told as f64 - true_ns).abs() <= true_ns / 1000.0 + 1.0);
            }
            let ends = [(summary.min_ns, times[0]), (summary.max_ns, times[count - 1])];
            for (told, true_ns) in ends {
                let apart = told.unwrap().abs_diff(true_ns);
                prop_assert!(apart as f64 <= true_ns as f64 / 1000.0 + 1.0);
            }
            let mean = times.iter().sum::<u64>() as f64 / count as f64;
            prop_assert!((summary.mean_ns.unwrap() - mean).abs() <= mean / 1000.0 + 1.0);
        }
    }

    #[test]
    fn the_highest_percentile_takes_ten_thousand_samples() {
        let times: Vec<u64> = (1..=10_000).map(|n| n * 1000).collect();
        let summary = of(&times).summary();
        let p999 = summary.p999_ns.unwrap();
        assert!(p999.abs_diff(9_990_000) <= 9_990, "{p999}");
        assert_eq!(of(&times[1..]).summary().p999_ns, None);
    }

    #[test]
    fn few_figures_hold_every_sample() {
        let times: Vec<u64> = (1..=10_000).map(|n| n * 1000).collect();
        let latencies = of(&times);
        let distribution = latencies.distribution();
        assert_eq!(distribution.entries.iter().sum::<u64>(), 10_000);
        assert!(distribution.entries.len() < 250);
        for (below, share) in distribution.shares_below() {
            let true_share = times.iter().filter(|ns| **ns < below).count() as f64 / 1e4;
            assert!((share - true_share).abs() < 0.002, "{below}: {share}");
        }
    }

    #[test]
    fn nothing_is_said_of_no_samples() {
        let summary = Latencies::default().summary();
        assert_eq!((summary.samples, summary.min_ns), (0, None));
        assert_eq!((summary.max_ns, summary.mean_ns), (None, None));
    }

    #[test]
    fn times_of_two_are_added_and_forgotten() {
        let mut both = of(&[10, 20]);
        both.add(&of(&[30, 900]));
        assert_eq!((both.samples(), both.max_ns()), (4, 900));
        assert_eq!(format!("{both:?}"), format!("{:?}", both.summary()));
        both.clear();
        assert_eq!(both.samples(), 0);
    }

    #[test]
    fn what_is_longer_than_the_histogram_counts_as_its_end() {
        let max = of(&[u64::MAX]).summary().max_ns.unwrap();
        let end = MAX_NS..MAX_NS + MAX_NS / 500;
        assert!(end.contains(&max), "{max}");
    }
}
