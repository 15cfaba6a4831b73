//! Estimates the durations of trials, and decides during a study whether another round of all workloads fits.
//!
//! The estimate is for a quiet machine, and a limit adds a reserve. During a study only the trials' durations decide,
//! never their results. All workloads get the same number of blocks; half as much again of the limit may complete a
//! round, or the rounds that a verdict takes.

use std::collections::BTreeSet;
use std::time::Duration;

use nicpoll_lab::{LineRate, Topology, WorkloadRequest, whole_seconds};
use nicpoll_model::{ComparisonName, Plan};

use crate::design::sweep::searches;
use crate::design::{Design, NamedWorkload};
use nicpoll_stats::BLOCKS_MIN;

/// Time for stragglers of a run on a link without delay.
pub(crate) const DRAIN_MIN: Duration = Duration::from_millis(2);

/// Rounds in each step of the calibration, and the number of steps.
pub(crate) const CALIBRATION_ROUNDS: u32 = 25;

/// Time of a trial besides its traffic: switching, the shortest drain, reading counters.
const OVERHEAD: Duration = Duration::from_millis(200);

/// Additional time for a router.
const ROUTER_OVERHEAD: Duration = Duration::from_millis(150);

/// Runs of a trial: warm-up, measured window and CPU window.
const RUNS: usize = 3;

/// Bytes in a TCP sender's buffers when it stops. On a slow line a run ends when they are empty.
const TCP_BUFFERED_BYTES: f64 = 1e6;

/// Time for a user's program to start, connect and end.
const PROGRAM: Duration = Duration::from_millis(300);

/// Time to start a client, which is a thread with a socket.
const CLIENT: Duration = Duration::from_millis(1);

/// A study without a limit gets this many times the estimate, plus [`RESERVE_SECONDS`].
const SPARE: f64 = 1.15;

/// Time to build the lab and to load the counters.
pub(crate) const BASE: Duration = Duration::from_secs(2);

/// Returns the blocks that a rank interval needs for a family's confidence: 1 + log2(family / 0.05).
pub(crate) fn blocks_for_interval(family: u32) -> u32 {
    let level = 0.05 / f64::from(family.max(1));
    (1.0 - level.log2()).ceil() as u32
}

/// Returns the blocks that a plan's method needs for an interval, and so for a verdict.
pub(crate) fn blocks_needed(plan: &Plan) -> u32 {
    let by_ranks = blocks_for_interval(plan.family_comparisons);
    match plan.blocks >= by_ranks {
        true => by_ranks,
        false => BLOCKS_MIN as u32,
    }
}

/// Estimates the seconds of a trial of each workload, in the order of the design. Each run is drained twice. Commands
/// before and after the traffic are left out: nobody knows how long they take until they run.
pub(crate) fn trials(
    design: &Design,
    [warmup, trial, cpu_window]: [f64; RUNS],
    drain: Duration,
) -> Vec<f64> {
    let overhead = match design.topology.is_routed() {
        true => OVERHEAD + ROUTER_OVERHEAD,
        false => OVERHEAD,
    };
    let overhead = overhead + 2 * RUNS as u32 * drain.saturating_sub(DRAIN_MIN);
    let runs = [warmup, trial, cpu_window];
    let workloads = design.workloads.iter();
    let seconds = workloads.map(|workload| {
        let runs = runs
            .iter()
            .map(|run| run_seconds(workload, &design.topology, *run));
        let spinner = workload
            .options
            .spinner
            .then(|| run_seconds(workload, &design.topology, SPINNER_RUN.as_secs_f64()));
        runs.sum::<f64>() + spinner.unwrap_or(0.0) + overhead.as_secs_f64()
    });
    seconds.collect()
}

