//! Rank tests and their intervals, for paired values (signed ranks) and unpaired ones (Mann-Whitney).
//!
//! Signed ranks: J. L. Hodges and E. L. Lehmann, "Estimates of Location Based on Rank Tests", Annals of Mathematical
//! Statistics 34 (1963); the interval is the set of shifts that F. Wilcoxon's signed-rank test would not reject (J.
//! W. Tukey, 1949). It assumes that the differences of blocks are independent and symmetric around the effect,
//! whatever their distribution and even where each block's differs. Under that assumption the interval misses with at
//! most the probability that its confidence states; with too few blocks to reach the confidence there is no interval.
//! A failed trial makes an infinite difference: the worst or the best rank. The mean of two opposite infinities
//! counts as the least value for the lower end, and as the greatest for the upper one.
//!
//! Unpaired: H. B. Mann and D. R. Whitney, "On a Test of Whether one of Two Random Variables is Stochastically Larger
//! than the Other", Annals of Mathematical Statistics 18 (1947). The shift is the median of all differences between the
//! sets, and its interval the set of shifts that the test does not reject (Hodges and Lehmann, 1963; M. Hollander and D.
//! A. Wolfe, "Nonparametric Statistical Methods", section 4.3). The test assumes that values are independent; the
//! interval, that the sets differ by a shift. Up to [`SPLITS_EXACT_MAX`] values the p value counts all ways to divide the
//! values seen, ties included; the interval takes the distribution without ties, and is then a little too wide.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::interval::{Confidence, Interval, NoInterval};

/// Returns twice the rank of each value, from 2 for the least; equal values share their mean rank.
///
/// The values must not be NaN; infinite ones have ranks too.
pub(crate) fn doubled_ranks(values: &[f64]) -> Vec<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = |value: f64| {
        let below = sorted.partition_point(|it| *it < value);
        let not_above = sorted.partition_point(|it| *it <= value);
        (below + not_above + 1) as u64
    };
    values.iter().map(|value| rank(*value)).collect()
}

/// Returns the sizes of the groups of equal values.
pub(crate) fn ties(values: &[f64]) -> Vec<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .chunk_by(|one, other| one == other)
        .map(<[f64]>::len)
        .collect()
}

/// Up to so many differences the distribution is exact; beyond, its normal approximation is off by less than a
/// thousandth of a tail.
const EXACT_MAX: usize = 200;

/// Returns the fewest differences with which the interval can reach a confidence: with n of them no shift is rejected
/// at less than 2 / 2^n, so n is 1 + log2(1 / (1 - confidence)), rounded up.
pub fn signed_rank_blocks_min(confidence: Confidence) -> usize {
    (1..)
        .find(|&n| least_tail(n) <= confidence.tail())
        .unwrap_or(usize::MAX)
}

fn least_tail(n: usize) -> f64 {
    0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX))
}

/// Returns the median of all means of two differences, a difference and itself included, and the interval around it.
/// Its ends are two of those means; an end may be infinite where differences are.
///
/// # Errors
/// [`NoInterval::TooFewBlocks`] below [`signed_rank_blocks_min`]; [`NoInterval::OutOfRange`] when a
/// difference is NaN, or so many are infinite that the estimate is no number.
pub fn signed_rank_interval(
    differences: &[f64],
    confidence: Confidence,
) -> Result<Interval, NoInterval> {
    let blocks = differences.len();
    let least = signed_rank_blocks_min(confidence);
    if blocks < least {
        return Err(NoInterval::TooFewBlocks { blocks, least });
    }
    let (low, high) = ends(differences, left_out(blocks, confidence.tail()));
    let estimate = hodges_lehmann(differences).ok_or(NoInterval::OutOfRange)?;
    Ok(Interval {
        estimate,
        low,
        high,
        confidence,
        blocks,
    })
}

/// Returns the two-sided p value of no difference, dual to [`signed_rank_interval`]: it is at most 1 - confidence
/// exactly when the interval excludes 0. `None` without differences, and with NaN.
pub(crate) fn signed_rank_p(differences: &[f64]) -> Option<f64> {
    if differences.is_empty() || differences.iter().any(|difference| difference.is_nan()) {
        return None;
    }
    let means = walsh_averages(differences);
    // A mean that is NaN or 0 counts for neither side.
    let beyond = |is_beyond: fn(&f64) -> bool| means.iter().filter(|it| !is_beyond(it)).count();
    let fewest = beyond(|it| *it > 0.0).min(beyond(|it| *it < 0.0));
    Some((2.0 * tail_at(differences.len(), fewest)).min(1.0))
}

/// Returns the probability of a rank sum of at most `rank_sum`.
fn tail_at(n: usize, rank_sum: usize) -> f64 {
    if n > EXACT_MAX {
        let (mean, deviation) = moments_of_sum(n);
        return Normal::standard().cdf((rank_sum as f64 + 1.0 - mean) / deviation);
    }
    let probabilities = rank_sum_probabilities(n).into_iter();
    probabilities.take(rank_sum + 1).sum()
}

