//! Ranks of values, with ties.
//!
//! What must hold: equal values share the mean of their ranks; ranks are whole numbers here, because all of
//! them are doubled.

/// Twice the rank of each value among all, from 2 for the least; equal values share their mean.
///
/// The values must not be NaN; infinite ones have ranks too.
pub(crate) fn doubled_ranks(values: &[f64]) -> Vec<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = |value: f64| {
        let below = sorted.partition_point(|it| *it < value);
        let not_above = sorted.partition_point(|it| *it <= value);
        (below + not_above + 1) as u64
    };
    values.iter().map(|value| rank(*value)).collect()
}

/// The sizes of the groups of equal values.
pub(crate) fn ties(values: &[f64]) -> Vec<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .chunk_by(|one, other| one == other)
        .map(<[f64]>::len)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(doubled_ranks(&[3.0, 1.0, 2.0]), [6, 2, 4]);
        assert_eq!(doubled_ranks(&[5.0, 5.0, 1.0, f64::INFINITY]), [5, 5, 2, 8]);
        assert_eq!(ties(&[5.0, 1.0, 5.0, 2.0, 5.0]), [1, 1, 3]);
        // 0 and -0 are equal.
        assert_eq!(doubled_ranks(&[0.0, -0.0]), [3, 3]);
        assert_eq!(ties(&[0.0, -0.0]), [2]);
    }
}
