//! What holds for every set of pairs, however they came about.

use nicpoll_model::{Metric, Verdict};
use nicpoll_stats::order::{Seed, shuffle};
use nicpoll_stats::{
    BLOCKS_MIN, Confidence, Contrast, Interval, Margin, Pair, RESOLVABLE_BLOCKS_MAX, Summary,
    bca_interval, blocks_to_resolve, compare, mean_interval, points_interval, ratio_interval,
    sign_flip_p, verdict,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Pairs as rates, times and latencies may be, far apart included.
fn pairs() -> impl Strategy<Value = Vec<Pair>> {
    let value = || (-7.0f64..23.0).prop_map(f64::exp);
    let pair =
        (value(), value()).prop_map(|(setting, reference)| Pair::measured(setting, reference));
    vec(pair, 3..12)
}

/// Anything that a pair may hold, nonsense included.
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

/// Whether two intervals for ratios agree, up to rounding of the logs.
fn agree(a: &Interval, b: &Interval) -> bool {
    close(a.low, b.low) && close(a.estimate, b.estimate) && close(a.high, b.high)
}

/// Where a verdict stands between worst and best; equivalent and not proven are both in the middle.
fn rank(word: Verdict) -> i32 {
    match word {
        Verdict::WorseAndItMatters => -2,
        Verdict::Worse => -1,
        Verdict::Equivalent | Verdict::NoDifferenceProven | Verdict::Inconclusive => 0,
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
        // Far scatter and a high confidence may leave the range, but then both ways.
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
        prop_assert!(rank(word).abs() <= rank(narrower).abs());
        prop_assert!(word != Verdict::Equivalent || narrower != Verdict::NoDifferenceProven);
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
    fn sign_flips_as_tried_one_by_one(differences in differences(1..11)) {
        let n = differences.len() as u32;
        let seen = differences.iter().sum::<f64>().abs();
        let as_far = (0..2u32.pow(n)).filter(|pattern| {
            let signed = differences.iter().zip(0..).map(|(difference, bit)| {
                if pattern & (1 << bit) == 0 { *difference } else { -difference }
            });
            signed.sum::<f64>().abs() > seen - 1e-9
        });
        let expected = as_far.count() as f64 / 2f64.powi(n as i32);
        prop_assert_eq!(sign_flip_p(&differences), Some(expected));
    }

    #[test]
    fn signs_and_units_leave_the_sign_flip_p(differences in differences(1..11), unit in 1e-6f64..1e6) {
        let turned: Vec<f64> = differences.iter().map(|it| it * -unit).collect();
        prop_assert_eq!(sign_flip_p(&differences), sign_flip_p(&turned));
    }

    #[test]
    fn the_bootstrap_stays_within_the_values(differences in differences(2..15), seed in any::<u64>()) {
        if let Some(interval) = bca_interval(&differences, Confidence::PERCENT_95, Seed(seed), 500) {
            let (least, greatest) = Summary::of(&differences).map(|it| (it.min, it.max)).unwrap();
            prop_assert!(least - 1e-12 <= interval.low && interval.low <= interval.high);
            prop_assert!(interval.high <= greatest + 1e-12);
        }
    }

    #[test]
    fn the_blocks_asked_for_are_the_fewest(differences in differences(3..10), confidence in confidence()) {
        let margin = Margin::points(0.05).unwrap();
        if let Some(blocks) = blocks_to_resolve(&differences, &margin, confidence) {
            prop_assert!((BLOCKS_MIN as u32..=RESOLVABLE_BLOCKS_MAX).contains(&blocks));
            let wider = Margin::points(0.06).unwrap();
            prop_assert!(blocks_to_resolve(&differences, &wider, confidence).unwrap() <= blocks);
        }
    }

    #[test]
    fn nonsense_gives_nulls_and_never_nan(
        pairs in wild_pairs(), points in any::<bool>(), primary in any::<bool>(),
    ) {
        let (metric, margin) = if points { (Metric::LossRatio, 0.01) } else { (Metric::JitterSeconds, 1.05) };
        let comparison = compare(&Contrast {
            workload: "rr",
            metric,
            setting: "polling",
            reference: "default",
            pairs: &pairs,
            primary_margin: primary.then_some(margin),
            confidence: Confidence::for_family(12),
            seed: Seed(5),
        }).unwrap();
        let figures = [
            comparison.ratio, comparison.ratio_low, comparison.ratio_high, comparison.difference,
            comparison.difference_low, comparison.difference_high, comparison.sign_flip_p,
            comparison.bca_low, comparison.bca_high,
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
