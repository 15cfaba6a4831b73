//! Values that lie far from the others. They are named, never left out.
//!
//! B. Iglewicz and D. C. Hoaglin, "How to Detect and Handle Outliers", ASQC 16 (1993): the distance from the
//! median in units of the median absolute deviation, 0.6745 of which is a standard deviation of normal values;
//! beyond 3.5 a value is an outlier. Where more than half of the values are equal, the mean absolute deviation
//! serves, as they propose.

/// Beyond this modified z score a value is an outlier.
const SCORE_MAX: f64 = 3.5;
/// Of fewer values none can be told from the others.
const VALUES_MIN: usize = 5;
/// The median absolute deviation of normal values, in standard deviations.
const MEDIAN_DEVIATION: f64 = 0.6745;
/// A standard deviation of normal values, in mean absolute deviations.
const MEAN_DEVIATION: f64 = 1.253_314;

/// The positions of the outliers, from 0. None of fewer than five values; what is not finite is one.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    let finite: Vec<f64> = values.iter().copied().filter(|it| it.is_finite()).collect();
    let middle = median(&finite).unwrap_or(0.0);
    let far: Vec<f64> = finite.iter().map(|value| (value - middle).abs()).collect();
    let mean = far.iter().sum::<f64>() / far.len().max(1) as f64;
    let unit = match median(&far) {
        Some(deviation) if deviation > 0.0 => deviation / MEDIAN_DEVIATION,
        _ => mean * MEAN_DEVIATION,
    };
    let is_outlier = |value: f64| {
        let is_far = (value - middle).abs() > SCORE_MAX * unit;
        !value.is_finite() || (finite.len() >= VALUES_MIN && is_far)
    };
    let positions = values.iter().enumerate();
    positions
        .filter(|(_, value)| is_outlier(**value))
        .map(|(index, _)| index)
        .collect()
}

fn median(values: &[f64]) -> Option<f64> {
    crate::Summary::of(values).map(|summary| summary.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spike_is_named_and_the_others_are_not() {
        let mut values = vec![100.0, 101.0, 99.5, 100.5, 98.9, 101.2, 100.1, 99.8];
        assert_eq!(outliers(&values), [0usize; 0]);
        values[3] = 60.0;
        assert_eq!(outliers(&values), [3]);
        values[0] = f64::NEG_INFINITY;
        assert_eq!(outliers(&values), [0, 3]);
    }

    #[test]
    fn the_median_deviation_decides_and_the_mean_one_where_half_are_equal() {
        // The median deviation is 1, and a value is far from 3.5 / 0.6745 = 5.19 on.
        let with = |last: f64| outliers(&[-1.0, -1.0, -1.0, 0.0, 1.0, 1.0, last]);
        assert_eq!(with(4.0), [0usize; 0]);
        assert_eq!(with(5.3), [6]);
        // Three that are far would hide in a mean.
        let three = [
            -1.0, -1.0, -1.0, -1.0, -1.0, 0.0, 1.0, 1.0, 60.0, 60.0, 60.0,
        ];
        assert_eq!(outliers(&three), [8, 9, 10]);
        // Two of eight are four mean deviations off, and 3.5 * 1.2533 are asked for; one of five is five off.
        let two = [5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 6.0, 6.0];
        assert_eq!(outliers(&two), [0usize; 0]);
        assert_eq!(outliers(&two[2..7]), [4]);
    }

    #[test]
    fn equal_values_do_not_make_the_others_outliers() {
        assert_eq!(outliers(&[5.0, 5.0, 5.0, 5.0, 5.0, 5.1]), [5]);
        assert_eq!(outliers(&[5.0; 6]), [0usize; 0]);
        assert_eq!(outliers(&[5.0, 5.0, 90.0]), [0usize; 0]);
        assert_eq!(outliers(&[]), [0usize; 0]);
    }
}
