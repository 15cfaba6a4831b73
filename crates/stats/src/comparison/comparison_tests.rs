use super::*;
use crate::interval::paired_tests;
use crate::interval::paired_tests::{RATES, pairs};

fn contrast(metric: Metric, primary_margin: Option<f64>, pairs: &[Pair]) -> Contrast<'_> {
    Contrast {
        workload: "udp64",
        metric,
        setting: "polling",
        reference: "interrupt",
        pairs,
        blocks_planned: pairs.len(),
        primary_margin,
        confidence: Confidence::PERCENT_95,
        seed: Seed(1),
        proofs: None,
        chances: None,
    }
}

/// Compares `values` as the delivered rate, primary, with a margin of 1.05.
fn rate(values: &[(f64, f64)]) -> Comparison {
    rate_of(&pairs(values))
}

fn rate_of(pairs: &[Pair]) -> Comparison {
    compare(&contrast(Metric::DeliveredBitsPerSecond, Some(1.05), pairs)).unwrap()
}

fn ratios(comparison: &Comparison) -> [Option<f64>; 3] {
    let Comparison {
        ratio,
        ratio_low,
        ratio_high,
        ..
    } = *comparison;
    [ratio, ratio_low, ratio_high]
}

fn points(comparison: &Comparison) -> [Option<f64>; 3] {
    let (low, high) = (
        comparison.share_difference_low,
        comparison.share_difference_high,
    );
    [comparison.share_difference, low, high]
}

fn close(found: Option<f64>, expected: f64) {
    paired_tests::close(found.expect("a figure"), expected);
}

#[test]
fn a_primary_rate() {
    let comparison = rate(&RATES);
    let words = [
        &comparison.workload,
        &comparison.setting,
        &comparison.reference,
    ];
    assert_eq!(words, ["udp64", "polling", "interrupt"]);
    assert_eq!(comparison.metric, Metric::DeliveredBitsPerSecond);
    assert_eq!(comparison.kind, MetricKind::Ratio);
    assert!(comparison.primary);
    assert_eq!(comparison.blocks, 5);
    assert_eq!(comparison.confidence_ratio, 0.95);
    // scipy 1.17.1: ttest_rel of the logs, exponentiated.
    close(comparison.ratio, 1.0399812950357565);
    close(comparison.ratio_low, 1.022403855381559);
    close(comparison.ratio_high, 1.0578609307186275);
    assert_eq!(comparison.verdict, Some(Verdict::Better));
    assert_eq!(points(&comparison), [None; 3]);
    // Five blocks cannot reach 95 % by ranks.
    assert_eq!(comparison.method, IntervalMethod::PairedT);
    assert_eq!(comparison.paired_t.low, comparison.ratio_low);
    assert_eq!(comparison.missing_blocks, 0);
    assert_eq!(comparison.none_seen_of, None);
    assert_eq!(comparison.sensitivity, None);
}

#[test]
fn the_confidence_of_the_family_widens_the_interval() {
    let pairs = pairs(&RATES);
    let mut contrast = contrast(Metric::DeliveredBitsPerSecond, Some(1.05), &pairs);
    contrast.confidence = Confidence::for_family(4);
    let comparison = compare(&contrast).unwrap();
    assert_eq!(comparison.confidence_ratio, 0.9875);
    // scipy 1.17.1, as above.
    close(comparison.ratio_low, 1.0127937859138172);
    close(comparison.ratio_high, 1.0678986276050115);
}

#[test]
fn less_is_better_for_times() {
    let pairs = pairs(&RATES);
    let comparison = compare(&contrast(Metric::RoundTripP99Ns, Some(1.05), &pairs)).unwrap();
    // The figures stay setting over reference; only the verdict turns.
    close(comparison.ratio, 1.0399812950357565);
    close(comparison.ratio_low, 1.022403855381559);
    assert_eq!(comparison.verdict, Some(Verdict::Worse));

    let halved = [(1.0, 2.0), (1.1, 2.0), (1.0, 2.1)].map(|(a, b)| Pair::measured(a, b));
    let comparison = compare(&contrast(Metric::RoundTripP99Ns, Some(1.05), &halved)).unwrap();
    assert_eq!(comparison.verdict, Some(Verdict::BetterAndItMatters));
}

