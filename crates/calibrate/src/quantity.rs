//! Quantities of published figures: their units, how errors are expressed, and their values in a simulated run.

use std::collections::BTreeMap;

use nicpoll_model::LossPlace;
use nicpoll_model::sim::{ErrorKind, SimCpu, SimHostFigures};
use nicpoll_sim::initial_knob;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, Error, value};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A simulated run.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedRun {
    /// The flow, and the flow back if there is one.
    pub flows: Vec<FlowFigures>,
    /// The hosts, in the order of the path; processor shares are sampled or exact, as in the source.
    pub hosts: Vec<SimHostFigures>,
    /// Counted virtual time.
    pub seconds: f64,
    /// The resource that limited it, with its host.
    pub bottleneck: String,
}

/// A host of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostOfPath {
    /// The first.
    Sender,
    /// The first host between the ends.
    Router,
    /// The last.
    Receiver,
}

/// The figures of a flow, in basic units; counts are per second.
pub type FlowFigures = BTreeMap<FlowQuantity, f64>;

impl SimulatedRun {
    pub(crate) fn flow(&self, direction: FlowDirection) -> Option<&FlowFigures> {
        match direction {
            FlowDirection::There => self.flows.first(),
            FlowDirection::Back => self.flows.get(1),
        }
    }

    /// Returns the share of received packets that the receiver lost in full socket buffers. Unknown with an ideal
    /// sender: the base of the share is not simulated.
    fn socket_drop_ratio(&self) -> Option<f64> {
        let ledger = &self.hosts.get(1..)?.last()?.ledger;
        let dropped = ledger.lost_in(LossPlace::SocketBuffer);
        let reached = ledger.taken_packets + dropped;
        (reached > 0).then(|| dropped as f64 / reached as f64)
    }

    /// Returns a host, if the path has it. A single host is the receiver.
    pub(crate) fn host(&self, end: HostOfPath) -> Option<&SimHostFigures> {
        let last = self.hosts.len().checked_sub(1)?;
        match end {
            HostOfPath::Receiver => self.hosts.get(last),
            HostOfPath::Sender if last > 0 => self.hosts.first(),
            HostOfPath::Router if last > 1 => self.hosts.get(1),
            _ => None,
        }
    }
}

/// A quantity that a simulation can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A figure of the flow, or of the flow back.
    Flow(FlowQuantity, FlowDirection),
    /// A share of a host's processor time.
    Cpu(HostOfPath, CpuState),
    /// Share of received packets that the receiver lost in full socket buffers.
    SocketDrops,
    /// Interrupt storm reports a second that the router logged.
    RouterStormReports,
    /// Payload sent in excess of the baseline run: netblast reports what it sent.
    AheadOfBaseline,
    /// The cost saved per packet, compared with the baseline run.
    Saved(CostQuantity),
    /// The initial value of a knob of the poller.
    Knob(u32),
}

/// A figure of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowQuantity {
    /// Calls to send, in the whole run.
    Calls,
    /// Failed calls to send, in the whole run.
    SendErrors,
    /// Packets that left the sending program, in the whole run.
    SentPackets,
    /// Packets a second that left the sending program.
    SentRate,
    /// Bits of payload a second that left the sending program.
    SentPayload,
    /// Bits a second of sent frames without FCS.
    SentFrames,
    /// Packets a second that the receiving program got.
    DeliveredRate,
    /// Bits of payload a second that the receiving program got.
    DeliveredPayload,
    /// Bits a second of frames without FCS that reached the receiver's driver.
    ReceivedFrames,
    /// Packets lost, in the whole run.
    LostPackets,
    /// Share of sent packets that were lost.
    Loss,
    /// Jitter, in seconds.
    Jitter,
    /// Packets out of order, in the whole run.
    OutOfOrder,
    /// Bits of payload a second in the slowest interval of 5 s.
    LowestInterval,
    /// Bits of payload a second in the fastest interval of 5 s.
    HighestInterval,
}

/// Direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowDirection {
    /// From the first host to the last.
    There,
    /// From the last to the first.
    Back,
}

/// A state of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuState {
    /// Programs.
    User,
    /// System calls and kernel threads.
    System,
    /// Interrupts: hard ones, their threads, and software interrupts, as FreeBSD counts them.
    Interrupt,
    /// Nothing to do.
    Idle,
    /// All but idle.
    Busy,
}

