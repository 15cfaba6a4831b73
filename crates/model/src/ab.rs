//! The document of `nicpoll ab`: an interface under two settings in turn, with the traffic that it carries anyway.
//!
//! A run is a list of *pairs*. A pair is two adjacent *blocks*, one under each setting, in random order. The
//! *reference* is the setting that was there; the other one is *judged* against it. Figures of a block leave out its
//! beginning, for packets and CPU time alike. All conclusions are in [`AbAnswer`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::{HostFacts, Origin, named};
use crate::interface::{SwitchRestored, SwitchValue, SwitchWrite, Unseen};
use crate::loss::Drops;
use crate::study::comparison::{Measure, Verdict};

/// Name and version of the JSON that [`LiveAb`] becomes.
pub const AB_SCHEMA: &str = "nicpoll.ab/1";

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveAb {
    /// [`AB_SCHEMA`].
    pub schema: String,
    /// Who made it.
    #[serde(flatten)]
    pub origin: Origin,
    /// The interface that was asked for.
    pub interface: String,
    /// The interfaces whose settings alternated: itself, or the ones below a VLAN, a bond or a bridge.
    pub members: Vec<String>,
    /// The machine.
    pub host: HostFacts,
    /// The setting that was there.
    pub reference: AbSetting,
    /// The setting that is judged against it.
    pub judged: AbSetting,
    /// What both settings need, written once before the first block and in force under both. An interface that is in
    /// another network namespace is named with it.
    pub prerequisites: Vec<SwitchWrite>,
    /// The traffic without what both settings need, and with it; null when they need nothing, or the run ended early.
    pub prerequisites_cost: Option<AbBracket>,
    /// What differs between the settings and could not alternate, and why.
    pub not_alternated: Vec<Unseen>,
    /// What could not be measured, and what it takes.
    pub unseen: Vec<Unseen>,
    /// What was decided before the first block.
    pub plan: AbPlan,
    /// The pairs, in the order in which they ran.
    pub pairs: Vec<AbPair>,
    /// How it ended.
    pub end: AbEnd,
    /// The interfaces that were put back.
    pub restored: Vec<SwitchRestored>,
    /// What follows from the pairs.
    pub answer: AbAnswer,
}

/// One of the two settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbSetting {
    /// Its name: `as it is`, `polling`.
    pub name: String,
    /// The command line that sets it for good: `nicpoll set eth0 polling`.
    pub command: String,
    /// What it holds where the two settings differ.
    pub values: Vec<AbValue>,
}

/// A value that alternated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbValue {
    /// The interface, with its network namespace when that is another one.
    pub interface: String,
    /// The NAPI instance whose value it is; null: the interface's own.
    pub napi_id: Option<u32>,
    /// Which value, as the kernel names it.
    pub name: String,
    /// What it holds under this setting.
    pub value: SwitchValue,
}

/// A value that takes turns, wherever it is the same under each setting.
#[derive(Clone, Debug, PartialEq)]
pub struct AbTurn<'a> {
    /// The interface.
    pub interface: &'a str,
    /// Which value, as the kernel names it.
    pub name: &'a str,
    /// Whether it is the interface's own.
    pub is_whole: bool,
    /// The NAPI instances that have it.
    pub napi_ids: Vec<u32>,
    /// What it is under the reference, and under the setting that is judged.
    pub values: [&'a SwitchValue; 2],
}

impl LiveAb {
    /// The values that take turns. What an interface and its NAPI instances have alike is one of them.
    pub fn turns(&self) -> Vec<AbTurn<'_>> {
        let both = self.reference.values.iter().zip(&self.judged.values);
        let mut turns: Vec<AbTurn> = Vec::new();
        for (one, other) in both.filter(|(one, other)| one.value != other.value) {
            let values = [&one.value, &other.value];
            let (interface, name) = (one.interface.as_str(), one.name.as_str());
            let is_same = |turn: &AbTurn| {
                (turn.interface, turn.name, turn.values) == (interface, name, values)
            };
            let at = turns.iter().position(is_same).unwrap_or(turns.len());
            if at == turns.len() {
                turns.push(AbTurn {
                    interface,
                    name,
                    is_whole: false,
                    napi_ids: Vec::new(),
                    values,
                });
            }
            match one.napi_id {
                Some(id) => turns[at].napi_ids.push(id),
                None => turns[at].is_whole = true,
            }
        }
        turns
    }
}

impl AbTurn<'_> {
    /// Where it is: the interface, with the instances that have it.
    pub fn place(&self) -> String {
        let ids: Vec<String> = self.napi_ids.iter().map(u32::to_string).collect();
        let join = if self.is_whole { " and" } else { "," };
        match &ids[..] {
            [] => String::from(self.interface),
            ids => format!("{}{join} NAPI {}", self.interface, ids.join(", ")),
        }
    }
}

