//! What `nicpoll sim sweep --json` prints: runs over a range of one parameter.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SimFigures, SimPlan, SimShard};

/// Name and version of the JSON that [`SimSweep`] becomes.
pub const SIM_SWEEP_SCHEMA: &str = "nicpoll.sim-sweep/3";

/// Runs over a range of one parameter, for each discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimSweep {
    /// Name and version of this layout: [`SIM_SWEEP_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// What varies: `offered`, in packets a second, or a number of the host file.
    pub parameter: String,
    /// The workload with its options, as the command line takes it.
    pub workload: String,
    /// Which part of the sweep this is; null for all of it.
    pub shard: Option<SimShard>,
    /// The points, by discipline, then by the parameter's value.
    pub points: Vec<SimPoint>,
}

/// One run of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimPoint {
    /// The parameter's value.
    pub value: f64,
    /// What was asked for.
    pub plan: SimPlan,
    /// What came out.
    pub figures: SimFigures,
}
