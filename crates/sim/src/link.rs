//! Packets between machines, the flows they belong to, the queues they wait in, and the wires that carry them.
//!
//! Guarantees: a queue never holds more than its limit, and its caller counts each packet that does not fit as lost
//! there and nowhere else. A wire loses no fraction of a nanosecond, so a full line carries exactly its rate.

use std::collections::VecDeque;

use nicpoll_core::NS_PER_SECOND;
use nicpoll_model::line::IpVersion;

use crate::tcp::{Ack, Segment};

/// A packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When its sender handed it over.
    pub sent_ns: u64,
    /// When its last bit reached the current machine's card; `sent_ns` until then.
    pub arrived_ns: u64,
    /// Number within its flow, from 0. Fragments have the number of their datagram.
    pub number: u64,
    /// Length of its frame, with preamble and gap.
    pub line_bytes: u32,
    /// Bytes of the program that it carries.
    pub payload_bytes: u32,
    /// The flow: one direction between two programs.
    pub flow: u8,
    /// The client that sent it, or that receives it.
    pub client: u16,
    /// The host that it is for; [`FAR`] for an ideal far end.
    pub to: u8,
    pub ip: IpVersion,
    pub kind: PacketKind,
}

impl Packet {
    /// Returns the index of its datagram in `account::Fates`; `None` unless it is a fragment.
    pub fn fate(&self) -> Option<u32> {
        match self.kind {
            PacketKind::Datagram | PacketKind::Segment(_) | PacketKind::Ack(_) => None,
            PacketKind::Fragment { fate, .. } => Some(fate),
        }
    }
}

/// The ideal far end of a line, without a simulated host.
pub const FAR: u8 = u8::MAX;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// A whole UDP datagram.
    Datagram,
    /// A fragment of a datagram.
    Fragment {
        /// Fragments of the datagram.
        of: u16,
        /// The datagram's index in `account::Fates`.
        fate: u32,
    },
    /// Data of a TCP connection.
    Segment(Segment),
    /// An acknowledgement of TCP, without data.
    Ack(Ack),
}

/// A frame of a flow's datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub line_bytes: u32,
    pub payload_bytes: u32,
}

/// A flow: one direction between two programs.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Index among the world's flows.
    pub number: u8,
    /// Its content, such as `datagrams`.
    pub name: &'static str,
    /// The host that it comes from, [`FAR`] for an ideal far end.
    pub from: u8,
    /// The host that it goes to, [`FAR`] for an ideal far end.
    pub to: u8,
    /// On the machine that has this copy: the card by which the flow leaves or arrives.
    pub card: usize,
    pub ip: IpVersion,
    /// Payload of a datagram, or of the longest segment.
    pub payload_bytes: u32,
    /// The frames of one datagram.
    pub shapes: Vec<Shape>,
    pub counts: DeliveryCount,
    /// Source ports used in turn, by which cards spread packets over their queues.
    pub senders: u16,
}

/// When a datagram counts as delivered, and which part of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryCount {
    /// On arrival, with all of its time.
    FromCall,
    /// On arrival, with the time since its last bit reached the receiver's card: the way from an ideal far end is
    /// nobody's work.
    FromCard,
    /// A request when its reply reaches the client, with all of its time. The reply itself does not count.
    Exchange,
}

impl Flow {
    /// The host that sends; `None` for an ideal far end.
    pub fn sender(&self) -> Option<usize> {
        (self.from != FAR).then_some(usize::from(self.from))
    }

    /// The host that receives; `None` for an ideal far end.
    pub fn receiver(&self) -> Option<usize> {
        (self.to != FAR).then_some(usize::from(self.to))
    }

    /// Makes the packet of a datagram's frame `index`.
    pub fn packet(&self, index: usize, number: u64, fate: u32, now_ns: u64) -> Packet {
        let kind = match self.shapes.len() as u16 {
            1 => PacketKind::Datagram,
            of => PacketKind::Fragment { of, fate },
        };
        self.packet_of(kind, self.shapes[index], number, now_ns)
    }

