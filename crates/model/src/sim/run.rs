//! One simulated run: plan, figures of the path, of its hosts and TCP connections, and the bottleneck.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::loss::LossPlace;
use crate::traffic::Latency;

/// Name and version of the JSON of [`SimRun`].
pub const SIM_RUN_SCHEMA: &str = "nicpoll.sim-run/3";

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimRun {
    /// Name and version of this layout: [`SIM_RUN_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The input.
    pub plan: SimPlan,
    /// The results.
    pub figures: SimFigures,
    /// The limit of the throughput.
    pub bottleneck: SimBottleneck,
}

/// The configuration of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimPlan {
    /// The hosts in path order: the first sends, the last receives, those between forward. A single host has ideal
    /// hosts at the far ends of its lines.
    pub hosts: Vec<SimStop>,
    /// The workload with its options, in command-line notation.
    pub workload: String,
    /// Counted virtual time.
    pub seconds: f64,
    /// Virtual time before the counted time.
    pub warmup_seconds: f64,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// A host on the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimStop {
    /// Name of the host.
    pub host: String,
    /// Its receive discipline with its options, in command-line notation.
    pub discipline: String,
}

/// Results of a run over the counted time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimFigures {
    /// Where each datagram of all flows ended.
    pub ledger: SimLedger,
    /// Datagrams per second offered by all flows; requests, for ideal clients; calls, for a sending host.
    pub offered_packets_per_second: f64,
    /// Datagrams per second delivered to all flows; replies, for ideal clients.
    pub delivered_packets_per_second: f64,
    /// Bits of their payload per second.
    pub delivered_payload_bits_per_second: f64,
    /// Lost datagrams over offered ones; null when none were offered.
    pub loss_ratio: Option<f64>,
    /// Latency of all flows; see [`SimFlow::latency`].
    pub latency: Latency,
    /// Final jitter as iperf computes it (RFC 1889), averaged over the flows; null before the second datagram.
    pub jitter_ns: Option<f64>,
    /// Distribution of service over ideal clients; null without them.
    pub clients: Option<SimClients>,
    /// Each direction between two programs.
    pub flows: Vec<SimFlow>,
    /// Each host, in path order.
    pub hosts: Vec<SimHostFigures>,
    /// Each line between two hosts, in path order.
    pub lines: Vec<SimLine>,
    /// Each TCP connection; empty for other workloads. Its two flows are `segments` and `acknowledgements`.
    pub connections: Vec<SimTcp>,
    /// A single host's counted time in parts of equal length; empty unless requested.
    pub slices: Vec<SimSlice>,
}

/// `in_flight_at_start + offered = delivered + sum of losses + in_flight_at_end`, in datagrams. An ideal client's
/// request counts as one datagram until the client has the reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimLedger {
    /// Datagrams in flight when the counted time began.
    pub in_flight_at_start_datagrams: u64,
    /// Datagrams that started: calls of programs to send, refused ones included, or arrivals from a far end.
    pub offered_datagrams: u64,
    /// Datagrams that arrived: read by programs, or received by a far end.
    pub delivered_datagrams: u64,
    /// Nonzero losses by host and place. A fragmented datagram is lost at its first lost fragment.
    pub losses: Vec<SimPathLoss>,
    /// Datagrams in flight when the counted time ended.
    pub in_flight_at_end_datagrams: u64,
}

/// Datagrams lost at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimPathLoss {
    /// The host, from 0 in path order.
    pub host: usize,
    /// The place.
    pub place: LossPlace,
    /// Number of datagrams.
    pub datagrams: u64,
}

impl SimLedger {
    /// Returns all losses.
    pub fn lost(&self) -> u64 {
        self.losses.iter().map(|loss| loss.datagrams).sum()
    }

    /// Returns the losses at one place, over all hosts.
    pub fn lost_in(&self, place: LossPlace) -> u64 {
        let there = self.losses.iter().filter(|loss| loss.place == place);
        there.map(|loss| loss.datagrams).sum()
    }

    /// Returns the losses at one place of one host.
    pub fn lost_at(&self, host: usize, place: LossPlace) -> u64 {
        let mut losses = self.losses.iter();
        let there = losses.find(|loss| loss.host == host && loss.place == place);
        there.map_or(0, |loss| loss.datagrams)
    }

