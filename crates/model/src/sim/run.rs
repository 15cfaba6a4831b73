//! One simulated run: plan, figures of the path, its hosts and TCP connections, and the bottleneck.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::loss::LossPlace;
use crate::traffic::Latency;

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
        let mut losses = self.losses.iter();
        let there = losses.find(|loss| loss.host == host && loss.place == place);
        there.map_or(0, |loss| loss.datagrams)
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

/// What came out on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimHostFigures {
    /// Name of the host.
    pub host: String,
    /// Where the processor's time went; of several, the mean.
    pub cpu: SimCpu,
    /// The same of each processor in turn; left out for a host of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<SimCpu>,
    /// The same as a clock sees it that looks at the processor now and then: what top(1) would have shown. Null when it
    /// did not look in the counted time.
    pub cpu_sampled: Option<SimCpu>,
    /// Switches to another thread, the idle one included.
    pub context_switches: u64,
    /// Interrupts of its cards.
    pub interrupts: u64,
    /// Where each of its IP packets ended.
    pub ledger: SimHostLedger,
    /// Each card.
    pub cards: Vec<SimCard>,
    /// Every queue with a limit, and the most that waited in it; of several processors' the fullest.
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
    #[serde(rename = "in_flight_at_start_packets")]
    pub in_flight_at_start: u64,
    /// Packets that reached its cards.
    #[serde(rename = "received_packets")]
    pub received: u64,
    /// Packets that it made.
    #[serde(rename = "made_packets")]
    pub made: u64,
    /// Packets that left its cards.
    #[serde(rename = "transmitted_packets")]
    pub transmitted: u64,
    /// Packets, or datagrams put together, that its programs read.
    #[serde(rename = "taken_packets")]
    pub taken: u64,
    /// Fragments that were taken up into a datagram, the last one left out.
    #[serde(rename = "merged_packets")]
    pub merged: u64,
    /// Losses by place, zeros included, in the order in which a packet passes the places.
    pub losses: Vec<SimLoss>,
    /// Packets in the host when the counted time ended.
    #[serde(rename = "in_flight_at_end_packets")]
    pub in_flight_at_end: u64,
}

impl SimHostFigures {
    /// Share of its lines that was in use; `None` without lines.
    pub fn line_ratio(&self) -> Option<f64> {
        let each: Option<Vec<f64>> = self.cards.iter().map(|card| card.line_ratio).collect();
        let each = each.filter(|each| !each.is_empty())?;
        Some(each.iter().sum::<f64>() / each.len() as f64)
    }
}

impl SimHostLedger {
    /// Packets lost at one place.
    pub fn lost_in(&self, place: LossPlace) -> u64 {
        let there = self.losses.iter().find(|loss| loss.place == place);
        there.map_or(0, |loss| loss.packets)
    }

    /// Whether every packet is accounted for.
    pub fn is_closed(&self) -> bool {
        let lost: u64 = self.losses.iter().map(|loss| loss.packets).sum();
        self.in_flight_at_start + self.received + self.made
            == self.transmitted + self.taken + self.merged + lost + self.in_flight_at_end
    }
}

/// What a card did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimCard {
    /// IP packets that reached it, each fragment one.
    #[serde(rename = "received_packets")]
    pub received: u64,
    /// Of these, those that its receive ring had no room for.
    #[serde(rename = "ring_lost_packets")]
    pub ring_lost: u64,
    /// Its interrupts.
    pub interrupts: u64,
    /// Share of its line that was in use; null without a line, as at an end of a veth pair.
    pub line_ratio: Option<f64>,
}

/// Packets lost at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimLoss {
    /// Where.
    pub place: LossPlace,
    /// How many.
    pub packets: u64,
}

/// Shares of the processor's time, each 0 to 1. They add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimCpu {
    /// The program's own work.
    #[serde(rename = "user_ratio")]
    pub user: f64,
    /// System calls, kernel threads, switches to them.
    #[serde(rename = "system_ratio")]
    pub system: f64,
    /// Hard interrupts, the clock's included, and interrupt threads.
    #[serde(rename = "interrupt_ratio")]
    pub interrupt: f64,
    /// Software interrupts: netisr and polling, NET_RX.
    #[serde(rename = "soft_interrupt_ratio")]
    pub soft_interrupt: f64,
    /// Nothing to do.
    #[serde(rename = "idle_ratio")]
    pub idle: f64,
}

/// A queue with a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimQueue {
    /// What it is.
    pub name: String,
    /// What it holds.
    #[serde(rename = "limit_packets")]
    pub limit: u64,
    /// The most that it held.
    #[serde(rename = "most_packets")]
    pub most: u64,
}

/// What interrupt storm detection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimStorm {
    /// Passes of the interrupt thread.
    pub passes: u64,
    /// Of these, followed by a tick's sleep.
    #[serde(rename = "throttled_passes")]
    pub throttled: u64,
    /// Messages in the log.
    pub reports: u64,
}

