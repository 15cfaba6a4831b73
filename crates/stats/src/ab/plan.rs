//! Order and length of blocks.
//!
//! What must hold: the order of a pair does not follow from any other pair's, and no length of a block can be
//! told before it is drawn, so that no period of the load keeps step with the settings. The same seed gives the
//! same plan.

use nicpoll_model::ab::AbPlan;
use rand_core::Rng;

use crate::order::{Pcg64, Seed};

/// The least and the greatest length of a block. Shorter ones lose too much of their time to what is left out;
/// longer ones make too few pairs.
pub const BLOCK_SECONDS: [f64; 2] = [2.0, 6.0];
/// The least part of a block at its beginning that is left out. Ten round trips or three settling times of the
/// traffic may ask for more.
pub const LEFT_OUT_SECONDS_MIN: f64 = 0.4;
/// Pairs below which there is no verdict.
pub const PAIRS_MIN: u32 = 30;
/// The share of CPU time, and of load, from which on a difference matters.
pub const MARGIN: f64 = 0.05;
/// The share of the interval's length by which the estimate may move when twice as much is left out; more is carry-over if
/// chance does not explain it.
pub const CARRY_OVER_SHARE: f64 = 0.25;

/// One pair as it is to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawnPair {
    /// Whether the block of the judged setting comes first.
    pub is_judged_first: bool,
    /// Lengths of the first and the second block.
    pub block_seconds: [f64; 2],
}

impl DrawnPair {
    /// Length of both blocks.
    pub fn seconds(&self) -> f64 {
        self.block_seconds.iter().sum()
    }
}

/// The pairs of a plan, one after the other, without end: who runs them stops when the time is over.
#[derive(Clone, Debug)]
pub struct Draw {
    generator: Pcg64,
    shortest: f64,
    longest: f64,
}

impl Draw {
    /// From the plan's seed and lengths.
    pub fn new(plan: &AbPlan) -> Self {
        let [shortest, longest] = plan.block_seconds;
        Draw {
            generator: Seed(plan.seed).generator(),
            shortest,
            longest,
        }
    }

    /// A length between the plan's two.
    fn length(&mut self) -> f64 {
        let share = (self.generator.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        self.shortest + (self.longest - self.shortest) * share
    }
}

impl Iterator for Draw {
    type Item = DrawnPair;

    fn next(&mut self) -> Option<DrawnPair> {
        Some(DrawnPair {
            is_judged_first: self.generator.next_u64() >> 63 == 1,
            block_seconds: [self.length(), self.length()],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(seed: u64) -> AbPlan {
        AbPlan {
            seed,
            duration_seconds: 600.0,
            duty_seconds: None,
            block_seconds: BLOCK_SECONDS,
            left_out_seconds: LEFT_OUT_SECONDS_MIN,
            settling_seconds: None,
            pairs_min: PAIRS_MIN,
            confidence: 0.95,
            margin: MARGIN,
        }
    }

    #[test]
    fn a_seed_always_gives_the_same_pairs() {
        let pairs = |seed| Draw::new(&plan(seed)).take(20).collect::<Vec<_>>();
        assert_eq!(pairs(1), pairs(1));
        assert_ne!(pairs(1), pairs(2));
        // A plan of before can be drawn again.
        let first = pairs(1).into_iter().map(|pair| pair.is_judged_first);
        assert_eq!(
            first.take(6).collect::<Vec<_>>(),
            [true, true, false, true, true, false]
        );
        for pair in pairs(3) {
            let [first, second] = pair.block_seconds;
            assert_eq!(pair.seconds(), first + second);
        }
    }

    #[test]
    fn orders_are_independent_coins() {
        let first: Vec<bool> = Draw::new(&plan(7))
            .take(10_000)
            .map(|pair| pair.is_judged_first)
            .collect();
        // Standard deviation of both counts: 50.
        let heads = first.iter().filter(|it| **it).count();
        let changes = first.windows(2).filter(|it| it[0] != it[1]).count();
        assert!((4_750..=5_250).contains(&heads), "{heads}");
        assert!((4_750..=5_250).contains(&changes), "{changes}");
    }

    #[test]
    fn lengths_fill_their_range() {
        let lengths: Vec<f64> = Draw::new(&plan(3))
            .take(5_000)
            .flat_map(|pair| pair.block_seconds)
            .collect();
        assert!(lengths.iter().all(|it| (2.0..6.0).contains(it)));
        for quarter in 0..4 {
            let low = 2.0 + f64::from(quarter);
            let within = lengths.iter().filter(|it| (low..low + 1.0).contains(*it));
            // Standard deviation: 43.
            assert!((2_280..=2_720).contains(&within.count()), "{quarter}");
        }
    }
}
