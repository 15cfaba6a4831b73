//! Properties of every set of pairs.

use nicpoll_model::{Metric, Verdict};
use nicpoll_stats::order::{Seed, shuffle};
use nicpoll_stats::{
    Confidence, Contrast, Interval, Margin, Pair, Proofs, Summary, compare, hodges_lehmann,
    mean_interval, points_interval, ratio_interval, signed_rank_interval, verdict,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Pairs of rates, times or latencies, even far apart.
fn pairs() -> impl Strategy<Value = Vec<Pair>> {
    let value = || (-7.0f64..23.0).prop_map(f64::exp);
    let pair =
        (value(), value()).prop_map(|(setting, reference)| Pair::measured(setting, reference));
    vec(pair, 3..12)
}

/// Any pairs, invalid ones included.
fn wild_pairs() -> impl Strategy<Value = Vec<Pair>> {
    let value = || proptest::option::weighted(0.9, any::<f64>());
    let pair = (value(), value()).prop_map(|(setting, reference)| Pair { setting, reference });
    vec(pair, 0..14)
}

fn differences(n: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    vec(-1.0f64..1.0, n)
}

fn confidence() -> impl Strategy<Value = Confidence> {
    (0.5f64..0.9999).prop_map(|level| Confidence::new(level).unwrap())
}

fn mapped(pairs: &[Pair], change: impl Fn(f64, f64) -> (f64, f64)) -> Vec<Pair> {
    pairs
        .iter()
        .map(|pair| change(pair.setting.unwrap(), pair.reference.unwrap()))
        .map(|(setting, reference)| Pair::measured(setting, reference))
        .collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// Whether two intervals of ratios agree, up to rounding of the logs.
fn agree(a: &Interval, b: &Interval) -> bool {
    close(a.low, b.low) && close(a.estimate, b.estimate) && close(a.high, b.high)
}

/// Returns the place of a verdict between worst and best; equivalent and not proven are both in the middle.
fn rank(word: Verdict) -> i32 {
    match word {
        Verdict::WorseAndItMatters => -2,
        Verdict::Worse => -1,
        Verdict::Equivalent
        | Verdict::NoDifferenceProven
        | Verdict::DependsOnWhatCounts
        | Verdict::Inconclusive => 0,
        Verdict::Better => 1,
        Verdict::BetterAndItMatters => 2,
    }
}

fn of_ratio(low: f64, high: f64) -> Interval {
    Interval {
        estimate: (low * high).sqrt(),
        low,
        high,
        confidence: Confidence::PERCENT_95,
        blocks: 5,
    }
}

proptest! {
    #[test]
    fn swapping_the_settings_inverts_the_ratio(pairs in pairs(), confidence in confidence()) {
        let swapped = mapped(&pairs, |setting, reference| (reference, setting));
        // Wide scatter and a high confidence may leave the range, but then in both directions.
        match (ratio_interval(&pairs, confidence), ratio_interval(&swapped, confidence)) {
            (Ok(one), Ok(other)) => prop_assert!(agree(&one.inverted(), &other)),
            (one, other) => prop_assert!(one.is_err() && other.is_err()),
        }
    }

    #[test]
    fn swapping_the_settings_negates_the_points(pairs in pairs(), confidence in confidence()) {
        let swapped = mapped(&pairs, |setting, reference| (reference, setting));
        let one = points_interval(&pairs, confidence).unwrap();
        let other = points_interval(&swapped, confidence).unwrap();
        prop_assert_eq!(one.negated(), other);
    }

    #[test]
    fn the_unit_of_a_ratio_does_not_matter(pairs in pairs(), unit in 1e-9f64..1e9) {
        let scaled = mapped(&pairs, |setting, reference| (setting * unit, reference * unit));
        let one = ratio_interval(&pairs, Confidence::PERCENT_95);
        let other = ratio_interval(&scaled, Confidence::PERCENT_95);
        match (one, other) {
            (Ok(one), Ok(other)) => prop_assert!(agree(&one, &other)),
            (one, other) => prop_assert!(one.is_err() && other.is_err()),
        }
    }

    #[test]
    fn a_faster_setting_moves_the_interval_by_as_much(pairs in pairs(), factor in 0.1f64..10.0) {
        let faster = mapped(&pairs, |setting, reference| (setting * factor, reference));
        let one = ratio_interval(&pairs, Confidence::PERCENT_95);
        let other = ratio_interval(&faster, Confidence::PERCENT_95);
        if let (Ok(one), Ok(other)) = (one, other) {
            prop_assert!(close(one.low * factor, other.low));
            prop_assert!(close(one.high * factor, other.high));
        }
    }

    #[test]
    fn an_interval_holds_its_estimate(differences in differences(3..20), confidence in confidence()) {
        let interval = mean_interval(&differences, confidence).unwrap();
        prop_assert!(interval.low <= interval.estimate && interval.estimate <= interval.high);
        let (least, greatest) = Summary::of(&differences).map(|it| (it.min, it.max)).unwrap();
        prop_assert!(least - 1e-12 <= interval.estimate && interval.estimate <= greatest + 1e-12);
        let ratios = interval.exponentiated().unwrap();
        prop_assert!(ratios.low <= ratios.estimate && ratios.estimate <= ratios.high);
    }

    #[test]
    fn more_confidence_never_narrows(differences in differences(3..20), a in confidence(), b in confidence()) {
        let (less, more) = if a < b { (a, b) } else { (b, a) };
        let inner = mean_interval(&differences, less).unwrap();
        let outer = mean_interval(&differences, more).unwrap();
        prop_assert!(outer.low <= inner.low && inner.high <= outer.high);
    }

    #[test]
    fn a_better_interval_never_has_a_worse_word(
        low in 0.8f64..1.25, width in 1.0f64..1.2, shift in 1.0f64..1.2,
    ) {
        let margin = Margin::ratio(1.05).unwrap();
        let word = verdict(Some(&of_ratio(low, low * width)), &margin);
        let shifted = verdict(Some(&of_ratio(low * shift, low * width * shift)), &margin);
        prop_assert!(rank(word) <= rank(shifted), "{:?} then {:?}", word, shifted);
    }

    #[test]
    fn a_narrower_interval_never_takes_a_word_back(
        low in 0.8f64..1.25, width in 1.0f64..1.3, from in 0.0f64..0.5, to in 0.5f64..1.0,
    ) {
        let margin = Margin::ratio(1.05).unwrap();
        let word = verdict(Some(&of_ratio(low, low * width)), &margin);
        let inner = of_ratio(low * width.powf(from), (low * width.powf(to)).min(low * width));
        let narrower = verdict(Some(&inner), &margin);
        prop_assert!(rank(word) * rank(narrower) >= 0);
        // An interval within the margin is equivalent, on whichever side of no difference.
        let is_same = narrower == Verdict::Equivalent && rank(word).abs() < 2;
        prop_assert!(is_same || rank(word).abs() <= rank(narrower).abs());
        prop_assert!(word != Verdict::Equivalent || is_same);
    }

    #[test]
    fn the_other_setting_gets_the_opposite_word(low in 0.8f64..1.25, width in 1.0f64..1.3) {
        let margin = Margin::ratio(1.05).unwrap();
        let interval = of_ratio(low, low * width);
        let word = verdict(Some(&interval), &margin);
        let opposite = verdict(Some(&interval.inverted()), &margin);
        prop_assert_eq!(rank(word), -rank(opposite));
    }

    #[test]
    fn ranks_know_only_the_order_of_what_is_far_out(differences in differences(9..20), failed in 0usize..4) {
        // A failure has the same effect as any difference far enough out.
        let mut failing = differences.clone();
        let mut far = differences;
        for index in 0..failed {
            failing[2 * index] = f64::NEG_INFINITY;
            far[2 * index] = -1e9;
        }
        let one = signed_rank_interval(&failing, Confidence::PERCENT_95).unwrap();
        let other = signed_rank_interval(&far, Confidence::PERCENT_95).unwrap();
        let alike = |one: f64, other: f64| {
            one == other || (one == f64::NEG_INFINITY && other < -1e8)
        };
        prop_assert!(alike(one.low, other.low) && alike(one.high, other.high));
        prop_assert!(alike(one.estimate, other.estimate));
    }

    #[test]
    fn turning_the_differences_turns_the_rank_interval(differences in differences(9..20)) {
        let turned: Vec<f64> = differences.iter().map(|it| -it).collect();
        let one = signed_rank_interval(&differences, Confidence::for_family(8)).unwrap();
        let other = signed_rank_interval(&turned, Confidence::for_family(8)).unwrap();
        prop_assert_eq!(one.negated(), other);
        prop_assert_eq!(Some(one.estimate), hodges_lehmann(&differences));
        prop_assert!(one.low <= one.estimate && one.estimate <= one.high);
    }

    #[test]
    fn nonsense_gives_nulls_and_never_nan(
        pairs in wild_pairs(), points in any::<bool>(), primary in any::<bool>(),
        blocks_planned in 0usize..14, chances in any::<Option<[u64; 2]>>(),
    ) {
        let (metric, margin) = if points { (Metric::LossRatio, 0.01) } else { (Metric::JitterSeconds, 1.05) };
        let proven: Vec<bool> = (0..pairs.len()).map(|block| block % 3 > 0).collect();
        let comparison = compare(&Contrast {
            workload: "rr",
            metric,
            setting: "polling",
            reference: "default",
            pairs: &pairs,
            blocks_planned,
            primary_margin: primary.then_some(margin),
            confidence: Confidence::for_family(12),
            seed: Seed(5),
            proofs: Some(Proofs { is_proven: &proven, setting: [9, 8], reference: [9, 9] }),
            chances,
        }).unwrap();
        let figures = [
            comparison.ratio, comparison.ratio_low, comparison.ratio_high,
            comparison.share_difference, comparison.share_difference_low,
            comparison.share_difference_high, comparison.paired_t.low, comparison.paired_t.high,
            comparison.trimmed_t.low, comparison.trimmed_t.high, comparison.lag_one_p,
            comparison.found_nine_in_ten_ratio,
        ];
        prop_assert!(figures.iter().flatten().all(|figure| figure.is_finite()), "{:?}", comparison);
        prop_assert_eq!(comparison.verdict.is_some(), primary);
    }

    #[test]
    fn a_shuffle_keeps_every_item(items in vec(any::<u8>(), 0..40), seed in any::<u64>()) {
        let mut shuffled = items.clone();
        shuffle(&mut shuffled, &mut Seed(seed).generator());
        let sorted = |mut items: Vec<u8>| { items.sort_unstable(); items };
        prop_assert_eq!(sorted(shuffled), sorted(items));
    }

    #[test]
    fn a_summary_brackets_its_values(values in vec(-1e9f64..1e9, 1..30)) {
        let summary = Summary::of(&values).unwrap();
        prop_assert_eq!(summary.n, values.len());
        prop_assert!(values.iter().all(|value| (summary.min..=summary.max).contains(value)));
        let below = values.iter().filter(|&&value| value < summary.median).count();
        let above = values.iter().filter(|&&value| value > summary.median).count();
        prop_assert!(2 * below <= values.len() && 2 * above <= values.len());
    }
}
