//! What the trials of a workload met under one setting: shown beside the figures, and deciding nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Metric, RateOverTime};

/// The middle and the greatest of a share over the trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shares {
    /// Median.
    pub median_ratio: f64,
    /// The greatest.
    pub max_ratio: f64,
}

/// What the trials of one workload met under one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingFindings {
    /// The workload.
    pub workload: String,
    /// The setting that was asked for.
    pub setting: String,
    /// Trials that were run.
    pub trials: u32,
    /// Of them, those that an event from outside voids.
    pub external_trials: u32,
    /// Those that gave no result, and count as the worst.
    pub failed_trials: u32,
    /// Those whose setting is not proven to have been in force, or whose rhythm was off. They count.
    pub unproven_trials: u32,
    /// Those whose account of losses does not close. Their rates count.
    pub ledger_void_trials: u32,
    /// Those that lost datagrams, of those whose account closes.
    pub loss_trials: u32,
    /// How often a setting had to be proven once more before traffic counted, all trials together.
    pub proof_retries: u32,
    /// Share of a core's time that the hypervisor took, on the core where it took most. Null when unknown.
    pub steal: Option<Shares>,
    /// Share of a core's time that threads took which are not the study's, both cores together. Null when
    /// that was not measured.
    pub foreign_cpu: Option<Shares>,
    /// How far the rounds were from one a period, either way. Null unless the setting has a period.
    pub rhythm_deviation: Option<Shares>,
    /// Tasks that ran or waited to run, as averaged by the kernel over a minute: the median. Null when
    /// unknown.
    pub load_average_1min: Option<f64>,
    /// The metric that decides: a rate.
    pub metric: Metric,
    /// Its median over the trials that count, failed ones as 0: bits or transactions, by the metric.
    pub median_per_second: Option<f64>,
    /// Its worst decile: a tenth of those trials, at least one, came to this or worse.
    pub worst_decile_per_second: Option<f64>,
    /// The share of those trials that came to less than half the median.
    pub below_half_median_ratio: Option<f64>,
    /// Whether the receiver's rate is even within the trials, from step to step. Null below ten steps, all trials
    /// together, and for studies of earlier versions.
    #[serde(default)]
    pub rate_within_trials: Option<RateOverTime>,
    /// Whether the rate is even from trial to trial, in the order of the blocks. Null below ten trials, and for studies
    /// of earlier versions.
    #[serde(default)]
    pub rate_over_trials: Option<RateOverTime>,
}
