use super::*;

/// Delivered rates, bits a second, under two settings in five blocks: ratios of 1.02 to 1.06.
pub(crate) const RATES: [(f64, f64); 5] = [
    (941e6, 902e6),
    (936e6, 911e6),
    (952e6, 899e6),
    (929e6, 907e6),
    (947e6, 905e6),
];

pub(crate) fn pairs(values: &[(f64, f64)]) -> Vec<Pair> {
    let pair = |&(setting, reference): &(f64, f64)| Pair::measured(setting, reference);
    values.iter().map(pair).collect()
}

fn rates() -> Vec<Pair> {
    pairs(&RATES)
}

fn level(level: f64) -> Confidence {
    Confidence::new(level).unwrap()
}

pub(crate) fn close(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 1e-10 * expected.abs(),
        "{found} is not {expected}"
    );
}

#[test]
fn quantiles_of_students_t() {
    // scipy 1.17.1, scipy.stats.t.isf((1 - confidence) / 2, degrees). A deviation of sqrt(n) makes
    // the half width the quantile itself.
    for (degrees, confidence, quantile) in [
        (2, 0.95, 4.302652729749462),
        (2, 0.9875, 8.860200034654316),
        (4, 0.95, 2.7764451051977934),
        (4, 0.9875, 4.314656048886743),
        (5, 0.99, 4.032142983555228),
        (9, 0.95, 2.262157162798205),
        (19, 0.95, 2.0930240544083087),
        (9999, 0.95, 1.960201263621357),
    ] {
        let blocks = degrees + 1;
        let found = half_width((blocks as f64).sqrt(), blocks, level(confidence));
        close(found, quantile);
    }
}

#[test]
fn an_interval_for_a_ratio() {
    // scipy 1.17.1: scipy.stats.ttest_rel of the logs, confidence_interval, exponentiated.
    for (confidence, low, high) in [
        (0.95, 1.022403855381559, 1.0578609307186275),
        (0.9875, 1.0127937859138172, 1.0678986276050115),
    ] {
        let interval = ratio_interval(&rates(), level(confidence)).unwrap();
        close(interval.estimate, 1.0399812950357565);
        close(interval.low, low);
        close(interval.high, high);
        assert_eq!(interval.blocks, 5);
        assert_eq!(interval.confidence, level(confidence));
    }
}

#[test]
fn an_interval_for_points() {
    // scipy 1.17.1: scipy.stats.ttest_rel, confidence_interval(0.9).
    let pairs = pairs(&[(0.12, 0.10), (0.10, 0.11), (0.15, 0.12), (0.11, 0.09)]);
    let interval = points_interval(&pairs, level(0.9)).unwrap();
    close(interval.estimate, 0.015);
    close(interval.low, -0.005380725188757832);
    close(interval.high, 0.03538072518875782);
}

#[test]
fn without_scatter_the_interval_has_no_width() {
    let twice = [Pair::measured(0.2, 0.1); 3];
    let interval = ratio_interval(&twice, Confidence::PERCENT_95).unwrap();
    assert_eq!(interval.low, interval.high);
    assert_eq!(interval.low, interval.estimate);
    close(interval.estimate, 2.0);

    let same = pairs(&[(3.0, 3.0), (5.0, 5.0), (7.0, 7.0)]);
    let interval = ratio_interval(&same, Confidence::PERCENT_95).unwrap();
    assert_eq!(
        (interval.low, interval.estimate, interval.high),
        (1.0, 1.0, 1.0)
    );
}

#[test]
fn what_all_settings_share_in_a_block_cancels() {
    // The machine was half as fast in the last two blocks.
    let mut drifted = rates();
    for pair in &mut drifted[3..] {
        pair.setting = pair.setting.map(|value| value / 2.0);
        pair.reference = pair.reference.map(|value| value / 2.0);
    }
    let steady = ratio_interval(&rates(), Confidence::PERCENT_95).unwrap();
    let drifted = ratio_interval(&drifted, Confidence::PERCENT_95).unwrap();
    close(drifted.low, steady.low);
    close(drifted.high, steady.high);
}

#[test]
fn two_blocks_are_too_few() {
    for blocks in 0..3 {
        let found = ratio_interval(&rates()[..blocks], Confidence::PERCENT_95);
        assert_eq!(
            found,
            Err(NoInterval::TooFewBlocks {
                blocks,
                least: BLOCKS_MIN
            })
        );
    }
    assert!(ratio_interval(&rates()[..3], Confidence::PERCENT_95).is_ok());
}

