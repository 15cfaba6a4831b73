//! The document of `nicpoll ab`: an interface under two settings in turn, carrying its usual traffic.
//!
//! A run is a list of *pairs*. A pair is two adjacent *blocks*, one under each setting, in random order. The
//! *reference* is the setting found at the start; the other one is *judged* against it. Figures of a block leave out
//! its beginning, for packets and CPU time alike. All conclusions are in [`AbAnswer`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cpu::CpuSource;
use crate::document::{HostFacts, Origin, named};
use crate::interface::{SwitchRestored, SwitchValue, SwitchWrite, Unseen};
use crate::loss::Drops;
use crate::study::comparison::{Measure, Verdict};

/// Name and version of the JSON of [`LiveAb`].
pub const AB_SCHEMA: &str = "nicpoll.ab/1";

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveAb {
    /// [`AB_SCHEMA`].
    pub schema: String,
    /// The program that made the document.
    #[serde(flatten)]
    pub origin: Origin,
    /// The interface that the command named.
    pub interface: String,
    /// The interfaces whose settings alternated: the named one, or those below a VLAN, bond or bridge.
    pub members: Vec<String>,
    /// The machine.
    pub host: HostFacts,
    /// The setting found at the start.
    pub reference: AbSetting,
    /// The setting judged against the reference.
    pub judged: AbSetting,
    /// Changes that both settings need, made once before the first block and in force under both. Interfaces in other
    /// network namespaces are named with theirs.
    pub prerequisites: Vec<SwitchWrite>,
    /// The traffic without the prerequisites and with them; null when there are none, or the run ended early.
    pub prerequisites_cost: Option<AbBracket>,
    /// Differences between the settings that could not alternate, and why.
    pub not_alternated: Vec<Unseen>,
    /// Quantities that could not be measured, and what they require.
    pub unseen: Vec<Unseen>,
    /// Decisions made before the first block.
    pub plan: AbPlan,
    /// The pairs, in the order of their run.
    pub pairs: Vec<AbPair>,
    /// How it ended.
    pub end: AbEnd,
    /// The interfaces whose values were put back.
    pub restored: Vec<SwitchRestored>,
    /// The conclusions from the pairs.
    pub answer: AbAnswer,
}

/// One of the two settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbSetting {
    /// Its name: `as it is`, `polling`.
    pub name: String,
    /// The command that sets it permanently: `nicpoll set eth0 polling`.
    pub command: String,
    /// Its values where the two settings differ.
    pub values: Vec<AbValue>,
}

/// A value that alternated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbValue {
    /// The interface, with its network namespace when that is another one.
    pub interface: String,
    /// The NAPI instance that owns the value; null: the interface itself.
    pub napi_id: Option<u32>,
    /// The value's name in the kernel.
    pub name: String,
    /// The value under this setting.
    pub value: SwitchValue,
}

/// A value that takes turns, with everywhere it has the same two values.
#[derive(Clone, Debug, PartialEq)]
pub struct AbTurn<'a> {
    /// The interface.
    pub interface: &'a str,
    /// The value's name in the kernel.
    pub name: &'a str,
    /// Whether the interface's own value is one of them.
    pub is_whole: bool,
    /// The NAPI instances that have the value.
    pub napi_ids: Vec<u32>,
    /// The value under the reference, and under the judged setting.
    pub values: [&'a SwitchValue; 2],
}

impl LiveAb {
    /// Returns the values that take turns. An interface and its NAPI instances with equal values share an entry.
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
    /// Names the interface, and the instances that have the value.
    pub fn place(&self) -> String {
        let ids: Vec<String> = self.napi_ids.iter().map(u32::to_string).collect();
        let join = if self.is_whole { " and" } else { "," };
        match &ids[..] {
            [] => String::from(self.interface),
            ids => format!("{}{join} NAPI {}", self.interface, ids.join(", ")),
        }
    }
}

/// Decisions made before the first block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbPlan {
    /// Whether the judged setting is the reference itself: then any difference is chance.
    #[serde(default)]
    pub is_null: bool,
    /// Seed of the order of each pair and the length of each block.
    pub seed: u64,
    /// Planned length of the run, pauses included.
    pub duration_seconds: f64,
    /// With `--duty`: measured time of each stretch, and time from the start of one to the next; null: no pauses.
    pub duty_seconds: Option<[f64; 2]>,
    /// The shortest and the longest block.
    pub block_seconds: [f64; 2],
    /// Least part left out at the beginning of a block: the planned one, ten TCP round trips, or three times the
    /// settling time of polls. These are known when the first block begins.
    pub left_out_seconds: f64,
    /// How long polls take to settle after a change of setting: the longer time of the two settings, measured before
    /// the first block. Null: not known.
    pub settling_seconds: Option<f64>,
    /// Pairs below which there is no verdict.
    pub pairs_min: u32,
    /// Confidence of each interval, 0 to 1.
    pub confidence_ratio: f64,
    /// Relative difference of CPU time, and of load, from which on it matters.
    pub margin_ratio: f64,
}

