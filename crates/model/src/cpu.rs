//! Where a core's time went during a trial, and how that was measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How CPU time was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CpuSource {
    /// Every switch and interrupt was an event, by BPF: exact to the event.
    Exact,
    /// `/proc/stat`, which on kernels without interrupt time accounting looks at the state at each clock
    /// tick: work that is in step with the tick is misjudged, timer polling most of all.
    TickSampled,
}

impl CpuSource {
    /// As the text report names it.
    pub fn name(self) -> &'static str {
        match self {
            CpuSource::Exact => "exact",
            CpuSource::TickSampled => "tick-sampled",
        }
    }
}

/// Shares of one core's time during a window, each 0 to 1.
///
/// Sampled shares add up to 1. Exact ones add up to 1 without `steal`: no event shows it, so it is
/// `/proc/stat`'s and lies within the others. In JSON each name ends in `_ratio`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuStates {
    /// Number of the core.
    pub core: u32,
    /// User programs at normal priority.
    #[serde(rename = "user_ratio")]
    pub user: f64,
    /// User programs at lowered priority.
    #[serde(rename = "nice_ratio")]
    pub nice: f64,
    /// The kernel on behalf of programs.
    #[serde(rename = "system_ratio")]
    pub system: f64,
    /// Hard interrupts.
    #[serde(rename = "irq_ratio")]
    pub irq: f64,
    /// Soft interrupts: where NAPI polls and protocol processing run.
    #[serde(rename = "softirq_ratio")]
    pub softirq: f64,
    /// Nothing to do, waiting for disks included.
    #[serde(rename = "idle_ratio")]
    pub idle: f64,
    /// Taken by the hypervisor for other guests.
    #[serde(rename = "steal_ratio")]
    pub steal: f64,
}

impl CpuStates {
    /// Share of time in which the core worked: all but idle and steal.
    pub fn busy(&self) -> f64 {
        self.user + self.nice + self.system + self.irq + self.softirq
    }
}
