//! A card and the queues of the protocols: rings, what comes from the far end, what waits for IP, what waits to be sent.

use std::collections::{BTreeMap, VecDeque};

use super::cpu::{BY_NUMBER, LEVELS, Level};
use crate::link::{Packet, PacketKind, Queue, Shape};
use crate::source::Clients;
use crate::spec::host::HostModel;

/// What a card is attached to.
#[derive(Clone, Debug, Default)]
pub struct Attachment {
    /// The outgoing line, as an index of the world's.
    pub wire: usize,
    /// The line's delay.
    pub delay_ns: u64,
    /// The far end, when it is not a simulated machine.
    pub far: Option<FarEnd>,
    /// The other end, when it is one.
    pub peer: Option<Port>,
}

/// The end of a line at a simulated host.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    pub host: usize,
    pub card: usize,
}

/// The other end of a line, where ideal hosts are.
#[derive(Clone, Debug)]
pub struct FarEnd {
    /// Who sends; `None` when nobody does.
    pub clients: Option<Clients>,
    /// What they send.
    pub flow: usize,
    /// The frame of each payload, where packets differ.
    pub frames: BTreeMap<u32, Shape>,
    /// The line from it, as an index of the world's.
    pub wire: usize,
    /// What waits for the line; the first packet is on it.
    pub queue: Queue,
}

/// A card: its rings, and when it interrupts.
///
/// An interrupt masks the card until its handler unmasks it; a card that then still has news interrupts at once, or when
/// its moderation is over.
#[derive(Clone, Debug, Default)]
pub struct Card {
    pub attachment: Attachment,
    /// Frames on their way to it, with the time of their arrival.
    pub inbound: VecDeque<(u64, Packet)>,
    pub rx_ring: Queue,
    /// Packets whose frames have not left; the first one is on the line.
    pub tx_ring: Queue,
    /// Descriptors whose frames have left and that the driver has not cleared.
    pub tx_done: u64,
    /// When the card can send the next frame.
    pub tx_ready_ns: u64,
    /// Packets that wait for the transmit ring (`if_snd`).
    pub send_queue: Queue,
    /// Whether it may interrupt.
    pub has_interrupts: bool,
    /// Whether something has happened since the last interrupt.
    pub has_cause: bool,
    /// Whether such a cause alone makes it interrupt, after what happened has been handled.
    keeps_cause: bool,
    /// Whether an interrupt is on its way to the processor.
    pub is_raised: bool,
    /// The earliest moment of the next interrupt.
    pub quiet_until_ns: u64,
}

impl Card {
    pub fn new(host: &HostModel, attachment: Attachment) -> Self {
        Card {
            attachment,
            rx_ring: Queue::new(host.card.rx_ring),
            tx_ring: Queue::new(host.card.tx_ring),
            send_queue: Queue::new(host.network.send_queue_packets),
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

    /// Whether this many packets more fit into ring and send queue.
    pub fn has_room_for(&self, packets: u64) -> bool {
        let used = self.tx_ring.len() + self.tx_done;
        let ring = self.tx_ring.limit.saturating_sub(used);
        ring + self.send_queue.limit - self.send_queue.len() >= packets
    }

    /// Whether a packet can go to the ring past the send queue.
    pub fn can_transmit_at_once(&self) -> bool {
        self.send_queue.is_empty() && self.has_tx_room()
    }

    /// Who sends to it from an ideal far end.
    pub fn clients(&mut self) -> Option<&mut Clients> {
        self.attachment.far.as_mut()?.clients.as_mut()
    }

    /// What waits for its line at an ideal far end.
    pub fn far_queue(&self) -> Option<&Queue> {
        self.attachment.far.as_ref().map(|far| &far.queue)
    }

    pub fn queues(&self) -> [&Queue; 3] {
        [&self.rx_ring, &self.send_queue, &self.tx_ring]
    }

    pub fn begin_counting(&mut self) {
        let far = self.attachment.far.as_mut().map(|far| &mut far.queue);
        let own = [&mut self.rx_ring, &mut self.send_queue, &mut self.tx_ring];
        own.into_iter().chain(far).for_each(Queue::begin_counting);
    }

    /// Packets that have not reached it yet.
    pub fn coming(&self) -> impl Iterator<Item = &Packet> {
        let far = self.far_queue().into_iter().flat_map(Queue::iter);
        far.chain(self.inbound.iter().map(|(_, packet)| packet))
    }
}

/// The datagram of a flow that is being reassembled. Lines keep the order of frames, so the first fragment of another
/// datagram ends the wait for what is missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hold {
    pub number: u64,
    /// How many of its fragments are here.
    pub fragments: u64,
}

/// Where packets wait on their way through the protocols.
#[derive(Clone, Debug)]
pub struct Input {
    /// Whether drivers put packets into the IP queue instead of passing them on.
    pub is_queued: bool,
    pub ip_queue: Queue,
    /// Datagrams that are being reassembled, by flow.
    pub holds: Vec<Hold>,
    pub gro: Gro,
}

impl Input {
    pub fn new(has_queue: bool, host: &HostModel, flows: usize) -> Self {
        let network = &host.network;
        Input {
            is_queued: has_queue && network.ip_queue_packets > 0,
            ip_queue: Queue::new(network.ip_queue_packets),
            holds: vec![Hold::default(); flows],
            gro: Gro {
                flows: vec![Merged::default(); if network.gro > 0 { flows } else { 0 }],
                owes_answer: false,
            },
        }
    }

    /// Packets that wait for the rest of their datagram.
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
/// instead of its way through IP and beyond, and TCP answers once for all of them.
#[derive(Clone, Debug, Default)]
pub struct Gro {
    /// By flow; empty when GRO is off.
    flows: Vec<Merged>,
    /// Whether TCP has not answered what was merged.
    pub owes_answer: bool,
}

/// The segments of a flow that the poll in progress has merged.
#[derive(Clone, Copy, Debug, Default)]
struct Merged {
    /// Number of the byte after them.
    next: u64,
    /// How many they are; 0 for none.
    bytes: u64,
}

impl Gro {
    /// Whether a packet continues where the last one of its flow ended.
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

    /// A packet has been taken from the ring. Returns whether it is merged into the one before it.
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

    /// The poll ends. Returns whether TCP has to answer.
    pub fn end_poll(&mut self) -> bool {
        self.flows.fill(Merged::default());
        std::mem::take(&mut self.owes_answer)
    }
}

/// What each level is to send.
#[derive(Clone, Debug, Default)]
pub struct Output([Outgoing; LEVELS]);

#[derive(Clone, Debug, Default)]
pub struct Outgoing {
    /// With the work of making each.
    pub waiting: VecDeque<(Packet, u64)>,
    /// The one that the driver has.
    pub in_hand: Option<Packet>,
}

impl Outgoing {
    fn iter(&self) -> impl Iterator<Item = &Packet> {
        let waiting = self.waiting.iter().map(|(packet, _)| packet);
        waiting.chain(self.in_hand.iter())
    }
}

impl Output {
    pub fn of(&mut self, level: Level) -> &mut Outgoing {
        &mut self.0[level as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.0.iter().flat_map(Outgoing::iter)
    }

    /// The first level that has packets of a flow to send.
    pub fn level_of(&self, flow: usize) -> Option<Level> {
        let has = |of: &Outgoing| of.iter().any(|packet| usize::from(packet.flow) == flow);
        Some(BY_NUMBER[self.0.iter().position(has)?])
    }
}
