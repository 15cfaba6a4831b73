//! The document of a search for the highest load that a system holds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The search under one workload and setting. Loads and rates are of all senders together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSearch {
    /// The workload.
    pub workload: String,
    /// The setting.
    pub setting: String,
    /// Packets a second of a full line; null without a line.
    pub line_per_second: Option<f64>,
    /// The bounds of each goal.
    pub bounds: Vec<GoalBounds>,
    /// What the sender cannot offer; null if it offered all that was asked of it.
    pub sender_limit: Option<SenderLimit>,
    /// The trials of the search, in their order.
    pub trials: Vec<LoadTrial>,
    /// Trials past the bounds, by load: what is delivered of too much.
    pub curve: Vec<LoadTrial>,
    /// Why it ended before its end; null otherwise.
    pub failure: Option<String>,
    /// How long it took.
    pub elapsed_seconds: f64,
}

/// A load that a sender does not offer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SenderLimit {
    /// The lowest load that it repeatedly did not offer.
    pub asked_per_second: u64,
    /// The most that it offered then.
    pub offered_per_second: f64,
}

impl LoadTrial {
    /// Returns the share that was not held: lost, or late.
    pub fn not_held_ratio(&self) -> Option<f64> {
        Some(self.loss_ratio? + self.late_ratio?)
    }
}

/// A trial of a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadTrial {
    /// The load.
    pub asked_per_second: u64,
    /// Its length.
    pub seconds: f64,
    /// Datagrams that the sender gave or tried to give to the kernel; null if it failed.
    pub offered_per_second: Option<f64>,
    /// Datagrams that the receiver read, over its own time.
    pub delivered_per_second: Option<f64>,
    /// Share of the offered that did not arrive, refused sends among them.
    pub loss_ratio: Option<f64>,
    /// Share that arrived too late: queues held it when the sender had ended. It counts as lost.
    pub late_ratio: Option<f64>,
    /// Why it says nothing about its load; null if it counts.
    pub void: Option<String>,
    /// Why its setting is not proven to have been in force; null if it is. The trial counts.
    pub unproven: Option<String>,
}

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