/// Estimates the seconds of a trial of a workload of a plan.
pub(crate) fn trial_seconds(plan: &Plan, workload: &str) -> f64 {
    let mut workloads = plan.workloads.iter();
    let index = workloads.position(|known| known == workload);
    let own = index.and_then(|index| plan.estimated_trial_seconds.get(index));
    // A plan of an older version does not have it.
    own.copied().unwrap_or_else(|| {
        let traffic = plan.warmup_seconds + plan.trial_seconds + plan.cpu_window_seconds;
        traffic + OVERHEAD.as_secs_f64()
    })
}

/// Estimates the seconds of a study on a quiet machine.
pub(crate) fn estimated_seconds(design: &Design, plan: &Plan) -> f64 {
    let of_trials: f64 = plan
        .order
        .iter()
        .map(|(workload, _)| trial_seconds(plan, workload))
        .sum();
    let warmups = f64::from(REHEARSALS) * (plan.warmup_seconds + OVERHEAD.as_secs_f64() / 2.0);
    let rehearsed = (design.timed().count() * design.workloads.len()) as f64 * warmups;
    let searched = f64::from(searches(design)) * search_seconds(design, plan);
    with_time_of_counting(of_trials + BASE.as_secs_f64() + rehearsed + searched)
}

/// Returns the default limit of a study.
pub(crate) fn limit_seconds(estimated_seconds: f64) -> f64 {
    (SPARE * estimated_seconds + RESERVE_SECONDS).ceil()
}

/// Returns the shortest time in which every workload can have this many blocks.
pub(crate) fn least_time(plan: &Plan, blocks: u32) -> Duration {
    let rounds = f64::from(blocks) * StudySchedule::new(plan).round_seconds();
    Duration::from_secs(((rounds + RESERVE_SECONDS) / (1.0 - REHEARSED_BY)).ceil() as u64)
}

/// Estimates the seconds of one run of a workload, its drain included.
fn run_seconds(workload: &NamedWorkload, topology: &Topology, run: f64) -> f64 {
    let background = workload.options.background.iter();
    let background = background.map(|one| &one.traffic);
    let streams = std::iter::once(&workload.request).chain(background);
    let longest = streams
        .map(|request| stream_seconds(request, topology, run))
        .fold(run, f64::max);
    match workload.options.background.is_empty() {
        true => longest,
        // Next to other traffic the last answers may never come.
        false => longest + nicpoll_traffic::rr::RESPONSE_TIMEOUT.as_secs_f64(),
    }
}

fn stream_seconds(request: &WorkloadRequest, topology: &Topology, run: f64) -> f64 {
    let beyond = match request {
        WorkloadRequest::Tcp(_) => {
            let rate = topology
                .rate
                .map(|rate| rate.bits_per_second().get() as f64);
            rate.map_or(0.0, |rate| 8.0 * TCP_BUFFERED_BYTES / rate)
        }
        WorkloadRequest::Rr(rr) => f64::from(rr.clients()) * CLIENT.as_secs_f64(),
        WorkloadRequest::Udp(_) | WorkloadRequest::Netrate(_) => {
            topology.rate.map_or(0.0, LineRate::queue_seconds)
        }
        WorkloadRequest::Command(_) => {
            let told = whole_seconds(Duration::from_secs_f64(run)) as f64;
            told - run + PROGRAM.as_secs_f64()
        }
        _ => 0.0,
    };
    run + beyond
}

/// Reserved for evaluating, printing and restoring.
pub(crate) const RESERVE_SECONDS: f64 = 3.0;

/// The share of the limit that may be used beyond it.
const MORE: f64 = 0.5;

/// Trials in the running mean of their durations: a load during a few blocks must not decide about the rest.
const LOOK_BACK: f64 = 60.0;

/// Weight of the plan's estimate, in trials.
const PLANNED_WEIGHT: f64 = 8.0;

/// Returns the latest end of a study's traffic, from its start.
pub(crate) fn traffic_ends(plan: &Plan) -> Duration {
    let limit = plan.limit_seconds * (1.0 + MORE);
    Duration::from_secs_f64((limit - RESERVE_SECONDS).max(0.0))
}

