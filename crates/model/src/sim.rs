//! What `nicpoll sim --json` prints: a host in virtual time under one load, and under many.
//!
//! What must hold: nothing here was measured. Every figure is what a model predicts from the numbers of a
//! host file; the same file, options and seed give the same figures to the last digit.

mod parts;

pub use parts::{JoinError, SimShard, join};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rr::Latency;

/// Name and version of the JSON that [`SimRun`] becomes.
pub const SIM_RUN_SCHEMA: &str = "nicpoll.sim-run/1";
/// Name and version of the JSON that [`SimSweep`] becomes.
pub const SIM_SWEEP_SCHEMA: &str = "nicpoll.sim-sweep/1";

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

/// What is run, and all that a run follows from beside the host's numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimPlan {
    /// Name of the host.
    pub host: String,
    /// Receive discipline with its options, as the command line takes it.
    pub discipline: String,
    /// Workload with its options, as the command line takes it.
    pub workload: String,
    /// Virtual time that is counted.
    pub seconds: f64,
    /// Virtual time before it that is not.
    pub warmup_seconds: f64,
    /// Seed of all chance.
    pub seed: u64,
}

/// What came out of a run, in the counted time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimFigures {
    /// Where each packet ended.
    pub ledger: SimLedger,
    /// Packets a second that were offered; requests of clients; calls when the host sends.
    pub offered_pps: f64,
    /// Packets a second that the program got; replies that clients got; packets that went out on the line when the
    /// host sends.
    pub delivered_pps: f64,
    /// Bits of payload a second in them.
    pub delivered_payload_bits_per_second: f64,
    /// Lost packets over offered ones; null when none were offered.
    pub loss_ratio: Option<f64>,
    /// Share of the line that was in use; of all lines if there are several.
    pub line_ratio: f64,
    /// From the end of a frame on the line until its program has it; when the host sends, from the call
    /// to the end of the frame on the line; with requests from a client's sending one until it has the reply.
    pub latency: Latency,
    /// Jitter as iperf computes it (RFC 1889) at the end, the mean of the lines'; null before the second packet.
    pub jitter_ns: Option<f64>,
    /// How the clients were served; null when the host itself sends.
    pub clients: Option<SimClients>,
    /// Each card, with its line.
    pub cards: Vec<SimCard>,
    /// Where the processor's time went.
    pub cpu: SimCpu,
    /// Switches to another thread, the idle one included.
    pub context_switches: u64,
    /// The same for each packet delivered; null when none was.
    pub context_switches_per_packet: Option<f64>,
    /// Interrupts of all cards.
    pub interrupts: u64,
    /// The counted time in parts of equal length; empty unless parts were asked for.
    pub slices: Vec<SimSlice>,
    /// Every queue with a limit, and the most that waited in it.
    pub queues: Vec<SimQueue>,
    /// The storm detection's work; null for disciplines that have none.
    pub storm: Option<SimStorm>,
    /// The poller's work; null for other disciplines.
    pub polling: Option<SimPolling>,
    /// NAPI's work; null for other disciplines.
    pub napi: Option<SimNapi>,
}

/// How alike clients were served. They add up to the packets delivered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimClients {
    /// How many there are.
    pub count: u64,
    /// Packets delivered, or requests answered, of the client with the fewest.
    pub served_least: u64,
    /// The same of the one in the middle; the mean of two when there is none.
    pub served_median: f64,
    /// The same of the one with the most.
    pub served_most: u64,
}

/// What a card did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimCard {
    /// IP packets that reached it, each fragment one.
    pub received: u64,
    /// Of these, those that its receive ring had no room for.
    pub ring_lost: u64,
    /// Its interrupts.
    pub interrupts: u64,
    /// Share of its line that was in use.
    pub line_ratio: f64,
}

/// A part of the counted time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimSlice {
    /// When it ended, from the start of the counted time.
    pub end_seconds: f64,
    /// Packets that set out in it.
    pub offered: u64,
    /// Packets that arrived in it.
    pub delivered: u64,
    /// Packets lost in it, wherever.
    pub lost: u64,
    /// Interrupts of the card in it.
    pub interrupts: u64,
    /// Passes of the interrupt thread in it that a tick's sleep followed.
    pub throttled: u64,
    /// Every variable under `kern.polling` at its end, counters since the start of the counted time; empty
    /// for other disciplines.
    pub knobs: Vec<SimKnob>,
}

/// `in_flight_at_start + offered = delivered + sum of losses + in_flight_at_end`. A request is one packet until
/// its client has the reply, wherever either is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimLedger {
    /// Packets on their way when the counted time began.
    pub in_flight_at_start: u64,
    /// Packets that set out.
    pub offered: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Losses by place, zeros included, in the order in which a packet passes the places.
    pub losses: Vec<SimLoss>,
    /// Packets on their way when the counted time ended.
    pub in_flight_at_end: u64,
}

