//! Estimates how long trials take, and decides during a study what still fits: which comparisons go on, and whether a
//! block may start.
//!
//! The estimate assumes a quiet machine. During a study only the time that trials took decides, never what they measured;
//! blocks are given up only when there is no comparison left to give up. A study ends in its time.

use std::collections::BTreeSet;
use std::time::Duration;

use nicpoll_lab::{Topology, WorkloadRequest, whole_seconds};
use nicpoll_model::{ComparisonName, DroppedComparison, Plan};

use crate::design::sweep::searches;
use crate::design::{Design, NamedWorkload};

/// Time for stragglers of a run to be counted, on a link that delays nothing.
pub(crate) const DRAIN_MIN: Duration = Duration::from_millis(2);

/// Rounds that each step of the calibration looks at, and the number of steps.
pub(crate) const CALIBRATION_ROUNDS: u32 = 25;

/// Time of a trial besides its traffic: switching, draining for the least time, reading counters.
const OVERHEAD: Duration = Duration::from_millis(200);

/// Additional time for a router.
const ROUTER_OVERHEAD: Duration = Duration::from_millis(150);

/// Runs of a trial: warm-up, measured window and CPU window.
const RUNS: usize = 3;

/// Data in a TCP sender's buffers when it stops. On a slow line a run ends when they are empty.
const TCP_BUFFERED_BYTES: f64 = 1e6;

/// Time for a user's program to start, connect and end.
const PROGRAM: Duration = Duration::from_millis(300);

/// Time to start a client, which is a thread with a socket.
const CLIENT: Duration = Duration::from_millis(1);

/// A study without a limit of its own gets this many times the estimate, and [`BASE`].
const SPARE: f64 = 1.25;

/// Time for preparation and evaluation.
pub(crate) const BASE: Duration = Duration::from_secs(15);

/// Estimated seconds of a trial of each workload, in the order of the design. Each run is drained twice.
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

/// Estimated seconds of a trial of a workload of a plan.
pub(crate) fn trial_seconds(plan: &Plan, workload: &str) -> f64 {
    let mut workloads = plan.workloads.iter();
    let index = workloads.position(|known| known == workload);
    let own = index.and_then(|index| plan.estimated_trial_seconds.get(index));
    // A plan of an older version says nothing of it.
    own.copied().unwrap_or_else(|| {
        let traffic = plan.warmup_seconds + plan.trial_seconds + plan.cpu_window_seconds;
        traffic + OVERHEAD.as_secs_f64()
    })
}

/// Limit in seconds that fits all trials of a plan and what precedes them.
pub(crate) fn limit_seconds(design: &Design, plan: &Plan) -> f64 {
    let of_trials: f64 = plan
        .order
        .iter()
        .map(|(workload, _)| trial_seconds(plan, workload))
        .sum();
    let rehearsals = design.timed().count() * design.workloads.len() * REHEARSALS as usize;
    let rehearsed = rehearsals as f64 * (plan.warmup_seconds + OVERHEAD.as_secs_f64() / 2.0);
    let searched = f64::from(searches(design)) * search_seconds(design, plan);
    let before = BASE.as_secs_f64() + rehearsed + searched;
    with_time_of_counting(SPARE * of_trials + before).ceil()
}

/// The least time in which the comparison that is dropped last may have so many blocks.
pub(crate) fn least_time(plan: &Plan, blocks: u32) -> Duration {
    let last = plan.drop_order.last();
    let block = 2.0 * last.map_or(0.0, |last| trial_seconds(plan, &last.workload));
    // The last one starts only where it may be late.
    let blocks = f64::from(blocks) * block + block.min(LATE_SECONDS_MAX);
    Duration::from_secs(((blocks + RESERVE_SECONDS) / (1.0 - REHEARSED_BY)).ceil() as u64)
}

/// Seconds of one run of a workload with its end.
fn run_seconds(workload: &NamedWorkload, topology: &Topology, run: f64) -> f64 {
    let background = workload.options.background.iter();
    let background = background.map(|one| &one.traffic);
    let streams = std::iter::once(&workload.request).chain(background);
    let longest = streams
        .map(|request| stream_seconds(request, topology, run))
        .fold(run, f64::max);
    match workload.options.background.is_empty() {
        true => longest,
        // Next to other traffic the last answers are waited for in vain.
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
        WorkloadRequest::Command(_) => {
            let told = whole_seconds(Duration::from_secs_f64(run)) as f64;
            told - run + PROGRAM.as_secs_f64()
        }
        _ => 0.0,
    };
    run + beyond
}