    /// Makes a packet with this frame.
    pub fn packet_of(&self, kind: PacketKind, shape: Shape, number: u64, now_ns: u64) -> Packet {
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
            kind,
        }
    }
}

/// A bounded first-in, first-out queue.
#[derive(Clone, Debug, Default)]
pub struct BoundedQueue {
    packets: VecDeque<Packet>,
    pub limit: u64,
    /// Most packets that it held.
    pub most: u64,
}

impl BoundedQueue {
    pub fn new(limit: u64) -> Self {
        BoundedQueue {
            limit,
            ..BoundedQueue::default()
        }
    }

    pub fn len(&self) -> u64 {
        self.packets.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Appends a packet. Returns false when the queue is full.
    #[must_use]
    pub fn push(&mut self, packet: Packet) -> bool {
        if self.len() >= self.limit {
            return false;
        }
        self.packets.push_back(packet);
        self.most = self.most.max(self.len());
        true
    }

    pub fn pop(&mut self) -> Option<Packet> {
        self.packets.pop_front()
    }

    /// Returns the next packet to be popped.
    pub fn front(&self) -> Option<&Packet> {
        self.packets.front()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter()
    }

    /// Resets `most` to the current length.
    pub fn begin_counting(&mut self) {
        self.most = self.len();
    }
}

/// A line one way; both ways if it is half duplex.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wire {
    bits_per_second: u64,
    /// Length of the last frame carried, with preamble and gap.
    line_bytes: u32,
    /// Time of such a frame, in whole nanoseconds.
    frame_ns: u64,
    /// The remainder, in units of 1 / `bits_per_second` ns.
    frame_rest: u64,
    /// When the last frame will have passed.
    free_at_ns: u64,
    free_rest: u64,
}

impl Wire {
    pub fn new(bits_per_second: u64) -> Self {
        Wire {
            bits_per_second,
            ..Wire::default()
        }
    }

    fn measure(&mut self, line_bytes: u32) {
        // The longest frame is far from 64 bits here.
        let parts = 8 * u64::from(line_bytes) * NS_PER_SECOND;
        self.line_bytes = line_bytes;
        self.frame_ns = parts / self.bits_per_second;
        self.frame_rest = parts % self.bits_per_second;
    }

    /// Returns the time of one frame, rounded down to whole nanoseconds, at least 1.
    pub fn frame_ns(mut self, line_bytes: u32) -> u64 {
        self.measure(line_bytes);
        self.frame_ns.max(1)
    }

    /// Returns the share of the line's capacity that `line_bytes` take in `seconds`.
    pub fn share(&self, line_bytes: u64, seconds: f64) -> f64 {
        8.0 * line_bytes as f64 / self.bits_per_second as f64 / seconds
    }

    /// Puts a frame on the line as soon as it is free. Returns when it has passed.
    pub fn carry(&mut self, now_ns: u64, line_bytes: u32) -> u64 {
        if line_bytes != self.line_bytes {
            self.measure(line_bytes);
        }
        if self.free_at_ns < now_ns {
            self.free_at_ns = now_ns;
            self.free_rest = 0;
        }
        self.free_at_ns += self.frame_ns;
        self.free_rest += self.frame_rest;
        if self.free_rest >= self.bits_per_second {
            self.free_rest -= self.bits_per_second;
            self.free_at_ns += 1;
        }
        self.free_at_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_line_carries_its_rate_to_the_frame() {
        for (bits, rate) in [(10_000_000_000, 14_880_952), (100_000_000, 148_809)] {
            let mut wire = Wire::new(bits);
            let passed = (0..rate + 10).filter(|_| wire.carry(0, 84) <= 1_000_000_000);
            assert_eq!(passed.count(), rate);
        }
    }

    #[test]
    fn an_idle_line_starts_when_the_frame_comes() {
        let mut wire = Wire::new(1_000_000_000);
        assert_eq!(wire.carry(1000, 84), 1672);
        assert_eq!(wire.carry(1000, 84), 2344);
        assert_eq!(wire.carry(9000, 1538), 9000 + 12_304);
    }
}
