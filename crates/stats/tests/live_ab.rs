//! Checks that a live comparison's interval contains the true difference as often as it says, over many simulated
//! runs with a load that nobody controls.
//!
//! A run is simulated step by step: a packet rate that drifts and jumps, CPU time per packet under the current
//! setting, and part of that time later than its packets. Seeds are fixed. docs/method-evidence.md has the table that
//! they print.

use std::collections::VecDeque;

use nicpoll_model::Verdict;
use nicpoll_model::ab::{
    AbBlock, AbCores, AbCpu, AbDelay, AbDelayKind, AbEndCause, AbPair, AbPlan, AbWindow,
};
use nicpoll_stats::ab::{
    BLOCK_SECONDS, Draw, DrawnPair, LEFT_OUT_SECONDS_MIN, MARGIN, PAIRS_MIN, answer,
};
use nicpoll_stats::order::{Pcg64, Seed};
use nicpoll_stats::{Confidence, mean_interval, signed_rank_interval};
use rand_core::Rng;

const RUNS: u32 = 1_000;
const RUN_SECONDS: f64 = 600.0;
/// Length of a step of the simulation.
const STEP_SECONDS: f64 = 0.2;
/// Busy cores under the reference: without packets, and for each packet a second.
const BASE_CORES: f64 = 0.05;
const PACKET_CORES: f64 = 10e-6;
/// Busy cores for each packet a second under the judged setting: 10 % less.
const JUDGED_PACKET_CORES: f64 = 9e-6;
/// Mean rate, before a world changes it.
const RATE: f64 = 20_000.0;
/// Scatter of a step's CPU time.
const CPU_SCATTER: f64 = 0.1;

/// How load and CPU time behave in a run.
#[derive(Clone, Copy, Debug, Default)]
struct World {
    name: &'static str,
    /// Whether both settings cost the same per packet.
    is_null: bool,
    /// A share of the run, and the factor on the rate from there on.
    jump: Option<(f64, f64)>,
    /// Standard deviation of the rate's logarithm, with a time constant of 3 s.
    wander: f64,
    /// The judged setting's factor on the rate.
    raise: f64,
    /// Share of the CPU time that comes later than its packets, and its greatest delay in steps.
    postponed: (f64, usize),
    /// Cores that other work takes in the first half of every 4 s.
    periodic_cores: f64,
}

const CALM: World = World {
    name: "a steady load, no effect",
    is_null: true,
    jump: None,
    wander: 0.0,
    raise: 1.0,
    postponed: (0.0, 0),
    periodic_cores: 0.0,
};

const EFFECT: World = World {
    is_null: false,
    ..CALM
};

/// Twice the rate from half way on.
const DOUBLES: Option<(f64, f64)> = Some((0.5, 2.0));

/// A draw with mean 0 and deviation 1 that is nearly normal: the sum of four uniform ones, all from one draw of the
/// generator.
fn normal(generator: &mut Pcg64) -> f64 {
    let draw = generator.next_u64();
    let sum: u64 = (0..4).map(|lane| draw >> (16 * lane) & 0xffff).sum();
    (sum as f64 / 65_536.0 - 2.0) * 3f64.sqrt()
}

/// The machine of a run, step by step.
struct Machine<'a> {
    world: World,
    generator: &'a mut Pcg64,
    elapsed: f64,
    /// The current wander of the rate's logarithm.
    log_rate: f64,
    /// CPU time of the steps to come that belongs to packets of earlier ones.
    postponed: VecDeque<f64>,
}