#[test]
fn shares_are_compared_in_points() {
    let pairs = pairs(&[(0.12, 0.10), (0.10, 0.11), (0.15, 0.12), (0.11, 0.09)]);
    let mut contrast = contrast(Metric::LossRatio, None, &pairs);
    contrast.confidence = Confidence::new(0.9).unwrap();
    let comparison = compare(&contrast).unwrap();
    assert_eq!(comparison.kind, MetricKind::Points);
    // scipy 1.17.1: ttest_rel.
    close(comparison.share_difference, 0.015);
    close(comparison.share_difference_low, -0.005380725188757832);
    close(comparison.share_difference_high, 0.03538072518875782);
    assert_eq!(ratios(&comparison), [None; 3]);
    assert!(!comparison.primary);
    assert_eq!(comparison.verdict, None);
}

#[test]
fn a_primary_share_has_its_margin_in_points() {
    let lost = pairs(&[(0.05, 0.01), (0.06, 0.01), (0.05, 0.0), (0.06, 0.01)]);
    let comparison = compare(&contrast(Metric::LossRatio, Some(0.01), &lost)).unwrap();
    assert_eq!(comparison.verdict, Some(Verdict::WorseAndItMatters));

    let scattered = pairs(&[(0.05, 0.01), (0.0, 0.04), (0.05, 0.05)]);
    let comparison = compare(&contrast(Metric::LossRatio, Some(0.01), &scattered)).unwrap();
    assert_eq!(comparison.verdict, Some(Verdict::NoDifferenceProven));
    // A deviation of 0.04: the normal approximation needs (1.96 + 1.28)^2 x 16 = 168 blocks. Three differences show
    // that only roughly.
    let blocks = comparison.blocks_to_find_margin.unwrap();
    assert!((100..300).contains(&blocks), "{blocks}");
}

#[test]
fn a_margin_of_the_other_kind_is_refused() {
    let pairs = pairs(&RATES);
    assert_eq!(
        compare(&contrast(Metric::LossRatio, Some(1.05), &pairs)),
        Err(InvalidMargin::Points(1.05))
    );
    assert_eq!(
        compare(&contrast(
            Metric::DeliveredBitsPerSecond,
            Some(0.01),
            &pairs
        )),
        Err(InvalidMargin::Ratio(0.01))
    );
}

#[test]
fn below_three_blocks_the_estimate_stands_alone() {
    for blocks in [1, 2] {
        let comparison = rate(&[(2.0, 1.0), (8.0, 1.0)][..blocks]);
        close(comparison.ratio, [2.0, 4.0][blocks - 1]);
        assert_eq!(comparison.blocks, blocks as u32);
        assert_eq!(comparison.ratio_low, None);
        assert_eq!(comparison.ratio_high, None);
        assert_eq!(comparison.verdict, Some(Verdict::Inconclusive));
        assert_eq!(comparison.found_nine_in_ten_ratio, None);
        assert_eq!(comparison.blocks_to_find_margin, None);
    }
    let comparison = rate(&[]);
    assert_eq!(comparison.blocks, 0);
    assert_eq!(comparison.ratio, None);
    assert_eq!(comparison.verdict, Some(Verdict::Inconclusive));
}

#[test]
fn a_block_without_a_meaning_leaves_nothing_to_say() {
    let mut pairs = pairs(&RATES);
    pairs[3].setting = Some(f64::NAN);
    let comparison = rate_of(&pairs);
    assert_eq!(comparison.blocks, 5);
    assert_eq!(ratios(&comparison), [None; 3]);
    assert_eq!(comparison.verdict, Some(Verdict::Inconclusive));
}

#[test]
fn what_the_scale_cannot_hold_is_null() {
    let comparison = rate(&[(1e300, 1e-300), (1e300, 1e-300), (1e300, 1e-299)]);
    assert_eq!(comparison.ratio, None);
    assert_eq!(comparison.ratio_high, None);
    assert_eq!(comparison.verdict, Some(Verdict::Inconclusive));
}

