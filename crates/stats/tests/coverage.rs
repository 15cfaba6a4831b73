//! Checks that intervals contain the true value as often as they say, over many simulated studies.
//!
//! A simulated study has a true ratio, a drift that all settings of a block share, and scatter of its own. Seeds are
//! fixed: these tests give the same result every time.

mod draws;

use draws::{normal, share};
use nicpoll_model::IntervalMethod;
use nicpoll_stats::order::{Pcg64, Seed};
use nicpoll_stats::{Confidence, Pair, Power, interval_by, log_differences, ratio_interval};

const TRUE_RATIO: f64 = 1.1;

/// Standard deviation of the log of one value within its block.
const SCATTER: f64 = 0.05;

/// The pairs of one study. Drift is ten times the scatter, so only pairing can see the ratio.
fn study(blocks: usize, generator: &mut Pcg64) -> Vec<Pair> {
    (0..blocks)
        .map(|_| {
            let drift = 10.0 * SCATTER * normal(generator);
            let mut value = |truth: f64| truth * (drift + SCATTER * normal(generator)).exp();
            Pair::measured(value(TRUE_RATIO), value(1.0))
        })
        .collect()
}

#[test]
fn students_interval_covers_as_often_as_it_says() {
    // Four standard deviations of 4000 studies are 0.014 at 0.95 and 0.025 at 0.8. Normal quantiles instead of
    // Student's would cover 0.85 with 4 blocks, and unpaired differences 1.00.
    for (blocks, level, bound) in [(3, 0.95, 0.014), (4, 0.95, 0.014), (8, 0.8, 0.025)] {
        let confidence = Confidence::new(level).unwrap();
        let covered = share(4_000, 11, |generator| {
            let interval = ratio_interval(&study(blocks, generator), confidence).unwrap();
            interval.low <= TRUE_RATIO && TRUE_RATIO <= interval.high
        });
        assert!(
            (covered - level).abs() < bound,
            "{blocks} blocks: {covered}"
        );
    }
}

#[test]
fn a_family_holds_together_as_often_as_it_says() {
    // Four comparisons, independent here: 0.9875^4 = 0.951. At 0.95 each it would be 0.81.
    let covered = share(2_000, 12, |generator| {
        (0..4).all(|_| {
            let pairs = study(5, generator);
            let interval = ratio_interval(&pairs, Confidence::for_family(4)).unwrap();
            interval.low <= TRUE_RATIO && TRUE_RATIO <= interval.high
        })
    });
    assert!((covered - 0.951).abs() < 0.02, "{covered}");
}

#[test]
fn what_a_plan_is_said_to_find_is_found_nine_times_in_ten() {
    // The scatter of 200 blocks is close to the truth. Other studies of sixteen blocks, with exactly the effect that
    // was named, find it.
    let mut generator = Seed(15).generator();
    let many = log_differences(&study(200, &mut generator)).unwrap();
    let level = Confidence::for_family(8);
    for method in [IntervalMethod::HodgesLehmann, IntervalMethod::PairedT] {
        let power = Power::of(&many, method, level, Seed(3)).unwrap();
        let effect = power.found_in(16).unwrap();
        let found = share(1_000, 16, |generator| {
            let differences: Vec<f64> = log_differences(&study(16, generator))
                .unwrap()
                .iter()
                .map(|it| it - TRUE_RATIO.ln() + effect)
                .collect();
            interval_by(method, &differences, level).unwrap().low > 0.0
        });
        assert!((0.84..0.96).contains(&found), "{method}: {effect} {found}");
    }
}