/// The prerequisites of both settings, compared with doing without them: two looks at the traffic each, at the
/// beginning and the end of the run, all under the reference. Two looks give no interval: if the first and the last
/// look differ as much as those with and without, nothing can be concluded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbBracket {
    /// Without the prerequisites: before they were made, and after they were put back.
    pub without: [AbWindow; 2],
    /// With the prerequisites: before the first block, and after the last one.
    pub with: [AbWindow; 2],
}

/// Two adjacent blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbPair {
    /// Whether the block of the judged setting came first.
    pub is_judged_first: bool,
    /// The block of the reference.
    pub reference: AbBlock,
    /// The block of the judged setting.
    pub judged: AbBlock,
    /// The external event that sets the pair aside (somebody changed a setting, the clock was stepped), in words; null:
    /// the pair counts.
    pub set_aside_because: Option<String>,
}

/// One block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbBlock {
    /// From the start of the first block to the write that began this one.
    pub start_seconds: f64,
    /// Its whole length.
    pub duration_seconds: f64,
    /// The part left out of every figure at its beginning.
    pub left_out_seconds: f64,
    /// Load and CPU time of the rest.
    pub window: AbWindow,
    /// Load and CPU time when twice the part is left out; null when the block was too short. It shows whether one
    /// setting carries over into the other's block.
    pub later_window: Option<AbWindow>,
    /// Hardware interrupts of the interface.
    pub interrupts: Option<u64>,
    /// Receive soft interrupts (NET_RX) of all CPUs.
    pub receive_softirqs: Option<u64>,
    /// Calls of the interface's poll functions.
    pub polls: Option<u64>,
    /// Packets that the polls took, by the driver's count of its work.
    pub polled_packets: Option<u64>,
    /// Packets lost, by place.
    pub dropped_packets: Drops,
    /// Context switches of the machine.
    pub context_switches: Option<u64>,
    /// TCP segments that this host retransmitted.
    pub retransmitted_segments: Option<u64>,
    /// Delays, by kind.
    pub delays: Vec<AbDelay>,
    /// The same for each queue, where queues are counted.
    pub queues: Vec<AbQueue>,
}

/// Traffic of the members, and the CPU time used meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbWindow {
    /// Length.
    pub seconds: f64,
    /// Packets received as on the wire: the segments of a merged packet count one by one.
    pub rx_packets: u64,
    /// Packets sent, likewise.
    pub tx_packets: u64,
    /// Bytes received, with the Ethernet header of each packet on the wire.
    pub rx_bytes: u64,
    /// Bytes sent, likewise.
    pub tx_bytes: u64,
    /// CPU time; null where it could not be counted exactly by earlier versions.
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

    /// Packets received and sent per second.
    pub fn packets_per_second(&self) -> f64 {
        self.packets() as f64 / self.seconds
    }

    /// Busy CPU time per second, in cores. `None` when it was not counted, or when counting cost more.
    pub fn busy_cores(&self) -> Option<f64> {
        Some(self.cpu?.busy_seconds()? / self.seconds)
    }
}

/// Busy CPU time by state, of all CPUs, without threads unrelated to the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbCpu {
    /// How it was measured.
    #[serde(default)]
    pub source: CpuSource,
    /// User programs, at any priority.
    pub user_seconds: f64,
    /// The kernel on behalf of programs.
    pub system_seconds: f64,
    /// Hard interrupts.
    pub irq_seconds: f64,
    /// Soft interrupts.
    pub softirq_seconds: f64,
    /// Threads unrelated to the traffic. In none of the other figures: sampled ones may be below 0 without it.
    pub foreign_seconds: f64,
    /// Estimated cost of counting the window's events, at most: extrapolated from the cost in the part left out. It is
    /// included in the states above, and may exceed them when little happens.
    pub counting_seconds: f64,
    /// Taken by the hypervisor meanwhile, sampled by the kernel.
    pub steal_seconds: f64,
}

