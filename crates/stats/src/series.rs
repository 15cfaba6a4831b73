//! Tests of values in time order: drift, a step, dependence on earlier values; and independence of blocks.
//!
//! *Drift*: H. B. Mann, "Nonparametric Tests Against Trend", Econometrica 13 (1945), with M. G. Kendall's variance
//! for ties. *A step*: A. N. Pettitt, "A Non-Parametric Approach to the Change-Point Problem", Applied Statistics 28
//! (1979), with its p value from random orders, since his formula is off for short series. *Dependence*, as in a
//! sawtooth: G. M. Ljung and G. E. P. Box, "On a Measure of Lack of Fit in Time Series Models", Biometrika 65 (1978),
//! of ranks and with random orders. Random orders are drawn until enough are as extreme as the observed one: J. Besag
//! and P. Clifford, "Sequential Monte Carlo p-Values", Biometrika 78 (1991). Of series with independent values from
//! one distribution, all three together call at most 5 % uneven, however short the series and whatever the
//! distribution.
//!
//! *Independence of blocks*: a setting that stays in one of two regimes for several blocks makes intervals too
//! narrow. [`widening`] compensates for it as far as so few blocks can show it, and [`lag_one_p`] reports it. The
//! same values and seed give the same p values.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::interval::{Confidence, FAMILY_ALPHA, student_quantile};
use crate::order::{Seed, shuffle};
use crate::rank::{doubled_ranks, ties};
use crate::summary;

/// Below this p value one of the three tests calls a series uneven: Bonferroni's third of 5 %. Where several series
/// are tested, it is shared among them.
pub const SERIES_BELOW_P: f64 = FAMILY_ALPHA / 3.0;

/// Most random orders for a p value, unless a smaller p value must be reachable.
const SHUFFLES_MAX: u32 = 2_000;
/// Long series get fewer: all orders together have at most so many values.
const SHUFFLED_VALUES_MAX: usize = 20_000_000;
/// But at least so many that the least p value is a third of the threshold.
const SHUFFLES_BELOW: f64 = 3.0;
/// Once so many orders are as extreme as the observed one, the p value is far from small, and no more are drawn.
const REACHED_MAX: u32 = 100;
/// The longest lag in the test of dependence; a quarter of a short series.
const LAGS_MAX: usize = 20;
/// Statistics that differ by no more are equal up to rounding.
const ROUNDING: f64 = 1e-9;
/// Below so many values, all series together, the normal approximation of Mann's statistic is too rough (Kendall 1955), and a step
/// cannot be told from chance.
const VALUES_MIN: usize = 10;

/// The results of the tests of a series. A figure is `None` where it cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Series {
    /// Two-sided p value of no drift (Mann and Kendall).
    pub drift_p: Option<f64>,
    /// The likeliest step (Pettitt): where the sum of the ranks before it is furthest from what chance would give.
    pub change: Option<ChangePoint>,
    /// The p value of no dependence on earlier values (Ljung and Box).
    pub dependence_p: Option<f64>,
    /// Below this p value a test has found something.
    pub below_p: f64,
}

/// Where a series changes its level, and how likely chance alone is to show as large a change.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChangePoint {
    /// Position of the first value after the step, from 1 to the number of values less 1.
    pub at: usize,
    /// The p value of no step.
    pub p: f64,
}

impl Series {
    /// Tests a single series. Below ten values, with NaN, and when all are equal no figure can be computed.
    /// ```
    /// use nicpoll_stats::{Series, order::Seed};
    ///
    /// // Megabits a second: something happened before the ninth.
    /// let values = [941., 939., 942., 940., 938., 943., 941., 940., 611., 608., 612., 607., 610., 609.];
    /// let change = Series::of(&values, Seed(1)).change.unwrap();
    /// assert_eq!(change.at, 8);
    /// assert!(change.p < 0.05);
    /// ```
    pub fn of(values: &[f64], seed: Seed) -> Self {
        Series::of_repeats(&[values], 1, seed)
    }

