//! The exact sign-flip test: could the differences as well have had the opposite signs?
//!
//! What must hold: the p value is exact, with no assumption but that without an effect each block's
//! difference is as likely to have the one sign as the other. With n blocks it is at least
//! 2 / 2^n, so below six blocks it can never fall under 5 %.

use crate::moments::TIE_SHARE;

/// Differences beyond which the sign patterns, 2^n of them, are too many to try.
pub const SIGN_FLIP_BLOCKS_MAX: usize = 20;

/// The two-sided p value of the mean of `differences`: the share of all sign patterns whose mean is
/// at least as far from 0 as the one seen (R. A. Fisher, "The Design of Experiments", 1935, section
/// 21). All of them are tried.
///
/// `None` of nothing, of more than [`SIGN_FLIP_BLOCKS_MAX`] differences, and when they are not finite.
pub fn sign_flip_p(differences: &[f64]) -> Option<f64> {
    let (first, others) = differences.split_first()?;
    let greatest: f64 = differences.iter().map(|difference| difference.abs()).sum();
    if differences.len() > SIGN_FLIP_BLOCKS_MAX || !greatest.is_finite() {
        return None;
    }
    let seen = differences.iter().sum::<f64>().abs() - TIE_SHARE * greatest;
    // A pattern and its opposite are equally far from 0, so the first sign can stay.
    let patterns = 1u32 << others.len();
    let as_far = (0..patterns)
        .filter(|pattern| {
            let sum = others.iter().enumerate().fold(*first, |sum, (bit, other)| {
                if pattern >> bit & 1 == 0 {
                    sum + other
                } else {
                    sum - other
                }
            });
            sum.abs() >= seen
        })
        .count();
    Some(as_far as f64 / f64::from(patterns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_one_sign_have_the_least_p() {
        let differences = [0.1, 0.3, 0.2, 0.7, 0.5, 0.4];
        assert_eq!(sign_flip_p(&differences), Some(2.0 / 64.0));
        assert_eq!(sign_flip_p(&[0.2; 20]), Some(2.0 / f64::from(1 << 20)));
        assert_eq!(sign_flip_p(&[3.0]), Some(1.0));
    }

    #[test]
    fn fishers_own_example() {
        // Darwin's fifteen pairs of maize (Fisher 1935, section 21, eighths of an inch): 1726 of
        // the 32768 patterns have a sum of 314 or more to either side.
        let darwin = [
            49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0,
            -48.0,
        ];
        assert_eq!(sign_flip_p(&darwin), Some(1726.0 / 32768.0));
    }

    #[test]
    fn ties_count_even_when_they_round_apart() {
        // 0.1 + 0.2 rounds above 0.3. By hand: of the eight patterns only those with a sum of 0
        // (0.1 + 0.2 - 0.3 and its opposite) are nearer to 0 than the one seen, 0.2.
        assert_eq!(sign_flip_p(&[-0.1, 0.3, 0.0]), Some(1.0));
        assert_eq!(sign_flip_p(&[0.1, -0.2, 0.3]), Some(6.0 / 8.0));
        // Seen is the pattern that rounds to 5.6e-17 and is 0: nothing can be nearer.
        assert_eq!(sign_flip_p(&[0.1, 0.2, -0.3]), Some(1.0));
    }

    #[test]
    fn no_differences_at_all_prove_nothing() {
        assert_eq!(sign_flip_p(&[0.0; 8]), Some(1.0));
    }

    #[test]
    fn what_cannot_be_tested_has_no_p() {
        assert_eq!(sign_flip_p(&[]), None);
        assert_eq!(sign_flip_p(&[0.1; 21]), None);
        assert_eq!(sign_flip_p(&[0.1, f64::NAN]), None);
        assert_eq!(sign_flip_p(&[f64::MAX, f64::MAX]), None);
    }
}