/// The schedule of a study: the remaining comparisons, and their durations.
pub(crate) struct StudySchedule<'a> {
    plan: &'a Plan,
    kept: Vec<ComparisonName>,
    /// Running mean of trials' durations over their estimates.
    slowness: f64,
    trials: f64,
}

impl<'a> StudySchedule<'a> {
    /// A schedule of all of the plan.
    pub fn new(plan: &'a Plan) -> Self {
        StudySchedule {
            plan,
            kept: plan.drop_order.clone(),
            slowness: 1.0,
            trials: PLANNED_WEIGHT,
        }
    }

    /// Continues with the durations of a resumed study's trials, by workload.
    pub fn after<'t>(mut self, taken: impl Iterator<Item = (&'t str, Duration)>) -> Self {
        taken.for_each(|(workload, taken)| self.took(workload, taken));
        self
    }

    /// Returns whether a remaining comparison needs a trial.
    pub fn is_needed(&self, workload: &str, setting: &str) -> bool {
        self.kept.iter().any(|one| is_with(one, workload, setting))
    }

    /// Records the duration of a trial.
    pub fn took(&mut self, workload: &str, taken: Duration) {
        self.trials = (self.trials + 1.0).min(LOOK_BACK);
        let slowness = taken.as_secs_f64() / trial_seconds(self.plan, workload);
        self.slowness += (slowness - self.slowness) / self.trials;
    }

    /// Drops the comparisons with a setting under a workload, which will not be measured.
    pub fn give_up(&mut self, workload: &str, setting: &str) {
        self.kept.retain(|one| !is_with(one, workload, setting));
    }

    /// Returns whether another round of all workloads may start: within the limit, or beyond it if all rounds that a
    /// verdict takes end within half as much again.
    pub fn may_start(&self, rounds_done: u32, elapsed: Duration) -> bool {
        let elapsed = elapsed.as_secs_f64();
        let left = traffic_ends(self.plan).as_secs_f64() - elapsed;
        let missing = blocks_needed(self.plan).saturating_sub(rounds_done);
        let rounds = match elapsed < self.plan.limit_seconds - RESERVE_SECONDS {
            true => 1,
            false => missing,
        };
        rounds > 0 && f64::from(rounds) * self.round_seconds() <= left
    }

    /// Forecasts the duration of the remaining rounds, within their limit.
    pub fn forecast(&self, rounds_done: u32, elapsed: Duration) -> Duration {
        let rounds = self.plan.blocks.saturating_sub(rounds_done);
        let seconds = f64::from(rounds) * self.round_seconds();
        let limit = Duration::from_secs_f64(self.plan.limit_seconds).max(elapsed);
        let most = match self.may_start(rounds_done, limit) {
            true => traffic_ends(self.plan),
            false => limit,
        };
        Duration::from_secs_f64(seconds).min(most.saturating_sub(elapsed))
    }

    fn round_seconds(&self) -> f64 {
        let workloads = self.plan.workloads.iter();
        workloads.map(|workload| self.block_seconds(workload)).sum()
    }

    fn block_seconds(&self, workload: &str) -> f64 {
        let settings: BTreeSet<&str> = self
            .kept
            .iter()
            .filter(|one| one.workload == workload)
            .flat_map(|one| [one.setting.as_str(), one.reference.as_str()])
            .collect();
        settings.len() as f64 * self.slowness * trial_seconds(self.plan, workload)
    }
}

/// Returns whether a comparison has a setting under a workload.
fn is_with(one: &ComparisonName, workload: &str, setting: &str) -> bool {
    one.workload == workload && (one.setting == setting || one.reference == setting)
}

/// Share of a study's time after which rehearsals end; the first trials are then tuned less well.
pub(crate) const REHEARSED_BY: f64 = 0.25;

/// Warm-ups of a rehearsal.
pub(crate) const REHEARSALS: u32 = 2;

/// Length of the traffic next to a computing program: many slices of the kernel's scheduler.
pub const SPINNER_RUN: Duration = Duration::from_millis(150);

