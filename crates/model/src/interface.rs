//! Documents about interfaces and machines: `show`, `set`, `watch` and `doctor`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cpu::{CpuSource, CpuStates, EventCost};
use crate::document::{Origin, named};
use crate::loss::LossPlace;

/// Name and version of the JSON that [`Show`] becomes.
pub const SHOW_SCHEMA: &str = "nicpoll.show/2";

named! {
    /// How an interface learns of packets.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Discipline {
        /// Arrivals wake it.
        Interrupt = "interrupt",
        /// A timer wakes it; arrivals do not.
        Polling = "polling",
        /// Now a timer, now an arrival.
        Hybrid = "hybrid",
        /// Somebody asks without end: a kernel thread, or an application.
        BusyPoll = "busy-poll",
        /// There is no receive NAPI instance: packets go through the backlog of a CPU.
        Backlog = "backlog",
        /// Nothing happened meanwhile that would tell.
        Idle = "idle",
        /// It has no queue to learn of packets by: interfaces below it have, or a program hands it its packets.
        Elsewhere = "-",
    }
}

/// Interfaces of one network namespace, at one moment or over a short look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Show {
    /// [`SHOW_SCHEMA`].
    pub schema: String,
    /// Who made it.
    #[serde(flatten)]
    pub origin: Origin,
    /// The namespace as it was named; null: the program's own.
    pub netns: Option<String>,
    /// How long polls were watched; null when they were not.
    pub look_seconds: Option<f64>,
    /// What watching cost, in a short look of its own after the long one, what the kernel takes to time the programs
    /// included; null when that was not measured. Events are polls and timers, and where storms were looked for
    /// switches of threads, interrupts and system calls, too.
    pub look_cost: Option<EventCost>,
    /// Handler entries back to back from which on interrupts are a storm; 0: none is.
    #[serde(rename = "storm_threshold_entries")]
    pub storm_threshold: u64,
    /// The interfaces.
    pub interfaces: Vec<InterfaceShow>,
    /// What could not be seen, and what it takes.
    pub unseen: Vec<Unseen>,
}

/// Something that could not be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unseen {
    /// What.
    pub what: String,
    /// Why not, and what it takes.
    pub why: String,
}

/// One interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceShow {
    /// Name.
    pub name: String,
    /// Index within its namespace.
    pub ifindex: u32,
    /// Driver; null when it has none.
    pub driver: Option<String>,
    /// Interfaces that its packets arrive at, when it has no queue of its own; `setting` and `evidence` are theirs then.
    pub lower: Vec<String>,
    /// Whether it is up.
    pub is_up: bool,
    /// Speed of the link; null when the driver does not say.
    pub link_bits_per_second: Option<u64>,
    /// Receive queues.
    pub rx_queues: Option<u32>,
    /// Transmit queues.
    pub tx_queues: Option<u32>,
    /// Slots of one receive ring; null when the driver does not say.
    pub rx_ring_slots: Option<u32>,
    /// Whether received packets are joined (GRO).
    pub has_gro: Option<bool>,
    /// Interrupt moderation by ethtool's names, what the driver has of it.
    pub moderation: BTreeMap<String, u32>,
    /// Interrupts of the device.
    pub interrupts: Vec<InterruptShow>,
    /// Receive NAPI instances; null when this kernel cannot list them.
    pub napis: Option<Vec<NapiShow>>,
    /// How it should learn of packets by its settings; null when they cannot be read.
    pub setting: Option<Finding>,
    /// How it did learn of packets; null when nobody looked.
    pub evidence: Option<Finding>,
    /// What its polls can take; null when rings or rounds are not known.
    pub ceiling: Option<Ceiling>,
    /// Packets received during the look.
    pub rx_packets_per_second: Option<f64>,
    /// Values that 'nicpoll set' wrote and that somebody else changed since; null when its journal cannot be read.
    pub drift: Option<Vec<DriftShow>>,
    /// A change of 'nicpoll set', 'demo' or 'watch' that does not stand; null when there is none, or its journal cannot be
    /// read.
    pub pending: Option<PendingShow>,
    /// FreeBSD's variables, in the order of its source, after `enable` and `hz`.
    pub kern_polling: Vec<PollingVariable>,
}

/// A discipline, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Which.
    pub discipline: Discipline,
    /// What says so.
    pub why: String,
}

