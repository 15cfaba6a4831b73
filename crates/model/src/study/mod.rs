//! Documents of studies: the plan, the facts of hosts and settings, findings, sweeps, and the list of a store.
//!
//! [`Study`] has a whole study. `trial` has one run and its figures, `comparison` has verdicts, `hosts` has those of several
//! hosts, `imported` has runs of other tools, `search` and `tune` have what was sought by trials.

pub(crate) mod comparison;
mod hosts;
mod imported;
mod search;
pub(crate) mod trial;
pub mod tune;

pub use comparison::*;
pub use hosts::*;
pub use imported::*;
pub use search::*;
pub use trial::*;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::{HostFacts, Side, WorkUnit, named};
use crate::interface::SwitchWrite;
use crate::numbers::span;
use crate::sim::fit::Simulated;

/// Name and version of the JSON of [`Study`]. The version is raised when a reader of the previous one could be misled.
pub const SCHEMA: &str = "nicpoll.demo/4";

/// Name and version of the JSON of [`StudySearch`].
pub const STUDY_SEARCH_SCHEMA: &str = "nicpoll.study-search/1";

/// Everything that `nicpoll study search --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudySearch {
    /// [`STUDY_SEARCH_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
    /// When it began (RFC 3339).
    pub started_at: String,
    /// The goals, the strictest first.
    pub goals: Vec<SearchGoal>,
    /// The traffic.
    pub workloads: Vec<WorkloadFacts>,
    /// The settings.
    pub settings: Vec<SettingFacts>,
    /// The receiver's machine.
    pub host: HostFacts,
    /// The hosts and their link.
    pub lab: LabFacts,
    /// Each workload under each setting, as far as the search came.
    pub searches: Vec<LoadSearch>,
    /// Whether every search came to its end.
    pub is_finished: bool,
    /// Time of all.
    pub elapsed_seconds: f64,
}

/// Decisions made before the first trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Whether `--quick` requested a run that shows large effects only.
    pub quick: bool,
    /// Blocks per workload.
    pub blocks: u32,
    /// Length of the measured traffic of a trial.
    pub trial_seconds: f64,
    /// Length of the warm-up before it.
    pub warmup_seconds: f64,
    /// Length of the run after each trial in which CPU time is accounted for exactly.
    pub cpu_window_seconds: f64,
    /// How long after the last sent packet late arrivals are awaited, in addition to two periods.
    #[serde(default)]
    pub drain_seconds: f64,
    /// The longest period between rounds of any setting; null when none polls by a timer.
    pub period_ns: Option<u64>,
    /// The workloads, in the order in which they are reported.
    pub workloads: Vec<String>,
    /// Estimated duration of a trial of each workload with everything around it, before the first has run.
    #[serde(default, rename = "reckoned_trial_seconds")]
    pub estimated_trial_seconds: Vec<f64>,
    /// The random order of the trials from the seed: workload and setting, block after block.
    pub order: Vec<(String, String)>,
    /// Time limit of the study. It may take half as much again to complete a round of all workloads, or the blocks that
    /// a verdict needs.
    pub limit_seconds: f64,
    /// Estimated duration on a quiet machine; null in plans of older versions.
    #[serde(default)]
    pub estimated_seconds: Option<f64>,
    /// The comparisons, in the order in which older versions dropped them for lack of time.
    pub drop_order: Vec<ComparisonName>,
    /// The factors whose levels are crossed to make the settings; empty otherwise.
    #[serde(default)]
    pub factors: Vec<FactorFacts>,
    /// The pairs of settings compared under each workload: the judged one, and its reference.
    pub contrasts: Vec<(String, String)>,
    /// The levels of factors compared under each workload over all combinations of the other factors; empty with fewer
    /// than two factors.
    #[serde(default)]
    pub main_effects: Vec<MainEffect>,
    /// The study ends when every interval of the family is narrower than this share of its estimate; null: after its
    /// blocks.
    #[serde(default)]
    pub stop_width_ratio: Option<f64>,
    /// Number of comparisons with a verdict: the family that widens the intervals.
    pub family_comparisons: u32,
    /// Confidence of each interval of the family, 0 to 1.
    pub confidence_ratio: f64,
    /// The ratio from which on a difference matters.
    pub margin_ratio: f64,
}

