//! What `nicpoll sim --json` prints: hosts in virtual time under one load, and under many.
//!
//! One host with ideal hosts at the far end of its lines is a path of length one; several stand in a row and send
//! to each other.
//!
//! What must hold: nothing here was measured. Every figure is what a model predicts from the numbers of a
//! host file; the same file, options and seed give the same figures to the last digit.

mod host;
mod parts;
mod sweep;
mod tcp;

pub use host::{
    SimCard, SimCpu, SimHostFigures, SimHostLedger, SimKnob, SimLoss, SimNapi, SimPolling,
    SimQueue, SimStorm,
};
pub use parts::{JoinError, SimShard, join};
pub use sweep::{SIM_SWEEP_SCHEMA, SimPoint, SimSweep};
pub use tcp::{SimTcp, SimTcpBytes, SimTcpHeld, SimTcpSlice};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::LossPlace;

use crate::rr::Latency;

/// Name and version of the JSON that [`SimRun`] becomes.
pub const SIM_RUN_SCHEMA: &str = "nicpoll.sim-run/3";

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimRun {
    /// Name and version of this layout: [`SIM_RUN_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// What was asked for.
    pub plan: SimPlan,
    /// What came out.
    pub figures: SimFigures,
    /// Why no more came out.
    pub bottleneck: SimBottleneck,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimPlan {
    /// The hosts in the order of the path: the first sends, the last receives, those between forward. One alone has
    /// ideal hosts at the far end of its lines.
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
pub struct SimFigures {
    /// Where each datagram of all flows ended.
    pub ledger: SimLedger,
    /// Datagrams a second of all flows that were offered; requests of ideal clients; calls when a host sends.
    #[serde(rename = "offered_packets_per_second")]
    pub offered_pps: f64,
    /// Datagrams a second of all flows that arrived; replies that ideal clients got.
    #[serde(rename = "delivered_packets_per_second")]
    pub delivered_pps: f64,
    /// Bits of payload a second in them.
    pub delivered_payload_bits_per_second: f64,
    /// Lost datagrams over offered ones; null when none were offered.
    pub loss_ratio: Option<f64>,
    /// Of all flows; see [`SimFlow::latency`].
    pub latency: Latency,
    /// Jitter as iperf computes it (RFC 1889) at the end, the mean of the flows'; null before the second datagram.
    pub jitter_ns: Option<f64>,
    /// How ideal clients were served; null without them.
    pub clients: Option<SimClients>,
    /// Each direction between two programs.
    pub flows: Vec<SimFlow>,
    /// Each host, in the order of the path.
    pub hosts: Vec<SimHostFigures>,
    /// Each line between two hosts, in the order of the path.
    pub lines: Vec<SimLine>,
    /// Each TCP connection; empty for other workloads. Its two flows are `segments` and `acknowledgements`.
    pub connections: Vec<SimTcp>,
    /// The counted time of a host alone in parts of equal length; empty unless parts were asked for.
    pub slices: Vec<SimSlice>,
}

/// `in_flight_at_start + offered = delivered + sum of losses + in_flight_at_end`, in datagrams.
/// A request of an ideal client is one datagram until its client has the reply, wherever either is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimLedger {
    /// Datagrams on their way when the counted time began.
    #[serde(rename = "in_flight_at_start_datagrams")]
    pub in_flight_at_start: u64,
    /// Datagrams that set out: that programs called to send, those refused included, or that came from a far end.
    #[serde(rename = "offered_datagrams")]
    pub offered: u64,
    /// Datagrams that arrived: that programs read, or that reached a far end.
    #[serde(rename = "delivered_datagrams")]
    pub delivered: u64,
    /// Losses by host and place, without zeros. A datagram in fragments is lost where its first loss was.
    pub losses: Vec<SimPathLoss>,
    /// Datagrams on their way when the counted time ended.
    #[serde(rename = "in_flight_at_end_datagrams")]
    pub in_flight_at_end: u64,
}

/// Datagrams lost at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimPathLoss {
    /// Which host, from 0 in the order of the path.
    pub host: usize,
    /// Where.
    pub place: LossPlace,
    /// How many.
    pub datagrams: u64,
}

impl SimLedger {
    /// All losses.
    pub fn lost(&self) -> u64 {
        self.losses.iter().map(|loss| loss.datagrams).sum()
    }

    /// Losses at one place, whichever host's.
    pub fn lost_in(&self, place: LossPlace) -> u64 {
        let there = self.losses.iter().filter(|loss| loss.place == place);
        there.map(|loss| loss.datagrams).sum()
    }