impl Machine<'_> {
    /// Returns packets and CPU seconds of the next step under a setting.
    fn step(&mut self, is_judged: bool) -> (f64, f64) {
        let world = self.world;
        let keeps = (-STEP_SECONDS / 3.0f64).exp();
        let fresh = world.wander * (1.0 - keeps * keeps).sqrt();
        if world.wander > 0.0 {
            self.log_rate = keeps * self.log_rate + fresh * normal(self.generator);
        }
        let mut rate = RATE * self.log_rate.exp();
        if let Some((share, factor)) = world.jump
            && self.elapsed >= share * RUN_SECONDS
        {
            rate *= factor;
        }
        if is_judged {
            rate *= world.raise;
        }
        let expected = rate * STEP_SECONDS;
        let packets = (expected + expected.sqrt() * normal(self.generator))
            .max(0.0)
            .round();
        let price = if is_judged && !world.is_null {
            JUDGED_PACKET_CORES
        } else {
            PACKET_CORES
        };
        let work = BASE_CORES * STEP_SECONDS + price * packets;
        let work = work * (1.0 + CPU_SCATTER * normal(self.generator));
        let (share, steps) = if is_judged { world.postponed } else { (0.0, 0) };
        self.postponed.resize(world.postponed.1 + 1, 0.0);
        self.postponed[0] += work * (1.0 - share);
        for later in 1..=steps {
            self.postponed[later] += work * share / steps as f64;
        }
        let mut busy = self.postponed.pop_front().unwrap_or(0.0);
        if self.elapsed % 4.0 < 2.0 {
            busy += world.periodic_cores * STEP_SECONDS;
        }
        self.elapsed += STEP_SECONDS;
        (packets, busy)
    }

    /// Simulates a block, with `left_out_seconds` left out at its beginning.
    fn block(&mut self, seconds: f64, is_judged: bool, left_out_seconds: f64) -> AbBlock {
        let steps = (seconds / STEP_SECONDS).round() as usize;
        let left_out = (left_out_seconds / STEP_SECONDS).round() as usize;
        let all: Vec<(f64, f64)> = (0..steps).map(|_| self.step(is_judged)).collect();
        AbBlock {
            start_seconds: self.elapsed - seconds,
            duration_seconds: seconds,
            left_out_seconds,
            window: window(&all[left_out..]),
            later_window: all
                .get(2 * left_out..)
                .filter(|it| it.len() > 4)
                .map(window),
            ..AbBlock::default()
        }
    }
}

fn window(steps: &[(f64, f64)]) -> AbWindow {
    let packets = steps.iter().map(|step| step.0).sum::<f64>() as u64;
    AbWindow {
        seconds: steps.len() as f64 * STEP_SECONDS,
        rx_packets: packets,
        rx_bytes: packets * 1_000,
        cpu: Some(AbCpu {
            softirq_seconds: steps.iter().map(|step| step.1).sum(),
            ..AbCpu::default()
        }),
        ..AbWindow::default()
    }
}

fn plan(seed: u64, left_out_seconds: f64) -> AbPlan {
    AbPlan {
        is_null: false,
        seed,
        duration_seconds: RUN_SECONDS,
        duty_seconds: None,
        block_seconds: BLOCK_SECONDS,
        left_out_seconds,
        settling_seconds: None,
        pairs_min: PAIRS_MIN,
        confidence_ratio: 0.95,
        margin_ratio: MARGIN,
    }
}

/// Simulates the pairs of a run in a given order.
fn pairs(
    world: World,
    drawn: impl Iterator<Item = DrawnPair>,
    left_out_seconds: f64,
    generator: &mut Pcg64,
) -> Vec<AbPair> {
    let mut machine = Machine {
        log_rate: world.wander * normal(generator),
        world,
        generator,
        elapsed: 0.0,
        postponed: VecDeque::new(),
    };
    let mut pairs = Vec::new();
    for pair in drawn {
        if machine.elapsed + pair.seconds() > RUN_SECONDS {
            break;
        }
        let [one, other] = pair.block_seconds;
        let first = machine.block(one, pair.is_judged_first, left_out_seconds);
        let second = machine.block(other, !pair.is_judged_first, left_out_seconds);
        let (judged, reference) = match pair.is_judged_first {
            true => (first, second),
            false => (second, first),
        };
        pairs.push(AbPair {
            is_judged_first: pair.is_judged_first,
            reference,
            judged,
            set_aside_because: None,
        });
    }
    pairs
}

/// Returns the true difference at equal load, at the pairs' mean load.
fn truth(world: World, pairs: &[AbPair]) -> f64 {
    if world.is_null {
        return 0.0;
    }
    let load = |pair: &AbPair| {
        let (judged, reference) = (&pair.judged.window, &pair.reference.window);
        f64::midpoint(judged.packets_per_second(), reference.packets_per_second())
    };
    let mean = pairs.iter().map(load).sum::<f64>() / pairs.len() as f64;
    (JUDGED_PACKET_CORES - PACKET_CORES) * mean
}

fn differences(pairs: &[AbPair]) -> Vec<f64> {
    let cores = |block: &AbBlock| block.window.busy_cores().unwrap();
    pairs
        .iter()
        .map(|pair| cores(&pair.judged) - cores(&pair.reference))
        .collect()
}

/// Shares of a world's runs in which something holds, and the mean length of the interval at equal load.
#[derive(Debug, Default)]
struct Shares {
    /// The interval at equal load contains the truth.
    equal_load: f64,
    /// Student's interval of the plain differences does.
    paired_t: f64,
    /// The signed ranks' interval of the plain differences does.
    ranks: f64,
    /// The interval of the load's ratio contains its truth.
    load: f64,
    /// Carry-over is found.
    carried: f64,
    /// The verdict says that CPU time is saved.
    saves: f64,
    /// The verdict says that it costs.
    costs: f64,
    /// Length of the interval at equal load.
    width_cores: f64,
}

