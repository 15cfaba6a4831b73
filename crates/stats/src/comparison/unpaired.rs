//! Two unpaired sets of values, by ranks and by means: their ratio, or their difference in points.
//!
//! The method follows from the sizes and the confidence, never from the values: ranks wherever the sizes can reach
//! the confidence; below that Welch's interval, which assumes normal noise.
//!
//! B. L. Welch, "The Generalization of 'Student's' Problem when Several Different Population Variances are Involved",
//! Biometrika 34 (1947), with his degrees of freedom (Welch 1938, Satterthwaite 1946). It assumes that values are
//! independent and their means close to normal: spikes deceive it. Sets without scatter give an interval without width.

use nicpoll_model::{ComparedMethod, Ends, MetricKind};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::interval::{Confidence, Interval, NoInterval};
use crate::rank::{VALUES_MIN, mann_whitney_p, shift_interval, shift_reaches};
use crate::summary;

/// The comparison of two sets of values. Intervals are of ratios, judged / reference, or of points, judged -
/// reference.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Unpaired {
    /// The method that decides.
    pub method: ComparedMethod,
    /// The deciding interval with its estimate, or why there is none; an end may be infinite or 0 for runs that failed.
    pub interval: Result<Interval, NoInterval>,
    /// Its two-sided p value of no difference.
    pub difference_p: Option<f64>,
    /// The ends by ranks.
    pub mann_whitney: Ends,
    /// Mann and Whitney's p value.
    pub mann_whitney_p: Option<f64>,
    /// The ends by means, of logs for a ratio.
    pub welch: Ends,
    /// Welch's p value.
    pub welch_p: Option<f64>,
}

/// Compares two sets of values that are 0 or more: by their logs for a ratio, as they are for points.
pub fn compare_unpaired(
    judged: &[f64],
    reference: &[f64],
    kind: MetricKind,
    confidence: Confidence,
) -> Unpaired {
    let scaled = |values: &[f64]| -> Vec<f64> {
        match kind {
            MetricKind::Ratio => values.iter().map(|value| value.ln()).collect(),
            MetricKind::Points => values.to_vec(),
        }
    };
    let (judged, reference) = (scaled(judged), scaled(reference));
    let unscaled = |interval: Interval| match kind {
        MetricKind::Ratio => interval.exponentiated().ok_or(NoInterval::OutOfRange),
        MetricKind::Points => Ok(interval),
    };
    let ranks = shift_interval(&judged, &reference, confidence).and_then(unscaled);
    let welch = welch_interval(&judged, &reference, confidence).and_then(unscaled);
    let mann_whitney_p = mann_whitney_p(&judged, &reference);
    let welch_p = welch_p(&judged, &reference);
    let sizes = [judged.len(), reference.len()];
    let (method, interval, difference_p) = if shift_reaches(sizes, confidence) {
        (ComparedMethod::MannWhitney, ranks, mann_whitney_p)
    } else {
        (ComparedMethod::Welch, welch, welch_p)
    };
    Unpaired {
        method,
        interval,
        difference_p,
        mann_whitney: ends(ranks),
        mann_whitney_p,
        welch: ends(welch),
        welch_p,
    }
}

fn ends(interval: Result<Interval, NoInterval>) -> Ends {
    let finite = |end: f64| Some(end).filter(|end| end.is_finite());
    interval.map_or(Ends::default(), |it| Ends {
        low: finite(it.low),
        high: finite(it.high),
    })
}

/// A difference of means with its standard error.
struct MeanDifference {
    means: f64,
    error: f64,
    degrees: f64,
}

impl MeanDifference {
    fn of(one: &[f64], other: &[f64]) -> Result<Self, NoInterval> {
        let sizes = [one.len(), other.len()];
        if sizes.iter().any(|size| *size < VALUES_MIN) {
            return Err(NoInterval::TooFewValues { sizes });
        }
        let moments = |values: &[f64]| {
            let variance = summary::standard_deviation(values)?.powi(2);
            Some((summary::mean(values)?, variance / values.len() as f64))
        };
        let (mean, share) = moments(one).ok_or(NoInterval::OutOfRange)?;
        let (other_mean, other_share) = moments(other).ok_or(NoInterval::OutOfRange)?;
        let of = |share: f64, size: usize| share.powi(2) / (size - 1) as f64;
        let sum = share + other_share;
        let degrees = sum.powi(2) / (of(share, sizes[0]) + of(other_share, sizes[1]));
        Ok(MeanDifference {
            means: mean - other_mean,
            error: sum.sqrt(),
            // Without scatter there is nothing that degrees of freedom could widen.
            degrees: if degrees.is_finite() { degrees } else { 1.0 },
        })
    }

    fn student(&self) -> StudentsT {
        StudentsT::new(0.0, 1.0, self.degrees).expect("scale 1 and degrees of 1 or more are valid")
    }
}

