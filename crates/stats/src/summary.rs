//! Summaries of a handful of values: quantiles, mean and standard deviation, and outliers.
//!
//! Outliers are named, never left out. B. Iglewicz and D. C. Hoaglin, "How to Detect and Handle Outliers", ASQC 16
//! (1993): the distance from the median in units of the median absolute deviation, 0.6745 of which is a standard deviation
//! of normal values; beyond 3.5 a value is an outlier. Where more than half of the values are equal, the mean absolute
//! deviation serves, as they propose.

/// Size, middle and ends of a set of values, in the values' own unit.
/// ```
/// use nicpoll_stats::Summary;
///
/// let summary = Summary::of(&[4.0, 1.0, 2.0, 3.0]).unwrap();
/// assert_eq!((summary.min, summary.median, summary.max), (1.0, 2.5, 4.0));
/// // NaN is not left out.
/// assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Number of values, at least 1.
    pub n: usize,
    /// The middle value; of an even number of values the mean of the middle two.
    pub median: f64,
    /// The lowest tenth: a tenth of the values, at least one, lie there or below.
    pub p10: f64,
    /// The highest tenth: a tenth of the values, at least one, lie there or above.
    pub p90: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

impl Summary {
    /// Summarises `values`; `None` when there are none, or when one of them is not finite, since
    /// leaving that one out would hide it.
    pub fn of(values: &[f64]) -> Option<Summary> {
        if !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let n = sorted.len();
        let tenth = n.div_ceil(10);
        Some(Summary {
            n,
            median: f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]),
            p10: sorted[tenth - 1],
            p90: sorted[n - tenth],
            min,
            max,
        })
    }
}

/// Returns the mean; `None` without values, and when a value or the sum leaves the range of `f64`.
pub fn mean(values: &[f64]) -> Option<f64> {
    let first = *values.first()?;
    // Around the first value, because the plain sum of equal values rounds: ten times 0.1 sums to
    // less than 1.
    let offset = values.iter().map(|value| value - first).sum::<f64>() / values.len() as f64;
    Some(first + offset).filter(|mean| mean.is_finite())
}

/// Returns the sample's standard deviation, with n - 1; `None` for fewer than two values, and when a value or the sum
/// leaves the range of `f64`.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let degrees = values.len().checked_sub(1).filter(|&degrees| degrees > 0)?;
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / degrees as f64).sqrt()).filter(|deviation| deviation.is_finite())
}

/// Beyond this modified z score a value is an outlier.
const SCORE_MAX: f64 = 3.5;
/// Among fewer values no finite one is an outlier.
const VALUES_MIN: usize = 5;
/// The median absolute deviation of normal values, in standard deviations.
const MEDIAN_DEVIATION: f64 = 0.6745;
/// A standard deviation of normal values, in mean absolute deviations.
const MEAN_DEVIATION: f64 = 1.253_314;

/// Returns the positions of the outliers, from 0: values far from five or more finite ones, and among those each that is
/// not finite.
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
        finite.len() >= VALUES_MIN && (is_far || !value.is_finite())
    };
    let positions = values.iter().enumerate();
    positions
        .filter(|(_, value)| is_outlier(**value))
        .map(|(index, _)| index)
        .collect()
}

/// Returns the median; `None` without values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    Summary::of(values).map(|summary| summary.median)
}

#[cfg(test)]
mod summary_tests {
    use super::*;

    #[test]
    fn odd_and_even_numbers_of_values() {
        let of = |values: &[f64]| {
            let summary = Summary::of(values).unwrap();
            (summary.n, summary.median, summary.min, summary.max)
        };
        assert_eq!(of(&[7.0]), (1, 7.0, 7.0, 7.0));
        assert_eq!(of(&[9.0, -1.0, 4.0]), (3, 4.0, -1.0, 9.0));
        assert_eq!(of(&[8.0, 1.0, 2.0, 3.0]), (4, 2.5, 1.0, 8.0));
    }

    #[test]
    fn a_tenth_of_the_values_lies_at_either_end() {
        let of = |n: u32| {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            let summary = Summary::of(&values).unwrap();
            (summary.p10, summary.p90)
        };
        assert_eq!(of(1), (1.0, 1.0));
        assert_eq!(of(10), (1.0, 10.0));
        // Of sixteen, two are more than a tenth and one is less: the second counts.
        assert_eq!(of(16), (2.0, 15.0));
        assert_eq!(of(40), (4.0, 37.0));
    }

    #[test]
    fn the_middle_of_huge_values_does_not_overflow() {
        let median = Summary::of(&[f64::MAX, f64::MAX]).map(|summary| summary.median);
        assert_eq!(median, Some(f64::MAX));
    }

    #[test]
    fn nothing_and_values_that_are_not_finite_have_no_summary() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
        assert_eq!(Summary::of(&[1.0, f64::NEG_INFINITY]), None);
    }
}

#[cfg(test)]
mod moments_tests {
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

#[cfg(test)]
mod outliers_tests {
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
        // Of what never ended nothing lies far from anything.
        assert_eq!(outliers(&[f64::INFINITY]), [0usize; 0]);
        assert_eq!(outliers(&[f64::INFINITY; 9]), [0usize; 0]);
    }
}