    /// Whether every datagram is accounted for.
    pub fn is_closed(&self) -> bool {
        self.in_flight_at_start_datagrams + self.offered_datagrams
            == self.delivered_datagrams + self.lost() + self.in_flight_at_end_datagrams
    }
}

/// One direction between two programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimFlow {
    /// Its content: datagrams, requests, replies.
    pub name: String,
    /// The sending host, from 0 in path order; null for an ideal far end.
    pub from: Option<usize>,
    /// The receiving host; null for an ideal far end.
    pub to: Option<usize>,
    /// Bytes of payload per datagram.
    pub payload_bytes: u32,
    /// Calls to send.
    pub calls: u64,
    /// Calls that failed (ENOBUFS). A fragmented datagram counts if any fragment was refused.
    pub send_errors: u64,
    /// Datagrams that the receiving program read.
    pub delivered_datagrams: u64,
    /// Calls without error per second.
    pub sent_packets_per_second: f64,
    /// Datagrams read per second.
    pub delivered_packets_per_second: f64,
    /// Bits of payload per second of calls without error.
    pub sent_payload_bits_per_second: f64,
    /// Bits of payload read per second.
    pub delivered_payload_bits_per_second: f64,
    /// Numbers missing at the receiver, as iperf counts them: between the first and the last it read.
    pub missing_datagrams: u64,
    /// Datagrams received after a later one.
    pub out_of_order_datagrams: u64,
    /// Time from the call to the end of the read. From a far end, from the end of the frame on the line to the
    /// program's read; to a far end, to the end of the frame on the line; for a far end's requests, until its client
    /// has the reply.
    pub latency: Latency,
    /// For requests: time from the call to the end of the reply's read. Null for other flows.
    pub round_trip: Option<Latency>,
    /// Final jitter as iperf computes it (RFC 1889); null before the second datagram.
    pub jitter_ns: Option<f64>,
}

/// Distribution of service over the clients. All of them add up to the delivered packets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimClients {
    /// Number of clients.
    pub clients: u64,
    /// Packets delivered, or requests answered, of the client with the fewest.
    pub served_least_packets: u64,
    /// Their median over the clients.
    pub served_median_packets: f64,
    /// Their number for the client with the most.
    pub served_most_packets: u64,
}

/// A line between two hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimLine {
    /// Speed at layer 1, each way.
    pub bits_per_second: u64,
    /// Whether both directions share it.
    pub is_half_duplex: bool,
    /// Share in use away from the first host; for a shared line, the share in this direction.
    pub forth_ratio: f64,
    /// Share in use towards the first host.
    pub back_ratio: f64,
}

/// A part of the counted time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimSlice {
    /// Its end, from the start of the counted time.
    pub end_seconds: f64,
    /// Packets that started in it.
    pub offered_packets: u64,
    /// Packets that arrived in it.
    pub delivered_packets: u64,
    /// Packets lost in it, at any place.
    pub lost_packets: u64,
    /// Interrupts of the card in it.
    pub interrupts: u64,
    /// Passes of the interrupt thread in it that were followed by a tick's sleep.
    pub throttled_passes: u64,
    /// Use of the processor's time in it; for several processors, the mean.
    pub cpu: SimCpu,
    /// Every variable under `kern.polling` at its end, counters since the start of the counted time; empty for other
    /// disciplines.
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

/// The limit of the throughput.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimBottleneck {
    /// The resource that is full, or fullest.
    pub resource: String,
    /// Its fullness: 1 is full.
    pub fullness_ratio: f64,
    /// Whether it limits the throughput; otherwise everything offered is delivered.
    pub is_binding: bool,
    /// The same in a sentence.
    pub explanation: String,
    /// Single changes that deliver more, with their simulated results, greatest gain first; null when none was tried.
    pub moves: Option<Vec<SimMove>>,
}

/// A change of one number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimMove {
    /// The change: `cpu.hz = 2000 (was 1000)`.
    pub change: String,
    /// Packets per second delivered with it.
    pub delivered_packets_per_second: f64,
    /// Ratio to those delivered without it, in a run of equal length; null when there were none.
    pub ratio: Option<f64>,
}

