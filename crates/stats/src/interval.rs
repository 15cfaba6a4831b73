//! Differences within blocks, and Student's interval for their mean, plain and trimmed.
//!
//! Differences are taken only within a block. A trial that delivered nothing has the worst value of its metric (rate
//! 0, an infinite time), so the difference is infinite. A pair with a missing value is ignored. An invalid pair is an
//! error with a reason. Student's interval is finite, contains its estimate and needs [`BLOCKS_MIN`] blocks.
//!
//! Trimmed: K. K. Yuen, "The Two-Sample Trimmed t for Unequal Population Variances", Biometrika 61 (1974), for one
//! sample: J. W. Tukey and D. H. McLaughlin, Sankhya A 25 (1963).

use nicpoll_model::MetricKind;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::summary;

/// Accepted probability that at least one verdict of a family is wrong.
pub(crate) const FAMILY_ALPHA: f64 = 0.05;

/// A confidence level: the share of a study's repetitions in which an interval contains the true value.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence(f64);

/// A confidence level that is not between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("a confidence level must lie between 0 and 1, and {0} does not")]
pub struct InvalidConfidence(pub f64);

impl Confidence {
    /// 0.95: the level of a single interval.
    pub const PERCENT_95: Confidence = Confidence(1.0 - FAMILY_ALPHA);

    /// Creates a level strictly between 0 and 1.
    ///
    /// # Errors
    ///
    /// [`InvalidConfidence`] for everything else, NaN included.
    pub fn new(level: f64) -> Result<Self, InvalidConfidence> {
        let is_level = 0.0 < level && level < 1.0;
        is_level
            .then_some(Confidence(level))
            .ok_or(InvalidConfidence(level))
    }

    /// Returns the level of each interval in a family of `comparisons`, with which all of them together hold at 95 %:
    /// Bonferroni's 1 - `FAMILY_ALPHA` / comparisons.
    ///
    /// A study without primary comparisons has a family of 0, which is treated as 1.
    pub fn for_family(comparisons: u32) -> Self {
        Confidence(1.0 - FAMILY_ALPHA / f64::from(comparisons.max(1)))
    }

    /// The level, strictly between 0 and 1.
    pub fn level(self) -> f64 {
        self.0
    }

    /// Returns the probability outside the interval on each side.
    pub(crate) fn tail(self) -> f64 {
        (1.0 - self.0) / 2.0
    }
}

/// The fewest blocks for an interval. Two would leave one degree of freedom, and an interval too wide to say
/// anything.
pub const BLOCKS_MIN: usize = 3;

/// One block's values of a metric, in the metric's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The value under the judged setting. `None` when it is missing; 0 or infinity when its trial failed.
    pub setting: Option<f64>,
    /// The value under the reference, likewise.
    pub reference: Option<f64>,
}

impl Pair {
    /// Creates a pair of two measured values.
    pub fn measured(setting: f64, reference: f64) -> Self {
        Pair {
            setting: Some(setting),
            reference: Some(reference),
        }
    }

    /// Whether a value is missing, and the pair is ignored.
    pub fn is_missing(&self) -> bool {
        self.setting.is_none() || self.reference.is_none()
    }
}

/// Why a block's pair has no difference. `block` is its position among the pairs, from 0.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadPair {
    /// A value is NaN, or a share is infinite.
    #[error("pair {block} holds {value}, which is not a share")]
    NotFinite {
        /// Position of the pair.
        block: usize,
        /// The value.
        value: f64,
    },
    /// A value is NaN or negative, and has no logarithm.
    #[error("pair {block} holds {value}, which has no logarithm")]
    NoLogarithm {
        /// Position of the pair.
        block: usize,
        /// The value.
        value: f64,
    },
}

/// Why there is no interval.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoInterval {
    /// There are fewer blocks than the method needs.
    #[error("an interval takes {least} blocks, and there are {blocks}")]
    TooFewBlocks {
        /// The number of blocks.
        blocks: usize,
        /// The blocks needed.
        least: usize,
    },
    /// There are fewer values than the method needs to reach the confidence.
    #[error("{} and {} values are too few for an interval", sizes[0], sizes[1])]
    TooFewValues {
        /// The number of values on each side.
        sizes: [usize; 2],
    },
    /// A block has no difference.
    #[error(transparent)]
    BadPair(#[from] BadPair),
    /// The values are not finite, or so great or so far apart that an end of the interval cannot be
    /// represented; or as many pairs are 0 on the one side as on the other, so that their ratios have no middle.
    #[error("as many pairs are 0 on one side as on the other, or values are out of range")]
    OutOfRange,
}