impl Plan {
    /// Returns the metrics with a verdict for this pair of settings under a workload; empty if the plan does not name
    /// them.
    pub fn judged(&self, workload: &str, pair: (&str, &str)) -> &[Metric] {
        let mut all = self.drop_order.iter();
        let found =
            all.find(|one| one.workload == workload && (&*one.setting, &*one.reference) == pair);
        found.map_or(&[], |one| &one.metrics)
    }

    /// Describes how long the study takes, as the end of a sentence: the limit, and the estimate if that is far below
    /// it.
    pub fn time(&self) -> String {
        let limit = format!("ends within {}", span(self.limit_seconds));
        let estimate = self.estimated_seconds;
        match estimate.filter(|estimate| 1.3 * estimate < self.limit_seconds) {
            Some(estimate) => format!("takes about {} and {limit}", span(estimate)),
            None => limit,
        }
    }
}

/// The settings that a comparison is about, and the workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonName {
    /// The workload.
    pub workload: String,
    /// The judged setting.
    pub setting: String,
    /// The setting it is judged against.
    pub reference: String,
    /// The metrics with a verdict, most important first. Empty in studies of earlier versions: the rate.
    #[serde(default)]
    pub metrics: Vec<Metric>,
}

/// A comparison that was dropped because not all planned blocks would have fitted into the study's time. Only the
/// duration of blocks decided this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DroppedComparison {
    /// The comparison.
    #[serde(flatten)]
    pub comparison: ComparisonName,
    /// Its blocks completed by then.
    pub blocks_done: u32,
}

/// The lab that the study built.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabFacts {
    /// Whether the link is virtual, without a card: true of links that the study creates.
    pub is_virtual: bool,
    /// Name of the receiver's interface; in a lab that the study creates, the sender's has the same name.
    pub interface: String,
    /// Its driver.
    pub driver: String,
    /// Speed of the line between the hosts, each way; null without a line.
    pub line_bits_per_second: Option<u64>,
    /// Why there is no line; null when there is one.
    pub no_line_because: Option<String>,
    /// Link MTU in bytes.
    pub mtu_bytes: u32,
    /// Slots of the receive ring, if it is in use; null when the driver does not report them.
    pub ring_slots: Option<u32>,
    /// Inode numbers of the namespaces.
    pub netns_inodes: Vec<(Side, u64)>,
    /// Addresses with prefix length.
    pub addresses: Vec<(Side, String)>,
    /// Names under which the namespaces were kept; empty unless requested.
    pub kept_as: Vec<String>,
    /// CPU of the sending thread.
    pub sender_cpu: u32,
    /// CPU of the receiving thread.
    pub receiver_cpu: u32,
    /// How the sender passes datagrams to the kernel: always `one datagram a send call`.
    pub send_mode: String,
    /// How the receiver reads them.
    pub receive_mode: String,
    /// The hosts in the order of a packet's path, if each is a machine of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<LabHost>,
}

/// A machine of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabHost {
    /// Its role: sender, router or receiver.
    pub host: String,
    /// Where ssh(1) goes; null for the controller's machine, and in a report.
    pub ssh: Option<String>,
    /// Its interfaces of the test traffic.
    pub interfaces: Vec<String>,
    /// The machine.
    pub machine: HostFacts,
    /// Whether one of these interfaces carries the ssh connection: its packets are in the counters.
    pub carries_ssh: bool,
}

impl LabHost {
    /// Removes the fields that identify the machine to strangers.
    fn leave_out_names(&mut self) {
        self.ssh = None;
        self.machine.leave_out_names();
    }
}

