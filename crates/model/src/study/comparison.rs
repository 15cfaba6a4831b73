//! Comparisons and verdicts: of two settings of a study, and of any two sets of results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::named;

named! {
    /// What a comparison is of: the word for it on the first screen, in study files, documents and JSON.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "lowercase")]
    pub enum Measure {
        /// How much arrives, or is answered, in a second.
        Rate = "rate",
        /// From a request to its answer.
        #[serde(rename = "round trip")]
        RoundTrip = "round trip",
        /// CPU time.
        Cost = "cost",
        /// From the sender's program to the receiver's.
        Delay = "delay",
        /// How much of a paced load arrives.
        Delivery = "delivery",
        /// How much of it does not.
        Loss = "loss",
    }
}

named! {
    /// A figure of a trial that settings are compared by.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "snake_case")]
    pub enum Metric {
        /// Payload delivered, bits a second.
        DeliveredBitsPerSecond = "delivered_bits_per_second",
        /// Round trips a second, one at a time: the inverse of the mean round trip.
        TransactionsPerSecond = "transactions_per_second",
        /// Share of the offered datagrams that was delivered.
        DeliveredRatio = "delivered_ratio",
        /// Median round trip.
        RoundTripP50Ns = "round_trip_p50_ns",
        /// 99th percentile of the round trip.
        RoundTripP99Ns = "round_trip_p99_ns",
        /// 99.9th percentile of the round trip.
        RoundTripP999Ns = "round_trip_p999_ns",
        /// Share of the offered datagrams that was lost.
        LossRatio = "loss_ratio",
        /// Median time from the sender's program to the receiver's.
        OneWayDelayP50Ns = "one_way_delay_p50_ns",
        /// Interarrival jitter.
        JitterSeconds = "jitter_seconds",
        /// Busy share of both cores together.
        CpuBusy = "cpu_busy",
        /// Busy time a datagram or transaction.
        CpuNsPerPacket = "cpu_ns_per_packet",
        /// Busy time a byte: of byte streams, whose segments nobody counts.
        CpuNsPerByte = "cpu_ns_per_byte",
        /// Context switches a second.
        ContextSwitchesPerSecond = "context_switches_per_second",
    }
}

/// How two values of a metric are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricKind {
    /// By their ratio: rates, times and latencies.
    #[default]
    Ratio,
    /// By their difference: shares such as loss and CPU use. 0.01 is one percentage point.
    Points,
}

/// What is to be known of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricFacts {
    /// What it measures.
    pub measure: Measure,
    /// What it is called next to others of its measure.
    pub label: &'static str,
    /// The unit that people read it in, and how many of the metric's own make one.
    pub unit: (&'static str, f64),
    /// Whether it is compared as a ratio or as points.
    pub kind: MetricKind,
    /// Whether a greater value is the better one.
    pub more_is_better: bool,
}

impl Metric {
    /// Its row of the table of metrics.
    pub const fn facts(self) -> MetricFacts {
        use Measure::*;
        use MetricKind::*;
        let us = ("us", 1e3);
        let (measure, label, unit, kind, more_is_better) = match self {
            Metric::DeliveredBitsPerSecond => (Rate, "delivered", ("Mbit/s", 1e6), Ratio, true),
            Metric::TransactionsPerSecond => {
                (Rate, "transactions/s", ("trans./s", 1.0), Ratio, true)
            }
            Metric::DeliveredRatio => {
                let label = "delivered of the offered";
                (Delivery, label, ("%", 0.01), Ratio, true)
            }
            Metric::RoundTripP50Ns => (RoundTrip, "round trip p50", us, Ratio, false),
            Metric::RoundTripP99Ns => (RoundTrip, "round trip p99", us, Ratio, false),
            Metric::RoundTripP999Ns => (RoundTrip, "round trip p99.9", us, Ratio, false),
            Metric::LossRatio => (Loss, "loss", ("%", 0.01), Points, false),
            Metric::OneWayDelayP50Ns => (Delay, "one-way delay p50", us, Ratio, false),
            Metric::JitterSeconds => (Delay, "jitter", ("us", 1e-6), Ratio, false),
            Metric::CpuBusy => (Cost, "CPU busy, all together", ("%", 0.01), Points, false),
            Metric::CpuNsPerPacket => (Cost, "CPU ns per packet", ("ns", 1.0), Ratio, false),
            // A nanosecond a byte is a second a GB.
            Metric::CpuNsPerByte => (Cost, "CPU s per GB", ("s/GB", 1.0), Ratio, false),
            Metric::ContextSwitchesPerSecond => {
                (Cost, "context switches/s", ("/s", 1.0), Ratio, false)
            }
        };
        MetricFacts {
            measure,
            label,
            unit,
            kind,
            more_is_better,
        }
    }