fn run_world(world: World, left_out_seconds: f64, seed: u64) -> Shares {
    let mut generator = Seed(seed).generator();
    let mut shares = Shares::default();
    let one = 1.0 / f64::from(RUNS);
    let count = |share: &mut f64, holds: bool| *share += if holds { one } else { 0.0 };
    for run in 0..RUNS {
        let plan = plan(u64::from(run) + 1, left_out_seconds);
        let pairs = pairs(world, Draw::new(&plan), left_out_seconds, &mut generator);
        let truth = truth(world, &pairs);
        let holds = |low: f64, high: f64| low <= truth && truth <= high;
        let said = answer(&pairs, &plan, Some(AbEndCause::Planned));
        let cpu = said.cpu.unwrap();
        let AbCores {
            cores_low,
            cores_high,
            ..
        } = cpu.equal_load;
        count(&mut shares.equal_load, holds(cores_low, cores_high));
        shares.width_cores += one * (cores_high - cores_low);
        let differences = differences(&pairs);
        let mean = mean_interval(&differences, Confidence::PERCENT_95).unwrap();
        count(&mut shares.paired_t, holds(mean.low, mean.high));
        let ranks = signed_rank_interval(&differences, Confidence::PERCENT_95).unwrap();
        count(&mut shares.ranks, holds(ranks.low, ranks.high));
        let load = said.load.unwrap().packets.unwrap();
        let ends = load.ratio_low.unwrap()..=load.ratio_high.unwrap();
        count(&mut shares.load, ends.contains(&world.raise));
        let carried = cpu.carry_over.is_some_and(|it| it.is_found);
        count(&mut shares.carried, carried);
        let word = said.verdict.map(Verdict::without_weight);
        count(&mut shares.saves, word == Some(Verdict::Better));
        count(&mut shares.costs, word == Some(Verdict::Worse));
    }
    println!(
        "{}, {left_out_seconds} s left out: {shares:.4?}",
        world.name
    );
    shares
}

/// Checks what holds in every world of the table.
fn holds_as_often_as_it_says(world: World, seed: u64) -> Shares {
    let shares = run_world(world, LEFT_OUT_SECONDS_MIN, seed);
    for covered in [shares.equal_load, shares.load] {
        assert!((0.92..=0.98).contains(&covered), "{world:?} {shares:?}");
    }
    assert!(shares.carried < 0.03, "{world:?} {shares:?}");
    shares
}

#[test]
fn without_an_effect_there_is_no_verdict_for_one() {
    let steady = holds_as_often_as_it_says(CALM, 0);
    assert!(steady.saves + steady.costs < 0.06, "{steady:?}");
    let wild = World {
        name: "no effect, autocorrelated (3 s) and doubling",
        jump: DOUBLES,
        wander: 0.4,
        ..CALM
    };
    let wild = holds_as_often_as_it_says(wild, 1);
    // Here the load cannot be shown to be equal, and three figures must agree.
    assert!(wild.saves + wild.costs < 0.01, "{wild:?}");
}

#[test]
fn a_load_that_doubles_half_way() {
    let world = World {
        name: "doubles half way",
        jump: DOUBLES,
        ..EFFECT
    };
    let shares = holds_as_often_as_it_says(world, 2);
    assert!(shares.saves > 0.9, "{shares:?}");
}

#[test]
fn an_autocorrelated_load() {
    let world = World {
        name: "autocorrelated (3 s)",
        wander: 0.4,
        ..EFFECT
    };
    let shares = holds_as_often_as_it_says(world, 3);
    assert!(shares.costs == 0.0, "{shares:?}");
}

#[test]
fn an_autocorrelated_load_that_doubles() {
    let world = World {
        name: "autocorrelated and doubling",
        wander: 0.4,
        jump: DOUBLES,
        ..EFFECT
    };
    holds_as_often_as_it_says(world, 4);
}

#[test]
fn a_jump_in_the_last_fifth() {
    let world = World {
        name: "x 4 in the last fifth",
        wander: 0.4,
        jump: Some((0.8, 4.0)),
        ..EFFECT
    };
    let shares = holds_as_often_as_it_says(world, 5);
    // Ranks take the typical block's difference, which is not the mean load's.
    assert!(shares.ranks < 0.92, "{shares:?}");
}

