//! Documents about interfaces and machines: `show`, `set`, `watch` and `doctor`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cpu::{CoreStateTimes, CpuSource, CpuStates, EventCost};
use crate::document::{Origin, named};
use crate::loss::LossPlace;

/// Name and version of the JSON of [`Show`].
pub const SHOW_SCHEMA: &str = "nicpoll.show/2";

named! {
    /// How an interface learns of packets.
    #[serde(rename_all = "snake_case")]
    pub enum Discipline {
        /// Arrivals wake the receiver.
        Interrupt = "interrupt",
        /// A timer wakes the receiver; arrivals do not.
        Polling = "polling",
        /// Sometimes a timer wakes the receiver, sometimes an arrival.
        Hybrid = "hybrid",
        /// Polled without pause, by a kernel thread or an application.
        BusyPoll = "busy-poll",
        /// No receive NAPI instance: packets pass through a CPU's backlog.
        Backlog = "backlog",
        /// Too little happened to tell.
        Idle = "idle",
        /// No queue of its own: interfaces below have queues, or a program hands it packets.
        Elsewhere = "-",
    }
}

/// Interfaces of one network namespace, at one moment or over a short time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Show {
    /// [`SHOW_SCHEMA`].
    pub schema: String,
    /// The program that made the document.
    #[serde(flatten)]
    pub origin: Origin,
    /// The namespace's name as given; null: the program's own.
    pub netns: Option<String>,
    /// How long polls were watched; null when they were not.
    pub look_seconds: Option<f64>,
    /// Cost of watching, with the kernel's timing of the programs, measured in a short look after the long one; null
    /// when it was not measured. Events are polls and timers; when storms are detected, also thread switches,
    /// interrupts and system calls.
    pub look_cost: Option<EventCost>,
    /// Back-to-back handler entries from which on interrupts are a storm; 0: detection is off.
    pub storm_threshold_entries: u64,
    /// The interfaces.
    pub interfaces: Vec<InterfaceShow>,
    /// What could not be observed, and what that takes.
    pub unseen: Vec<Unseen>,
}

/// Something that could not be observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unseen {
    /// The quantity.
    pub what: String,
    /// The reason, and what observing it takes.
    pub why: String,
}

/// One interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceShow {
    /// Name.
    pub name: String,
    /// Index within its namespace.
    pub ifindex: u32,
    /// Driver; null without one.
    pub driver: Option<String>,
    /// Interfaces at which its packets arrive, if it has no queue of its own; `setting` and `evidence` are then theirs.
    pub lower: Vec<String>,
    /// Whether it is up.
    pub is_up: bool,
    /// Link speed; null when the driver does not report one.
    pub link_bits_per_second: Option<u64>,
    /// Receive queues.
    pub rx_queues: Option<u32>,
    /// Transmit queues.
    pub tx_queues: Option<u32>,
    /// Slots of one receive ring; null when the driver does not report them.
    pub rx_ring_slots: Option<u32>,
    /// Whether GRO is on: received packets are merged.
    pub has_gro: Option<bool>,
    /// The driver's parameters of interrupt moderation, by ethtool's names.
    pub moderation: BTreeMap<String, u32>,
    /// Interrupts of the device.
    pub interrupts: Vec<InterruptShow>,
    /// Receive NAPI instances; null when this kernel cannot list them.
    pub napis: Option<Vec<NapiShow>>,
    /// Its discipline by its settings; null when they cannot be read.
    pub setting: Option<Finding>,
    /// Its discipline by its polls; null when they were not watched.
    pub evidence: Option<Finding>,
    /// Packet rate that its polls can take; null when rings or rounds are not known.
    pub ceiling: Option<Ceiling>,
    /// Packets received during the look.
    pub rx_packets_per_second: Option<f64>,
    /// Values that 'nicpoll set' wrote and somebody else changed since; null when the journal cannot be read.
    pub drift: Option<Vec<DriftShow>>,
    /// An unconfirmed change of 'nicpoll set', 'demo' or 'watch'; null when there is none, or the journal cannot be
    /// read.
    pub pending: Option<PendingShow>,
    /// FreeBSD's variables, in the order of its source, after `enable` and `hz`.
    pub kern_polling: Vec<PollingVariable>,
}

