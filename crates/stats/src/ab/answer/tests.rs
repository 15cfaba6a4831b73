use nicpoll_model::ab::{AbBlock, AbCpu, AbDelay, AbDelayKind, AbQuantile};
use rand_core::Rng;

use super::*;
use crate::ab::plan::plan_tests::plan;
use crate::ab::plan::{MARGIN, PAIRS_MIN};
use crate::order::Seed;

fn window(packets: f64, cores: f64) -> AbWindow {
    AbWindow {
        seconds: 4.0,
        rx_packets: (packets * 4.0) as u64,
        rx_bytes: (packets * 4000.0) as u64,
        cpu: Some(AbCpu {
            softirq_seconds: cores * 4.0 + 0.004,
            counting_seconds: 0.004,
            ..AbCpu::default()
        }),
        ..AbWindow::default()
    }
}

fn block(packets: f64, cores: f64) -> AbBlock {
    AbBlock {
        duration_seconds: 4.4,
        left_out_seconds: 0.4,
        window: window(packets, cores),
        later_window: Some(window(packets, cores)),
        delays: vec![AbDelay {
            kind: AbDelayKind::UdpStackToRead,
            samples: 100,
            p50_ns: packets * 2.0,
            p99_ns: Some(packets * 9.0),
            stamps: None,
        }],
        ..AbBlock::default()
    }
}

/// Makes pairs with factors on the judged setting's packets and cores. The scatter, of 1 % either way, is the same
/// each time.
fn pairs(count: u32, load_factor: f64, cores_factor: f64) -> Vec<AbPair> {
    let mut generator = Seed(5).generator();
    let mut scatter = || 1.0 + 0.01 * (f64::from(generator.next_u32()) / 2f64.powi(31) - 1.0);
    (0..count)
        .map(|index| AbPair {
            is_judged_first: index % 2 == 0,
            reference: block(10_000.0 * scatter(), 0.5 * scatter()),
            judged: block(
                10_000.0 * load_factor * scatter(),
                0.5 * cores_factor * scatter(),
            ),
            set_aside_because: None,
        })
        .collect()
}

fn says(pairs: &[AbPair]) -> AbAnswer {
    answer(pairs, &plan(1), Some(AbEndCause::Planned))
}

#[test]
fn less_cpu_time_at_equal_load_is_recommended() {
    let said = says(&pairs(44, 1.0, 0.8));
    assert!(said.load.unwrap().is_equal);
    assert_eq!(said.verdict, Some(Verdict::BetterAndItMatters));
    assert!(said.is_recommended);
    // A setting against itself is never recommended, whatever chance gives.
    let null = AbPlan {
        is_null: true,
        ..plan(1)
    };
    let itself = answer(&pairs(44, 1.0, 0.8), &null, Some(AbEndCause::Planned));
    assert!(!itself.is_recommended && itself.verdict == said.verdict);
    assert_eq!(said.measure, Some(Measure::Cost));
    let cpu = said.cpu.unwrap();
    assert!((cpu.equal_load.cores + 0.1).abs() < 0.01, "{cpu:?}");
    assert!((cpu.ns_per_packet.unwrap()[0] + 10_000.0).abs() < 1_000.0);
    // The cost of counting is subtracted, and shown.
    assert!((cpu.reference_cores - 0.5).abs() < 0.005);
    assert!((cpu.counting_cores_max - 0.001).abs() < 1e-6);
    let mut counted = pairs(44, 1.0, 0.8);
    for pair in &mut counted {
        let cpu = pair.judged.window.cpu.as_mut().unwrap();
        cpu.counting_seconds = 0.012;
    }
    let cpu = says(&counted).cpu.unwrap();
    assert!((cpu.counting_cores_max - 0.003).abs() < 1e-9);
    assert!((cpu.counting_cores_difference - 0.002).abs() < 1e-9);
}

#[test]
fn what_a_packet_adds_and_what_the_settings_differ_in_for_each_are_told_apart() {
    // 50 millicores and 10 us a packet under the reference, 12 us under the judged setting.
    let mut pairs = pairs(44, 1.0, 1.0);
    for (index, pair) in pairs.iter_mut().enumerate() {
        let load = |factor: usize| 10_000.0 + 1_000.0 * (index * factor % 11) as f64;
        pair.reference = block(load(3), 0.05 + 10e-6 * load(3));
        pair.judged = block(load(7), 0.05 + 12e-6 * load(7));
    }
    let cpu = says(&pairs).cpu.unwrap();
    // 12 j - 10 r is 11 (j - r) and 2 (j + r) / 2.
    assert!((cpu.ns_per_added_packet - 11_000.0).abs() < 1e-3, "{cpu:?}");
    assert!((cpu.ns_difference_per_packet - 2_000.0).abs() < 1e-3);
    assert!((cpu.ns_per_packet.unwrap()[0] - 2_000.0).abs() < 1e-3);
}

