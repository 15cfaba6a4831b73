//! What a comparison of two settings says.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure of a trial that settings are compared by.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Payload delivered, bits a second.
    DeliveredBitsPerSecond,
    /// Round trips a second, one at a time: the inverse of the mean round trip.
    TransactionsPerSecond,
    /// Median round trip.
    RoundTripP50Ns,
    /// 99th percentile of the round trip.
    RoundTripP99Ns,
    /// 99.9th percentile of the round trip.
    RoundTripP999Ns,
    /// Share of the offered datagrams that was lost.
    LossRatio,
    /// Interarrival jitter.
    JitterSeconds,
    /// Busy share of both cores together.
    CpuBusy,
    /// Busy time a datagram or transaction.
    CpuNsPerPacket,
    /// Busy time a byte.
    CpuNsPerByte,
    /// Context switches a second.
    ContextSwitchesPerSecond,
}

/// How two values of a metric are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricKind {
    /// By their ratio: rates, times and latencies.
    Ratio,
    /// By their difference: shares such as loss and CPU use. 0.01 is one percentage point.
    Points,
}

impl Metric {
    /// The name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Metric::DeliveredBitsPerSecond => "delivered_bits_per_second",
            Metric::TransactionsPerSecond => "transactions_per_second",
            Metric::RoundTripP50Ns => "round_trip_p50_ns",
            Metric::RoundTripP99Ns => "round_trip_p99_ns",
            Metric::RoundTripP999Ns => "round_trip_p999_ns",
            Metric::LossRatio => "loss_ratio",
            Metric::JitterSeconds => "jitter_seconds",
            Metric::CpuBusy => "cpu_busy",
            Metric::CpuNsPerPacket => "cpu_ns_per_packet",
            Metric::CpuNsPerByte => "cpu_ns_per_byte",
            Metric::ContextSwitchesPerSecond => "context_switches_per_second",
        }
    }

    /// Whether the metric is compared as a ratio or as points.
    pub fn kind(self) -> MetricKind {
        match self {
            Metric::LossRatio | Metric::CpuBusy => MetricKind::Points,
            _ => MetricKind::Ratio,
        }
    }

    /// Whether a greater value is the better one.
    pub fn more_is_better(self) -> bool {
        matches!(
            self,
            Metric::DeliveredBitsPerSecond | Metric::TransactionsPerSecond
        )
    }
}

/// The word for what an interval says, oriented so that more is better.
///
/// With the ratio's interval `[L, U]` and a margin `m` of 1.05: `better` when L > 1, and it matters
/// when L >= m; `worse` when U < 1, and it matters when U <= 1/m; `equivalent` when the interval
/// lies within `[1/m, m]`; otherwise no difference is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Better by at least the margin.
    BetterAndItMatters,
    /// Better, perhaps by less than the margin.
    Better,
    /// Within the margin both ways.
    Equivalent,
    /// The interval allows for more than one of the others.
    NoDifferenceProven,
    /// Worse, perhaps by less than the margin.
    Worse,
    /// Worse by at least the margin.
    WorseAndItMatters,
    /// There is no interval: fewer than three good blocks, or a value that is 0 or missing.
    Inconclusive,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::BetterAndItMatters => "better, and it matters",
            Verdict::Better => "better",
            Verdict::Equivalent => "equivalent",
            Verdict::NoDifferenceProven => "no difference proven",
            Verdict::Worse => "worse",
            Verdict::WorseAndItMatters => "worse, and it matters",
            Verdict::Inconclusive => "inconclusive",
        })
    }
}

/// One metric of one workload under one setting against a reference setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The workload.
    pub workload: String,
    /// The metric.
    pub metric: Metric,
    /// Ratio or points.
    pub kind: MetricKind,
    /// Whether the metric was named in advance as one that gets a verdict.
    pub primary: bool,
    /// The setting that is judged.
    pub setting: String,
    /// The setting that it is judged against.
    pub reference: String,
    /// Blocks in which both trials count.
    pub blocks: u32,
    /// Geometric mean of `setting / reference` over the blocks. Null for points, and when a value is
    /// 0 or missing.
    pub ratio: Option<f64>,
    /// Lower end of the interval for the ratio; null below three blocks.
    pub ratio_low: Option<f64>,
    /// Upper end of the interval for the ratio; null below three blocks.
    pub ratio_high: Option<f64>,
    /// Mean of `setting - reference` over the blocks, in points. Null for ratios.
    pub difference: Option<f64>,
    /// Lower end of the interval for the difference.
    pub difference_low: Option<f64>,
    /// Upper end of the interval for the difference.
    pub difference_high: Option<f64>,
    /// Confidence of this one interval. Primary metrics: 1 - 0.05 / family, so that all of them
    /// together hold at 95 %. Others: 0.95 each.
    pub confidence: f64,
    /// The verdict; null for metrics that are not primary.
    pub verdict: Option<Verdict>,
    /// Exact two-sided sign-flip p value, from six blocks on. It does not decide.
    pub sign_flip_p: Option<f64>,
    /// BCa bootstrap interval for the ratio or difference, from ten blocks on: lower end. It does not
    /// decide.
    pub bca_low: Option<f64>,
    /// BCa bootstrap interval: upper end.
    pub bca_high: Option<f64>,
    /// Blocks that would be needed to tell a ratio of 1.05 from 1 with the scatter seen here,
    /// estimated. Null unless no difference is proven.
    pub blocks_to_resolve_margin: Option<u32>,
}
