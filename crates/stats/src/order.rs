//! Seeded chance: a seed, its generator, and the order drawn from them.
//!
//! The same seed gives the same draws on every machine and in every release, so a study's order can be drawn again from
//! its report. Every order of a slice is equally likely.

use rand_core::{Rng, SeedableRng};
pub use rand_pcg::Pcg64;

/// The seed of all random draws of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seed(pub u64);

impl Seed {
    /// Returns a generator at the start of this seed's sequence. It is PCG XSL RR 128/64, named explicitly because
    /// the generators that `rand` calls small or standard may change between releases.
    pub fn generator(self) -> Pcg64 {
        Pcg64::seed_from_u64(self.0)
    }
}

/// Puts `items` into a random order, each equally likely: Durstenfeld's form of the Fisher-Yates
/// shuffle (Communications of the ACM 7(7), 1964, algorithm 235).
pub fn shuffle<T>(items: &mut [T], generator: &mut Pcg64) {
    for last in (1..items.len()).rev() {
        items.swap(last, index_up_to(last, generator));
    }
}

/// Draws a uniform index in `0..=last`, unbiased: Lemire, "Fast Random Integer Generation in an Interval", ACM
/// Transactions on Modeling and Computer Simulation 29(1), 2019.
pub(crate) fn index_up_to(last: usize, generator: &mut Pcg64) -> usize {
    // usize is at most 64 bits wide, and no slice has so many items that this overflows.
    let choices = last as u64 + 1;
    // Below this the low half of the product belongs to indices that would come up once too often.
    let biased = choices.wrapping_neg() % choices;
    // A draw is refused with a probability of less than a half, and for slices of real sizes hardly
    // ever.
    loop {
        let product = u128::from(generator.next_u64()) * u128::from(choices);
        if product as u64 >= biased {
            return (product >> 64) as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_seed_always_gives_these_draws() {
        // From a Python rendering of PCG XSL RR 128/64 and of rand_core's seed_from_u64.
        let mut generator = Seed(1).generator();
        let draws = [(); 3].map(|()| generator.next_u64());
        assert_eq!(
            draws,
            [
                0xd701_f5c8_2406_2d47,
                0x046d_af9b_8aba_af57,
                0x1d28_a998_490d_b5a0
            ]
        );
    }

    #[test]
    fn a_seed_always_gives_this_order() {
        // From the same generator in Python, with Durstenfeld's loop and Lemire's draw.
        let mut items: Vec<u32> = (0..10).collect();
        shuffle(&mut items, &mut Seed(1).generator());
        assert_eq!(items, [3, 4, 1, 7, 2, 5, 6, 9, 0, 8]);
    }

    #[test]
    fn every_order_of_three_comes_up_equally_often() {
        let rounds = 60_000;
        let mut generator = Seed(7).generator();
        let mut counts: BTreeMap<[u8; 3], u32> = BTreeMap::new();
        for _ in 0..rounds {
            let mut items = [0, 1, 2];
            shuffle(&mut items, &mut generator);
            *counts.entry(items).or_default() += 1;
        }
        assert_eq!(counts.len(), 6);
        let expected = f64::from(rounds) / 6.0;
        let chi_squared: f64 = counts
            .values()
            .map(|&count| (f64::from(count) - expected).powi(2) / expected)
            .sum();
        // 20.5 is the 99.9 % point with 5 degrees of freedom. The naive shuffle that swaps each
        // place with any other expects 4/27 and 5/27 instead of 1/6: about 740 here.
        assert!(chi_squared < 20.5, "{counts:?}");
    }

    #[test]
    fn indices_cover_their_range_evenly() {
        let mut generator = Seed(3).generator();
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[index_up_to(6, &mut generator)] += 1;
        }
        // Standard deviation of one count: 93.
        assert!(
            counts.iter().all(|count| (9_600..=10_400).contains(count)),
            "{counts:?}"
        );
        assert_eq!(index_up_to(0, &mut generator), 0);
    }

    #[test]
    fn no_index_comes_up_once_too_often() {
        // Three quarters of 2^64 choices: taking every draw would double each third index.
        let mut generator = Seed(5).generator();
        let mut counts = [0u32; 3];
        for _ in 0..30_000 {
            counts[index_up_to(usize::MAX / 4 * 3 + 2, &mut generator) % 3] += 1;
        }
        // Standard deviation of one count: 82.
        assert!(
            counts.iter().all(|count| (9_600..=10_400).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn nothing_and_one_item_stay_as_they_are() {
        let mut generator = Seed(0).generator();
        shuffle::<u8>(&mut [], &mut generator);
        let mut one = ["alone"];
        shuffle(&mut one, &mut generator);
        assert_eq!(one, ["alone"]);
    }
}