/// One interrupt of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterruptShow {
    /// Number.
    pub irq: u32,
    /// Who it is for, as the kernel writes it.
    pub description: String,
    /// CPUs that take it now, as a list (`0-1`); null when the kernel does not say.
    pub cpus: Option<String>,
    /// Interrupts since boot.
    #[serde(rename = "total_interrupts")]
    pub total: u64,
    /// Interrupts during the look.
    #[serde(rename = "interrupts_per_second")]
    pub per_second: Option<f64>,
    /// Whether entries of its handlers came back to back as often as the threshold says: an approximation of
    /// FreeBSD's interrupt storm. Null when it was not looked for.
    pub is_storm: Option<bool>,
}

/// A value that is no longer what 'nicpoll set' made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriftShow {
    /// Which.
    pub name: String,
    /// What was written.
    pub written: String,
    /// What it holds now; null when it is gone.
    pub now: Option<String>,
}

/// A change that is put back by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PendingShow {
    /// The process that puts the change back when its time has come or its program is gone.
    pub owner_pid: u32,
    /// Whether that process still runs. If not, the next command that changes settings puts the change back.
    pub is_owner_alive: bool,
    /// Time until the change is put back, unless it is confirmed before; below 0: overdue; null: it lasts as long as the
    /// program that made it.
    pub undone_in_seconds: Option<f64>,
}

/// One NAPI instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NapiShow {
    /// Id.
    pub id: u32,
    /// Its interrupt, where the driver says so.
    pub irq: Option<u32>,
    /// Receive queues that it serves, where the driver says so.
    pub rx_queues: Vec<u32>,
    /// How many empty polls keep the interrupt masked.
    pub defer_hard_irqs: u32,
    /// From the end of a round to the next poll; 0: no timer.
    pub gro_flush_timeout_ns: u64,
    /// How long an application may keep interrupts off; null when this kernel has no such thing.
    pub irq_suspend_timeout_ns: Option<u64>,
    /// 0: none, 1: a kernel thread polls, 2: and never stops; null when this kernel does not say.
    pub threaded: Option<u32>,
    /// The thread that polls.
    pub thread: Option<ThreadShow>,
    /// How it should learn of packets.
    pub setting: Finding,
    /// What it did during the look.
    pub rhythm: Option<Rhythm>,
}

/// A thread that polls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadShow {
    /// Its id.
    pub pid: u32,
    /// Name.
    pub name: String,
    /// State by the kernel's letter: `R` runs, `S` sleeps, `I` is idle.
    pub state: char,
    /// CPUs that it may use, as a list.
    pub cpus: Option<String>,
}

/// How a NAPI instance polled during the look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rhythm {
    /// What follows from it.
    pub evidence: Finding,
    /// Polls.
    pub polls: u64,
    /// Rounds: runs of polls that end with one whose work is below its budget.
    pub rounds: u64,
    /// Rounds that the instance's own timer began.
    pub timer_rounds: u64,
    /// Packets that the polls took.
    pub packets: u64,
    /// Packets a poll; null without polls.
    pub packets_per_poll: Option<f64>,
    /// Median time from a round to the timer round after it; null without any.
    pub median_gap_ns: Option<u64>,
    /// Packets of a poll, and how many polls had so many; 65 stands for more too.
    pub packets_histogram: Vec<(u32, u64)>,
    /// Lower end of a class of such times in ns, a sixteenth of an octave wide, and how many fell in it.
    pub gaps_histogram: Vec<(u64, u64)>,
    /// CPUs that polled, and how often.
    pub polls_by_cpu: Vec<(u32, u64)>,
}

/// What an interface's polls can take: the slots of its rings, so many times a second. What arrives while a
/// round runs comes on top.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// Slots of all receive rings together.
    pub slots: u64,
    /// Rounds of one instance.
    pub rounds_per_second: f64,
    /// Their product.
    pub packets_per_second: f64,
    /// Whether the rounds were measured; otherwise they follow from the timeout.
    pub is_measured: bool,
}

named! {
    /// Where the value of a variable comes from.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ValueSource {
        /// Seen during the look.
        Measured = "measured",
        /// It is set so.
        Set = "set",
        /// There is none; the note says why.
        None = "-",
    }
}

/// A variable under `kern.polling`, read off Linux.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PollingVariable {
    /// Its name, without `kern.polling.` before it.
    pub name: String,
    /// Its value; null when there is none.
    pub value: Option<f64>,
    /// Where it comes from.
    pub source: ValueSource,
    /// What stands for it here, or why nothing does.
    pub note: String,
}

