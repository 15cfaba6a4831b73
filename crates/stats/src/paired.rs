//! Two settings compared block by block, and Student's interval for their difference.
//!
//! What must hold: differences are taken within a block and nowhere else. A failed trial is not a missing
//! one: its value is the worst that its metric has (no rate, an endless time), and the difference is then
//! infinite. Leaving it out would favour the setting that failed. A pair without meaning stops the whole
//! comparison with a reason. Student's interval is finite, holds its estimate and rests on at least
//! [`BLOCKS_MIN`] blocks.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::confidence::Confidence;
use crate::moments;

/// Blocks below which there is no interval. Two would leave one degree of freedom, and an interval
/// too wide to say anything.
pub const BLOCKS_MIN: usize = 3;

/// One block's values of a metric, in the metric's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Under the setting that is judged. `None` when it is missing; 0 or infinity when its trial failed.
    pub setting: Option<f64>,
    /// Under the setting that it is judged against, likewise.
    pub reference: Option<f64>,
}

impl Pair {
    /// A pair of which both values were measured.
    pub fn measured(setting: f64, reference: f64) -> Self {
        Pair {
            setting: Some(setting),
            reference: Some(reference),
        }
    }

    /// Whether a value is missing, so that the pair takes part in nothing.
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
    /// There are fewer blocks than the method takes.
    #[error("an interval takes {least} blocks, and there are {blocks}")]
    TooFewBlocks {
        /// The blocks that there are.
        blocks: usize,
        /// The blocks that it takes.
        least: usize,
    },
    /// There are fewer values than the method takes to reach the confidence.
    #[error("{} and {} values are too few for an interval", sizes[0], sizes[1])]
    TooFewValues {
        /// The values of either side.
        sizes: [usize; 2],
    },
    /// A block has no difference.
    #[error(transparent)]
    BadPair(#[from] BadPair),
    /// The values are not finite, or so great or so far apart that an end of the interval cannot be
    /// represented.
    #[error("the interval leaves the range of floating-point numbers")]
    OutOfRange,
}

/// An estimate with the ends between which the true value lies at a given confidence. Its scale is
/// that of what it was made from: differences, ratios or points. A signed-rank interval that failed trials
/// leave without an end has an infinite one there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How sure the interval is.
    pub confidence: Confidence,
    /// Blocks that it rests on; without blocks, the values of both sides together.
    pub blocks: usize,
}

impl Interval {
    /// From differences of logs to ratios; `None` when a ratio cannot be represented.
    pub fn exponentiated(&self) -> Option<Interval> {
        Some(Interval {
            estimate: ratio_of(self.estimate)?,
            low: ratio_of(self.low)?,
            high: ratio_of(self.high)?,
            ..*self
        })
    }

    /// The interval of the inverse ratio: how the reference compares with the setting. It orients
    /// ratios of which less is better. Only for ratios, which are positive.
    pub fn inverted(&self) -> Interval {
        Interval {
            estimate: self.estimate.recip(),
            low: self.high.recip(),
            high: self.low.recip(),
            ..*self
        }
    }

    /// The interval of the opposite difference. It orients points of which less is better.
    pub fn negated(&self) -> Interval {
        Interval {
            estimate: -self.estimate,
            low: -self.high,
            high: -self.low,
            ..*self
        }
    }
}

/// ln(setting) - ln(reference) in each block: how rates, times and latencies are compared. Pairs of which
/// a value is missing are left out. A value of 0 or infinity makes an infinite difference, and two of the
/// same kind make none.
///
/// # Errors
///
/// [`BadPair::NoLogarithm`] for the first pair with a value that is NaN or negative.
pub fn log_differences(pairs: &[Pair]) -> Result<Vec<f64>, BadPair> {
    let logarithm = |value: f64, block| {
        if value >= 0.0 {
            Ok(value.ln())
        } else {
            Err(BadPair::NoLogarithm { block, value })
        }
    };
    whole_pairs(pairs)
        .map(|(block, setting, reference)| {
            let (setting, reference) = (logarithm(setting, block)?, logarithm(reference, block)?);
            // Two failures of one kind are alike; their logarithms' difference is no number.
            Ok(if setting == reference {
                0.0
            } else {
                setting - reference
            })
        })
        .collect()
}

