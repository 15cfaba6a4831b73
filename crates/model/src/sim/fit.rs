//! Costs of a host's receive path, fitted to measurements, and what the simulator predicts with them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::{HostFacts, named};
use crate::sim::sweep::{InParts, SimShard};
use crate::study::comparison::Metric;
use crate::study::trial::TrialFigures;

/// Name and version of the JSON of [`SimFit`].
pub const SIM_FIT_SCHEMA: &str = "nicpoll.sim-fit/1";

/// Name and version of the JSON of [`SimFitHost`].
pub const SIM_FIT_HOST_SCHEMA: &str = "nicpoll.sim-fit-host/1";

/// The measurements of a host, and the fitted costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimFitHost {
    /// Name and version of this layout: [`SIM_FIT_HOST_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// Duration of the measurements.
    pub elapsed_seconds: f64,
    /// The machine.
    pub host: HostFacts,
    /// Repeats that count: three or five, and up to as many more while a cost is not repeatable.
    pub repeats: u32,
    /// Share of the two processors that other programs took during the measurements, 0 to 1; null when it was not
    /// measured. It increases the measured costs.
    pub others_ratio: Option<f64>,
    /// Share of the two processors that the hypervisor took meanwhile, 0 to 1, by `/proc/stat`; null when it was not
    /// measured. It lengthens the measured times.
    #[serde(default)]
    pub steal_ratio: Option<f64>,
    /// Cost of each kind of work.
    pub costs: Vec<MeasuredCost>,
    /// Every number of the host file.
    pub numbers: Vec<HostNumber>,
    /// Predictions compared with measurements; empty without `--check`.
    pub checks: Vec<HostCheck>,
}

/// Costs of published hosts, fitted to figures under interrupts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimFit {
    /// Name and version of this layout: [`SIM_FIT_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The part of the fit; null for the whole fit.
    pub shard: Option<SimShard>,
    /// Sets of groups, in the order of the plan: groups of different sets share no host.
    pub sets: Vec<Vec<GroupFit>>,
}

/// The fit of a group of parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupFit {
    /// Name of the group.
    pub name: String,
    /// Its parameters.
    pub factors: Vec<FittedFactor>,
    /// Figures that it was fitted to.
    pub figures: u64,
    /// Root mean square of their errors: 1 is 2 % of a rate or 5 % of a share.
    pub error_ratio: f64,
    /// Simulations that it took.
    pub simulations: u64,
}

/// A parameter, fitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FittedFactor {
    /// Name of the parameter.
    pub name: String,
    /// The factor on the costs of the plan, in thousandths.
    pub thousandths: u64,
}

impl InParts for SimFit {
    type Point = Vec<GroupFit>;
    const SCHEMA: &'static str = SIM_FIT_SCHEMA;
    const COMMAND: &'static str = "nicpoll sim fit";

    fn part(&self) -> (&str, Option<&SimShard>, &[Self::Point]) {
        (&self.schema, self.shard.as_ref(), &self.sets)
    }

    fn is_like(&self, other: &Self) -> bool {
        self.nicpoll_version == other.nicpoll_version
    }

    fn whole(self, sets: Vec<Self::Point>) -> Self {
        SimFit {
            shard: None,
            sets,
            ..self
        }
    }
}

named! {
    /// A kind of work on the receive path, or a waiting time there.
    #[serde(rename_all = "kebab-case")]
    pub enum HostCost {
        /// A poll that finds one packet, up to its socket, including the poll's part in waking the program.
        OnePacketPoll = "one packet a poll",
        /// A poll that finds nothing, on a processor that sleeps between polls.
        EmptyPoll = "empty poll, idle processor",
        /// A poll without the cost of its packets, on a processor that sends them.
        LoadedPoll = "poll under load, packets left out",
        /// A packet in a batch, up to its socket.
        BatchedPacket = "packet in a batch",
        /// Each further 1024 bytes of payload of it.
        BatchedKib = "packet in a batch, per KiB more",
        /// Cost of a delivered packet beyond one dropped before IP: IP, UDP and the socket, without waking.
        Delivery = "delivery: IP, UDP, socket",
        /// Waking the receiver's program on the other processor.
        Wake = "waking the receiver",
        /// The receiver's program: waiting, waking up, and the call without its packets.
        TakeUp = "receiver: waiting and waking up",
        /// The receiver's program: each packet of a call.
        Read = "receiver: one packet of a read",
        /// Each further 1024 bytes of payload of it.
        ReadKib = "receiver: per KiB more",
        /// The sender's call in the kernel, up to the link.
        Send = "sender: call, in the kernel",
        /// Each further 1024 bytes of payload of it.
        SendKib = "sender: per KiB more",
        /// The sender's program outside the kernel, per packet.
        SendUser = "sender: outside the kernel",
        /// A switch between two threads of one processor.
        ThreadSwitch = "context switch, two threads",
        /// The hard interrupt of the polling timer.
        TimerInterrupt = "polling timer, interrupt",
        /// Delay of the polling timer.
        TimerDelay = "polling timer, lateness",
        /// A clock tick: the interrupt and its consequences.
        Tick = "clock tick",
        /// Median of request and response when each packet has its own poll.
        RoundTrip = "round trip, median",
    }
}

