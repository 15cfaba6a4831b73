//! What `nicpoll sim ticks --json` prints: a processor that works in pulses, its time exactly and as
//! clock ticks sample it.
//!
//! What must hold: nothing here was measured. Every figure follows from the options alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name and version of the JSON that [`SimTicks`] becomes.
pub const SIM_TICKS_SCHEMA: &str = "nicpoll.sim-ticks/2";

/// Pulses of work under a clock that samples them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimTicks {
    /// Name and version of this layout: [`SIM_TICKS_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// From pulse to pulse, by the clock of the pulses.
    pub pulse_seconds: f64,
    /// How much slower the pulses' clock is than that of the ticks, in millionths.
    pub drift_ppm: f64,
    /// Ticks a second.
    #[serde(rename = "ticks_per_second")]
    pub hz: u32,
    /// What each pulse has the processor do, as shares of the pulse's period.
    pub load: TickShares,
    /// Length of a reading.
    pub reading_seconds: f64,
    /// After how long the sampled figure comes round, by arithmetic: the greatest common measure of pulse
    /// and tick, over the drift. Null without drift.
    pub period_seconds: Option<f64>,
    /// The same as found in the readings, by autocorrelation, to within a reading; null when the readings
    /// show none.
    pub period_found_seconds: Option<f64>,
    /// The whole time as one reading.
    pub whole: TickReading,
    /// The greatest error of a single reading's sampled figures.
    #[serde(rename = "reading_error_max_ratio")]
    pub reading_error_max: f64,
    /// The greatest distance of a single reading's exact figures from the load.
    #[serde(rename = "exact_error_max_ratio")]
    pub exact_error_max: f64,
    /// One after the other.
    pub readings: Vec<TickReading>,
}

/// What the processor did between two looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TickReading {
    /// When it ended, from the first tick.
    pub end_seconds: f64,
    /// What it did.
    pub exact: TickShares,
    /// What the ticks say that it did.
    pub sampled: TickShares,
}

/// Shares of the processor's time, each 0 to 1. The rest is idle.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TickShares {
    /// The kernel's work, which comes first in each pulse.
    #[serde(rename = "kernel_ratio")]
    pub kernel: f64,
    /// The program's, which follows it.
    #[serde(rename = "user_ratio")]
    pub user: f64,
}

impl TickShares {
    /// The greater of the two distances.
    pub fn distance(&self, other: &TickShares) -> f64 {
        let kernel = (self.kernel - other.kernel).abs();
        kernel.max((self.user - other.user).abs())
    }
}
