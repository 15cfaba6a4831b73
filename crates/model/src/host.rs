//! What a host did while a command ran on it: CPU time, context switches, and where packets were
//! dropped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuStates, DropReason, DropReasonGaps, Drops, UncountedLoss};

/// What happened on this host from the beginning of an account to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostDelta {
    /// How long the account was open.
    pub duration_seconds: f64,
    /// Shares of each core's time. The kernel samples them at its clock tick: work in step with the
    /// tick is misjudged. Empty when no tick came in between.
    pub cpu_tick_sampled: Vec<CpuStates>,
    /// Context switches of the whole machine.
    pub context_switches: u64,
    /// CPU time of this process.
    pub process_cpu: ProcessCpu,
    /// Packets dropped, by place.
    pub dropped_packets: Drops,
    /// Losses in `dropped_packets` that no counter has, or that may be missing there.
    pub uncounted: Vec<UncountedLoss>,
    /// Packets of this host that the kernel dropped, by the reason that it gave, most first; null where drop reasons
    /// cannot be had.
    pub drop_reasons: Option<Vec<DropReason>>,
    /// What `drop_reasons` leaves out; null where that is null.
    pub drop_reason_gaps: Option<DropReasonGaps>,
    /// Why there are no drop reasons; null when there are.
    pub drop_reasons_missing: Option<String>,
    /// The interfaces that carried or dropped packets; null when they could not be listed.
    pub interfaces: Option<Vec<InterfaceDelta>>,
}

/// CPU time of the process, all threads together. The sum is exact, its division may be sampled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessCpu {
    /// In user space.
    pub user_seconds: f64,
    /// In the kernel on behalf of the process.
    pub system_seconds: f64,
}

/// What one interface carried and dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceDelta {
    /// Its name.
    pub name: String,
    /// Packets handed to the driver and not dropped. A batch of datagrams that the interface takes
    /// whole is one.
    pub tx_packets: u64,
    /// Packets that the driver dropped.
    pub tx_dropped_packets: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets received and dropped before a protocol saw them.
    pub rx_dropped_packets: u64,
    /// Packets that the root queueing discipline dropped.
    pub qdisc_dropped_packets: Option<u64>,
    /// Speed of the line at layer 1; null where there is none, as behind a virtual interface.
    pub line_bits_per_second: Option<u64>,
    /// The share of the line that what was sent took, preambles and gaps included, on average over the
    /// account.
    pub tx_line_ratio: Option<f64>,
    /// The same of what was received.
    pub rx_line_ratio: Option<f64>,
}