/// A cost over the repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredCost {
    /// The kind of work.
    pub cost: HostCost,
    /// Median in nanoseconds, above 0; null when it is indistinguishable from 0.
    pub ns: Option<f64>,
    /// Minimum; below 0 when the scatter exceeds the cost.
    pub min_ns: Option<f64>,
    /// Maximum.
    pub max_ns: Option<f64>,
    /// Whether the middle half of the repeats lies within 30 % of the median, or within 200 ns. Otherwise the cost is a
    /// range; null when `ns` is.
    #[serde(default)]
    pub is_repeatable: Option<bool>,
    /// Repeats that measured it.
    pub repeats: u32,
}

/// A number of the host file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostNumber {
    /// Section and name, such as `cpu.hz`.
    pub name: String,
    /// The value.
    pub value: u64,
    /// Its source.
    pub source: String,
}

/// How the fit used a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckKind {
    /// Runs of this kind were used for the costs.
    Fitted,
    /// No run of this traffic under this setting was used.
    Predicted,
}

named! {
    /// A quantity of a check, which [`CheckQuantity::measured`] takes from a trial.
    #[serde(rename_all = "snake_case")]
    pub enum CheckQuantity {
        /// Datagrams per second that the receiver read.
        DeliveredPps = "packets a second",
        /// Transactions per second.
        TransactionsPerSecond = "transactions a second",
        /// Median round trip.
        RoundTripP50Ns = "round trip, median, ns",
        /// Busy time of both processors per datagram or transaction.
        CpuNsPerPacket = "CPU time a packet, ns",
        /// Datagrams per poll at the receiver.
        PacketsPerPoll = "packets a poll",
    }
}

impl CheckQuantity {
    /// Returns a trial's measured value.
    pub fn measured(self, figures: &TrialFigures) -> Option<f64> {
        match self {
            CheckQuantity::DeliveredPps => figures.delivered_packets_per_second,
            CheckQuantity::TransactionsPerSecond => Metric::TransactionsPerSecond.figure(figures),
            CheckQuantity::RoundTripP50Ns => Metric::RoundTripP50Ns.figure(figures),
            CheckQuantity::CpuNsPerPacket => Metric::CpuNsPerPacket.figure(figures),
            CheckQuantity::PacketsPerPoll => figures.packets_per_poll,
        }
    }
}

/// A workload under a setting, as input of the simulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToSimulate {
    /// The study's name of the traffic.
    pub workload: String,
    /// The simulator's notation of the traffic.
    pub traffic: String,
    /// The study's name of the setting.
    pub setting: String,
    /// Time between rounds that a timer starts; `None` if each arrival wakes the NAPI.
    pub period_ns: Option<u64>,
}

/// The simulator's predictions of a study's traffic, computed before its first trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Simulated {
    /// The simulated host: a file, or the name of one that comes with the program.
    pub host: String,
    /// The predicted figures.
    pub figures: Vec<SimulatedFigure>,
}

/// A predicted figure for a workload under a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulatedFigure {
    /// The traffic.
    pub workload: String,
    /// The setting.
    pub setting: String,
    /// The quantity.
    pub quantity: CheckQuantity,
    /// The figure, in the unit of the quantity.
    pub value: f64,
}

/// A prediction compared with a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostCheck {
    /// The traffic.
    pub workload: String,
    /// The receiver's setting.
    pub setting: String,
    /// The compared quantity.
    pub quantity: CheckQuantity,
    /// The simulated figure.
    pub simulated: Option<f64>,
    /// Median of the good trials; null without any.
    pub measured: Option<f64>,
    /// Their minimum.
    pub measured_min: Option<f64>,
    /// Their maximum.
    pub measured_max: Option<f64>,
    /// `simulated / measured - 1`.
    pub error: Option<f64>,
    /// How the fit used such runs.
    pub kind: CheckKind,
}
