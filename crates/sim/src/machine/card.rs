//! A card and the queues of the protocols: rings, packets from the far end, packets that wait for IP or to be sent.

use std::collections::{BTreeMap, VecDeque};

use super::cpu::{BY_NUMBER, LEVELS, Level};
use crate::link::{BoundedQueue, Packet, PacketKind, Shape};
use crate::source::Clients;
use crate::spec::host::HostModel;

/// The line of a card, and its other end.
#[derive(Clone, Debug, Default)]
pub struct Attachment {
    /// The outgoing wire, as an index of the world's.
    pub wire: usize,
    /// The line's delay.
    pub delay_ns: u64,
    /// The far end, if it is ideal.
    pub far: Option<FarEnd>,
    /// The other end, if it is a simulated host.
    pub peer: Option<LinePort>,
}

/// The end of a line at a simulated host.
#[derive(Clone, Copy, Debug)]
pub struct LinePort {
    pub host: usize,
    pub card: usize,
}

/// The far end of a line, with ideal hosts.
#[derive(Clone, Debug)]
pub struct FarEnd {
    /// The senders; `None` when nobody sends.
    pub clients: Option<Clients>,
    /// The flow that they send.
    pub flow: usize,
    /// The frame of each payload, if packets differ.
    pub frames: BTreeMap<u32, Shape>,
    /// The wire from it, as an index of the world's.
    pub wire: usize,
    /// Packets that wait for the line; the first one is on it.
    pub queue: BoundedQueue,
}

/// A card: its rings, and when it interrupts.
///
/// An interrupt masks the card until its handler unmasks it; a card that then still has work for the driver
/// interrupts at once, or when its moderation is over.
#[derive(Clone, Debug, Default)]
pub struct Card {
    pub attachment: Attachment,
    /// Frames on their way to it, with their arrival times.
    pub inbound: VecDeque<(u64, Packet)>,
    pub rx_ring: BoundedQueue,
    /// Packets whose frames have not left; the first one is on the line.
    pub tx_ring: BoundedQueue,
    /// Descriptors of sent frames that the driver has not cleared.
    pub tx_done: u64,
    /// When the card can send the next frame.
    pub tx_ready_ns: u64,
    /// Packets that wait for the transmit ring (`if_snd`).
    pub send_queue: BoundedQueue,
    /// Whether it may interrupt.
    pub has_interrupts: bool,
    /// Whether an event has come since the last interrupt.
    pub has_cause: bool,
    /// Whether such an event alone makes it interrupt, even after it has been handled.
    keeps_cause: bool,
    /// Whether an interrupt is on its way to the processor.
    pub is_raised: bool,
    /// Earliest time of the next interrupt.
    pub quiet_until_ns: u64,
}

impl Card {
    pub fn new(host: &HostModel, attachment: Attachment) -> Self {
        Card {
            attachment,
            rx_ring: BoundedQueue::new(host.card.rx_ring),
            tx_ring: BoundedQueue::new(host.card.tx_ring),
            send_queue: BoundedQueue::new(host.network.send_queue_packets),
            has_interrupts: true,
            keeps_cause: host.card.hands_over > 0,
            ..Card::default()
        }
    }

    pub fn has_news(&self) -> bool {
        !self.rx_ring.is_empty() || self.tx_done > 0 || (self.has_cause && self.keeps_cause)
    }

    pub fn has_tx_room(&self) -> bool {
        self.tx_ring.len() + self.tx_done < self.tx_ring.limit
    }

    /// Whether so many more packets fit into ring and send queue.
    pub fn has_room_for(&self, packets: u64) -> bool {
        let used = self.tx_ring.len() + self.tx_done;
        let ring = self.tx_ring.limit.saturating_sub(used);
        ring + self.send_queue.limit - self.send_queue.len() >= packets
    }

    /// Whether a packet can go to the ring without waiting in the send queue.
    pub fn can_transmit_at_once(&self) -> bool {
        self.send_queue.is_empty() && self.has_tx_room()
    }

    /// Returns the senders at an ideal far end.
    pub fn clients(&mut self) -> Option<&mut Clients> {
        self.attachment.far.as_mut()?.clients.as_mut()
    }

    /// Returns the queue for its line at an ideal far end.
    pub fn far_queue(&self) -> Option<&BoundedQueue> {
        self.attachment.far.as_ref().map(|far| &far.queue)
    }

    pub fn queues(&self) -> [&BoundedQueue; 3] {
        [&self.rx_ring, &self.send_queue, &self.tx_ring]
    }

    pub fn begin_counting(&mut self) {
        let far = self.attachment.far.as_mut().map(|far| &mut far.queue);
        let own = [&mut self.rx_ring, &mut self.send_queue, &mut self.tx_ring];
        own.into_iter()
            .chain(far)
            .for_each(BoundedQueue::begin_counting);
    }