    /// Tests series that repeat one run, together. `family` is the number of such tests in all: of families of even
    /// series, at most 5 % have one that is called uneven.
    /// ```
    /// use nicpoll_stats::{Series, order::Seed};
    ///
    /// // Three runs of four steps that are too short for each to show that it began low.
    /// let runs = [[3.0, 9.1, 9.0, 9.2], [2.8, 9.3, 9.1, 9.0], [3.1, 9.0, 9.4, 9.2]];
    /// let runs = runs.each_ref().map(|run| run.as_slice());
    /// let series = Series::of_repeats(&runs, 1, Seed(1));
    /// assert_eq!(series.change.unwrap().at, 1);
    /// ```
    pub fn of_repeats(series: &[&[f64]], family: u32, seed: Seed) -> Self {
        let below_p = SERIES_BELOW_P / f64::from(family.max(1));
        let values = series.iter().map(|values| values.len()).sum();
        let orders = Orders::that_reach(below_p, values, seed);
        let ranked = Ranked::of(series);
        let ranked = ranked.as_ref();
        Series {
            drift_p: drift_of(series),
            change: ranked.map(|ranked| ranked.change(&orders)),
            dependence_p: ranked.map(|ranked| ranked.dependence_p(&orders)),
            below_p,
        }
    }

    /// Whether the series drifts.
    pub fn drifts(&self) -> bool {
        self.is_found(self.drift_p)
    }

    /// Returns the position of its step, if there is one.
    pub fn step(&self) -> Option<usize> {
        let change = self.change.filter(|change| self.is_found(Some(change.p)));
        change.map(|change| change.at)
    }

    /// Whether values depend on earlier ones.
    pub fn depends(&self) -> bool {
        self.is_found(self.dependence_p)
    }

    /// Whether any test finds something.
    pub fn is_uneven(&self) -> bool {
        self.drifts() || self.step().is_some() || self.depends()
    }

    fn is_found(&self, p: Option<f64>) -> bool {
        p.is_some_and(|p| p < self.below_p)
    }
}

/// Returns the two-sided p value of no drift (Mann and Kendall). `None` below ten values, with NaN, and when all are
/// equal.
fn drift_of(series: &[&[f64]]) -> Option<f64> {
    if !are_enough(series) {
        return None;
    }
    let term = |n: usize| {
        let n = n as f64;
        n * (n - 1.0) * (2.0 * n + 5.0)
    };
    let (mut rising, mut variance) = (0, 0.0);
    for values in series {
        rising += rises(values);
        let tied: f64 = ties(values).into_iter().map(term).sum();
        variance += (term(values.len()) - tied) / 18.0;
    }
    if variance <= 0.0 {
        return None;
    }
    let from_mean = (rising.abs() as f64 - 1.0).max(0.0);
    Some((2.0 * Normal::standard().cdf(-from_mean / variance.sqrt())).min(1.0))
}

/// Returns the number of pairs whose later value is greater, minus those whose later value is less. Earlier values
/// are counted in a tree (P. M. Fenwick, "A New Data Structure for Cumulative Frequency Tables", Software 24, 1994):
/// the time per value hardly grows with the series.
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

/// Returns the count in the first `places` places of such a tree.
fn counted(counts: &[i64], mut places: usize) -> i64 {
    let mut sum = 0;
    while places > 0 {
        sum += counts[places];
        places &= places - 1;
    }
    sum
}

/// Whether there are enough values, and none of them is NaN.
fn are_enough(series: &[&[f64]]) -> bool {
    let values = || series.iter().copied().flatten();
    values().count() >= VALUES_MIN && values().all(|value| !value.is_nan())
}

/// How many random orders are drawn, and from which seed.
struct Orders {
    most: u32,
    seed: Seed,
}

impl Orders {
    /// For so many values; the p value can get below `below_p`.
    fn that_reach(below_p: f64, values: usize, seed: Seed) -> Self {
        let least = (SHUFFLES_BELOW / below_p).ceil() as u32;
        let affordable = (SHUFFLED_VALUES_MAX / values.max(1)) as u32;
        Orders {
            most: affordable.min(SHUFFLES_MAX).max(least),
            seed,
        }
    }
}

/// Series as twice their ranks minus the mean, each with the deviation that brings its statistics to a common scale.
struct Ranked(Vec<(Vec<i64>, f64)>);

impl Ranked {
    /// `None` below ten values, with NaN, and when all values of each series are equal.
    fn of(series: &[&[f64]]) -> Option<Self> {
        if !are_enough(series) {
            return None;
        }
        let ranked = series.iter().filter_map(|values| {
            let ranks = centred_ranks(values);
            let squares: i64 = ranks.iter().map(|rank| rank * rank).sum();
            let deviation = (squares as f64 / ranks.len().max(1) as f64).sqrt();
            (squares > 0).then_some((ranks, deviation))
        });
        let ranked: Vec<_> = ranked.collect();
        (!ranked.is_empty()).then_some(Ranked(ranked))
    }

