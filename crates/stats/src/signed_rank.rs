//! The Hodges-Lehmann estimate and its interval from the exact signed-rank distribution.
//!
//! J. L. Hodges and E. L. Lehmann, "Estimates of Location Based on Rank Tests", Annals of Mathematical
//! Statistics 34 (1963); the interval is the set of shifts that F. Wilcoxon's signed-rank test would not
//! reject (J. W. Tukey, 1949). It assumes that the differences of blocks are independent and symmetric
//! around the effect, whatever their distribution and even where each block's differs.
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
/// Its ends are two of those means.
///
/// # Errors
/// [`NoInterval::TooFewBlocks`] below [`signed_rank_blocks_min`]; [`NoInterval::OutOfRange`] when a
/// difference is not finite.
pub fn signed_rank_interval(
    differences: &[f64],
    confidence: Confidence,
) -> Result<Interval, NoInterval> {
    let blocks = differences.len();
    let least = signed_rank_blocks_min(confidence);
    if blocks < least {
        return Err(NoInterval::TooFewBlocks { blocks, least });
    }
    let means = walsh_averages(differences);
    if !means.iter().all(|mean| mean.is_finite()) {
        return Err(NoInterval::OutOfRange);
    }
    let left_out = left_out(blocks, confidence.tail());
    Ok(Interval {
        estimate: median(&means),
        low: means[left_out],
        high: means[means.len() - 1 - left_out],
        confidence,
        blocks,
    })
}

/// The Hodges-Lehmann estimate alone; `None` of nothing and of what is not finite.
pub fn hodges_lehmann(differences: &[f64]) -> Option<f64> {
    let means = walsh_averages(differences);
    let is_finite = !means.is_empty() && means.iter().all(|mean| mean.is_finite());
    is_finite.then(|| median(&means))
}

/// The means of all pairs, ascending (J. E. Walsh).
fn walsh_averages(differences: &[f64]) -> Vec<f64> {
    let mut means: Vec<f64> = (0..differences.len())
        .flat_map(|one| {
            differences[one..]
                .iter()
                .map(move |other| f64::midpoint(differences[one], *other))
        })
        .collect();
    means.sort_by(f64::total_cmp);
    means
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

/// How many of the means lie below the interval: the critical value, the greatest k for which the
/// signed-rank statistic is at most k with a probability of at most `tail`.
fn left_out(n: usize, tail: f64) -> usize {
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
    let n = n as f64;
    let mean = n * (n + 1.0) / 4.0;
    let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    let end = mean + Normal::standard().inverse_cdf(tail) * deviation - 1.0;
    end.max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confidence(level: f64) -> Confidence {
        Confidence::new(level).unwrap()
    }

    #[test]
    fn blocks_that_a_family_takes() {
        for (comparisons, blocks) in [(1, 6), (2, 7), (4, 8), (8, 9), (16, 10)] {
            let found = signed_rank_blocks_min(Confidence::for_family(comparisons));
            assert_eq!(found, blocks, "{comparisons} comparisons");
        }
    }

    #[test]
    fn tabled_critical_values() {
        // Hollander and Wolfe, "Nonparametric Statistical Methods", table A.4: the greatest sum with a
        // tail of at most 2.5 % is 0, 2, 3, 5, 8 for 6 to 10, 52 for 20 and 264 for 40 pairs.
        for (n, sum) in [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (20, 52), (40, 264)] {
            assert_eq!(left_out(n, 0.025), sum, "{n} pairs");
        }
    }

    #[test]
    fn every_sign_pattern_by_hand() {
        // The interval misses the effect in as many of the 2^n patterns as the distribution says.
        let sizes = [0.3, 0.7, 1.1, 1.9, 2.3, 3.1, 4.7];
        let patterns = 1u32 << sizes.len();
        let level = confidence(0.95);
        let missed = (0..patterns)
            .filter(|pattern| {
                let signed: Vec<f64> = sizes
                    .iter()
                    .enumerate()
                    .map(|(bit, size)| {
                        if pattern >> bit & 1 == 0 {
                            *size
                        } else {
                            -size
                        }
                    })
                    .collect();
                let interval = signed_rank_interval(&signed, level).unwrap();
                interval.low > 0.0 || interval.high < 0.0
            })
            .count();
        // Rank sums of 0, 1 and 2, one pattern each, on either side.
        assert_eq!(missed, 6);
    }

    #[test]
    fn darwins_maize() {
        // Fisher 1935, section 21, eighths of an inch. The ends are the 26th means from either side: with
        // 15 pairs the critical value is 25. scipy 1.17: wilcoxon of the differences less 3.99 gives p = 0.048, less
        // 4.01 p = 0.064.
        let darwin = [
            49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0,
            -48.0,
        ];
        let interval = signed_rank_interval(&darwin, Confidence::PERCENT_95).unwrap();
        assert_eq!(
            (interval.low, interval.estimate, interval.high),
            (4.0, 25.0, 41.5)
        );
    }

    #[test]
    fn the_normal_tail_meets_the_exact_one() {
        for tail in [0.025, 0.025 / 8.0] {
            let exact = left_out(EXACT_MAX, tail) as f64;
            let normal = left_out_by_normal(EXACT_MAX, tail) as f64;
            assert!((exact - normal).abs() / exact < 0.005, "{exact} {normal}");
        }
    }

    #[test]
    fn what_has_no_interval() {
        let few = signed_rank_interval(&[1.0; 5], Confidence::PERCENT_95);
        assert_eq!(
            few,
            Err(NoInterval::TooFewBlocks {
                blocks: 5,
                least: 6
            })
        );
        let wild = [1.0, 2.0, f64::NAN, 3.0, 4.0, 5.0, 6.0];
        let found = signed_rank_interval(&wild, Confidence::PERCENT_95);
        assert_eq!(found, Err(NoInterval::OutOfRange));
        assert_eq!(hodges_lehmann(&[]), None);
        assert_eq!(hodges_lehmann(&[f64::INFINITY]), None);
    }

    #[test]
    fn equal_differences_have_no_width() {
        let interval = signed_rank_interval(&[0.1; 9], Confidence::PERCENT_95).unwrap();
        assert_eq!(
            (interval.low, interval.estimate, interval.high),
            (0.1, 0.1, 0.1)
        );
    }
}
