//! A flow: one direction between two programs, and the packets that its datagrams become.

use nicpoll_model::line::IpVersion;

use crate::packet::{Packet, PacketKind, Shape};
use crate::shared::Fates;

#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// Which of the world's.
    pub(crate) number: u8,
    /// The machine that it goes to, [`crate::packet::FAR`] for an ideal far end.
    pub(crate) to: u8,
    /// The program there.
    pub(crate) program: usize,
    /// The card that leads there, on the machine that has this copy.
    pub(crate) card: usize,
    pub(crate) ip: IpVersion,
    /// Payload of a datagram.
    pub(crate) payload_bytes: u32,
    /// The frames that a datagram becomes.
    pub(crate) shapes: Vec<Shape>,
    pub(crate) counts: Counts,
    /// Ports that datagrams are sent from in turn: by them cards spread packets over their queues.
    pub(crate) senders: u16,
}

/// When a datagram counts as delivered, and what of its time does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    /// When it has arrived, and all of it.
    FromCall,
    /// When it has arrived, and what follows its last bit's reaching the receiver's card: the way from an ideal
    /// far end is nobody's work.
    FromCard,
    /// A request when its reply is back at its client, and all of it. The reply itself does not count.
    Exchange,
}

impl Flow {
    /// What the fragments of the next datagram have in common; 0 when there is but one packet.
    pub(crate) fn begin_fate(&self, fates: &mut Fates) -> u32 {
        // A datagram has fewer than 2^16 bytes.
        let fragments = self.shapes.len() as u16;
        if fragments > 1 {
            fates.begin(fragments)
        } else {
            0
        }
    }

    /// The packet of one of a datagram's frames.
    pub(crate) fn packet(&self, index: usize, number: u64, fate: u32, now_ns: u64) -> Packet {
        let of = self.shapes.len() as u16;
        let shape = self.shapes[index];
        Packet {
            sent_ns: now_ns,
            arrived_ns: now_ns,
            number,
            line_bytes: shape.line_bytes,
            payload_bytes: shape.payload_bytes,
            flow: self.number,
            client: 0,
            to: self.to,
            ip: self.ip,
            kind: if of > 1 {
                PacketKind::Fragment { of, fate }
            } else {
                PacketKind::Datagram
            },
        }
    }
}
