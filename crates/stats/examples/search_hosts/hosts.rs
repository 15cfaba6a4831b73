//! Simulated hosts whose highest load is known.

use std::collections::BTreeMap;

use nicpoll_model::{GoalBounds, SearchGoal};
use nicpoll_stats::order::{Pcg64, Seed};
use nicpoll_stats::search::Search;
use rand_core::Rng;

/// Hosts of a kind.
pub const HOSTS: u64 = 200;

/// The lowest load that is tried.
const LOAD_MIN: u64 = 1000;

/// A host with a knee, with noise around it, and with trials that lose less or more than they should: a higher load
/// then seems to be held, and a lower one not.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    pub seed: u64,
    /// The most that it is offered.
    pub line: u64,
    /// What it holds for a second, in the middle of its noise.
    pub knee: f64,
    /// Standard deviation of that over trials of a second, relative.
    pub noise: f64,
    /// Packets that a queue takes besides, relative to a second at the knee.
    pub queue: f64,
    /// Share of trials that hold a twentieth more.
    pub lucky: f64,
    /// Share of trials that lose a hundredth to a twentieth besides.
    pub unlucky: f64,
}

/// Draws a share.
fn share(draws: &mut Pcg64) -> f64 {
    (draws.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

fn one_of<const N: usize>(values: [f64; N], draws: &mut Pcg64) -> f64 {
    values[(share(draws) * N as f64) as usize]
}

impl Host {
    /// Draws a host; a quiet one has neither noise nor odd trials.
    pub fn drawn(seed: u64, is_quiet: bool) -> Host {
        let draws = &mut Seed(seed).generator();
        let noisy = if is_quiet { 0.0 } else { 1.0 };
        let knee = 10_f64.powf(4.0 + 3.0 * share(draws));
        Host {
            seed,
            line: (knee * 10_f64.powf(0.02 + 0.98 * share(draws))) as u64,
            knee,
            noise: noisy * one_of([0.0, 0.001, 0.003, 0.01], draws),
            queue: one_of([0.0, 0.0, 0.02], draws),
            lucky: noisy * one_of([0.0, 0.05], draws),
            unlucky: noisy * one_of([0.0, 0.02, 0.1], draws),
        }
    }

    /// The share that is lost of a load in a trial.
    fn loss(&self, load: u64, seconds: f64, draws: &mut Pcg64) -> f64 {
        // Uniform noise: its distribution is known without tables.
        let noise = self.noise / seconds.sqrt() * 3_f64.sqrt() * (2.0 * share(draws) - 1.0);
        let is_lucky = share(draws) < self.lucky;
        let is_unlucky = share(draws) < self.unlucky;
        let besides = 0.01 + 0.04 * share(draws);
        let luck = if is_lucky { 1.05 } else { 1.0 };
        let held = self.knee * ((1.0 + noise) * luck + self.queue / seconds);
        let loss = (1.0 - held / load as f64).max(0.0);
        if is_unlucky {
            1.0 - (1.0 - loss) * (1.0 - besides)
        } else {
            loss
        }
    }

    /// The probability that a trial of a load loses no more than this share.
    fn good(&self, load: f64, loss_ratio: f64, seconds: f64) -> f64 {
        let reach = self.noise / seconds.sqrt() * 3_f64.sqrt();
        let held = |luck: f64| {
            let needed = load * (1.0 - loss_ratio) / self.knee - self.queue / seconds;
            let needed = needed / luck - 1.0;
            match reach > 0.0 {
                true => ((reach - needed) / (2.0 * reach)).clamp(0.0, 1.0),
                false => f64::from(u8::from(needed <= 0.0)),
            }
        };
        (1.0 - self.unlucky) * ((1.0 - self.lucky) * held(1.0) + self.lucky * held(1.05))
    }

    /// The load at which half of the final trials of a goal are good.
    pub fn truth(&self, goal: &SearchGoal) -> f64 {
        let (mut lower, mut upper) = (0.5 * self.knee, 2.0 * self.knee);
        for _ in 0..60 {
            let between = (lower + upper) / 2.0;
            match self.good(between, goal.loss_ratio, goal.final_trial_seconds) >= 0.5 {
                true => lower = between,
                false => upper = between,
            }
        }
        lower
    }

    /// The probability that the goal's rule is right at both of the loads that are its width apart and have the true
    /// rate between them, wherever that is: no search can hold it more often.
    pub fn certainty(&self, goal: &SearchGoal) -> f64 {
        const PLACES: u32 = 20;
        let truth = self.truth(goal);
        let trials = (goal.duration_sum_seconds / goal.final_trial_seconds).ceil() as u32;
        let allowed = (f64::from(trials) * goal.exceed_ratio) as u32;
        let held = |load: f64| {
            let good = self.good(load, goal.loss_ratio, goal.final_trial_seconds);
            at_most(allowed, trials, 1.0 - good)
        };
        let sum = (0..PLACES).map(|place| {
            let below = (f64::from(place) + 0.5) / f64::from(PLACES) * goal.width_ratio;
            let lower = truth * (1.0 - below);
            held(lower) * (1.0 - held(lower / (1.0 - goal.width_ratio)))
        });
        sum.sum::<f64>() / f64::from(PLACES)
    }
}

/// The probability of at most this many of `trials` events, each with this probability.
fn at_most(most: u32, trials: u32, probability: f64) -> f64 {
    let term = |events: u32| {
        let ways = (1..=events).map(|it| f64::from(trials - events + it) / f64::from(it));
        let ways: f64 = ways.product();
        let others = (1.0 - probability).powi((trials - events) as i32);
        ways * probability.powi(events as i32) * others
    };
    (0..=most).map(term).sum()
}

/// What a search on a host came to.
struct Searched {
    bounds: Vec<GoalBounds>,
    trials: u32,
    seconds: f64,
    /// Whether a trial lost less than one at a lower load.
    is_inverted: bool,
}

/// Searches a host to the end.
fn search(host: &Host, goals: &[SearchGoal]) -> Searched {
    let mut search = Search::new(goals.to_vec(), LOAD_MIN..=host.line);
    let mut draws = Seed(host.seed ^ 0x5eed).generator();
    let (mut trials, mut seconds) = (0, 0.0);
    let mut lost: BTreeMap<u64, [f64; 2]> = BTreeMap::new();
    while let Some(next) = search.next_trial() {
        let loss = host.loss(next.load, next.seconds, &mut draws);
        assert!(search.add(next, next.load as f64, loss));
        let seen = lost.entry(next.load).or_insert([loss; 2]);
        *seen = [seen[0].min(loss), seen[1].max(loss)];
        trials += 1;
        seconds += next.seconds;
        assert!(trials < 2000, "the search does not end: {host:?}");
    }
    let mut greatest = 0.0;
    let is_inverted = lost.values().any(|[least, most]| {
        let is_below = *least < greatest;
        greatest = f64::max(greatest, *most);
        is_below
    });
    Searched {
        bounds: search.bounds(),
        trials,
        seconds,
        is_inverted,
    }
}

/// How far the bounds of a goal are from the true rate, relative: 0 if it is between them.
fn miss(host: &Host, goal: &SearchGoal, bounds: &GoalBounds) -> f64 {
    let truth = host.truth(goal);
    let lower = bounds.lower_per_second.map_or(0.0, |load| load as f64);
    let upper = bounds
        .upper_per_second
        .map_or(f64::INFINITY, |load| load as f64);
    ((lower - truth) / truth)
        .max((truth - upper) / truth)
        .max(0.0)
}

/// The searches of many hosts, summed up.
#[derive(Debug, Default)]
pub struct Totals {
    pub trials: u32,
    pub seconds: f64,
    /// Hosts on which a trial lost less than one at a lower load.
    pub inverted: u32,
    /// For each goal: how often the bounds hold the true rate.
    pub held: Vec<u32>,
    /// For each goal: how often at most, by the goal's rule.
    pub certain: Vec<f64>,
    /// The farthest miss, relative.
    pub miss: f64,
}

/// Searches 200 hosts.
pub fn search_all(goals: &[SearchGoal], is_quiet: bool) -> Totals {
    let mut all = Totals {
        held: vec![0; goals.len()],
        certain: vec![0.0; goals.len()],
        ..Totals::default()
    };
    for seed in 0..HOSTS {
        let host = Host::drawn(seed, is_quiet);
        let searched = search(&host, goals);
        all.trials += searched.trials;
        all.seconds += searched.seconds;
        all.inverted += u32::from(searched.is_inverted);
        for (at, (goal, bounds)) in goals.iter().zip(&searched.bounds).enumerate() {
            let miss = miss(&host, goal, bounds);
            all.held[at] += u32::from(miss == 0.0);
            all.certain[at] += host.certainty(goal);
            all.miss = all.miss.max(miss);
        }
    }
    all
}
