//! Simulated hosts on which the best setting is known, and what a race and its final comparison choose there.

use std::ops::Range;

use nicpoll_model::sim::SimFigures;
use nicpoll_model::tune::TuneDropped;
use nicpoll_model::{Metric, Verdict};
use nicpoll_sim::{
    EmbeddedHost, HostModel, PathHost, ReceiveDiscipline, Simulation, TrafficModel, simulate,
};
use nicpoll_stats::order::{Pcg64, Seed};
use nicpoll_stats::search::race::{Race, RaceBudget, RaceRule, RaceTrial};
use nicpoll_stats::{Confidence, Contrast, Pair, compare};
use rand_core::Rng;

/// What a host is tuned for: as much as arrives above the knee, the others without a loss below it.
pub const GOALS: [Metric; 3] = [
    Metric::CpuNsPerPacket,
    Metric::OneWayDelayP50Ns,
    Metric::DeliveredBitsPerSecond,
];

/// The reference, then what is raced with it.
const CANDIDATES: [&str; 18] = [
    "napi",
    "napi:card.moderation_ns=0",
    "napi:card.moderation_ns=20us",
    "napi:card.moderation_ns=100us",
    "napi-timer:defer=2147483647:timeout=20us",
    "napi-timer:defer=2147483647:timeout=50us",
    "napi-timer:defer=2147483647:timeout=100us",
    "napi-timer:defer=2147483647:timeout=200us",
    "napi-timer:defer=2147483647:timeout=500us",
    "napi-timer:defer=2147483647:timeout=1ms",
    "napi-timer:defer=2:timeout=20us",
    "napi-timer:defer=2:timeout=100us",
    "busy-poll",
    "freebsd-interrupt",
    "freebsd-polling:cpu.hz=1000",
    "freebsd-polling:cpu.hz=2000",
    "freebsd-polling:cpu.hz=4000",
    "freebsd-polling:cpu.hz=4000:controller=share",
];

/// Closer to the best than this is as good.
const MARGIN: f64 = 1.05;

/// Most candidates that are compared with the reference, as `nicpoll tune` has it.
const FINALS_MAX: usize = 3;

/// Blocks of the grid, as `nicpoll tune` has them if trials scatter little.
const GRID_BLOCKS: usize = 16;

/// Standard deviations of logs: of a trial, and of what all trials of a block have in common.
const TRIAL_NOISE: f64 = 0.03;
const BLOCK_NOISE: f64 = 0.10;

/// The clock's 150 ticks in which FreeBSD's burst climbs to its limit.
const WARMUP_NS: u64 = 150_000_000;
/// A trial is at least this long, and has this many packets.
const TRIAL_NS_MIN: u64 = 100_000_000;
const TRIAL_PACKETS_MIN: u64 = 2000;
/// How often as long as a trial the truth is.
const TRUTH_TRIALS: u64 = 10;