/// Returns the Hodges-Lehmann estimate alone: infinite when most trials of one side failed. `None` without
/// differences, with NaN, and when as many failed on either side.
pub fn hodges_lehmann(differences: &[f64]) -> Option<f64> {
    if differences.iter().any(|difference| difference.is_nan()) {
        return None;
    }
    let mut means = walsh_averages(differences);
    // A mean that is NaN is on neither side of the median.
    means.retain(|mean| !mean.is_nan());
    if means.is_empty() {
        return None;
    }
    let (half, is_odd) = (means.len() / 2, means.len() % 2 == 1);
    let (below, &mut upper, _) = means.select_nth_unstable_by(half, f64::total_cmp);
    let lower = match is_odd {
        true => upper,
        false => below.iter().copied().max_by(f64::total_cmp)?,
    };
    Some(f64::midpoint(lower, upper)).filter(|median| !median.is_nan())
}

/// Returns the means with `left_out` others below, and above, them.
fn ends(differences: &[f64], left_out: usize) -> (f64, f64) {
    let means = walsh_averages(differences);
    let last = means.len() - 1 - left_out;
    let high = place(means.clone(), last, f64::INFINITY);
    (place(means, left_out, f64::NEG_INFINITY), high)
}

/// Returns the mean with `left_out` others below it.
pub(crate) fn lower_end(differences: &[f64], left_out: usize) -> f64 {
    place(walsh_averages(differences), left_out, f64::NEG_INFINITY)
}

/// Returns the value with `below` others below it; NaN counts as `nowhere`.
fn place(mut means: Vec<f64>, below: usize, nowhere: f64) -> f64 {
    for mean in &mut means {
        if mean.is_nan() {
            *mean = nowhere;
        }
    }
    *means.select_nth_unstable_by(below, f64::total_cmp).1
}

/// Returns the means of all pairs (J. E. Walsh), unordered; NaN for opposite infinities.
fn walsh_averages(differences: &[f64]) -> Vec<f64> {
    (0..differences.len())
        .flat_map(|one| {
            differences[one..]
                .iter()
                .map(move |other| f64::midpoint(differences[one], *other))
        })
        .collect()
}

/// Returns how many of the means lie below the interval: the critical value, the greatest k for which the signed-rank
/// statistic is at most k with a probability of at most `tail`.
pub(crate) fn left_out(n: usize, tail: f64) -> usize {
    if n > EXACT_MAX {
        return left_out_by_normal(n, tail);
    }
    let mut below = 0.0;
    for (rank_sum, probability) in rank_sum_probabilities(n).into_iter().enumerate() {
        below += probability;
        // Rounding must not separate what ties in exact arithmetic.
        if below > tail * (1.0 + 1e-9) {
            return rank_sum.saturating_sub(1);
        }
    }
    0
}

/// Returns the probability of each sum of the positive differences' ranks, from 1 to n, when each sign is a fair
/// coin.
fn rank_sum_probabilities(n: usize) -> Vec<f64> {
    let mut probabilities = vec![1.0];
    for rank in 1..=n {
        let mut next = vec![0.0; probabilities.len() + rank];
        for (sum, probability) in probabilities.iter().enumerate() {
            next[sum] += probability / 2.0;
            next[sum + rank] += probability / 2.0;
        }
        probabilities = next;
    }
    probabilities
}

fn left_out_by_normal(n: usize, tail: f64) -> usize {
    let (mean, deviation) = moments_of_sum(n);
    let end = mean + Normal::standard().inverse_cdf(tail) * deviation - 1.0;
    end.max(0.0) as usize
}

/// Returns mean and standard deviation of the rank sum.
fn moments_of_sum(n: usize) -> (f64, f64) {
    let n = n as f64;
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0;
    (n * (n + 1.0) / 4.0, variance.sqrt())
}

/// The differences of all pairs of values from two sets.
pub(crate) struct Differences {
    one: Vec<f64>,
    other: Vec<f64>,
}

impl Differences {
    /// Takes two sets without NaN.
    pub fn of(one: &[f64], other: &[f64]) -> Self {
        let sorted = |values: &[f64]| {
            let mut values = values.to_vec();
            values.sort_by(f64::total_cmp);
            values
        };
        Differences {
            one: sorted(one),
            other: sorted(other),
        }
    }

    /// Returns the number of differences.
    pub fn count(&self) -> usize {
        self.one.len() * self.other.len()
    }

