//! The word for what an interval says.
//!
//! What must hold: the verdict can be read off the interval and the margin, and nothing else goes
//! into it. Intervals come oriented so that more is better.

use nicpoll_model::{MetricKind, Verdict};

use crate::paired::Interval;

/// The least difference that matters, declared before the study.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// What matters as worse: 1/m or -d.
    worse: f64,
    /// No difference: a ratio of 1 or 0 points.
    none: f64,
    /// What matters as better: m or d.
    better: f64,
    /// The margin as a difference of logs or of points: ln(m) or d.
    difference: f64,
}

/// A margin that is none.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
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
    /// For metrics of this kind: [`Margin::ratio`] or [`Margin::points`].
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

    /// A ratio, finite and above 1: 1.05 is 5 % better, and 1/1.05 as much worse.
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

    /// Points, strictly between 0 and 1: 0.01 is one percentage point. The range leaves out every
    /// ratio, so that one cannot pass as points.
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

    /// The margin as a difference of logs or of points.
    pub(crate) fn as_difference(&self) -> f64 {
        self.difference
    }
}

/// What `interval` says, of ratios for a ratio margin and of points for a points margin, oriented so
/// that more is better. `None` is the lack of an interval: inconclusive.
///
/// The first that holds of: better (entirely above no difference), worse (entirely below),
/// equivalent (within the margin both ways), no difference proven. An interval may lie within the
/// margin and still exclude no difference, like `[1.01, 1.03]` with a margin of 1.05: that is
/// `better`, and that it does not say `and it matters` tells the rest.
pub fn verdict(interval: Option<&Interval>, margin: &Margin) -> Verdict {
    let Some(&Interval { low, high, .. }) = interval else {
        return Verdict::Inconclusive;
    };
    if low > margin.none {
        if low >= margin.better {
            Verdict::BetterAndItMatters
        } else {
            Verdict::Better
        }
    } else if high < margin.none {
        if high <= margin.worse {
            Verdict::WorseAndItMatters
        } else {
            Verdict::Worse
        }
    } else if margin.worse <= low && high <= margin.better {
        Verdict::Equivalent
    } else {
        Verdict::NoDifferenceProven
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confidence::Confidence;

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
    fn a_difference_within_the_margin_is_still_a_difference() {
        let margin = Margin::ratio(1.05).unwrap();
        assert_eq!(says(margin, 1.01, 1.03), Verdict::Better);
        assert_eq!(says(margin, 0.97, 0.99), Verdict::Worse);
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
