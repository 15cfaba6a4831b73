//! Published measurements and their simulation.
//!
//! A row under polling is never fitted. A row that was used to choose a number says so, and is no prediction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name and version of the JSON that [`SimPublished`] becomes.
pub const SIM_PUBLISHED_SCHEMA: &str = "nicpoll.sim-published/3";

/// Every row of the published tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimPublished {
    /// Name and version of this layout: [`SIM_PUBLISHED_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// Numbers that were fitted.
    pub free_parameters: u64,
    /// Measured figures that they were fitted to.
    pub fitted_figures: u64,
    /// Virtual time of each run that is counted.
    pub seconds: f64,
    /// Virtual time before it that is not.
    pub warmup_seconds: f64,
    /// How well the predictions do, compared with guesses that know nothing of polling.
    pub score: PublishedScore,
    /// The rows, in the order of the tables.
    pub rows: Vec<PublishedRow>,
}

/// How many predictions say something, and how many of those are met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedScore {
    /// Predicted rows with an error.
    #[serde(rename = "predicted_rows")]
    pub predicted: u64,
    /// Of these, rows that another row of their run says already, or what was put in.
    #[serde(rename = "restating_rows")]
    pub restating: u64,
    /// Of these, rows so small that a simulated 0 would be within the aim.
    #[serde(rename = "small_rows")]
    pub small: u64,
    /// Predictions under polling that no other row of their run says.
    pub polled: ScoreTally,
    /// Of these, rates.
    pub polled_rates: ScoreTally,
    /// Of these, rows that are not so small that a 0 would do.
    pub polled_large: ScoreTally,
}

/// Rows, and who met them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreTally {
    /// Rows.
    pub rows: u64,
    /// Of these, within the aim when simulated.
    pub simulated: u64,
    /// Of these, within the aim when guessed: as measured under interrupts; where nothing was, a full line and no loss.
    pub guessed: u64,
}

/// A figure of a published table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedRow {
    /// The table's letter.
    pub table: String,
    /// What was run.
    pub row: String,
    /// How the hosts learned of packets: `interrupt`, `polling` or `napi`.
    pub discipline: String,
    /// What the figure is of.
    pub quantity: String,
    /// The unit of all its figures.
    pub unit: String,
    /// What was measured, the mean of several runs; null when the source states no number.
    pub measured: Option<f64>,
    /// What was measured, run by run.
    pub measured_runs: Vec<f64>,
    /// What the simulation gives; null when there is none.
    pub simulated: Option<f64>,
    /// The least and the most that it gives as the ticks of the hosts lie; null where that was not tried.
    pub simulated_range: Option<[f64; 2]>,
    /// Under polling, what a guess gives that knows nothing of polling: what was measured under interrupts, or where
    /// nothing was a full line and no loss; null when there is none.
    pub guessed: Option<f64>,
    /// What it is off: parts of the measured (0.05 is 5 % too much), or a difference of shares (0.05 is five
    /// points too much); null when unscored or not there.
    pub error: Option<f64>,
    /// How the error is told.
    pub error_kind: ErrorKind,
    /// Whether the fit used the figure.
    pub kind: RowKind,
    /// Whether the error is within what is aimed at; null when there is none.
    pub is_within_aim: Option<bool>,
    /// The same of the guess.
    pub is_guess_within_aim: Option<bool>,
    /// Whether another row of the run, or what was put in, says the same.
    pub is_restated: bool,
    /// Whether a simulated 0 would be within what is aimed at.
    pub is_small: bool,
    /// The change that a parameter makes which is a fifth greater or smaller; null when none was tried.
    pub sensitivity: Option<Sensitivity>,
    /// What held the simulated run back; null when there was none.
    pub bottleneck: Option<String>,
    /// What the simulation lacks, in a sentence; null when nothing is known to be missing.
    pub missing: Option<String>,
}

/// How an error is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// As parts of the measured. Aimed at: 5 % fitted, 20 % predicted.
    Relative,
    /// As a difference of shares. Aimed at: 5 points fitted, 10 predicted.
    Points,
    /// Not at all: the figure varies by its nature, or says nothing of its own.
    Unscored,
}

/// Where a simulated figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// The measured figure was used to find parameters.
    Fitted,
    /// It was looked at to choose a number of a host file, which says so. No row under polling is fitted; one may be
    /// used.
    Used,
    /// It was not.
    Predicted,
}

/// The greatest change by one parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sensitivity {
    /// The parameter, and whether it is greater or smaller: `thin clients: interrupt -20 %`.
    pub parameter: String,
    /// The change, told as the error is; of unscored figures as parts of what was simulated.
    pub change: f64,
}

impl ErrorKind {
    /// What an error may be, for a figure of this kind.
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
