//! Verdicts from intervals, and Holm's correction of p values.
//!
//! A verdict follows from the interval and the margin alone. Intervals are oriented with more as better.
//!
//! S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6 (1979). It
//! rejects at least what Bonferroni does and cannot be read off intervals, so it is shown next to them. A family is as
//! large as was planned, whether or not all of it was tested.

use nicpoll_model::{MetricKind, Verdict};

use crate::interval::Interval;

/// The least difference that matters, declared before the study.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// From here on worse matters: 1/m or -d.
    worse: f64,
    /// No difference: a ratio of 1 or 0 points.
    none: f64,
    /// From here on better matters: m or d.
    better: f64,
    /// The margin as a difference of logs or of points: ln(m) or d.
    pub(crate) difference: f64,
}

/// An invalid margin.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidMargin {
    /// Not a finite ratio above 1.
    #[error("a margin for a ratio must be finite and above 1, and {0} is not")]
    Ratio(f64),
    /// Not between 0 and 1.
    #[error(
        "a margin in points must lie between 0 and 1 (0.01 is one percentage point), and {0} does not"
    )]
    Points(f64),
}

impl Margin {
    /// Creates a margin for metrics of this kind: [`Margin::ratio`] or [`Margin::points`].
    ///
    /// # Errors
    ///
    /// What those return.
    pub fn new(kind: MetricKind, margin: f64) -> Result<Self, InvalidMargin> {
        match kind {
            MetricKind::Ratio => Margin::ratio(margin),
            MetricKind::Points => Margin::points(margin),
        }
    }

    /// Creates a margin from a ratio, finite and above 1: 1.05 is 5 % better, and 1/1.05 as much worse.
    ///
    /// # Errors
    ///
    /// [`InvalidMargin::Ratio`] for everything else.
    pub fn ratio(margin: f64) -> Result<Self, InvalidMargin> {
        if !(margin > 1.0 && margin.is_finite()) {
            return Err(InvalidMargin::Ratio(margin));
        }
        Ok(Margin {
            worse: margin.recip(),
            none: 1.0,
            better: margin,
            difference: margin.ln(),
        })
    }

    /// Creates a margin from points, strictly between 0 and 1: 0.01 is one percentage point. The range excludes every
    /// ratio, lest one pass as points.
    ///
    /// # Errors
    ///
    /// [`InvalidMargin::Points`] for everything else.
    pub fn points(margin: f64) -> Result<Self, InvalidMargin> {
        if !(0.0 < margin && margin < 1.0) {
            return Err(InvalidMargin::Points(margin));
        }
        Ok(Margin {
            worse: -margin,
            none: 0.0,
            better: margin,
            difference: margin,
        })
    }
}

/// Returns the verdict of `interval`, of ratios for a ratio margin and of points for a points margin, oriented with
/// more as better. Without an interval it is inconclusive.
///
/// The first that applies: equivalent (entirely within the margin both ways, whether or not it excludes no
/// difference), better or worse and it matters (entirely beyond the margin), better or worse (entirely on one side of
/// no difference), no difference proven.
pub fn verdict(interval: Option<&Interval>, margin: &Margin) -> Verdict {
    let Some(&Interval { low, high, .. }) = interval else {
        return Verdict::Inconclusive;
    };
    if margin.worse <= low && high <= margin.better {
        Verdict::Equivalent
    } else if low >= margin.better {
        Verdict::BetterAndItMatters
    } else if high <= margin.worse {
        Verdict::WorseAndItMatters
    } else if low > margin.none {
        Verdict::Better
    } else if high < margin.none {
        Verdict::Worse
    } else {
        Verdict::NoDifferenceProven
    }
}

/// Returns the p values, each multiplied by the number of those that are not smaller, and never below a smaller
/// one's. `family` tests were planned; those that gave no p value count as the greatest.
pub fn holm(p_values: &[Option<f64>], family: usize) -> Vec<Option<f64>> {
    let told = p_values.iter().zip(0..);
    let told = told.filter_map(|(p, index)| Some(((*p)?, index)));
    let mut order: Vec<(f64, usize)> = told.collect();
    order.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let mut adjusted = vec![None; p_values.len()];
    let mut least = 0.0f64;
    for (place, (p, index)) in order.into_iter().enumerate() {
        let remaining = family.max(p_values.len()) - place;
        least = least.max((p * remaining as f64).min(1.0));
        adjusted[index] = Some(least);
    }
    adjusted
}

#[cfg(test)]
mod verdict_tests {
    use super::*;
    use crate::interval::Confidence;

    fn says(margin: Margin, low: f64, high: f64) -> Verdict {
        let interval = Interval {
            estimate: f64::midpoint(low, high),
            low,
            high,
            confidence: Confidence::PERCENT_95,
            blocks: 5,
        };
        verdict(Some(&interval), &margin)
    }