    fn change(&self, orders: &Orders) -> ChangePoint {
        let (at, seen) = self.furthest();
        let p = self.share_of(orders, |ranked| ranked.furthest().1 >= seen - ROUNDING);
        ChangePoint { at, p }
    }

    fn dependence_p(&self, orders: &Orders) -> f64 {
        let seen = self.dependence();
        self.share_of(orders, |ranked| ranked.dependence() >= seen - ROUNDING)
    }

    /// Returns the share of orders, drawn within each series, for which `reaches` holds, as it does for the observed
    /// one.
    fn share_of(&self, orders: &Orders, reaches: impl Fn(&Ranked) -> bool) -> f64 {
        let mut ranked = Ranked(self.0.clone());
        let mut generator = orders.seed.generator();
        let mut reached = 0;
        for drawn in 1..=orders.most {
            for (ranks, _) in &mut ranked.0 {
                shuffle(ranks, &mut generator);
            }
            reached += u32::from(reaches(&ranked));
            if reached == REACHED_MAX {
                return f64::from(reached) / f64::from(drawn);
            }
        }
        // The observed order is one of those that could have been drawn.
        f64::from(reached + 1) / f64::from(orders.most + 1)
    }

    /// Returns the sum of the squared autocovariances over all series and lags, each in units of its scatter.
    fn dependence(&self) -> f64 {
        let of_series = |(ranks, deviation): &(Vec<i64>, f64)| -> f64 {
            let lags = 1..=LAGS_MAX.min(ranks.len() / 4);
            let at = |lag: usize| {
                let pairs = ranks.iter().zip(&ranks[lag..]);
                let sum: i64 = pairs.map(|(early, late)| early * late).sum();
                (sum as f64).powi(2) / (ranks.len() - lag) as f64
            };
            lags.map(at).sum::<f64>() / deviation.powi(4)
        };
        self.0.iter().map(of_series).sum()
    }

    /// Returns after how many values the ranks, summed over these and over all series, are furthest from 0, and how
    /// far.
    fn furthest(&self) -> (usize, f64) {
        let longest = self.0.iter().map(|(ranks, _)| ranks.len()).max();
        let (mut sum, mut at, mut most) = (0.0, 0, 0.0);
        for index in 0..longest.unwrap_or(0) {
            let here = |(ranks, deviation): &(Vec<i64>, f64)| {
                ranks
                    .get(index)
                    .map_or(0.0, |rank| *rank as f64 / deviation)
            };
            sum += self.0.iter().map(here).sum::<f64>();
            if f64::abs(sum) > most + ROUNDING {
                (at, most) = (index + 1, f64::abs(sum));
            }
        }
        (at, most)
    }
}

/// Random orders for the p value.
const SHUFFLES: u32 = 2_000;
/// Fewer differences cannot reach a p value of 5 %: there are too few orders.
const BLOCKS_MIN: usize = 5;

/// Returns the one-sided p value of a positive lag-1 correlation of the differences' ranks: the share of random
/// orders whose neighbours are at least as alike as in the order of the blocks (A. Wald and J. Wolfowitz, Annals of
/// Mathematical Statistics 14, 1943).
///
/// Infinite differences, which failed trials make, have ranks too. `None` for fewer than five differences, with NaN,
/// and when all are equal.
pub fn lag_one_p(differences: &[f64], seed: Seed) -> Option<f64> {
    if differences.len() < BLOCKS_MIN || differences.iter().any(|it| it.is_nan()) {
        return None;
    }
    let mut ranks = centred_ranks(differences);
    let seen = neighbours(&ranks);
    if ranks.iter().all(|rank| *rank == ranks[0]) {
        return None;
    }
    let mut generator = seed.generator();
    let as_alike = (0..SHUFFLES)
        .filter(|_| {
            shuffle(&mut ranks, &mut generator);
            neighbours(&ranks) >= seen
        })
        .count();
    // The observed order is one of those that could have been drawn.
    Some((as_alike + 1) as f64 / f64::from(SHUFFLES + 1))
}

/// The largest correlation from block to block that is taken over: few blocks cannot show more.
const CORRELATION_MAX: f64 = 0.6;
/// The fewest degrees of freedom of an interval.
const DEGREES_MIN: usize = 3;