    /// What it measures.
    pub fn measure(self) -> Measure {
        self.facts().measure
    }

    /// Whether the metric is compared as a ratio or as points.
    pub fn kind(self) -> MetricKind {
        self.facts().kind
    }

    /// Whether a greater value is the better one.
    pub fn more_is_better(self) -> bool {
        self.facts().more_is_better
    }
}

named! {
    /// The word for what an interval says, oriented so that more is better.
    ///
    /// With the ratio's interval `[L, U]` and a margin `m` of 1.05, the first that holds of: `equivalent` when the
    /// interval lies within `[1/m, m]`; `better, and it matters` when L >= m; `worse, and it matters` when U <= 1/m;
    /// `better` when L > 1; `worse` when U < 1; otherwise no difference is proven.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Verdict {
        /// Better by at least the margin.
        BetterAndItMatters = "better, and it matters",
        /// Better, but not surely by the margin.
        Better = "better",
        /// Within the margin both ways, whether or not there is a difference.
        Equivalent = "equivalent",
        /// The interval allows for more than one of the others.
        NoDifferenceProven = "no difference proven",
        /// No difference is proven, because the word hangs on which trials count: see [`Sensitivity`].
        DependsOnWhatCounts = "no difference proven: depends on what counts",
        /// Worse, but not surely by the margin.
        Worse = "worse",
        /// Worse by at least the margin.
        WorseAndItMatters = "worse, and it matters",
        /// There is no interval: too few pairs count, or a value has no meaning.
        Inconclusive = "inconclusive",
    }
}

impl Verdict {
    /// Whether the study found out which of the words for a difference holds, "equivalent" among them.
    pub fn is_decided(self) -> bool {
        !matches!(
            self,
            Verdict::NoDifferenceProven | Verdict::DependsOnWhatCounts | Verdict::Inconclusive
        )
    }

    /// The word without "and it matters".
    pub fn without_weight(self) -> Self {
        match self {
            Verdict::BetterAndItMatters => Verdict::Better,
            Verdict::WorseAndItMatters => Verdict::Worse,
            other => other,
        }
    }
}

named! {
    /// How an estimate and its interval are made of the differences of blocks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum IntervalMethod {
        /// The typical difference: the Hodges-Lehmann estimate, with the exact signed-rank interval. Whatever
        /// the noise.
        HodgesLehmann = "Hodges-Lehmann",
        /// The mean difference with Student's interval. It assumes even noise: spikes under one setting
        /// deceive it.
        PairedT = "paired t, assuming even noise",
    }
}

/// The two ends of an interval. An end is null where the interval has none, because trials failed; both
/// are null where there is no interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ends {
    /// Lower end: a ratio, or a difference of shares.
    #[serde(rename = "low_ratio")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(rename = "high_ratio")]
    pub high: Option<f64>,
}

/// A verdict under another rule of what counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scenario {
    /// Pairs that count by that rule.
    pub blocks: u32,
    /// The estimate, on the comparison's scale; null when there is none.
    #[serde(rename = "estimate_ratio")]
    pub estimate: Option<f64>,
    /// Its interval, by the comparison's method and confidence.
    pub interval: Ends,
    /// What it says.
    pub verdict: Verdict,
}