    /// Returns the packets that have not reached it yet.
    pub fn coming(&self) -> impl Iterator<Item = &Packet> {
        let far = self.far_queue().into_iter().flat_map(BoundedQueue::iter);
        far.chain(self.inbound.iter().map(|(_, packet)| packet))
    }
}

/// A flow's datagram in reassembly. Lines keep the order of frames, so the first fragment of another datagram ends
/// the wait for the missing ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hold {
    pub number: u64,
    /// Fragments that have arrived.
    pub fragments: u64,
}

/// Where packets wait on their way through the protocols.
#[derive(Clone, Debug)]
pub struct Input {
    /// Whether drivers put packets into the IP queue instead of passing them on.
    pub is_queued: bool,
    pub ip_queue: BoundedQueue,
    /// Datagrams in reassembly, by flow.
    pub holds: Vec<Hold>,
    pub gro: Gro,
}

impl Input {
    pub fn new(has_queue: bool, host: &HostModel, flows: usize) -> Self {
        let network = &host.network;
        Input {
            is_queued: has_queue && network.ip_queue_packets > 0,
            ip_queue: BoundedQueue::new(network.ip_queue_packets),
            holds: vec![Hold::default(); flows],
            gro: Gro {
                flows: vec![Merged::default(); if network.gro > 0 { flows } else { 0 }],
                owes_answer: false,
            },
        }
    }

    /// Returns the packets that wait for the rest of their datagram.
    pub fn held(&self) -> u64 {
        self.holds.iter().map(|hold| hold.fragments).sum()
    }
}

/// The longest packet that GRO makes (`GRO_LEGACY_MAX_SIZE`).
const MERGED_BYTES_MAX: u64 = 65_536;

/// Generic receive offload: consecutive segments of a TCP stream that one poll finds go up as one packet
/// (`dev_gro_receive`, net/core/gro.c). Nothing is merged across polls.
///
/// Segments remain packets of their own here, so each is counted where it ends. A merged one costs `network.gro_ns`
/// instead of IP and the layers above, and TCP acknowledges all of them at once.
#[derive(Clone, Debug, Default)]
pub struct Gro {
    /// By flow; empty when GRO is off.
    flows: Vec<Merged>,
    /// Whether TCP still has to acknowledge merged segments.
    pub owes_answer: bool,
}

/// The segments of a flow that the current poll has merged.
#[derive(Clone, Copy, Debug, Default)]
struct Merged {
    /// Number of the byte after them.
    next: u64,
    /// Their bytes; 0 for none.
    bytes: u64,
}

impl Gro {
    /// Whether a segment continues where the last one of its flow ended.
    pub fn continues(&self, packet: &Packet) -> bool {
        let PacketKind::Segment(segment) = packet.kind else {
            return false;
        };
        let merged = self.flows.get(usize::from(packet.flow));
        merged.is_some_and(|merged| {
            let bytes = merged.bytes + segment.bytes;
            merged.bytes > 0 && merged.next == segment.seq && bytes <= MERGED_BYTES_MAX
        })
    }

    /// Takes a packet from the ring. Returns whether it is merged into the previous one.
    pub fn take(&mut self, packet: &Packet) -> bool {
        let continues = self.continues(packet);
        if let PacketKind::Segment(segment) = packet.kind
            && let Some(merged) = self.flows.get_mut(usize::from(packet.flow))
        {
            let before = if continues { merged.bytes } else { 0 };
            *merged = Merged {
                next: segment.end(),
                bytes: before + segment.bytes,
            };
        }
        continues
    }

    /// Ends the poll. Returns whether TCP has to acknowledge.
    pub fn end_poll(&mut self) -> bool {
        self.flows.fill(Merged::default());
        std::mem::take(&mut self.owes_answer)
    }
}

/// The packets that each level has to send.
#[derive(Clone, Debug, Default)]
pub struct LevelOutput([OutgoingPackets; LEVELS]);

#[derive(Clone, Debug, Default)]
pub struct OutgoingPackets {
    /// Packets, each with the time to make it.
    pub waiting: VecDeque<(Packet, u64)>,
    /// The packet that the driver has.
    pub in_hand: Option<Packet>,
}

impl OutgoingPackets {
    fn iter(&self) -> impl Iterator<Item = &Packet> {
        let waiting = self.waiting.iter().map(|(packet, _)| packet);
        waiting.chain(self.in_hand.iter())
    }
}

impl LevelOutput {
    pub fn of(&mut self, level: Level) -> &mut OutgoingPackets {
        &mut self.0[level as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.0.iter().flat_map(OutgoingPackets::iter)
    }

    /// Returns the first level that has packets of a flow to send.
    pub fn level_of(&self, flow: usize) -> Option<Level> {
        let has = |of: &OutgoingPackets| of.iter().any(|packet| usize::from(packet.flow) == flow);
        Some(BY_NUMBER[self.0.iter().position(has)?])
    }
}