/// What was decided before the first block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbPlan {
    /// Whether the setting that is judged is the one that was there as well: any difference is chance.
    #[serde(default)]
    pub is_null: bool,
    /// What the order of each pair and the length of each block follow from.
    pub seed: u64,
    /// How long the run was to take, pauses included.
    pub duration_seconds: f64,
    /// With `--duty`: measured time of each stretch, and time from stretch to stretch; null: without pauses.
    pub duty_seconds: Option<[f64; 2]>,
    /// The least and the greatest length of a block.
    pub block_seconds: [f64; 2],
    /// The part of a block at its beginning that is left out, at the least: what was planned, or ten round trips of
    /// TCP, or three times what polls take to settle. These are known when the first block begins.
    pub left_out_seconds: f64,
    /// How long polls take, after a change of setting, until they are as they stay: measured before the first block, under
    /// both settings, and the longer one. Null: not known.
    pub settling_seconds: Option<f64>,
    /// Pairs below which there is no verdict.
    pub pairs_min: u32,
    /// Confidence of each interval, 0 to 1.
    #[serde(rename = "confidence_ratio")]
    pub confidence: f64,
    /// The share of CPU time, and of load, from which on a difference matters.
    #[serde(rename = "margin_ratio")]
    pub margin: f64,
}

/// What both settings need, compared with doing without: looks at the traffic at the beginning of the run and at its
/// end, all under the reference. With two looks each there is no interval: where the first and the last look differ
/// as much as those with and without, nothing can be said.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbBracket {
    /// Without it: before it was changed, and after it was put back.
    pub without: [AbWindow; 2],
    /// With it: before the first block, and after the last one.
    pub with: [AbWindow; 2],
}

/// Two blocks next to each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbPair {
    /// Whether the block of the judged setting came first.
    pub is_judged_first: bool,
    /// The block of the reference.
    pub reference: AbBlock,
    /// The block of the judged setting.
    pub judged: AbBlock,
    /// The event from outside because of which the pair does not count (somebody changed a setting, the clock
    /// was stepped), in words; null: it counts.
    pub set_aside_because: Option<String>,
}

/// One block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbBlock {
    /// From the start of the first block to the write that began this one.
    pub start_seconds: f64,
    /// Its whole length.
    pub duration_seconds: f64,
    /// The part at its beginning that is in no figure.
    pub left_out_seconds: f64,
    /// Load and CPU time of the rest.
    pub window: AbWindow,
    /// Load and CPU time without twice the part that is left out; null when the block was too short. It
    /// shows whether one setting works on what the other one left.
    pub later_window: Option<AbWindow>,
    /// Hardware interrupts of the interface.
    pub interrupts: Option<u64>,
    /// Soft interrupts that receive, of all CPUs.
    pub receive_softirqs: Option<u64>,
    /// Calls of the interface's poll functions.
    pub polls: Option<u64>,
    /// Packets that these took, as the driver counts its work.
    pub polled_packets: Option<u64>,
    /// Packets lost, by place.
    pub dropped_packets: Drops,
    /// Context switches of the machine.
    pub context_switches: Option<u64>,
    /// TCP segments that this host sent again.
    pub retransmitted_segments: Option<u64>,
    /// Delays, of each kind that was measured.
    pub delays: Vec<AbDelay>,
    /// The same for each queue, where it is known.
    pub queues: Vec<AbQueue>,
}

/// What the members carried, and what CPU time was used meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbWindow {
    /// Length.
    pub seconds: f64,
    /// Packets received, as they were on the wire: the segments of a joined packet count one by one.
    pub rx_packets: u64,
    /// Packets sent, likewise.
    pub tx_packets: u64,
    /// Bytes received, with the Ethernet header of each packet on the wire.
    pub rx_bytes: u64,
    /// Bytes sent, likewise.
    pub tx_bytes: u64,
    /// CPU time; null when it could not be counted exactly.
    pub cpu: Option<AbCpu>,
}

impl AbWindow {
    /// Packets received and sent.
    pub fn packets(&self) -> u64 {
        self.rx_packets + self.tx_packets
    }

    /// Bytes received and sent.
    pub fn bytes(&self) -> u64 {
        self.rx_bytes + self.tx_bytes
    }

    /// Packets received and sent each second.
    pub fn packets_per_second(&self) -> f64 {
        self.packets() as f64 / self.seconds
    }

    /// Busy CPU time of each second: how many cores were busy. `None` when it was not counted, and when it is below
    /// what counting costs.
    pub fn busy_cores(&self) -> Option<f64> {
        Some(self.cpu?.busy_seconds()? / self.seconds)
    }
}

/// Busy CPU time by state, of all CPUs, without the threads that have nothing to do with the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbCpu {
    /// User programs, at any priority.
    pub user_seconds: f64,
    /// The kernel on behalf of programs.
    pub system_seconds: f64,
    /// Hard interrupts.
    pub irq_seconds: f64,
    /// Soft interrupts.
    pub softirq_seconds: f64,
    /// What threads used that have nothing to do with the traffic. It is in none of the other figures.
    pub foreign_seconds: f64,
    /// What counting the events of the window cost, at most: estimated from its cost in the part that is left out. It is
    /// in the states above, and may exceed them where little happens.
    pub counting_seconds: f64,
    /// Taken by the hypervisor meanwhile, as the kernel samples it.
    pub steal_seconds: f64,
}

