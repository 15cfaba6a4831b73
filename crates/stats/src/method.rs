//! The method of a plan's intervals, and the effects that the plan can find.
//!
//! The method follows from the number of planned blocks and the confidence alone: ranks wherever so many blocks can
//! reach the confidence, since ranks keep it under any noise; below that Student's interval, which assumes normal
//! noise.
//!
//! Power draws studies like the one at hand from the observed scatter: differences minus their estimate, with random
//! signs. The plan finds the effect that moves nine in ten of their intervals clear of no effect. Power never depends
//! on the observed effect, so it cannot be used to run on until something is proven.

use nicpoll_model::IntervalMethod;

use crate::interval::{
    BLOCKS_MIN, Confidence, Interval, NoInterval, half_width, mean_interval, mean_p,
};
use crate::order::{Seed, index_up_to};
use crate::rank::{
    hodges_lehmann, left_out, lower_end, signed_rank_blocks_min, signed_rank_interval,
    signed_rank_p,
};
use crate::series::widening;
use crate::summary;

/// Returns the method for a plan of `blocks` blocks.
pub fn planned_method(blocks: usize, confidence: Confidence) -> IntervalMethod {
    if blocks >= signed_rank_blocks_min(confidence) {
        IntervalMethod::HodgesLehmann
    } else {
        IntervalMethod::PairedT
    }
}

/// Returns the fewest blocks from which a method makes an interval.
fn blocks_min(method: IntervalMethod, confidence: Confidence) -> usize {
    match method {
        IntervalMethod::HodgesLehmann => signed_rank_blocks_min(confidence),
        IntervalMethod::PairedT => BLOCKS_MIN,
    }
}

/// Returns the interval by a method, widened as far as the differences depend on each other.
///
/// # Errors
/// What [`signed_rank_interval`] and [`mean_interval`] return.
pub fn interval_by(
    method: IntervalMethod,
    differences: &[f64],
    confidence: Confidence,
) -> Result<Interval, NoInterval> {
    let interval = match method {
        IntervalMethod::HodgesLehmann => signed_rank_interval(differences, confidence),
        IntervalMethod::PairedT => mean_interval(differences, confidence),
    };
    Ok(interval?.widened(widening(differences, confidence)))
}

/// Returns the estimate by a method; it needs fewer blocks than the interval.
pub(crate) fn estimate_by(method: IntervalMethod, differences: &[f64]) -> Option<f64> {
    match method {
        IntervalMethod::HodgesLehmann => hodges_lehmann(differences),
        IntervalMethod::PairedT => summary::mean(differences),
    }
}

/// Returns the two-sided p value of no difference by a method; `None` where there is no interval at any level.
pub(crate) fn p_by(method: IntervalMethod, differences: &[f64]) -> Option<f64> {
    match method {
        IntervalMethod::HodgesLehmann => signed_rank_p(differences),
        IntervalMethod::PairedT => mean_p(differences),
    }
}

/// Computes the lower ends of intervals of one size and level, for many sets of differences.
pub(crate) struct LowerEnds {
    method: IntervalMethod,
    confidence: Confidence,
    left_out: usize,
}

impl LowerEnds {
    /// For intervals of `blocks` differences; `None` when these are too few for the method.
    pub fn new(method: IntervalMethod, blocks: usize, confidence: Confidence) -> Option<Self> {
        (blocks >= blocks_min(method, confidence)).then(|| LowerEnds {
            method,
            confidence,
            left_out: left_out(blocks, confidence.tail()),
        })
    }

    /// Returns the lower end of one set's interval; `None` when the values are not finite.
    pub fn of(&self, differences: &[f64]) -> Option<f64> {
        let middle = estimate_by(self.method, differences)?;
        let low = match self.method {
            IntervalMethod::HodgesLehmann => lower_end(differences, self.left_out),
            IntervalMethod::PairedT => {
                let deviation = summary::standard_deviation(differences)?;
                middle - half_width(deviation, differences.len(), self.confidence)
            }
        };
        Some(middle - (middle - low) * widening(differences, self.confidence))
    }
}

/// Blocks beyond which an effect counts as out of reach.
pub(crate) const BLOCKS_TO_FIND_MAX: u32 = 10_000;

