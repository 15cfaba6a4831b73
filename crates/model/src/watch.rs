//! What a namespace's interfaces, CPUs and counters do, interval by interval: what `nicpoll watch` shows.
//!
//! What must hold: a rate is of one interval, a peak the greatest rate since the start. What could not be
//! told in an interval is null.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuSource, CpuStates, Discipline, LossPlace, Origin, Unseen};

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
    /// Interrupts of the machine by source, those that never came left out; null when unreadable.
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
    /// In this interval; null when the interface was not there at its beginning or its counters began anew.
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
    /// Its number, or its name when it has none (`LOC`).
    pub irq: String,
    /// What it is for, as the kernel writes it.
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
