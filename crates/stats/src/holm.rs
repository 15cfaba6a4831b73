//! Holm's correction of a family of p values.
//!
//! S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6
//! (1979). It rejects at least what Bonferroni does, and cannot be read off intervals: it stands beside them.
//!
//! What must hold: a family is as large as was planned, whether or not all of it was tested.

/// The p values, each multiplied by the number of those that are not smaller, and never below a smaller one's.
/// `family` tests were planned; those that gave no p value count as the greatest.
pub fn holm(p_values: &[Option<f64>], family: usize) -> Vec<Option<f64>> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.retain(|index| p_values[*index].is_some());
    order.sort_by(|one, other| {
        p_values[*one]
            .partial_cmp(&p_values[*other])
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let mut adjusted = vec![None; p_values.len()];
    let mut least = 0.0f64;
    for (place, index) in order.into_iter().enumerate() {
        let remaining = family.max(p_values.len()) - place;
        let p = p_values[index].unwrap_or(1.0) * remaining as f64;
        least = least.max(p.min(1.0));
        adjusted[index] = Some(least);
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holms_own_steps() {
        let some = |values: &[f64]| values.iter().map(|it| Some(*it)).collect::<Vec<_>>();
        let close = |found: Vec<Option<f64>>, expected: &[f64]| {
            for (found, expected) in found.iter().zip(expected) {
                assert!(
                    (found.unwrap() - expected).abs() < 1e-12,
                    "{found:?} {expected}"
                );
            }
        };
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
        close(
            holm(&some(&[0.01, 0.04, 0.03, 0.005]), 4),
            &[0.03, 0.06, 0.06, 0.02],
        );
        // Two that were planned gave none.
        close(holm(&some(&[0.01, 0.04]), 4), &[0.04, 0.12]);
        assert_eq!(
            holm(&[None, Some(0.5), Some(0.9)], 3),
            [None, Some(1.0), Some(1.0)]
        );
    }
}
