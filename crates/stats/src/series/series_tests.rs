use super::*;

/// Returns a number that hops about between 0 and 1.
fn noise(index: usize) -> f64 {
    (index as f64 * 0.618_034).fract()
}

#[test]
fn a_warm_up_is_a_step() {
    let values: Vec<f64> = (0..30)
        .map(|i| noise(i) + if i < 6 { 0.0 } else { 1.5 })
        .collect();
    let series = Series::of(&values, Seed(1));
    assert_eq!(series.step(), Some(6), "{series:?}");
    assert!(series.is_uneven());
}

#[test]
fn a_drift_is_seen_both_ways() {
    for sign in [1.0, -1.0] {
        let values: Vec<f64> = (0..20).map(|i| noise(i) + sign * 0.1 * i as f64).collect();
        assert!(Series::of(&values, Seed(1)).drifts());
    }
}

#[test]
fn a_sawtooth_depends_on_what_was() {
    // It neither drifts nor has one step.
    let values: Vec<f64> = (0..40).map(|i| noise(i) + (i % 8) as f64 * 0.5).collect();
    let series = Series::of(&values, Seed(1));
    assert!(series.depends() && !series.drifts(), "{series:?}");
}

#[test]
fn what_no_run_shows_alone_all_of_them_show() {
    // A warm-up of two steps, half the scatter high.
    let runs: Vec<Vec<f64>> = (0..16)
        .map(|run| {
            let step = |i: usize| noise(11 * run + i) + if i < 2 { -0.5 } else { 0.0 };
            (0..11).map(step).collect()
        })
        .collect();
    let runs: Vec<&[f64]> = runs.iter().map(Vec::as_slice).collect();
    let alone = runs
        .iter()
        .filter(|run| Series::of(run, Seed(1)).is_uneven());
    assert!(alone.count() < 4);
    let together = Series::of_repeats(&runs, 20, Seed(1));
    assert_eq!(together.step(), Some(2), "{together:?}");
    // In a large family only stronger evidence counts.
    assert!(together.below_p < SERIES_BELOW_P / 19.0);
}

#[test]
fn published_figures() {
    // pymannkendall 1.4.3 has p = 0.0001 for strictly rising values with one exchange; by hand: S = 43 of
    // 45, variance 10 x 9 x 25 / 18 = 125, z = 42 / 11.18.
    let values = [1.0, 2.0, 3.0, 4.0, 6.0, 5.0, 7.0, 8.0, 9.0, 10.0];
    assert!((Series::of(&values, Seed(1)).drift_p.unwrap() - 1.723e-4).abs() < 1e-6);
    // Ties: variance less 3 x 2 x 11 / 18 for one group of three.
    let tied = [1.0, 1.0, 1.0, 4.0, 6.0, 5.0, 7.0, 8.0, 9.0, 10.0];
    let z: f64 = (40.0 - 1.0) / (125.0f64 - 66.0 / 18.0).sqrt();
    let expected = 2.0 * Normal::standard().cdf(-z);
    assert!((Series::of(&tied, Seed(1)).drift_p.unwrap() - expected).abs() < 1e-12);
}

#[test]
fn pairs_that_rise_are_counted_as_one_by_one() {
    let values: Vec<f64> = (0..60).map(|i| (noise(i * i) * 9.0).round()).collect();
    let pairs = (0..values.len()).flat_map(|late| (0..late).map(move |early| (early, late)));
    let one_by_one = pairs.map(|(early, late)| {
        let (early, late) = (values[early], values[late]);
        i64::from(late > early) - i64::from(late < early)
    });
    assert_eq!(rises(&values), one_by_one.sum::<i64>());
    // 31,249,875,000 pairs: counting one by one takes minutes.
    let rising: Vec<f64> = (0..250_000).map(f64::from).collect();
    assert_eq!(rises(&rising), 250_000 * 249_999 / 2);
}

