use super::*;

/// Returns the p value by trying every way to divide the values.
fn by_enumeration(one: &[f64], other: &[f64]) -> f64 {
    let all = [one, other].concat();
    let statistic = |is_one: &dyn Fn(usize) -> bool| {
        let mut wins = 0;
        for i in (0..all.len()).filter(|i| is_one(*i)) {
            for j in (0..all.len()).filter(|j| !is_one(*j)) {
                wins += 2 * i64::from(all[i] > all[j]) + i64::from(all[i] == all[j]);
            }
        }
        wins
    };
    let seen = statistic(&|index| index < one.len());
    let (mut below, mut above, mut total) = (0.0, 0.0, 0.0);
    for mask in 0u32..1 << all.len() {
        if mask.count_ones() as usize != one.len() {
            continue;
        }
        let wins = statistic(&|index| mask >> index & 1 == 1);
        total += 1.0;
        below += f64::from(u8::from(wins <= seen));
        above += f64::from(u8::from(wins >= seen));
    }
    (2.0 * f64::min(below, above) / total).min(1.0)
}

#[test]
fn p_is_that_of_every_division_of_the_values() {
    let cases: [(&[f64], &[f64]); 7] = [
        (&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]),
        (&[1.0, 4.0, 6.0, 7.0], &[2.0, 3.0, 5.0]),
        (&[1.0, 1.0, 2.0, 3.0], &[1.0, 3.0, 3.0, 4.0, 5.0]),
        (&[2.0, 2.0], &[2.0, 2.0, 2.0]),
        (&[1.0], &[0.0, 2.0, 3.0, 3.0, 9.0]),
        (&[f64::INFINITY, 5.0, 5.0], &[1.0, 2.0, f64::NEG_INFINITY]),
        (
            &[7.0, 8.0, 9.0, 9.0, 9.5, 9.5],
            &[1.0, 2.0, 9.0, 9.5, 3.0, 3.0],
        ),
    ];
    for (one, other) in cases {
        for (one, other) in [(one, other), (other, one)] {
            let (p, expected) = (
                mann_whitney_p(one, other).unwrap(),
                by_enumeration(one, other),
            );
            assert!(
                (p - expected).abs() < 1e-12,
                "{one:?} {other:?}: {p} {expected}"
            );
        }
    }
}

#[test]
fn the_normal_tail_takes_over_without_a_step() {
    let mut generator = crate::order::Seed(4).generator();
    for (levels, sizes) in [(1_000, [50, 50]), (6, [40, 60]), (1_000, [10, 90])] {
        for shift in [0.0, 0.2, 0.4] {
            let mut draw = |count: usize, shift: f64| -> Vec<f64> {
                let mut one = || crate::order::index_up_to(levels, &mut generator) as f64;
                (0..count)
                    .map(|_| (one() + shift * levels as f64).round())
                    .collect()
            };
            let (one, other) = (draw(sizes[0], shift), draw(sizes[1], 0.0));
            let all = [&one[..], &other[..]].concat();
            let ranks = doubled_ranks(&all);
            let seen: u64 = ranks[..one.len()].iter().sum();
            let exact = exact_tail(&ranks, one.len(), seen);
            let normal = normal_tail(&all, one.len(), seen as f64);
            assert!(
                (exact - normal).abs() < exact / 16.0 + 1e-4,
                "{exact} {normal}"
            );
        }
    }
}

#[test]
fn the_normal_tail_has_the_mean_and_variance_of_every_division() {
    let all = [1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0, 5.0, 5.0];
    let chosen = 4;
    let ranks = doubled_ranks(&all);
    let divisions = (0u32..1 << all.len()).filter(|mask| mask.count_ones() as usize == chosen);
    let sums: Vec<f64> = divisions
        .map(|mask| {
            (0..all.len())
                .filter(|i| mask >> i & 1 == 1)
                .map(|i| ranks[i] as f64)
                .sum()
        })
        .collect();
    let mean = sums.iter().sum::<f64>() / sums.len() as f64;
    let variance = sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / sums.len() as f64;
    for seen in [mean - 13.0, mean + 1.0, mean + 6.0] {
        // Half a rank is one of doubled ranks.
        let beyond = ((seen - mean).abs() - 1.0) / variance.sqrt();
        let expected = Normal::standard().cdf(-beyond);
        let found = normal_tail(&all, chosen, seen);
        assert!(
            (found - expected).abs() < 1e-12,
            "{seen}: {found} {expected}"
        );
    }
    assert_eq!(normal_tail(&[2.0; 9], 4, 40.0), 1.0);
}