/// Draws a share.
fn share(draws: &mut Pcg64) -> f64 {
    (draws.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

fn one_of<T: Copy>(values: &[T], draws: &mut Pcg64) -> T {
    values[(share(draws) * values.len() as f64) as usize]
}

/// Draws between two numbers, evenly by their logs.
fn between(low: f64, high: f64, draws: &mut Pcg64) -> f64 {
    low * (high / low).powf(share(draws))
}

/// Draws a factor whose log has this standard deviation.
fn noise(deviation: f64, draws: &mut Pcg64) -> f64 {
    let sum: f64 = (0..12).map(|_| share(draws)).sum();
    (deviation * (sum - 6.0)).exp()
}

/// A host under a load.
#[derive(Clone, Debug)]
pub struct Host {
    model: HostModel,
    traffic: TrafficModel,
    trial_ns: u64,
}

impl Host {
    /// Draws a host around one of these of `sim/`, offered a share of its knee that is evenly drawn between these.
    pub fn drawn(around: &[&str], seed: u64, shares: [f64; 2]) -> Host {
        let draws = &mut Seed(seed).generator();
        let around = EmbeddedHost::named(one_of(around, draws)).expect("the crate carries it");
        let mut model = HostModel::parse(around.text).expect("the crate's hosts are right");
        let speed = between(0.25, 1.0, draws);
        for field in HostModel::FIELDS {
            let is_cost = ["cpu.", "card.", "network.", "socket.", "application."]
                .iter()
                .any(|section| field.name.starts_with(section) && field.name.ends_with("_ns"));
            let cost = model.get(field.name).unwrap_or_default() as f64;
            let cost = (cost * noise(0.3, draws) / speed) as u64;
            if is_cost {
                let set = model.set(field.name, cost.clamp(field.min, field.max));
                set.expect("it is within its range");
            }
        }
        // The processor is the limit.
        model.link.bits_per_second = 10_000_000_000;
        model.card.moderation_ns = between(10e3, 250e3, draws) as u64;
        model.card.rx_ring = one_of(&[64, 128, 256, 512, 1024, 4096], draws);
        model.socket.buffer_bytes = one_of(&[42_080, 212_992, 4_194_304], draws);
        let payload = one_of(&[18, 64, 256, 1024, 1472], draws);
        let of_bytes = model.socket.copy_kib_ns + model.network.checksum_kib_ns;
        let packet_ns = model.card.rx_packet_ns
            + model.network.ipv4_ns
            + model.network.udp_ns
            + model.cpu.syscall_ns
            + model.application.packet_ns
            + of_bytes * payload / 1024;
        let offered = shares[0] + (shares[1] - shares[0]) * share(draws);
        let rate = (offered * 1e9 / packet_ns as f64) as u64;
        let traffic = TrafficModel::parse(&format!("poisson:rate={rate}:payload={payload}"));
        Host {
            model,
            traffic: traffic.expect("it has a rate"),
            trial_ns: TRIAL_NS_MIN.max(TRIAL_PACKETS_MIN * 1_000_000_000 / rate),
        }
    }

    /// Simulates a candidate for as long as some trials.
    fn run(&self, candidate: usize, trials: u64, seed: u64) -> SimFigures {
        let discipline = ReceiveDiscipline::parse(CANDIDATES[candidate]);
        let plan = Simulation {
            stops: vec![PathHost {
                host: self.model.clone(),
                discipline: discipline.expect("it is one"),
            }],
            workload: self.traffic.clone(),
            duration_ns: trials * self.trial_ns,
            warmup_ns: WARMUP_NS,
            seed,
            slices: 0,
        };
        simulate(&plan).expect("the host can run it")
    }

    /// Returns what every candidate truly comes to.
    pub fn truth(&self, seed: u64) -> Vec<SimFigures> {
        let all = 0..CANDIDATES.len();
        all.map(|it| self.run(it, TRUTH_TRIALS, seed)).collect()
    }
}

/// Returns the goal's value; `None` where it has none because nothing arrived.
fn value(figures: &SimFigures, goal: Metric) -> Option<f64> {
    let arrived = figures.delivered_packets_per_second;
    let busy = 1.0 - figures.hosts[0].cpu.idle_ratio;
    match goal {
        Metric::CpuNsPerPacket => Some(1e9 * busy / arrived).filter(|it| it.is_finite()),
        Metric::OneWayDelayP50Ns => Some(figures.latency.p50_ns? as f64),
        _ => Some(arrived),
    }
}

/// A race on a host.
struct Tuned<'a> {
    host: &'a Host,
    goal: Metric,
    draws: Pcg64,
    trials: usize,
    /// Trials of the grid.
    grid: usize,
}

impl Tuned<'_> {
    fn rule(&self, trials_max: usize) -> RaceRule {
        RaceRule {
            more_is_better: self.goal.more_is_better(),
            margin_ratio: MARGIN,
            limits: limits(self.goal).to_vec(),
            trials_max,
        }
    }

    /// Runs a block. A value of 0 is none to a race, and a failure to the comparison.
    fn block(&mut self, candidates: &[usize]) -> Vec<(usize, RaceTrial)> {
        let drift = noise(BLOCK_NOISE, &mut self.draws);
        self.trials += candidates.len();
        let trial = |&candidate: &usize| {
            let figures = self.host.run(candidate, 1, self.draws.next_u64());
            let noise = drift * noise(TRIAL_NOISE, &mut self.draws);
            let limited = limits(self.goal).iter().map(|_| figures.loss_ratio);
            let trial = RaceTrial {
                value: value(&figures, self.goal).map(|it| it * noise),
                limited: limited.collect(),
            };
            (candidate, trial)
        };
        candidates.iter().map(trial).collect()
    }

    /// Returns the candidate that `nicpoll tune` would leave set: the winner if it is shown to be better, or to keep
    /// a limit that the reference breaks; else the reference.
    fn choice(&mut self) -> usize {
        let mut budget = RaceBudget::of(CANDIDATES.len(), GRID_BLOCKS);
        let mut race = Race::new(CANDIDATES.len(), self.rule(budget.race_trials));
        while let Some(left) = race.next_block() {
            let block = self.block(&left);
            race.add_block(raced(block));
            budget = race.widen(GRID_BLOCKS);
        }
        self.grid += budget.grid_trials;
        let mut winner = race.choice();
        let mut blocks = Some(budget.final_blocks);
        for _ in 0..FINALS_MAX {
            let (Some(candidate), Some(of_final)) = (winner.filter(|it| *it > 0), blocks) else {
                break;
            };
            if let Some(choice) = self.compared(candidate, &race, of_final) {
                return choice;
            }
            winner = race.runner_up(candidate);
            blocks = budget.final_blocks_after(self.trials);
        }
        0
    }

    /// Returns the winner or the reference, by blocks of their own; `None` if the winner does not keep the limits.
    fn compared(&mut self, winner: usize, race: &Race, blocks: usize) -> Option<usize> {
        let is_broken = |race: &Race| race.dropped(0) == Some(TuneDropped::BreaksLimit);
        let mut again = [(); 2].map(|()| Race::new(1, self.rule(usize::MAX)));
        let mut pairs = Vec::new();
        for _ in 0..blocks {
            let block = self.block(&[winner, 0]);
            pairs.push(Pair {
                setting: block[0].1.value,
                reference: block[1].1.value,
            });
            for (own, (_, trial)) in again.iter_mut().zip(raced(block)) {
                own.add_block(vec![(0, trial)]);
            }
            if is_broken(&again[0]) {
                return None;
            }
        }
        let [own, reference] = &again;
        own.choice()?;
        let is_left = is_broken(race)
            || is_broken(reference)
            || self.verdict(&pairs) == Some(Verdict::Better);
        Some(if is_left { winner } else { 0 })
    }

    fn verdict(&self, pairs: &[Pair]) -> Option<Verdict> {
        let compared = compare(&Contrast {
            workload: "",
            metric: self.goal,
            setting: "winner",
            reference: "napi",
            pairs,
            blocks_planned: pairs.len(),
            primary_margin: Some(MARGIN),
            confidence: Confidence::PERCENT_95,
            seed: Seed(1),
            proofs: None,
            chances: None,
        });
        let verdict = compared.expect("the margin fits the metric").verdict;
        verdict.map(Verdict::without_weight)
    }
}