#[test]
fn a_saving_that_matters_is_a_share_of_what_the_reference_uses() {
    // 8 % of half a core, which is 4 % of a core.
    let said = says(&pairs(44, 1.0, 0.92));
    assert_eq!(said.verdict, Some(Verdict::BetterAndItMatters));
    let said = says(&pairs(44, 1.0, 0.96));
    assert_eq!(said.verdict, Some(Verdict::Equivalent));
    assert!(!said.is_recommended);
    // The end is at 8 %.
    let judge = Judge {
        confidence: Confidence::PERCENT_95,
        margin: MARGIN,
    };
    let cores = AbCores {
        cores: -0.1,
        cores_low: -0.16,
        cores_high: -0.04,
    };
    assert_eq!(judge.of_cores(&cores, 0.5), Verdict::BetterAndItMatters);
}

#[test]
fn a_load_moves_where_its_interval_leaves_out_the_same() {
    let load = |pairs: &[AbPair]| says(pairs).load.unwrap();
    let same = load(&pairs(44, 1.0, 1.0));
    assert!(!same.is_moved);
    assert!((same.reference_bytes_per_second / 1e7 - 1.0).abs() < 0.01);
    assert!(load(&pairs(44, 1.3, 1.0)).is_moved && load(&pairs(44, 0.8, 1.0)).is_moved);
    let mut failing = pairs(44, 1.0, 1.0);
    for pair in &mut failing[..20] {
        pair.judged.window.rx_packets = 0;
    }
    // Blocks that carried nothing have no least ratio.
    assert_eq!(load(&failing).packets.unwrap().ratio_low, None);
    for pair in &mut failing {
        pair.judged = pair.reference.clone();
    }
    assert!(load(&failing).is_equal && !load(&failing).is_moved);
}

#[test]
fn more_cpu_time_and_the_same_are_not() {
    let more = says(&pairs(44, 1.0, 1.2));
    assert_eq!(more.verdict, Some(Verdict::WorseAndItMatters));
    let same = says(&pairs(44, 1.0, 1.0));
    assert_eq!(same.verdict, Some(Verdict::Equivalent));
    assert!(!more.is_recommended && !same.is_recommended);
}

#[test]
fn cpu_time_saved_by_carrying_less_is_not_saved() {
    // TCP under polling: three quarters of the load for less CPU time, but more per byte.
    let said = says(&pairs(44, 0.76, 0.9));
    let load = said.load.unwrap();
    assert!(load.is_moved && !load.is_equal);
    let cpu = said.cpu.unwrap();
    assert!(cpu.total.cores_high < 0.0, "{cpu:?}");
    assert!(cpu.per_byte.unwrap().ratio_low.unwrap() > 1.0, "{cpu:?}");
    assert_eq!(said.verdict, Some(Verdict::NoDifferenceProven));
    assert!(!said.is_recommended);
}

#[test]
fn a_setting_that_carries_less_is_not_recommended_whatever_it_saves() {
    let mut less = pairs(44, 0.8, 0.3);
    // The load also differs within pairs by itself, which shows its cost.
    for (index, pair) in less.iter_mut().enumerate() {
        let more = 1.0 + 0.4 * (index % 3) as f64;
        pair.reference.window.rx_packets = (40_000.0 * more) as u64;
        let busy = 4.0 * 0.5 * more;
        pair.reference.window.cpu = Some(AbCpu {
            softirq_seconds: busy,
            ..AbCpu::default()
        });
        pair.reference.later_window = Some(pair.reference.window);
    }
    let said = says(&less);
    assert_eq!(said.verdict, Some(Verdict::BetterAndItMatters));
    assert!(!said.is_recommended);
}

#[test]
fn a_setting_that_carries_more_for_less_is_recommended() {
    let said = says(&pairs(44, 1.3, 0.5));
    let load = said.load.unwrap();
    assert!(!load.is_equal && load.bytes.unwrap().ratio_low.unwrap() > 1.2);
    assert!(said.is_recommended, "{:?}", said.verdict);
}