/// An estimate with the ends between which the true value lies at a given confidence. Its scale is that of its input:
/// differences, ratios or points. Where failed trials leave a signed-rank interval without an end, that end is
/// infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Its confidence level.
    pub confidence: Confidence,
    /// Blocks that it is computed from; without blocks, the values of both sides together.
    pub blocks: usize,
}

impl Interval {
    /// Creates a symmetric interval around an estimate.
    pub(crate) fn around(estimate: f64, half: f64, confidence: Confidence, blocks: usize) -> Self {
        Interval {
            estimate,
            low: estimate - half,
            high: estimate + half,
            confidence,
            blocks,
        }
    }

    /// Returns the interval with ends `factor` times as far from the estimate; unchanged without a finite estimate.
    pub(crate) fn widened(&self, factor: f64) -> Interval {
        if factor <= 1.0 || !self.estimate.is_finite() {
            return *self;
        }
        Interval {
            low: self.estimate - (self.estimate - self.low) * factor,
            high: self.estimate + (self.high - self.estimate) * factor,
            ..*self
        }
    }

    /// Converts differences of logs to ratios; `None` when a ratio cannot be represented.
    pub fn exponentiated(&self) -> Option<Interval> {
        Some(Interval {
            estimate: ratio_of(self.estimate)?,
            low: ratio_of(self.low)?,
            high: ratio_of(self.high)?,
            ..*self
        })
    }

    /// Returns the interval oriented with more as better.
    pub fn oriented(&self, kind: MetricKind, more_is_better: bool) -> Interval {
        match (more_is_better, kind) {
            (true, _) => *self,
            (false, MetricKind::Ratio) => self.inverted(),
            (false, MetricKind::Points) => self.negated(),
        }
    }

    /// Returns the interval of the inverse ratio: how the reference compares with the setting. It orients ratios when
    /// less is better. Only for ratios, which are positive.
    pub fn inverted(&self) -> Interval {
        Interval {
            estimate: self.estimate.recip(),
            low: self.high.recip(),
            high: self.low.recip(),
            ..*self
        }
    }

    /// Returns the interval of the opposite difference. It orients points when less is better.
    pub fn negated(&self) -> Interval {
        Interval {
            estimate: -self.estimate,
            low: -self.high,
            high: -self.low,
            ..*self
        }
    }
}

/// Returns ln(setting) - ln(reference) of each block, by which rates, times and latencies are compared. Pairs with a
/// missing value are left out. A value of 0 or infinity makes an infinite difference, and two of the same kind a
/// difference of 0.
///
/// # Errors
///
/// [`BadPair::NoLogarithm`] for the first pair with a value that is NaN or negative.
pub fn log_differences(pairs: &[Pair]) -> Result<Vec<f64>, BadPair> {
    let logarithm = |value: f64, block| match value >= 0.0 {
        true => Ok(value.ln()),
        false => Err(BadPair::NoLogarithm { block, value }),
    };
    whole_pairs(pairs)
        .map(|(block, setting, reference)| {
            let (setting, reference) = (logarithm(setting, block)?, logarithm(reference, block)?);
            // Two failures of one kind do not differ; the difference of their logarithms is NaN.
            Ok(if setting == reference {
                0.0
            } else {
                setting - reference
            })
        })
        .collect()
}

/// Returns setting - reference of each block, by which shares are compared. 0.01 is one percentage point. Pairs with
/// a missing value are left out.
///
/// # Errors
///
/// [`BadPair::NotFinite`] for the first pair with a value that is not finite.
pub(crate) fn point_differences(pairs: &[Pair]) -> Result<Vec<f64>, BadPair> {
    let finite = |value: f64, block| match value.is_finite() {
        true => Ok(value),
        false => Err(BadPair::NotFinite { block, value }),
    };
    whole_pairs(pairs)
        .map(|(block, setting, reference)| Ok(finite(setting, block)? - finite(reference, block)?))
        .collect()
}

/// Returns position, setting and reference of each complete pair.
fn whole_pairs(pairs: &[Pair]) -> impl Iterator<Item = (usize, f64, f64)> {
    pairs
        .iter()
        .enumerate()
        .filter_map(|(block, pair)| Some((block, pair.setting?, pair.reference?)))
}