/// What the poller did, and its knobs at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimPolling {
    /// How the burst is adapted.
    pub controller: String,
    /// Cycles that began.
    pub cycles: u64,
    /// Packets that cycles asked the card for.
    #[serde(rename = "asked_packets")]
    pub asked: u64,
    /// Mean burst of the cycles; null without cycles.
    #[serde(rename = "burst_mean_packets")]
    pub burst_mean: Option<f64>,
    /// The least burst of a cycle; null without cycles.
    #[serde(rename = "burst_min_packets")]
    pub burst_min: Option<u32>,
    /// The greatest burst of a cycle; null without cycles.
    #[serde(rename = "burst_max_reached_packets")]
    pub burst_max_reached: Option<u32>,
    /// Cycles whose burst was the greatest that `burst_max` allows.
    pub full_cycles: u64,
    /// Every variable under `kern.polling` at the end, counters since the start of the counted time.
    pub knobs: Vec<SimKnob>,
}

/// A variable under `kern.polling`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimKnob {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: u32,
}

/// What NAPI did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimNapi {
    /// Polls, empty ones included.
    pub polls: u64,
    /// Polls that found nothing.
    pub empty_polls: u64,
    /// Passes that ended for want of budget or time (`time_squeeze`).
    pub time_squeezes: u64,
    /// Times that ksoftirqd took over.
    pub handovers: u64,
    /// Times that the deferral timer polled.
    pub timer_polls: u64,
    /// Polls by the program.
    pub busy_polls: u64,
}

/// A connection, in the counted time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimTcp {
    /// The host that sends the data.
    pub from: String,
    /// The host that reads them.
    pub to: String,
    /// Where each byte is.
    pub bytes: SimTcpBytes,
    /// Bits a second that the program at the end has read.
    pub goodput_bits_per_second: f64,
    /// The most data of a segment.
    pub segment_bytes: u64,
    /// The send buffer.
    pub send_buffer_bytes: u64,
    /// The receive buffer: the greatest window.
    pub receive_buffer_bytes: u64,
    /// Segments with data that were sent.
    pub segments: u64,
    /// Of these, ones that begin with bytes that were sent before.
    #[serde(rename = "retransmitted_segments")]
    pub retransmits: u64,
    /// Losses that duplicate acknowledgements told of.
    pub fast_retransmits: u64,
    /// Times that the retransmission timer ran out.
    pub timeouts: u64,
    /// Probes of a closed window.
    pub probes: u64,
    /// Acknowledgements that were sent.
    pub acknowledgements: u64,
    /// Mean time from the sending of a segment until the sending TCP has the acknowledgement that answers it;
    /// null before the first.
    pub round_trip_mean_ns: Option<f64>,
    /// What kept the sending TCP from sending.
    pub held: SimTcpHeld,
    /// The counted time in parts of equal length; empty unless parts were asked for.
    pub slices: Vec<SimTcpSlice>,
}

/// `buffered_at_start + written = read + unread_at_end + unsent_or_in_flight_at_end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimTcpBytes {
    /// Written and not read when the counted time began.
    #[serde(rename = "buffered_at_start_bytes")]
    pub buffered_at_start: u64,
    /// Bytes that the sending program wrote.
    #[serde(rename = "written_bytes")]
    pub written: u64,
    /// Bytes that the receiving program read.
    #[serde(rename = "read_bytes")]
    pub read: u64,
    /// Of the bytes written, those that the receiving TCP did not have when the counted time ended.
    #[serde(rename = "unsent_or_in_flight_at_end_bytes")]
    pub unsent_or_in_flight_at_end: u64,
    /// Of the bytes written, those that the receiving TCP had and its program had not read.
    #[serde(rename = "unread_at_end_bytes")]
    pub unread_at_end: u64,
}

impl SimTcpBytes {
    /// Whether every byte is accounted for.
    pub fn is_closed(&self) -> bool {
        self.buffered_at_start + self.written
            == self.read + self.unsent_or_in_flight_at_end + self.unread_at_end
    }
}

/// Shares of the counted time in which the sending TCP could not send, by what it waited for, each 0 to 1.
/// The rest it was sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimTcpHeld {
    /// The program, which had not written more.
    #[serde(rename = "program_ratio")]
    pub program: f64,
    /// Room in the send buffer, which is full of what is not acknowledged.
    #[serde(rename = "send_buffer_ratio")]
    pub send_buffer: f64,
    /// The receiver's window.
    #[serde(rename = "window_ratio")]
    pub window: f64,
    /// The congestion window.
    #[serde(rename = "congestion_ratio")]
    pub congestion: f64,
}

/// A part of the counted time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimTcpSlice {
    /// When it ended, from the start of the counted time.
    pub end_seconds: f64,
    /// Bytes that the receiving program read in it.
    pub read_bytes: u64,
    /// The same in bits a second.
    pub goodput_bits_per_second: f64,
    /// Segments sent again in it.
    #[serde(rename = "retransmitted_segments")]
    pub retransmits: u64,
}