/// setting - reference in each block: how shares are compared. 0.01 is one percentage point. Pairs of
/// which a value is missing are left out.
///
/// # Errors
///
/// [`BadPair::NotFinite`] for the first pair with a value that is not finite.
pub fn point_differences(pairs: &[Pair]) -> Result<Vec<f64>, BadPair> {
    let finite = |value: f64, block| {
        if value.is_finite() {
            Ok(value)
        } else {
            Err(BadPair::NotFinite { block, value })
        }
    };
    whole_pairs(pairs)
        .map(|(block, setting, reference)| Ok(finite(setting, block)? - finite(reference, block)?))
        .collect()
}

/// Position, setting and reference of each pair of which nothing is missing.
fn whole_pairs(pairs: &[Pair]) -> impl Iterator<Item = (usize, f64, f64)> {
    pairs
        .iter()
        .enumerate()
        .filter_map(|(block, pair)| Some((block, pair.setting?, pair.reference?)))
}

/// Student's interval for the mean of `differences`, one of each block: the mean plus and minus the
/// t quantile with n - 1 degrees of freedom times s / sqrt(n). Without scatter its width is 0.
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
    let estimate = moments::mean(differences).ok_or(NoInterval::OutOfRange)?;
    let deviation = moments::standard_deviation(differences).ok_or(NoInterval::OutOfRange)?;
    // A deviation that has a finite square is far too small to carry an end out of range.
    let half = half_width(deviation, blocks, confidence);
    Ok(Interval {
        estimate,
        low: estimate - half,
        high: estimate + half,
        confidence,
        blocks,
    })
}

/// The two-sided p value of no difference, to which [`mean_interval`] is the dual; `None` where that has none.
pub(crate) fn mean_p(differences: &[f64]) -> Option<f64> {
    let blocks = differences.len();
    if blocks < BLOCKS_MIN {
        return None;
    }
    let mean = moments::mean(differences)?;
    let error = moments::standard_deviation(differences)? / (blocks as f64).sqrt();
    Some(student_p(mean, error, blocks - 1))
}

/// The two-sided p value of 0, where an estimate with this standard error has Student's t with so many degrees of
/// freedom, at least 1.
pub(crate) fn student_p(estimate: f64, error: f64, degrees: usize) -> f64 {
    if estimate == 0.0 {
        1.0
    } else if error == 0.0 {
        0.0
    } else {
        2.0 * student(degrees).cdf(-(estimate / error).abs())
    }
}

/// The interval for the ratio of setting to reference, around its geometric mean.
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

/// The interval for the difference of setting and reference in points, around its mean.
///
/// # Errors
///
/// What [`point_differences`] and [`mean_interval`] return.
pub fn points_interval(pairs: &[Pair], confidence: Confidence) -> Result<Interval, NoInterval> {
    mean_interval(&point_differences(pairs)?, confidence)
}

/// The ratio with this logarithm, 0 and infinity included; `None` when it or its inverse has no precise
/// representation, so that an interval of ratios can always be inverted.
pub(crate) fn ratio_of(logarithm: f64) -> Option<f64> {
    let ratio = logarithm.exp();
    let is_precise = ratio.is_normal() && ratio.recip().is_normal();
    (is_precise || logarithm.is_infinite()).then_some(ratio)
}

/// Half the width of Student's interval for a mean of `blocks` values, at least 2, that scatter with
/// the standard deviation `deviation`.
pub(crate) fn half_width(deviation: f64, blocks: usize, confidence: Confidence) -> f64 {
    t_quantile(blocks - 1, confidence) * deviation / (blocks as f64).sqrt()
}

/// What Student's t with so many degrees of freedom, at least 1, stays within at a confidence.
pub fn t_quantile(degrees: usize, confidence: Confidence) -> f64 {
    // The lower tail, because 1 - tail would lose the digits of a small one.
    -student(degrees).inverse_cdf(confidence.tail())
}

fn student(degrees: usize) -> StudentsT {
    StudentsT::new(0.0, 1.0, degrees as f64)
        .expect("scale 1 and at least one degree of freedom are valid")
}

#[cfg(test)]
mod tests;