/// Reserved for evaluating, printing and restoring.
const RESERVE_SECONDS: f64 = 4.0;

/// A block may take twice its average time, but at most this much longer, and still end in time: traffic of long trials
/// lasts as long as asked, whatever the machine does.
const LATE_SECONDS_MAX: f64 = 10.0;

/// Trials in the running mean of their time. A load of a few blocks must not cost a comparison, which would not come
/// back.
const LOOK_BACK: f64 = 60.0;

/// Weight of the plan's estimate, in trials.
const PLANNED_WEIGHT: f64 = 8.0;

/// Latest end of a study's traffic, from its start.
pub fn traffic_ends(plan: &Plan) -> Duration {
    Duration::from_secs_f64((plan.limit_seconds - RESERVE_SECONDS).max(0.0))
}

/// The time of a study: what is kept, given up and learned.
pub struct Schedule<'a> {
    plan: &'a Plan,
    kept: Vec<ComparisonName>,
    dropped: Vec<DroppedComparison>,
    /// Time of trials over its estimate: a running mean.
    slowness: f64,
    trials: f64,
}

impl<'a> Schedule<'a> {
    /// A schedule that keeps all of the plan.
    pub fn new(plan: &'a Plan) -> Self {
        Schedule {
            plan,
            kept: plan.drop_order.clone(),
            dropped: Vec::new(),
            slowness: 1.0,
            trials: PLANNED_WEIGHT,
        }
    }

    /// Continues with what a resumed study gave up before, and the time of its trials by workload.
    pub fn after<'t>(
        mut self,
        dropped: Vec<DroppedComparison>,
        taken: impl Iterator<Item = (&'t str, Duration)>,
    ) -> Self {
        let is_kept = |name: &ComparisonName| dropped.iter().all(|gone| gone.comparison != *name);
        self.kept.retain(is_kept);
        self.dropped = dropped;
        taken.for_each(|(workload, taken)| self.took(workload, taken));
        self
    }

    /// The comparisons that were given up so far.
    pub fn dropped(&self) -> &[DroppedComparison] {
        &self.dropped
    }

    /// Whether a trial belongs to a comparison that is kept.
    pub fn is_needed(&self, workload: &str, setting: &str) -> bool {
        self.kept.iter().any(|one| is_with(one, workload, setting))
    }

    /// Records the time of a trial.
    pub fn took(&mut self, workload: &str, taken: Duration) {
        self.trials = (self.trials + 1.0).min(LOOK_BACK);
        let slowness = taken.as_secs_f64() / trial_seconds(self.plan, workload);
        self.slowness += (slowness - self.slowness) / self.trials;
    }

    /// Gives up comparisons, in the order of the plan, until the remaining blocks fit into the remaining time. The last
    /// comparison is kept.
    pub fn fit(&mut self, blocks_done: u32, elapsed: Duration) {
        // A study that ends by the width of its intervals ends early instead, with every comparison.
        while self.plan.stop_width_ratio.is_none()
            && self.kept.len() > 1
            && self.needed_seconds(blocks_done) + self.slack_seconds() > self.left_seconds(elapsed)
        {
            let comparison = self.kept.remove(0);
            self.dropped.push(DroppedComparison {
                comparison,
                blocks_done,
            });
        }
    }

    /// Ends the comparisons with a setting under a workload: it will not be measured.
    pub fn give_up(&mut self, workload: &str, setting: &str) {
        self.kept.retain(|one| !is_with(one, workload, setting));
    }

    /// Whether a workload's block that starts now ends in time.
    pub fn may_start(&self, workload: &str, elapsed: Duration) -> bool {
        self.block_seconds(workload) + self.late_seconds(workload) <= self.left_seconds(elapsed)
    }

    /// Forecast for the remaining blocks, within the study's limit.
    pub fn forecast(&self, blocks_done: u32, elapsed: Duration) -> Duration {
        let seconds = self.needed_seconds(blocks_done);
        Duration::from_secs_f64(seconds.min(self.left_seconds(elapsed)).max(0.0))
    }

    fn left_seconds(&self, elapsed: Duration) -> f64 {
        traffic_ends(self.plan).as_secs_f64() - elapsed.as_secs_f64()
    }

    /// Time that the last block needs in reserve to start.
    fn slack_seconds(&self) -> f64 {
        let workloads = self.plan.workloads.iter();
        let late = workloads.map(|workload| self.late_seconds(workload));
        late.fold(0.0, f64::max)
    }

