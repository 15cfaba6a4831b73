use super::*;

/// Delivered rates in five blocks: ratios of 1.02 to 1.06.
const RATES: [(f64, f64); 5] = [
    (941e6, 902e6),
    (936e6, 911e6),
    (952e6, 899e6),
    (929e6, 907e6),
    (947e6, 905e6),
];

fn pairs(values: &[(f64, f64)]) -> Vec<Pair> {
    values
        .iter()
        .map(|&(setting, reference)| Pair::measured(setting, reference))
        .collect()
}

fn swapped(values: &[(f64, f64)]) -> Vec<(f64, f64)> {
    values.iter().map(|&(a, b)| (b, a)).collect()
}

fn contrast(metric: Metric, primary_margin: Option<f64>, pairs: &[Pair]) -> Contrast<'_> {
    Contrast {
        workload: "udp64",
        metric,
        setting: "polling",
        reference: "interrupt",
        pairs,
        primary_margin,
        confidence: Confidence::PERCENT_95,
        seed: Seed(1),
    }
}

/// `values` compared as the delivered rate, primary, with a margin of 1.05.
fn rate(values: &[(f64, f64)]) -> Comparison {
    let pairs = pairs(values);
    compare(&contrast(
        Metric::DeliveredBitsPerSecond,
        Some(1.05),
        &pairs,
    ))
    .unwrap()
}

fn close(found: Option<f64>, expected: f64) {
    let found = found.expect("a figure");
    assert!(
        (found - expected).abs() <= 1e-10 * expected.abs(),
        "{found} is not {expected}"
    );
}

#[test]
fn a_primary_rate() {
    let comparison = rate(&RATES);
    assert_eq!(comparison.workload, "udp64");
    assert_eq!(comparison.metric, Metric::DeliveredBitsPerSecond);
    assert_eq!(comparison.kind, MetricKind::Ratio);
    assert_eq!(comparison.setting, "polling");
    assert_eq!(comparison.reference, "interrupt");
    assert!(comparison.primary);
    assert_eq!(comparison.blocks, 5);
    assert_eq!(comparison.confidence, 0.95);
    // scipy 1.17.1: ttest_rel of the logs, exponentiated.
    close(comparison.ratio, 1.0399812950357565);
    close(comparison.ratio_low, 1.022403855381559);
    close(comparison.ratio_high, 1.0578609307186275);
    assert_eq!(comparison.verdict, Some(Verdict::Better));
    assert_eq!(comparison.difference, None);
    assert_eq!(comparison.difference_low, None);
    assert_eq!(comparison.difference_high, None);
    assert_eq!(comparison.sign_flip_p, None);
    assert_eq!(comparison.bca_low, None);
    assert_eq!(comparison.bca_high, None);
    assert_eq!(comparison.blocks_to_resolve_margin, None);
}

#[test]
fn the_confidence_of_the_family_widens_the_interval() {
    let pairs = pairs(&RATES);
    let mut contrast = contrast(Metric::DeliveredBitsPerSecond, Some(1.05), &pairs);
    contrast.confidence = Confidence::for_family(4);
    let comparison = compare(&contrast).unwrap();
    assert_eq!(comparison.confidence, 0.9875);
    // scipy 1.17.1, as above.
    close(comparison.ratio_low, 1.0127937859138172);
    close(comparison.ratio_high, 1.0678986276050115);
}

#[test]
fn less_is_better_for_times() {
    let pairs = pairs(&RATES);
    let comparison = compare(&contrast(Metric::RoundTripP99Ns, Some(1.05), &pairs)).unwrap();
    // The figures stay setting over reference; only the word turns.
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
    close(comparison.difference, 0.015);
    close(comparison.difference_low, -0.005380725188757832);
    close(comparison.difference_high, 0.03538072518875782);
    assert_eq!(comparison.ratio, None);
    assert_eq!(comparison.ratio_low, None);
    assert_eq!(comparison.ratio_high, None);
    assert!(!comparison.primary);
    assert_eq!(comparison.verdict, None);
}