/// Sixteen blocks whose ratios lie around `middle`, with independent neighbours.
fn sixteen(middle: f64) -> Vec<Pair> {
    [
        0.03, -0.05, 0.01, 0.06, -0.02, -0.04, 0.05, 0.0, -0.06, 0.02, 0.04, -0.03, -0.01, 0.07,
        -0.07, 0.015,
    ]
    .map(|noise: f64| Pair::measured(middle * noise.exp(), 1.0))
    .to_vec()
}

fn primary(pairs: &[Pair]) -> Contrast<'_> {
    let mut contrast = contrast(Metric::DeliveredBitsPerSecond, Some(1.05), pairs);
    contrast.confidence = Confidence::for_family(8);
    contrast
}

#[test]
fn ranks_decide_where_the_plan_allows_it() {
    let pairs = sixteen(1.3);
    let comparison = compare(&primary(&pairs)).unwrap();
    assert_eq!(comparison.method, IntervalMethod::HodgesLehmann);
    assert_eq!(comparison.verdict, Some(Verdict::BetterAndItMatters));
    // Student's and the trimmed interval are on the same scale.
    for ends in [comparison.paired_t, comparison.trimmed_t] {
        let (low, high) = (ends.low.unwrap(), ends.high.unwrap());
        assert!(1.2 < low && low < 1.3 && 1.3 < high && high < 1.4);
    }
    // Eight blocks cannot reach the level of eight comparisons.
    let few = compare(&primary(&pairs[..8])).unwrap();
    assert_eq!(few.method, IntervalMethod::PairedT);
    // The plan decides, not its outcome: of nine planned blocks, eight leave no interval.
    let mut planned = primary(&pairs[..8]);
    planned.blocks_planned = 9;
    let cut_short = compare(&planned).unwrap();
    assert_eq!(cut_short.method, IntervalMethod::HodgesLehmann);
    assert_eq!(cut_short.verdict, Some(Verdict::Inconclusive));
}

#[test]
fn a_failed_trial_counts_as_the_worst_and_a_missing_one_not_at_all() {
    let mut pairs = sixteen(1.3);
    pairs[3].setting = Some(0.0);
    let failed = compare(&primary(&pairs)).unwrap();
    assert_eq!((failed.blocks, failed.missing_blocks), (16, 0));
    let whole = compare(&primary(&sixteen(1.3))).unwrap();
    assert!(failed.ratio_low < whole.ratio_low && failed.ratio < whole.ratio);
    assert_eq!(failed.paired_t.low, None);

    pairs[3].setting = None;
    let missing = compare(&primary(&pairs)).unwrap();
    assert_eq!((missing.blocks, missing.missing_blocks), (15, 1));

    // When a quarter fails there is no lower end.
    let mut pairs = sixteen(1.3);
    for pair in &mut pairs[..5] {
        pair.setting = Some(0.0);
    }
    let failing = compare(&primary(&pairs)).unwrap();
    assert_eq!(failing.ratio_low, Some(0.0));
    assert_eq!(failing.verdict, Some(Verdict::NoDifferenceProven));
    // A time has no worst that is finite.
    let times = pairs.iter().map(|pair| match pair.setting {
        Some(0.0) => Pair::measured(f64::INFINITY, 1.0),
        _ => Pair::measured(0.7, 1.0),
    });
    let times: Vec<Pair> = times.collect();
    let slow = compare(&contrast(Metric::RoundTripP50Ns, None, &times)).unwrap();
    assert!(slow.ratio_low.is_some());
    assert_eq!(slow.ratio_high, None);
}

#[test]
fn dependent_blocks_widen_the_interval_and_leave_the_word() {
    let mut pairs = sixteen(0.41);
    // Two states of a setting, each for eight blocks.
    for pair in &mut pairs[8..] {
        pair.setting = pair.setting.map(|rate| rate * 1.2);
    }
    let in_order = compare(&primary(&pairs)).unwrap();
    assert!(in_order.lag_one_p.unwrap() < 0.05 / 8.0);
    assert!(in_order.are_blocks_dependent);
    assert_eq!(in_order.verdict, Some(Verdict::WorseAndItMatters));
    let alternating: Vec<Pair> = (0..16).map(|at| pairs[at / 2 + 8 * (at % 2)]).collect();
    let alternating = compare(&primary(&alternating)).unwrap();
    assert!(!alternating.are_blocks_dependent);
    assert!(in_order.ratio_high > alternating.ratio_high);
    assert!(in_order.ratio_low < alternating.ratio_low);
}

