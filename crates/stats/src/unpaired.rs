//! Two sets of values without pairs: ratios by ranks and by means.
//!
//! What must hold: the method follows from the sizes and the confidence, never from the values. Ranks decide wherever
//! the sizes can reach the confidence; below that Welch's interval does, and says that it assumes even noise.

use nicpoll_model::{ComparedMethod, Ends};

use crate::confidence::Confidence;
use crate::mann_whitney::{mann_whitney_p, mann_whitney_p_least, shift_interval, shift_reaches};
use crate::paired::Interval;
use crate::verdict::PValues;
use crate::welch::{welch_interval, welch_p};

/// What two sets of values come to. Intervals are of ratios, judged / reference.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Unpaired {
    /// Which of the two decides.
    pub method: ComparedMethod,
    /// The deciding interval with its estimate; an end may be infinite or 0 for runs that failed. `None` where
    /// there is none.
    pub interval: Option<Interval>,
    /// The p values of no difference behind it.
    pub p_values: PValues,
    /// The ends by ranks.
    pub mann_whitney: Ends,
    /// Mann and Whitney's p value.
    pub mann_whitney_p: Option<f64>,
    /// The ends by means of logs.
    pub welch: Ends,
    /// Welch's p value.
    pub welch_p: Option<f64>,
}

/// Compares two sets of values that are 0 or more, by their logs.
pub fn compare_unpaired(judged: &[f64], reference: &[f64], confidence: Confidence) -> Unpaired {
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
    let (judged, reference) = (logs(judged), logs(reference));
    let ratios = |interval: Interval| interval.exponentiated();
    let ranks = shift_interval(&judged, &reference, confidence);
    let ranks = ranks.ok().and_then(ratios);
    let welch = welch_interval(&judged, &reference, confidence);
    let welch = welch.ok().and_then(ratios);
    let mann_whitney_p = mann_whitney_p(&judged, &reference);
    let welch_p = welch_p(&judged, &reference);
    let sizes = [judged.len(), reference.len()];
    let (method, interval, deciding, deciding_least) = if shift_reaches(sizes, confidence) {
        let least = mann_whitney_p_least(sizes);
        (ComparedMethod::MannWhitney, ranks, mann_whitney_p, least)
    } else {
        (ComparedMethod::Welch, welch, welch_p, 0.0)
    };
    Unpaired {
        method,
        interval,
        p_values: PValues {
            deciding,
            deciding_least,
            by_means: welch_p,
        },
        mann_whitney: ends(ranks),
        mann_whitney_p,
        welch: ends(welch),
        welch_p,
    }
}

fn ends(interval: Option<Interval>) -> Ends {
    let finite = |end: f64| Some(end).filter(|end| end.is_finite());
    interval.map_or(Ends::default(), |it| Ends {
        low: finite(it.low),
        high: finite(it.high),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_decide_the_method() {
        let three = [100.0, 101.0, 102.0];
        let four = [50.0, 51.0, 52.0, 50.5];
        let level = Confidence::PERCENT_95;
        assert_eq!(
            compare_unpaired(&three, &three, level).method,
            ComparedMethod::Welch
        );
        let by_ranks = compare_unpaired(&four, &four.map(|it| 2.0 * it), level);
        assert_eq!(by_ranks.method, ComparedMethod::MannWhitney);
        let interval = by_ranks.interval.unwrap();
        assert!(0.47 < interval.low && interval.high < 0.53, "{interval:?}");
        let p_values = by_ranks.p_values;
        assert!((p_values.deciding.unwrap() - 2.0 / 70.0).abs() < 1e-12);
        assert!((p_values.deciding_least - 2.0 / 70.0).abs() < 1e-12);
        assert!(by_ranks.welch_p.unwrap() < 0.001);
    }

    #[test]
    fn a_run_without_a_rate_leaves_welch_without_an_interval() {
        let failed = [0.0, 101.0, 102.0, 103.0, 99.0, 100.0];
        let found = compare_unpaired(&failed, &failed.map(|it| it + 50.0), Confidence::PERCENT_95);
        assert_eq!(found.welch, Ends::default());
        assert!(found.interval.is_some() && found.mann_whitney.high.unwrap() < 1.0);
    }
}