/// Name and version of the JSON that [`SwitchRun`] becomes.
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
    /// The namespace as it was named; null: the program's own.
    pub netns: Option<String>,
    /// Whether nothing was written, and the rest says what would have been.
    pub is_dry_run: bool,
    /// Values: set ones in the order in which they were written, then those that were put back.
    pub writes: Vec<SwitchWrite>,
    /// Whether NAPI instances or threads come only with these writes, so that theirs are not listed.
    pub is_open_ended: bool,
    /// Files that bring the settings back at boot, and what became of them.
    pub files: Vec<SwitchFile>,
    /// When the change undoes itself unless it is confirmed; null: it stays.
    pub undone_after_seconds: Option<f64>,
    /// Interfaces that were put back.
    pub restored: Vec<SwitchRestored>,
    /// What was seen of the interfaces after they were set.
    pub proofs: Vec<SwitchProof>,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchWrite {
    /// The interface.
    pub interface: String,
    /// Inode number of its network namespace.
    pub netns_inode: u64,
    /// The NAPI instance whose value it is; null: the interface's own.
    pub napi_id: Option<u32>,
    /// Which value, as the kernel names it.
    pub name: String,
    /// What it held before.
    pub before: SwitchValue,
    /// What it holds after.
    pub after: SwitchValue,
    /// Whether the kernel changed it along with another value, or it stayed.
    pub is_implied: bool,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SwitchValue {
    /// A number, in the kernel's unit of that value (`gro_flush_timeout`: ns), or 0 and 1 for off and on.
    Number(u64),
    /// CPUs.
    Cpus(Vec<u32>),
    /// A scheduling class with its numbers, in words; or what a sysctl holds.
    Words(String),
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchFile {
    /// Where.
    pub path: String,
    /// Its text before, or the target of a link; null: there was none.
    pub before: Option<String>,
    /// Its text after; null: it is gone.
    pub after: Option<String>,
}

/// An interface that was put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchRestored {
    /// The interface, with its host when that is another one.
    pub interface: String,
    /// Whether every value was read again and is as it was.
    pub is_as_before: bool,
    /// What somebody else had changed meanwhile, or why it could not be put back, in words.
    pub notes: Vec<String>,
}

/// What shows how an interface learns of packets now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchProof {
    /// The interface.
    pub interface: String,
    /// How long its polls were watched; null when they were not.
    pub look_seconds: Option<f64>,
    /// What its values mean; null when they cannot be read.
    pub setting: Option<Finding>,
    /// What its polls say; null when they were not watched.
    pub evidence: Option<Finding>,
    /// Whether the polls say what the values mean; null when nothing happened that would tell.
    pub is_proven: Option<bool>,
    /// What could not be seen.
    pub unseen: Vec<Unseen>,
}

/// Name and version of the JSON lines that a watch prints.
pub const WATCH_SCHEMA: &str = "nicpoll.watch/3";

/// What is watched, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchStart {
    /// [`WATCH_SCHEMA`].
    pub schema: String,
    /// Who made it.
    #[serde(flatten)]
    pub origin: Origin,
    /// The namespace as it was named; null: the program's own.
    pub netns: Option<String>,
    /// Length that intervals are to have.
    pub interval_seconds: f64,
    /// Handler entries back to back from which on they are a storm; 0: none is.
    #[serde(rename = "storm_threshold_entries")]
    pub storm_threshold: u64,
    /// What could not be seen, and what it takes.
    pub unseen: Vec<Unseen>,
}

/// One interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchSample {
    /// From the start to the end of the interval.
    pub elapsed_seconds: f64,
    /// Length that it had.
    pub seconds: f64,
    /// The watched interfaces, by index; null when they could not be listed.
    pub interfaces: Option<Vec<WatchInterface>>,
    /// How CPU time was measured.
    pub cpu_source: CpuSource,
    /// Shares of each core's time.
    pub cpu: Vec<CpuStates>,
    /// Switches from one thread to another, of the machine.
    pub context_switches_per_second: f64,
    /// Interrupts of the machine by source, then soft interrupts by kind, those that never came left out; null when
    /// unreadable.
    pub interrupts: Option<Vec<WatchInterrupt>>,
    /// Lost packets by place, in the order in which a packet passes the places.
    pub drops: Vec<WatchDrops>,
    /// Counters of IP and UDP.
    pub protocols: Vec<WatchCounter>,
    /// What watching took.
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
    /// How it learned of packets, by what began its rounds of polls; null when polls were not watched.
    pub discipline: Option<Discipline>,
    /// Calls of its NAPI instances' poll functions; null when they were not watched.
    pub polls_per_second: Option<f64>,
    /// Packets of a poll, mean; null without polls.
    pub packets_per_poll: Option<f64>,
    /// Packets of a poll, and how many polls of the interval had so many. The last, 65, stands for more, too.
    pub packets_histogram: Option<Vec<(u32, u64)>>,
}

