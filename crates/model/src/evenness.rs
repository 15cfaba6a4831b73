//! Whether values in the order of time are alike from the first to the last, or whether a mean hides what happened.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What three tests say of values in the order of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesTests {
    /// Two-sided p value of no drift (Mann and Kendall); null below ten values.
    pub drift_p: Option<f64>,
    /// The likeliest step: position of the first value after it, from 1.
    pub step_at: Option<u32>,
    /// The p value of no step (Pettitt).
    pub step_p: Option<f64>,
    /// The p value of values that do not depend on earlier ones (Ljung and Box, of ranks).
    pub dependence_p: Option<f64>,
    /// Whether one of the three p values is below 0.05 / 3, or of a study's settings below 0.05 / 3 shared among all of
    /// them.
    pub is_uneven: bool,
}

/// How a rate changes over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unevenness {
    /// Its level changes once, as at the end of a warm-up.
    Step,
    /// It rises or falls all the time.
    Drift,
    /// It goes up and down slowly, as in a sawtooth.
    Swings,
}

/// Whether the rate of a workload under one setting is the same from the beginning to the end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateOverTime {
    /// Trials whose rates were tested together.
    pub trials: u32,
    /// What the tests say.
    #[serde(flatten)]
    pub tests: SeriesTests,
    /// What is found, where the tests find something that is as great as the study's margin; null otherwise.
    pub found: Option<Unevenness>,
    /// How great it is. A step: the rate after it over that before it. A drift: the rate in the last third over that in
    /// the first. Swings: half of what lies between the least and the greatest tenth, over the middle. Null where
    /// nothing is found.
    pub size_ratio: Option<f64>,
    /// Where a step within trials is: seconds since the traffic began. Null otherwise.
    pub step_at_seconds: Option<f64>,
    /// The first block after a step from trial to trial. Null otherwise.
    pub step_at_block: Option<u32>,
}
