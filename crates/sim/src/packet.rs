//! A packet: one frame's worth, with its own times and what its costs follow from.

use nicpoll_model::line::IpVersion;

use crate::tcp::{Ack, Segment};

/// A packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// When its sender handed it over.
    pub(crate) sent_ns: u64,
    /// When its last bit reached the card of the machine that it is at; as `sent_ns` before that.
    pub(crate) arrived_ns: u64,
    /// Which one of its flow, from 0. Fragments have the number of their datagram.
    pub(crate) number: u64,
    /// Its frame with preamble and gap.
    pub(crate) line_bytes: u32,
    /// What of its program's bytes it carries.
    pub(crate) payload_bytes: u32,
    /// The flow: one direction between two programs.
    pub(crate) flow: u8,
    /// Which of the clients sent it, or is to get it.
    pub(crate) client: u16,
    /// The machine that it is for; [`FAR`] for an ideal far end.
    pub(crate) to: u8,
    pub(crate) ip: IpVersion,
    pub(crate) kind: PacketKind,
}

impl Packet {
    /// What its datagram's fragments have in common; `None` for a whole one.
    pub(crate) fn fate(&self) -> Option<u32> {
        match self.kind {
            PacketKind::Datagram | PacketKind::Segment(_) | PacketKind::Ack(_) => None,
            PacketKind::Fragment { fate, .. } => Some(fate),
        }
    }
}

/// The far end of a line, where no simulated machine stands.
pub(crate) const FAR: u8 = u8::MAX;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketKind {
    /// A whole UDP datagram.
    Datagram,
    /// A part of one.
    Fragment {
        /// Into how many it was cut.
        of: u16,
        /// What has become of the datagram; see [`crate::shared::Fates`].
        fate: u32,
    },
    /// Data of a TCP connection.
    Segment(Segment),
    /// An acknowledgement of TCP, without data.
    Ack(Ack),
}

/// The frames that a flow's datagrams become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) line_bytes: u32,
    pub(crate) payload_bytes: u32,
}