/// A workload and its properties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadFacts {
    /// The workload.
    pub workload: String,
    /// Its description.
    pub description: String,
    /// The unit in which its work is counted, and by which its CPU time is divided.
    pub unit: WorkUnit,
    /// Bytes of UDP payload in each datagram; null for a stream.
    pub datagram_bytes: Option<u32>,
    /// Requested rate of all its senders together, in datagrams (`rr`: requests) per second. Null at full speed or with
    /// recorded timing, and in studies of earlier versions.
    #[serde(default)]
    pub asked_per_second: Option<u64>,
    /// The metrics compared. Empty in studies of earlier versions.
    #[serde(default)]
    pub metrics: Vec<Metric>,
    /// Of these, the metrics with a verdict for this kind of traffic, unless a comparison names others.
    #[serde(default)]
    pub judged: Vec<Metric>,
    /// Its rate, if it belongs to a sweep; null otherwise.
    #[serde(default)]
    pub load: Option<SweptLoad>,
    /// The name that `nicpoll study import` gives to traffic of this kind; null if other programs have no such traffic.
    #[serde(default)]
    pub kind: Option<String>,
}

/// A setting's meaning in this study, in words and values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingFacts {
    /// The setting.
    pub setting: String,
    /// Its name in a sentence.
    pub noun: String,
    /// Its description.
    pub description: String,
    /// Each value it writes: side, name, value.
    pub writes: Vec<(Side, String, String)>,
    /// Each machine-wide value it writes: name, value.
    #[serde(default)]
    pub machine_writes: Vec<(String, String)>,
    /// Each value it writes at the router: name, value. Empty without a router.
    #[serde(default)]
    pub router_writes: Vec<(String, String)>,
    /// Words it inserts into the user's own command, by name.
    #[serde(default)]
    pub variant: BTreeMap<String, String>,
    /// Its level of each factor; empty without factors.
    #[serde(default)]
    pub levels: Vec<LevelFacts>,
}

impl SettingFacts {
    /// Whether another setting writes the same values everywhere: then a setting is compared with itself.
    pub fn is_same_as(&self, other: &SettingFacts) -> bool {
        self.all_writes().eq(other.all_writes())
    }

    /// Returns each value that it writes: where (`sender`, `receiver`, `router`, `machine`, or `command` for a word of
    /// the user's own command), its name and the value.
    pub fn all_writes(&self) -> impl Iterator<Item = (&'static str, &String, &String)> {
        let sides = self.writes.iter();
        let sides = sides.map(|(side, name, value)| (side.name(), name, value));
        let router = self.router_writes.iter().map(|it| ("router", it));
        let machine = self.machine_writes.iter().map(|it| ("machine", it));
        let others = router
            .chain(machine)
            .map(|(place, (name, value))| (place, name, value));
        let words = self.variant.iter();
        let words = words.map(|(name, word)| ("command", name, word));
        sides.chain(others).chain(words)
    }
}

/// The changes of a setting at one host when it was first in force in a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingChanges {
    /// The setting.
    pub setting: String,
    /// The host, as settings name it: `sender`, `router`, `receiver` or `machine`.
    pub host: String,
    /// Each changed value, before and after. A timeout that is adjusted has its value at that moment.
    pub writes: Vec<SwitchWrite>,
}

/// A factor in which settings differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactorFacts {
    /// The factor.
    pub factor: String,
    /// Its levels; each is compared with the first, unless the plan's contrasts say otherwise.
    pub levels: Vec<String>,
}

/// Two levels of a factor, compared over all combinations of the other factors' levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MainEffect {
    /// The factor.
    pub factor: String,
    /// The judged level.
    pub level: String,
    /// The level it is judged against.
    pub reference: String,
    /// The settings compared within each combination, the judged one first.
    pub settings: Vec<(String, String)>,
}

