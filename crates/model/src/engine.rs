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