    /// Returns the difference with this number by size, from 0 to below [`Differences::count`].
    pub fn nth(&self, number: usize) -> f64 {
        let (mut low, mut high) = (key(f64::NEG_INFINITY), key(f64::INFINITY));
        while low < high {
            let middle = low.midpoint(high);
            if self.at_most(value(middle)) > number {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        // The search finds -0 where the difference is 0.
        value(low) + 0.0
    }

    /// Returns how many are at most `bound`. The greater a value of one set, the fewer of the other qualify.
    fn at_most(&self, bound: f64) -> usize {
        let mut above = 0;
        let mut count = 0;
        for value in &self.one {
            let rest = self.other[above..].iter();
            above += rest
                .take_while(|it| difference(*value, **it) > bound)
                .count();
            count += self.other.len() - above;
        }
        count
    }
}

/// Subtracts; two failures of one kind do not differ, where subtraction gives NaN.
fn difference(one: f64, other: f64) -> f64 {
    if one == other { 0.0 } else { one - other }
}

/// Returns an integer that orders as the value does.
fn key(value: f64) -> u64 {
    let bits = value.to_bits();
    match bits >> 63 {
        0 => bits | 1 << 63,
        _ => !bits,
    }
}

/// Returns the value with this key.
fn value(key: u64) -> f64 {
    f64::from_bits(match key >> 63 {
        0 => !key,
        _ => key & !(1 << 63),
    })
}

/// Up to so many values of both sides together all divisions are enumerated; beyond, the normal approximation with
/// its correction for ties and for continuity is off by less than a sixteenth of the p value.
const SPLITS_EXACT_MAX: usize = 100;

/// Returns the two-sided p value: twice the smaller tail of the rank sum of `one`, at most 1.
///
/// `None` when a side has no value, or one is NaN.
pub fn mann_whitney_p(one: &[f64], other: &[f64]) -> Option<f64> {
    let all = [one, other].concat();
    if one.is_empty() || other.is_empty() || all.iter().any(|value| value.is_nan()) {
        return None;
    }
    let ranks = doubled_ranks(&all);
    let seen: u64 = ranks[..one.len()].iter().sum();
    let tail = if all.len() <= SPLITS_EXACT_MAX {
        exact_tail(&ranks, one.len(), seen)
    } else {
        normal_tail(&all, one.len(), seen as f64)
    };
    Some((2.0 * tail).min(1.0))
}

/// Returns the probability of a rank sum at least as extreme as `seen`, on the nearer side.
fn exact_tail(ranks: &[u64], chosen: usize, seen: u64) -> f64 {
    let ways = ways(ranks, chosen);
    let total: f64 = ways.iter().sum();
    let (below, above) = ways.split_at(seen as usize);
    let below: f64 = below.iter().sum();
    let at_least: f64 = above.iter().sum();
    (below + above.first().unwrap_or(&0.0)).min(at_least) / total
}

/// Returns in how many ways `chosen` of the ranks add up to each sum.
fn ways(ranks: &[u64], chosen: usize) -> Vec<f64> {
    let greatest: u64 = ranks.iter().sum();
    let width = greatest as usize + 1;
    let mut ways = vec![0.0; (chosen + 1) * width];
    ways[0] = 1.0;
    let mut reached = 0;
    for (index, rank) in ranks.iter().enumerate() {
        let rank = *rank as usize;
        reached += rank;
        for count in (1..=chosen.min(index + 1)).rev() {
            let (fewer, from) = ways.split_at_mut(count * width);
            let fewer = &fewer[(count - 1) * width..];
            for sum in rank..=reached {
                from[sum] += fewer[sum - rank];
            }
        }
    }
    ways.split_off(chosen * width)
}

fn normal_tail(all: &[f64], chosen: usize, seen: f64) -> f64 {
    let (n, m) = (all.len() as f64, chosen as f64);
    let mean = m * (n + 1.0);
    let ties = ties(all).into_iter().map(|size| size as f64);
    let ties: f64 = ties.map(|size| size.powi(3) - size).sum();
    // Of doubled ranks: four times the variance of the rank sum.
    let variance = m * (n - m) / 3.0 * ((n + 1.0) - ties / (n * (n - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let from_mean = ((seen - mean).abs() - 1.0).max(0.0);
    Normal::standard().cdf(-from_mean / variance.sqrt())
}

/// The fewest values of a side for an interval: two have a deviation, but only one degree of freedom.
pub const VALUES_MIN: usize = 3;

/// Returns how far the values of `one` lie above those of `other`: the median of all differences, with its interval.
/// Infinite values, from failed runs, have ranks too, and may make an end infinite.
///
/// # Errors
/// [`NoInterval::TooFewValues`] with too few to reach the confidence; [`NoInterval::OutOfRange`] when a value is NaN,
/// or so many are infinite that the estimate is no number.
pub fn shift_interval(
    one: &[f64],
    other: &[f64],
    confidence: Confidence,
) -> Result<Interval, NoInterval> {
    let sizes = [one.len(), other.len()];
    let left_out =
        shift_left_out(sizes, confidence.tail()).ok_or(NoInterval::TooFewValues { sizes })?;
    let mut all = one.iter().chain(other);
    // Without a finite value there is nothing to compare: nine failed runs are not equivalent to nine others.
    if all.clone().any(|value| value.is_nan()) || all.all(|value| value.is_infinite()) {
        return Err(NoInterval::OutOfRange);
    }
    let differences = Differences::of(one, other);
    let last = differences.count() - 1;
    let middle = f64::midpoint(
        differences.nth(last / 2),
        differences.nth(differences.count() / 2),
    );
    if middle.is_nan() {
        return Err(NoInterval::OutOfRange);
    }
    Ok(Interval {
        estimate: middle,
        low: differences.nth(left_out),
        high: differences.nth(last - left_out),
        confidence,
        blocks: one.len() + other.len(),
    })
}

/// Whether two sets of these sizes can reach a confidence: the most extreme of all ways to divide the values must be
/// rare enough. Four and four reach 95 %; three and three do not, and two never do.
pub(crate) fn shift_reaches(sizes: [usize; 2], confidence: Confidence) -> bool {
    shift_left_out(sizes, confidence.tail()).is_some()
}

/// Returns how many differences lie below the interval: the critical value, the greatest k for which the statistic is
/// at most k with a probability of at most `tail`. `None` when even 0, its least value, is more likely.
fn shift_left_out([one, other]: [usize; 2], tail: f64) -> Option<usize> {
    if one.min(other) < VALUES_MIN {
        return None;
    }
    if one + other > SPLITS_EXACT_MAX {
        return Some(shift_left_out_by_normal(one as f64, other as f64, tail));
    }
    let ranks: Vec<u64> = (1..=(one + other) as u64).collect();
    let ways = ways(&ranks, one);
    let total: f64 = ways.iter().sum();
    let least = one * (one + 1) / 2;
    let mut below = 0.0;
    let more_likely = ways[least..].iter().position(|ways| {
        below += ways;
        // Rounding must not separate what ties in exact arithmetic.
        below > total * tail * (1.0 + 1e-9)
    });
    // The statistic's values from 0 to before `rare` are rare enough.
    more_likely.filter(|rare| *rare > 0).map(|rare| rare - 1)
}

fn shift_left_out_by_normal(one: f64, other: f64, tail: f64) -> usize {
    let mean = one * other / 2.0;
    let deviation = (one * other * (one + other + 1.0) / 12.0).sqrt();
    let end = mean + Normal::standard().inverse_cdf(tail) * deviation - 1.0;
    end.max(0.0) as usize
}

#[cfg(test)]
mod signed_rank_tests;

#[cfg(test)]
mod mann_whitney_tests;

#[cfg(test)]
mod ranks_tests {
    use super::*;

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(doubled_ranks(&[3.0, 1.0, 2.0]), [6, 2, 4]);
        assert_eq!(doubled_ranks(&[5.0, 5.0, 1.0, f64::INFINITY]), [5, 5, 2, 8]);
        assert_eq!(ties(&[5.0, 1.0, 5.0, 2.0, 5.0]), [1, 1, 3]);
        // 0 and -0 are equal.
        assert_eq!(doubled_ranks(&[0.0, -0.0]), [3, 3]);
        assert_eq!(ties(&[0.0, -0.0]), [2]);
    }
}

#[cfg(test)]
mod differences_tests {
    use super::*;

    #[test]
    fn each_difference_is_the_one_that_sorting_finds() {
        let noise = |index: usize| ((index as f64 * 0.618_034).fract() * 40.0).round() / 8.0;
        let mut one: Vec<f64> = (0..23).map(noise).collect();
        let other: Vec<f64> = (30..47)
            .map(noise)
            .chain([f64::INFINITY, f64::NEG_INFINITY])
            .collect();
        one.extend([f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, -0.0]);
        let mut all: Vec<f64> = one
            .iter()
            .flat_map(|one| other.iter().map(|other| difference(*one, *other)))
            .collect();
        all.sort_by(f64::total_cmp);
        let differences = Differences::of(&one, &other);
        assert_eq!(differences.count(), all.len());
        for (number, expected) in all.into_iter().enumerate() {
            let found = differences.nth(number);
            assert!(found == expected && found.is_sign_negative() == (expected < 0.0));
        }
    }

    #[test]
    fn sets_are_compared_whose_differences_would_fill_the_memory() {
        // 10,000,000,000 differences, of which the least is -99,999 and the middle one 0.
        let values: Vec<f64> = (0..100_000).map(f64::from).collect();
        let differences = Differences::of(&values, &values);
        assert_eq!(differences.nth(0), -99_999.0);
        assert_eq!(differences.nth(differences.count() / 2), 0.0);
    }
}