/// Returns Student's interval for the mean of `differences`, one of each block: the mean plus and minus the t
/// quantile with n - 1 degrees of freedom times s / sqrt(n). Without scatter its width is 0.
///
/// # Errors
///
/// [`NoInterval::TooFewBlocks`] below [`BLOCKS_MIN`]; [`NoInterval::OutOfRange`] when the values are
/// not finite or too great.
pub fn mean_interval(differences: &[f64], confidence: Confidence) -> Result<Interval, NoInterval> {
    let blocks = differences.len();
    if blocks < BLOCKS_MIN {
        return Err(NoInterval::TooFewBlocks {
            blocks,
            least: BLOCKS_MIN,
        });
    }
    let estimate = summary::mean(differences).ok_or(NoInterval::OutOfRange)?;
    let deviation = summary::standard_deviation(differences).ok_or(NoInterval::OutOfRange)?;
    // A deviation that has a finite square is far too small to carry an end out of range.
    let half = half_width(deviation, blocks, confidence);
    Ok(Interval::around(estimate, half, confidence, blocks))
}

/// Returns the two-sided p value of no difference, dual to [`mean_interval`]; `None` where there is no interval.
pub(crate) fn mean_p(differences: &[f64]) -> Option<f64> {
    let blocks = differences.len();
    if blocks < BLOCKS_MIN {
        return None;
    }
    let mean = summary::mean(differences)?;
    let error = summary::standard_deviation(differences)? / (blocks as f64).sqrt();
    Some(student_p(mean, error, blocks - 1))
}

/// Returns the two-sided p value of 0 for an estimate with this standard error, by Student's t with `degrees` degrees
/// of freedom, at least 1.
pub(crate) fn student_p(estimate: f64, error: f64, degrees: usize) -> f64 {
    if estimate == 0.0 {
        1.0
    } else if error == 0.0 {
        0.0
    } else {
        2.0 * student(degrees).cdf(-(estimate / error).abs())
    }
}

/// Returns the interval for the ratio of setting to reference, around its geometric mean.
///
/// # Errors
///
/// What [`log_differences`] and [`mean_interval`] return.
/// ```
/// use nicpoll_stats::{Confidence, Pair, ratio_interval};
///
/// // Packets a second of five blocks: with polling, without.
/// let blocks = [(310., 240.), (300., 236.), (322., 239.), (305., 244.), (315., 241.)];
/// let pairs = blocks.map(|(with, without)| Pair::measured(with, without));
/// let interval = ratio_interval(&pairs, Confidence::PERCENT_95)?;
/// assert!(interval.low > 1.2 && interval.high < 1.4);
/// # Ok::<(), nicpoll_stats::NoInterval>(())
/// ```
pub fn ratio_interval(pairs: &[Pair], confidence: Confidence) -> Result<Interval, NoInterval> {
    mean_interval(&log_differences(pairs)?, confidence)?
        .exponentiated()
        .ok_or(NoInterval::OutOfRange)
}

/// Returns the interval for the difference of setting and reference in points, around its mean.
///
/// # Errors
///
/// What `point_differences` and [`mean_interval`] return.
pub fn points_interval(pairs: &[Pair], confidence: Confidence) -> Result<Interval, NoInterval> {
    mean_interval(&point_differences(pairs)?, confidence)
}

/// Returns the ratio with this logarithm, 0 and infinity included; `None` when it or its inverse has no precise
/// representation, since any interval of ratios must be invertible.
pub(crate) fn ratio_of(logarithm: f64) -> Option<f64> {
    let ratio = logarithm.exp();
    let is_precise = ratio.is_normal() && ratio.recip().is_normal();
    (is_precise || logarithm.is_infinite()).then_some(ratio)
}

/// Returns half the width of Student's interval for a mean of `blocks` values, at least 2, with the standard
/// deviation `deviation`.
pub(crate) fn half_width(deviation: f64, blocks: usize, confidence: Confidence) -> f64 {
    student_quantile(blocks - 1, confidence) * deviation / (blocks as f64).sqrt()
}

/// Returns the two-sided quantile of Student's t with `degrees` degrees of freedom, at least 1.
pub fn student_quantile(degrees: usize, confidence: Confidence) -> f64 {
    // The lower tail, because 1 - tail would lose the digits of a small one.
    -student(degrees).inverse_cdf(confidence.tail())
}

fn student(degrees: usize) -> StudentsT {
    StudentsT::new(0.0, 1.0, degrees as f64)
        .expect("scale 1 and at least one degree of freedom are valid")
}