/// Packets and bytes in one direction, as the interface counts them: bytes with the Ethernet header,
/// without checksum, preamble and gap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchFlow {
    /// In this interval; null when the interface was not there at its beginning or its counters were reset.
    pub packets_per_second: Option<f64>,
    /// In this interval.
    pub bytes_per_second: Option<f64>,
    /// The greatest of any interval so far.
    pub peak_packets_per_second: Option<f64>,
    /// The greatest of any interval so far.
    pub peak_bytes_per_second: Option<f64>,
    /// Since the interface was made.
    pub total_packets: u64,
    /// Since the interface was made.
    pub total_bytes: u64,
}

/// One source of interrupts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchInterrupt {
    /// Its number, or its name when it has none (`LOC`); of a soft interrupt its kind (`NET_RX`).
    pub irq: String,
    /// What it is for, as the kernel writes it; `softirq` for a soft interrupt.
    pub description: String,
    /// Since boot, on all CPUs.
    pub total_interrupts: u64,
    /// In this interval; null when the source is new.
    pub interrupts_per_second: Option<f64>,
    /// Whether entries of its handlers came back to back as often as the threshold says: an approximation of
    /// FreeBSD's interrupt storm. Null when it was not looked for.
    pub is_storm: Option<bool>,
}

/// Lost packets of one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchDrops {
    /// The place.
    pub place: LossPlace,
    /// Since the start, over the intervals in which it could be told; null when in none.
    pub packets: Option<u64>,
    /// In this interval; null when it could not be told.
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

/// What watching itself took, in shares of one core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchCost {
    /// CPU time of the program meanwhile.
    pub process_cpu_ratio: f64,
    /// Run time of its BPF programs, without what timing them takes, in the last part of a watch in which the
    /// kernel timed them; null when there are none, or they could not be timed.
    pub bpf_cpu_ratio: Option<f64>,
}

/// The whole watch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchEnd {
    /// From the start to the end of the last interval.
    pub elapsed_seconds: f64,
    /// How many intervals there were.
    pub intervals: u64,
    /// What watching took: the program's mean over the intervals, its BPF programs' when they were last timed.
    /// Null without intervals.
    pub cost: Option<WatchCost>,
}

/// Name and version of the JSON that [`Doctor`] becomes.
pub const DOCTOR_SCHEMA: &str = "nicpoll.doctor/1";

named! {
    /// How a check came out.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum CheckStatus {
        /// It is there, or disturbs nothing.
        Good = "ok",
        /// It is not there, and nothing that nicpoll does here needs it.
        Absent = "absent",
        /// Something that nicpoll needs is missing.
        Missing = "missing",
        /// It disturbs measurements.
        Confounds = "disturbs",
        /// It could not be found out.
        Unknown = "unknown",
    }
}

impl CheckStatus {
    /// Whether the exit code has to say so.
    pub fn is_bad(self) -> bool {
        matches!(self, CheckStatus::Missing | CheckStatus::Confounds)
    }
}

/// What a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckGroup {
    /// What this process may do.
    Privilege,
    /// What the kernel can do.
    Kernel,
    /// What an interface's driver can do.
    Interface,
    /// What disturbs measurements.
    Measurement,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// What it is about.
    pub group: CheckGroup,
    /// Its name. It stays the same from version to version.
    pub name: String,
    /// The interface, where it is about one.
    pub interface: Option<String>,
    /// How it came out.
    pub status: CheckStatus,
    /// What was found.
    pub finding: String,
    /// What to do about it; null when there is nothing to do.
    pub remedy: Option<String>,
}

/// All checks of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doctor {
    /// [`DOCTOR_SCHEMA`].
    pub schema: String,
    /// Who made it.
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
