//! Which method makes an interval: decided by what was planned, before anything is seen.
//!
//! What must hold: the method follows from the number of blocks planned and the confidence alone. Ranks
//! decide wherever so many blocks can reach the confidence, since they promise it under any noise; below
//! that Student's interval stands in, and says that it assumes even noise.

use nicpoll_model::IntervalMethod;

use crate::confidence::Confidence;
use crate::moments;
use crate::paired::{Interval, NoInterval, half_width, mean_interval, mean_p};
use crate::signed_rank::{
    hodges_lehmann, left_out, lower_end, signed_rank_blocks_min, signed_rank_interval,
    signed_rank_p, signed_rank_p_least,
};
use crate::verdict::PValues;

/// The method for a plan of so many blocks.
pub fn planned_method(blocks: usize, confidence: Confidence) -> IntervalMethod {
    if blocks >= signed_rank_blocks_min(confidence) {
        IntervalMethod::HodgesLehmann
    } else {
        IntervalMethod::PairedT
    }
}

/// The interval by a method.
///
/// # Errors
/// What [`signed_rank_interval`] and [`mean_interval`] return.
pub(crate) fn interval_by(
    method: IntervalMethod,
    differences: &[f64],
    confidence: Confidence,
) -> Result<Interval, NoInterval> {
    match method {
        IntervalMethod::HodgesLehmann => signed_rank_interval(differences, confidence),
        IntervalMethod::PairedT => mean_interval(differences, confidence),
    }
}

/// The estimate by a method; it needs fewer blocks than the interval.
pub(crate) fn estimate_by(method: IntervalMethod, differences: &[f64]) -> Option<f64> {
    match method {
        IntervalMethod::HodgesLehmann => hodges_lehmann(differences),
        IntervalMethod::PairedT => moments::mean(differences),
    }
}

/// The two-sided p value of no difference by a method; `None` where there is no interval at any level.
fn p_by(method: IntervalMethod, differences: &[f64]) -> Option<f64> {
    match method {
        IntervalMethod::HodgesLehmann => signed_rank_p(differences),
        IntervalMethod::PairedT => mean_p(differences),
    }
}

/// The p values of no difference behind the interval by a method.
pub fn p_values_by(method: IntervalMethod, differences: &[f64]) -> PValues {
    PValues {
        deciding: p_by(method, differences),
        deciding_least: match method {
            IntervalMethod::HodgesLehmann => signed_rank_p_least(differences.len()),
            IntervalMethod::PairedT => 0.0,
        },
        by_means: mean_p(differences),
    }
}

/// The lower ends of intervals of one size and level, for many sets of differences.
pub(crate) struct LowerEnds {
    method: IntervalMethod,
    confidence: Confidence,
    left_out: usize,
}

impl LowerEnds {
    /// Of intervals of `blocks` differences; `None` when so few have none by this method.
    pub fn new(method: IntervalMethod, blocks: usize, confidence: Confidence) -> Option<Self> {
        let least = match method {
            IntervalMethod::HodgesLehmann => signed_rank_blocks_min(confidence),
            IntervalMethod::PairedT => crate::paired::BLOCKS_MIN,
        };
        (blocks >= least).then(|| LowerEnds {
            method,
            confidence,
            left_out: left_out(blocks, confidence.tail()),
        })
    }

    /// The lower end of one set's interval; `None` when the values are not finite.
    pub fn of(&self, differences: &[f64]) -> Option<f64> {
        match self.method {
            IntervalMethod::HodgesLehmann => Some(lower_end(differences, self.left_out)),
            IntervalMethod::PairedT => {
                let deviation = moments::standard_deviation(differences)?;
                let half = half_width(deviation, differences.len(), self.confidence);
                Some(moments::mean(differences)? - half)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_decides() {
        let method =
            |blocks, comparisons| planned_method(blocks, Confidence::for_family(comparisons));
        assert_eq!(method(8, 8), IntervalMethod::PairedT);
        assert_eq!(method(9, 8), IntervalMethod::HodgesLehmann);
        assert_eq!(method(6, 2), IntervalMethod::PairedT);
        assert_eq!(method(7, 2), IntervalMethod::HodgesLehmann);
    }

    #[test]
    fn lower_ends_are_those_of_the_intervals() {
        let differences = [0.3, 0.1, -0.2, 0.2, 0.15, 0.4, 0.25, 0.12, 0.22];
        for method in [IntervalMethod::HodgesLehmann, IntervalMethod::PairedT] {
            let level = Confidence::for_family(2);
            let lower = LowerEnds::new(method, differences.len(), level).unwrap();
            let interval = interval_by(method, &differences, level).unwrap();
            assert_eq!(lower.of(&differences), Some(interval.low), "{method}");
            assert!(LowerEnds::new(method, 2, level).is_none());
        }
    }
}
