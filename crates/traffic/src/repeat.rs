//! The summary of several runs of one command (`--repeat`): median, range and confidence interval.

use nicpoll_model::RateUnit;
use nicpoll_model::traffic::RunsSummary;
use nicpoll_stats::{Confidence, Interval, Summary, signed_rank_blocks_min, signed_rank_interval};

/// Most runs per command.
pub const RUNS_MAX: u32 = 1_000;
/// The number of intervals that share the error rate.
const COMPARISONS: u32 = 1;

/// The runs of one command, and their summary.
#[derive(Clone, Debug, PartialEq)]
pub struct RepeatedRuns {
    /// How many runs were requested.
    pub asked: u32,
    /// The rate of each run made, in the command's unit; `None` for a run without a result.
    pub rates: Vec<Option<f64>>,
    /// Median and range of the rates; `None` without any.
    pub summary: Option<Summary>,
    /// Interval of the typical rate (Hodges-Lehmann with the exact signed-rank distribution); `None` with too
    /// few runs.
    pub interval: Option<Interval>,
}

impl RepeatedRuns {
    /// Summarises the `rates` of runs, given the number `asked` for.
    pub fn of(asked: u32, rates: Vec<Option<f64>>) -> Self {
        let known: Vec<f64> = rates.iter().copied().flatten().collect();
        RepeatedRuns {
            asked,
            summary: Summary::of(&known),
            interval: signed_rank_interval(&known, confidence()).ok(),
            rates,
        }
    }

    /// How many runs have a rate.
    pub fn done(&self) -> u32 {
        self.summary.map_or(0, |summary| summary.n as u32)
    }

    /// The summary for a document; `quantity` is the rates' unit.
    pub fn summary_of(self, quantity: RateUnit) -> RunsSummary {
        let (summary, interval) = (self.summary, self.interval);
        RunsSummary {
            asked_runs: self.asked,
            done_runs: self.done(),
            quantity,
            values: self.rates,
            median: summary.map(|summary| summary.median),
            min: summary.map(|summary| summary.min),
            max: summary.map(|summary| summary.max),
            interval_low: interval.map(|interval| interval.low),
            interval_high: interval.map(|interval| interval.high),
            interval_confidence_ratio: confidence().level(),
        }
    }

    /// The line after the last run: median, minimum and maximum rate, and the interval if there are enough
    /// runs. `rate` formats a rate with its unit. `None` when no run has a rate.
    pub fn line(&self, rate: impl Fn(f64) -> String) -> Option<String> {
        let summary = self.summary?;
        let interval = match self.interval {
            Some(interval) => format!(
                "{:.0} % interval {} to {}",
                100.0 * interval.confidence.level(),
                rate(interval.low),
                rate(interval.high)
            ),
            None => format!(
                "no interval below {} runs",
                signed_rank_blocks_min(confidence())
            ),
        };
        let runs = match (self.rates.len(), summary.n) {
            (1, 1) => String::from("1 run"),
            (all, known) if all == known => format!("{all} runs"),
            (all, known) => format!("{known} of {all} runs with a result"),
        };
        Some(format!(
            "{runs}: median {}, range {} to {}, {interval}",
            rate(summary.median),
            rate(summary.min),
            rate(summary.max)
        ))
    }
}

/// The interval's confidence.
fn confidence() -> Confidence {
    Confidence::for_family(COMPARISONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(rates: &[Option<f64>]) -> RepeatedRuns {
        RepeatedRuns::of(10, rates.to_vec())
    }

    fn told(rates: &[Option<f64>]) -> Option<String> {
        outcome(rates).line(|rate| format!("{rate:.0}/s"))
    }

    #[test]
    fn three_runs_have_no_interval_and_six_have_one() {
        assert_eq!(
            told(&[Some(30.0), Some(10.0), Some(20.0)]).unwrap(),
            "3 runs: median 20/s, range 10/s to 30/s, no interval below 6 runs"
        );
        // With six runs, the interval is the range.
        let six = [30.0, 10.0, 20.0, 40.0, 60.0, 50.0].map(Some);
        assert_eq!(
            told(&six).unwrap(),
            "6 runs: median 35/s, range 10/s to 60/s, 95 % interval 10/s to 60/s"
        );
        let summary = outcome(&six).summary_of(RateUnit::BitsPerSecond);
        assert_eq!((summary.asked_runs, summary.done_runs), (10, 6));
        assert_eq!(summary.median, Some(35.0));
        assert_eq!(summary.interval_low, Some(10.0));
        assert_eq!(summary.interval_high, Some(60.0));
        assert_eq!(summary.interval_confidence_ratio, 0.95);
    }

    #[test]
    fn runs_without_a_result_are_counted() {
        let rates = [Some(10.0), None];
        assert_eq!(
            told(&rates).unwrap(),
            "1 of 2 runs with a result: median 10/s, range 10/s to 10/s, no interval below 6 runs"
        );
        assert_eq!(told(&rates[..1]).unwrap().split(':').next(), Some("1 run"));
        assert_eq!(told(&rates[1..]), None);
        let summary = outcome(&rates).summary_of(RateUnit::PacketsPerSecond);
        assert_eq!(summary.quantity, RateUnit::PacketsPerSecond);
        assert_eq!(summary.values, rates);
        assert_eq!(summary.done_runs, 1);
        assert_eq!(summary.max, Some(10.0));
        assert_eq!(summary.interval_low, None);
    }
}
