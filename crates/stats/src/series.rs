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

/// Below this p value one of the three tests calls a series uneven: Bonferroni's third of 5 %. Where several series
/// are tested, it is shared among them.
pub const SERIES_BELOW_P: f64 = FAMILY_ALPHA / 3.0;

/// Orders that are drawn at most for a p value, unless it has to be smaller than they can show.
const SHUFFLES_MAX: u32 = 2_000;
/// Of long series fewer are drawn, so that all of them together have so many values.
const SHUFFLED_VALUES_MAX: usize = 20_000_000;
/// But so many at least that the least p value is a third of what calls a series uneven.
const SHUFFLES_BELOW: f64 = 3.0;
/// Once so many orders reach what was seen, the p value is far from small, and no more are drawn.
const REACHED_MAX: u32 = 100;
/// The longest distance at which values are held against earlier ones; a quarter of a short series.
const LAGS_MAX: usize = 20;
/// Statistics that differ by no more are equal but for their rounding.
const ROUNDING: f64 = 1e-9;
/// Below so many values, all series together, the normal approximation of Mann's statistic is too rough (Kendall 1955), and a step
/// cannot be told from chance.
const VALUES_MIN: usize = 10;

/// What the tests say of a series. A figure is `None` where it cannot be had.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Series {
    /// Two-sided p value of no drift.
    pub drift_p: Option<f64>,
    /// The likeliest step.
    pub change: Option<ChangePoint>,
    /// The p value of values that do not depend on earlier ones.
    pub dependence_p: Option<f64>,
    /// Below this p value a test has found something.
    pub below_p: f64,
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
    /// Tests a series that stands alone.
    pub fn of(values: &[f64], seed: Seed) -> Self {
        Series::of_repeats(&[values], 1, seed)
    }

    /// Tests series that repeat one run, together. `family` is how many such answers there are in all: of even series,
    /// at most 5 % of families have one that is called uneven.
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

    /// Its step, if there is one.
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

/// The two-sided p value of no drift (Mann and Kendall). `None` below ten values, of NaN, and when all are equal.
pub fn drift_p(values: &[f64]) -> Option<f64> {
    drift_of(&[values])
}

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
    let orders = Orders::that_reach(SERIES_BELOW_P, values.len(), seed);
    Some(Ranked::of(&[values])?.change(&orders))
}

/// The p value of values that do not depend on earlier ones (Ljung and Box). `None` as of a step.
pub fn dependence_p(values: &[f64], seed: Seed) -> Option<f64> {
    let orders = Orders::that_reach(SERIES_BELOW_P, values.len(), seed);
    Some(Ranked::of(&[values])?.dependence_p(&orders))
}

/// Whether there are values enough, and none of them is NaN.
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
    /// Of so many values; the p value can be as small as `below_p`.
    fn that_reach(below_p: f64, values: usize, seed: Seed) -> Self {
        let least = (SHUFFLES_BELOW / below_p).ceil() as u32;
        let affordable = (SHUFFLED_VALUES_MAX / values.max(1)) as u32;
        Orders {
            most: affordable.min(SHUFFLES_MAX).max(least),
            seed,
        }
    }
}

/// Series as twice their ranks less the mean, each with what makes its statistics as great as those of any other.
struct Ranked(Vec<(Vec<i64>, f64)>);

