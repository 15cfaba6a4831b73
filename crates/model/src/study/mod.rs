//! Documents of studies: the plan, the facts of hosts and settings, findings, sweeps, and the list of a store.
//!
//! [`Study`] holds a whole study. `trial` has one run and its figures, `comparison` has verdicts, and `imported` has
//! runs that other tools printed.

pub(crate) mod comparison;
mod imported;
pub(crate) mod trial;

pub use comparison::{
    COMPARED_SCHEMA, Compared, ComparedAlone, ComparedMethod, ComparedSets, ComparedSide,
    Comparison, Ends, IntervalMethod, Measure, Metric, MetricFacts, MetricKind, RateOverTime,
    Scenario, Sensitivity, SeriesTests, Unevenness, Verdict,
};
pub use imported::{
    IMPORTED_SCHEMA, Imported, ImportedBasis, ImportedFigure, ImportedFile, ImportedInterval,
    ImportedReading, ImportedTrial, SourcePlace, TrafficKind, UnplacedFigure,
};
pub use trial::{
    Calibration, CoreSeries, Findings, ForeignCpu, Placement, PollEvidence, RoundTrip,
    RoundTripQuantiles, STEPS_MAX, SocketBuffers, SpinnerShare, Trial, TrialCpu, TrialFigures,
    TrialSeries, Validity, Warmup, WindowRates,
};

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::{HostFacts, Side, WorkUnit, named};
use crate::interface::SwitchWrite;
use crate::numbers::span;
use crate::sim::fit::Simulated;

/// Name and version of the JSON that [`Study`] becomes. The number grows when a reader of the last
/// version could be misled.
pub const SCHEMA: &str = "nicpoll.demo/4";

/// What was decided before the first trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Whether `--quick` asked for a run that can show large effects only.
    pub quick: bool,
    /// Blocks a workload.
    pub blocks: u32,
    /// Length of the measured traffic of a trial.
    pub trial_seconds: f64,
    /// Length of the warm-up before it.
    pub warmup_seconds: f64,
    /// Length of the run after each trial in which CPU time is accounted for exactly.
    pub cpu_window_seconds: f64,
    /// How long stragglers are waited for after the last packet was sent, in addition to two periods.
    #[serde(default)]
    pub drain_seconds: f64,
    /// The longest time from round to round that a setting asks for; null when none polls by a timer.
    pub period_ns: Option<u64>,
    /// The workloads, in the order in which they are reported.
    pub workloads: Vec<String>,
    /// Estimated duration of a trial of each of them with all that belongs to it, before any has run.
    #[serde(default, rename = "reckoned_trial_seconds")]
    pub estimated_trial_seconds: Vec<f64>,
    /// The order of the trials as drawn from the seed: workload and setting, block after block.
    pub order: Vec<(String, String)>,
    /// Time in which the study ends, from its beginning. Half as much again may be used to complete a round of all
    /// workloads, or those that a verdict takes.
    pub limit_seconds: f64,
    /// What it takes on a quiet machine; null in plans of older versions.
    #[serde(default)]
    pub estimated_seconds: Option<f64>,
    /// The comparisons, in the order in which older versions gave them up when time was short.
    pub drop_order: Vec<ComparisonName>,
    /// What the settings differ in, where they are made by crossing the levels of factors; empty otherwise.
    #[serde(default)]
    pub factors: Vec<FactorFacts>,
    /// The settings that are compared under each workload: the one that is judged, and its reference.
    pub contrasts: Vec<(String, String)>,
    /// The levels of factors that are compared over all combinations of the other factors, under each workload; empty
    /// with fewer than two factors.
    #[serde(default)]
    pub main_effects: Vec<MainEffect>,
    /// The study ends once no interval of the family is wider than this share of its estimate; null: after its blocks.
    #[serde(default)]
    pub stop_width_ratio: Option<f64>,
    /// Comparisons that get a verdict: the family that the intervals are widened for.
    #[serde(rename = "family_comparisons")]
    pub family: u32,
    /// Confidence of each interval of the family, 0 to 1.
    #[serde(rename = "confidence_ratio")]
    pub confidence: f64,
    /// The ratio from which on a difference matters.
    #[serde(rename = "margin_ratio")]
    pub margin: f64,
}

