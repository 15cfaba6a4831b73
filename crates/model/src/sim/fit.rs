//! Costs of a host's receive path, fitted to measurements, and what the simulator predicts with them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::{HostFacts, named};
use crate::study::trial::TrialFigures;

/// Name and version of the JSON that [`SimFitHost`] becomes.
pub const SIM_FIT_HOST_SCHEMA: &str = "nicpoll.sim-fit-host/1";

/// What was measured, and what follows from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimFitHost {
    /// Name and version of this layout: [`SIM_FIT_HOST_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// How long it took.
    pub elapsed_seconds: f64,
    /// The machine.
    pub host: HostFacts,
    /// Repeats that count: three or five, and up to as many more while a cost does not agree with itself.
    pub repeats: u32,
    /// What other programs took of the two processors while costs were measured, 0 to 1; null when it was not seen.
    /// It adds to what is measured.
    pub others_ratio: Option<f64>,
    /// What the hypervisor kept of the two processors meanwhile, 0 to 1, by `/proc/stat`; null when it was not
    /// seen. Times are longer by it.
    #[serde(default)]
    pub steal_ratio: Option<f64>,
    /// What each kind of work costs.
    pub costs: Vec<MeasuredCost>,
    /// Every number of the host file.
    pub numbers: Vec<HostNumber>,
    /// Predictions compared with measurements; empty without `--check`.
    pub checks: Vec<HostCheck>,
}

named! {
    /// A kind of work on the receive path, or a time that passes there.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "kebab-case")]
    pub enum HostCost {
        /// A poll that one packet was there for, up to its socket, with what waking the program takes of it.
        OnePacketPoll = "one packet a poll",
        /// A poll that finds nothing, on a processor that sleeps between polls.
        EmptyPoll = "empty poll, idle processor",
        /// A poll without its packets, on a processor that sends them.
        LoadedPoll = "poll under load, packets left out",
        /// A packet in a batch, up to its socket.
        BatchedPacket = "packet in a batch",
        /// The same for 1024 bytes of payload more.
        BatchedKib = "packet in a batch, per KiB more",
        /// What a packet takes beyond one that is dropped before IP: IP, UDP and the socket, waking left out.
        Delivery = "delivery: IP, UDP, socket",
        /// Waking the receiver's program on the other processor.
        Wake = "waking the receiver",
        /// The receiver's program: waiting, being woken, and the call around the packets.
        TakeUp = "receiver: waiting and waking up",
        /// The receiver's program: one packet of a call.
        Read = "receiver: one packet of a read",
        /// The same for 1024 bytes of payload more.
        ReadKib = "receiver: per KiB more",
        /// The sender's call, in the kernel, up to the link.
        Send = "sender: call, in the kernel",
        /// The same for 1024 bytes of payload more.
        SendKib = "sender: per KiB more",
        /// The sender's program, outside the kernel, a packet.
        SendUser = "sender: outside the kernel",
        /// A switch between two threads of a processor.
        ThreadSwitch = "context switch, two threads",
        /// The hard interrupt of the polling timer.
        TimerInterrupt = "polling timer, interrupt",
        /// How late the polling timer comes.
        TimerDelay = "polling timer, lateness",
        /// A clock tick: interrupt and what it causes.
        Tick = "clock tick",
        /// Request and response, the median, when each packet has its own poll.
        RoundTrip = "round trip, median",
    }
}

/// A cost, over the repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredCost {
    /// Which.
    pub cost: HostCost,
    /// The middle one in nanoseconds, above 0; null when it cannot be told from nothing.
    pub ns: Option<f64>,
    /// The least one; below 0 when scatter is greater than the cost.
    pub min_ns: Option<f64>,
    /// The greatest one.
    pub max_ns: Option<f64>,
    /// Whether the middle half of the repeats lies within 30 % of the middle one, or within 200 ns. When it does
    /// not, the cost is a range; null when `ns` is.
    #[serde(default)]
    pub is_repeatable: Option<bool>,
    /// Repeats that have the figure.
    pub repeats: u32,
}

/// A number of the host file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostNumber {
    /// Section and name, such as `cpu.hz`.
    pub name: String,
    /// The value.
    pub value: u64,
    /// Where it is from.
    pub source: String,
}

/// How a row was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckKind {
    /// Runs like it are among those that the costs are from.
    Fitted,
    /// No run under this setting with this traffic was looked at before.
    Predicted,
}

named! {
    /// A quantity of a check, which [`CheckQuantity::measured`] reads of a trial.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum CheckQuantity {
        /// Datagrams a second that the receiver read.
        DeliveredPps = "packets a second",
        /// Transactions a second.
        TransactionsPerSecond = "transactions a second",
        /// Median round trip.
        RoundTripP50Ns = "round trip, median, ns",
        /// Busy time of both processors over datagrams or transactions.
        CpuNsPerPacket = "CPU time a packet, ns",
        /// Datagrams a poll of the receiver's end.
        PacketsPerPoll = "packets a poll",
    }
}

impl CheckQuantity {
    /// What a trial measured of it.
    pub fn measured(self, figures: &TrialFigures) -> Option<f64> {
        let trips = figures.round_trip;
        match self {
            CheckQuantity::DeliveredPps => figures.delivered_packets_per_second,
            CheckQuantity::TransactionsPerSecond => {
                trips.map(|trips| trips.transactions_per_second)
            }
            CheckQuantity::RoundTripP50Ns => {
                trips.and_then(|trips| Some(trips.quantiles.p50_ns? as f64))
            }
            CheckQuantity::CpuNsPerPacket => figures.cpu.as_ref()?.busy_ns_per_packet,
            CheckQuantity::PacketsPerPoll => figures.packets_per_poll,
        }
    }
}

/// A workload under a setting, as the simulator is to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToSimulate {
    /// The study's name for the traffic.
    pub workload: String,
    /// The simulator's words for it.
    pub traffic: String,
    /// The study's name for what is in force.
    pub setting: String,
    /// From round to round, where a timer begins them; `None` where each arrival wakes the NAPI.
    pub period_ns: Option<u64>,
}

/// Predictions of the simulator for a study's traffic, computed before its first trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Simulated {
    /// The host that was simulated: a file, or the name of one that comes with the program.
    pub host: String,
    /// The figures.
    pub figures: Vec<SimulatedFigure>,
}

/// A figure that the simulator has for a workload under a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulatedFigure {
    /// The traffic.
    pub workload: String,
    /// What is in force.
    pub setting: String,
    /// What it is.
    pub quantity: CheckQuantity,
    /// The figure, in the unit of the quantity.
    pub value: f64,
}

/// Predicted and measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostCheck {
    /// The traffic.
    pub workload: String,
    /// How the receiver learns of packets.
    pub setting: String,
    /// What is compared.
    pub quantity: CheckQuantity,
    /// What the simulator says.
    pub simulated: Option<f64>,
    /// The middle one of the good trials; null without any.
    pub measured: Option<f64>,
    /// The least of them.
    pub measured_min: Option<f64>,
    /// The greatest.
    pub measured_max: Option<f64>,
    /// `simulated / measured - 1`.
    pub error: Option<f64>,
    /// Whether the costs come from runs like it.
    pub kind: CheckKind,
}
