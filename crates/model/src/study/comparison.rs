//! Comparisons and verdicts: of two settings of a study, and of any two sets of results.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::document::named;
use crate::study::trial::TrialFigures;

named! {
    /// The quantity of a comparison, as named on the first screen, in study files, documents and JSON.
    #[serde(rename_all = "lowercase")]
    pub enum Measure {
        /// Payload delivered, or requests answered, per second.
        Rate = "rate",
        /// Time from a request to its answer.
        #[serde(rename = "round trip")]
        RoundTrip = "round trip",
        /// CPU time.
        Cost = "cost",
        /// Time from the sender's program to the receiver's.
        Delay = "delay",
        /// Share of a paced load that arrives.
        Delivery = "delivery",
        /// Share of a paced load that is lost.
        Loss = "loss",
    }
}

named! {
    /// A figure of a trial by which settings are compared.
    #[serde(rename_all = "snake_case")]
    pub enum Metric {
        /// Payload delivered, in bits per second.
        DeliveredBitsPerSecond = "delivered_bits_per_second",
        /// Round trips per second, one at a time: the inverse of the mean round trip.
        TransactionsPerSecond = "transactions_per_second",
        /// Share of the offered datagrams delivered.
        DeliveredRatio = "delivered_ratio",
        /// Median round trip.
        RoundTripP50Ns = "round_trip_p50_ns",
        /// 99th percentile of the round trip.
        RoundTripP99Ns = "round_trip_p99_ns",
        /// 99.9th percentile of the round trip.
        RoundTripP999Ns = "round_trip_p999_ns",
        /// Share of the offered datagrams lost.
        LossRatio = "loss_ratio",
        /// Median time from the sender's program to the receiver's.
        OneWayDelayP50Ns = "one_way_delay_p50_ns",
        /// Interarrival jitter.
        JitterSeconds = "jitter_seconds",
        /// Busy share of both cores, summed.
        CpuBusy = "cpu_busy",
        /// Busy time per datagram or transaction.
        CpuNsPerPacket = "cpu_ns_per_packet",
        /// Busy time per byte, for byte streams, whose segments are not counted.
        CpuNsPerByte = "cpu_ns_per_byte",
        /// Context switches per second.
        ContextSwitchesPerSecond = "context_switches_per_second",
    }
}

/// How two values of a metric are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricKind {
    /// By ratio: rates, times and latencies.
    #[default]
    Ratio,
    /// By difference: shares such as loss and CPU use. 0.01 is one percentage point.
    Points,
}

/// Properties of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricFacts {
    /// The quantity it measures.
    pub measure: Measure,
    /// Its label among metrics of its measure.
    pub label: &'static str,
    /// The unit it is shown in, and that unit's size in the metric's own unit.
    pub unit: (&'static str, f64),
    /// Whether it is compared by ratio or in points.
    pub kind: MetricKind,
    /// Whether more is better.
    pub more_is_better: bool,
}

impl Metric {
    /// Returns the metric's properties.
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
            // 1 ns per byte is 1 s per GB.
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

    /// Returns the figure of a trial; `None` if it was not measured, or does not count.
    pub fn figure(self, of: &TrialFigures) -> Option<f64> {
        match self {
            Metric::DeliveredBitsPerSecond => Some(of.delivered_bits_per_second),
            Metric::TransactionsPerSecond => Some(of.round_trip?.transactions_per_second),
            Metric::RoundTripP50Ns => Some(of.round_trip?.quantiles.p50_ns? as f64),
            Metric::RoundTripP99Ns => Some(of.round_trip?.quantiles.p99_ns? as f64),
            Metric::RoundTripP999Ns => Some(of.round_trip?.quantiles.p999_ns? as f64),
            Metric::DeliveredRatio => {
                let offered = of.offered_packets.filter(|offered| *offered > 0)?;
                Some(of.delivered_packets? as f64 / offered as f64)
            }
            Metric::LossRatio => of.loss_ratio,
            Metric::OneWayDelayP50Ns => Some(of.one_way_delays.as_ref()?.quantile_ns(0.5)? as f64),
            Metric::JitterSeconds => of.jitter_seconds,
            Metric::CpuBusy => Some(of.counted_cpu()?.busy()),
            Metric::CpuNsPerPacket => of.counted_cpu()?.busy_ns_per_packet,
            Metric::CpuNsPerByte => of.counted_cpu()?.busy_ns_per_byte,
            Metric::ContextSwitchesPerSecond => Some(of.context_switches_per_second),
        }
    }