impl Plan {
    /// The metrics that get a verdict where these two settings are compared under a workload; empty where the plan does
    /// not say.
    pub fn judged(&self, workload: &str, pair: (&str, &str)) -> &[Metric] {
        let mut all = self.drop_order.iter();
        let found =
            all.find(|one| one.workload == workload && (&*one.setting, &*one.reference) == pair);
        found.map_or(&[], |one| &one.metrics)
    }

    /// How long the study takes, after its name: by the estimate, too, where that is far below the limit.
    pub fn time(&self) -> String {
        let limit = format!("ends within {}", span(self.limit_seconds));
        let estimate = self.estimated_seconds;
        match estimate.filter(|estimate| 1.3 * estimate < self.limit_seconds) {
            Some(estimate) => format!("takes about {} and {limit}", span(estimate)),
            None => limit,
        }
    }
}

/// Which settings a comparison holds against each other, and under which traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonName {
    /// The traffic.
    pub workload: String,
    /// The setting that is judged.
    pub setting: String,
    /// The one that it is judged against.
    pub reference: String,
    /// The metrics that get a verdict, the most important first. Empty in studies of earlier versions: the rate.
    #[serde(default)]
    pub metrics: Vec<Metric>,
}

/// A comparison that was given up, because the planned blocks of all would not have fitted into the
/// study's time. Nothing but the time that blocks took decides this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DroppedComparison {
    /// Which one.
    #[serde(flatten)]
    pub comparison: ComparisonName,
    /// Blocks that it had by then.
    pub blocks_done: u32,
}

/// The lab that the study built.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabFacts {
    /// Whether there is no card: true of a link that the study makes.
    pub is_virtual: bool,
    /// Name of the receiver's interface; the sender's has the same in a lab that the study makes.
    pub interface: String,
    /// Its driver.
    pub driver: String,
    /// Speed of the line between the hosts, each way; null when there is none.
    pub line_bits_per_second: Option<u64>,
    /// Why there is none; null when there is one.
    pub no_line_because: Option<String>,
    /// Link MTU in bytes.
    pub mtu_bytes: u32,
    /// Slots of the receive ring, when it is in use; null when the driver does not say.
    pub ring_slots: Option<u32>,
    /// Inode numbers of the namespaces.
    pub netns_inodes: Vec<(Side, u64)>,
    /// Addresses with prefix length.
    pub addresses: Vec<(Side, String)>,
    /// Names under which the namespaces were kept; empty unless asked for.
    pub kept_as: Vec<String>,
    /// The core of the sending thread.
    pub sender_cpu: u32,
    /// The core of the receiving thread.
    pub receiver_cpu: u32,
    /// How the sender hands over datagrams: always `one datagram a send call`.
    pub send_mode: String,
    /// How the receiver takes them.
    pub receive_mode: String,
}

/// What a workload is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadFacts {
    /// The workload.
    pub workload: String,
    /// What it is.
    pub description: String,
    /// What its work is counted in, and its CPU time divided by.
    pub unit: WorkUnit,
    /// Bytes of UDP payload in each datagram; null for a stream.
    pub datagram_bytes: Option<u32>,
    /// What all its senders together are asked for: datagrams (`rr`: requests) a second. Null where it goes as fast as it
    /// can or as recorded, and in studies of earlier versions.
    #[serde(default)]
    pub asked_per_second: Option<u64>,
    /// The metrics that it is compared by. Empty in studies of earlier versions.
    #[serde(default)]
    pub metrics: Vec<Metric>,
    /// Those of them that get a verdict, unless a comparison asks for others: by the kind of traffic.
    #[serde(default)]
    pub judged: Vec<Metric>,
    /// Its rate, where it is one of a sweep's; null otherwise.
    #[serde(default)]
    pub load: Option<SweptLoad>,
    /// What `nicpoll study import` calls traffic of this kind; null where other programs have none.
    #[serde(default)]
    pub kind: Option<String>,
}

/// What a setting means here, in words and values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingFacts {
    /// The setting.
    pub setting: String,
    /// What the text calls it in a sentence.
    pub noun: String,
    /// What it is.
    pub description: String,
    /// Each value that it writes: side, name, value.
    pub writes: Vec<(Side, String, String)>,
    /// Each value of the whole machine that it writes: name, value.
    #[serde(default)]
    pub machine_writes: Vec<(String, String)>,
    /// Each value that it writes at the router: name, value. Empty without one.
    #[serde(default)]
    pub router_writes: Vec<(String, String)>,
    /// Words that it puts into the user's own command, by name.
    #[serde(default)]
    pub variant: BTreeMap<String, String>,
    /// The level of each factor that it is made of; empty without factors.
    #[serde(default)]
    pub levels: Vec<LevelFacts>,
}

