//! How far a figure goes when nothing differs but chance: where the clocks of the hosts lie to each other, and the
//! times of random packets.
//!
//! A result that hangs on such a thing (two hosts that poll, and whose ticks meet or miss each other) has no one
//! value. One run of it is a draw; the range of several says so.

use crate::plan::Simulation;

/// A figure over several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The least.
    pub least: f64,
    /// The one in the middle, or the mean of the two there.
    pub median: f64,
    /// The most.
    pub most: f64,
}

impl Simulation {
    /// The same plan with so many seeds, its own first: each lays the clocks of several hosts at other phases.
    pub fn with_seeds(&self, runs: u32) -> impl Iterator<Item = Simulation> + '_ {
        (0..runs).map(|run| Simulation {
            seed: self.seed.wrapping_add(u64::from(run)),
            ..self.clone()
        })
    }
}

impl Spread {
    /// Of what the runs came to; `None` of no runs.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut all: Vec<f64> = figures.into_iter().collect();
        all.sort_by(f64::total_cmp);
        let middle = all.len() / 2;
        let lower = all.get(all.len().checked_sub(1)? / 2)?;
        Some(Spread {
            least: *all.first()?,
            median: (lower + all[middle]) / 2.0,
            most: *all.last()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_few_figures() {
        assert_eq!(Spread::of([]), None);
        let of = |figures: &[f64]| {
            let spread = Spread::of(figures.iter().copied()).unwrap();
            (spread.least, spread.median, spread.most)
        };
        assert_eq!(of(&[2.0]), (2.0, 2.0, 2.0));
        assert_eq!(of(&[3.0, 1.0]), (1.0, 2.0, 3.0));
        assert_eq!(of(&[5.0, 1.0, 2.0]), (1.0, 2.0, 5.0));
    }
}