    /// Returns the quantity it measures.
    pub fn measure(self) -> Measure {
        self.facts().measure
    }

    /// Returns whether it is compared by ratio or in points.
    pub fn kind(self) -> MetricKind {
        self.facts().kind
    }

    /// Whether more is better.
    pub fn more_is_better(self) -> bool {
        self.facts().more_is_better
    }
}

named! {
    /// The verdict of an interval, oriented so that more is better.
    ///
    /// With the ratio's interval `[L, U]` and a margin `m` of 1.05, the first of these that holds: `equivalent` when
    /// the interval lies within `[1/m, m]`; `better, and it matters` when L >= m; `worse, and it matters` when U <=
    /// 1/m; `better` when L > 1; `worse` when U < 1; otherwise no difference is proven.
    #[serde(rename_all = "snake_case")]
    pub enum Verdict {
        /// Better by at least the margin.
        BetterAndItMatters = "better, and it matters",
        /// Better, but not certainly by the margin.
        Better = "better",
        /// Within the margin on both sides, whether or not there is a difference.
        Equivalent = "equivalent",
        /// The interval is compatible with several other verdicts.
        NoDifferenceProven = "no difference proven",
        /// No difference is proven, because the verdict depends on which trials count: see [`Sensitivity`].
        DependsOnWhatCounts = "no difference proven: depends on what counts",
        /// Worse, but not certainly by the margin.
        Worse = "worse",
        /// Worse by at least the margin.
        WorseAndItMatters = "worse, and it matters",
        /// No interval: too few pairs count, or a value is undefined.
        Inconclusive = "inconclusive",
    }
}

impl Verdict {
    /// Whether the verdict is conclusive: a difference, or equivalence.
    pub fn is_decided(self) -> bool {
        !matches!(
            self,
            Verdict::NoDifferenceProven | Verdict::DependsOnWhatCounts | Verdict::Inconclusive
        )
    }

    /// Returns the verdict without "and it matters".
    pub fn without_weight(self) -> Self {
        match self {
            Verdict::BetterAndItMatters => Verdict::Better,
            Verdict::WorseAndItMatters => Verdict::Worse,
            other => other,
        }
    }
}

named! {
    /// How an estimate and its interval are computed from the differences of blocks.
    #[serde(rename_all = "snake_case")]
    pub enum IntervalMethod {
        /// Typical difference: the Hodges-Lehmann estimate, with the exact signed-rank interval. Holds for any noise.
        HodgesLehmann = "Hodges-Lehmann",
        /// Mean difference with Student's interval. It assumes even noise, and spikes under one setting mislead it.
        PairedT = "paired t, assuming even noise",
    }
}

/// The two ends of an interval. An end is null if failed trials leave the interval without it; both are null if there
/// is no interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ends {
    /// Lower end: a ratio, or a difference of shares.
    #[serde(rename = "low_ratio")]
    pub low: Option<f64>,
    /// Upper end; null like the lower end, and where there is none.
    #[serde(rename = "high_ratio")]
    pub high: Option<f64>,
}

/// A verdict under another rule for which trials count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scenario {
    /// Pairs that count under that rule.
    pub blocks: u32,
    /// The estimate, on the comparison's scale; null when there is none.
    #[serde(rename = "estimate_ratio")]
    pub estimate: Option<f64>,
    /// Its interval, by the comparison's method and confidence.
    pub interval: Ends,
    /// The verdict.
    pub verdict: Verdict,
}