    #[test]
    fn words_for_ratios() {
        let ratio = |low, high| says(Margin::ratio(1.05).unwrap(), low, high);
        assert_eq!(ratio(1.10, 1.20), Verdict::BetterAndItMatters);
        assert_eq!(ratio(1.05, 1.20), Verdict::BetterAndItMatters);
        assert_eq!(ratio(1.0499, 1.20), Verdict::Better);
        assert_eq!(ratio(1.01, 1.20), Verdict::Better);
        assert_eq!(ratio(1.0, 1.20), Verdict::NoDifferenceProven);
        assert_eq!(ratio(0.94, 1.06), Verdict::NoDifferenceProven);
        assert_eq!(ratio(0.96, 1.06), Verdict::NoDifferenceProven);
        assert_eq!(ratio(0.94, 1.04), Verdict::NoDifferenceProven);
        assert_eq!(ratio(0.96, 1.04), Verdict::Equivalent);
        assert_eq!(ratio(1.0, 1.0), Verdict::Equivalent);
        assert_eq!(ratio(1.05f64.recip(), 1.05), Verdict::Equivalent);
        assert_eq!(ratio(0.80, 1.0), Verdict::NoDifferenceProven);
        assert_eq!(ratio(0.80, 0.99), Verdict::Worse);
        assert_eq!(ratio(0.80, 0.9525), Verdict::Worse);
        assert_eq!(ratio(0.80, 1.05f64.recip()), Verdict::WorseAndItMatters);
        assert_eq!(ratio(0.80, 0.90), Verdict::WorseAndItMatters);
    }

    #[test]
    fn words_for_points() {
        let points = |low, high| says(Margin::points(0.01).unwrap(), low, high);
        assert_eq!(points(0.01, 0.02), Verdict::BetterAndItMatters);
        assert_eq!(points(0.001, 0.02), Verdict::Better);
        assert_eq!(points(0.0, 0.02), Verdict::NoDifferenceProven);
        assert_eq!(points(-0.01, 0.01), Verdict::Equivalent);
        assert_eq!(points(-0.011, 0.01), Verdict::NoDifferenceProven);
        assert_eq!(points(-0.02, -0.001), Verdict::Worse);
        assert_eq!(points(-0.02, -0.01), Verdict::WorseAndItMatters);
    }

    #[test]
    fn a_difference_within_the_margin_is_the_same_for_whoever_asks() {
        let margin = Margin::ratio(1.05).unwrap();
        assert_eq!(says(margin, 1.01, 1.03), Verdict::Equivalent);
        assert_eq!(says(margin, 0.97, 0.99), Verdict::Equivalent);
    }

    #[test]
    fn without_an_interval_nothing_is_concluded() {
        let margin = Margin::ratio(1.05).unwrap();
        assert_eq!(verdict(None, &margin), Verdict::Inconclusive);
    }

    #[test]
    fn a_margin_fits_its_kind() {
        for margin in [1.0, 0.95, 0.01, -2.0, f64::NAN, f64::INFINITY] {
            assert!(Margin::ratio(margin).is_err(), "{margin}");
        }
        for margin in [0.0, 1.0, 1.05, -0.01, f64::NAN, f64::INFINITY] {
            assert!(Margin::points(margin).is_err(), "{margin}");
        }
        assert_eq!(Margin::new(MetricKind::Ratio, 1.05), Margin::ratio(1.05));
        assert_eq!(Margin::new(MetricKind::Points, 0.01), Margin::points(0.01));
        assert_eq!(
            Margin::new(MetricKind::Points, 1.05)
                .unwrap_err()
                .to_string(),
            "a margin in points must lie between 0 and 1 (0.01 is one percentage point), and 1.05 \
             does not"
        );
    }
}

#[cfg(test)]
mod holm_tests {
    use super::*;

    #[test]
    fn holms_own_steps() {
        let some = |values: &[f64]| values.iter().map(|it| Some(*it)).collect::<Vec<_>>();
        let close = |found: Vec<Option<f64>>, expected: &[f64]| {
            for (found, expected) in found.iter().zip(expected) {
                assert!(
                    (found.unwrap() - expected).abs() < 1e-12,
                    "{found:?} {expected}"
                );
            }
        };
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
        close(
            holm(&some(&[0.01, 0.04, 0.03, 0.005]), 4),
            &[0.03, 0.06, 0.06, 0.02],
        );
        // Two that were planned gave none.
        close(holm(&some(&[0.01, 0.04]), 4), &[0.04, 0.12]);
        assert_eq!(
            holm(&[None, Some(0.5), Some(0.9)], 3),
            [None, Some(1.0), Some(1.0)]
        );
    }
}