impl AbCpu {
    /// Sum of all states without the cost of counting. `None` when counting is estimated to have cost as much as was
    /// counted, or more.
    pub fn busy_seconds(&self) -> Option<f64> {
        let counted =
            self.user_seconds + self.system_seconds + self.irq_seconds + self.softirq_seconds;
        Some(counted - self.counting_seconds).filter(|busy| *busy > 0.0)
    }
}

/// Delays of one kind in a block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbDelay {
    /// What is delayed, and where.
    pub kind: AbDelayKind,
    /// Number of measured delays. Only a random sample of packets is followed.
    pub samples: u64,
    /// Median.
    pub p50_ns: f64,
    /// 99th percentile; null with too few samples.
    pub p99_ns: Option<f64>,
    /// Quality of the card's time stamps; null: the kernel timed both ends itself.
    #[serde(default)]
    pub stamps: Option<AbStamps>,
}

/// The card's time stamps in a block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbStamps {
    /// Largest possible error of the conversion from the card's clock to the kernel's.
    pub error_ns: f64,
    /// Followed packets in no figure: without a time stamp, or with an impossible one.
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
    /// Packets received, if they are counted by queue.
    pub rx_packets: Option<u64>,
    /// Hardware interrupts.
    pub interrupts: Option<u64>,
    /// Polls.
    pub polls: Option<u64>,
    /// Packets that the polls took.
    pub polled_packets: Option<u64>,
    /// Driver and kernel counters of this queue, by their own names; empty if there are none.
    #[serde(default)]
    pub counters: BTreeMap<String, u64>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AbEnd {
    /// The cause.
    pub cause: AbEndCause,
    /// The event in words; null when the run went as planned.
    pub text: Option<String>,
}

/// What ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AbEndCause {
    /// The planned time was over.
    Planned,
    /// The user ended it. Complete pairs count.
    Interrupted,
    /// More packets were lost than the limit allows.
    Drops,
    /// More segments were retransmitted than the limit allows.
    Retransmissions,
    /// The link went down.
    CarrierLost,
    /// The interface replaced its NAPI instances, or disappeared.
    InterfaceChanged,
    /// An echo on the user's own connection was not answered.
    EchoLost,
    /// A setting could not be written or read back.
    SettingFailed,
}

impl AbEndCause {
    /// Whether the run was aborted because of its traffic or interface: then it has no verdict.
    pub fn is_abort(self) -> bool {
        !matches!(self, AbEndCause::Planned | AbEndCause::Interrupted)
    }
}

/// The conclusions of a live comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbAnswer {
    /// Pairs that count.
    pub pairs: u32,
    /// Pairs set aside because of an external event.
    pub set_aside_pairs: u32,
    /// The load, and whether the setting changes it; null without pairs.
    pub load: Option<AbLoad>,
    /// CPU time and its difference; null when too few pairs have it.
    pub cpu: Option<AbCpuCost>,
    /// Delays of each kind and quantile that enough pairs have.
    pub delays: Vec<AbDelayAnswer>,
    /// What the verdict is about: `cost`, at the load in `load`. Null in runs of earlier versions.
    #[serde(default)]
    pub measure: Option<Measure>,
    /// The verdict on CPU time, where less is better; null when there is none.
    pub verdict: Option<Verdict>,
    /// Why there is no verdict, most serious reason first; empty when there is one.
    pub no_verdict: Vec<AbNoVerdict>,
    /// Whether the judged setting is recommended; otherwise keep the reference.
    pub is_recommended: bool,
}

/// A ratio with its interval. An end is null if the interval has none.
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

impl AbCores {
    /// Returns the difference between the ends of its interval.
    pub fn with_ends(&self) -> [f64; 3] {
        [self.cores_low, self.cores, self.cores_high]
    }
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
    /// Whether both intervals lie within the margin: the setting does not change the load.
    pub is_equal: bool,
    /// Whether one of the intervals excludes 1: the setting changes the load. When neither this nor `is_equal` holds,
    /// the load varied too much to tell.
    pub is_moved: bool,
}

impl AbLoad {
    /// Returns the packets per second under the reference and under the judged setting.
    pub fn packets_per_second(&self) -> [f64; 2] {
        [
            self.reference_packets_per_second,
            self.judged_packets_per_second,
        ]
    }

    /// Returns the bytes per second under both.
    pub fn bytes_per_second(&self) -> [f64; 2] {
        [
            self.reference_bytes_per_second,
            self.judged_bytes_per_second,
        ]
    }
}