impl SettingFacts {
    /// Whether another one writes the same everywhere: then a setting is compared with itself.
    pub fn is_same_as(&self, other: &SettingFacts) -> bool {
        self.writes == other.writes
            && self.machine_writes == other.machine_writes
            && self.router_writes == other.router_writes
            && self.variant == other.variant
    }
}

/// What a setting changed at a host when it was first in force in a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingChanges {
    /// The setting.
    pub setting: String,
    /// The host, as settings name it: `sender`, `router`, `receiver` or `machine`.
    pub host: String,
    /// Each value that was another one before, with what was there and what was put there. A timeout that is adjusted
    /// has the value of that moment.
    pub writes: Vec<SwitchWrite>,
}

/// One thing in which settings differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactorFacts {
    /// The factor.
    pub factor: String,
    /// Its levels; the others are compared with the first one unless the plan's contrasts say otherwise.
    pub levels: Vec<String>,
}

/// Two levels of a factor that are compared over all combinations of the other factors' levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MainEffect {
    /// The factor.
    pub factor: String,
    /// The level that is judged.
    pub level: String,
    /// The one that it is judged against.
    pub reference: String,
    /// The settings that are compared within each combination, the judged one first.
    pub settings: Vec<(String, String)>,
}

/// The level of a factor that a setting has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LevelFacts {
    /// The factor.
    pub factor: String,
    /// The level.
    pub level: String,
}

/// A counter of the kernel's events that runs as a BPF program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventCounter {
    /// Counts polls, and runs while rates are measured. An event is a poll.
    Polls,
    /// Accounts for CPU time, and runs in a window of its own only. An event is a switch of threads,
    /// or the begin or end of an interrupt or a system call.
    CpuTime,
}

/// What a counter costs under one workload and setting, measured in the same study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountingCost {
    /// The counter.
    pub counter: EventCounter,
    /// The traffic.
    pub workload: String,
    /// The setting.
    pub setting: String,
    /// Mean run time of the counter's programs for each event, by the kernel's own BPF statistics.
    pub ns_per_event: Option<f64>,
    /// Events a second while that was measured: of the whole machine for CPU time.
    pub events_per_second: Option<f64>,
    /// Delivered rate with the counter over the rate without: geometric mean over the pairs.
    pub delivered_ratio: Option<f64>,
    /// 95 % interval of that ratio: lower end.
    pub delivered_ratio_low: Option<f64>,
    /// 95 % interval of that ratio: upper end.
    pub delivered_ratio_high: Option<f64>,
    /// Pairs of runs that were compared.
    pub pairs: u32,
}

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarningName {
    /// The ring holds fewer packets a period than were offered.
    RingCeiling,
    /// Trials were void.
    VoidTrials,
    /// Fewer than sixteen blocks.
    LargeEffectsOnly,
    /// Comparisons were given up, because the blocks planned did not all fit into the time.
    ComparisonsDropped,
    /// Differences of neighbouring blocks are alike, so that every interval is too narrow.
    DependentBlocks,
    /// Threads that are not the study's took more than a tenth of a core.
    ForeignWork,
    /// The study was ended and resumed, or is not finished.
    Interrupted,
    /// A counter could not be read.
    CounterMissing,
    /// Something about the machine disturbs measurements, or settings differ in more than what is compared.
    Confounder,
    /// The time was over before all blocks were run or the intervals were as narrow as was asked for, or was exceeded.
    LimitCameFirst,
    /// A setting that polls cannot be in force: packets go around the NAPI.
    NeverInForce,
}

/// Something the reader should know before believing a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// What it is about.
    pub name: WarningName,
    /// The sentence, with its remedy.
    pub text: String,
}

/// A difference between two compared settings that the comparison is not about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Confounder {
    /// The setting that is judged.
    pub setting: String,
    /// The one that it is judged against.
    pub reference: String,
    /// The host and the value's name.
    pub name: String,
    /// What it is under the setting; null: it is not there, or stays as it comes up.
    pub value: Option<String>,
    /// What it is under the reference; null likewise.
    pub reference_value: Option<String>,
    /// Whether the settings ask for it; false when it came along with something else.
    pub is_asked: bool,
}