/// Returns how many times as wide an interval of these differences must be because neighbours are alike: `n` of them
/// are worth `n (1 - r) / (1 + r)` independent ones, with `r` the lag-1 correlation, corrected for its bias of about
/// `-(1 + 3 r) / n` (M. G. Kendall, Biometrika 41, 1954). Never less than 1: a negative correlation counts as chance.
/// 1 for fewer than five differences, and where they are not finite or all equal.
pub(crate) fn widening(differences: &[f64], confidence: Confidence) -> f64 {
    let n = differences.len() as f64;
    let is_told = differences.len() >= BLOCKS_MIN && differences.iter().all(|it| it.is_finite());
    let Some(mean) = summary::mean(differences).filter(|_| is_told) else {
        return 1.0;
    };
    let from_mean: Vec<f64> = differences.iter().map(|it| it - mean).collect();
    let squares: f64 = from_mean.iter().map(|it| it * it).sum();
    let products: f64 = from_mean.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let r = ((products / squares * n + 1.0) / (n - 3.0)).min(CORRELATION_MAX);
    if r.is_nan() || r <= 0.0 {
        return 1.0;
    }
    let worth = n * (1.0 - r) / (1.0 + r);
    let quantile = |degrees: usize| student_quantile(degrees, confidence);
    let degrees = ((worth - 1.0) as usize).max(DEGREES_MIN);
    (n / worth).sqrt() * quantile(degrees) / quantile(differences.len() - 1)
}

/// Returns twice the ranks minus their mean: ties stay whole numbers.
fn centred_ranks(values: &[f64]) -> Vec<i64> {
    let mean = values.len() as i64 + 1;
    let ranks = doubled_ranks(values).into_iter();
    ranks.map(|rank| rank as i64 - mean).collect()
}

/// Returns the sum of the products of neighbours.
fn neighbours(ranks: &[i64]) -> i64 {
    ranks.windows(2).map(|pair| pair[0] * pair[1]).sum()
}

#[cfg(test)]
mod series_tests;

#[cfg(test)]
mod independence_tests {
    use super::*;

    #[test]
    fn a_regime_is_noticed() {
        let regime = [
            0.1, 0.12, 0.09, 0.11, 0.1, -0.1, -0.11, -0.1, -0.12, -0.1, 0.1, 0.11, 0.1, 0.12, 0.09,
            0.1,
        ];
        assert!(lag_one_p(&regime, Seed(1)).unwrap() < 0.05);
    }

    #[test]
    fn alternation_is_no_regime() {
        let alternating = [0.1, -0.1, 0.12, -0.13, 0.11, -0.12, 0.13, -0.11];
        assert!(lag_one_p(&alternating, Seed(1)).unwrap() > 0.5);
    }

    #[test]
    fn every_order_of_five_by_hand() {
        // Of the 120 orders of five ranks, those whose neighbours are at least as alike as ascending
        // ones: the sum of products is 4 x 2 + 2 x 0 + 0 + 8 = 16 there, and the greatest is 24.
        let p = lag_one_p(&[1.0, 2.0, 3.0, 4.0, 5.0], Seed(3)).unwrap();
        let mut orders = vec![];
        permute(&mut vec![-4, -2, 0, 2, 4], 0, &mut orders);
        let as_alike = orders
            .iter()
            .filter(|order| neighbours(order) >= 16)
            .count();
        assert!((p - as_alike as f64 / 120.0).abs() < 0.02, "{p} {as_alike}");
    }

    fn permute(items: &mut Vec<i64>, from: usize, orders: &mut Vec<Vec<i64>>) {
        if from == items.len() {
            orders.push(items.clone());
        }
        for at in from..items.len() {
            items.swap(from, at);
            permute(items, from + 1, orders);
            items.swap(from, at);
        }
    }

    #[test]
    fn no_order_is_less_likely_than_one_of_all_that_were_drawn() {
        let ascending: Vec<f64> = (0..30).map(f64::from).collect();
        let p = lag_one_p(&ascending, Seed(1)).unwrap();
        assert_eq!(p, 1.0 / f64::from(SHUFFLES + 1));
    }

    #[test]
    fn ranks_add_up_to_nothing() {
        assert_eq!(centred_ranks(&[0.3, 0.1, 0.2, 0.2]), [3, -3, 0, 0]);
    }

    #[test]
    fn failed_trials_have_ranks() {
        let failing = [f64::NEG_INFINITY, f64::NEG_INFINITY, 0.1, 0.2, 0.3, 0.25];
        assert!(lag_one_p(&failing, Seed(1)).is_some());
    }

    #[test]
    fn what_cannot_be_told() {
        assert_eq!(lag_one_p(&[1.0, 2.0, 3.0, 4.0], Seed(1)), None);
        assert_eq!(lag_one_p(&[0.0; 9], Seed(1)), None);
        assert_eq!(lag_one_p(&[1.0, 2.0, f64::NAN, 3.0, 4.0], Seed(1)), None);
    }
}
