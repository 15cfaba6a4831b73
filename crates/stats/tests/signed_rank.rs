//! How often intervals miss, simulated: the method's promise, whatever the noise.

use nicpoll_stats::order::Seed;
use nicpoll_stats::{Confidence, lag_one_p, mean_interval, signed_rank_interval};
use rand_core::Rng;
use rand_pcg::Pcg64;

const STUDIES: u32 = 1_500;

/// A uniform number between 0 and 1, neither of them.
fn uniform(generator: &mut Pcg64) -> f64 {
    (generator.next_u64() >> 11) as f64 / (1u64 << 53) as f64 + f64::EPSILON
}

fn normal(generator: &mut Pcg64) -> f64 {
    let (radius, turn) = (uniform(generator), uniform(generator));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * turn).cos()
}

/// The log of a trial's rate, in the arm that is judged (true) or the other one.
type Noise = fn(&mut Pcg64, bool) -> f64;

fn even(generator: &mut Pcg64, _: bool) -> f64 {
    0.1 * normal(generator)
}

fn heavy_tails(generator: &mut Pcg64, _: bool) -> f64 {
    let scale: f64 = (0..3).map(|_| normal(generator).powi(2)).sum();
    0.1 * normal(generator) / (scale / 3.0).sqrt()
}

fn spikes(generator: &mut Pcg64, _: bool) -> f64 {
    let spike = if uniform(generator) < 0.1 { -1.0 } else { 0.0 };
    spike + 0.05 * normal(generator)
}

fn spikes_in_one_arm(generator: &mut Pcg64, is_judged: bool) -> f64 {
    if is_judged {
        spikes(generator, true)
    } else {
        0.05 * normal(generator)
    }
}

/// The share of studies whose interval misses `effect`.
fn missed(noise: Noise, blocks: usize, effect: f64, misses: impl Fn(&[f64], f64) -> bool) -> f64 {
    let mut generator = Seed(blocks as u64).generator();
    let count = (0..STUDIES)
        .filter(|_| {
            let differences: Vec<f64> = (0..blocks)
                .map(|_| effect + noise(&mut generator, true) - noise(&mut generator, false))
                .collect();
            misses(&differences, effect)
        })
        .count();
    count as f64 / f64::from(STUDIES)
}

fn signed_rank_misses(differences: &[f64], effect: f64) -> bool {
    let found = signed_rank_interval(differences, Confidence::PERCENT_95).unwrap();
    !(found.low..=found.high).contains(&effect)
}

/// Four standard errors above 5 % with so many studies.
fn most() -> f64 {
    0.05 + 4.0 * (0.05 * 0.95 / f64::from(STUDIES)).sqrt()
}

#[test]
fn the_signed_rank_interval_misses_no_more_than_it_says() {
    for (name, noise) in [
        ("even", even as Noise),
        ("heavy tails", heavy_tails),
        ("spikes in both arms", spikes),
    ] {
        for blocks in [6, 9, 16, 40] {
            for effect in [0.0, 1.1f64.ln()] {
                let share = missed(noise, blocks, effect, signed_rank_misses);
                assert!(
                    share <= most(),
                    "{name}, {blocks} blocks, {effect}: {share}"
                );
            }
        }
    }
}

#[test]
fn spikes_in_one_arm_deceive_students_interval_and_not_the_typical_blocks() {
    // One trial in ten falls to a third: the typical ratio is that of the others, the mean of the logs
    // lies a tenth of a log below. Studies that happen to see few spikes are sure of a wrong mean.
    let student_misses = |differences: &[f64], _| {
        let found = mean_interval(differences, Confidence::PERCENT_95).unwrap();
        !(found.low..=found.high).contains(&-0.1)
    };
    let by_rank = missed(spikes_in_one_arm, 16, 0.0, signed_rank_misses);
    let by_mean = missed(spikes_in_one_arm, 16, 0.0, student_misses);
    assert!(by_rank < 0.10, "{by_rank}");
    assert!(by_mean > 0.15, "{by_mean}");
}

#[test]
fn the_interval_is_not_wider_than_it_must_be() {
    // Normal noise, 16 blocks: the signed-rank interval is about as wide as Student's.
    let mut generator = Seed(1).generator();
    let (mut ranks, mut student) = (0.0, 0.0);
    for _ in 0..500 {
        let differences: Vec<f64> = (0..16).map(|_| normal(&mut generator)).collect();
        let found = signed_rank_interval(&differences, Confidence::PERCENT_95).unwrap();
        ranks += found.high - found.low;
        let found = mean_interval(&differences, Confidence::PERCENT_95).unwrap();
        student += found.high - found.low;
    }
    let ratio: f64 = ranks / student;
    assert!((0.95..1.1).contains(&ratio), "{ratio}");
}

#[test]
fn regimes_are_noticed_and_independent_blocks_are_left_alone() {
    let mut generator = Seed(5).generator();
    let mut noticed = |stays: f64, blocks: usize| {
        let studies = 200;
        let count = (0..studies)
            .filter(|study| {
                let mut regime = 0.2;
                let differences: Vec<f64> = (0..blocks)
                    .map(|_| {
                        if uniform(&mut generator) > stays {
                            regime = -regime;
                        }
                        regime + 0.05 * normal(&mut generator)
                    })
                    .collect();
                lag_one_p(&differences, Seed(*study)).is_some_and(|p| p < 0.05)
            })
            .count();
        count as f64 / studies as f64
    };
    assert!(noticed(0.5, 16) < 0.11);
    assert!(noticed(0.9, 40) > 0.6);
}
