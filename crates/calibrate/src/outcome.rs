//! What of a simulated run published figures can be held against.

use nicpoll_model::sim::SimCpu;

use crate::quantity::Direction;

/// A simulated run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The flow, and the flow back if there is one.
    pub flows: Vec<Flow>,
    /// The hosts, in the order of the path.
    pub hosts: Vec<HostOutcome>,
    /// What held it back: the resource, and of which host.
    pub bottleneck: String,
}

/// A host of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The first.
    Sender,
    /// The first between the ends.
    Router,
    /// The last.
    Receiver,
}

/// A flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Calls to send a second.
    pub calls_rate: f64,
    /// Of these, failed.
    pub send_errors_rate: f64,
    /// Packets a second that left the sending program.
    pub sent_rate: f64,
    /// Bits of payload a second in them.
    pub sent_payload_bits: f64,
    /// Packets a second that the receiving program got.
    pub delivered_rate: f64,
    /// Bits of payload a second in them.
    pub delivered_payload_bits: f64,
    /// Packets a second that reached the receiver's driver; `None` when that is not counted.
    pub received_rate: Option<f64>,
    /// Bits of a frame without FCS; `None` when a packet is more than one frame.
    pub frame_bits: Option<f64>,
    /// Lost of sent; `None` when none were sent.
    pub loss_ratio: Option<f64>,
    /// Jitter; `None` before the second packet.
    pub jitter_seconds: Option<f64>,
    /// Packets out of order in the simulated time.
    pub out_of_order: u64,
    /// Bits of payload a second in the intervals of five seconds with the least and the most; `None` when the
    /// simulated time has none.
    pub intervals_bits: Option<(f64, f64)>,
}

/// A host in a simulated run.
#[derive(Clone, Debug, PartialEq)]
pub struct HostOutcome {
    /// Where its processor's time went.
    pub cpu: SimCpu,
    /// Packets lost for full socket buffers, of those received; `None` when none were.
    pub socket_drop_ratio: Option<f64>,
    /// Reports of an interrupt storm a second; `None` for disciplines without storm detection.
    pub storm_reports_per_second: Option<f64>,
    /// Interrupts of its cards a second.
    pub interrupts_per_second: f64,
    /// Switches to another thread a second.
    pub switches_per_second: f64,
}

impl End {
    pub(crate) fn from_name(name: &str) -> Option<End> {
        Some(match name {
            "sender" => End::Sender,
            "router" => End::Router,
            "receiver" => End::Receiver,
            _ => return None,
        })
    }
}

impl Outcome {
    pub(crate) fn flow(&self, direction: Direction) -> Option<&Flow> {
        match direction {
            Direction::There => self.flows.first(),
            Direction::Back => self.flows.get(1),
        }
    }

    /// A host, if the path has it. The one host of a path of one receives.
    pub(crate) fn host(&self, end: End) -> Option<&HostOutcome> {
        let last = self.hosts.len().checked_sub(1)?;
        match end {
            End::Receiver => self.hosts.get(last),
            End::Sender if last > 0 => self.hosts.first(),
            End::Router if last > 1 => self.hosts.get(1),
            _ => None,
        }
    }
}