/// A cost per packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum CostQuantity {
    /// Processor time.
    #[serde(rename = "cpu_saved_a_packet")]
    Cpu,
    /// Interrupts.
    #[serde(rename = "interrupts_saved_a_packet")]
    Interrupts,
    /// Context switches.
    #[serde(rename = "switches_saved_a_packet")]
    Switches,
}

/// Returns the variant with this name in the files.
fn named<T: DeserializeOwned>(name: &str) -> Option<T> {
    T::deserialize(StrDeserializer::<value::Error>::new(name)).ok()
}

impl Quantity {
    /// All names, for messages.
    pub(crate) const NAMES: &str = "calls, send_errors, sent_packets, sent_rate, sent_payload, \
        sent_frames, delivered_rate, delivered_payload, received_frames, lost_packets, loss, jitter, \
        out_of_order, lowest_interval, highest_interval (each also with _back), socket_drops, router.storm_reports, ahead_of_baseline, \
        cpu_saved_a_packet, interrupts_saved_a_packet, switches_saved_a_packet, knob.NAME, and sender., \
        router. or receiver. with user, system, interrupt, idle or busy";

    /// Returns the quantity with a name such as `sent_rate` or `receiver.interrupt`.
    pub fn from_name(name: &str) -> Option<Quantity> {
        match name {
            "socket_drops" => return Some(Quantity::SocketDrops),
            "router.storm_reports" => return Some(Quantity::RouterStormReports),
            "ahead_of_baseline" => return Some(Quantity::AheadOfBaseline),
            _ => {}
        }
        match name.split_once('.') {
            Some(("knob", knob)) => return initial_knob(knob).map(Quantity::Knob),
            Some((end, state)) => return Some(Quantity::Cpu(named(end)?, named(state)?)),
            None => {}
        }
        let (flow, direction) = match name.strip_suffix("_back") {
            Some(flow) => (flow, FlowDirection::Back),
            None => (name, FlowDirection::There),
        };
        let flow = named(flow).map(|flow| Quantity::Flow(flow, direction));
        flow.or_else(|| named(name).map(Quantity::Saved))
    }

    /// Returns how its error is expressed: of rates and counts as a ratio, of shares in points. Quantities that
    /// naturally vary between runs, or follow from another figure, are not scored.
    pub fn error_kind(self) -> ErrorKind {
        match self {
            Quantity::Cpu(..) | Quantity::SocketDrops | Quantity::Saved(_) => ErrorKind::Points,
            Quantity::Flow(flow, _) => match flow {
                FlowQuantity::Loss => ErrorKind::Points,
                FlowQuantity::Jitter | FlowQuantity::OutOfOrder | FlowQuantity::LostPackets => {
                    ErrorKind::Unscored
                }
                _ => ErrorKind::Relative,
            },
            Quantity::RouterStormReports | Quantity::AheadOfBaseline | Quantity::Knob(_) => {
                ErrorKind::Unscored
            }
        }
    }

    /// Returns the quantity's value in a simulated run, in basic units: packets, bits, seconds, shares of 1.
    /// `seconds` is the length of the published run. `None` when the simulation has no such figure.
    pub(crate) fn of(
        self,
        outcome: &SimulatedRun,
        baseline: Option<&SimulatedRun>,
        seconds: f64,
    ) -> Option<f64> {
        match self {
            Quantity::Flow(of, direction) => {
                let figure = *outcome.flow(direction)?.get(&of)?;
                Some(if of.is_count() {
                    figure * seconds
                } else {
                    figure
                })
            }
            Quantity::Cpu(end, state) => Some(state.of(&outcome.host(end)?.cpu)),
            Quantity::SocketDrops => outcome.socket_drop_ratio(),
            Quantity::RouterStormReports => {
                let storm = outcome.host(HostOfPath::Router)?.storm?;
                Some(storm.reports as f64 / outcome.seconds)
            }
            Quantity::AheadOfBaseline => {
                let sent =
                    |of: &SimulatedRun| of.flows.first()?.get(&FlowQuantity::SentPayload).copied();
                Some(sent(outcome)? - sent(baseline?)?)
            }
            Quantity::Saved(cost) => {
                let (before, now) = (cost.of(baseline?)?, cost.of(outcome)?);
                (before > 0.0).then(|| 1.0 - now / before)
            }
            Quantity::Knob(_) => None,
        }
    }
}

impl FlowQuantity {
    /// Whether it counts the whole run.
    fn is_count(self) -> bool {
        use FlowQuantity as Q;
        matches!(
            self,
            Q::Calls | Q::SendErrors | Q::SentPackets | Q::LostPackets
        )
    }