/// A discipline, and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The discipline.
    pub discipline: Discipline,
    /// The reason.
    pub why: String,
}

/// One interrupt of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterruptShow {
    /// Number.
    pub irq: u32,
    /// Its users, as the kernel lists them.
    pub description: String,
    /// CPUs that take it now, as a list (`0-1`); null when the kernel does not report them.
    pub cpus: Option<String>,
    /// Interrupts since boot.
    pub total_interrupts: u64,
    /// Interrupts during the look.
    pub interrupts_per_second: Option<f64>,
    /// Whether its handlers were entered back to back as often as the threshold says: an approximation of FreeBSD's
    /// interrupt storm. Null when storms were not detected.
    pub is_storm: Option<bool>,
}

/// A value that differs from the one 'nicpoll set' wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriftShow {
    /// Its name.
    pub name: String,
    /// The value written.
    pub written: String,
    /// The value now; null when it no longer exists.
    pub now: Option<String>,
}

/// A change that undoes itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PendingShow {
    /// The process that undoes the change when its time has come or its program has ended.
    pub owner_pid: u32,
    /// Whether that process still runs. If not, the next command that changes settings undoes the change.
    pub is_owner_alive: bool,
    /// Time until the change is undone unless confirmed; below 0: overdue; null: it lasts as long as its program.
    pub undone_in_seconds: Option<f64>,
}

/// One NAPI instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NapiShow {
    /// Id.
    pub id: u32,
    /// Its interrupt, if the driver reports it.
    pub irq: Option<u32>,
    /// Receive queues that it serves, if the driver reports them.
    pub rx_queues: Vec<u32>,
    /// Empty polls for which the interrupt stays masked.
    pub defer_hard_irqs: u32,
    /// Time from the end of a round to the next poll; 0: no timer.
    pub gro_flush_timeout_ns: u64,
    /// How long an application may keep interrupts masked; null when this kernel has no such setting.
    pub irq_suspend_timeout_ns: Option<u64>,
    /// 0: softirqs poll; 1: a kernel thread polls; 2: it polls without pause; null when this kernel does not report it.
    pub threaded: Option<u32>,
    /// The thread that polls.
    pub thread: Option<ThreadShow>,
    /// Its discipline by its settings.
    pub setting: Finding,
    /// Its polls during the look.
    pub rhythm: Option<Rhythm>,
}

/// A thread that polls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadShow {
    /// Process id.
    pub pid: u32,
    /// Name.
    pub name: String,
    /// State, by the kernel's letter: `R` running, `S` sleeping, `I` idle.
    pub state: char,
    /// CPUs that it may use, as a list.
    pub cpus: Option<String>,
}

/// The polls of a NAPI instance during the look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rhythm {
    /// Its discipline by its polls.
    pub evidence: Finding,
    /// Polls.
    pub polls: u64,
    /// Rounds: sequences of polls that end with a poll below its budget.
    pub rounds: u64,
    /// Rounds that the instance's own timer started.
    pub timer_rounds: u64,
    /// Packets that the polls took.
    pub packets: u64,
    /// Mean packets per poll; null without polls.
    pub packets_per_poll: Option<f64>,
    /// Median time from a round to the timer round after it; null without timer rounds.
    pub median_gap_ns: Option<u64>,
    /// Packets per poll, and the number of such polls; 65 includes larger ones.
    pub packets_histogram: Vec<(u32, u64)>,
    /// Lower end of a class of these times in ns, a sixteenth of an octave wide, and the number of times in it.
    pub gaps_histogram: Vec<(u64, u64)>,
    /// CPUs that polled, with the number of polls.
    pub polls_by_cpu: Vec<(u32, u64)>,
}