/// Returns the trials as a race takes them.
fn raced(mut block: Vec<(usize, RaceTrial)>) -> Vec<(usize, RaceTrial)> {
    for (_, trial) in &mut block {
        trial.value = trial.value.filter(|it| *it > 0.0);
    }
    block
}

/// Below the knee no packet may be lost.
fn limits(goal: Metric) -> &'static [f64] {
    match goal {
        Metric::DeliveredBitsPerSecond => &[],
        _ => &[0.0],
    }
}

/// The choices on many hosts for a goal, summed up.
#[derive(Debug, Default)]
pub struct Totals {
    /// Hosts on which a candidate truly keeps the limit; `hopeless` are the others.
    pub hosts: usize,
    pub hopeless: usize,
    /// Choices that are within the margin of the best candidate that truly keeps the limit.
    pub good: usize,
    /// Choices that truly lose packets, and those of them that are not the reference.
    pub losing: usize,
    pub losing_winners: usize,
    /// Hosts whose reference is within the margin of the best.
    pub reference_good: usize,
    /// The farthest from the best, among choices that keep the limit, as a ratio.
    pub farthest: f64,
    /// Trials of the grid and those used, of all hosts.
    pub grid: usize,
    pub trials: usize,
    /// The largest share of its grid's trials that a host took.
    pub share_max: f64,
}

impl Totals {
    fn add(&mut self, truth: &[SimFigures], goal: Metric, choice: usize, tuned: &Tuned) {
        let keeps = |it: usize| limits(goal).is_empty() || truth[it].ledger.lost() == 0;
        let worth = |it: usize| {
            let value = value(&truth[it], goal)?;
            let worth = if goal.more_is_better() {
                value
            } else {
                1.0 / value
            };
            keeps(it).then_some(worth)
        };
        let best = (0..truth.len()).filter_map(worth).fold(0.0, f64::max);
        if best == 0.0 {
            self.hopeless += 1;
            return;
        }
        let far = |it: usize| worth(it).map_or(f64::INFINITY, |worth| best / worth);
        self.hosts += 1;
        self.good += usize::from(far(choice) <= MARGIN);
        self.reference_good += usize::from(far(0) <= MARGIN);
        self.losing += usize::from(!keeps(choice));
        self.losing_winners += usize::from(choice > 0 && !keeps(choice));
        if keeps(choice) {
            self.farthest = self.farthest.max(far(choice));
        }
        self.grid += tuned.grid;
        self.trials += tuned.trials;
        let share = tuned.trials as f64 / tuned.grid as f64;
        self.share_max = self.share_max.max(share);
    }
}

/// Tunes the hosts with these seeds, drawn around these, for each goal.
pub fn tune_all(around: &[&str], seeds: Range<u64>) -> [Totals; GOALS.len()] {
    let mut all = GOALS.map(|_| Totals::default());
    for seed in seeds {
        let below = Host::drawn(around, seed, [0.05, 0.7]);
        let above = Host::drawn(around, seed, [0.9, 2.0]);
        let truths = [&below, &above].map(|it| it.truth(seed));
        for (goal, totals) in GOALS.into_iter().zip(&mut all) {
            let (host, truth) = match goal {
                Metric::DeliveredBitsPerSecond => (&above, &truths[1]),
                _ => (&below, &truths[0]),
            };
            let mut tuned = Tuned {
                host,
                goal,
                draws: Seed(seed ^ 0x5eed).generator(),
                trials: 0,
                grid: 0,
            };
            let choice = tuned.choice();
            totals.add(truth, goal, choice, &tuned);
        }
    }
    all
}