    /// Losses at one place of one host.
    pub fn lost_at(&self, host: usize, place: LossPlace) -> u64 {
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
    /// The host that sends, from 0 in the order of the path; null for an ideal far end.
    pub from: Option<usize>,
    /// The host that receives; null for an ideal far end.
    pub to: Option<usize>,
    /// Bytes of payload in a datagram.
    pub payload_bytes: u32,
    /// Calls to send.
    pub calls: u64,
    /// Calls that failed (ENOBUFS). A datagram in fragments counts when any of them was refused.
    pub send_errors: u64,
    /// Datagrams that the receiving program read.
    #[serde(rename = "delivered_datagrams")]
    pub delivered: u64,
    /// Calls without error a second.
    #[serde(rename = "sent_packets_per_second")]
    pub sent_pps: f64,
    /// Datagrams read a second.
    #[serde(rename = "delivered_packets_per_second")]
    pub delivered_pps: f64,
    /// Bits of payload a second in calls without error.
    pub sent_payload_bits_per_second: f64,
    /// Bits of payload a second that were read.
    pub delivered_payload_bits_per_second: f64,
    /// Numbers that the receiver misses, as iperf's counts them: between the first and the last that it read.
    #[serde(rename = "missing_datagrams")]
    pub missing: u64,
    /// Datagrams that came after a later one.
    #[serde(rename = "out_of_order_datagrams")]
    pub out_of_order: u64,
    /// From the call to the end of the read. From a far end: from the end of a frame on the line until its program has
    /// it; to a far end: to the end of the frame on the line; of its requests: until its client has the reply.
    pub latency: Latency,
    /// Of requests: from the call to the end of the reply's read. Null for other flows.
    pub round_trip: Option<Latency>,
    /// Jitter as iperf computes it (RFC 1889) at the end; null before the second datagram.
    pub jitter_ns: Option<f64>,
}

/// How alike clients were served. They add up to the packets delivered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimClients {
    /// How many there are.
    #[serde(rename = "clients")]
    pub count: u64,
    /// Packets delivered, or requests answered, of the client with the fewest.
    #[serde(rename = "served_least_packets")]
    pub served_least: u64,
    /// The same of the one in the middle; the mean of two when there is none.
    #[serde(rename = "served_median_packets")]
    pub served_median: f64,
    /// The same of the one with the most.
    #[serde(rename = "served_most_packets")]
    pub served_most: u64,
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

/// A part of the counted time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimSlice {
    /// When it ended, from the start of the counted time.
    pub end_seconds: f64,
    /// Packets that set out in it.
    #[serde(rename = "offered_packets")]
    pub offered: u64,
    /// Packets that arrived in it.
    #[serde(rename = "delivered_packets")]
    pub delivered: u64,
    /// Packets lost in it, wherever.
    #[serde(rename = "lost_packets")]
    pub lost: u64,
    /// Interrupts of the card in it.
    pub interrupts: u64,
    /// Passes of the interrupt thread in it that a tick's sleep followed.
    #[serde(rename = "throttled_passes")]
    pub throttled: u64,
    /// Every variable under `kern.polling` at its end, counters since the start of the counted time; empty
    /// for other disciplines.
    pub knobs: Vec<SimKnob>,
}

/// The places where a simulated packet can be lost, in the order of its way in, then its way out.
pub const SIM_PLACES: [LossPlace; 6] = [
    LossPlace::FarQueue,
    LossPlace::RxRing,
    LossPlace::IpQueue,
    LossPlace::Reassembly,
    LossPlace::SocketBuffer,
    LossPlace::SendQueue,
];

/// Why no more came through.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimBottleneck {
    /// What is full, or is fullest.
    pub resource: String,
    /// How full: 1 is all of it.
    #[serde(rename = "fullness_ratio")]
    pub fullness: f64,
    /// Whether it holds back packets; otherwise all that is offered comes through.
    pub is_binding: bool,
    /// The same in a sentence.
    pub explanation: String,
    /// Single changes that bring more, and what each came to when it was simulated, the greatest gain first; null when
    /// none was tried.
    pub moves: Option<Vec<SimMove>>,
}

/// A change of one number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimMove {
    /// What was changed: `cpu.hz = 2000 (was 1000)`.
    pub change: String,
    /// Packets a second that are delivered then.
    #[serde(rename = "delivered_packets_per_second")]
    pub delivered_pps: f64,
    /// Over those delivered without the change, in a run of the same length; null when there were none.
    pub ratio: Option<f64>,
}
