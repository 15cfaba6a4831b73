//! How sure an interval is to be, for one comparison and for a family of them.
//!
//! What must hold: a level lies strictly between 0 and 1, so every quantile taken at it is finite.

/// Chance that a whole family of verdicts is allowed to be wrong in at least one of them.
pub const FAMILY_ALPHA: f64 = 0.05;

/// The share of repetitions of a study in which an interval holds the true value.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence(f64);

/// A confidence level that is not between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("a confidence level must lie between 0 and 1, and {0} does not")]
pub struct InvalidConfidence(pub f64);

impl Confidence {
    /// 0.95: the level of an interval that stands alone.
    pub const PERCENT_95: Confidence = Confidence(1.0 - FAMILY_ALPHA);

    /// A level strictly between 0 and 1.
    ///
    /// # Errors
    ///
    /// [`InvalidConfidence`] for everything else, NaN included.
    pub fn new(level: f64) -> Result<Self, InvalidConfidence> {
        if 0.0 < level && level < 1.0 {
            Ok(Confidence(level))
        } else {
            Err(InvalidConfidence(level))
        }
    }

    /// The level of each interval in a family of `comparisons`, so that all of them together hold at
    /// 95 %: Bonferroni's 1 - [`FAMILY_ALPHA`] / comparisons.
    ///
    /// A study without primary comparisons has a family of 0, which is treated as 1.
    pub fn for_family(comparisons: u32) -> Self {
        Confidence(1.0 - FAMILY_ALPHA / f64::from(comparisons.max(1)))
    }

    /// The level, strictly between 0 and 1.
    pub fn level(self) -> f64 {
        self.0
    }

    /// The probability outside the interval on each side.
    pub(crate) fn tail(self) -> f64 {
        (1.0 - self.0) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_shares_its_alpha() {
        assert_eq!(Confidence::for_family(1), Confidence::PERCENT_95);
        assert_eq!(Confidence::for_family(4).level(), 0.9875);
        assert_eq!(Confidence::for_family(5).level(), 0.99);
        assert_eq!(Confidence::for_family(0), Confidence::PERCENT_95);
        assert!(Confidence::for_family(u32::MAX).level() < 1.0);
    }

    #[test]
    fn a_level_lies_between_0_and_1() {
        assert_eq!(Confidence::new(0.95), Ok(Confidence::PERCENT_95));
        for level in [0.0, 1.0, -0.1, 95.0, f64::NAN, f64::INFINITY] {
            assert!(Confidence::new(level).is_err(), "{level}");
        }
        assert_eq!(
            Confidence::new(95.0).unwrap_err().to_string(),
            "a confidence level must lie between 0 and 1, and 95 does not"
        );
    }

    #[test]
    fn both_tails_and_the_level_make_one() {
        let confidence = Confidence::new(0.9).unwrap();
        assert!((confidence.level() + 2.0 * confidence.tail() - 1.0).abs() < 1e-15);
    }
}