#[test]
fn a_primary_share_has_its_margin_in_points() {
    let lost = pairs(&[(0.05, 0.01), (0.06, 0.01), (0.05, 0.0)]);
    let comparison = compare(&contrast(Metric::LossRatio, Some(0.01), &lost)).unwrap();
    assert_eq!(comparison.verdict, Some(Verdict::WorseAndItMatters));

    let scattered = pairs(&[(0.05, 0.01), (0.0, 0.04), (0.05, 0.05)]);
    let comparison = compare(&contrast(Metric::LossRatio, Some(0.01), &scattered)).unwrap();
    assert_eq!(comparison.verdict, Some(Verdict::NoDifferenceProven));
    // Differences of 0.04, -0.04 and 0: a deviation of 0.04. Found by trying each n with
    // scipy 1.17.1's t.isf(0.025, n - 1) * 0.04 / sqrt(n) <= 0.01.
    assert_eq!(comparison.blocks_to_resolve_margin, Some(64));
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
        assert_eq!(comparison.blocks_to_resolve_margin, None);
    }
    let comparison = rate(&[]);
    assert_eq!(comparison.blocks, 0);
    assert_eq!(comparison.ratio, None);
    assert_eq!(comparison.verdict, Some(Verdict::Inconclusive));
}

#[test]
fn a_block_without_a_value_leaves_nothing_to_say() {
    let mut missing = pairs(&RATES);
    missing[3].setting = None;
    let mut zero = pairs(&RATES);
    zero[0].reference = Some(0.0);
    for pairs in [missing, zero] {
        let comparison = compare(&contrast(
            Metric::DeliveredBitsPerSecond,
            Some(1.05),
            &pairs,
        ))
        .unwrap();
        assert_eq!(comparison.blocks, 5);
        assert_eq!(comparison.ratio, None);
        assert_eq!(comparison.ratio_low, None);
        assert_eq!(comparison.ratio_high, None);
        assert_eq!(comparison.verdict, Some(Verdict::Inconclusive));
    }
}

#[test]
fn what_the_scale_cannot_hold_is_null() {
    let comparison = rate(&[(1e300, 1e-300), (1e300, 1e-300), (1e300, 1e-299)]);
    assert_eq!(comparison.ratio, None);
    assert_eq!(comparison.ratio_high, None);
    assert_eq!(comparison.verdict, Some(Verdict::Inconclusive));
}

#[test]
fn an_open_question_says_how_many_blocks_it_takes() {
    let comparison = rate(&[(1.1, 1.0), (1.0, 1.1), (1.0, 1.0)]);
    assert_eq!(comparison.verdict, Some(Verdict::NoDifferenceProven));
    // Logs of 0.0953, -0.0953 and 0: a deviation of ln(1.1). Found with scipy as above, against
    // ln(1.05).
    assert_eq!(comparison.blocks_to_resolve_margin, Some(18));
    let worse = rate(&swapped(&RATES));
    assert_eq!(worse.verdict, Some(Verdict::Worse));
    assert_eq!(worse.blocks_to_resolve_margin, None);
}

#[test]
fn the_sign_flip_p_stands_beside_from_six_blocks_on() {
    let six = [&RATES[..], &[(950e6, 900e6)]].concat();
    assert_eq!(rate(&six[..5]).sign_flip_p, None);
    assert_eq!(rate(&six).sign_flip_p, Some(2.0 / 64.0));
}

#[test]
fn the_bootstrap_stands_beside_from_ten_blocks_on() {
    let ten = [RATES, RATES].concat();
    assert_eq!(rate(&ten[..9]).bca_low, None);
    let comparison = rate(&ten);
    let (low, high) = (comparison.bca_low.unwrap(), comparison.bca_high.unwrap());
    // scipy 1.17.1: bootstrap of the logs, BCa, 200000 resamples: 1.0324 and 1.0482.
    assert!((low - 1.0324).abs() < 0.001, "{low}");
    assert!((high - 1.0482).abs() < 0.001, "{high}");

    let shares = pairs(&[(0.2, 0.1); 10]);
    let comparison = compare(&contrast(Metric::CpuBusy, None, &shares)).unwrap();
    close(comparison.bca_low, 0.1);
    close(comparison.bca_high, 0.1);
}