/// Results of one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimHostFigures {
    /// Name of the host.
    pub host: String,
    /// Use of the processor's time; for several processors, the mean.
    pub cpu: SimCpu,
    /// The same for each processor; omitted for a single one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<SimCpu>,
    /// The same as sampled by the clock tick, as top(1) would have shown it. Null when there was no sample in the
    /// counted time.
    pub cpu_sampled: Option<SimCpu>,
    /// Switches between threads, the idle thread included.
    pub context_switches: u64,
    /// Interrupts of its cards.
    pub interrupts: u64,
    /// Where each of its IP packets ended.
    pub ledger: SimHostLedger,
    /// Each card.
    pub cards: Vec<SimCard>,
    /// Every limited queue, and the most that waited in it; for several processors, in the fullest.
    pub queues: Vec<SimQueue>,
    /// Results of storm detection; null for disciplines without it.
    pub storm: Option<SimStorm>,
    /// Results of the poller; null for other disciplines.
    pub polling: Option<SimPolling>,
    /// Results of NAPI; null for other disciplines.
    pub napi: Option<SimNapi>,
}

/// `in_flight_at_start + received + made = transmitted + taken + merged + sum of losses + in_flight_at_end`, in IP
/// packets: each fragment counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimHostLedger {
    /// Packets in the host when the counted time began.
    pub in_flight_at_start_packets: u64,
    /// Packets that reached its cards.
    pub received_packets: u64,
    /// Packets that it created.
    pub made_packets: u64,
    /// Packets that left its cards.
    pub transmitted_packets: u64,
    /// Packets, or reassembled datagrams, that its programs read.
    pub taken_packets: u64,
    /// Fragments merged into a datagram, except the last of each.
    pub merged_packets: u64,
    /// Losses by place, including zeros, in the order in which a packet passes the places.
    pub losses: Vec<SimLoss>,
    /// Packets in the host when the counted time ended.
    pub in_flight_at_end_packets: u64,
}

impl SimHostFigures {
    /// Returns the share of its lines in use; `None` without lines.
    pub fn line_ratio(&self) -> Option<f64> {
        let each: Option<Vec<f64>> = self.cards.iter().map(|card| card.line_ratio).collect();
        let each = each.filter(|each| !each.is_empty())?;
        Some(each.iter().sum::<f64>() / each.len() as f64)
    }
}

impl SimHostLedger {
    /// Returns the packets lost at one place.
    pub fn lost_in(&self, place: LossPlace) -> u64 {
        let there = self.losses.iter().find(|loss| loss.place == place);
        there.map_or(0, |loss| loss.packets)
    }

    /// Whether every packet is accounted for.
    pub fn is_closed(&self) -> bool {
        let lost: u64 = self.losses.iter().map(|loss| loss.packets).sum();
        self.in_flight_at_start_packets + self.received_packets + self.made_packets
            == self.transmitted_packets
                + self.taken_packets
                + self.merged_packets
                + lost
                + self.in_flight_at_end_packets
    }
}

/// Results of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimCard {
    /// IP packets that reached it; each fragment counts.
    pub received_packets: u64,
    /// Of these, packets lost because its receive ring was full.
    pub ring_lost_packets: u64,
    /// Its interrupts.
    pub interrupts: u64,
    /// Share of its line in use; null without a line, as on veth.
    pub line_ratio: Option<f64>,
}

/// Packets lost at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimLoss {
    /// The place.
    pub place: LossPlace,
    /// Number of packets.
    pub packets: u64,
}

/// Shares of the processor's time, each 0 to 1. They add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimCpu {
    /// The program itself.
    pub user_ratio: f64,
    /// System calls, kernel threads, and switches to them.
    pub system_ratio: f64,
    /// Hard interrupts, including the clock's, and interrupt threads.
    pub interrupt_ratio: f64,
    /// Software interrupts: netisr and polling, NET_RX.
    pub soft_interrupt_ratio: f64,
    /// Idle.
    pub idle_ratio: f64,
}

/// A limited queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimQueue {
    /// Its name.
    pub name: String,
    /// Its limit.
    pub limit_packets: u64,
    /// The most packets it held.
    pub most_packets: u64,
}

