//! What `nicpoll sim run --peer --json` prints: hosts in a row, in virtual time, that send to each other.
//!
//! What must hold: nothing here was measured; see [`crate::sim`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rr::Latency;
use crate::sim::{
    SimBottleneck, SimCpu, SimLoss, SimNapi, SimPlace, SimPolling, SimQueue, SimStorm,
};
use crate::sim_tcp::SimTcp;

/// Name and version of the JSON that [`SimPathRun`] becomes.
pub const SIM_PATH_SCHEMA: &str = "nicpoll.sim-path/1";

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimPathRun {
    /// Name and version of this layout: [`SIM_PATH_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// What was asked for.
    pub plan: SimPathPlan,
    /// What came out.
    pub figures: SimPathFigures,
    /// Why no more came out.
    pub bottleneck: SimBottleneck,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimPathPlan {
    /// The hosts in the order of the path: the first sends, the last receives, those between forward.
    pub hosts: Vec<SimStop>,
    /// Workload with its options, as the command line takes it.
    pub workload: String,
    /// Virtual time that is counted.
    pub seconds: f64,
    /// Virtual time before it that is not.
    pub warmup_seconds: f64,
    /// Seed of all chance.
    pub seed: u64,
}

/// A host on the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimStop {
    /// Name of the host.
    pub host: String,
    /// Its receive discipline with its options, as the command line takes it.
    pub discipline: String,
}

/// What came out of a run, in the counted time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimPathFigures {
    /// Where each datagram of all flows ended.
    pub ledger: SimPathLedger,
    /// Each direction between two programs.
    pub flows: Vec<SimFlow>,
    /// Each host, in the order of the path.
    pub hosts: Vec<SimHostFigures>,
    /// Each line, in the order of the path.
    pub lines: Vec<SimLine>,
    /// Each TCP connection; empty for other workloads. Its two flows are `segments` and `acknowledgements`.
    pub connections: Vec<SimTcp>,
}

/// `in_flight_at_start + offered = delivered + sum of losses + in_flight_at_end`, in datagrams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimPathLedger {
    /// Datagrams on their way when the counted time began.
    pub in_flight_at_start: u64,
    /// Datagrams that programs called to send, those refused included.
    pub offered: u64,
    /// Datagrams that programs read.
    pub delivered: u64,
    /// Losses by host and place, without zeros. A datagram in fragments is lost where its first loss was.
    pub losses: Vec<SimPathLoss>,
    /// Datagrams on their way when the counted time ended.
    pub in_flight_at_end: u64,
}

/// Datagrams lost at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimPathLoss {
    /// Which host, from 0 in the order of the path.
    pub host: usize,
    /// Where.
    pub place: SimPlace,
    /// How many.
    pub datagrams: u64,
}

impl SimPathLedger {
    /// All losses.
    pub fn lost(&self) -> u64 {
        self.losses.iter().map(|loss| loss.datagrams).sum()
    }

    /// Losses at one place of one host.
    pub fn lost_at(&self, host: usize, place: SimPlace) -> u64 {
        let there = |loss: &&SimPathLoss| loss.host == host && loss.place == place;
        self.losses
            .iter()
            .find(there)
            .map_or(0, |loss| loss.datagrams)
    }

    /// Whether every datagram is accounted for.
    pub fn is_closed(&self) -> bool {
        self.in_flight_at_start + self.offered
            == self.delivered + self.lost() + self.in_flight_at_end
    }
}

/// One direction between two programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimFlow {
    /// What it carries: datagrams, requests, replies.
    pub name: String,
    /// The host that sends, from 0 in the order of the path.
    pub from: usize,
    /// The host that receives.
    pub to: usize,
    /// Bytes of payload in a datagram.
    pub payload_bytes: u32,
    /// Calls to send.
    pub calls: u64,
    /// Calls that failed (ENOBUFS). A datagram in fragments counts when any of them was refused.
    pub send_errors: u64,
    /// Datagrams that the receiving program read.
    pub delivered: u64,
    /// Calls without error a second.
    pub sent_pps: f64,
    /// Datagrams read a second.
    pub delivered_pps: f64,
    /// Bits of payload a second in calls without error.
    pub sent_payload_bits_per_second: f64,
    /// Bits of payload a second that were read.
    pub delivered_payload_bits_per_second: f64,
    /// Numbers that the receiver misses, as iperf's counts them: between the first and the last that it read.
    pub missing: u64,
    /// Datagrams that came after a later one.
    pub out_of_order: u64,
    /// From the call to the end of the read.
    pub latency: Latency,
    /// Of requests: from the call to the end of the reply's read. Null for other flows.
    pub round_trip: Option<Latency>,
    /// Jitter as iperf computes it (RFC 1889) at the end; null before the second datagram.
    pub jitter_ns: Option<f64>,
}

/// What came out on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimHostFigures {
    /// Name of the host.
    pub host: String,
    /// Where the processor's time went.
    pub cpu: SimCpu,
    /// Switches to another thread, the idle one included.
    pub context_switches: u64,
    /// Interrupts of its cards.
    pub interrupts: u64,
    /// Where each of its IP packets ended.
    pub ledger: SimHostLedger,
    /// Every queue with a limit, and the most that waited in it.
    pub queues: Vec<SimQueue>,
    /// The storm detection's work; null for disciplines that have none.
    pub storm: Option<SimStorm>,
    /// The poller's work; null for other disciplines.
    pub polling: Option<SimPolling>,
    /// NAPI's work; null for other disciplines.
    pub napi: Option<SimNapi>,
}

/// `in_flight_at_start + received + made = transmitted + taken + merged + sum of losses + in_flight_at_end`,
/// in IP packets: a fragment is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimHostLedger {
    /// Packets in the host when the counted time began.
    pub in_flight_at_start: u64,
    /// Packets that reached its cards.
    pub received: u64,
    /// Packets that it made.
    pub made: u64,
    /// Packets that left its cards.
    pub transmitted: u64,
    /// Packets, or datagrams put together, that its programs read.
    pub taken: u64,
    /// Fragments that were taken up into a datagram, the last one left out.
    pub merged: u64,
    /// Losses by place, zeros included, in the order in which a packet passes the places.
    pub losses: Vec<SimLoss>,
    /// Packets in the host when the counted time ended.
    pub in_flight_at_end: u64,
}

impl SimHostLedger {
    /// Whether every packet is accounted for.
    pub fn is_closed(&self) -> bool {
        let lost: u64 = self.losses.iter().map(|loss| loss.packets).sum();
        self.in_flight_at_start + self.received + self.made
            == self.transmitted + self.taken + self.merged + lost + self.in_flight_at_end
    }
}

/// A line between two hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimLine {
    /// Speed at layer 1, each way.
    pub bits_per_second: u64,
    /// Whether both ways share it.
    pub is_half_duplex: bool,
    /// Share of it in use away from the first host; of a shared line in this direction.
    pub forth_ratio: f64,
    /// Share of it in use towards the first host.
    pub back_ratio: f64,
}
