//! Mean and standard deviation of a few values.
//!
//! What must hold: equal values have exactly their value as mean and exactly 0 as deviation, so that
//! data without scatter give intervals without width.

/// The mean; `None` of nothing, and when a value or the sum leaves the range of `f64`.
pub fn mean(values: &[f64]) -> Option<f64> {
    let first = *values.first()?;
    // Around the first value, because the plain sum of equal values rounds: ten times 0.1 sums to
    // less than 1.
    let offset = values.iter().map(|value| value - first).sum::<f64>() / values.len() as f64;
    Some(first + offset).filter(|mean| mean.is_finite())
}

/// The sample's standard deviation, with n - 1; `None` of fewer than two values, and when a value
/// or the sum leaves the range of `f64`.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let degrees = values.len().checked_sub(1).filter(|&degrees| degrees > 0)?;
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / degrees as f64).sqrt()).filter(|deviation| deviation.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_no_scatter_to_the_last_bit() {
        for value in [0.1, -0.3, 1e-9, 1e9 / 3.0] {
            let values = [value; 10];
            assert_eq!(mean(&values), Some(value));
            assert_eq!(standard_deviation(&values), Some(0.0));
        }
    }

    #[test]
    fn known_moments() {
        // Deviations from 5: 9 + 1 + 1 + 1 + 0 + 0 + 4 + 16 = 32, over 7.
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), Some(5.0));
        let deviation = standard_deviation(&values).unwrap();
        assert!((deviation - (32.0f64 / 7.0).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn what_has_no_moment_has_none() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[1.0, f64::NAN]), None);
        assert_eq!(mean(&[f64::INFINITY]), None);
        assert_eq!(mean(&[f64::MAX, -f64::MAX]), None);
        assert_eq!(standard_deviation(&[]), None);
        assert_eq!(standard_deviation(&[1.0]), None);
        assert_eq!(standard_deviation(&[1e200, -1e200]), None);
    }
}