#[test]
fn a_value_without_a_logarithm_is_named() {
    let mut pairs = rates();
    pairs[2].reference = Some(-5.0);
    let expected = BadPair::NoLogarithm {
        block: 2,
        value: -5.0,
    };
    assert_eq!(log_differences(&pairs), Err(expected));
    assert_eq!(
        ratio_interval(&pairs, Confidence::PERCENT_95),
        Err(NoInterval::BadPair(expected))
    );
    assert!(point_differences(&pairs).is_ok());
    pairs[2].reference = Some(f64::NAN);
    assert!(log_differences(&pairs).is_err() && point_differences(&pairs).is_err());
}

#[test]
fn a_failed_trial_is_infinitely_far_and_a_missing_one_is_left_out() {
    let pair = |setting, reference| Pair { setting, reference };
    let pairs = [
        pair(Some(0.0), Some(2.0)),
        pair(Some(2.0), Some(0.0)),
        pair(Some(0.0), Some(0.0)),
        pair(Some(f64::INFINITY), Some(2.0)),
        pair(Some(f64::INFINITY), Some(f64::INFINITY)),
        pair(None, Some(2.0)),
        pair(Some(2.0), None),
    ];
    let expected = [f64::NEG_INFINITY, f64::INFINITY, 0.0, f64::INFINITY, 0.0];
    assert_eq!(log_differences(&pairs).unwrap(), expected);
    assert_eq!(
        point_differences(&pairs),
        Err(BadPair::NotFinite {
            block: 3,
            value: f64::INFINITY
        })
    );
    assert_eq!(point_differences(&pairs[5..]), Ok(vec![]));
}

#[test]
fn what_cannot_be_represented_is_refused() {
    let wide = pairs(&[(1e300, 1e-300), (1.0, 1.0), (1e-300, 1e300)]);
    let found = ratio_interval(&wide, Confidence::PERCENT_95);
    assert_eq!(found, Err(NoInterval::OutOfRange));

    // The first ratio's inverse would be infinite, the second's would lose digits.
    for pair in [Pair::measured(1e-160, 1e155), Pair::measured(1e308, 1.0)] {
        let found = ratio_interval(&[pair; 3], Confidence::PERCENT_95);
        assert_eq!(found, Err(NoInterval::OutOfRange));
    }

    let wide = pairs(&[(1e308, -1e308), (1.0, 1.0), (2.0, 1.0)]);
    let found = points_interval(&wide, Confidence::PERCENT_95);
    assert_eq!(found, Err(NoInterval::OutOfRange));

    let great = [f64::MAX, f64::MAX, f64::MAX.next_down()];
    assert_eq!(
        mean_interval(&great, Confidence::PERCENT_95),
        Err(NoInterval::OutOfRange)
    );

    let found = mean_interval(&[0.1, f64::NAN, 0.2], Confidence::PERCENT_95);
    assert_eq!(found, Err(NoInterval::OutOfRange));
}

#[test]
fn reasons_read_as_sentences() {
    let reason = NoInterval::TooFewBlocks {
        blocks: 2,
        least: BLOCKS_MIN,
    };
    assert_eq!(
        reason.to_string(),
        "an interval takes 3 blocks, and there are 2"
    );
    let reason = NoInterval::BadPair(BadPair::NoLogarithm {
        block: 1,
        value: -1.0,
    });
    assert_eq!(
        reason.to_string(),
        "pair 1 holds -1, which has no logarithm"
    );
}

#[test]
fn turning_an_interval_swaps_its_ends() {
    let interval = Interval {
        estimate: 2.0,
        low: 1.0,
        high: 4.0,
        confidence: Confidence::PERCENT_95,
        blocks: 5,
    };
    let inverted = interval.inverted();
    assert_eq!(
        (inverted.low, inverted.estimate, inverted.high),
        (0.25, 0.5, 1.0)
    );
    let negated = interval.negated();
    assert_eq!(
        (negated.low, negated.estimate, negated.high),
        (-4.0, -2.0, -1.0)
    );
}

#[test]
fn the_p_value_of_a_mean_is_students() {
    // With two degrees of freedom P(|T| > t) is 1 - t / sqrt(2 + t^2); here t^2 is 12.
    let p = mean_p(&[1.0, 2.0, 3.0]).unwrap();
    assert!((p - (1.0 - (12.0_f64 / 14.0).sqrt())).abs() < 1e-12, "{p}");
    assert_eq!(mean_p(&[1.0]), None);
    // Without scatter any difference is certain, and none is none.
    assert_eq!(student_p(0.1, 0.0, 3), 0.0);
    assert_eq!(student_p(0.0, 0.0, 3), 1.0);
}
