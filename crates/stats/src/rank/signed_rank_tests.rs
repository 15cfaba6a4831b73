use super::*;

fn confidence(level: f64) -> Confidence {
    Confidence::new(level).unwrap()
}

#[test]
fn blocks_that_a_family_takes() {
    for (comparisons, blocks) in [(1, 6), (2, 7), (4, 8), (8, 9), (16, 10)] {
        let found = signed_rank_blocks_min(Confidence::for_family(comparisons));
        assert_eq!(found, blocks, "{comparisons} comparisons");
    }
}

#[test]
fn tabled_critical_values() {
    // Hollander and Wolfe, "Nonparametric Statistical Methods", table A.4: the greatest sum with a
    // tail of at most 2.5 % is 0, 2, 3, 5, 8 for 6 to 10, 52 for 20 and 264 for 40 pairs.
    for (n, sum) in [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (20, 52), (40, 264)] {
        assert_eq!(left_out(n, 0.025), sum, "{n} pairs");
    }
}

#[test]
fn every_sign_pattern_by_hand() {
    // The interval misses the effect in as many of the 2^n patterns as the distribution says.
    let sizes = [0.3, 0.7, 1.1, 1.9, 2.3, 3.1, 4.7];
    let patterns = 1u32 << sizes.len();
    let level = confidence(0.95);
    let missed = (0..patterns)
        .filter(|pattern| {
            let signed: Vec<f64> = sizes
                .iter()
                .enumerate()
                .map(|(bit, size)| {
                    if pattern >> bit & 1 == 0 {
                        *size
                    } else {
                        -size
                    }
                })
                .collect();
            let interval = signed_rank_interval(&signed, level).unwrap();
            interval.low > 0.0 || interval.high < 0.0
        })
        .count();
    // Rank sums of 0, 1 and 2, one pattern each, on either side.
    assert_eq!(missed, 6);
}

#[test]
fn darwins_maize() {
    // Fisher 1935, section 21, eighths of an inch. The ends are the 26th means from either side: with
    // 15 pairs the critical value is 25. scipy 1.17: wilcoxon of the differences less 3.99 gives p = 0.048, less
    // 4.01 p = 0.064.
    let darwin = [
        49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0, -48.0,
    ];
    let interval = signed_rank_interval(&darwin, Confidence::PERCENT_95).unwrap();
    assert_eq!(
        (interval.low, interval.estimate, interval.high),
        (4.0, 25.0, 41.5)
    );
}

#[test]
fn the_normal_tail_meets_the_exact_one() {
    for tail in [0.025, 0.025 / 8.0] {
        let exact = left_out(EXACT_MAX, tail) as f64;
        let normal = left_out_by_normal(EXACT_MAX, tail) as f64;
        assert!((exact - normal).abs() / exact < 0.005, "{exact} {normal}");
    }
}

#[test]
fn p_values_are_exact_up_to_a_number_of_pairs_and_normal_beyond() {
    use statrs::distribution::{ContinuousCDF, Normal};
    let exact = |n, sum| -> f64 { rank_sum_probabilities(n).into_iter().take(sum + 1).sum() };
    let sum = left_out(EXACT_MAX, 0.025);
    assert_eq!(tail_at(EXACT_MAX, sum), exact(EXACT_MAX, sum));
    // 201 pairs: the mean of the sums, and their variance.
    let (mean, variance) = (201.0 * 202.0 / 4.0, 201.0 * 202.0 * 403.0 / 24.0_f64);
    let normal = Normal::standard().cdf((sum as f64 + 1.0 - mean) / variance.sqrt());
    let found = tail_at(EXACT_MAX + 1, sum);
    assert!((found - normal).abs() < 1e-15, "{found} {normal}");
    let exact = exact(EXACT_MAX + 1, sum);
    assert!((found - exact).abs() / exact < 0.01, "{found} {exact}");
}

#[test]
fn critical_values_are_exact_up_to_a_number_of_pairs_and_normal_beyond() {
    let by_sums = |n| {
        let mut below = 0.0;
        let sums = rank_sum_probabilities(n).into_iter();
        let fits = |probability| {
            below += probability;
            below <= 0.025
        };
        sums.map(fits).take_while(|it| *it).count() - 1
    };
    assert_eq!(left_out(EXACT_MAX, 0.025), by_sums(EXACT_MAX));
    assert_ne!(
        left_out(EXACT_MAX, 0.025),
        left_out_by_normal(EXACT_MAX, 0.025)
    );
    // 10150.5 - 1.959964 x 825.697 - 1, where the exact one is a little larger.
    assert_eq!(left_out(EXACT_MAX + 1, 0.025), 8531);
    assert_ne!(by_sums(EXACT_MAX + 1), 8531);
    // A tail that is reached exactly is not passed: three of the 128 signs of seven ranks add up to 2 at most.
    assert_eq!(left_out(7, 3.0 / 128.0), 2);
}