/// Packet rate that an interface's polls can take: the slots of its rings, that many times per second. Packets that
/// arrive during a round come on top.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// Slots of all receive rings together.
    pub slots: u64,
    /// Rounds per second of one instance.
    pub rounds_per_second: f64,
    /// Their product.
    pub packets_per_second: f64,
    /// Whether the rounds were measured; otherwise they are computed from the timeout.
    pub is_measured: bool,
}

named! {
    /// The source of a variable's value.
    #[serde(rename_all = "snake_case")]
    pub enum ValueSource {
        /// Measured during the look.
        Measured = "measured",
        /// The present setting.
        Set = "set",
        /// No value; the note says why.
        None = "-",
    }
}

/// A variable under `kern.polling`, or its counterpart on Linux.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PollingVariable {
    /// Its name without the prefix `kern.polling.`.
    pub name: String,
    /// Its value; null when it has none.
    pub value: Option<f64>,
    /// Its source.
    pub source: ValueSource,
    /// Its counterpart here, or why it has none.
    pub note: String,
}

/// Name and version of the JSON of [`SwitchRun`].
pub const SET_SCHEMA: &str = "nicpoll.set/1";

/// One run of `nicpoll set` or `nicpoll restore`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchRun {
    /// [`SET_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
    /// When the command began (RFC 3339, UTC).
    pub started_at: String,
    /// The namespace's name as given; null: the program's own.
    pub netns: Option<String>,
    /// Whether nothing was written, and the document lists what would have been.
    pub is_dry_run: bool,
    /// Values: first those set, in the order written, then those put back.
    pub writes: Vec<SwitchWrite>,
    /// Whether some NAPI instances or threads appear only with these writes, and are not listed.
    pub is_open_ended: bool,
    /// Files that restore the settings at boot, with their changes.
    pub files: Vec<SwitchFile>,
    /// Time until the change undoes itself unless confirmed; null: it stays.
    pub undone_after_seconds: Option<f64>,
    /// Interfaces that were put back.
    pub restored: Vec<SwitchRestored>,
    /// What the interfaces' polls showed after the change.
    pub proofs: Vec<SwitchProof>,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchWrite {
    /// The interface.
    pub interface: String,
    /// Inode number of its network namespace.
    pub netns_inode: u64,
    /// The NAPI instance that owns the value; null: the interface itself.
    pub napi_id: Option<u32>,
    /// The value's name in the kernel.
    pub name: String,
    /// The value before.
    pub before: SwitchValue,
    /// The value after.
    pub after: SwitchValue,
    /// Whether the kernel changed it along with another value, or it was not changed.
    pub is_implied: bool,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SwitchValue {
    /// A number, in the kernel's unit of that value (`gro_flush_timeout`: ns), or 0 and 1 for off and on.
    Number(u64),
    /// CPUs.
    Cpus(Vec<u32>),
    /// A scheduling class with its numbers, in words; or the text of a sysctl.
    Words(String),
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchFile {
    /// Its path.
    pub path: String,
    /// Its text before, or the target of a link; null: it did not exist.
    pub before: Option<String>,
    /// Its text after; null: it was removed.
    pub after: Option<String>,
}

/// An interface that was put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchRestored {
    /// The interface, with its host if that is another one.
    pub interface: String,
    /// Whether every value was read back and is as it was.
    pub is_as_before: bool,
    /// What somebody else had changed meanwhile, or why the interface could not be put back.
    pub notes: Vec<String>,
}

/// The observed discipline of an interface after a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchProof {
    /// The interface.
    pub interface: String,
    /// How long its polls were watched; null when they were not.
    pub look_seconds: Option<f64>,
    /// Its discipline by its settings; null when they cannot be read.
    pub setting: Option<Finding>,
    /// Its discipline by its polls; null when they were not watched.
    pub evidence: Option<Finding>,
    /// Whether the two agree; null when too little happened to tell.
    pub is_proven: Option<bool>,
    /// What could not be observed.
    pub unseen: Vec<Unseen>,
}