/// Share of a study's time for measuring the cost of counting, and that time's maximum.
pub const SHARE: f64 = 0.1;

pub const TIME_MAX: Duration = Duration::from_secs(15);

/// Adds the time for measuring the cost of counting.
pub(crate) fn with_time_of_counting(seconds: f64) -> f64 {
    let share = SHARE / (1.0 - SHARE) * seconds;
    seconds + share.min(TIME_MAX.as_secs_f64())
}

/// Estimated time of finding one knee under the first setting: some doublings and halvings, each of a run or two.
const SEARCH: Duration = Duration::from_secs(8);

/// The same for each further setting, which may lower the rate.
const SEARCH_FURTHER: Duration = Duration::from_secs(2);

/// The longest measured traffic of a trial that confirms a knee.
pub(crate) const SHOWN_SECONDS_MAX: f64 = 1.0;

/// Trials under each setting to confirm a knee: two, plus those at rates that were not held.
const SHOWN_TRIALS: f64 = 6.0;

/// Estimates the time of finding one knee.
fn search_seconds(design: &Design, plan: &Plan) -> f64 {
    let trial = plan.warmup_seconds + plan.trial_seconds.min(SHOWN_SECONDS_MAX);
    let shown = SHOWN_TRIALS * (trial + plan.cpu_window_seconds + OVERHEAD.as_secs_f64());
    let settings = design.compared().count() as f64;
    SEARCH.as_secs_f64() + settings * (SEARCH_FURTHER.as_secs_f64() + shown)
}

/// Length of the run with CPU accounting. Accounting costs time for each event, so it has a run of its own; this can
/// be short, since nothing is sampled.
pub const CPU_WINDOW: Duration = Duration::from_millis(60);

#[cfg(test)]
mod reckon_tests {
    use super::*;
    use crate::design::file::StudyFile;
    use nicpoll_stats::order::Seed;

    fn reckoned(topology: &str, traffic: &str) -> f64 {
        let text = format!(
            "question = \"q\"\nblocks = 3\ntrial = \"1s\"\n{topology}\n[[setting]]\nname = \"off\"\n\
             [[setting]]\nname = \"on\"\nreceiver = {{ gro = \"on\" }}\n[[workload]]\nname = \"it\"\n{traffic}"
        );
        let file = StudyFile::parse(&text).unwrap();
        let plan = file.plan(Seed(1)).unwrap().plan;
        assert!(plan.limit_seconds > 6.0 * plan.estimated_trial_seconds[0]);
        trial_seconds(&plan, "it")
    }

    #[test]
    fn a_workload_states_what_its_runs_take_beyond_their_traffic() {
        let tcp = "traffic = { kind = \"tcp\" }";
        let plain = reckoned("", tcp);
        assert!(plain < 1.5, "{plain}");
        // A megabyte over 10 Mbit/s takes 0.8 s, three times.
        let slow = reckoned("[topology]\nrate = \"10Mbit/s\"", tcp);
        assert!((slow - plain - 2.4).abs() < 0.01, "{slow}");
        assert!(reckoned("[topology]\nkind = \"router\"", tcp) > plain);
        // Two of three runs are rounded up to a second.
        let command = "traffic = { kind = \"command\", sender = [\"true\"], parser = \"iperf2\" }";
        let program = reckoned("", command);
        assert!(program > 3.0 && program < 5.0, "{program}");
        let one = reckoned("", "traffic = { kind = \"rr\" }");
        let clients = reckoned("", "traffic = { kind = \"rr\", clients = 100 }");
        assert!(clients > one + 0.2, "{one} {clients}");
        let commands = reckoned(
            "[common]\nbefore = [{ host = \"sender\", command = [\"true\"] }, \
             { host = \"receiver\", command = [\"true\", \"{interface}\"] }]\n[topology]\nlinks = 4",
            tcp,
        );
        let links = reckoned("[topology]\nlinks = 4", tcp);
        // Nobody knows how long they take.
        assert!((commands - links).abs() < 1e-9, "{links} {commands}");
        let flooded = "traffic = { kind = \"rr\" }\n\
                       beside = [{ traffic = { kind = \"netrate\", payload_bytes = 64 } }]";
        assert!(reckoned("", flooded) > one + 0.2);
    }
}