/// A setting's level of a factor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LevelFacts {
    /// The factor.
    pub factor: String,
    /// The level.
    pub level: String,
}

/// A BPF program that counts kernel events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventCounter {
    /// Counts polls while rates are measured. Each poll is an event.
    Polls,
    /// Accounts for CPU time, in a window of its own only. Thread switches, and begins and ends of interrupts and
    /// system calls are its events.
    CpuTime,
}

/// Cost of a counter under one workload and setting, measured in the same study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountingCost {
    /// The counter.
    pub counter: EventCounter,
    /// The traffic.
    pub workload: String,
    /// The setting.
    pub setting: String,
    /// Mean run time of the counter's programs per event, by the kernel's BPF statistics.
    pub ns_per_event: Option<f64>,
    /// Events per second during that measurement; for CPU time, on the whole machine.
    pub events_per_second: Option<f64>,
    /// Delivered rate with the counter over the rate without it: geometric mean of the pairs.
    pub delivered_ratio: Option<f64>,
    /// 95 % interval of that ratio: lower end.
    pub delivered_ratio_low: Option<f64>,
    /// 95 % interval of that ratio: upper end.
    pub delivered_ratio_high: Option<f64>,
    /// Number of compared pairs of runs.
    pub pairs: u32,
}

/// The subject of a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarningName {
    /// More packets per period were offered than the ring holds.
    RingCeiling,
    /// Trials were void.
    VoidTrials,
    /// Fewer than sixteen blocks.
    LargeEffectsOnly,
    /// Comparisons were dropped, because not all planned blocks fitted into the time.
    ComparisonsDropped,
    /// Differences of neighbouring blocks are correlated, so every interval is too narrow.
    DependentBlocks,
    /// Threads outside the study took more than a tenth of a core.
    ForeignWork,
    /// The study was ended and resumed, or is not finished.
    Interrupted,
    /// A counter could not be read.
    CounterMissing,
    /// The machine disturbs measurements, or settings differ in more than the compared quantity.
    Confounder,
    /// The time was over before all blocks were run or the intervals were narrow enough, or was exceeded. Of a plan: the
    /// estimate leaves something out.
    LimitCameFirst,
    /// A polling setting cannot be in force: packets bypass the NAPI.
    NeverInForce,
}

/// A caveat that the reader should know before trusting a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Its subject.
    pub name: WarningName,
    /// The sentence, with a remedy.
    pub text: String,
}

/// A difference between two compared settings other than the intended one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Confounder {
    /// The judged setting.
    pub setting: String,
    /// The setting it is judged against.
    pub reference: String,
    /// The host and the value's name.
    pub name: String,
    /// The value under the setting; null: it does not exist, or is left at its default.
    pub value: Option<String>,
    /// The value under the reference; null likewise.
    pub reference_value: Option<String>,
    /// Whether the settings request it; false when it is a side effect.
    pub is_asked: bool,
}

/// Everything that `nicpoll demo --json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Study {
    /// Name and version of this layout: [`SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// Its duration.
    pub elapsed_seconds: f64,
    /// The question that the study answers.
    pub question: String,
    /// Seed of the random order: the same seed and options give the same order.
    pub seed: u64,
    /// The plan.
    pub plan: Plan,
    /// The machine.
    pub host: HostFacts,
    /// The lab.
    pub lab: LabFacts,
    /// The workloads.
    pub workloads: Vec<WorkloadFacts>,
    /// The settings.
    pub settings: Vec<SettingFacts>,
    /// The changes that each setting made and undid. Empty for a setting that changes nothing, and in studies of
    /// earlier versions.
    #[serde(default)]
    pub setting_changes: Vec<SettingChanges>,
    /// Cost of counters, under each workload and setting with events to count.
    pub counting_costs: Vec<CountingCost>,
    /// Every trial in the order of running, void ones included.
    pub trials: Vec<Trial>,
    /// Comparisons that older versions dropped for lack of time, in that order; empty since.
    pub dropped: Vec<DroppedComparison>,
    /// The simulator's predictions for the same traffic; null unless requested.
    #[serde(default)]
    pub simulated: Option<Simulated>,
    /// Other differences between the compared settings.
    #[serde(default)]
    pub confounders: Vec<Confounder>,
    /// Findings about the trials of each setting.
    pub findings: Vec<SettingFindings>,
    /// The comparisons, with their verdicts.
    pub comparisons: Vec<Comparison>,
    /// Offered against delivered load of each sweep; empty without a sweep.
    #[serde(default)]
    pub sweeps: Vec<Sweep>,
    /// The greatest sustained rates found before the first trial, if a sweep's rates are shares of them.
    #[serde(default)]
    pub knees: Vec<Knee>,
    /// Caveats.
    pub warnings: Vec<Warning>,
}

