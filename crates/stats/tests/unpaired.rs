//! Checks how often the methods for unpaired values are wrong, over many simulated comparisons and series.
//!
//! Seeds are fixed: these tests give the same result every time.

mod draws;

use draws::{normal, share, uniform};
use nicpoll_stats::order::{Pcg64, Seed};
use nicpoll_stats::{Confidence, Series, mann_whitney_p, shift_interval, welch_interval, welch_p};

const SHIFT: f64 = 1.5;

#[test]
fn intervals_of_unpaired_values_hold_the_truth() {
    // Twice the scatter on one side is Welch's case; ranks assume a shift of one shape. Three standard deviations of
    // 1,000 runs are 0.021.
    for (sizes, scatter) in [([8, 8], 1.0), ([5, 12], 1.0), ([6, 15], 2.0)] {
        let covered = |seed, by_ranks: bool| {
            share(1_000, seed, |generator| {
                let mut draw = |size: usize, shift: f64, scatter: f64| -> Vec<f64> {
                    (0..size)
                        .map(|_| shift + scatter * normal(generator))
                        .collect()
                };
                let (one, other) = (draw(sizes[0], SHIFT, scatter), draw(sizes[1], 0.0, 1.0));
                let method = if by_ranks {
                    shift_interval
                } else {
                    welch_interval
                };
                let interval = method(&one, &other, Confidence::PERCENT_95).unwrap();
                interval.low <= SHIFT && SHIFT <= interval.high
            })
        };
        let welch = covered(21, false);
        assert!(
            (welch - 0.95).abs() < 0.02,
            "{sizes:?} {scatter}: Welch {welch}"
        );
        if scatter == 1.0 {
            let ranks = covered(22, true);
            assert!((0.929..0.99).contains(&ranks), "{sizes:?}: ranks {ranks}");
        }
    }
}

#[test]
fn a_slow_run_in_ten_deceives_the_mean_and_not_the_ranks() {
    // Both sides alike, and one run in ten of one of them at a fifth.
    let alarms = |by_ranks: bool| {
        share(300, 23, |generator| {
            let mut draw = |is_slow: bool| -> Vec<f64> {
                let mut one = || {
                    let slow = if is_slow && uniform(generator) < 0.1 {
                        0.2
                    } else {
                        1.0
                    };
                    (100.0 * slow * (0.03 * normal(generator)).exp()).ln()
                };
                (0..40).map(|_| one()).collect()
            };
            let (one, other) = (draw(true), draw(false));
            let p = if by_ranks { mann_whitney_p } else { welch_p };
            p(&one, &other).unwrap() < 0.05
        })
    };
    let (ranks, welch) = (alarms(true), alarms(false));
    assert!(ranks < 0.15, "{ranks}");
    assert!(welch > 2.0 * ranks, "{welch} {ranks}");
}

#[test]
fn even_series_are_called_uneven_in_one_of_twenty_at_most() {
    for (length, kind) in [(10, 0), (16, 1), (60, 2)] {
        let alarms = share(400, 24, |generator| {
            let values: Vec<f64> = (0..length)
                .map(|_| match kind {
                    0 => normal(generator),
                    // One in ten slow, and heavy tails.
                    1 => normal(generator) - if uniform(generator) < 0.1 { 20.0 } else { 0.0 },
                    // Few levels, and many equal values: text has three digits.
                    _ => (4.0 * uniform(generator)).floor(),
                })
                .collect();
            Series::of(&values, Seed(5)).is_uneven()
        });
        // Three standard deviations of 400 are 0.033.
        assert!(alarms < 0.083, "{length} {kind}: {alarms}");
    }
}

#[test]
fn uneven_series_are_called_so() {
    // A sawtooth of eight values, five times the scatter high; a warm-up of a fifth and a drift, three times.
    let shapes: [fn(usize) -> f64; 3] = [
        |i| (i % 8) as f64 * 0.75,
        |i| if i < 8 { -3.0 } else { 0.0 },
        |i| i as f64 * 0.08,
    ];
    for (index, shape) in shapes.iter().enumerate() {
        let found = share(60, 25, |generator| {
            let values: Vec<f64> = (0..40).map(|i| shape(i) + normal(generator)).collect();
            Series::of(&values, Seed(5)).is_uneven()
        });
        assert!(found > 0.8, "shape {index}: {found}");
    }
}

/// Draws sixteen trials of one setting, of `steps` steps each.
fn trials(
    generator: &mut Pcg64,
    steps: usize,
    level: impl Fn(usize, usize) -> f64,
) -> Vec<Vec<f64>> {
    (0..16)
        .map(|run| {
            let step = |at| level(run, at) + normal(generator);
            (0..steps).map(step).collect()
        })
        .collect()
}

fn together(trials: &[Vec<f64>], family: u32) -> Series {
    let trials: Vec<&[f64]> = trials.iter().map(Vec::as_slice).collect();
    Series::of_repeats(&trials, family, Seed(5))
}

#[test]
fn of_studies_whose_trials_are_even_one_in_twenty_at_most_has_one_called_uneven() {
    // Twelve settings and workloads in each study. Levels differ from trial to trial, but not from step to step.
    let alarms = share(100, 26, |generator| {
        (0..12).any(|_| {
            let levels: Vec<f64> = (0..16).map(|_| 5.0 * normal(generator)).collect();
            let even = trials(generator, 11, |run, _| levels[run]);
            together(&even, 12).is_uneven()
        })
    });
    // Three standard deviations of 100 are 0.065.
    assert!(alarms < 0.115, "{alarms}");
}

#[test]
fn what_trials_share_is_found_although_few_show_it_alone() {
    /// The level of a run at a step; the number of steps; whether the shape is found.
    type Shape = (fn(usize, usize) -> f64, usize, fn(&Series) -> bool);
    let shapes: [Shape; 3] = [
        // A warm-up of three steps, and a drift, a little more than the scatter.
        (
            |_, at| if at < 3 { -1.2 } else { 0.0 },
            11,
            |series| (2..=4).any(|at| series.step() == Some(at)),
        ),
        (|_, at| 0.12 * at as f64, 11, Series::drifts),
        // A sawtooth of six steps that begins anywhere.
        (
            |run, at| 0.65 * ((5 * run + at) % 6) as f64,
            24,
            Series::depends,
        ),
    ];
    for (index, (level, steps, is_found)) in shapes.into_iter().enumerate() {
        let (mut alone, mut runs) = (0, 0);
        let found = share(24, 27, |generator| {
            let uneven = trials(generator, steps, level);
            let shown = |trial: &&Vec<f64>| Series::of(trial, Seed(5)).is_uneven();
            alone += uneven.iter().filter(shown).count();
            runs += uneven.len();
            is_found(&together(&uneven, 12))
        });
        assert!(found > 0.7, "shape {index}: {found}");
        assert!(2 * alone < runs, "shape {index}: {alone} of {runs} alone");
    }
}