/// CPU time of both settings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbCpuCost {
    /// `cost`; null in runs of earlier versions.
    #[serde(default)]
    pub measure: Option<Measure>,
    /// How it was measured.
    #[serde(default)]
    pub source: CpuSource,
    /// Pairs with CPU time on both sides.
    pub pairs: u32,
    /// Mean of the pairs, under the reference.
    pub reference_cores: f64,
    /// The same under the judged setting.
    pub judged_cores: f64,
    /// The difference at equal load, adjusted for the load of each block.
    pub equal_load: AbCores,
    /// Cost of one more packet in one block of a pair than in the other: the slope of the adjustment.
    pub ns_per_added_packet: f64,
    /// Growth of the difference at equal load with each packet of a pair's load.
    pub ns_difference_per_packet: f64,
    /// `equal_load` over the mean load of the pairs: the difference per packet, with its interval's ends.
    pub ns_per_packet: Option<[f64; 3]>,
    /// The difference without adjustment for load.
    pub total: AbCores,
    /// CPU time per byte, at the load that each setting reached; null when too few pairs carried any.
    pub per_byte: Option<AbRatio>,
    /// The greater cost of counting events of the two settings; it is subtracted.
    pub counting_cores_max: f64,
    /// Pairs with a block whose busy time is below the cost of counting. Such a block counts as 0 cores; with more than
    /// one such pair in ten there is no verdict.
    #[serde(default)]
    pub pairs_below_counting: u32,
    /// Difference between the costs of counting, judged less reference.
    pub counting_cores_difference: f64,
    /// Whether leaving out twice as much at the beginning of blocks changes the answer; null when blocks were too short
    /// to tell.
    pub carry_over: Option<AbCarryOver>,
    /// Length of the run needed; null when it cannot be estimated.
    pub time_needed: Option<AbTimeNeeded>,
}

/// Whether one setting carries over into the other's block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbCarryOver {
    /// The difference at equal load when twice the part is left out.
    pub later: AbCores,
    /// Shift of the estimate, as a share of its interval's length.
    pub moved_ratio: f64,
    /// Whether the shift exceeds a quarter, and chance: then blocks are not independent, and there is no verdict.
    pub is_found: bool,
}

/// How long a run takes to get a narrow enough interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbTimeNeeded {
    /// Half the length of the wanted interval.
    pub aim_cores: f64,
    /// Pairs needed.
    pub pairs: u32,
    /// Time needed, without pauses.
    pub seconds: f64,
}

named! {
    /// What is delayed, and where.
    #[serde(rename_all = "snake_case")]
    pub enum AbDelayKind {
        /// UDP datagrams, from the driver's hand-over to the stack to the program's read. The delay that a poll adds
        /// before is not included.
        UdpStackToRead = "UDP, from the stack to the read",
        /// TCP segments likewise, to the read of their last byte.
        TcpStackToRead = "TCP, from the stack to the read",
        /// UDP datagrams, from the card's own time stamp to the program's read: includes the delay that a poll adds.
        UdpWireToRead = "UDP, from the wire to the read",
        /// TCP segments likewise, to the read of their last byte.
        TcpWireToRead = "TCP, from the wire to the read",
        /// TCP's smoothed round trip, of flows that this host sends.
        SmoothedRoundTrip = "TCP's smoothed round trip",
        /// A thread of the traffic, from runnable to running.
        RunQueue = "waiting for a CPU",
    }
}

impl AbDelayKind {
    /// Returns what it measures.
    pub fn measure(self) -> Measure {
        match self {
            AbDelayKind::SmoothedRoundTrip => Measure::RoundTrip,
            _ => Measure::Delay,
        }
    }

    /// Whether it starts at a card's time stamp.
    pub fn is_from_wire(self) -> bool {
        matches!(
            self,
            AbDelayKind::UdpWireToRead | AbDelayKind::TcpWireToRead
        )
    }
}

/// A quantile of a block's delays.
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
    /// What is delayed, and where.
    pub kind: AbDelayKind,
    /// `delay`, or `round trip`; null in runs of earlier versions.
    #[serde(default)]
    pub measure: Option<Measure>,
    /// The quantile of each block.
    pub quantile: AbQuantile,
    /// Pairs that have the quantile on both sides.
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
    /// The run was aborted.
    Aborted,
    /// CPU time could not be counted.
    NoCpuTime,
    /// The interface carried nothing.
    NoTraffic,
    /// In more than one pair of ten, counting CPU time cost more than the traffic did.
    BelowCounting,
    /// Fewer pairs count than the plan requires.
    TooFewPairs,
    /// One setting carried over into the other's block.
    CarryOver,
    /// The adjustment for load has no solution: the load is too alike in all blocks, or too few blocks differ.
    NoFit,
}