#[test]
fn a_setting_that_raises_the_load() {
    let world = World {
        name: "polling raises the load by 15 %",
        wander: 0.4,
        raise: 1.15,
        ..EFFECT
    };
    let shares = holds_as_often_as_it_says(world, 6);
    // The plain differences answer another question: they include the load's rise.
    assert!(shares.paired_t < 0.2 && shares.ranks < 0.2, "{shares:?}");
    // CPU time saved for each packet is not CPU time saved while the load is higher.
    assert!(shares.saves < 0.02, "{shares:?}");
}

#[test]
fn work_postponed_within_what_is_left_out() {
    let world = World {
        name: "10 % of the work up to 0.4 s later under polling",
        wander: 0.4,
        postponed: (0.1, 2),
        ..EFFECT
    };
    holds_as_often_as_it_says(world, 7);
}

#[test]
fn work_postponed_beyond_what_is_left_out_is_found() {
    let world = World {
        name: "10 % of the work up to 1 s later under polling",
        wander: 0.4,
        postponed: (0.1, 5),
        ..EFFECT
    };
    let shares = run_world(world, LEFT_OUT_SECONDS_MIN, 8);
    assert!(shares.equal_load < 0.6, "{shares:?}");
    assert!(shares.carried > 0.95, "{shares:?}");
    // With enough left out the answer is right again.
    let shares = run_world(world, 1.0, 8);
    assert!((0.92..=0.98).contains(&shares.equal_load), "{shares:?}");
    assert!(shares.carried < 0.06, "{shares:?}");
}

/// Work every 4 s that has nothing to do with the setting.
const PERIODIC: World = World {
    name: "something with a period of 4 s",
    is_null: true,
    periodic_cores: 0.1,
    ..CALM
};

/// Returns how often the interval at equal load contains the truth, no difference, with blocks of 2 s in an order.
fn covered_in_order(order: impl Fn(&mut Pcg64) -> bool) -> f64 {
    let mut generator = Seed(9).generator();
    let mut coins = Seed(10).generator();
    let runs = 200;
    let covered = (0..runs)
        .filter(|_| {
            let drawn = (0..150).map(|_| DrawnPair {
                is_judged_first: order(&mut coins),
                block_seconds: [2.0, 2.0],
            });
            let pairs = pairs(PERIODIC, drawn, LEFT_OUT_SECONDS_MIN, &mut generator);
            let said = answer(&pairs, &plan(1, LEFT_OUT_SECONDS_MIN), None);
            let cores = said.cpu.unwrap().equal_load;
            cores.cores_low <= 0.0 && 0.0 <= cores.cores_high
        })
        .count();
    f64::from(u32::try_from(covered).unwrap()) / f64::from(runs)
}

#[test]
fn a_fixed_order_is_deceived_by_a_period_and_a_coin_is_not() {
    let fixed = covered_in_order(|_| true);
    assert_eq!(fixed, 0.0);
    let coin = covered_in_order(|coins| coins.next_u64() >> 63 == 1);
    assert!((0.9..=0.99).contains(&coin), "{coin}");
}

#[test]
fn delays_at_equal_load_hold_their_ratio() {
    let runs = 500;
    let mut generator = Seed(11).generator();
    let world = World {
        wander: 0.4,
        ..EFFECT
    };
    let covered = (0..runs)
        .filter(|run| {
            let left_out = LEFT_OUT_SECONDS_MIN;
            let plan = plan(*run + 1, left_out);
            let mut pairs = pairs(world, Draw::new(&plan), left_out, &mut generator);
            for pair in &mut pairs {
                // A delay grows with the root of the load; one block in ten stalls.
                let mut delay = |block: &mut AbBlock, factor: f64| {
                    let stalls = normal(&mut generator) > 1.28;
                    let noise =
                        (0.1 * normal(&mut generator)).exp() * if stalls { 5.0 } else { 1.0 };
                    let p50_ns = factor * noise * block.window.packets_per_second().sqrt();
                    block.delays.push(AbDelay {
                        kind: AbDelayKind::UdpStackToRead,
                        samples: 1_000,
                        p50_ns,
                        p99_ns: Some(4.0 * p50_ns),
                        stamps: None,
                    });
                };
                delay(&mut pair.judged, 1.2);
                delay(&mut pair.reference, 1.0);
            }
            let said = answer(&pairs, &plan, None).delays;
            let ratio = said[0].ratio.unwrap();
            ratio.ratio_low.unwrap() <= 1.2 && 1.2 <= ratio.ratio_high.unwrap()
        })
        .count();
    let covered = covered as f64 / runs as f64;
    assert!((0.92..=0.98).contains(&covered), "{covered}");
}