#[test]
fn an_interval_leaves_out_what_the_test_rejects() {
    // The interval excludes a shift exactly when the test of the shifted values rejects it.
    let one = [10.2, 11.5, 9.8, 12.1, 13.3, 10.9];
    let other = [8.1, 9.4, 7.7, 10.5, 9.9];
    let interval = shift_interval(&one, &other, Confidence::PERCENT_95).unwrap();
    assert!(interval.low < interval.estimate && interval.estimate < interval.high);
    let p = |shift: f64| mann_whitney_p(&one, &other.map(|it| it + shift)).unwrap();
    for (end, outwards) in [(interval.low, -1e-9), (interval.high, 1e-9)] {
        assert!(p(end + outwards) <= 0.05, "{end} {}", p(end + outwards));
        assert!(p(end - outwards) > 0.05, "{end} {}", p(end - outwards));
    }
}

#[test]
fn published_critical_values() {
    // Mann and Whitney's table, two-sided 5 %: the greatest U that is rejected.
    for (sizes, critical) in [
        ([4, 4], 0),
        ([5, 5], 2),
        ([5, 8], 6),
        ([8, 8], 13),
        ([10, 10], 23),
        ([20, 20], 127),
    ] {
        assert_eq!(shift_left_out(sizes, 0.025), Some(critical), "{sizes:?}");
    }
    assert_eq!(shift_left_out([3, 3], 0.025), None);
    // One division of twenty is 5 % exactly.
    assert_eq!(shift_left_out([3, 3], 0.05), Some(0));
    assert!(!shift_reaches([3, 3], Confidence::PERCENT_95));
    assert!(shift_reaches([3, 5], Confidence::PERCENT_95));
    assert!(!shift_reaches([0, 9], Confidence::PERCENT_95));
    assert!(!shift_reaches([0, 150], Confidence::PERCENT_95));
    assert!(!shift_reaches([150, 0], Confidence::PERCENT_95));
}

#[test]
fn many_values_leave_out_rather_less_than_counting_would() {
    // The results of counting, and of the normal approximation, both from another program.
    for (sizes, tail, counted, left) in [
        ([70, 70], 0.025, 1979, 1978),
        ([70, 70], 0.0025, 1779, 1775),
        ([60, 80], 0.025, 1934, 1933),
        ([40, 61], 0.025, 937, 936),
        ([40, 61], 0.0025, 818, 814),
        ([5, 100], 0.025, 120, 118),
    ] {
        assert_eq!(shift_left_out(sizes, tail), Some(left), "{sizes:?} {tail}");
        assert!(left <= counted);
    }
    // The most values that are enumerated.
    assert_eq!(shift_left_out([50, 50], 0.025), Some(965));
}

#[test]
fn a_shift_is_the_median_of_all_differences() {
    let one = [1.0, 2.0, 4.0, 8.0, 9.5];
    for other in [&[0.0, 3.0, 10.0, 20.0][..], &[0.0, 3.0, 10.0, 20.0, 27.0]] {
        let pairs = one
            .iter()
            .flat_map(|one| other.iter().map(move |other| one - other));
        let mut differences: Vec<f64> = pairs.collect();
        differences.sort_by(f64::total_cmp);
        let last = differences.len() - 1;
        let middle = f64::midpoint(differences[last / 2], differences[last.div_ceil(2)]);
        let left = shift_left_out([one.len(), other.len()], 0.025).unwrap();
        let interval = shift_interval(&one, other, Confidence::PERCENT_95).unwrap();
        assert_eq!(interval.estimate, middle);
        assert_eq!(
            (interval.low, interval.high),
            (differences[left], differences[last - left])
        );
        assert_eq!(interval.blocks, one.len() + other.len());
    }
}

#[test]
fn a_failed_run_has_a_rank() {
    // One of ten failed: the interval still has both ends.
    let mut one: Vec<f64> = (0..10).map(f64::from).collect();
    let other: Vec<f64> = (0..10).map(|value| f64::from(value) + 20.0).collect();
    one[3] = f64::NEG_INFINITY;
    let interval = shift_interval(&one, &other, Confidence::PERCENT_95).unwrap();
    assert!(
        interval.low.is_finite() && interval.high < 0.0,
        "{interval:?}"
    );
    assert_eq!(mann_whitney_p(&[f64::NAN], &[1.0]), None);
    assert_eq!(mann_whitney_p(&[], &[1.0]), None);
    // There is no interval without a finite value, or with two values on a side, however many there are on the other.
    let failed = [f64::NEG_INFINITY; 9];
    let nothing = shift_interval(&failed, &failed, Confidence::PERCENT_95);
    assert_eq!(nothing, Err(NoInterval::OutOfRange));
    assert!(!shift_reaches([2, 150], Confidence::PERCENT_95));
    let few = shift_interval(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], Confidence::PERCENT_95);
    assert_eq!(few.unwrap_err(), NoInterval::TooFewValues { sizes: [3, 3] });
}
