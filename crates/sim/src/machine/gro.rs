//! Generic receive offload: what one poll finds of a TCP stream, in order, goes up as one packet
//! (`dev_gro_receive`, net/core/gro.c).
//!
//! Segments stay packets of their own here, so that each is counted where it ends. One that is merged takes
//! `network.gro_ns` in place of its way through IP and beyond, and TCP answers once for all of them.
//!
//! What must hold: nothing is merged across polls.

use super::{Discipline, Link, Machine};
use crate::cpu::Level;
use crate::packet::{Packet, PacketKind};

/// The longest packet (`GRO_LEGACY_MAX_SIZE`).
const BYTES_MAX: u64 = 65_536;

/// What the poll in progress has merged of each flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Gro {
    /// By flow; empty where nothing is merged.
    flows: Vec<Merged>,
    /// Whether TCP has not answered what was merged.
    owes_answer: bool,
}

/// The segments of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Merged {
    /// Number of the byte after them.
    next: u64,
    /// How many they are; 0 for none.
    bytes: u64,
}

impl Gro {
    pub(super) fn new(is_on: bool, flows: usize) -> Self {
        Gro {
            flows: vec![Merged::default(); if is_on { flows } else { 0 }],
            owes_answer: false,
        }
    }

    /// Whether a packet goes on where the last one of its flow ended.
    pub(super) fn continues(&self, packet: &Packet) -> bool {
        let PacketKind::Segment(segment) = packet.kind else {
            return false;
        };
        let merged = self.flows.get(usize::from(packet.flow));
        merged.is_some_and(|merged| {
            let bytes = merged.bytes + segment.bytes;
            merged.bytes > 0 && merged.next == segment.seq && bytes <= BYTES_MAX
        })
    }

    /// A packet has been taken from the ring. Whether it is merged into the one before it.
    pub(super) fn take(&mut self, packet: &Packet) -> bool {
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

    /// TCP has to answer when the poll ends.
    pub(super) fn answer_later(&mut self) {
        self.owes_answer = true;
    }

    /// The poll ends. Whether TCP has to answer.
    fn end_poll(&mut self) -> bool {
        self.flows.fill(Merged::default());
        std::mem::take(&mut self.owes_answer)
    }
}

impl<D: Discipline, L: Link> Machine<D, L> {
    /// What was merged goes up at the end of a poll; the answers to it are made now.
    pub(super) fn end_merging(&mut self, level: Level) {
        if self.input.gro.end_poll() {
            for end in 0..self.ends.len() {
                self.tcp_output(level, end);
            }
        }
    }
}
