//! Where a core's time went during a trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Shares of one core's time during the measured window, each 0 to 1.
///
/// The shares add up to 1. They come from `/proc/stat`, which on kernels without interrupt time
/// accounting *samples* the state at each clock tick: work that is in step with the tick is
/// misjudged, timer polling most of all. The figure is therefore named as sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuStates {
    /// Number of the core.
    pub core: u32,
    /// User programs at normal priority.
    pub user: f64,
    /// User programs at lowered priority.
    pub nice: f64,
    /// The kernel on behalf of programs.
    pub system: f64,
    /// Hard interrupts.
    pub irq: f64,
    /// Soft interrupts: where NAPI polls and protocol processing run.
    pub softirq: f64,
    /// Nothing to do, waiting for disks included.
    pub idle: f64,
    /// Taken by the hypervisor for other guests.
    pub steal: f64,
}

impl CpuStates {
    /// Share of time in which the core worked: all but idle and steal.
    pub fn busy(&self) -> f64 {
        self.user + self.nice + self.system + self.irq + self.softirq
    }
}