#[test]
fn three_figures_that_agree_but_for_their_weight_have_none() {
    // At equal load 5 % are saved, which need not matter; per byte a fifth, which does.
    let mut pairs = pairs(44, 1.2, 0.95);
    for (index, pair) in pairs.iter_mut().enumerate() {
        // A packet costs next to nothing compared with the rest.
        for (block, load, levels) in [
            (&mut pair.reference, 40_000.0, 5),
            (&mut pair.judged, 48_000.0, 3),
        ] {
            let more = 1.0 + 0.05 * (index % levels) as f64;
            block.window.rx_packets = (load * more) as u64;
            block.later_window = Some(block.window);
        }
    }
    let said = says(&pairs);
    let cpu = said.cpu.unwrap();
    assert!(!said.load.unwrap().is_equal);
    assert!(cpu.per_byte.unwrap().ratio_high.unwrap() < 0.85, "{cpu:?}");
    assert_eq!(said.verdict, Some(Verdict::Better), "{cpu:?}");
}

#[test]
fn bytes_have_a_price_by_the_second_and_none_where_none_came() {
    let mut pairs = pairs(44, 1.0, 1.0);
    for pair in &mut pairs {
        // Half as long, and all else for each second the same.
        let window = &mut pair.judged.window;
        window.seconds /= 2.0;
        window.rx_bytes /= 2;
        let cpu = window.cpu.as_mut().unwrap();
        cpu.softirq_seconds /= 2.0;
        cpu.counting_seconds /= 2.0;
    }
    pairs[0].reference.window.rx_bytes = 0;
    let refs: Vec<&AbPair> = pairs.iter().collect();
    let costs = per_byte(&refs);
    assert_eq!(costs.len(), 43);
    assert!(costs.iter().all(|it| it.abs() < 0.05), "{costs:?}");
}

/// Returns the same pairs with later windows that have `more` cores under the judged setting, with `scatter`, and
/// another load.
fn later(pairs: &[AbPair], more: f64, scatter: f64) -> Vec<AbPair> {
    let mut pairs = pairs.to_vec();
    for (index, pair) in pairs.iter_mut().enumerate() {
        let hop = |factor: usize| (index * factor % 11) as f64 / 5.0 - 1.0;
        for (block, factor) in [(&mut pair.reference, 3), (&mut pair.judged, 7)] {
            let mut window = block.window;
            window.rx_packets = (window.rx_packets as f64 * (1.0 + 0.01 * hop(factor))) as u64;
            block.later_window = Some(window);
        }
        let later = pair.judged.later_window.as_mut().unwrap();
        later.cpu.as_mut().unwrap().softirq_seconds += 4.0 * (more + scatter * hop(5));
    }
    pairs
}

#[test]
fn carry_over_is_a_move_by_more_than_a_quarter_of_the_interval_and_than_chance() {
    let found = |pairs: &[AbPair]| says(pairs).cpu.unwrap().carry_over.unwrap();
    let calm = pairs(44, 1.0, 0.8);
    for more in [0.05, -0.05] {
        let moved = later(&calm, more, 0.01);
        let once = says(&moved).cpu.unwrap().equal_load;
        let told = found(&moved);
        let ratio = (told.later.cores - once.cores).abs() / (once.cores_high - once.cores_low);
        assert!((told.moved_ratio - ratio).abs() < 1e-9 && ratio > 1.0);
        assert!(told.is_found, "{told:?}");
    }
    // The same tiny move in every pair is not chance, but too small to count.
    let hair = found(&later(&calm, 1e-4, 1e-7));
    assert!(hair.moved_ratio < 0.25 && !hair.is_found, "{hair:?}");
    // Scatter alone moves the estimate, too, by chance.
    let chance = found(&later(&calm, 0.002, 0.05));
    assert!(chance.moved_ratio > 0.25 && !chance.is_found, "{chance:?}");
    // Half of the pairs are enough, and fewer are not.
    let mut half = later(&calm, 0.0, 0.01);
    for pair in &mut half[..22] {
        pair.judged.later_window = None;
    }
    assert!(says(&half).cpu.unwrap().carry_over.is_some());
    half[22].judged.later_window = None;
    assert!(says(&half).cpu.unwrap().carry_over.is_none());
}

#[test]
fn without_scatter_any_move_is_carry_over_and_none_is_none() {
    let mut pairs = pairs(44, 1.0, 1.0);
    let alike = |cores| {
        move |pair: &mut AbPair| {
            pair.reference = block(10_000.0, 0.5);
            pair.judged = block(10_000.0, 0.25);
            pair.judged.later_window = Some(window(10_000.0, cores));
        }
    };
    let found = |pairs: &[AbPair]| says(pairs).cpu.unwrap().carry_over.unwrap();
    pairs.iter_mut().for_each(alike(0.25));
    assert_eq!(
        (found(&pairs).moved_ratio, found(&pairs).is_found),
        (0.0, false)
    );
    pairs.iter_mut().for_each(alike(0.5));
    assert_eq!(
        (found(&pairs).moved_ratio, found(&pairs).is_found),
        (1.0, true)
    );
}

