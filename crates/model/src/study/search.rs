//! The document of a search for the highest load that a system holds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A search goal of MLRsearch (draft-ietf-bmwg-mlrsearch): what a load must show to be held.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchGoal {
    /// A trial is good when at most this share of its packets is lost.
    pub loss_ratio: f64,
    /// Length of the trials that only narrow the search.
    pub initial_trial_seconds: f64,
    /// Length of the trials that decide.
    pub final_trial_seconds: f64,
    /// Sum of trial lengths at a load after which it is decided at the latest.
    pub duration_sum_seconds: f64,
    /// Share of that sum which may be bad at a load that is held.
    pub exceed_ratio: f64,
    /// The lower bound is at most this share of the upper bound below it.
    pub width_ratio: f64,
}

/// The bounds of one goal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalBounds {
    /// The goal's loss ratio.
    pub loss_ratio: f64,
    /// The highest load shown to be held, of those below the upper bound; null if none is.
    pub lower_per_second: Option<u64>,
    /// The lowest load shown not to be held; null if every load that was offered is held.
    pub upper_per_second: Option<u64>,
    /// What is delivered at the lower bound in the trial that counts there: its conditional throughput.
    pub conditional_throughput_per_second: Option<f64>,
    /// Whether the bounds are as close as the goal asks, or the range of loads ends.
    pub is_finished: bool,
}