/// Whether a verdict hangs on which trials count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sensitivity {
    /// Trials under the judged setting that no event from outside voids, and in how many of them the setting is proven
    /// to have been in force. The others have no figure.
    pub in_force_trials: [u32; 2],
    /// The same under the reference.
    pub reference_in_force_trials: [u32; 2],
    /// Only pairs whose two trials are proven.
    pub proven_only: Scenario,
    /// Missing pairs counted as the worst for the judged setting; null when none is missing.
    pub missing_as_worst: Option<Scenario>,
    /// Missing pairs counted as the best for it; null when none is missing.
    pub missing_as_best: Option<Scenario>,
}

/// One metric of one workload under one setting against a reference setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The workload.
    pub workload: String,
    /// The metric.
    pub metric: Metric,
    /// What it measures; null in studies of earlier versions.
    #[serde(default)]
    pub measure: Option<Measure>,
    /// Ratio or points.
    pub kind: MetricKind,
    /// Whether the metric was named in advance as one that gets a verdict.
    pub primary: bool,
    /// The factor of which two levels are compared over all combinations of the other factors: `setting` and
    /// `reference` are then levels of it. Null where they are settings.
    #[serde(default)]
    pub factor: Option<String>,
    /// The setting that is judged.
    pub setting: String,
    /// The setting that it is judged against.
    pub reference: String,
    /// Where levels of a factor are compared: the pairs of settings that their average leaves out, because the
    /// comparison of the two was given up. The average is over the other combinations.
    #[serde(default)]
    pub left_out: Vec<(String, String)>,
    /// Pairs that count: blocks in which both trials have a figure.
    pub blocks: u32,
    /// Blocks whose pair is missing: one of its trials failed, ran without its setting in force or was disturbed from
    /// outside, or nothing was delivered under either setting.
    pub missing_blocks: u32,
    /// How the estimate and its interval are made. It follows from the blocks planned and the confidence.
    pub method: IntervalMethod,
    /// `setting / reference`: the typical ratio of a block. Null for points.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's interval; null below the fewest blocks of the method.
    pub ratio_low: Option<f64>,
    /// Upper end of the ratio's interval; null as the lower end is, and where it has no upper end.
    pub ratio_high: Option<f64>,
    /// `setting - reference`, a difference of shares: 0.01 is one percentage point. Null for ratios.
    pub share_difference: Option<f64>,
    /// Lower end of the difference's interval.
    pub share_difference_low: Option<f64>,
    /// Upper end of the difference's interval.
    pub share_difference_high: Option<f64>,
    /// Confidence of this one interval, 0 to 1. Primary metrics: 1 - 0.05 / family, so that all of them
    /// together hold at 95 %. Others: 0.95 each.
    pub confidence_ratio: f64,
    /// The verdict; null for metrics that are not primary.
    pub verdict: Option<Verdict>,
    /// Why there is no verdict; null when there is one, and for metrics that are not primary.
    #[serde(default)]
    pub no_verdict: Option<String>,
    /// Two-sided p value of no difference, by the same method, of blocks taken as independent: at most
    /// 1 - `confidence_ratio` wherever the interval leaves no difference out. Null below three pairs.
    pub difference_p: Option<f64>,
    /// The p value after Holm's correction for the study's family: below 0.05 where Holm finds a difference,
    /// which he does at least where the verdict has a word for one. Null for metrics that are not primary.
    pub holm_p: Option<f64>,
    /// Student's interval for the mean, on the same scale and at the same confidence. It decides no verdict.
    pub paired_t: Ends,
    /// Student's interval for the mean without the outer 20 % at each end. It decides no verdict.
    pub trimmed_t: Ends,
    /// One-sided p value of a positive lag-1 correlation of the differences' ranks; null below five pairs.
    pub lag_one_p: Option<f64>,
    /// Whether `lag_one_p` is below 1 - `confidence_ratio`: a setting seems to have stayed in one state for several
    /// blocks. Whether or not it is, intervals are as wide as the correlation from block to block asks for.
    pub are_blocks_dependent: bool,
    /// The least effect that such a plan finds nine times in ten, from the scatter and by the method: a
    /// ratio above 1, or a difference of shares. Null for metrics that are not primary.
    pub found_nine_in_ten_ratio: Option<f64>,
    /// Blocks in which a difference of the margin would be found nine times in ten, with that scatter.
    /// Null for metrics that are not primary, and beyond ten thousand.
    pub blocks_to_find_margin: Option<u32>,
    /// For a share of which no event was seen under either setting, so many chances did each have; the
    /// ends are then what these allow, if events come one at a time. Null otherwise.
    #[serde(rename = "none_seen_of_packets")]
    pub none_seen_of: Option<[u64; 2]>,
    /// What other rules of what counts would say; null for metrics that are not primary.
    pub sensitivity: Option<Sensitivity>,
}