/// Whether a verdict depends on which trials count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sensitivity {
    /// Trials under the judged setting that no external event voids, and how many of them had the setting provably in
    /// force. The others have no figure.
    pub in_force_trials: [u32; 2],
    /// The same for the reference.
    pub reference_in_force_trials: [u32; 2],
    /// Only pairs with proof for both trials.
    pub proven_only: Scenario,
    /// Missing pairs counted as the worst for the judged setting; null when none is missing.
    pub missing_as_worst: Option<Scenario>,
    /// Missing pairs counted as the best for it; null when none is missing.
    pub missing_as_best: Option<Scenario>,
}

/// One metric of one workload under one setting, compared with a reference setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The workload.
    pub workload: String,
    /// The metric.
    pub metric: Metric,
    /// The quantity it measures; null in studies of earlier versions.
    #[serde(default)]
    pub measure: Option<Measure>,
    /// Ratio or points.
    pub kind: MetricKind,
    /// Whether the metric was designated in advance to get a verdict.
    pub primary: bool,
    /// The factor with the two compared levels, averaged over all combinations of the other factors: `setting` and
    /// `reference` are then its levels. Null when they are settings.
    #[serde(default)]
    pub factor: Option<String>,
    /// The judged setting.
    pub setting: String,
    /// The setting it is judged against.
    pub reference: String,
    /// For levels of a factor: the pairs of settings missing from the average because their comparison was dropped. The
    /// average is over the other combinations.
    #[serde(default)]
    pub left_out: Vec<(String, String)>,
    /// Pairs that count: blocks with a figure in both trials.
    pub blocks: u32,
    /// Blocks without a pair: one of the trials failed, ran without its setting in force or was disturbed externally,
    /// or nothing was delivered under either setting.
    pub missing_blocks: u32,
    /// Method of the estimate and its interval, determined by the planned blocks and the confidence.
    pub method: IntervalMethod,
    /// `setting / reference`: the typical ratio of a block. Null for points.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's interval; null with fewer blocks than the method needs.
    pub ratio_low: Option<f64>,
    /// Upper end of the ratio's interval; null like the lower end, and if the interval has no upper end.
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
    /// Two-sided p value of no difference, by the same method, for blocks taken as independent: at most 1 -
    /// `confidence_ratio` whenever the interval excludes no difference. Null below three pairs.
    pub difference_p: Option<f64>,
    /// The p value after Holm's correction for the study's family: below 0.05 where Holm finds a difference, which
    /// includes every difference in a verdict. Null for metrics that are not primary.
    pub holm_p: Option<f64>,
    /// Student's interval for the mean, on the same scale and at the same confidence. Verdicts ignore it.
    pub paired_t: Ends,
    /// Student's interval for the mean without the outer 20 % at each end. Verdicts ignore it.
    pub trimmed_t: Ends,
    /// One-sided p value of a positive lag-1 correlation of the differences' ranks; null below five pairs.
    pub lag_one_p: Option<f64>,
    /// Whether `lag_one_p` is below 1 - `confidence_ratio`: a setting seems to have stayed in one state for several
    /// blocks. In any case intervals are widened for the correlation between blocks.
    pub are_blocks_dependent: bool,
    /// The smallest effect that such a plan detects nine times in ten, from the scatter and by the method: a ratio
    /// above 1, or a difference of shares. Null for metrics that are not primary.
    pub found_nine_in_ten_ratio: Option<f64>,
    /// Blocks needed to detect a difference of the margin nine times in ten, at that scatter. Null for metrics that are
    /// not primary, and beyond ten thousand.
    pub blocks_to_find_margin: Option<u32>,
    /// For a share without events under either setting: the number of chances under each. The interval's ends are then
    /// those that these numbers allow, if events are independent. Null otherwise.
    #[serde(rename = "none_seen_of_packets")]
    pub none_seen_of: Option<[u64; 2]>,
    /// Verdicts under other rules for which trials count; null for metrics that are not primary.
    pub sensitivity: Option<Sensitivity>,
}