impl Study {
    /// Removes what identifies its machines to strangers.
    pub fn leave_out_names(&mut self) {
        self.host.leave_out_names();
        for host in &mut self.lab.hosts {
            // A lost host is named with its address.
            if let Some(ssh) = &host.ssh {
                let shown = format!(" ({ssh})");
                let reasons = self.trials.iter_mut().map(|it| &mut it.validity.external);
                for reason in reasons.flatten() {
                    *reason = reason.replace(&shown, "");
                }
            }
            host.leave_out_names();
        }
    }

    /// Counts the blocks of a workload in which a trial was run.
    fn blocks_run(&self, workload: &str) -> u32 {
        let own = self.trials.iter().filter(|one| one.workload == workload);
        let blocks: BTreeSet<u32> = own.map(|one| one.block).collect();
        u32::try_from(blocks.len()).unwrap_or(u32::MAX)
    }

    /// Returns the number of blocks of the workload with the most.
    pub fn blocks_most(&self) -> u32 {
        let workloads = self.plan.workloads.iter();
        let run = workloads.map(|workload| self.blocks_run(workload));
        run.max().unwrap_or(0)
    }
}

/// Name and version of the JSON of [`StudyPlan`].
pub const STUDY_PLAN_SCHEMA: &str = "nicpoll.study-plan/1";

/// The document of `nicpoll study run --dry-run`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyPlan {
    /// Name and version of this layout.
    pub schema: String,
    /// The question that the study answers.
    pub question: String,
    /// Seed of the order.
    pub seed: u64,
    /// Times, blocks, order and comparisons.
    pub plan: Plan,
    /// The link between the hosts.
    #[serde(default)]
    pub link: String,
    /// The workloads.
    pub workloads: Vec<WorkloadFacts>,
    /// The settings, with every value they write.
    pub settings: Vec<SettingFacts>,
    /// Caveats before the run.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// The load of one workload of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweptLoad {
    /// The swept workload of the study file.
    pub sweep: String,
    /// Requested datagrams (`rr`: requests) per second, of all senders together. Null in a plan if it is a share of a
    /// knee that is still to be found.
    pub asked_per_second: Option<u64>,
    /// Share of the [`Knee`]: 0.5 is half of it. Null if the rate was given as a number.
    pub knee_ratio: Option<f64>,
}

/// The greatest rate sustained under every setting, found by trials before those that count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knee {
    /// The swept workload of the study file.
    pub sweep: String,
    /// The rate: datagrams (`rr`: requests) per second, of all senders together.
    pub asked_per_second: u64,
    /// Results of the trials at this rate, by setting.
    pub shown: Vec<KneePoint>,
}

/// Results of trials at the knee under one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KneePoint {
    /// The setting.
    pub setting: String,
    /// The medians of two or three trials.
    #[serde(flatten)]
    pub point: SweepPoint,
}