#[test]
fn one_finding_makes_a_series_uneven() {
    let even = Series {
        drift_p: None,
        change: None,
        dependence_p: None,
        below_p: SERIES_BELOW_P,
    };
    let change = |p| Some(ChangePoint { at: 3, p });
    let of = |p: f64| {
        let (drift_p, change, dependence_p) = (Some(p), change(p), Some(p));
        let found = [
            Series { drift_p, ..even },
            Series { change, ..even },
            Series {
                dependence_p,
                ..even
            },
        ];
        found.map(|series| series.is_uneven())
    };
    assert_eq!(of(0.01), [true; 3]);
    assert_eq!(of(SERIES_BELOW_P), [false; 3]);
    assert!((3.0 * SERIES_BELOW_P - FAMILY_ALPHA).abs() < 1e-15);
}

#[test]
fn orders_are_as_many_as_the_p_value_needs_and_time_allows() {
    let most = |below_p: f64, values: usize| Orders::that_reach(below_p, values, Seed(1)).most;
    assert_eq!(most(SERIES_BELOW_P, 100), SHUFFLES_MAX);
    assert_eq!(most(SERIES_BELOW_P, 20_000), 1_000);
    assert_eq!(most(SERIES_BELOW_P, 1_000_000), 180);
    assert_eq!(most(1e-4, 100), 30_000);
}

#[test]
fn a_p_value_is_the_share_of_orders_that_reach_what_was_seen() {
    let one_else = |at: usize| {
        (0..10)
            .map(|i| f64::from(u8::from(i == at)))
            .collect::<Vec<_>>()
    };
    // The differing value is at one of the two ends in a fifth of all orders.
    let p = Series::of(&one_else(9), Seed(1)).change.unwrap().p;
    assert!((0.15..0.25).contains(&p), "{p}");
    // At an end it has unlike neighbours on one side only: no order has less.
    assert_eq!(Series::of(&one_else(9), Seed(1)).dependence_p, Some(1.0));
    let p = Series::of(&one_else(5), Seed(1)).dependence_p.unwrap();
    assert!((0.5..0.8).contains(&p), "{p}");
    // Of 184,756 orders two have this step.
    let step: Vec<f64> = (0..20).map(|i| f64::from(u8::from(i >= 10))).collect();
    let series = Series::of(&step, Seed(7));
    assert_eq!(series.change.unwrap().p, 1.0 / 2001.0);
}

#[test]
fn series_of_any_length_weigh_alike() {
    let (short, long) = (
        [3.0, 1.0, 2.0, 5.0, 4.0],
        [8.0, 1.0, 6.0, 2.0, 7.0, 3.0, 4.0, 5.0],
    );
    let ranked = Ranked::of(&[&short, &long]).unwrap();
    let mut expected = 0.0;
    for (values, (ranks, deviation)) in [&short[..], &long].into_iter().zip(&ranked.0) {
        // Twice the ranks from 1 to n without ties.
        let n = values.len() as f64;
        let variance = (n * n - 1.0) / 3.0;
        assert!((deviation.powi(2) - variance).abs() < 1e-9);
        for lag in 1..=values.len() / 4 {
            let pairs = (lag..values.len()).map(|i| (ranks[i] * ranks[i - lag]) as f64);
            let correlation = pairs.sum::<f64>() / variance;
            expected += correlation.powi(2) / (values.len() - lag) as f64;
        }
    }
    assert!((ranked.dependence() - expected).abs() < 1e-9);
    // Of the first values: twice the ranks minus 6 of five, which is 0, and minus 9 of eight, which is 7.
    let (at, far) = ranked.furthest();
    assert_eq!(at, 1);
    assert!((far - 7.0 / 21f64.sqrt()).abs() < 1e-12, "{far}");
}

#[test]
fn of_steps_as_likely_the_first_is_told() {
    let values = [2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0];
    assert_eq!(Series::of(&values, Seed(1)).change.unwrap().at, 1);
}

#[test]
fn what_cannot_be_told() {
    let nothing = Series {
        drift_p: None,
        change: None,
        dependence_p: None,
        below_p: SERIES_BELOW_P,
    };
    assert_eq!(Series::of(&[1.0; 20], Seed(1)), nothing);
    assert_eq!(Series::of_repeats(&[], 1, Seed(1)), nothing);
    assert_eq!(Series::of(&[1.0, 2.0, 3.0], Seed(1)), nothing);
    let mut values = [1.0; 12];
    values[3] = f64::NAN;
    assert_eq!(Series::of(&values, Seed(1)), nothing);
}