/// Everything that `nicpoll demo --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Study {
    /// Name and version of this layout: [`SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// How long it took.
    pub elapsed_seconds: f64,
    /// What the study answers.
    pub question: String,
    /// Seed of the random order: the same seed and options give the same order.
    pub seed: u64,
    /// What was planned.
    pub plan: Plan,
    /// Where it ran.
    pub host: HostFacts,
    /// What it ran on.
    pub lab: LabFacts,
    /// What the workloads are.
    pub workloads: Vec<WorkloadFacts>,
    /// What the settings mean.
    pub settings: Vec<SettingFacts>,
    /// What each setting changed, with what was there before it and again after it. Empty for a setting that changes
    /// nothing, and in studies of earlier versions.
    #[serde(default)]
    pub setting_changes: Vec<SettingChanges>,
    /// What counters cost under each workload and setting at which they have anything to count.
    pub counting_costs: Vec<CountingCost>,
    /// Every trial in the order in which it ran, void ones included.
    pub trials: Vec<Trial>,
    /// Comparisons that older versions gave up for lack of time, in the order in which they did; empty since.
    pub dropped: Vec<DroppedComparison>,
    /// What the simulator says of the same traffic; null when that was not asked for.
    #[serde(default)]
    pub simulated: Option<Simulated>,
    /// What else differs between the settings that are compared.
    #[serde(default)]
    pub confounders: Vec<Confounder>,
    /// What the trials met under each setting.
    pub findings: Vec<SettingFindings>,
    /// What follows.
    pub comparisons: Vec<Comparison>,
    /// Offered against delivered of each workload that was swept; empty without a sweep.
    #[serde(default)]
    pub sweeps: Vec<Sweep>,
    /// The greatest rates that were found to be held before the first trial, where a sweep has shares of them.
    #[serde(default)]
    pub knees: Vec<Knee>,
    /// What to know before believing it.
    pub warnings: Vec<Warning>,
}

impl Study {
    /// Blocks of a workload in which a trial was run.
    fn blocks_run(&self, workload: &str) -> u32 {
        let own = self.trials.iter().filter(|one| one.workload == workload);
        let blocks: BTreeSet<u32> = own.map(|one| one.block).collect();
        u32::try_from(blocks.len()).unwrap_or(u32::MAX)
    }

    /// Blocks of the workload with most.
    pub fn blocks_most(&self) -> u32 {
        let workloads = self.plan.workloads.iter();
        let run = workloads.map(|workload| self.blocks_run(workload));
        run.max().unwrap_or(0)
    }
}

/// Name and version of the JSON of [`StudyPlan`].
pub const STUDY_PLAN_SCHEMA: &str = "nicpoll.study-plan/1";

/// What `nicpoll study run --dry-run` shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyPlan {
    /// Name and version of this layout.
    pub schema: String,
    /// What the study answers.
    pub question: String,
    /// Seed of the order.
    pub seed: u64,
    /// How long, how often, in which order, and what is held against what.
    pub plan: Plan,
    /// What joins the hosts.
    #[serde(default)]
    pub link: String,
    /// The traffic.
    pub workloads: Vec<WorkloadFacts>,
    /// The settings, with every value that each writes.
    pub settings: Vec<SettingFacts>,
    /// What to know before it runs.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// The load at which one workload of a sweep runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweptLoad {
    /// The workload of the file that is swept.
    pub sweep: String,
    /// What is asked for: datagrams (`rr`: requests) a second, of all senders together. Null in a plan where it is a
    /// share of a knee that is sought first.
    pub asked_per_second: Option<u64>,
    /// What share of the [`Knee`] that is: 0.5 is half of it. Null where the rate was asked for as it is.
    pub knee_ratio: Option<f64>,
}

/// The greatest rate that trials showed to be held under every setting, before the trials that count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knee {
    /// The workload of the file that is swept.
    pub sweep: String,
    /// The rate: datagrams (`rr`: requests) a second, of all senders together.
    pub asked_per_second: u64,
    /// What the trials at this rate came to under each setting.
    pub shown: Vec<KneePoint>,
}

/// What trials at the knee came to under one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KneePoint {
    /// The setting.
    pub setting: String,
    /// The medians of two trials, or of three.
    #[serde(flatten)]
    pub point: SweepPoint,
}

