//! Whether the values of a series are alike from its beginning to its end, or whether a mean would hide what
//! happened: a drift, a step such as the end of a warm-up, or a slow sawtooth.
//!
//! Three tests, each for what the others miss. *Drift*: H. B. Mann, "Nonparametric Tests Against Trend",
//! Econometrica 13 (1945), with M. G. Kendall's variance for ties. *A step*: A. N. Pettitt, "A Non-Parametric
//! Approach to the Change-Point Problem", Applied Statistics 28 (1979), with its p value from random orders, since
//! his formula is off for short series. *Values that depend on earlier ones*, as in a sawtooth: G. M. Ljung and
//! G. E. P. Box, "On a Measure of Lack of Fit in Time Series Models", Biometrika 65 (1978), of ranks and with random
//! orders. Random orders are drawn until enough reach what was seen: J. Besag and P. Clifford, "Sequential Monte
//! Carlo p-Values", Biometrika 78 (1991).
//!
//! What must hold: of series whose values are alike and independent, all three together call at most 5 % uneven,
//! however short the series and whatever the distribution; the same series and seed give the same answer.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::confidence::FAMILY_ALPHA;
use crate::order::{Seed, shuffle};
use crate::ranks::{doubled_ranks, ties};

/// Below this p value one of the three tests calls a series uneven: Bonferroni's third of 5 %.
pub const SERIES_BELOW_P: f64 = FAMILY_ALPHA / 3.0;

/// Orders that are drawn at most for a p value.
const SHUFFLES_MAX: u32 = 2_000;
/// Of a long series fewer are drawn, so that all of them together have so many values.
const SHUFFLED_VALUES_MAX: usize = 20_000_000;
/// But so many at least: the least p value is then a third of what calls a series uneven.
const SHUFFLES_MIN: u32 = 199;
/// Once so many orders reach what was seen, the p value is far from small, and no more are drawn.
const REACHED_MAX: u32 = 100;
/// The longest distance at which values are held against earlier ones; a quarter of a short series.
const LAGS_MAX: usize = 20;
/// Below so many values the normal approximation of Mann's statistic is too rough (Kendall 1955), and a step
/// cannot be told from chance.
const VALUES_MIN: usize = 10;

/// What the tests say of a series. A figure is `None` where it cannot be had.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Series {
    /// Two-sided p value of no drift.
    pub drift_p: Option<f64>,
    /// The likeliest step.
    pub change: Option<ChangePoint>,
    /// The p value of values that do not depend on earlier ones.
    pub dependence_p: Option<f64>,
}

/// Where a series changes its level, and how easily chance alone would seem to change it as much.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChangePoint {
    /// Position of the first value after the step, from 1 to the number of values less 1.
    pub at: usize,
    /// The p value of no step.
    pub p: f64,
}

impl Series {
    /// Tests a series.
    pub fn of(values: &[f64], seed: Seed) -> Self {
        Series {
            drift_p: drift_p(values),
            change: change_point(values, seed),
            dependence_p: dependence_p(values, seed),
        }
    }

    /// Whether the series drifts.
    pub fn drifts(&self) -> bool {
        self.drift_p.is_some_and(|p| p < SERIES_BELOW_P)
    }

    /// Its step, if there is one.
    pub fn step(&self) -> Option<usize> {
        let change = self.change.filter(|change| change.p < SERIES_BELOW_P);
        change.map(|change| change.at)
    }

    /// Whether values depend on earlier ones.
    pub fn depends(&self) -> bool {
        self.dependence_p.is_some_and(|p| p < SERIES_BELOW_P)
    }

    /// Whether any test finds something.
    pub fn is_uneven(&self) -> bool {
        self.drifts() || self.step().is_some() || self.depends()
    }
}

/// The two-sided p value of no drift (Mann and Kendall). `None` below ten values, of NaN, and when all are equal.
pub fn drift_p(values: &[f64]) -> Option<f64> {
    if values.len() < VALUES_MIN || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let rises = rises(values);
    let term = |n: usize| {
        let n = n as f64;
        n * (n - 1.0) * (2.0 * n + 5.0)
    };
    let tied: f64 = ties(values).into_iter().map(term).sum();
    let variance = (term(values.len()) - tied) / 18.0;
    if variance <= 0.0 {
        return None;
    }
    let from_mean = (rises.abs() as f64 - 1.0).max(0.0);
    Some((2.0 * Normal::standard().cdf(-from_mean / variance.sqrt())).min(1.0))
}

