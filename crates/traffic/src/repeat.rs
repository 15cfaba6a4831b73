//! What several runs of one command come to together (`--repeat`): the middle, the ends, and how sure the
//! middle is.

use nicpoll_stats::{Confidence, Summary, signed_rank_blocks_min, signed_rank_interval};

/// The most runs that can be asked for.
pub const RUNS_MAX: u32 = 1_000;
/// The level of a single interval: there is one comparison, or none.
const COMPARISONS: u32 = 1;

/// The line below the last run: the median of the runs' rates, the least and the greatest, and the interval
/// of the typical run where there are enough of them (Hodges-Lehmann with the exact signed-rank
/// distribution). `rate` writes a rate with its unit. Runs without a result are `None`; no line when all are.
pub fn line(rates: &[Option<f64>], rate: impl Fn(f64) -> String) -> Option<String> {
    let known: Vec<f64> = rates.iter().copied().flatten().collect();
    let summary = Summary::of(&known)?;
    let confidence = Confidence::for_family(COMPARISONS);
    let interval = match signed_rank_interval(&known, confidence) {
        Ok(interval) => format!(
            "{:.0} % interval {} to {}",
            100.0 * confidence.level(),
            rate(interval.low),
            rate(interval.high)
        ),
        Err(_) => format!(
            "no interval below {} runs",
            signed_rank_blocks_min(confidence)
        ),
    };
    let runs = match rates.len() {
        all if all == known.len() => format!("{all} runs"),
        all => format!("{} of {all} runs with a result", known.len()),
    };
    Some(format!(
        "{runs}: median {}, range {} to {}, {interval}",
        rate(summary.median),
        rate(summary.min),
        rate(summary.max)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(rates: &[f64]) -> String {
        let rates: Vec<_> = rates.iter().copied().map(Some).collect();
        line(&rates, |rate| format!("{rate:.0}/s")).unwrap()
    }

    #[test]
    fn three_runs_have_no_interval_and_six_have_one() {
        assert_eq!(
            told(&[30.0, 10.0, 20.0]),
            "3 runs: median 20/s, range 10/s to 30/s, no interval below 6 runs"
        );
        // With six runs the ends of the interval are those of the range.
        assert_eq!(
            told(&[30.0, 10.0, 20.0, 40.0, 60.0, 50.0]),
            "6 runs: median 35/s, range 10/s to 60/s, 95 % interval 10/s to 60/s"
        );
    }

    #[test]
    fn runs_without_a_result_are_counted() {
        let rate = |rate: f64| format!("{rate:.0}/s");
        assert_eq!(
            line(&[Some(10.0), None], rate).unwrap(),
            "1 of 2 runs with a result: median 10/s, range 10/s to 10/s, no interval below 6 runs"
        );
        assert_eq!(line(&[None], rate), None);
    }
}