/// Name and version of the JSON that [`Compared`] becomes.
pub const COMPARED_SCHEMA: &str = "nicpoll.study-compare/1";

named! {
    /// How two sets of values become an estimate and its interval.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ComparedMethod {
        /// Pairs from the blocks of one study: the typical ratio, with the exact signed-rank interval.
        SignedRanks = "paired by block, signed ranks",
        /// Pairs from the blocks of one study: the mean ratio, with Student's interval.
        PairedT = "paired by block, Student's t, which assumes even noise",
        /// Without pairs: the median of all ratios between the sets, with the exact interval of Mann and Whitney.
        MannWhitney = "unpaired, Mann-Whitney",
        /// Without pairs, and too few values for ranks: the ratio of the means of logs, with Welch's interval.
        Welch = "unpaired, Welch's t, which assumes even noise",
    }
}

impl ComparedMethod {
    /// Whether the values came in pairs.
    pub fn is_paired(self) -> bool {
        matches!(self, ComparedMethod::SignedRanks | ComparedMethod::PairedT)
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
    /// Whether the values are alike from first to last.
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
    /// What they measure; null of plain numbers, and in results of earlier versions.
    #[serde(default)]
    pub measure: Option<Measure>,
    /// Whether they are compared by their ratio, or in points.
    #[serde(default)]
    pub kind: MetricKind,
    /// Whether a greater value is the better one.
    pub more_is_better: bool,
    /// What is judged.
    pub judged: ComparedSide,
    /// What it is judged against.
    pub reference: ComparedSide,
    /// How the estimate and its interval are made. It follows from the sizes and the confidence.
    pub method: ComparedMethod,
    /// `judged / reference`; null when it cannot be had, and for points.
    pub ratio: Option<f64>,
    /// `judged - reference`, a difference of shares: 0.01 is one percentage point. Null for ratios.
    #[serde(default)]
    pub share_difference: Option<f64>,
    /// The interval of the ratio, or of the difference of shares.
    pub interval: Ends,
    /// Confidence of the interval, 0 to 1: 1 - 0.05 / family.
    pub confidence_ratio: f64,
    /// The verdict on what is judged.
    pub verdict: Verdict,
    /// Two-sided p value of no difference, by the method.
    pub difference_p: Option<f64>,
    /// The same after Holm's correction for the family.
    pub holm_p: Option<f64>,
    /// The interval of Welch's t for the ratio of geometric means, or for the difference of means; it decides no verdict.
    /// Null for pairs.
    pub welch: Ends,
    /// Welch's two-sided p value; null of pairs.
    pub welch_p: Option<f64>,
    /// The interval of Mann and Whitney's test; it decides no verdict. Null for pairs.
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
    /// What else differs between two studies, a sentence each: what a name means in either, then the length of trials,
    /// the machine, its kernel and sysctls, and the version of nicpoll.
    #[serde(default)]
    pub differences: Vec<String>,
}

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