/// Pairs of which the later value is the greater, less those of which it is the lesser: earlier values are counted in
/// a tree (P. M. Fenwick, "A New Data Structure for Cumulative Frequency Tables", Software 24, 1994), so that a long
/// series takes little more time for each of its values.
fn rises(values: &[f64]) -> i64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut counts = vec![0i64; sorted.len() + 1];
    let mut rises = 0;
    for (earlier, value) in values.iter().enumerate() {
        let less = sorted.partition_point(|it| it < value);
        let not_above = sorted.partition_point(|it| it <= value);
        let above = earlier as i64 - counted(&counts, not_above);
        rises += counted(&counts, less) - above;
        // Equal values are counted in one place.
        let mut place = less + 1;
        while place < counts.len() {
            counts[place] += 1;
            place += place & place.wrapping_neg();
        }
    }
    rises
}

/// How many are counted in the first so many places of such a tree.
fn counted(counts: &[i64], mut places: usize) -> i64 {
    let mut sum = 0;
    while places > 0 {
        sum += counts[places];
        places &= places - 1;
    }
    sum
}

/// The likeliest step of a series (Pettitt): where the ranks before it sum to the furthest from what they would
/// by chance. `None` below ten values, of NaN, and when all are equal.
/// ```
/// use nicpoll_stats::{change_point, order::Seed};
///
/// // Megabits a second: something happened before the ninth.
/// let values = [941., 939., 942., 940., 938., 943., 941., 940., 611., 608., 612., 607., 610., 609.];
/// let change = change_point(&values, Seed(1)).unwrap();
/// assert_eq!(change.at, 8);
/// assert!(change.p < 0.05);
/// ```
pub fn change_point(values: &[f64], seed: Seed) -> Option<ChangePoint> {
    let ranks = centred_ranks(values)?;
    let (at, seen) = furthest(&ranks);
    let p = share_of_orders(ranks, seed, |ranks| furthest(ranks).1 >= seen);
    Some(ChangePoint { at, p })
}

/// The p value of values that do not depend on earlier ones (Ljung and Box). `None` as of a step.
pub fn dependence_p(values: &[f64], seed: Seed) -> Option<f64> {
    let ranks = centred_ranks(values)?;
    let seen = dependence(&ranks);
    Some(share_of_orders(ranks, seed, |ranks| {
        dependence(ranks) >= seen
    }))
}

/// Twice the ranks less their mean. `None` below ten values, of NaN, and when all are equal.
fn centred_ranks(values: &[f64]) -> Option<Vec<i64>> {
    if values.len() < VALUES_MIN || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mean = values.len() as i64 + 1;
    let ranks = doubled_ranks(values).into_iter();
    let ranks: Vec<i64> = ranks.map(|rank| rank as i64 - mean).collect();
    ranks.iter().any(|rank| *rank != 0).then_some(ranks)
}

/// The share of orders of which `reaches` holds, as it does of the one that was seen.
fn share_of_orders(mut ranks: Vec<i64>, seed: Seed, reaches: impl Fn(&[i64]) -> bool) -> f64 {
    let shuffles = (SHUFFLED_VALUES_MAX / ranks.len()) as u32;
    let shuffles = shuffles.clamp(SHUFFLES_MIN, SHUFFLES_MAX);
    let mut generator = seed.generator();
    let mut reached = 0;
    for drawn in 1..=shuffles {
        shuffle(&mut ranks, &mut generator);
        reached += u32::from(reaches(&ranks));
        if reached == REACHED_MAX {
            return f64::from(reached) / f64::from(drawn);
        }
    }
    // The order seen is one of those that could have been drawn.
    f64::from(reached + 1) / f64::from(shuffles + 1)
}