/// A workload at several rates under every setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// The swept workload of the study file.
    pub sweep: String,
    /// The unit that the rates count.
    pub unit: WorkUnit,
    /// Half load, at which CPU time is compared: the greatest rate of the sweep up to half of the knee or, without a
    /// knee, up to half of the least rate sustained by any setting. Null if there is none.
    pub fixed_load_per_second: Option<u64>,
    /// Full load, at which CPU time is also compared: the greatest rate up to the whole of that, or the lowest rate if
    /// some setting sustains none. Null in studies of earlier versions.
    #[serde(default)]
    pub full_load_per_second: Option<u64>,
    /// Result of each setting, in the study's order.
    pub settings: Vec<SweptSetting>,
}

/// Result of one setting in a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweptSetting {
    /// The setting.
    pub setting: String,
    /// The greatest requested rate that is held, along with every lower one: in the median of the trials 99 % of it is
    /// offered, and 99 % of the offered delivered. Null if not even the lowest is.
    pub held_per_second: Option<u64>,
    /// Why no higher rate is held.
    pub ended_by: SweepEnd,
    /// CPU time per packet (`rr`: transaction) at the study's fixed load; null if it was not measured.
    pub fixed_load_busy_ns_per_packet: Option<f64>,
    /// Every rate, lowest first.
    pub points: Vec<SweepPoint>,
}

/// Why no higher rate of a sweep is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SweepEnd {
    /// At the next rate, more than 1 % of the offered load was lost.
    Loss,
    /// The sender did not reach the next rate, so the system's limit is unknown.
    Sender,
    /// The sweep has no higher rate, so the limit may be higher.
    Sweep,
    /// No trial at the next rate gave a result.
    NoResult,
}

/// One rate under one setting: medians of the trials with a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepPoint {
    /// The workload with this rate.
    pub workload: String,
    /// Requested rate per second.
    pub asked_per_second: u64,
    /// Rate per second that the senders sent, by their own clock. Null without a trial with a result.
    pub offered_per_second: Option<f64>,
    /// Rate per second that arrived (`rr`: was answered).
    pub delivered_per_second: Option<f64>,
    /// Share of the offered load that was delivered, 0 to 1.
    pub delivered_ratio: Option<f64>,
    /// CPU time of both cores per delivered packet (`rr`: transaction).
    pub busy_ns_per_packet: Option<f64>,
    /// Median delay of datagrams to the receiver's program. Null if not measured, and for studies of earlier versions.
    #[serde(default)]
    pub one_way_p50_ns: Option<f64>,
    /// 99th percentile of that delay.
    #[serde(default)]
    pub one_way_p99_ns: Option<f64>,
    /// Share of the receiver's core that another program got, 0 to 1. Null if not measured.
    #[serde(default)]
    pub spinner_ratio: Option<f64>,
    /// Number of trials with a result.
    pub trials: u32,
}

/// A rate is held if this share of the request is offered, and this share of the offered is delivered.
pub const HELD_SHARE: f64 = 0.99;

impl SweepPoint {
    /// Returns why the rate is not held; `None` if it is.
    pub fn ends(&self) -> Option<SweepEnd> {
        let (Some(offered), Some(delivered)) = (self.offered_per_second, self.delivered_ratio)
        else {
            return Some(SweepEnd::NoResult);
        };
        // Loss decides even if less was offered than requested.
        if delivered < HELD_SHARE {
            return Some(SweepEnd::Loss);
        }
        (offered < HELD_SHARE * self.asked_per_second as f64).then_some(SweepEnd::Sender)
    }
}

/// Median and maximum of a share over the trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shares {
    /// Median.
    pub median_ratio: f64,
    /// Maximum.
    pub max_ratio: f64,
}

