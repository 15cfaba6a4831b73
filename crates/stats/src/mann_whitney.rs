//! Two unpaired sets of values by their ranks: whether one tends to be greater, and by how much.
//!
//! H. B. Mann and D. R. Whitney, "On a Test of Whether one of Two Random Variables is Stochastically Larger
//! than the Other", Annals of Mathematical Statistics 18 (1947). The shift is the median of all differences
//! between the sets, and its interval is the set of shifts that the test does not reject (Hodges and Lehmann,
//! 1963; M. Hollander and D. A. Wolfe, "Nonparametric Statistical Methods", section 4.3). The test assumes
//! that values are independent; the interval, that the sets differ by a shift.
//!
//! What must hold: up to [`EXACT_MAX`] values the p value is that of all ways to divide the values seen, ties
//! among them included. The interval takes the distribution without ties, and is then rather too wide.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::confidence::Confidence;
use crate::differences::Differences;
use crate::paired::{Interval, NoInterval};
use crate::ranks::{doubled_ranks, ties};

/// Up to so many values of both sides together all divisions are counted; beyond, the normal approximation
/// with its correction for ties and for continuity is off by less than a sixteenth of the p value.
const EXACT_MAX: usize = 100;

/// The two-sided p value: twice the smaller tail of the rank sum of `one`, at most 1.
///
/// `None` when a side has no value, or one is NaN.
pub fn mann_whitney_p(one: &[f64], other: &[f64]) -> Option<f64> {
    let all = [one, other].concat();
    if one.is_empty() || other.is_empty() || all.iter().any(|value| value.is_nan()) {
        return None;
    }
    let ranks = doubled_ranks(&all);
    let seen: u64 = ranks[..one.len()].iter().sum();
    let tail = if all.len() <= EXACT_MAX {
        exact_tail(&ranks, one.len(), seen)
    } else {
        normal_tail(&all, one.len(), seen as f64)
    };
    Some((2.0 * tail).min(1.0))
}

/// The least that [`mann_whitney_p`] can be of two sets of these sizes: each value of one lies beyond all of the other.
pub(crate) fn mann_whitney_p_least([one, other]: [usize; 2]) -> f64 {
    let chosen = (1..=one.min(other)).map(|k| k as f64 / (one.max(other) + k) as f64);
    (2.0 * chosen.product::<f64>()).min(1.0)
}

/// The probability of a rank sum at least as far out as `seen`, on the nearer side.
fn exact_tail(ranks: &[u64], chosen: usize, seen: u64) -> f64 {
    let ways = ways(ranks, chosen);
    let total: f64 = ways.iter().sum();
    let (below, above) = ways.split_at(seen as usize);
    let below: f64 = below.iter().sum();
    let at_least: f64 = above.iter().sum();
    (below + above.first().unwrap_or(&0.0)).min(at_least) / total
}

/// In how many ways `chosen` of the ranks come to each sum.
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

/// How far the values of `one` lie above those of `other`: the median of all differences, with its interval.
/// Infinite values, which failed runs have, have ranks too, and an end may be infinite for them.
///
/// # Errors
/// [`NoInterval::TooFewValues`] where so few cannot reach the confidence; [`NoInterval::OutOfRange`] when a
/// value is NaN, or so many are infinite that the estimate is no number.
pub fn shift_interval(
    one: &[f64],
    other: &[f64],
    confidence: Confidence,
) -> Result<Interval, NoInterval> {
    let sizes = [one.len(), other.len()];
    let left_out = left_out(sizes, confidence.tail()).ok_or(NoInterval::TooFewValues { sizes })?;
    if one.iter().chain(other).any(|value| value.is_nan()) {
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

/// Whether two sets of these sizes can reach a confidence: of all ways to divide the values, the one that is
/// furthest out must be rare enough. Four and four reach 95 %, three and three do not.
pub fn shift_reaches(sizes: [usize; 2], confidence: Confidence) -> bool {
    left_out(sizes, confidence.tail()).is_some()
}

/// How many differences lie below the interval: the critical value, the greatest k for which the statistic is at
/// most k with a probability of at most `tail`. `None` when even 0, its least value, is more likely.
fn left_out([one, other]: [usize; 2], tail: f64) -> Option<usize> {
    if one == 0 || other == 0 {
        return None;
    }
    if one + other > EXACT_MAX {
        return Some(left_out_by_normal(one as f64, other as f64, tail));
    }
    let ranks: Vec<u64> = (1..=(one + other) as u64).collect();
    let ways = ways(&ranks, one);
    let total: f64 = ways.iter().sum();
    let least = one * (one + 1) / 2;
    let mut below = 0.0;
    let more_likely = ways[least..].iter().position(|ways| {
        below += ways;
        // What ties in exact arithmetic must not be told apart by rounding.
        below > total * tail * (1.0 + 1e-9)
    });
    // So many values of the statistic are rare enough; below the first of them lies nothing.
    more_likely.filter(|rare| *rare > 0).map(|rare| rare - 1)
}

fn left_out_by_normal(one: f64, other: f64, tail: f64) -> usize {
    let mean = one * other / 2.0;
    let deviation = (one * other * (one + other + 1.0) / 12.0).sqrt();
    let end = mean + Normal::standard().inverse_cdf(tail) * deviation - 1.0;
    end.max(0.0) as usize
}

#[cfg(test)]
mod tests;
