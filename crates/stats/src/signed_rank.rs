//! The Hodges-Lehmann estimate and its interval from the exact signed-rank distribution.
//!
//! J. L. Hodges and E. L. Lehmann, "Estimates of Location Based on Rank Tests", Annals of Mathematical
//! Statistics 34 (1963); the interval is the set of shifts that F. Wilcoxon's signed-rank test would not
//! reject (J. W. Tukey, 1949). It assumes that the differences of blocks are independent and symmetric
//! around the effect, whatever their distribution and even where each block's differs.
//!
//! A failed trial makes an infinite difference: the worst or the best rank, whatever its size. The mean of
//! two opposite ones lies nowhere; it counts as the least for the lower end and as the greatest for the
//! upper one, so that neither end gains by it.
//!
//! What must hold: the probability that the interval misses is at most what its confidence says, for any
//! such differences; there is no interval where so few of them cannot reach the confidence.

use crate::confidence::Confidence;
use crate::paired::{Interval, NoInterval};

/// Up to so many differences the distribution is counted out; beyond, its normal approximation is off by
/// less than a thousandth of a tail.
const EXACT_MAX: usize = 200;

/// The fewest differences with which the interval can reach a confidence: with n of them no shift is
/// rejected at less than 2 / 2^n, so that n is 1 + log2(1 / (1 - confidence)), rounded up.
pub fn signed_rank_blocks_min(confidence: Confidence) -> usize {
    (1..)
        .find(|&n| least_tail(n) <= confidence.tail())
        .unwrap_or(usize::MAX)
}

fn least_tail(n: usize) -> f64 {
    0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX))
}

/// The median of all means of two differences, each with itself included, and the interval around it.
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

/// The two-sided p value of no difference, to which [`signed_rank_interval`] is the dual: it is at most 1 less
/// the confidence exactly when the interval leaves 0 out. `None` of nothing and of NaN.
pub fn signed_rank_p(differences: &[f64]) -> Option<f64> {
    if differences.is_empty() || differences.iter().any(|difference| difference.is_nan()) {
        return None;
    }
    let means = walsh_averages(differences);
    // What lies nowhere, and what lies at 0, speaks for neither side.
    let beyond = |is_beyond: fn(&f64) -> bool| means.iter().filter(|it| !is_beyond(it)).count();
    let fewest = beyond(|it| *it > 0.0).min(beyond(|it| *it < 0.0));
    Some((2.0 * tail_at(differences.len(), fewest)).min(1.0))
}

/// The least that [`signed_rank_p`] can be of so many differences: all of them lie on one side.
pub(crate) fn signed_rank_p_least(n: usize) -> f64 {
    (2.0 * least_tail(n)).min(1.0)
}

/// The probability of a rank sum of at most so much.
fn tail_at(n: usize, rank_sum: usize) -> f64 {
    if n > EXACT_MAX {
        use statrs::distribution::{ContinuousCDF, Normal};
        let (mean, deviation) = moments_of_sum(n);
        return Normal::standard().cdf((rank_sum as f64 + 1.0 - mean) / deviation);
    }
    let probabilities = rank_sum_probabilities(n).into_iter();
    probabilities.take(rank_sum + 1).sum()
}

/// The Hodges-Lehmann estimate alone: infinite when most trials of one side failed. `None` of nothing, of
/// NaN, and when as many failed on either side.
pub fn hodges_lehmann(differences: &[f64]) -> Option<f64> {
    if differences.iter().any(|difference| difference.is_nan()) {
        return None;
    }
    let mut means = walsh_averages(differences);
    // What lies nowhere is on neither side of the middle.
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

/// The means with so many others below, and above, them.
fn ends(differences: &[f64], left_out: usize) -> (f64, f64) {
    let means = walsh_averages(differences);
    let last = means.len() - 1 - left_out;
    let high = place(means.clone(), last, f64::INFINITY);
    (place(means, left_out, f64::NEG_INFINITY), high)
}

/// The mean with so many others below it.
pub(crate) fn lower_end(differences: &[f64], left_out: usize) -> f64 {
    place(walsh_averages(differences), left_out, f64::NEG_INFINITY)
}

/// The value with so many others below it; what lies nowhere counts as `nowhere`.
fn place(mut means: Vec<f64>, below: usize, nowhere: f64) -> f64 {
    for mean in &mut means {
        if mean.is_nan() {
            *mean = nowhere;
        }
    }
    *means.select_nth_unstable_by(below, f64::total_cmp).1
}

/// The means of all pairs (J. E. Walsh), in no order. NaN where one is infinite and the other the opposite.
fn walsh_averages(differences: &[f64]) -> Vec<f64> {
    (0..differences.len())
        .flat_map(|one| {
            differences[one..]
                .iter()
                .map(move |other| f64::midpoint(differences[one], *other))
        })
        .collect()
}

/// How many of the means lie below the interval: the critical value, the greatest k for which the
/// signed-rank statistic is at most k with a probability of at most `tail`.
pub(crate) fn left_out(n: usize, tail: f64) -> usize {
    if n > EXACT_MAX {
        return left_out_by_normal(n, tail);
    }
    let mut below = 0.0;
    for (rank_sum, probability) in rank_sum_probabilities(n).into_iter().enumerate() {
        below += probability;
        // What ties in exact arithmetic must not be told apart by rounding.
        if below > tail * (1.0 + 1e-9) {
            return rank_sum.saturating_sub(1);
        }
    }
    0
}

/// The probability of each sum of the ranks 1 to n whose differences are positive, when each sign is a
/// fair coin.
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
    use statrs::distribution::{ContinuousCDF, Normal};
    let (mean, deviation) = moments_of_sum(n);
    let end = mean + Normal::standard().inverse_cdf(tail) * deviation - 1.0;
    end.max(0.0) as usize
}

/// Mean and standard deviation of the rank sum.
fn moments_of_sum(n: usize) -> (f64, f64) {
    let n = n as f64;
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0;
    (n * (n + 1.0) / 4.0, variance.sqrt())
}

#[cfg(test)]
mod tests;