    /// Returns the figures of a flow that sends and delivers these packets and payload bits a second, and loses this
    /// share.
    pub(crate) fn rates(sent: [f64; 2], delivered: [f64; 2], loss: Option<f64>) -> FlowFigures {
        use FlowQuantity as Q;
        let known = [
            (Q::SentPackets, sent[0]),
            (Q::SentRate, sent[0]),
            (Q::SentPayload, sent[1]),
            (Q::DeliveredRate, delivered[0]),
            (Q::DeliveredPayload, delivered[1]),
            (Q::Calls, 0.0),
            (Q::SendErrors, 0.0),
            (Q::OutOfOrder, 0.0),
        ];
        let lost = loss.map(|loss| [(Q::Loss, loss), (Q::LostPackets, loss * sent[0])]);
        known
            .into_iter()
            .chain(lost.into_iter().flatten())
            .collect()
    }
}

impl CpuState {
    fn of(self, cpu: &SimCpu) -> f64 {
        match self {
            CpuState::User => cpu.user_ratio,
            CpuState::System => cpu.system_ratio,
            CpuState::Interrupt => cpu.interrupt_ratio + cpu.soft_interrupt_ratio,
            CpuState::Idle => cpu.idle_ratio,
            CpuState::Busy => 1.0 - cpu.idle_ratio,
        }
    }
}

impl CostQuantity {
    fn of(self, outcome: &SimulatedRun) -> Option<f64> {
        let flow = outcome.flows.first()?;
        let rate = *flow.get(&FlowQuantity::DeliveredRate)?;
        let host = outcome.host(HostOfPath::Receiver)?;
        let cost = match self {
            CostQuantity::Cpu => 1.0 - host.cpu.idle_ratio,
            CostQuantity::Interrupts => host.interrupts as f64 / outcome.seconds,
            CostQuantity::Switches => host.context_switches as f64 / outcome.seconds,
        };
        (rate > 0.0).then(|| cost / rate)
    }
}

/// A unit of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SourceUnit {
    /// As the source writes it.
    pub name: &'static str,
    /// How many basic units it is.
    pub scale: f64,
}

const UNITS: [SourceUnit; 14] = [
    unit("", 1.0),
    unit("Mbit/s", 1e6),
    unit("packets/s", 1.0),
    unit("reports/s", 1.0),
    unit("interrupts/s", 1.0),
    unit("packets", 1.0),
    unit("calls", 1.0),
    unit("interrupts", 1.0),
    unit("reports", 1.0),
    unit("%", 0.01),
    unit("ppm", 1e-6),
    unit("s", 1.0),
    unit("ms", 1e-3),
    unit("us", 1e-6),
];

const fn unit(name: &'static str, scale: f64) -> SourceUnit {
    SourceUnit { name, scale }
}

impl SourceUnit {
    const NAMES: &str = "\"\", Mbit/s, packets/s, reports/s, interrupts/s, packets, calls, \
        interrupts, reports, %, ppm, s, ms, us";
}

impl Serialize for SourceUnit {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.name.serialize(to)
    }
}

impl<'de> Deserialize<'de> for SourceUnit {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let found = UNITS.into_iter().find(|unit| unit.name == name);
        found.ok_or_else(|| {
            let known = SourceUnit::NAMES;
            Error::custom(format!("'{name}' is no known unit; there are {known}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known() {
        let (flows, others) = Quantity::NAMES.split_once(" (each").unwrap();
        assert_eq!(flows.split(", ").count(), 15);
        for name in flows.split(", ") {
            assert!(Quantity::from_name(name).is_some(), "{name}");
            let back = format!("{name}_back");
            assert!(Quantity::from_name(&back).is_some(), "{name}");
        }
        let (_, others) = others.split_once(", ").unwrap();
        let (others, _) = others.split_once(", knob").unwrap();
        assert_eq!(others.split(", ").count(), 6);
        for name in others.split(", ") {
            assert!(Quantity::from_name(name).is_some(), "{name}");
        }
        for name in ["sender.user", "router.busy", "receiver.idle", "knob.burst"] {
            assert!(Quantity::from_name(name).is_some(), "{name}");
        }
        for name in [
            "",
            "sent",
            "sender.nice",
            "cable.user",
            "knob.enable",
            "_back",
        ] {
            assert_eq!(Quantity::from_name(name), None, "{name}");
        }
        for unit in UNITS {
            assert!(SourceUnit::NAMES.contains(unit.name));
        }
    }
}