impl Ranked {
    /// `None` below ten values, of NaN, and when all values of each series are equal.
    fn of(series: &[&[f64]]) -> Option<Self> {
        if !are_enough(series) {
            return None;
        }
        let ranked = series.iter().filter_map(|values| {
            let mean = values.len() as i64 + 1;
            let ranks = doubled_ranks(values).into_iter();
            let ranks: Vec<i64> = ranks.map(|rank| rank as i64 - mean).collect();
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

    /// The share of orders, drawn within each series, of which `reaches` holds, as it does of the one that was seen.
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
        // The order seen is one of those that could have been drawn.
        f64::from(reached + 1) / f64::from(orders.most + 1)
    }

    /// The sum over all series and distances of the squared covariance there, each in units of its scatter.
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

    /// After how many values their ranks, summed over all series, are furthest from 0, and how far.
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
    fn what_no_run_shows_alone_all_of_them_show() {
        // A warm-up of two steps, half the scatter high.
        let runs: Vec<Vec<f64>> = (0..16)
            .map(|run| {
                let step = |i: usize| noise(11 * run + i) + if i < 2 { -0.5 } else { 0.0 };
                (0..11).map(step).collect()
            })
            .collect();
        let runs: Vec<&[f64]> = runs.iter().map(Vec::as_slice).collect();
        let alone = runs
            .iter()
            .filter(|run| Series::of(run, Seed(1)).is_uneven());
        assert!(alone.count() < 4);
        let together = Series::of_repeats(&runs, 20, Seed(1));
        assert_eq!(together.step(), Some(2), "{together:?}");
        // Of a great family only what is surer is told.
        assert!(together.below_p < SERIES_BELOW_P / 19.0);
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
    fn one_finding_makes_a_series_uneven() {
        let even = Series {
            drift_p: None,
            change: None,
            dependence_p: None,
            below_p: SERIES_BELOW_P,
        };
        let change = |p| Some(ChangePoint { at: 3, p });
        let of = |p: f64| {
            let (drift_p, change, dependence_p) = (Some(p), change(p), Some(p));
            let found = [
                Series { drift_p, ..even },
                Series { change, ..even },
                Series {
                    dependence_p,
                    ..even
                },
            ];
            found.map(|series| series.is_uneven())
        };
        assert_eq!(of(0.01), [true; 3]);
        assert_eq!(of(SERIES_BELOW_P), [false; 3]);
        assert!((3.0 * SERIES_BELOW_P - FAMILY_ALPHA).abs() < 1e-15);
    }

    #[test]
    fn orders_are_as_many_as_the_p_value_needs_and_time_allows() {
        let most = |below_p: f64, values: usize| Orders::that_reach(below_p, values, Seed(1)).most;
        assert_eq!(most(SERIES_BELOW_P, 100), SHUFFLES_MAX);
        assert_eq!(most(SERIES_BELOW_P, 20_000), 1_000);
        assert_eq!(most(SERIES_BELOW_P, 1_000_000), 180);
        assert_eq!(most(1e-4, 100), 30_000);
    }

    #[test]
    fn a_p_value_is_the_share_of_orders_that_reach_what_was_seen() {
        let one_else = |at: usize| {
            (0..10)
                .map(|i| f64::from(u8::from(i == at)))
                .collect::<Vec<_>>()
        };
        // The value that differs is at one of two ends in a fifth of all orders.
        let p = change_point(&one_else(9), Seed(1)).unwrap().p;
        assert!((0.15..0.25).contains(&p), "{p}");
        // At an end its neighbours on one side alone are unlike it: no order has less.
        assert_eq!(dependence_p(&one_else(9), Seed(1)), Some(1.0));
        let p = dependence_p(&one_else(5), Seed(1)).unwrap();
        assert!((0.5..0.8).contains(&p), "{p}");
        // Of 184,756 orders two have this step.
        let step: Vec<f64> = (0..20).map(|i| f64::from(u8::from(i >= 10))).collect();
        let series = Series::of(&step, Seed(7));
        assert_eq!(
            series.change.unwrap(),
            change_point(&step, Seed(7)).unwrap()
        );
        assert_eq!(series.change.unwrap().p, 1.0 / 2001.0);
        assert_eq!(series.dependence_p, dependence_p(&step, Seed(7)));
    }

    #[test]
    fn series_of_any_length_weigh_alike() {
        let (short, long) = (
            [3.0, 1.0, 2.0, 5.0, 4.0],
            [8.0, 1.0, 6.0, 2.0, 7.0, 3.0, 4.0, 5.0],
        );
        let ranked = Ranked::of(&[&short, &long]).unwrap();
        let mut expected = 0.0;
        for (values, (ranks, deviation)) in [&short[..], &long].into_iter().zip(&ranked.0) {
            // Twice the ranks from 1 to n without ties.
            let n = values.len() as f64;
            let variance = (n * n - 1.0) / 3.0;
            assert!((deviation.powi(2) - variance).abs() < 1e-9);
            for lag in 1..=values.len() / 4 {
                let pairs = (lag..values.len()).map(|i| (ranks[i] * ranks[i - lag]) as f64);
                let correlation = pairs.sum::<f64>() / variance;
                expected += correlation.powi(2) / (values.len() - lag) as f64;
            }
        }
        assert!((ranked.dependence() - expected).abs() < 1e-9);
    }

    #[test]
    fn what_cannot_be_told() {
        let nothing = Series {
            drift_p: None,
            change: None,
            dependence_p: None,
            below_p: SERIES_BELOW_P,
        };
        assert_eq!(Series::of(&[1.0; 20], Seed(1)), nothing);
        assert_eq!(Series::of_repeats(&[], 1, Seed(1)), nothing);
        assert_eq!(drift_p(&[1.0, 2.0, 3.0]), None);
        assert_eq!(change_point(&[1.0, 2.0, 3.0], Seed(1)), None);
        let mut values = [1.0; 12];
        values[3] = f64::NAN;
        assert_eq!(Series::of(&values, Seed(1)), nothing);
    }
}