    /// Time that a block may take beyond its average.
    fn late_seconds(&self, workload: &str) -> f64 {
        self.block_seconds(workload).min(LATE_SECONDS_MAX)
    }

    fn needed_seconds(&self, blocks_done: u32) -> f64 {
        let workloads = self.plan.workloads.iter();
        let block: f64 = workloads.map(|workload| self.block_seconds(workload)).sum();
        f64::from(self.plan.blocks.saturating_sub(blocks_done)) * block
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

/// Whether a comparison is with a setting under a workload.
fn is_with(one: &ComparisonName, workload: &str, setting: &str) -> bool {
    one.workload == workload && (one.setting == setting || one.reference == setting)
}

/// Share of a study's time after which no more is rehearsed: the first trials are then tuned less well.
pub(crate) const REHEARSED_BY: f64 = 0.25;

/// Warm-ups of a rehearsal.
pub(crate) const REHEARSALS: u32 = 2;

/// Length of the traffic while a program computes: many turns of the kernel's scheduler.
pub const SPINNER_RUN: Duration = Duration::from_millis(150);

/// Share of a study's time for measuring the cost of counting, and its maximum.
pub const SHARE: f64 = 0.1;

pub const TIME_MAX: Duration = Duration::from_secs(15);

/// Seconds, plus the time for measuring the cost of counting.
pub(crate) fn with_time_of_counting(seconds: f64) -> f64 {
    let share = SHARE / (1.0 - SHARE) * seconds;
    seconds + share.min(TIME_MAX.as_secs_f64())
}

/// Estimated time of narrowing down one knee under the first setting: some doublings and halvings, each of a run or two.
const SEARCH: Duration = Duration::from_secs(8);

/// The same under each further one, and of lowering the rate for it.
const SEARCH_FURTHER: Duration = Duration::from_secs(2);

/// The longest measured traffic of a trial that shows a knee.
pub(crate) const SHOWN_SECONDS_MAX: f64 = 1.0;

/// Trials under each setting that show a knee: two, and those at rates that were not held.
const SHOWN_TRIALS: f64 = 6.0;

/// Estimated time of finding one knee.
fn search_seconds(design: &Design, plan: &Plan) -> f64 {
    let trial = plan.warmup_seconds + plan.trial_seconds.min(SHOWN_SECONDS_MAX);
    let shown = SHOWN_TRIALS * (trial + plan.cpu_window_seconds + OVERHEAD.as_secs_f64());
    let settings = design.compared().count() as f64;
    SEARCH.as_secs_f64() + settings * (SEARCH_FURTHER.as_secs_f64() + shown)
}

/// Length of the traffic with CPU accounting. The account costs for each event, so only this run has it; it may be
/// short, since nothing is sampled.
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

    /// A study on a machine on which every trial takes `factor` times as long as is planned. Returns its end,
    /// the blocks of each comparison that was kept, and those that were given up.
    fn run(options: &DemoOptions, factor: f64) -> (f64, BTreeMap<String, u32>, usize) {
        let (design, plan) = plan(options, Seed(1)).unwrap();
        let mut schedule = Schedule::new(&plan);
        let mut now = 2.0 * factor;
        let mut blocks = BTreeMap::new();
        let group = design.settings.len();
        for (index, trials) in plan.order.chunks(group).enumerate() {
            let block = (index / plan.workloads.len()) as u32;
            schedule.fit(block, Duration::from_secs_f64(now));
            let workload = &trials[0].0;
            let needed: Vec<_> = trials
                .iter()
                .filter(|(workload, setting)| schedule.is_needed(workload, setting))
                .collect();
            if needed.is_empty() || !schedule.may_start(workload, Duration::from_secs_f64(now)) {
                continue;
            }
            for _ in needed {
                let taken = factor * trial_seconds(&plan, workload);
                now += taken;
                schedule.took(workload, Duration::from_secs_f64(taken));
            }
            *blocks.entry(workload.clone()).or_insert(0) += 1;
        }
        let kept = schedule.kept.iter();
        let kept = kept.map(|one| {
            (
                format!("{} {}", one.workload, one.reference),
                blocks[&one.workload],
            )
        });
        (now, kept.collect(), schedule.dropped().len())
    }

    #[test]
    fn all_of_it_fits_on_a_machine_as_it_should_be() {
        for (options, limit, comparisons) in [
            (DemoOptions::default(), 150.0, 8),
            (
                DemoOptions {
                    quick: true,
                    ..DemoOptions::default()
                },
                40.0,
                2,
            ),
        ] {
            let (end, kept, dropped) = run(&options, 1.0);
            assert!(end < limit, "{end}");
            assert_eq!((kept.len(), dropped), (comparisons, 0));
        }
    }

    #[test]
    fn on_a_slow_machine_comparisons_go_and_blocks_stay_and_the_end_holds() {
        for factor in [1.2, 1.7, 2.0, 3.0, 5.0] {
            let (end, kept, dropped) = run(&DemoOptions::default(), factor);
            assert!(end < 150.0, "{factor}: {end}");
            assert_eq!(kept.len() + dropped, 8);
            assert!(
                kept.values().all(|blocks| *blocks == 16),
                "{factor}: {kept:?}"
            );
        }
        let quick = DemoOptions {
            quick: true,
            ..DemoOptions::default()
        };
        for (factor, comparisons) in [(1.05, 2), (1.5, 1), (3.0, 1)] {
            let (end, kept, _) = run(&quick, factor);
            assert!(end < 40.0, "{factor}: {end}");
            assert_eq!(kept.len(), comparisons, "{factor}: {kept:?}");
        }
        // Where not even one comparison fits, the time holds all the same.
        let (end, kept, dropped) = run(&DemoOptions::default(), 30.0);
        assert!(end < 150.0, "{end}");
        assert_eq!((kept.len(), dropped), (1, 7));
        assert_eq!(kept.keys().next().unwrap(), "udp64 interrupt");
    }

    #[test]
    fn few_long_blocks_all_fit_into_the_time_that_is_reckoned_for_them() {
        let (_, mut plan) = plan(&DemoOptions::default(), Seed(1)).unwrap();
        // Three blocks of two trials of 300 s, in the 1800 s that they take and a quarter.
        plan.workloads = vec![String::from("udp64")];
        plan.estimated_trial_seconds = vec![300.0];
        plan.drop_order
            .retain(|one| one.workload == "udp64" && one.reference == "default");
        (plan.blocks, plan.limit_seconds) = (3, 2250.0);
        let schedule = Schedule::new(&plan);
        assert!(schedule.may_start("udp64", Duration::from_secs(1220)));
        assert!(!schedule.may_start("udp64", Duration::from_secs(1640)));
    }

    #[test]
    fn what_no_comparison_needs_is_not_run() {
        let (_, plan) = plan(&DemoOptions::default(), Seed(1)).unwrap();
        let mut schedule = Schedule::new(&plan);
        assert!(schedule.is_needed("udp1470", "default"));
        // A little more than what the blocks take is missing.
        schedule.fit(0, Duration::from_secs(40));
        assert!(!schedule.is_needed("udp1470", "default"));
        assert!(schedule.is_needed("udp1470", "interrupt"));
        assert!(schedule.is_needed("udp64", "default"));
    }

    #[test]
    fn a_study_that_goes_on_decides_as_if_it_had_never_stopped() {
        let (_, plan) = plan(&DemoOptions::default(), Seed(1)).unwrap();
        let taken: Vec<Duration> = (1..=20).map(|n| Duration::from_millis(50 * n)).collect();
        let mut whole = Schedule::new(&plan);
        whole.fit(0, Duration::from_secs(60));
        let gone = whole.dropped().to_vec();
        assert!(!gone.is_empty());
        taken.iter().for_each(|taken| whole.took("tcp", *taken));
        let mut resumed =
            Schedule::new(&plan).after(gone, taken.iter().map(|taken| ("tcp", *taken)));
        for schedule in [&mut whole, &mut resumed] {
            schedule.fit(8, Duration::from_secs(90));
        }
        assert!(whole.dropped().len() > 1);
        assert_eq!(whole.dropped(), resumed.dropped());
        let left = |schedule: &Schedule<'_>| schedule.forecast(8, Duration::from_secs(90));
        assert_eq!(left(&whole), left(&resumed));
    }

    #[test]
    fn a_workload_whose_trials_take_long_by_nature_says_nothing_of_the_others() {
        let (_, mut plan) = plan(&DemoOptions::default(), Seed(1)).unwrap();
        plan.estimated_trial_seconds = vec![4.0, 0.5, 0.5, 0.5];
        let mut schedule = Schedule::new(&plan);
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
        let schedule = Schedule::new(&plan);
        assert!(schedule.forecast(0, Duration::ZERO) > Duration::from_secs(60));
        assert!(schedule.forecast(0, Duration::from_secs(140)) < Duration::from_secs(10));
        assert_eq!(
            schedule.forecast(0, Duration::from_secs(170)),
            Duration::ZERO
        );
    }
}
