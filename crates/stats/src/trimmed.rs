//! Student's interval for a mean without the outer values.
//!
//! K. K. Yuen, "The Two-Sample Trimmed t for Unequal Population Variances", Biometrika 61 (1974), for one
//! sample: J. W. Tukey and D. H. McLaughlin, Sankhya A 25 (1963).

use crate::confidence::Confidence;
use crate::moments;
use crate::paired::{Interval, t_quantile};

/// What is cut off at each end.
const TRIM: f64 = 0.2;
/// Below so many values nothing is cut off at this share, or too little is left.
const BLOCKS_MIN: usize = 5;

/// The 20 % trimmed mean with its interval. `None` of fewer than five values and of what is not finite.
pub fn trimmed_interval(differences: &[f64], confidence: Confidence) -> Option<Interval> {
    let blocks = differences.len();
    if blocks < BLOCKS_MIN {
        return None;
    }
    let mut sorted = differences.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = (TRIM * blocks as f64) as usize;
    let kept = &sorted[cut..blocks - cut];
    let estimate = moments::mean(kept)?;
    let (least, greatest) = (kept[0], kept[kept.len() - 1]);
    // Winsorized: what is cut off counts as the nearest value that is kept.
    let pulled_in: Vec<f64> = sorted.iter().map(|it| it.clamp(least, greatest)).collect();
    let deviation = moments::standard_deviation(&pulled_in)?;
    let error = deviation / ((1.0 - 2.0 * cut as f64 / blocks as f64) * (blocks as f64).sqrt());
    let half = t_quantile(kept.len() - 1, confidence) * error;
    Some(Interval {
        estimate,
        low: estimate - half,
        high: estimate + half,
        confidence,
        blocks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_outlier_does_not_widen_it() {
        let even = [0.9, 1.0, 1.1, 0.95, 1.05, 1.0, 0.97, 1.03, 1.0, 1.0];
        let mut spiked = even;
        spiked[2] = 100.0;
        let width = |values: &[f64]| {
            let interval = trimmed_interval(values, Confidence::PERCENT_95).unwrap();
            interval.high - interval.low
        };
        assert!(width(&spiked) < 1.01 * width(&even));
    }

    #[test]
    fn known_interval() {
        // By hand: of 1..=10 two are cut off at each end; mean of 3..=8 is 5.5. Winsorized: 3 3 3 4 5 6 7
        // 8 8 8, sum of squares about 5.5: 2 (3 x 6.25 + 2.25 + 0.25) = 42.5, over 9. t(5) = 2.570582.
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let interval = trimmed_interval(&values, Confidence::PERCENT_95).unwrap();
        let half = 2.570_581_84 * (42.5f64 / 9.0).sqrt() / (0.6 * 10f64.sqrt());
        assert!((interval.estimate - 5.5).abs() < 1e-12);
        assert!((interval.high - interval.estimate - half).abs() < 1e-6);
    }

    #[test]
    fn what_has_no_interval() {
        assert_eq!(trimmed_interval(&[1.0; 4], Confidence::PERCENT_95), None);
        let five = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert!(trimmed_interval(&five, Confidence::PERCENT_95).is_some());
        let wild = [1.0, 2.0, 3.0, 4.0, f64::NAN];
        assert_eq!(trimmed_interval(&wild, Confidence::PERCENT_95), None);
    }
}