/// The share of studies in which the effect is found.
const POWER: f64 = 0.9;
/// Studies drawn.
const DRAWS: usize = 300;
/// Beyond so many blocks the effect found is scaled with the root of their number.
const DRAWN_BLOCKS_MAX: usize = 32;

/// The scatter of a comparison, and how its intervals are made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Power {
    residuals: Vec<f64>,
    method: IntervalMethod,
    confidence: Confidence,
    seed: Seed,
}

impl Power {
    /// Takes the scatter of these differences; `None` for fewer than three finite ones, which show none. A failed
    /// trial's difference is infinite, and left out.
    pub fn of(
        differences: &[f64],
        method: IntervalMethod,
        confidence: Confidence,
        seed: Seed,
    ) -> Option<Self> {
        let finite = differences.iter().copied().filter(|it| it.is_finite());
        let finite: Vec<f64> = finite.collect();
        if finite.len() < BLOCKS_MIN {
            return None;
        }
        let middle = estimate_by(method, &finite)?;
        // Differences lie nearer to their own middle than to the true one.
        let n = finite.len() as f64;
        let wider = (n / (n - 1.0)).sqrt();
        Some(Power {
            residuals: finite.iter().map(|it| (it - middle) * wider).collect(),
            method,
            confidence,
            seed,
        })
    }

    /// Returns the smallest effect, as a difference of logs or of shares, that a plan of `blocks` finds nine times in
    /// ten. `None` when so few blocks have no interval.
    pub fn found_in(&self, blocks: usize) -> Option<f64> {
        let needed = self.needed(blocks)?;
        Some(needed[(POWER * DRAWS as f64) as usize].max(0.0))
    }

    /// Returns how often, 0 to 1, a plan of `blocks` finds `effect`, a difference of logs or of shares above 0.
    /// `None` when so few blocks have no interval.
    pub fn share_found(&self, effect: f64, blocks: usize) -> Option<f64> {
        let needed = self.needed(blocks)?;
        let found = needed.partition_point(|needed| *needed <= effect);
        Some(found as f64 / needed.len() as f64)
    }

    /// Returns the effects that the drawn studies would have found, ascending.
    fn needed(&self, blocks: usize) -> Option<Vec<f64>> {
        let drawn = blocks.min(DRAWN_BLOCKS_MAX);
        let lower = LowerEnds::new(self.method, drawn, self.confidence)?;
        let mut generator = self.seed.generator();
        let last = 2 * self.residuals.len() - 1;
        let scale = (drawn as f64 / blocks as f64).sqrt();
        let mut draw = || {
            let differences: Vec<f64> = (0..drawn)
                .map(|_| {
                    let index = index_up_to(last, &mut generator);
                    let sign = [1.0, -1.0][index % 2];
                    sign * self.residuals[index / 2]
                })
                .collect();
            // An effect shifts the interval by its size: it is found when it exceeds this.
            lower.of(&differences).map(|low| -low * scale)
        };
        let mut needed = (0..DRAWS).map(|_| draw()).collect::<Option<Vec<f64>>>()?;
        needed.sort_by(f64::total_cmp);
        Some(needed)
    }