/// Name and version of the JSON of [`Compared`].
pub const COMPARED_SCHEMA: &str = "nicpoll.study-compare/1";

named! {
    /// How an estimate and its interval are computed from two sets of values.
    #[serde(rename_all = "snake_case")]
    pub enum ComparedMethod {
        /// Pairs from the blocks of one study: typical ratio, with the exact signed-rank interval.
        SignedRanks = "paired by block, signed ranks",
        /// Pairs from the blocks of one study: mean ratio, with Student's interval.
        PairedT = "paired by block, Student's t, which assumes even noise",
        /// Unpaired: median of all ratios between the sets, with the exact Mann-Whitney interval.
        MannWhitney = "unpaired, Mann-Whitney",
        /// Unpaired, with too few values for ranks: ratio of the means of logs, with Welch's interval.
        Welch = "unpaired, Welch's t, which assumes even noise",
    }
}

impl ComparedMethod {
    /// Whether the values are paired.
    pub fn is_paired(self) -> bool {
        matches!(self, ComparedMethod::SignedRanks | ComparedMethod::PairedT)
    }
}

/// One set of values, and its properties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedSide {
    /// The result as the command named it.
    pub name: String,
    /// Source of the values: the format of a file, or "study".
    pub read_as: String,
    /// The values in order, in the comparison's quantity; null for a time without end, in which nothing was
    /// answered.
    #[serde(deserialize_with = "endless")]
    #[schemars(with = "Vec<Option<f64>>")]
    pub values: Vec<f64>,
    /// Whether the values are intervals of one run: neighbours may be correlated, and the run counts as one.
    pub are_intervals: bool,
    /// Whether only senders counted: fewer may have arrived.
    pub is_sent: bool,
    /// The median; null without values, or without end.
    pub median: Option<f64>,
    /// The mean; null without values, or without end.
    pub mean: Option<f64>,
    /// The standard deviation, with n - 1; null with fewer than two values.
    pub standard_deviation: Option<f64>,
    /// Positions of outliers, from 1. They count like all other values.
    pub outliers: Vec<u32>,
    /// Whether the values are homogeneous over time.
    #[serde(flatten)]
    pub order: SeriesTests,
}

/// Reads values, of which JSON has those without end as null.
fn endless<'de, D: Deserializer<'de>>(values: D) -> Result<Vec<f64>, D::Error> {
    let values = Vec::<Option<f64>>::deserialize(values)?;
    let with_end = |value: Option<f64>| value.unwrap_or(f64::INFINITY);
    Ok(values.into_iter().map(with_end).collect())
}