/// The share trimmed at each end.
const TRIM: f64 = 0.2;
/// With fewer values nothing is trimmed at this share, or too little is left.
const TRIMMED_BLOCKS_MIN: usize = 5;

/// Returns the 20 % trimmed mean with its interval; `None` for fewer than five values, or for any that is not finite.
pub(crate) fn trimmed_interval(differences: &[f64], confidence: Confidence) -> Option<Interval> {
    let blocks = differences.len();
    if blocks < TRIMMED_BLOCKS_MIN {
        return None;
    }
    let mut sorted = differences.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = (TRIM * blocks as f64) as usize;
    let kept = &sorted[cut..blocks - cut];
    let estimate = summary::mean(kept)?;
    let (least, greatest) = (kept[0], kept[kept.len() - 1]);
    // Winsorized: trimmed values count as the nearest one kept.
    let pulled_in: Vec<f64> = sorted.iter().map(|it| it.clamp(least, greatest)).collect();
    let deviation = summary::standard_deviation(&pulled_in)?;
    let error = deviation / ((1.0 - 2.0 * cut as f64 / blocks as f64) * (blocks as f64).sqrt());
    let half = student_quantile(kept.len() - 1, confidence) * error;
    Some(Interval::around(estimate, half, confidence, blocks))
}

/// Returns the upper confidence limit of a share of events when none was seen in `chances`, with the probability
/// outside one end of the confidence (C. J. Clopper and E. S. Pearson, Biometrika 26, 1934; with 95 % about 3.7 /
/// chances). It assumes that events come one at a time.
///
/// 1 without chances.
pub(crate) fn none_seen_at_most(chances: u64, confidence: Confidence) -> f64 {
    if chances == 0 {
        return 1.0;
    }
    // 1 - tail^(1/n), in a form that keeps the digits of a small share.
    -(confidence.tail().ln() / chances as f64).exp_m1()
}

#[cfg(test)]
pub(crate) mod paired_tests;

#[cfg(test)]
mod confidence_tests {
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

#[cfg(test)]
mod trimmed_tests {
    use super::*;

    #[test]
    fn one_outlier_does_not_widen_it() {
        let even = [0.9, 1.0, 1.1, 0.95, 1.05, 1.0, 0.97, 1.03, 1.0, 1.0];
        let mut spiked = even;
        spiked[2] = 100.0;
        let width = |values: &[f64]| {
            let interval = trimmed_interval(values, Confidence::PERCENT_95).unwrap();
            interval.high - interval.low
        };
        assert!(width(&spiked) < 1.01 * width(&even));
    }

    #[test]
    fn known_interval() {
        // By hand: of 1..=10 two are cut off at each end; mean of 3..=8 is 5.5. Winsorized: 3 3 3 4 5 6 7
        // 8 8 8, sum of squares about 5.5: 2 (3 x 6.25 + 2.25 + 0.25) = 42.5, over 9. t(5) = 2.570582.
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let interval = trimmed_interval(&values, Confidence::PERCENT_95).unwrap();
        let half = 2.570_581_84 * (42.5f64 / 9.0).sqrt() / (0.6 * 10f64.sqrt());
        assert!((interval.estimate - 5.5).abs() < 1e-12);
        assert!((interval.high - interval.estimate - half).abs() < 1e-6);
    }

    #[test]
    fn what_has_no_interval() {
        assert_eq!(trimmed_interval(&[1.0; 4], Confidence::PERCENT_95), None);
        let five = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert!(trimmed_interval(&five, Confidence::PERCENT_95).is_some());
        let wild = [1.0, 2.0, 3.0, 4.0, f64::NAN];
        assert_eq!(trimmed_interval(&wild, Confidence::PERCENT_95), None);
    }
}

#[cfg(test)]
mod none_seen_tests {
    use super::*;

    #[test]
    fn tabled_upper_ends() {
        // Clopper and Pearson's 95 % limits for none of 10, 20 and 100.
        for (chances, most) in [(10, 0.3085), (20, 0.1684), (100, 0.03622)] {
            let found = none_seen_at_most(chances, Confidence::PERCENT_95);
            assert!((found - most).abs() < 5e-5, "{chances}: {found}");
        }
        assert_eq!(none_seen_at_most(0, Confidence::PERCENT_95), 1.0);
        let many = none_seen_at_most(10_000_000_000, Confidence::PERCENT_95);
        assert!((many * 1e10 - 3.689).abs() < 1e-3, "{many}");
    }
}
