//! What an interface can do and does: what `nicpoll show` prints.
//!
//! What must hold: what was measured, what a setting says and what is fixed are told apart, and what has
//! no figure says why.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EventCost, Origin};

/// Name and version of the JSON that [`Show`] becomes.
pub const SHOW_SCHEMA: &str = "nicpoll.show/2";

/// How an interface learns of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// Arrivals wake it.
    Interrupt,
    /// A timer wakes it; arrivals do not.
    Polling,
    /// Now a timer, now an arrival.
    Hybrid,
    /// Somebody asks without end: a kernel thread, or an application.
    BusyPoll,
    /// There is no receive NAPI instance: packets go through the backlog of a CPU.
    Backlog,
    /// Nothing happened meanwhile that would tell.
    Idle,
    /// It has no queue to learn of packets by: interfaces below it have, or a program hands it its packets.
    Elsewhere,
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Discipline::Interrupt => "interrupt",
            Discipline::Polling => "polling",
            Discipline::Hybrid => "hybrid",
            Discipline::BusyPoll => "busy-poll",
            Discipline::Backlog => "backlog",
            Discipline::Idle => "idle",
            Discipline::Elsewhere => "-",
        })
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// Where the value of a variable comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValueSource {
    /// Seen during the look.
    Measured,
    /// It is set so.
    Set,
    /// There is none; the note says why.
    None,
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ValueSource::Measured => "measured",
            ValueSource::Set => "set",
            ValueSource::None => "-",
        })
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