/// Name and version of the JSON lines of `nicpoll watch`.
pub const WATCH_SCHEMA: &str = "nicpoll.watch/3";

/// The beginning of a watch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchStart {
    /// [`WATCH_SCHEMA`].
    pub schema: String,
    /// The program that made the document.
    #[serde(flatten)]
    pub origin: Origin,
    /// The namespace's name as given; null: the program's own.
    pub netns: Option<String>,
    /// Requested length of intervals.
    pub interval_seconds: f64,
    /// Back-to-back handler entries from which on interrupts are a storm; 0: detection is off.
    pub storm_threshold_entries: u64,
    /// What could not be observed, and what that takes.
    pub unseen: Vec<Unseen>,
}

/// One interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchSample {
    /// From the start to the end of the interval.
    pub elapsed_seconds: f64,
    /// Actual length.
    pub seconds: f64,
    /// The watched interfaces, by index; null when they could not be listed.
    pub interfaces: Option<Vec<WatchInterface>>,
    /// How CPU time was measured.
    pub cpu_source: CpuSource,
    /// Shares of each core's time.
    pub cpu: Vec<CpuStates>,
    /// Time of each core by state since the start; null when it was tick-sampled.
    pub cpu_times: Option<Vec<CoreStateTimes>>,
    /// Thread switches of the whole machine.
    pub context_switches_per_second: f64,
    /// Interrupts of the whole machine by source, then soft interrupts by kind, without those that never occurred; null
    /// when they cannot be read.
    pub interrupts: Option<Vec<WatchInterrupt>>,
    /// Lost packets by place, in the order in which a packet passes the places.
    pub drops: Vec<WatchDrops>,
    /// Counters of IP and UDP.
    pub protocols: Vec<WatchCounter>,
    /// Cost of watching.
    pub cost: WatchCost,
}

/// One interface in an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchInterface {
    /// Its name.
    pub name: String,
    /// Its index within the namespace.
    pub ifindex: u32,
    /// Received.
    pub rx: WatchFlow,
    /// Sent.
    pub tx: WatchFlow,
    /// Its discipline, by what started its rounds of polls; null when polls were not watched.
    pub discipline: Option<Discipline>,
    /// Calls of its NAPI instances' poll functions; null when they were not watched.
    pub polls_per_second: Option<f64>,
    /// Mean packets per poll; null without polls.
    pub packets_per_poll: Option<f64>,
    /// Packets per poll, and the number of such polls in the interval; the last, 65, includes larger ones.
    pub packets_histogram: Option<Vec<(u32, u64)>>,
    /// Its polls since the start, over the intervals in which they were watched; null without one.
    pub polls: Option<WatchPolls>,
}

/// Polls of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchPolls {
    /// CPUs that polled, with the number of polls.
    pub polls_by_cpu: Vec<(u32, u64)>,
    /// Packets, by the polls' own report of their work.
    pub packets: u64,
    /// Packets per poll, and the number of such polls; the last, 65, includes larger ones.
    pub packets_histogram: Vec<(u32, u64)>,
}

/// Packets and bytes in one direction, by the interface's counters: bytes with the Ethernet header, without checksum,
/// preamble and gap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchFlow {
    /// In this interval; null when the interface did not exist at its beginning, or its counters were reset.
    pub packets_per_second: Option<f64>,
    /// In this interval.
    pub bytes_per_second: Option<f64>,
    /// Greatest rate of an interval so far.
    pub peak_packets_per_second: Option<f64>,
    /// Greatest rate of an interval so far.
    pub peak_bytes_per_second: Option<f64>,
    /// Since the interface was created.
    pub total_packets: u64,
    /// Since the interface was created.
    pub total_bytes: u64,
}