impl AbCpu {
    /// All states together, without the cost of counting. `None` when counting is estimated to have cost as much as all
    /// that was counted, or more: what is left is then too little to be told.
    pub fn busy_seconds(&self) -> Option<f64> {
        let counted =
            self.user_seconds + self.system_seconds + self.irq_seconds + self.softirq_seconds;
        Some(counted - self.counting_seconds).filter(|busy| *busy > 0.0)
    }
}

/// Delays of one kind in a block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbDelay {
    /// From where to where.
    pub kind: AbDelayKind,
    /// How many were measured. Packets are followed by chance, and not all of them.
    pub samples: u64,
    /// Median.
    pub p50_ns: f64,
    /// 99th percentile; null when too few were measured.
    pub p99_ns: Option<f64>,
    /// What there is to know of the card's time stamps; null: the kernel saw both ends itself.
    #[serde(default)]
    pub stamps: Option<AbStamps>,
}

/// The card's time stamps in a block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbStamps {
    /// How far the card's clock may have been from where the kernel's was taken to have it, at most.
    pub error_ns: f64,
    /// Packets that were followed and are in no figure: they had no stamp, or one that cannot be right.
    pub left_out_packets: u64,
}

/// One receive queue of a member in a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbQueue {
    /// The interface.
    pub interface: String,
    /// Number of the queue.
    pub queue: u32,
    /// Its NAPI instance.
    pub napi_id: Option<u32>,
    /// Packets received, where that is counted by queue.
    pub rx_packets: Option<u64>,
    /// Hardware interrupts.
    pub interrupts: Option<u64>,
    /// Polls.
    pub polls: Option<u64>,
    /// Packets that these took.
    pub polled_packets: Option<u64>,
    /// What the driver and the kernel count for this queue, by their names for each; empty where they do not.
    #[serde(default)]
    pub counters: BTreeMap<String, u64>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AbEnd {
    /// What ended it.
    pub cause: AbEndCause,
    /// What happened, in words; null when it went as planned.
    pub text: Option<String>,
}

/// What ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AbEndCause {
    /// Its time was over.
    Planned,
    /// The user ended it. The pairs that were complete count.
    Interrupted,
    /// More packets were lost than the limit allows.
    Drops,
    /// More segments were sent again than the limit allows.
    Retransmissions,
    /// The link went down.
    CarrierLost,
    /// The interface replaced its NAPI instances, or went away.
    InterfaceChanged,
    /// A check of the connection that the user works over was not answered.
    EchoLost,
    /// A setting could not be written or read back.
    SettingFailed,
}

impl AbEndCause {
    /// Whether the run was given up for what happened to the traffic or the interface: it has no verdict then.
    pub fn is_abort(self) -> bool {
        !matches!(self, AbEndCause::Planned | AbEndCause::Interrupted)
    }
}

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
    /// What the verdict is on: `cost`, at the load that `load` has. Null in runs of earlier versions.
    #[serde(default)]
    pub measure: Option<Measure>,
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
    /// `rate`; null in runs of earlier versions.
    #[serde(default)]
    pub measure: Option<Measure>,
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
    /// `cost`; null in runs of earlier versions.
    #[serde(default)]
    pub measure: Option<Measure>,
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

named! {
    /// What a delay is of.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "snake_case")]
    pub enum AbDelayKind {
        /// Of UDP datagrams, from the driver's hand-over to the stack to the program's read. What a poll adds before is
        /// unseen.
        UdpStackToRead = "UDP, from the stack to the read",
        /// The same of TCP segments, to the read of their last byte.
        TcpStackToRead = "TCP, from the stack to the read",
        /// Of UDP datagrams, from the card's own time stamp to the program's read: with what a poll adds.
        UdpWireToRead = "UDP, from the wire to the read",
        /// The same of TCP segments, to the read of their last byte.
        TcpWireToRead = "TCP, from the wire to the read",
        /// TCP's smoothed round trip, of flows that this host sends.
        SmoothedRoundTrip = "TCP's smoothed round trip",
        /// From a thread of the traffic being ready to run to its running.
        RunQueue = "waiting for a CPU",
    }
}

impl AbDelayKind {
    /// What it measures.
    pub fn measure(self) -> Measure {
        match self {
            AbDelayKind::SmoothedRoundTrip => Measure::RoundTrip,
            _ => Measure::Delay,
        }
    }

    /// Whether it begins with the time stamp of a card.
    pub fn is_from_wire(self) -> bool {
        matches!(
            self,
            AbDelayKind::UdpWireToRead | AbDelayKind::TcpWireToRead
        )
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
    /// `delay`, or `round trip`; null in runs of earlier versions.
    #[serde(default)]
    pub measure: Option<Measure>,
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
