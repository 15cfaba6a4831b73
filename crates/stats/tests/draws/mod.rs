//! Random draws, and shares of them, for simulated comparisons.
#![allow(dead_code, reason = "no test uses all of them")]

use nicpoll_stats::order::{Pcg64, Seed};
use rand_core::Rng;

/// Draws a uniform number between 0 and 1, both excluded.
pub fn uniform(generator: &mut Pcg64) -> f64 {
    ((generator.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Draws from the standard normal distribution (Box and Muller, 1958).
pub fn normal(generator: &mut Pcg64) -> f64 {
    (-2.0 * uniform(generator).ln()).sqrt() * (std::f64::consts::TAU * uniform(generator)).cos()
}

/// Returns the share of `runs` in which `holds` returns true.
pub fn share(runs: u32, seed: u64, mut holds: impl FnMut(&mut Pcg64) -> bool) -> f64 {
    let mut generator = Seed(seed).generator();
    let held = (0..runs).filter(|_| holds(&mut generator)).count();
    held as f64 / f64::from(runs)
}