/// Two sets of values compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedSets {
    /// The workload of a study; null for files.
    pub workload: Option<String>,
    /// The quantity with its unit: `bits_per_second`, `packets_per_second`, a metric of a study, or `number`.
    pub quantity: String,
    /// The quantity that the values measure; null for plain numbers, and in results of earlier versions.
    #[serde(default)]
    pub measure: Option<Measure>,
    /// Whether they are compared by ratio or in points.
    #[serde(default)]
    pub kind: MetricKind,
    /// Whether more is better.
    pub more_is_better: bool,
    /// The judged set.
    pub judged: ComparedSide,
    /// The set it is judged against.
    pub reference: ComparedSide,
    /// Method of the estimate and its interval, determined by the sizes and the confidence.
    pub method: ComparedMethod,
    /// `judged / reference`; null when undefined, and for points.
    pub ratio: Option<f64>,
    /// `judged - reference`, a difference of shares: 0.01 is one percentage point. Null for ratios.
    #[serde(default)]
    pub share_difference: Option<f64>,
    /// The interval of the ratio, or of the difference of shares.
    pub interval: Ends,
    /// Confidence of the interval, 0 to 1: 1 - 0.05 / family.
    pub confidence_ratio: f64,
    /// The verdict on the judged set.
    pub verdict: Verdict,
    /// Why there is none; null when there is one, and in results of earlier versions.
    #[serde(default)]
    pub no_verdict: Option<String>,
    /// Two-sided p value of no difference, by the method.
    pub difference_p: Option<f64>,
    /// The p value after Holm's correction for the family.
    pub holm_p: Option<f64>,
    /// Welch's t interval for the ratio of geometric means, or for the difference of means; verdicts ignore it. Null
    /// for pairs.
    pub welch: Ends,
    /// Welch's two-sided p value; null for pairs.
    pub welch_p: Option<f64>,
    /// The interval of the Mann-Whitney test; verdicts ignore it. Null for pairs.
    pub mann_whitney: Ends,
    /// Its two-sided p value; null for pairs.
    pub mann_whitney_p: Option<f64>,
}

/// A workload and setting that only one of two studies has, and that are not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedAlone {
    /// The result that has them, as the command named it.
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
    /// The comparisons, which form the family that widens the intervals.
    pub comparisons: Vec<ComparedSets>,
    /// Workloads and settings that only one of two studies has.
    #[serde(default)]
    pub alone: Vec<ComparedAlone>,
    /// Other differences between two studies, a sentence each: what a name means in each, then the length of trials,
    /// the machine, its kernel and sysctls, and the version of nicpoll.
    #[serde(default)]
    pub differences: Vec<String>,
}

/// Three tests of values in order of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesTests {
    /// Two-sided p value of no drift (Mann-Kendall); null below ten values.
    pub drift_p: Option<f64>,
    /// The most likely step: position of the first value after it, from 1.
    pub step_at: Option<u32>,
    /// p value of no step (Pettitt).
    pub step_p: Option<f64>,
    /// p value of no dependence on earlier values (Ljung-Box, on ranks).
    pub dependence_p: Option<f64>,
    /// Whether one of the three p values is below 0.05 / 3; for a study's settings, below 0.05 / 3 divided among all of
    /// them.
    pub is_uneven: bool,
}

/// How a rate changes over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unevenness {
    /// One change of level, as at the end of a warm-up.
    Step,
    /// A steady rise or fall.
    Drift,
    /// Slow ups and downs, as in a sawtooth.
    Swings,
}

/// Whether the rate of a workload under one setting is constant over time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateOverTime {
    /// Trials tested together.
    pub trials: u32,
    /// Results of the tests.
    #[serde(flatten)]
    pub tests: SeriesTests,
    /// The kind of change, if the tests find one as great as the study's margin; null otherwise.
    pub found: Option<Unevenness>,
    /// Size of the change. Step: the rate after over the rate before. Drift: the rate in the last third over that in
    /// the first. Swings: half the distance between the lowest and the highest tenth, over the median. Null without a
    /// change.
    pub size_ratio: Option<f64>,
    /// Position of a step within trials, in seconds since the traffic began. Null otherwise.
    pub step_at_seconds: Option<f64>,
    /// The first block after a step between trials. Null otherwise.
    pub step_at_block: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_without_end_is_null_in_json_and_comes_back() {
        let side = serde_json::json!({
            "name": "a", "read_as": "study", "values": [1.0, null], "are_intervals": false,
            "is_sent": false, "median": null, "mean": null, "standard_deviation": null,
            "outliers": [], "drift_p": null, "step_at": null, "step_p": null,
            "dependence_p": null, "is_uneven": false,
        });
        let read: ComparedSide = serde_json::from_value(side.clone()).unwrap();
        assert_eq!(read.values, [1.0, f64::INFINITY]);
        assert_eq!(serde_json::to_value(read).unwrap(), side);
    }
}
