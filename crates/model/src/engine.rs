//! What the engine's applications print alike.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the kernel's side of receiving was set to for the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelSideFacts {
    /// What was asked for and granted: `as-is`, `threaded` (a kernel thread receives) or `polling` (a timer begins the
    /// kernel's rounds).
    pub name: String,
    /// CPUs that the kernel's threads may use; empty when it has none.
    pub thread_cpus: Vec<u32>,
    /// What was changed for it and is put back at the end, one value each, as the kernel's own tools write it.
    pub changes: Vec<String>,
}

impl KernelSideFacts {
    /// Nothing was asked for.
    pub fn as_is() -> Self {
        KernelSideFacts {
            name: String::from("as-is"),
            thread_cpus: Vec::new(),
            changes: Vec::new(),
        }
    }
}

/// The knobs and counters under `kern.polling` of one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PollingOfCpu {
    /// The CPU.
    pub cpu: u32,
    /// The knobs and counters.
    pub polling: Vec<crate::sink::SinkVariable>,
}

/// How the engine runs that forwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineFacts {
    /// How the program learns of packets: `polling`, `interrupt`, `busy-poll` or `adaptive`.
    pub discipline: String,
    /// Ticks a second.
    pub hz: u32,
    /// How the burst is adapted: `freebsd` or `share`.
    pub controller: String,
    /// Back-to-back passes after which an interrupt is throttled; 0: never.
    pub storm_threshold_passes: u32,
    /// The CPUs of the engine's threads.
    pub cpus: Vec<u32>,
    /// How the kernel schedules them: `fifo` (before ordinary programs) or `fair`.
    pub scheduling: String,
}