/// One source of interrupts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchInterrupt {
    /// Its number, or its name if it has none (`LOC`); for a soft interrupt its kind (`NET_RX`).
    pub irq: String,
    /// Its use, as the kernel lists it; `softirq` for a soft interrupt.
    pub description: String,
    /// Since boot, on all CPUs.
    pub total_interrupts: u64,
    /// In this interval; null when the source is new.
    pub interrupts_per_second: Option<f64>,
    /// Whether its handlers were entered back to back as often as the threshold says: an approximation of FreeBSD's
    /// interrupt storm. Null when storms were not detected.
    pub is_storm: Option<bool>,
}

/// Lost packets of one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchDrops {
    /// The place.
    pub place: LossPlace,
    /// Since the start, over the intervals with a known count; null without one.
    pub packets: Option<u64>,
    /// In this interval; null when the count is not known.
    pub packets_per_second: Option<f64>,
}

/// One counter of a protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchCounter {
    /// `Protocol.Name` of /proc/net/snmp, or the name in /proc/net/snmp6.
    pub name: String,
    /// Since the start.
    pub events: u64,
    /// In this interval.
    pub events_per_second: f64,
}

/// Cost of watching itself, in shares of one core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchCost {
    /// CPU time of the program.
    pub process_cpu_ratio: f64,
    /// Run time of its BPF programs, without the cost of timing them, over the last period in which the kernel timed
    /// them; null without BPF programs, or when they could not be timed.
    pub bpf_cpu_ratio: Option<f64>,
}

/// The whole watch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchEnd {
    /// From the start to the end of the last interval.
    pub elapsed_seconds: f64,
    /// Number of intervals.
    pub intervals: u64,
    /// Cost of watching: the program's mean over the intervals, and its BPF programs' when last timed. Null without
    /// intervals.
    pub cost: Option<WatchCost>,
}

/// Name and version of the JSON of [`Doctor`].
pub const DOCTOR_SCHEMA: &str = "nicpoll.doctor/1";

named! {
    /// The result of a check.
    #[serde(rename_all = "snake_case")]
    pub enum CheckStatus {
        /// Present, or without disturbance.
        Good = "ok",
        /// Not present, and not needed by nicpoll here.
        Absent = "absent",
        /// Needed by nicpoll, and missing.
        Missing = "missing",
        /// Disturbs measurements.
        Confounds = "disturbs",
        /// Could not be determined.
        Unknown = "unknown",
    }
}

impl CheckStatus {
    /// Whether the exit code has to report it.
    pub fn is_bad(self) -> bool {
        matches!(self, CheckStatus::Missing | CheckStatus::Confounds)
    }
}

/// The subject of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckGroup {
    /// The rights of this process.
    Privilege,
    /// Features of the kernel.
    Kernel,
    /// Features of an interface's driver.
    Interface,
    /// Disturbances of measurements.
    Measurement,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Its subject.
    pub group: CheckGroup,
    /// Its name, which stays the same from version to version.
    pub name: String,
    /// The interface, if it is about one.
    pub interface: Option<String>,
    /// Its result.
    pub status: CheckStatus,
    /// What was found.
    pub finding: String,
    /// The remedy; null when none is needed.
    pub remedy: Option<String>,
}

/// All checks of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doctor {
    /// [`DOCTOR_SCHEMA`].
    pub schema: String,
    /// The program that made the document.
    #[serde(flatten)]
    pub origin: Origin,
    /// The kernel's name and release.
    pub kernel: String,
    /// The checks.
    pub checks: Vec<Check>,
}

impl Doctor {
    /// Whether nothing is missing and nothing disturbs measurements.
    pub fn is_well(&self) -> bool {
        !self.checks.iter().any(|check| check.status.is_bad())
    }
}
