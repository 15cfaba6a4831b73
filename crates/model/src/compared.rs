//! Two results side by side: of a store, or of other tools' output.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Ends, SeriesTests, Verdict};

/// Name and version of the JSON that [`Compared`] becomes.
pub const COMPARED_SCHEMA: &str = "nicpoll.study-compare/1";

/// How two sets of values become an estimate and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparedMethod {
    /// Pairs from the blocks of one study: the typical ratio, with the exact signed-rank interval.
    SignedRanks,
    /// Pairs from the blocks of one study: the mean ratio, with Student's interval.
    PairedT,
    /// Without pairs: the median of all ratios between the sets, with the exact interval of Mann and Whitney.
    MannWhitney,
    /// Without pairs, and too few values for ranks: the ratio of the means of logs, with Welch's interval.
    Welch,
}

impl ComparedMethod {
    /// Whether the values came in pairs.
    pub fn is_paired(self) -> bool {
        matches!(self, ComparedMethod::SignedRanks | ComparedMethod::PairedT)
    }
}

impl fmt::Display for ComparedMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ComparedMethod::SignedRanks => "paired by block, signed ranks",
            ComparedMethod::PairedT => "paired by block, Student's t, which assumes even noise",
            ComparedMethod::MannWhitney => "unpaired, Mann-Whitney",
            ComparedMethod::Welch => "unpaired, Welch's t, which assumes even noise",
        })
    }
}

/// One set of values, and what is to be known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedSide {
    /// Which result it is, as it was named.
    pub name: String,
    /// How the values were read: the format of a file, or "study".
    pub read_as: String,
    /// The values in their order, in the comparison's quantity.
    pub values: Vec<f64>,
    /// Whether the values are the intervals of one run: neighbours may be alike, and the run itself is one.
    pub are_intervals: bool,
    /// Whether only senders counted: what arrived may be less.
    pub is_sent: bool,
    /// The middle value; null when there is none.
    pub median: Option<f64>,
    /// The mean.
    pub mean: Option<f64>,
    /// The standard deviation, with n - 1; null of fewer than two values.
    pub standard_deviation: Option<f64>,
    /// Positions of the values that lie far from the others, from 1. They count like all.
    pub outliers: Vec<u32>,
    /// Whether the values are alike from first to last. Where they are not, "and it matters" is withheld.
    #[serde(flatten)]
    pub order: SeriesTests,
}

/// Two sets of values compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedSets {
    /// The workload of a study; null of files.
    pub workload: Option<String>,
    /// What the values are, with their unit: `bits_per_second`, `packets_per_second`, a metric of a study, or
    /// `number`.
    pub quantity: String,
    /// Whether a greater value is the better one.
    pub more_is_better: bool,
    /// What is judged.
    pub judged: ComparedSide,
    /// What it is judged against.
    pub reference: ComparedSide,
    /// How the estimate and its interval are made. It follows from the sizes and the confidence.
    pub method: ComparedMethod,
    /// `judged / reference`; null when it cannot be had.
    pub ratio: Option<f64>,
    /// Its interval.
    pub interval: Ends,
    /// Confidence of the interval, 0 to 1: 1 - 0.05 / family.
    pub confidence_ratio: f64,
    /// The verdict on what is judged.
    pub verdict: Verdict,
    /// Two-sided p value of no difference, by the method.
    pub difference_p: Option<f64>,
    /// The same after Holm's correction for the family.
    pub holm_p: Option<f64>,
    /// The interval of Welch's t for the ratio of geometric means, which stands beside; null of pairs.
    pub welch: Ends,
    /// Welch's two-sided p value; null of pairs.
    pub welch_p: Option<f64>,
    /// The interval of Mann and Whitney's test, which stands beside; null of pairs.
    pub mann_whitney: Ends,
    /// Its two-sided p value; null of pairs.
    pub mann_whitney_p: Option<f64>,
}

/// A workload and a setting that only one of two studies has, so that they are not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedAlone {
    /// The result that has them, as it was named.
    pub result: String,
    /// The workload.
    pub workload: String,
    /// The setting.
    pub setting: String,
}

/// Everything that `nicpoll study compare --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// Name and version of this layout: [`COMPARED_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
    /// The ratio from which on a difference matters.
    pub margin_ratio: f64,
    /// What was compared: the family that the intervals are widened for.
    pub comparisons: Vec<ComparedSets>,
    /// What only one of two studies has.
    #[serde(default)]
    pub alone: Vec<ComparedAlone>,
}
