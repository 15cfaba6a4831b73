//! The bias-corrected and accelerated bootstrap: an interval without the normal distribution.
//!
//! B. Efron, "Better Bootstrap Confidence Intervals", Journal of the American Statistical
//! Association 82 (1987); Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), section
//! 14.3. What must hold: the same values, confidence, seed and number of resamples give the same
//! interval everywhere.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::confidence::Confidence;
use crate::moments::{self, TIE_SHARE};
use crate::order::{Seed, index_up_to};
use crate::paired::Interval;

/// The BCa interval for the mean of `values`, from `resamples` samples drawn from them with
/// replacement. Values that are all equal give an interval of width 0.
///
/// With few values, about ten, it is narrower than it should be. Its ends lie among the resampled
/// means, so a confidence of c takes far more than 2 / (1 - c) resamples.
///
/// `None` of fewer than two values, when they are not finite, of 0 resamples, and when the resampled
/// means are too few or too lopsided for the correction to be defined.
pub fn bca_interval(
    values: &[f64],
    confidence: Confidence,
    seed: Seed,
    resamples: u32,
) -> Option<Interval> {
    let mut generator = seed.generator();
    let last = values.len().checked_sub(1)?;
    let resampled = (0..resamples).map(|_| {
        let draws = values
            .iter()
            .map(|_| values[index_up_to(last, &mut generator)]);
        moments::mean(&draws.collect::<Vec<_>>())
    });
    let means: Option<Vec<f64>> = resampled.collect();
    bca_from_means(values, means?, confidence)
}

/// The BCa interval for the mean of `values`, given the means of their resamples.
fn bca_from_means(values: &[f64], mut means: Vec<f64>, confidence: Confidence) -> Option<Interval> {
    let estimate = moments::mean(values)?;
    let interval = |low, high| Interval {
        estimate,
        low,
        high,
        confidence,
        blocks: values.len(),
    };
    if values.len() < 2 || means.is_empty() {
        return None;
    }
    let deviations: Vec<f64> = values.iter().map(|value| value - estimate).collect();
    let greatest = deviations
        .iter()
        .fold(0.0, |greatest: f64, it| greatest.max(it.abs()));
    if greatest == 0.0 {
        return Some(interval(estimate, estimate));
    }
    // The acceleration does not depend on the unit; this one keeps its powers from vanishing.
    let acceleration = acceleration(deviations.iter().map(|deviation| deviation / greatest));
    let normal = Normal::standard();
    let bias = normal.inverse_cdf(share_below(&means, estimate, TIE_SHARE * greatest));
    means.sort_by(f64::total_cmp);
    let end = |tail: f64| {
        let shifted = bias + normal.inverse_cdf(tail);
        let stretch = 1.0 - acceleration * shifted;
        // At 0 and below the correction has no meaning. An infinite bias, from means that all lie on
        // one side of the estimate, ends here too.
        (stretch > 0.0 && shifted.is_finite())
            .then(|| quantile(&means, normal.cdf(bias + shifted / stretch)))
    };
    let tail = confidence.tail();
    Some(interval(end(tail)?, end(1.0 - tail)?))
}

/// The acceleration of a mean by the jackknife: the sum of the cubed deviations from it over six
/// times the sum of the squared ones to the power 3/2.
fn acceleration(deviations: impl Iterator<Item = f64>) -> f64 {
    let (squares, cubes) = deviations.fold((0.0, 0.0), |(squares, cubes), deviation: f64| {
        (squares + deviation.powi(2), cubes + deviation.powi(3))
    });
    cubes / (6.0 * f64::powf(squares, 1.5))
}

/// The share of `means` below `estimate`; those within `tie` of it count half.
fn share_below(means: &[f64], estimate: f64, tie: f64) -> f64 {
    let count = |end: f64| means.iter().filter(|&&mean| mean < end).count() as f64;
    (count(estimate - tie) + count(estimate + tie)) / 2.0 / means.len() as f64
}