/// Returns how far the mean of `one` lies above that of `other`, with its interval.
///
/// # Errors
/// [`NoInterval::TooFewValues`] below three values a side; [`NoInterval::OutOfRange`] when values are not
/// finite or too great.
pub fn welch_interval(
    one: &[f64],
    other: &[f64],
    confidence: Confidence,
) -> Result<Interval, NoInterval> {
    let found = MeanDifference::of(one, other)?;
    let half = -found.student().inverse_cdf(confidence.tail()) * found.error;
    let values = one.len() + other.len();
    Ok(Interval::around(found.means, half, confidence, values))
}

/// Returns the two-sided p value of a difference of means; `None` where there is no interval.
pub fn welch_p(one: &[f64], other: &[f64]) -> Option<f64> {
    let found = MeanDifference::of(one, other).ok()?;
    if found.means == 0.0 {
        return Some(1.0);
    }
    if found.error == 0.0 {
        return Some(0.0);
    }
    Some(2.0 * found.student().cdf(-(found.means / found.error).abs()))
}

#[cfg(test)]
mod unpaired_tests {
    use super::*;

    #[test]
    fn the_sizes_decide_the_method() {
        let three = [100.0, 101.0, 102.0];
        let four = [50.0, 51.0, 52.0, 50.5];
        let level = Confidence::PERCENT_95;
        assert_eq!(
            compare_unpaired(&three, &three, MetricKind::Ratio, level).method,
            ComparedMethod::Welch
        );
        let by_ranks = compare_unpaired(&four, &four.map(|it| 2.0 * it), MetricKind::Ratio, level);
        assert_eq!(by_ranks.method, ComparedMethod::MannWhitney);
        let interval = by_ranks.interval.unwrap();
        assert!(0.47 < interval.low && interval.high < 0.53, "{interval:?}");
        assert!((by_ranks.difference_p.unwrap() - 2.0 / 70.0).abs() < 1e-12);
        assert!(by_ranks.welch_p.unwrap() < 0.001);
    }

    #[test]
    fn shares_are_held_against_each_other_in_points() {
        // 9 points less, of a share that is 0 in one trial: it has no log, and needs none.
        let busy = [0.0, 0.02, 0.01, 0.03, 0.02];
        let more = busy.map(|it| it + 0.09);
        let found = compare_unpaired(&busy, &more, MetricKind::Points, Confidence::PERCENT_95);
        let interval = found.interval.unwrap();
        assert!((interval.estimate + 0.09).abs() < 1e-9, "{interval:?}");
        assert!(interval.low > -0.13 && interval.high < -0.05 && found.welch.high.unwrap() < 0.0);
    }

    #[test]
    fn a_run_without_a_rate_leaves_welch_without_an_interval() {
        let failed = [0.0, 101.0, 102.0, 103.0, 99.0, 100.0];
        let more = failed.map(|it| it + 50.0);
        let found = compare_unpaired(&failed, &more, MetricKind::Ratio, Confidence::PERCENT_95);
        assert_eq!(found.welch, Ends::default());
        assert!(found.interval.is_ok() && found.mann_whitney.high.unwrap() < 1.0);
    }
}

#[cfg(test)]
mod welch_tests {
    use super::*;

    #[test]
    fn welchs_own_kind_of_example() {
        // From scipy 1.17: ttest_ind(one, other, equal_var=False), and its confidence_interval(0.95).
        let one = [
            27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7,
            21.4,
        ];
        let other = [
            27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.0,
            23.9,
        ];
        let interval = welch_interval(&one, &other, Confidence::PERCENT_95).unwrap();
        let close = |figure: f64, expected: f64| {
            assert!(
                (figure - expected).abs() < 1e-9 * expected.abs(),
                "{figure} {expected}"
            );
        };
        close(welch_p(&one, &other).unwrap(), 0.008452732437443423);
        close(interval.low, -4.766445039218351);
        close(interval.high, -0.7668882941149804);
        assert_eq!(interval.blocks, 30);
    }

    #[test]
    fn without_scatter_the_interval_has_no_width() {
        let interval = welch_interval(&[2.0; 4], &[1.0; 3], Confidence::PERCENT_95).unwrap();
        assert_eq!((interval.low, interval.high), (1.0, 1.0));
        assert_eq!(welch_p(&[2.0; 4], &[1.0; 3]), Some(0.0));
        assert_eq!(welch_p(&[2.0; 4], &[2.0; 3]), Some(1.0));
    }

    #[test]
    fn what_has_no_mean_has_no_interval() {
        let few = welch_interval(&[1.0, 2.0], &[1.0; 3], Confidence::PERCENT_95);
        assert_eq!(few.unwrap_err(), NoInterval::TooFewValues { sizes: [2, 3] });
        let failed = [1.0, 2.0, f64::NEG_INFINITY];
        let infinite = welch_interval(&failed, &[1.0; 3], Confidence::PERCENT_95);
        assert_eq!(infinite.unwrap_err(), NoInterval::OutOfRange);
    }
}
