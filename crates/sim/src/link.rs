//! What travels between machines: packets, the flows they belong to, the queues they wait in, and the wires that carry
//! them.
//!
//! Guarantees: a queue never holds more than its limit, and its caller counts what does not fit as lost there and
//! nowhere else. A wire loses no fraction of a nanosecond, so a full line carries exactly its rate.

use std::collections::VecDeque;

use nicpoll_model::line::IpVersion;

use crate::tcp::{Ack, Segment};

const NS_PER_SECOND: u64 = 1_000_000_000;

/// A packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When its sender handed it over.
    pub sent_ns: u64,
    /// When its last bit reached the card of the machine that it is at; as `sent_ns` before that.
    pub arrived_ns: u64,
    /// Which one of its flow, from 0. Fragments have the number of their datagram.
    pub number: u64,
    /// Its frame with preamble and gap.
    pub line_bytes: u32,
    /// What of its program's bytes it carries.
    pub payload_bytes: u32,
    /// The flow: one direction between two programs.
    pub flow: u8,
    /// Which of the clients sent it, or is to get it.
    pub client: u16,
    /// The machine that it is for; [`FAR`] for an ideal far end.
    pub to: u8,
    pub ip: IpVersion,
    pub kind: PacketKind,
}

impl Packet {
    /// What its datagram's fragments have in common; `None` for a whole one.
    pub fn fate(&self) -> Option<u32> {
        match self.kind {
            PacketKind::Datagram | PacketKind::Segment(_) | PacketKind::Ack(_) => None,
            PacketKind::Fragment { fate, .. } => Some(fate),
        }
    }
}

/// The far end of a line, where no simulated machine stands.
pub const FAR: u8 = u8::MAX;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// A whole UDP datagram.
    Datagram,
    /// A part of one.
    Fragment {
        /// Into how many it was cut.
        of: u16,
        /// What has become of the datagram; see `account::Fates`.
        fate: u32,
    },
    /// Data of a TCP connection.
    Segment(Segment),
    /// An acknowledgement of TCP, without data.
    Ack(Ack),
}

/// The frames that a flow's datagrams become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub line_bytes: u32,
    pub payload_bytes: u32,
}

/// A flow: one direction between two programs.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Which of the world's.
    pub number: u8,
    /// What it carries.
    pub name: &'static str,
    /// The host that it comes from, [`FAR`] for an ideal far end.
    pub from: u8,
    /// The host that it goes to, [`FAR`] for an ideal far end.
    pub to: u8,
    /// The card that leads there, on the machine that has this copy.
    pub card: usize,
    pub ip: IpVersion,
    /// Payload of a datagram, or of the longest segment.
    pub payload_bytes: u32,
    /// The frames that a datagram becomes.
    pub shapes: Vec<Shape>,
    pub counts: Counts,
    /// Ports that datagrams are sent from in turn: by them cards spread packets over their queues.
    pub senders: u16,
}

/// When a datagram counts as delivered, and what of its time does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// When it has arrived, and all of it.
    FromCall,
    /// When it has arrived, and what follows its last bit's reaching the receiver's card: the way from an ideal
    /// far end is nobody's work.
    FromCard,
    /// A request when its reply is back at its client, and all of it. The reply itself does not count.
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

    /// The packet of one of a datagram's frames.
    pub fn packet(&self, index: usize, number: u64, fate: u32, now_ns: u64) -> Packet {
        let kind = match self.shapes.len() as u16 {
            1 => PacketKind::Datagram,
            of => PacketKind::Fragment { of, fate },
        };
        self.packet_of(kind, self.shapes[index], number, now_ns)
    }

    /// A packet with this frame.
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

/// First in, first out.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    packets: VecDeque<Packet>,
    pub limit: u64,
    /// The most that it held.
    pub most: u64,
}

impl Queue {
    pub fn new(limit: u64) -> Self {
        Queue {
            limit,
            ..Queue::default()
        }
    }

    pub fn len(&self) -> u64 {
        self.packets.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Appends a packet. False when the queue is full.
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

    /// The next to be popped.
    pub fn front(&self) -> Option<&Packet> {
        self.packets.front()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter()
    }

    /// Forgets what it held before now.
    pub fn begin_counting(&mut self) {
        self.most = self.len();
    }
}

/// A line one way; both ways if it is half duplex.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wire {
    bits_per_second: u64,
    /// Frames of this length, with preamble and gap, were carried last.
    line_bytes: u32,
    /// Whole nanoseconds of such a frame.
    frame_ns: u64,
    /// What is left over, in parts of `bits_per_second` of a nanosecond.
    frame_rest: u64,
    /// When the last frame has passed.
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
        // The longest frame and the fastest line are far from what 64 bits hold.
        let parts = 8 * u64::from(line_bytes) * NS_PER_SECOND;
        self.line_bytes = line_bytes;
        self.frame_ns = parts / self.bits_per_second;
        self.frame_rest = parts % self.bits_per_second;
    }

    /// Time of one frame, cut to whole nanoseconds, at least one.
    pub fn frame_ns(mut self, line_bytes: u32) -> u64 {
        self.measure(line_bytes);
        self.frame_ns.max(1)
    }

    /// What share of the line so many bytes are in a time.
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