/// The sum over all distances of the squared covariance there, each in units of its scatter.
fn dependence(ranks: &[i64]) -> f64 {
    let lags = 1..=LAGS_MAX.min(ranks.len() / 4);
    let at = |lag: usize| {
        let pairs = ranks.iter().zip(&ranks[lag..]);
        let sum: i64 = pairs.map(|(early, late)| early * late).sum();
        (sum as f64).powi(2) / (ranks.len() - lag) as f64
    };
    lags.map(at).sum()
}

/// After how many ranks their sum is furthest from 0, and how far.
fn furthest(ranks: &[i64]) -> (usize, i64) {
    let (mut sum, mut at, mut most) = (0, 0, 0);
    for (index, rank) in ranks.iter().enumerate() {
        sum += rank;
        if sum.abs() > most {
            (at, most) = (index + 1, sum.abs());
        }
    }
    (at, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number that hops about between 0 and 1.
    fn noise(index: usize) -> f64 {
        (index as f64 * 0.618_034).fract()
    }

    #[test]
    fn a_warm_up_is_a_step() {
        let values: Vec<f64> = (0..30)
            .map(|i| noise(i) + if i < 6 { 0.0 } else { 1.5 })
            .collect();
        let series = Series::of(&values, Seed(1));
        assert_eq!(series.step(), Some(6), "{series:?}");
        assert!(series.is_uneven());
    }

    #[test]
    fn a_drift_is_seen_both_ways() {
        for sign in [1.0, -1.0] {
            let values: Vec<f64> = (0..20).map(|i| noise(i) + sign * 0.1 * i as f64).collect();
            assert!(Series::of(&values, Seed(1)).drifts());
        }
    }

    #[test]
    fn a_sawtooth_depends_on_what_was() {
        // It neither drifts nor has one step.
        let values: Vec<f64> = (0..40).map(|i| noise(i) + (i % 8) as f64 * 0.5).collect();
        let series = Series::of(&values, Seed(1));
        assert!(series.depends() && !series.drifts(), "{series:?}");
    }

    #[test]
    fn published_figures() {
        // pymannkendall 1.4.3 has p = 0.0001 for strictly rising values with one exchange; by hand: S = 43 of
        // 45, variance 10 x 9 x 25 / 18 = 125, z = 42 / 11.18.
        let values = [1.0, 2.0, 3.0, 4.0, 6.0, 5.0, 7.0, 8.0, 9.0, 10.0];
        assert!((drift_p(&values).unwrap() - 1.723e-4).abs() < 1e-6);
        // Ties: variance less 3 x 2 x 11 / 18 for one group of three.
        let tied = [1.0, 1.0, 1.0, 4.0, 6.0, 5.0, 7.0, 8.0, 9.0, 10.0];
        let z: f64 = (40.0 - 1.0) / (125.0f64 - 66.0 / 18.0).sqrt();
        let expected = 2.0 * Normal::standard().cdf(-z);
        assert!((drift_p(&tied).unwrap() - expected).abs() < 1e-12);
    }

    #[test]
    fn pairs_that_rise_are_counted_as_one_by_one() {
        let values: Vec<f64> = (0..60).map(|i| (noise(i * i) * 9.0).round()).collect();
        let pairs = (0..values.len()).flat_map(|late| (0..late).map(move |early| (early, late)));
        let one_by_one = pairs.map(|(early, late)| {
            let (early, late) = (values[early], values[late]);
            i64::from(late > early) - i64::from(late < early)
        });
        assert_eq!(rises(&values), one_by_one.sum::<i64>());
        // 31,249,875,000 pairs: counting one by one takes minutes.
        let rising: Vec<f64> = (0..250_000).map(f64::from).collect();
        assert_eq!(rises(&rising), 250_000 * 249_999 / 2);
    }

    #[test]
    fn what_cannot_be_told() {
        assert_eq!(Series::of(&[1.0; 20], Seed(1)), Series::default());
        assert_eq!(drift_p(&[1.0, 2.0, 3.0]), None);
        assert_eq!(change_point(&[1.0, 2.0, 3.0], Seed(1)), None);
        let mut values = [1.0; 12];
        values[3] = f64::NAN;
        assert_eq!(Series::of(&values, Seed(1)), Series::default());
    }
}