#[test]
fn what_forbids_a_verdict_is_said() {
    let enough = pairs(44, 1.0, 0.8);
    let reasons = |pairs: &[AbPair], end| {
        let said = answer(pairs, &plan(1), end);
        assert_eq!(said.verdict.is_none(), !said.no_verdict.is_empty());
        assert!(said.no_verdict.is_empty() || !said.is_recommended);
        said.no_verdict
    };
    assert_eq!(reasons(&enough, None), []);
    assert_eq!(reasons(&enough, Some(AbEndCause::Interrupted)), []);
    let drops = Some(AbEndCause::Drops);
    assert_eq!(reasons(&enough, drops), [AbNoVerdict::Aborted]);
    assert_eq!(reasons(&enough[..29], None), [AbNoVerdict::TooFewPairs]);
    assert_eq!(reasons(&[], None), [AbNoVerdict::TooFewPairs]);

    let mut aside = enough.clone();
    for pair in &mut aside[..15] {
        pair.set_aside_because = Some(String::from("the clock was stepped"));
    }
    assert_eq!(reasons(&aside, None), [AbNoVerdict::TooFewPairs]);
    assert_eq!(says(&aside).set_aside_pairs, 15);

    let with = |change: fn(&mut AbPair)| {
        let mut pairs = enough.clone();
        pairs.iter_mut().for_each(change);
        reasons(&pairs, None)
    };
    let uncounted = with(|pair| pair.judged.window.cpu = None);
    assert_eq!(
        uncounted,
        [AbNoVerdict::NoCpuTime, AbNoVerdict::TooFewPairs]
    );
    let idle = with(|pair| {
        for block in [&mut pair.judged, &mut pair.reference] {
            block.window.rx_packets = 0;
            block.later_window = Some(block.window);
        }
    });
    assert_eq!(idle, [AbNoVerdict::NoTraffic]);
    let one_sided = with(|pair| pair.judged.window.rx_packets = 0);
    assert!(!one_sided.contains(&AbNoVerdict::NoTraffic));
    // The judged load determines the pair's load: no fit can separate them.
    let collinear = with(|pair| {
        pair.reference.window.rx_packets = 40_000;
        pair.reference.later_window = Some(pair.reference.window);
    });
    assert_eq!(collinear, [AbNoVerdict::NoFit]);
    assert_eq!(
        reasons(&later(&enough, 0.05, 0.01), None),
        [AbNoVerdict::CarryOver]
    );
    let too_short = with(|pair| pair.judged.later_window = None);
    assert_eq!(too_short, [AbNoVerdict::CarryOver]);
}

#[test]
fn delays_are_compared_at_equal_load() {
    let mut slower = pairs(44, 1.3, 1.0);
    for pair in &mut slower {
        // Twice the reference's median at the same load, and the load adds to it.
        pair.judged.delays[0].p50_ns *= 2.0;
    }
    let said = says(&slower).delays;
    let of = |quantile| *said.iter().find(|it| it.quantile == quantile).unwrap();
    let median = of(AbQuantile::P50);
    assert_eq!(median.pairs, 44);
    assert!((19_800.0..20_200.0).contains(&median.reference_ns));
    assert!((51_000.0..53_000.0).contains(&median.judged_ns));
    assert!(median.judged_ns > median.reference_ns * 2.0);
    assert!(median.ratio.unwrap().ratio_low.unwrap() > 1.5, "{median:?}");
    let rare = of(AbQuantile::P99);
    assert!(rare.ratio.unwrap().ratio < median.ratio.unwrap().ratio / 1.9);
    // No delay takes no time at all.
    slower[0].judged.delays[0].p50_ns = 0.0;
    assert_eq!(says(&slower).delays[0].pairs, 43);
}

