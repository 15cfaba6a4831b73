//! Chance, from a seed.
//!
//! What must hold: the same seed gives the same draws on every machine and in every release. So the
//! generator is named, and no draw goes through a floating-point logarithm, whose last digit differs
//! from one mathematics library to the next.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

#[derive(Clone, Debug)]
pub(crate) struct Chance(Pcg64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Chance(Pcg64::seed_from_u64(seed))
    }

    /// A whole number below `bound`, each as likely but for one in 2^64 / `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        scaled(bound, self.0.next_u64())
    }

    /// A time of the exponential distribution with this mean, in the mean's unit.
    ///
    /// Von Neumann's method (Various techniques used in connection with random digits, 1951): compares
    /// uniform draws only. A run of falling draws of odd length accepts its first as the fraction; each
    /// refusal adds one whole mean.
    pub(crate) fn exponential(&mut self, mean: u64) -> u64 {
        let mut whole: u64 = 0;
        loop {
            let first = self.0.next_u64();
            let mut last = first;
            let mut is_odd = true;
            loop {
                let next = self.0.next_u64();
                if next >= last {
                    break;
                }
                last = next;
                is_odd = !is_odd;
            }
            if is_odd {
                return whole
                    .saturating_mul(mean)
                    .saturating_add(scaled(mean, first));
            }
            whole += 1;
        }
    }
}

/// `bound` times `draw` / 2^64.
fn scaled(bound: u64, draw: u64) -> u64 {
    ((u128::from(bound) * u128::from(draw)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_times_have_their_distribution() {
        let mut chance = Chance::new(7);
        let draws = 200_000;
        let mut sum = 0.0;
        let mut square_sum = 0.0;
        let mut beyond_mean = 0;
        for _ in 0..draws {
            let time = chance.exponential(1_000_000) as f64 / 1e6;
            sum += time;
            square_sum += time * time;
            beyond_mean += u32::from(time > 1.0);
        }
        let mean = sum / f64::from(draws);
        let variance = square_sum / f64::from(draws) - mean * mean;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
        let share = f64::from(beyond_mean) / f64::from(draws);
        assert!((share - (-1.0f64).exp()).abs() < 0.005, "{share}");
    }

    #[test]
    fn a_seed_gives_its_draws_again() {
        let draws = |seed| {
            let mut chance = Chance::new(seed);
            [(); 20].map(|()| chance.exponential(1 << 40))
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
        let mut chance = Chance::new(1);
        assert!((0..1000).all(|_| chance.below(10) < 10));
    }
}
