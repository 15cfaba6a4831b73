//! Are blocks independent? Whether each difference tends to be like the one before it.
//!
//! A setting that stays in one of two regimes for several blocks breaks every interval: false alarms of
//! 20 to 90 % where 5 % were promised. Nothing widens an interval enough; it must be noticed.
//!
//! What must hold: the same differences and seed give the same p value; independent differences get a p
//! value below 5 % in at most 5 % of studies.

use crate::order::{Seed, shuffle};
use crate::ranks::doubled_ranks;

/// Below this p value the blocks of a comparison count as dependent.
pub const DEPENDENT_BELOW_P: f64 = 0.05;

/// Orders that are drawn for the p value.
const SHUFFLES: u32 = 2_000;
/// Fewer differences cannot reach a p value of 5 %: there are too few orders.
const BLOCKS_MIN: usize = 5;

/// The one-sided p value of a positive lag-1 correlation of the differences' ranks: the share of random
/// orders whose neighbours are at least as alike as in the order of the blocks (A. Wald and J. Wolfowitz,
/// Annals of Mathematical Statistics 14, 1943).
///
/// Infinite differences, which failed trials make, have ranks too. `None` of fewer than five differences,
/// of NaN, and when all are equal.
pub fn lag_one_p(differences: &[f64], seed: Seed) -> Option<f64> {
    if differences.len() < BLOCKS_MIN || differences.iter().any(|it| it.is_nan()) {
        return None;
    }
    let mut ranks = ranks(differences);
    let seen = neighbours(&ranks);
    if ranks.iter().all(|rank| *rank == ranks[0]) {
        return None;
    }
    let mut generator = seed.generator();
    let as_alike = (0..SHUFFLES)
        .filter(|_| {
            shuffle(&mut ranks, &mut generator);
            neighbours(&ranks) >= seen
        })
        .count();
    // The order seen is one of those that could have been drawn.
    Some((as_alike + 1) as f64 / f64::from(SHUFFLES + 1))
}

/// Twice the ranks less their mean, so that ties stay whole numbers.
fn ranks(values: &[f64]) -> Vec<i64> {
    let mean = values.len() as i64 + 1;
    let ranks = doubled_ranks(values).into_iter();
    ranks.map(|rank| rank as i64 - mean).collect()
}

/// The sum of the products of neighbours.
fn neighbours(ranks: &[i64]) -> i64 {
    ranks.windows(2).map(|pair| pair[0] * pair[1]).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_regime_is_noticed() {
        let regime = [
            0.1, 0.12, 0.09, 0.11, 0.1, -0.1, -0.11, -0.1, -0.12, -0.1, 0.1, 0.11, 0.1, 0.12, 0.09,
            0.1,
        ];
        assert!(lag_one_p(&regime, Seed(1)).unwrap() < 0.05);
    }

    #[test]
    fn alternation_is_no_regime() {
        let alternating = [0.1, -0.1, 0.12, -0.13, 0.11, -0.12, 0.13, -0.11];
        assert!(lag_one_p(&alternating, Seed(1)).unwrap() > 0.5);
    }

    #[test]
    fn every_order_of_five_by_hand() {
        // Of the 120 orders of five ranks, those whose neighbours are at least as alike as ascending
        // ones: the sum of products is 4 x 2 + 2 x 0 + 0 + 8 = 16 there, and the greatest is 24.
        let p = lag_one_p(&[1.0, 2.0, 3.0, 4.0, 5.0], Seed(3)).unwrap();
        let mut orders = vec![];
        permute(&mut vec![-4, -2, 0, 2, 4], 0, &mut orders);
        let as_alike = orders
            .iter()
            .filter(|order| neighbours(order) >= 16)
            .count();
        assert!((p - as_alike as f64 / 120.0).abs() < 0.02, "{p} {as_alike}");
    }

    fn permute(items: &mut Vec<i64>, from: usize, orders: &mut Vec<Vec<i64>>) {
        if from == items.len() {
            orders.push(items.clone());
        }
        for at in from..items.len() {
            items.swap(from, at);
            permute(items, from + 1, orders);
            items.swap(from, at);
        }
    }

    #[test]
    fn no_order_is_less_likely_than_one_of_all_that_were_drawn() {
        let ascending: Vec<f64> = (0..30).map(f64::from).collect();
        let p = lag_one_p(&ascending, Seed(1)).unwrap();
        assert_eq!(p, 1.0 / f64::from(SHUFFLES + 1));
    }

    #[test]
    fn ranks_add_up_to_nothing() {
        assert_eq!(ranks(&[0.3, 0.1, 0.2, 0.2]), [3, -3, 0, 0]);
    }

    #[test]
    fn failed_trials_have_ranks() {
        let failing = [f64::NEG_INFINITY, f64::NEG_INFINITY, 0.1, 0.2, 0.3, 0.25];
        assert!(lag_one_p(&failing, Seed(1)).is_some());
    }

    #[test]
    fn what_cannot_be_told() {
        assert_eq!(lag_one_p(&[1.0, 2.0, 3.0, 4.0], Seed(1)), None);
        assert_eq!(lag_one_p(&[0.0; 9], Seed(1)), None);
        assert_eq!(lag_one_p(&[1.0, 2.0, f64::NAN, 3.0, 4.0], Seed(1)), None);
    }
}