/// Findings about the trials of one workload under one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingFindings {
    /// The workload.
    pub workload: String,
    /// The requested setting.
    pub setting: String,
    /// Number of trials.
    pub trials: u32,
    /// Of these, trials void because of an external event.
    pub external_trials: u32,
    /// Trials without a result. They have no figure, unless nothing was delivered: then their rate is 0.
    pub failed_trials: u32,
    /// Trials whose setting is not proven to have been in force, or whose rounds were off their period. Only the latter
    /// have a figure.
    pub unproven_trials: u32,
    /// Trials whose account of losses does not close. Their rates count.
    pub ledger_void_trials: u32,
    /// Trials with lost datagrams, among those whose account closes.
    pub loss_trials: u32,
    /// How often proof of a setting was repeated before traffic counted, in all trials together.
    pub proof_retries: u32,
    /// Share of a core's time that the hypervisor took, on the core most affected. Null when unknown.
    pub steal: Option<Shares>,
    /// Share of a core's time used by threads outside the study, both cores together. Null if not measured.
    pub foreign_cpu: Option<Shares>,
    /// Deviation of the rounds from one per period, in either direction. Null unless the setting has a period.
    pub rhythm_deviation: Option<Shares>,
    /// Median of the kernel's one-minute load average (tasks running or waiting to run). Null when unknown.
    pub load_average_1min: Option<f64>,
    /// The metric of the rate, whichever metrics have a verdict.
    pub metric: Metric,
    /// Its median over the trials with a figure: bits or transactions, by metric.
    pub median_per_second: Option<f64>,
    /// Its worst decile: a tenth of those trials, at least one, reached this or worse.
    pub worst_decile_per_second: Option<f64>,
    /// The share of those trials below half the median.
    pub below_half_median_ratio: Option<f64>,
    /// The spread of each metric with a verdict. Empty in studies of earlier versions.
    #[serde(default)]
    pub judged: Vec<MetricSpread>,
    /// Whether the receiver's rate is constant within the trials, from step to step. Null below ten steps in all trials
    /// together, and for studies of earlier versions.
    #[serde(default)]
    pub rate_within_trials: Option<RateOverTime>,
    /// Whether the rate is constant from trial to trial, in block order. Null below ten trials, and for studies of
    /// earlier versions.
    #[serde(default)]
    pub rate_over_trials: Option<RateOverTime>,
}

/// The spread of one metric over the trials of one workload under one setting, in the metric's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricSpread {
    /// The metric.
    pub metric: Metric,
    /// The median of the trials with a figure.
    pub median: f64,
    /// A tenth of them, at least one, reached this or worse: a lower rate, or a higher time or cost.
    pub worst_decile: f64,
}

/// Name and version of the JSON of [`Studies`].
pub const STUDIES_SCHEMA: &str = "nicpoll.studies/1";

named! {
    /// The command that made a study. It determines the type of the stored document.
    #[serde(rename_all = "snake_case")]
    pub enum StudyKind {
        /// `nicpoll demo`.
        Demo = "demo",
        /// `nicpoll study run`.
        Study = "study",
        /// `nicpoll ab`: pairs of blocks under live traffic.
        Ab = "ab",
        /// Results measured by another program.
        Imported = "imported",
    }
}

impl StudyKind {
    /// Returns the kind of a name in a store.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

named! {
    /// The state of a study.
    #[serde(rename_all = "snake_case")]
    pub enum StudyState {
        /// Its program is running.
        Running = "running",
        /// It has ended, and its conclusions are stored.
        Finished = "finished",
        /// It was stopped or failed, and recorded that.
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
    /// The command that made it.
    pub kind: StudyKind,
    /// Its state.
    pub state: StudyState,
    /// Why it ended early; null in other states.
    pub reason: Option<String>,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// Its duration.
    pub elapsed_seconds: f64,
    /// Stored trials.
    pub trials_done: u32,
    /// Planned trials. Time may not suffice for all.
    pub trials_planned: u32,
    /// Kernel of its machine; empty for imported trials, which ran elsewhere.
    pub kernel: String,
    /// Version of nicpoll that made it.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
}

/// What a command did with the studies it names.
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
    /// The store's file.
    pub store: String,
    /// The action.
    pub action: StudiesAction,
    /// The studies, oldest first.
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
    /// The question it answers.
    pub question: String,
}
