//! What follows from the pairs of a live comparison.
//!
//! What must hold: load comes first, since it decides which figures the verdict rests on. A difference is the
//! judged setting less the reference, and a ratio the judged setting over the reference: below 0 and below 1
//! the judged setting uses less.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Verdict;

/// What a live comparison says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbAnswer {
    /// Pairs that count.
    pub pairs: u32,
    /// Pairs that were set aside for an event from outside.
    pub set_aside_pairs: u32,
    /// The load, and whether the setting moves it; null without pairs.
    pub load: Option<AbLoad>,
    /// CPU time, and what becomes of it; null when too few pairs have it.
    pub cpu: Option<AbCpuCost>,
    /// Delays of each kind and quantile that enough pairs have.
    pub delays: Vec<AbDelayAnswer>,
    /// The word for CPU time, less being better; null when there is no verdict.
    pub verdict: Option<Verdict>,
    /// Why there is no verdict, the gravest first; empty when there is one.
    pub no_verdict: Vec<AbNoVerdict>,
    /// Whether the judged setting is recommended; otherwise: keep what was there.
    pub is_recommended: bool,
}

/// A ratio with its interval. An end is null where the interval has none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbRatio {
    /// Judged over reference: the typical ratio of a pair.
    pub ratio: f64,
    /// Lower end.
    pub ratio_low: Option<f64>,
    /// Upper end.
    pub ratio_high: Option<f64>,
}

/// A difference of busy cores with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbCores {
    /// Judged less reference, in cores.
    pub cores: f64,
    /// Lower end.
    pub cores_low: f64,
    /// Upper end.
    pub cores_high: f64,
}

/// The load of both settings, packets and bytes of both directions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbLoad {
    /// Mean of the pairs, under the reference.
    pub reference_packets_per_second: f64,
    /// The same under the judged setting.
    pub judged_packets_per_second: f64,
    /// Mean of the pairs, under the reference.
    pub reference_bytes_per_second: f64,
    /// The same under the judged setting.
    pub judged_bytes_per_second: f64,
    /// Packets within pairs; null when too few pairs carried any.
    pub packets: Option<AbRatio>,
    /// Bytes within pairs.
    pub bytes: Option<AbRatio>,
    /// Whether both intervals lie within the margin: the setting does not move the load.
    pub is_equal: bool,
    /// Whether one of the intervals excludes 1: the setting moves the load. When neither this nor `is_equal`
    /// holds, the load varied too much to tell.
    pub is_moved: bool,
}

/// CPU time of both settings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbCpuCost {
    /// Pairs with CPU time on both sides.
    pub pairs: u32,
    /// Mean of the pairs, under the reference.
    pub reference_cores: f64,
    /// The same under the judged setting.
    pub judged_cores: f64,
    /// The difference at equal load, adjusted for the load of each block.
    pub equal_load: AbCores,
    /// What a packet more in one block of a pair than in the other costs: the slope of the adjustment.
    pub ns_per_added_packet: f64,
    /// How much the difference at equal load grows with each packet of a pair's load.
    pub ns_difference_per_packet: f64,
    /// `equal_load` over the mean load of the pairs: the difference for each packet, with its interval's ends.
    pub ns_per_packet: Option<[f64; 3]>,
    /// The difference as it was, load and all.
    pub total: AbCores,
    /// CPU time of each byte, at the load that each setting reached; null when too few pairs carried any.
    pub per_byte: Option<AbRatio>,
    /// The greatest cost of counting events under either setting; it is subtracted.
    pub counting_cores_max: f64,
    /// Pairs with a block whose busy time is below what counting costs. Such a block counts as 0 cores; with more than
    /// one such pair in ten there is no verdict.
    #[serde(default)]
    pub pairs_below_counting: u32,
    /// The difference between the costs of counting, judged less reference.
    pub counting_cores_difference: f64,
    /// Whether leaving out twice as much at the beginning of blocks changes the answer; null when blocks
    /// were too short to tell.
    pub carry_over: Option<AbCarryOver>,
    /// How long a run would have to be; null when it cannot be told.
    pub time_needed: Option<AbTimeNeeded>,
}

/// Whether one setting works on what the other left.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbCarryOver {
    /// The difference at equal load without twice the part that is left out.
    pub later: AbCores,
    /// How far the estimate moves, as a share of its interval's length.
    pub moved_ratio: f64,
    /// Whether that is more than a quarter, and more than chance makes of it: blocks are not independent, and
    /// there is no verdict.
    pub is_found: bool,
}

/// How long a run takes until its interval is narrow enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbTimeNeeded {
    /// Half the length of the interval that is aimed at.
    pub aim_cores: f64,
    /// Pairs that it takes.
    pub pairs: u32,
    /// Time that they take, without pauses.
    pub seconds: f64,
}

/// What a delay is of.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AbDelayKind {
    /// Of UDP datagrams, from the driver's hand-over to the stack to the program's read. What a poll adds before is
    /// unseen.
    UdpStackToRead,
    /// The same of TCP segments, to the read of their last byte.
    TcpStackToRead,
    /// Of UDP datagrams, from the card's own time stamp to the program's read: with what a poll adds.
    UdpWireToRead,
    /// The same of TCP segments, to the read of their last byte.
    TcpWireToRead,
    /// TCP's smoothed round trip, of flows that this host sends.
    SmoothedRoundTrip,
    /// From a thread of the traffic being ready to run to its running.
    RunQueue,
}

impl AbDelayKind {
    /// Whether it begins with the time stamp of a card.
    pub fn is_from_wire(self) -> bool {
        matches!(
            self,
            AbDelayKind::UdpWireToRead | AbDelayKind::TcpWireToRead
        )
    }

    /// From where to where, in words.
    pub fn describe(self) -> &'static str {
        match self {
            AbDelayKind::UdpStackToRead => "UDP, from the stack to the read",
            AbDelayKind::TcpStackToRead => "TCP, from the stack to the read",
            AbDelayKind::UdpWireToRead => "UDP, from the wire to the read",
            AbDelayKind::TcpWireToRead => "TCP, from the wire to the read",
            AbDelayKind::SmoothedRoundTrip => "TCP's smoothed round trip",
            AbDelayKind::RunQueue => "waiting for a CPU",
        }
    }
}

/// Which part of a block's delays.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AbQuantile {
    /// The median.
    P50,
    /// The 99th percentile.
    P99,
}

/// One quantile of one kind of delay under both settings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbDelayAnswer {
    /// From where to where.
    pub kind: AbDelayKind,
    /// Which quantile of each block.
    pub quantile: AbQuantile,
    /// Pairs that have it on both sides.
    pub pairs: u32,
    /// Median of the blocks, under the reference.
    pub reference_ns: f64,
    /// The same under the judged setting.
    pub judged_ns: f64,
    /// The ratio within pairs, adjusted for load; null when too few pairs have it.
    pub ratio: Option<AbRatio>,
}

/// Why there is no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AbNoVerdict {
    /// The run was given up.
    Aborted,
    /// CPU time could not be counted.
    NoCpuTime,
    /// The interface carried nothing.
    NoTraffic,
    /// Counting CPU time costs more than the traffic does, in more than one pair of ten.
    BelowCounting,
    /// Fewer pairs count than the plan asks for.
    TooFewPairs,
    /// One setting works on what the other left.
    CarryOver,
    /// The load is so alike in all blocks, or so few blocks differ, that the adjustment for it has no answer.
    NoFit,
}