/// The value that a share `p` of the `sorted` values lies below, interpolated linearly between
/// neighbours: definition 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", The
/// American Statistician 50 (1996).
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let position = p * (sorted.len() - 1) as f64;
    let below = sorted[position.floor() as usize];
    let above = sorted[position.ceil() as usize];
    below + (above - below) * position.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Log differences of twelve blocks, one of them far out.
    const SKEWED: [f64; 12] = [
        0.021, 0.034, -0.012, 0.055, 0.048, 0.003, 0.090, 0.027, 0.041, 0.160, 0.015, 0.038,
    ];

    /// The means of every possible resample: the bootstrap without chance.
    fn all_means(values: &[f64]) -> Vec<f64> {
        let n = values.len();
        (0..n.pow(n as u32))
            .map(|code| {
                let drawn = (0..n as u32).map(|place| values[code / n.pow(place) % n]);
                drawn.sum::<f64>() / n as f64
            })
            .collect()
    }

    #[test]
    fn ends_without_chance() {
        // Python with fractions, scipy 1.17.1's normal distribution and numpy.quantile: bias by the
        // share below the mean with ties halved, acceleration by deleting each value in turn.
        for (values, confidence, low, high) in [
            (&[1.0, 2.0, 2.0, 15.0][..], 0.9, 1.5, 11.75),
            (&[-3.0, 0.0, 1.0, 2.0, 10.0][..], 0.9, -0.6, 6.4),
            (&[-3.0, 0.0, 1.0, 2.0, 10.0][..], 0.95, -0.8, 6.8),
        ] {
            let confidence = Confidence::new(confidence).unwrap();
            let interval = bca_from_means(values, all_means(values), confidence).unwrap();
            assert!((interval.low - low).abs() < 1e-12, "{interval:?}");
            assert!((interval.high - high).abs() < 1e-12, "{interval:?}");
        }
    }

    #[test]
    fn ends_by_chance() {
        // scipy 1.17.1: scipy.stats.bootstrap, method BCa, 200000 resamples, three seeds: low
        // 0.02500 to 0.02517, high 0.0773 to 0.0778. Uncorrected percentiles: 0.0218 and 0.0703.
        let interval = bca_interval(&SKEWED, Confidence::PERCENT_95, Seed(1), 50_000).unwrap();
        assert!((interval.low - 0.0251).abs() < 0.0005, "{interval:?}");
        assert!((interval.high - 0.0776).abs() < 0.0010, "{interval:?}");
        assert_eq!(interval.blocks, 12);
    }

    #[test]
    fn the_seed_decides() {
        let interval = |seed| bca_interval(&SKEWED, Confidence::PERCENT_95, Seed(seed), 999);
        assert_eq!(interval(1), interval(1));
        assert_ne!(interval(1), interval(2));
    }

    #[test]
    fn equal_values_give_no_width() {
        let interval = bca_interval(&[0.1; 10], Confidence::PERCENT_95, Seed(1), 100).unwrap();
        assert_eq!(
            (interval.low, interval.estimate, interval.high),
            (0.1, 0.1, 0.1)
        );
    }

    #[test]
    fn the_unit_does_not_matter_however_small() {
        let tiny = SKEWED.map(|value| value * 1e-150);
        let interval = bca_interval(&tiny, Confidence::PERCENT_95, Seed(1), 999).unwrap();
        let usual = bca_interval(&SKEWED, Confidence::PERCENT_95, Seed(1), 999).unwrap();
        assert!((interval.low * 1e150 / usual.low - 1.0).abs() < 1e-9);
        assert!((interval.high * 1e150 / usual.high - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_has_no_interval() {
        let bca = |values: &[f64], resamples| {
            bca_interval(values, Confidence::PERCENT_95, Seed(1), resamples)
        };
        assert_eq!(bca(&[], 100), None);
        assert_eq!(bca(&[0.1], 100), None);
        assert_eq!(bca(&[0.1, f64::NAN, 0.3], 100), None);
        assert_eq!(bca(&[f64::MAX, f64::MIN, 0.3], 100), None);
        assert_eq!(bca(&SKEWED, 0), None);
    }

    #[test]
    fn means_on_one_side_of_the_estimate_have_no_correction() {
        // A single mean is on one side, and over the seeds on both.
        for seed in 0..20 {
            for values in [SKEWED, SKEWED.map(|value| -value)] {
                let found = bca_interval(&values, Confidence::PERCENT_95, Seed(seed), 1);
                assert_eq!(found, None);
            }
        }
    }

    #[test]
    fn an_outlier_at_an_extreme_confidence_has_no_correction() {
        // Acceleration 0.14 and a normal quantile of 7.4: the denominator is negative.
        let values = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0];
        let confidence = Confidence::new(1.0 - 1e-13).unwrap();
        assert_eq!(bca_interval(&values, confidence, Seed(1), 1_000), None);
        assert!(bca_interval(&values, Confidence::PERCENT_95, Seed(1), 1_000).is_some());
    }

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        // As numpy.quantile gives them.
        let sorted = [1.0, 2.0, 4.0];
        for (p, expected) in [(0.0, 1.0), (0.25, 1.5), (0.5, 2.0), (0.75, 3.0), (1.0, 4.0)] {
            assert_eq!(quantile(&sorted, p), expected);
        }
    }
}
