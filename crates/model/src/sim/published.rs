//! Published measurements and their simulation.
//!
//! No row under polling is fitted. A row that was used to choose a parameter says so, and is not a prediction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name and version of the JSON of [`SimPublished`].
pub const SIM_PUBLISHED_SCHEMA: &str = "nicpoll.sim-published/3";

/// Every row of the published tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimPublished {
    /// Name and version of this layout: [`SIM_PUBLISHED_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// Number of fitted parameters.
    pub free_parameters: u64,
    /// Measured figures to which they were fitted.
    pub fitted_figures: u64,
    /// Counted virtual time of each run.
    pub seconds: f64,
    /// Virtual time before the counted time.
    pub warmup_seconds: f64,
    /// Score of the predictions, compared with guesses that ignore polling.
    pub score: PublishedScore,
    /// The rows, in the order of the tables.
    pub rows: Vec<PublishedRow>,
}

/// How many predictions are informative, and how many of those are met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedScore {
    /// Predicted rows with an error.
    pub predicted_rows: u64,
    /// Of these, rows that restate another row of their run, or an input.
    pub restating_rows: u64,
    /// Of these, rows so small that a simulated 0 would be within the aim.
    pub small_rows: u64,
    /// Predictions under polling that restate nothing.
    pub polled: ScoreTally,
    /// Of these, rates.
    pub polled_rates: ScoreTally,
    /// Of these, rows too large for a 0 to be within the aim.
    pub polled_large: ScoreTally,
}

/// Rows, and those within the aim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreTally {
    /// Rows.
    pub rows: u64,
    /// Of these, simulated figures within the aim.
    pub simulated: u64,
    /// Of these, guesses within the aim: the measurement under interrupts, or without one a full line and no loss.
    pub guessed: u64,
}

/// A figure of a published table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedRow {
    /// The table's letter.
    pub table: String,
    /// Its configuration and load.
    pub row: String,
    /// Receive discipline of the hosts: `interrupt`, `polling` or `napi`.
    pub discipline: String,
    /// The measured quantity.
    pub quantity: String,
    /// The unit of all its figures.
    pub unit: String,
    /// Measured mean of several runs; null when the source states no number.
    pub measured: Option<f64>,
    /// Measured values of single runs.
    pub measured_runs: Vec<f64>,
    /// Simulated figure; null when there is none.
    pub simulated: Option<f64>,
    /// Least and greatest simulated figure over the phases of the hosts' ticks; null where they were not varied.
    pub simulated_range: Option<[f64; 2]>,
    /// Under polling, the guess that ignores polling: the measurement under interrupts, or without one a full line and
    /// no loss; null when there is none.
    pub guessed: Option<f64>,
    /// Error relative to the measurement (0.05 is 5 % too much), or a difference of shares (0.05 is five points too
    /// much); null when unscored or missing.
    pub error: Option<f64>,
    /// Kind of error.
    pub error_kind: ErrorKind,
    /// Whether the fit used the figure.
    pub kind: RowKind,
    /// Whether the error is within the aim; null when there is none.
    pub is_within_aim: Option<bool>,
    /// Whether the guess is within the aim.
    pub is_guess_within_aim: Option<bool>,
    /// Whether the figure restates another row of the run, or an input.
    pub is_restated: bool,
    /// Whether a simulated 0 would be within the aim.
    pub is_small: bool,
    /// Effect of a parameter that is a fifth greater or smaller; null when none was varied.
    pub sensitivity: Option<ParameterSensitivity>,
    /// Bottleneck of the simulated run; null when there was none.
    pub bottleneck: Option<String>,
    /// What the simulation lacks, in a sentence; null when nothing is known to be missing.
    pub missing: Option<String>,
}

/// Kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// Relative to the measurement. Aim: 5 % fitted, 20 % predicted.
    Relative,
    /// A difference of shares. Aim: 5 points fitted, 10 predicted.
    Points,
    /// No error: the figure varies by its nature, or carries no information of its own.
    Unscored,
}

/// Relation of a simulated figure to the fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// The measured figure was fitted.
    Fitted,
    /// The measured figure was used to choose a parameter of a host file, which says so. No row under polling is
    /// fitted; one may be used.
    Used,
    /// The measured figure was not used.
    Predicted,
}

/// The greatest effect of one parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParameterSensitivity {
    /// The parameter, and whether it is greater or smaller: `thin clients: interrupt -20 %`.
    pub parameter: String,
    /// The change, in the unit of the error; for unscored figures relative to the simulated figure.
    pub change: f64,
}

impl ErrorKind {
    /// Returns the tolerated error of a figure.
    pub fn aim(self, kind: RowKind) -> Option<f64> {
        match (self, kind) {
            (ErrorKind::Unscored, _) => None,
            (ErrorKind::Relative | ErrorKind::Points, RowKind::Fitted | RowKind::Used) => {
                Some(0.05)
            }
            (ErrorKind::Relative, RowKind::Predicted) => Some(0.2),
            (ErrorKind::Points, RowKind::Predicted) => Some(0.1),
        }
    }
}