    /// Returns the fewest blocks that find `effect` nine times in ten; `None` beyond [`BLOCKS_TO_FIND_MAX`].
    pub(crate) fn blocks_to_find(&self, effect: f64) -> Option<u32> {
        let finds = |blocks: u32| {
            self.found_in(blocks as usize)
                .is_some_and(|found| found <= effect)
        };
        let least = blocks_min(self.method, self.confidence);
        let (mut low, mut high) = (least as u32, DRAWN_BLOCKS_MAX.max(least) as u32);
        if !finds(high) {
            return self.scaled(high, effect);
        }
        // The effect found falls with the blocks, apart from the randomness of the draws.
        while low < high {
            let middle = low.midpoint(high);
            if finds(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(low)
    }

    /// Returns the blocks that find `effect`, scaled from the effect found in `drawn`.
    fn scaled(&self, drawn: u32, effect: f64) -> Option<u32> {
        let found = self.found_in(drawn as usize)?;
        let blocks = f64::from(drawn) * (found / effect).powi(2);
        (blocks <= f64::from(BLOCKS_TO_FIND_MAX)).then_some(blocks.ceil() as u32)
    }
}

#[cfg(test)]
mod method_tests {
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

#[cfg(test)]
mod power_tests {
    use super::*;

    const LEVEL: Confidence = Confidence::PERCENT_95;

    /// Normal noise: the deciles of a normal distribution, with a deviation of `deviation`.
    fn even(middle: f64, deviation: f64) -> Vec<f64> {
        [1.645, 1.036, 0.674, 0.385, 0.126]
            .into_iter()
            .flat_map(|z| [middle - deviation * z, middle + deviation * z])
            .collect()
    }

    fn power(differences: &[f64], method: IntervalMethod) -> Power {
        Power::of(differences, method, LEVEL, Seed(1)).unwrap()
    }

    #[test]
    fn students_power_is_the_textbooks() {
        // The noncentral t: with 16 differences at 95 %, 0.87 standard deviations are found nine times in ten (J.
        // Cohen, "Statistical Power Analysis", 1988: d = 0.87 for n = 16, one sample). Allowing for dependent
        // neighbours takes a fifth more.
        let found = power(&even(0.0, 1.0), IntervalMethod::PairedT).found_in(16);
        assert!((0.87..1.2).contains(&found.unwrap()), "{found:?}");
        let ranks = power(&even(0.0, 1.0), IntervalMethod::HodgesLehmann).found_in(16);
        assert!((0.87..1.2).contains(&ranks.unwrap()), "{ranks:?}");
    }

    #[test]
    fn what_is_drawn_from_scatters_as_the_differences_do() {
        let differences = [0.3, 0.5, 0.1, 0.9, 0.2];
        let residuals = power(&differences, IntervalMethod::PairedT).residuals;
        let squares = residuals.iter().map(|it| it * it).sum::<f64>() / residuals.len() as f64;
        let deviation = crate::summary::standard_deviation(&differences).unwrap();
        assert!((squares.sqrt() - deviation).abs() < 1e-12, "{squares}");
    }

    #[test]
    fn the_effect_that_was_seen_does_not_matter() {
        for method in [IntervalMethod::PairedT, IntervalMethod::HodgesLehmann] {
            let none = power(&even(0.0, 0.1), method).found_in(16).unwrap();
            let great = power(&even(3.0, 0.1), method).found_in(16).unwrap();
            assert!((none - great).abs() < 1e-9, "{none} {great}");
        }
    }

    #[test]
    fn the_fewest_blocks_find_it_and_one_less_does_not() {
        let power = power(&even(0.0, 0.1), IntervalMethod::HodgesLehmann);
        for effect in [0.05, 0.1, 0.2] {
            let blocks = power.blocks_to_find(effect).unwrap() as usize;
            assert!(power.found_in(blocks).unwrap() <= effect);
            let less = power.found_in(blocks - 1);
            assert!(
                less.is_none_or(|found| found > effect),
                "{effect}: {less:?}"
            );
        }
        assert_eq!(power.blocks_to_find(1e-6), None);
    }

    #[test]
    fn a_failed_trial_has_no_size_to_scatter_by() {
        let mut failing = even(0.0, 0.1);
        let without = power(&failing, IntervalMethod::HodgesLehmann).found_in(16);
        failing.push(f64::NEG_INFINITY);
        assert_eq!(
            power(&failing, IntervalMethod::HodgesLehmann).found_in(16),
            without
        );
        let few = Power::of(
            &[0.1, f64::INFINITY, 0.2],
            IntervalMethod::PairedT,
            LEVEL,
            Seed(1),
        );
        assert!(few.is_none());
    }

    #[test]
    fn what_is_found_nine_times_in_ten_is_found_so_often_and_no_effect_by_chance_alone() {
        for method in [IntervalMethod::PairedT, IntervalMethod::HodgesLehmann] {
            let power = power(&even(0.0, 0.1), method);
            for blocks in [8, 16, 64] {
                let share = |effect| power.share_found(effect, blocks).unwrap();
                let nine = share(power.found_in(blocks).unwrap());
                // Draws of few values have ties.
                assert!((0.9..0.97).contains(&nine), "{nine}");
                assert!(share(0.0) < 0.08 && share(10.0) == 1.0, "{}", share(0.0));
            }
        }
    }

    #[test]
    fn without_scatter_anything_is_found() {
        let power = power(&[0.1; 9], IntervalMethod::HodgesLehmann);
        assert_eq!(power.found_in(9), Some(0.0));
        assert_eq!(power.blocks_to_find(0.05), Some(6));
    }
}