/// A workload at several rates under every setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// The workload of the file that is swept.
    pub sweep: String,
    /// What the rates count.
    pub unit: WorkUnit,
    /// Half load, at which CPU time is compared: the greatest rate of the sweep that is no more than half of the knee,
    /// or without one of the least rate that any setting holds. Null where there is none.
    pub fixed_load_per_second: Option<u64>,
    /// Full load, at which CPU time is compared, too: the greatest rate up to all of that. It is the lowest of the sweep
    /// where some setting holds none. Null in studies of earlier versions.
    #[serde(default)]
    pub full_load_per_second: Option<u64>,
    /// What each setting made of it, in the order of the study.
    pub settings: Vec<SweptSetting>,
}

/// What one setting made of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweptSetting {
    /// The setting.
    pub setting: String,
    /// The greatest rate asked for that is held, with every lower one: 99 % of it is offered, and 99 % of the offered
    /// delivered, in the median of the trials. Null where not even the lowest is.
    pub held_per_second: Option<u64>,
    /// Why no higher rate is held.
    pub ended_by: SweepEnd,
    /// CPU time a packet (`rr`: a transaction) at the study's fixed load; null where that was not measured.
    pub fixed_load_busy_ns_per_packet: Option<f64>,
    /// Each rate, the lowest first.
    pub points: Vec<SweepPoint>,
}

/// Why a sweep holds no higher rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SweepEnd {
    /// More than 1 % of what was offered at the next rate was not delivered.
    Loss,
    /// The sender did not reach the next rate: what the system would have held is not known.
    Sender,
    /// The sweep has no higher rate: more may be held.
    Sweep,
    /// No trial at the next rate gave a result.
    NoResult,
}

/// One rate under one setting: medians of the trials with a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepPoint {
    /// The workload that has this rate.
    pub workload: String,
    /// What was asked for, a second.
    pub asked_per_second: u64,
    /// What the senders sent a second, by their own clock. Null without a trial that gave a result.
    pub offered_per_second: Option<f64>,
    /// What arrived (`rr`: was answered) a second.
    pub delivered_per_second: Option<f64>,
    /// Share of the offered that was delivered, 0 to 1.
    pub delivered_ratio: Option<f64>,
    /// CPU time of both cores over packets delivered (`rr`: transactions).
    pub busy_ns_per_packet: Option<f64>,
    /// Half of the datagrams took no longer to the receiver's program. Null where that is not measured, and for studies
    /// of earlier versions.
    #[serde(default)]
    pub one_way_p50_ns: Option<f64>,
    /// 99 of 100 datagrams took no longer.
    #[serde(default)]
    pub one_way_p99_ns: Option<f64>,
    /// Share of the receiver's core that another program got, 0 to 1. Null where that is not measured.
    #[serde(default)]
    pub spinner_ratio: Option<f64>,
    /// Trials that gave a result.
    pub trials: u32,
}

/// Share of what is asked for that is to be offered, and of the offered that is to be delivered, for a rate to be held.
pub const HELD_SHARE: f64 = 0.99;

impl SweepPoint {
    /// Why the rate is not held; `None` if it is.
    pub fn ends(&self) -> Option<SweepEnd> {
        let (Some(offered), Some(delivered)) = (self.offered_per_second, self.delivered_ratio)
        else {
            return Some(SweepEnd::NoResult);
        };
        // A loss at a lower rate than was asked for is one all the same.
        if delivered < HELD_SHARE {
            return Some(SweepEnd::Loss);
        }
        (offered < HELD_SHARE * self.asked_per_second as f64).then_some(SweepEnd::Sender)
    }
}

/// The middle and the greatest of a share over the trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shares {
    /// Median.
    pub median_ratio: f64,
    /// The greatest.
    pub max_ratio: f64,
}