/// Results of interrupt storm detection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimStorm {
    /// Passes of the interrupt thread.
    pub passes: u64,
    /// Of these, passes followed by a tick's sleep.
    pub throttled_passes: u64,
    /// Messages in the log.
    pub reports: u64,
}

/// Results of the poller, and its final knobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimPolling {
    /// Controller that adapts the burst.
    pub controller: String,
    /// Cycles begun.
    pub cycles: u64,
    /// Packets that cycles requested of the card.
    pub asked_packets: u64,
    /// Mean burst of the cycles; null without cycles.
    pub burst_mean_packets: Option<f64>,
    /// The least burst of a cycle; null without cycles.
    pub burst_min_packets: Option<u32>,
    /// The greatest burst of a cycle; null without cycles.
    pub burst_max_reached_packets: Option<u32>,
    /// Cycles with the greatest burst that `burst_max` allows.
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

/// Results of NAPI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimNapi {
    /// Polls, empty ones included.
    pub polls: u64,
    /// Polls that found nothing.
    pub empty_polls: u64,
    /// Passes that ended because budget or time ran out (`time_squeeze`).
    pub time_squeezes: u64,
    /// How often ksoftirqd took over.
    pub handovers: u64,
    /// Polls by the deferral timer.
    pub timer_polls: u64,
    /// Polls by the program.
    pub busy_polls: u64,
}

/// A TCP connection over the counted time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimTcp {
    /// The host that sends data.
    pub from: String,
    /// The host that reads data.
    pub to: String,
    /// Where each byte ended.
    pub bytes: SimTcpBytes,
    /// Bits per second read by the receiving program.
    pub goodput_bits_per_second: f64,
    /// Most data in a segment.
    pub segment_bytes: u64,
    /// Size of the send buffer.
    pub send_buffer_bytes: u64,
    /// Size of the receive buffer: the greatest window.
    pub receive_buffer_bytes: u64,
    /// Segments with data that were sent.
    pub segments: u64,
    /// Of these, segments that begin with bytes sent before.
    pub retransmitted_segments: u64,
    /// Losses detected by duplicate acknowledgements.
    pub fast_retransmits: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Probes of a closed window.
    pub probes: u64,
    /// Acknowledgements sent.
    pub acknowledgements: u64,
    /// Mean time from sending a segment to receiving the acknowledgement that answers it; null before the first.
    pub round_trip_mean_ns: Option<f64>,
    /// Why the sending TCP was not sending.
    pub held: SimTcpHeld,
    /// The counted time in parts of equal length; empty unless requested.
    pub slices: Vec<SimTcpSlice>,
}

/// `buffered_at_start + written = read + unread_at_end + unsent_or_in_flight_at_end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimTcpBytes {
    /// Bytes written but not read when the counted time began.
    pub buffered_at_start_bytes: u64,
    /// Bytes that the sending program wrote.
    pub written_bytes: u64,
    /// Bytes that the receiving program read.
    pub read_bytes: u64,
    /// Written bytes that the receiving TCP did not have when the counted time ended.
    pub unsent_or_in_flight_at_end_bytes: u64,
    /// Written bytes that the receiving TCP had but its program had not read.
    pub unread_at_end_bytes: u64,
}

impl SimTcpBytes {
    /// Whether every byte is accounted for.
    pub fn is_closed(&self) -> bool {
        self.buffered_at_start_bytes + self.written_bytes
            == self.read_bytes + self.unsent_or_in_flight_at_end_bytes + self.unread_at_end_bytes
    }
}

/// Shares of the counted time in which the sending TCP waited, by cause, each 0 to 1. It was sending for the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimTcpHeld {
    /// The program had not written more.
    pub program_ratio: f64,
    /// The send buffer was full of unacknowledged data.
    pub send_buffer_ratio: f64,
    /// The receiver's window was closed.
    pub window_ratio: f64,
    /// The congestion window was full.
    pub congestion_ratio: f64,
}

/// A part of the counted time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimTcpSlice {
    /// Its end, from the start of the counted time.
    pub end_seconds: f64,
    /// Bytes that the receiving program read in it.
    pub read_bytes: u64,
    /// The same in bits per second.
    pub goodput_bits_per_second: f64,
    /// Segments retransmitted in it.
    pub retransmitted_segments: u64,
}