#[test]
fn a_word_that_hangs_on_what_counts_is_not_given() {
    let mut pairs = sixteen(1.3);
    let all = [true; 16];
    let says = |pairs: &[Pair], is_proven: &[bool], proven: u32| {
        let mut contrast = primary(pairs);
        contrast.proofs = Some(Proofs {
            is_proven,
            setting: [16, proven],
            reference: [16, 16],
        });
        compare(&contrast).unwrap()
    };
    let sound = says(&pairs, &all, 16);
    assert_eq!(sound.verdict, Some(Verdict::BetterAndItMatters));
    assert_eq!(sound.sensitivity.unwrap().missing_as_worst, None);

    // One missing pair as the worst leaves the verdict; six do not.
    pairs[5].setting = None;
    let one = says(&pairs, &all, 16);
    assert_eq!(one.verdict, Some(Verdict::BetterAndItMatters));
    pairs[..6].iter_mut().for_each(|pair| pair.setting = None);
    let six = says(&pairs, &all, 16);
    assert_eq!(six.verdict, Some(Verdict::DependsOnWhatCounts));
    let worst = six.sensitivity.unwrap().missing_as_worst.unwrap();
    assert_eq!(
        (worst.blocks, worst.verdict),
        (16, Verdict::NoDifferenceProven)
    );

    // The whole gain is in trials that did not run as asked.
    let mut pairs = sixteen(1.0);
    let mut proven = all;
    for index in [0, 2, 4, 6, 8, 10, 12, 14] {
        pairs[index].setting = pairs[index].setting.map(|rate| 3.0 * rate);
        proven[index] = false;
    }
    for pair in &mut pairs {
        pair.setting = pair.setting.map(|rate| 1.04 * rate);
    }
    let contradicted = says(&pairs, &proven, 15);
    let sensitivity = contradicted.sensitivity.as_ref().unwrap();
    assert_eq!(sensitivity.proven_only.blocks, 8);
    // Eight proven pairs leave no interval at this level, which contradicts nothing.
    assert_ne!(contradicted.verdict, Some(Verdict::DependsOnWhatCounts));
    proven[0] = true;
    let contradicted = says(&pairs, &proven, 15);
    assert_eq!(contradicted.verdict, Some(Verdict::DependsOnWhatCounts));
}

#[test]
fn no_loss_seen_is_not_no_loss() {
    let none = pairs(&[(0.0, 0.0); 16]);
    let mut contrast = contrast(Metric::LossRatio, None, &none);
    contrast.chances = Some([1_000_000, 500_000]);
    let comparison = compare(&contrast).unwrap();
    assert_eq!(comparison.none_seen_of, Some([1_000_000, 500_000]));
    assert_eq!(comparison.share_difference, Some(0.0));
    let (low, high) = (
        comparison.share_difference_low.unwrap(),
        comparison.share_difference_high.unwrap(),
    );
    assert!((low + 3.689 / 500_000.0).abs() < 1e-8, "{low}");
    assert!((high - 3.689 / 1_000_000.0).abs() < 1e-8, "{high}");

    let mut one = none.clone();
    one[4].reference = Some(1e-6);
    contrast.pairs = &one;
    assert_eq!(compare(&contrast).unwrap().none_seen_of, None);
}

#[test]
fn power_follows_from_the_scatter_and_not_from_the_effect() {
    let none = compare(&primary(&sixteen(1.0))).unwrap();
    let great = compare(&primary(&sixteen(3.0))).unwrap();
    let (one, other) = (
        none.found_nine_in_ten_ratio.unwrap(),
        great.found_nine_in_ten_ratio.unwrap(),
    );
    assert!((one - other).abs() < 1e-9, "{one} {other}");
    // A deviation of 0.043 in sixteen blocks at 99.4 %: about (2.7 + 1.3) x 0.043 / 4, and more for a t.
    assert!((1.03..1.08).contains(&one), "{one}");
    assert_eq!(none.blocks_to_find_margin, great.blocks_to_find_margin);
    let secondary = compare(&contrast(Metric::JitterSeconds, None, &sixteen(1.0))).unwrap();
    assert_eq!(secondary.found_nine_in_ten_ratio, None);
}
