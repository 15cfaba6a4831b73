//! What a handful of values looks like, without a model of where they came from.

/// Size, middle and ends of a set of values, in the values' own unit.
/// ```
/// use nicpoll_stats::Summary;
///
/// let summary = Summary::of(&[4.0, 1.0, 2.0, 3.0]).unwrap();
/// assert_eq!((summary.min, summary.median, summary.max), (1.0, 2.5, 4.0));
/// // A value that is none is not left out.
/// assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// How many values there are, at least 1.
    pub n: usize,
    /// The middle value; of an even number of values the mean of the middle two.
    pub median: f64,
    /// The value at the least tenth: a tenth of the values, at least one, lie there or below.
    pub p10: f64,
    /// The value at the greatest tenth: a tenth of the values, at least one, lie there or above.
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

#[cfg(test)]
mod tests {
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
