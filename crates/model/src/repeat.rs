//! What a command that runs a test several times (`--repeat`) prints as JSON.
//!
//! What must hold: every run is there as it would be by itself, a run that failed or was cut short too; the
//! summary says which of them it rests on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RateUnit;
use crate::iperf::IperfRun;
use crate::netrate::{Netblast, NetrateHead};

/// Name and version of the JSON that [`IperfRuns`] becomes.
pub const IPERF_RUNS_SCHEMA: &str = "nicpoll.iperf-runs/3";
/// Name and version of the JSON that [`NetblastRuns`] becomes.
pub const NETBLAST_RUNS_SCHEMA: &str = "nicpoll.netblast-runs/2";

/// What `nicpoll iperf --repeat N --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IperfRuns {
    /// Name and version of this layout: check it first.
    pub schema: String,
    /// The runs in the order in which they were made, each as `--json` prints it without `--repeat`.
    pub runs: Vec<IperfRun>,
    /// What they came to: payload of all streams together over the time of the longest, as the server's report tells it
    /// where there is one.
    pub summary: RunsSummary,
}

/// What `nicpoll netblast --repeat N --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetblastRuns {
    /// Who tells it.
    #[serde(flatten)]
    pub head: NetrateHead,
    /// The runs in the order in which they were made, each as `--json` prints it without `--repeat`.
    pub runs: Vec<Netblast>,
    /// What they came to: datagrams that the kernel took, over the time that sending took.
    pub summary: RunsSummary,
}

/// What the runs of one command came to together. Its rates are all of one quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunsSummary {
    /// How many runs were asked for.
    pub asked_runs: u32,
    /// How many of them have a rate, which the rest of this rests on.
    pub done_runs: u32,
    /// What the rates are, with their unit.
    pub quantity: RateUnit,
    /// The rate of each run; null for one that failed, fell short or was cut short by a signal.
    pub values: Vec<Option<f64>>,
    /// The median of the rates; null when there is none.
    pub median: Option<f64>,
    /// The least rate; null when there is none.
    pub min: Option<f64>,
    /// The greatest rate; null when there is none.
    pub max: Option<f64>,
    /// Lower end of the interval of the typical rate (Hodges-Lehmann, exact signed-rank distribution); null
    /// below 6 rates.
    pub interval_low: Option<f64>,
    /// Its upper end.
    pub interval_high: Option<f64>,
    /// How sure the interval is, 0 to 1.
    pub interval_confidence_ratio: f64,
}