impl SimLedger {
    /// All losses.
    pub fn lost(&self) -> u64 {
        self.losses.iter().map(|loss| loss.packets).sum()
    }

    /// Whether every packet is accounted for.
    pub fn is_closed(&self) -> bool {
        self.in_flight_at_start + self.offered
            == self.delivered + self.lost() + self.in_flight_at_end
    }
}

/// A place where a simulated packet can be lost.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SimPlace {
    /// The queue at the far end: the line was full.
    FarQueue,
    /// The card had no receive descriptor.
    RxRing,
    /// The queue before IP was full.
    IpQueue,
    /// A fragment came whose datagram misses another one for ever; the datagram was lost there.
    Reassembly,
    /// The receive buffer of the socket was full.
    SocketBuffer,
    /// An interface's send queue was full: a call failed with ENOBUFS, or a packet could not be forwarded.
    SendQueue,
}

impl SimPlace {
    /// All of them, in the order of a packet's way in, then its way out.
    pub const ALL: [SimPlace; 6] = [
        SimPlace::FarQueue,
        SimPlace::RxRing,
        SimPlace::IpQueue,
        SimPlace::Reassembly,
        SimPlace::SocketBuffer,
        SimPlace::SendQueue,
    ];

    /// The name used in JSON and CSV.
    pub fn key(self) -> &'static str {
        match self {
            SimPlace::FarQueue => "far_queue",
            SimPlace::RxRing => "rx_ring",
            SimPlace::IpQueue => "ip_queue",
            SimPlace::Reassembly => "reassembly",
            SimPlace::SocketBuffer => "socket_buffer",
            SimPlace::SendQueue => "send_queue",
        }
    }

    /// The name used in text.
    pub fn name(self) -> &'static str {
        match self {
            SimPlace::FarQueue => "queue at the far end",
            SimPlace::RxRing => "receive ring",
            SimPlace::IpQueue => "IP input queue",
            SimPlace::Reassembly => "reassembly",
            SimPlace::SocketBuffer => "socket buffer",
            SimPlace::SendQueue => "send queue (ENOBUFS)",
        }
    }
}

/// Packets lost at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimLoss {
    /// Where.
    pub place: SimPlace,
    /// How many.
    pub packets: u64,
}

/// Shares of the processor's time, each 0 to 1. They add up to 1, and are exact, not sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimCpu {
    /// The program's own work.
    pub user: f64,
    /// System calls, kernel threads, switches to them.
    pub system: f64,
    /// Hard interrupts, the clock's included, and interrupt threads.
    pub interrupt: f64,
    /// Software interrupts: netisr and polling, NET_RX.
    pub soft_interrupt: f64,
    /// Nothing to do.
    pub idle: f64,
}

/// A queue with a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimQueue {
    /// What it is.
    pub name: String,
    /// What it holds.
    pub limit: u64,
    /// The most that it held.
    pub most: u64,
}

/// What interrupt storm detection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimStorm {
    /// Passes of the interrupt thread.
    pub passes: u64,
    /// Of these, followed by a tick's sleep.
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
    pub asked: u64,
    /// Mean burst of the cycles; null without cycles.
    pub burst_mean: Option<f64>,
    /// The least burst of a cycle; null without cycles.
    pub burst_min: Option<u32>,
    /// The greatest burst of a cycle; null without cycles.
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

/// Why no more came through.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimBottleneck {
    /// What is full, or is fullest.
    pub resource: String,
    /// How full: 1 is all of it.
    pub fullness: f64,
    /// Whether it holds back packets; otherwise all that is offered comes through.
    pub is_binding: bool,
    /// The same in a sentence.
    pub explanation: String,
    /// Single changes and what each came to when it was simulated, the greatest gain first.
    pub moves: Vec<SimMove>,
}

/// A change of one number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimMove {
    /// What was changed: `cpu.hz = 2000 (was 1000)`.
    pub change: String,
    /// Packets a second that are delivered then.
    pub delivered_pps: f64,
    /// Over those delivered without the change, in a run of the same length; null when there were none.
    pub ratio: Option<f64>,
}

/// Runs over a range of one parameter, for each discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimSweep {
    /// Name and version of this layout: [`SIM_SWEEP_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// What varies: `offered`, in packets a second, or a number of the host file.
    pub parameter: String,
    /// The workload with its options, as the command line takes it.
    pub workload: String,
    /// Which part of the sweep this is; null for all of it.
    pub shard: Option<SimShard>,
    /// The points, by discipline, then by the parameter's value.
    pub points: Vec<SimPoint>,
}

/// One run of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimPoint {
    /// The parameter's value.
    pub value: f64,
    /// What was asked for.
    pub plan: SimPlan,
    /// What came out.
    pub figures: SimFigures,
}