#[cfg(test)]
mod schedule_tests {
    use super::*;
    use crate::design::demo::DemoOptions;
    use crate::design::demo::plan;
    use nicpoll_stats::order::Seed;
    use std::collections::BTreeMap;

    const QUICK: DemoOptions = DemoOptions {
        quick: true,
        blocks: None,
        trial: None,
        period: None,
        workloads: Vec::new(),
        null: None,
    };

    /// Runs a study whose trials take `factor` times as long as planned. Returns its end, and the blocks of each
    /// workload.
    fn run(options: &DemoOptions, factor: f64) -> (f64, BTreeMap<String, u32>) {
        let (design, plan) = plan(options, Seed(1)).unwrap();
        let mut schedule = StudySchedule::new(&plan);
        let mut now = 2.0 * factor;
        let mut blocks = BTreeMap::new();
        let round = design.settings.len() * plan.workloads.len();
        'rounds: for (done, trials) in (0..).zip(plan.order.chunks(round)) {
            if !schedule.may_start(done, Duration::from_secs_f64(now)) {
                break;
            }
            for (workload, _) in trials {
                let taken = factor * trial_seconds(&plan, workload);
                if now + taken > traffic_ends(&plan).as_secs_f64() {
                    break 'rounds;
                }
                now += taken;
                schedule.took(workload, Duration::from_secs_f64(taken));
                *blocks.entry(workload.clone()).or_insert(0) += 1;
            }
        }
        for count in blocks.values_mut() {
            *count /= design.settings.len() as u32;
        }
        (now, blocks)
    }

    #[test]
    fn all_of_it_fits_on_a_machine_as_it_should_be() {
        for (options, limit, blocks) in [(&DemoOptions::default(), 150.0, 16), (&QUICK, 40.0, 11)] {
            let (end, of_workloads) = run(options, 1.0);
            assert!(end < limit, "{end}");
            assert!(
                of_workloads.values().all(|own| *own == blocks),
                "{of_workloads:?}"
            );
        }
    }

    #[test]
    fn on_a_slow_machine_every_workload_has_fewer_blocks_and_none_goes_without() {
        for (options, limit, workloads) in [(&DemoOptions::default(), 150.0, 4), (&QUICK, 40.0, 2)]
        {
            let mut before = u32::MAX;
            for factor in [1.0, 1.2, 1.7, 2.0, 3.0, 5.0, 8.0] {
                let (end, blocks) = run(options, factor);
                assert!(end < 1.5 * limit, "{factor}: {end}");
                assert_eq!(blocks.len(), workloads, "{factor}: {blocks:?}");
                let [fewest, most] = [blocks.values().min(), blocks.values().max()];
                // The end of the time may cut a round short.
                let cut = fewest.map(|fewest| fewest + 1);
                assert!(most <= cut.as_ref(), "{factor}: {blocks:?}");
                assert!(fewest <= Some(&before), "{factor}: {blocks:?}");
                before = *fewest.unwrap();
            }
        }
        // The limit holds even if not one round fits.
        let (end, blocks) = run(&DemoOptions::default(), 60.0);
        assert!(
            end < 225.0 && blocks.values().all(|own| *own == 0),
            "{end} {blocks:?}"
        );
    }

    #[test]
    fn the_rounds_that_a_verdict_takes_may_use_half_as_much_again_and_no_others() {
        let (_, plan) = plan(&QUICK, Seed(1)).unwrap();
        let needed = blocks_needed(&plan);
        assert_eq!(needed, 7);
        let schedule = StudySchedule::new(&plan);
        let at = |rounds, seconds| schedule.may_start(rounds, Duration::from_secs(seconds));
        // A round takes 2.44 s: what begins within the limit is completed.
        assert!(at(needed, 36) && !at(needed, 38));
        assert!(at(needed - 1, 45) && at(needed - 5, 44));
        // Five do not end in time, and a single one does not help.
        assert!(!at(needed - 5, 46) && !at(needed - 1, 56));
    }

    #[test]
    fn few_long_blocks_all_fit_into_the_time_that_is_reckoned_for_them() {
        let (_, mut plan) = plan(&DemoOptions::default(), Seed(1)).unwrap();
        // Three blocks of two trials of 300 s, in the 1800 s that they take and a reserve.
        plan.workloads = vec![String::from("udp64")];
        plan.estimated_trial_seconds = vec![300.0];
        plan.drop_order
            .retain(|one| one.workload == "udp64" && one.reference == "default");
        (plan.blocks, plan.limit_seconds) = (3, 2000.0);
        let schedule = StudySchedule::new(&plan);
        assert!(schedule.may_start(2, Duration::from_secs(1990)));
        assert!(!schedule.may_start(3, Duration::from_secs(2000)));
    }

    #[test]
    fn what_no_comparison_needs_is_not_run() {
        let (_, plan) = plan(&DemoOptions::default(), Seed(1)).unwrap();
        let mut schedule = StudySchedule::new(&plan);
        let before = schedule.round_seconds();
        assert!(schedule.is_needed("udp1470", "default"));
        schedule.give_up("udp1470", "default");
        assert!(!schedule.is_needed("udp1470", "default"));
        assert!(schedule.is_needed("udp1470", "interrupt"));
        assert!(schedule.is_needed("udp64", "default"));
        assert!(schedule.round_seconds() < before);
    }

    #[test]
    fn a_study_that_goes_on_decides_as_if_it_had_never_stopped() {
        let (_, plan) = plan(&DemoOptions::default(), Seed(1)).unwrap();
        let taken: Vec<Duration> = (1..=20).map(|n| Duration::from_millis(50 * n)).collect();
        let mut whole = StudySchedule::new(&plan);
        taken.iter().for_each(|taken| whole.took("tcp", *taken));
        let resumed = StudySchedule::new(&plan).after(taken.iter().map(|taken| ("tcp", *taken)));
        let left = |schedule: &StudySchedule<'_>| schedule.forecast(8, Duration::from_secs(90));
        assert_eq!(left(&whole), left(&resumed));
    }

    #[test]
    fn a_workload_whose_trials_take_long_by_nature_says_nothing_of_the_others() {
        let (_, mut plan) = plan(&DemoOptions::default(), Seed(1)).unwrap();
        plan.estimated_trial_seconds = vec![4.0, 0.5, 0.5, 0.5];
        let mut schedule = StudySchedule::new(&plan);
        let before = schedule.block_seconds("rr");
        for _ in 0..20 {
            schedule.took("tcp", Duration::from_secs(4));
        }
        assert!((schedule.block_seconds("rr") - before).abs() < 1e-9);
        assert!((schedule.block_seconds("tcp") - 8.0 * before).abs() < 1e-9);
        schedule.took("rr", Duration::from_secs(1));
        assert!(schedule.block_seconds("rr") > before);
    }

    #[test]
    fn the_forecast_never_exceeds_the_time_that_is_left() {
        let (_, plan) = plan(&DemoOptions::default(), Seed(1)).unwrap();
        let schedule = StudySchedule::new(&plan);
        let at = |rounds, seconds| {
            schedule
                .forecast(rounds, Duration::from_secs(seconds))
                .as_secs()
        };
        assert!(at(0, 0) > 60);
        assert!((1..=10).contains(&at(12, 140)));
        // While rounds that a verdict needs are missing, half as much again is allowed.
        assert!((70..=82).contains(&at(0, 140)));
        assert_eq!(at(0, 230), 0);
    }
}