#[test]
fn the_estimate_is_the_median_of_odd_and_even_numbers_of_means() {
    // Of two differences there are three means, of three six: -1, -0.5, 0, 1.5, 2, 4.
    assert_eq!(hodges_lehmann(&[0.0, 1.0]), Some(0.5));
    assert_eq!(hodges_lehmann(&[-1.0, 0.0, 4.0]), Some(0.75));
}

#[test]
fn what_has_no_interval() {
    let few = signed_rank_interval(&[1.0; 5], Confidence::PERCENT_95);
    assert_eq!(
        few,
        Err(NoInterval::TooFewBlocks {
            blocks: 5,
            least: 6
        })
    );
    let wild = [1.0, 2.0, f64::NAN, 3.0, 4.0, 5.0, 6.0];
    let found = signed_rank_interval(&wild, Confidence::PERCENT_95);
    assert_eq!(found, Err(NoInterval::OutOfRange));
    assert_eq!(hodges_lehmann(&[]), None);
    assert_eq!(hodges_lehmann(&[f64::INFINITY, f64::NEG_INFINITY]), None);
}

#[test]
fn equal_differences_have_no_width() {
    let interval = signed_rank_interval(&[0.1; 9], Confidence::PERCENT_95).unwrap();
    assert_eq!(
        (interval.low, interval.estimate, interval.high),
        (0.1, 0.1, 0.1)
    );
}

/// Makes failed differences numbers so large that no mean of them with another is near the rest.
fn huge(differences: &[f64]) -> Vec<f64> {
    let finite = |it: &f64| it.clamp(-1e12, 1e12);
    differences.iter().map(finite).collect()
}

#[test]
fn a_failed_trial_has_the_worst_rank_whatever_its_size() {
    // Two of nine failed under the judged setting: as if they had been slower than anything.
    let failing = [
        0.3,
        0.1,
        f64::NEG_INFINITY,
        0.2,
        0.15,
        f64::NEG_INFINITY,
        0.25,
        0.12,
        0.22,
    ];
    let level = Confidence::PERCENT_95;
    let found = signed_rank_interval(&failing, level).unwrap();
    let as_huge = signed_rank_interval(&huge(&failing), level).unwrap();
    assert_eq!(found.estimate, as_huge.estimate);
    assert_eq!(found.high, as_huge.high);
    assert_eq!(found.low, f64::NEG_INFINITY);
    assert!(as_huge.low < -1e11);
}

#[test]
fn one_failure_of_sixteen_leaves_both_ends() {
    let mut differences: Vec<f64> = (0..16).map(|it| 0.2 + 0.01 * f64::from(it)).collect();
    let level = Confidence::for_family(8);
    let before = signed_rank_interval(&differences, level).unwrap();
    differences[7] = f64::NEG_INFINITY;
    let after = signed_rank_interval(&differences, level).unwrap();
    assert!(after.low.is_finite() && after.high.is_finite());
    assert!(after.low < before.low && after.estimate < before.estimate);
}

#[test]
fn opposite_failures_widen_both_ends_and_move_no_estimate() {
    let mut differences = vec![0.1; 9];
    differences[0] = f64::INFINITY;
    differences[1] = f64::NEG_INFINITY;
    let interval = signed_rank_interval(&differences, Confidence::for_family(8)).unwrap();
    assert_eq!(interval.estimate, 0.1);
    assert_eq!(interval.low, f64::NEG_INFINITY);
    assert_eq!(interval.high, f64::INFINITY);
}

#[test]
fn when_most_failed_the_estimate_has_no_size() {
    let mut differences = vec![f64::NEG_INFINITY; 9];
    differences[0] = 0.1;
    let interval = signed_rank_interval(&differences, Confidence::PERCENT_95).unwrap();
    assert_eq!(interval.estimate, f64::NEG_INFINITY);
    assert_eq!(interval.high, f64::NEG_INFINITY);
}

#[test]
fn p_is_dual_to_the_interval() {
    // scipy 1.17: wilcoxon of these, exact, gives 0.03125 and 0.1094.
    let all_but_one = [0.3, 0.7, 1.1, 1.9, 2.3, 3.1, -0.1];
    assert!((signed_rank_p(&all_but_one).unwrap() - 0.031_25).abs() < 1e-12);
    let few = [0.3, 0.7, 1.1, -1.9, 2.3, 3.1, 4.7];
    assert!((signed_rank_p(&few).unwrap() - 0.109_375).abs() < 1e-12);
    for shift in -40..=40 {
        let shifted: Vec<f64> = few.iter().map(|it| it + 0.1 * f64::from(shift)).collect();
        let interval = signed_rank_interval(&shifted, confidence(0.95)).unwrap();
        let leaves_out = interval.low > 0.0 || interval.high < 0.0;
        assert_eq!(
            signed_rank_p(&shifted).unwrap() <= 0.05,
            leaves_out,
            "{shift}"
        );
    }
    assert_eq!(signed_rank_p(&[0.0; 9]), Some(1.0));
    assert_eq!(signed_rank_p(&[]), None);
}