#[test]
fn a_longer_run_is_asked_for_by_scatter_alone() {
    let needed = |pairs: &[AbPair]| says(pairs).cpu.unwrap().time_needed.unwrap();
    let noisy = |factor: f64| {
        let mut pairs = pairs(20, 1.0, factor);
        for (index, pair) in pairs.iter_mut().enumerate() {
            let noise = 0.2 * (index * 5 % 7) as f64 - 0.6;
            let cpu = pair.judged.window.cpu.as_mut().unwrap();
            cpu.softirq_seconds += noise;
        }
        pairs
    };
    let (calm, wild) = (needed(&pairs(20, 1.0, 1.0)), needed(&noisy(1.0)));
    assert_eq!(calm.pairs, PAIRS_MIN);
    assert!(wild.pairs > 60, "{wild:?}");
    assert!((wild.seconds / f64::from(wild.pairs) - 8.8).abs() < 1e-9);
    // So many pairs give an interval as narrow as the aim, and fewer do not.
    let cpu = says(&noisy(1.0)).cpu.unwrap();
    let half = (cpu.equal_load.cores_high - cpu.equal_load.cores_low) / 2.0;
    let half_of = |pairs: u32| {
        let quantile = |pairs: usize| student_quantile(pairs - FITTED, Confidence::PERCENT_95);
        half * (20.0 / f64::from(pairs)).sqrt() * quantile(pairs as usize) / quantile(20)
    };
    assert!(half_of(wild.pairs + 1) <= wild.aim_cores && half_of(wild.pairs - 2) > wild.aim_cores);
    // The effect itself does not count, apart from the little that its scatter adds.
    let shifted = needed(&noisy(0.7)).pairs;
    assert!(shifted.abs_diff(wild.pairs) * 10 < wild.pairs, "{shifted}");
}

/// Five pairs of a busy machine scatter so much that it would take billions: that must be found at once.
#[test]
fn a_hopeless_scatter_is_told_at_once() {
    let mut pairs = pairs(5, 1.0, 1.0);
    for (index, pair) in pairs.iter_mut().enumerate() {
        let cpu = pair.judged.window.cpu.as_mut().unwrap();
        cpu.user_seconds += if index % 2 == 0 { 5e9 } else { 0.0 };
        let cpu = pair.reference.window.cpu.as_mut().unwrap();
        cpu.user_seconds += if index % 2 == 0 { 0.0 } else { 5e3 };
    }
    let cpu = answer(&pairs, &plan(1), None).cpu.unwrap();
    assert_eq!(cpu.time_needed, None, "{cpu:?}");
}

#[test]
fn nothing_that_is_used_is_no_aim() {
    let mut idle = pairs(44, 1.0, 1.0);
    for pair in &mut idle {
        (pair.reference, pair.judged) = (block(0.0, 0.0), block(0.0, 0.0));
    }
    let cpu = says(&idle).cpu.unwrap();
    assert_eq!((cpu.time_needed, cpu.ns_per_packet), (None, None));
}

/// Makes blocks of little traffic, in which counting cost more than all that was counted.
fn below_counting(mut pairs: Vec<AbPair>, count: usize) -> Vec<AbPair> {
    for pair in &mut pairs[..count] {
        let window = &mut pair.judged.window;
        window.cpu = Some(AbCpu {
            softirq_seconds: 0.001,
            counting_seconds: 0.004,
            ..AbCpu::default()
        });
        pair.judged.later_window = Some(*window);
    }
    pairs
}

#[test]
fn cpu_time_is_never_below_nothing() {
    let few = pairs(44, 1.0, 0.001);
    let block = below_counting(few.clone(), 1)[0].judged.window;
    assert_eq!(
        (block.cpu.unwrap().busy_seconds(), block.busy_cores()),
        (None, None)
    );
    // All blocks of one setting: they count as 0, and nothing is concluded.
    let said = says(&below_counting(few.clone(), 44));
    let cpu = said.cpu.unwrap();
    assert_eq!((cpu.judged_cores, cpu.pairs_below_counting), (0.0, 44));
    assert!(cpu.reference_cores + cpu.total.cores > -1e-9, "{cpu:?}");
    assert_eq!(said.no_verdict, [AbNoVerdict::BelowCounting]);
    assert_eq!((said.verdict, said.is_recommended), (None, false));
    // One in ten is accepted, and no block is left out for being cheap.
    let said = says(&below_counting(pairs(44, 1.0, 0.8), 4));
    assert_eq!(said.no_verdict, []);
    let cpu = said.cpu.unwrap();
    assert_eq!((cpu.pairs, cpu.pairs_below_counting), (44, 4));
    assert_eq!(says(&below_counting(pairs(40, 1.0, 0.8), 4)).no_verdict, []);
    let said = says(&below_counting(pairs(44, 1.0, 0.8), 5));
    assert_eq!(said.no_verdict, [AbNoVerdict::BelowCounting]);
}
