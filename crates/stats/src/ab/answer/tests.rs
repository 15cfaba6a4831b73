use nicpoll_model::Drops;
use nicpoll_model::ab::{AbBlock, AbCpu, AbDelay, AbDelayKind, AbQuantile};

use rand_core::Rng;

use super::*;
use crate::ab::{BLOCK_SECONDS, LEFT_OUT_SECONDS_MIN, MARGIN, PAIRS_MIN};
use crate::order::Seed;

fn plan() -> AbPlan {
    AbPlan {
        seed: 1,
        duration_seconds: 600.0,
        duty_seconds: None,
        block_seconds: BLOCK_SECONDS,
        left_out_seconds: LEFT_OUT_SECONDS_MIN,
        settling_seconds: None,
        pairs_min: PAIRS_MIN,
        confidence: 0.95,
        margin: MARGIN,
    }
}

fn window(packets: f64, cores: f64) -> AbWindow {
    AbWindow {
        seconds: 4.0,
        rx_packets: (packets * 4.0) as u64,
        tx_packets: 0,
        rx_bytes: (packets * 4000.0) as u64,
        tx_bytes: 0,
        cpu: Some(AbCpu {
            softirq_seconds: cores * 4.0 + 0.004,
            counting_seconds: 0.004,
            ..AbCpu::default()
        }),
    }
}

fn block(packets: f64, cores: f64) -> AbBlock {
    AbBlock {
        start_seconds: 0.0,
        duration_seconds: 4.4,
        left_out_seconds: 0.4,
        window: window(packets, cores),
        later_window: Some(window(packets, cores)),
        interrupts: None,
        receive_softirqs: None,
        polls: None,
        polled_packets: None,
        dropped_packets: Drops::default(),
        context_switches: None,
        retransmitted_segments: None,
        delays: vec![AbDelay {
            kind: AbDelayKind::UdpStackToRead,
            samples: 100,
            p50_ns: packets * 2.0,
            p99_ns: Some(packets * 9.0),
            stamps: None,
        }],
        queues: Vec::new(),
    }
}

/// Pairs with factors for the judged setting's packets and cores. The scatter, of 1 % either way, is the same each
/// time.
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
    answer(pairs, &plan(), Some(AbEndCause::Planned))
}

#[test]
fn less_cpu_time_at_equal_load_is_recommended() {
    let said = says(&pairs(44, 1.0, 0.8));
    assert!(said.load.unwrap().is_equal);
    assert_eq!(said.verdict, Some(Verdict::BetterAndItMatters));
    assert!(said.is_recommended);
    let cpu = said.cpu.unwrap();
    assert!((cpu.equal_load.cores + 0.1).abs() < 0.01, "{cpu:?}");
    assert!((cpu.ns_per_packet.unwrap()[0] + 10_000.0).abs() < 1_000.0);
    // What counting cost is subtracted, and shown.
    assert!((cpu.reference_cores - 0.5).abs() < 0.005);
    assert!((cpu.counting_cores_max - 0.001).abs() < 1e-6);
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
    // TCP under polling: three quarters of the load for less CPU time, but more for each byte.
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
    // The load differs within pairs by itself, too, so that its price is known.
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
    assert_eq!(
        said.verdict.map(Verdict::without_weight),
        Some(Verdict::Better)
    );
    assert!(!said.is_recommended);
}

#[test]
fn what_forbids_a_verdict_is_said() {
    let enough = pairs(44, 1.0, 0.8);
    let reasons = |pairs: &[AbPair], end| {
        let said = answer(pairs, &plan(), end);
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
    let carried = with(|pair| pair.judged.later_window = Some(window(10_000.0, 0.45)));
    assert_eq!(carried, [AbNoVerdict::CarryOver]);
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
    assert!(median.judged_ns > median.reference_ns * 2.0);
    assert!(median.ratio.unwrap().ratio_low.unwrap() > 1.5, "{median:?}");
    let rare = of(AbQuantile::P99);
    assert!(rare.ratio.unwrap().ratio < median.ratio.unwrap().ratio / 1.9);
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
    // The effect itself does not count, but for a hair that its scatter adds.
    let shifted = needed(&noisy(0.7)).pairs;
    assert!(shifted.abs_diff(wild.pairs) * 10 < wild.pairs, "{shifted}");
}

/// Five pairs of a busy machine scatter so much that it would take billions: that must be found at once.
#[test]
fn a_hopeless_scatter_is_told_at_once() {
    let mut pairs = pairs(5, 1.0, 1.0);
    for (index, pair) in pairs.iter_mut().enumerate() {
        let cpu = pair.judged.window.cpu.as_mut().unwrap();
        cpu.user_seconds += if index % 2 == 0 { 5e3 } else { -5e3 };
    }
    let cpu = answer(&pairs, &plan(), None).cpu.unwrap();
    assert!(
        cpu.time_needed
            .is_none_or(|needed| needed.pairs > 1_000_000)
    );
}

/// Blocks of little traffic, in which counting cost more than all that was counted.
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
    // All blocks of one setting: the least that they can have used is nothing, and nothing is concluded.
    let said = says(&below_counting(few.clone(), 44));
    let cpu = said.cpu.unwrap();
    assert_eq!((cpu.judged_cores, cpu.pairs_below_counting), (0.0, 44));
    assert!(cpu.reference_cores + cpu.total.cores > -1e-9, "{cpu:?}");
    assert_eq!(said.no_verdict, [AbNoVerdict::BelowCounting]);
    assert_eq!((said.verdict, said.is_recommended), (None, false));
    // One in ten is borne, and no block is left out for being cheap.
    let said = says(&below_counting(pairs(44, 1.0, 0.8), 4));
    assert_eq!(said.no_verdict, []);
    let cpu = said.cpu.unwrap();
    assert_eq!((cpu.pairs, cpu.pairs_below_counting), (44, 4));
    let said = says(&below_counting(pairs(44, 1.0, 0.8), 5));
    assert_eq!(said.no_verdict, [AbNoVerdict::BelowCounting]);
}