/// What the trials of one workload met under one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingFindings {
    /// The workload.
    pub workload: String,
    /// The setting that was asked for.
    pub setting: String,
    /// Trials that were run.
    pub trials: u32,
    /// Of them, those that an event from outside voids.
    pub external_trials: u32,
    /// Those that gave no result. They have no figure, unless nothing was delivered: then their rate is 0.
    pub failed_trials: u32,
    /// Those whose setting is not proven to have been in force, or whose rhythm was off. Of them only the latter have
    /// a figure.
    pub unproven_trials: u32,
    /// Those whose account of losses does not close. Their rates count.
    pub ledger_void_trials: u32,
    /// Those that lost datagrams, of those whose account closes.
    pub loss_trials: u32,
    /// How often a setting had to be proven once more before traffic counted, all trials together.
    pub proof_retries: u32,
    /// Share of a core's time that the hypervisor took, on the core where it took most. Null when unknown.
    pub steal: Option<Shares>,
    /// Share of a core's time that threads took which are not the study's, both cores together. Null when
    /// that was not measured.
    pub foreign_cpu: Option<Shares>,
    /// How far the rounds were from one a period, either way. Null unless the setting has a period.
    pub rhythm_deviation: Option<Shares>,
    /// Tasks that ran or waited to run, as averaged by the kernel over a minute: the median. Null when
    /// unknown.
    pub load_average_1min: Option<f64>,
    /// The metric of the rate, whatever gets a verdict.
    pub metric: Metric,
    /// Its median over the trials that have a figure: bits or transactions, by the metric.
    pub median_per_second: Option<f64>,
    /// Its worst decile: a tenth of those trials, at least one, came to this or worse.
    pub worst_decile_per_second: Option<f64>,
    /// The share of those trials that came to less than half the median.
    pub below_half_median_ratio: Option<f64>,
    /// The spread of each metric that gets a verdict. Empty in studies of earlier versions.
    #[serde(default)]
    pub judged: Vec<MetricSpread>,
    /// Whether the receiver's rate is even within the trials, from step to step. Null below ten steps, all trials
    /// together, and for studies of earlier versions.
    #[serde(default)]
    pub rate_within_trials: Option<RateOverTime>,
    /// Whether the rate is even from trial to trial, in the order of the blocks. Null below ten trials, and for studies
    /// of earlier versions.
    #[serde(default)]
    pub rate_over_trials: Option<RateOverTime>,
}

/// How the trials of one workload under one setting spread in one metric, in its own unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricSpread {
    /// The metric.
    pub metric: Metric,
    /// The median of the trials that have a figure.
    pub median: f64,
    /// A tenth of them, at least one, came to this or worse: to less of a rate, to more of a time or a cost.
    pub worst_decile: f64,
}

/// Name and version of the JSON that [`Studies`] becomes.
pub const STUDIES_SCHEMA: &str = "nicpoll.studies/1";

named! {
    /// What made a study. It decides which document is stored.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum StudyKind {
        /// `nicpoll demo`.
        Demo = "demo",
        /// `nicpoll study run`.
        Study = "study",
        /// `nicpoll ab`: pairs of blocks with the traffic of the moment.
        Ab = "ab",
        /// Results that another program measured.
        Imported = "imported",
    }
}

impl StudyKind {
    /// The kind that a store calls so.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

named! {
    /// How far a study has come.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum StudyState {
        /// Its program runs.
        Running = "running",
        /// It has ended, and what follows from it is stored.
        Finished = "finished",
        /// It was stopped, or failed, and said so.
        EndedEarly = "ended early",
        /// Its program was killed, or the machine went down.
        Killed = "killed",
    }
}

/// A study in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyEntry {
    /// Its number in the store.
    pub id: i64,
    /// What made it.
    pub kind: StudyKind,
    /// How far it has come.
    pub state: StudyState,
    /// Why it ended early; null in any other state.
    pub reason: Option<String>,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// How long it ran.
    pub elapsed_seconds: f64,
    /// Trials that are stored.
    pub trials_done: u32,
    /// Trials that its plan has. Time may not suffice for all of them.
    pub trials_planned: u32,
    /// Kernel that it ran on; empty of imported trials, which ran elsewhere.
    pub kernel: String,
    /// Version of nicpoll that made it.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
}

/// What a command did with the studies that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StudiesAction {
    /// `nicpoll study list`.
    Listed,
    /// `nicpoll study delete --dry-run`.
    WouldDelete,
    /// `nicpoll study delete`.
    Deleted,
}

/// Everything that `nicpoll study list --json` and `nicpoll study delete --json` print.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Studies {
    /// Name and version of this layout: [`STUDIES_SCHEMA`].
    pub schema: String,
    /// The file.
    pub store: String,
    /// What was done with the studies.
    pub action: StudiesAction,
    /// The studies, the oldest first.
    pub studies: Vec<StudyEntry>,
    /// The studies that come with the program; empty unless `action` is `listed`.
    #[serde(default)]
    pub ready: Vec<ReadyStudy>,
}

/// A study that comes with the program: `nicpoll study run NAME` runs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadyStudy {
    /// Its name.
    pub name: String,
    /// What it answers.
    pub question: String,
}
