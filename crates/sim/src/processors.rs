//! Which machines of the world are the processors of which host.
//!
//! Each processor is a machine of its own: with its part of the host's cards (a queue's rings and its interrupt), its
//! clock and its programs. Those of one host share the host's lines. A card sends each flow's packets to one queue, and
//! a packet whose program is on another processor is handed over there, after the protocols.
//!
//! What must hold: a host's machines stand next to each other, in the order of its processors.

use crate::packet::Packet;
use crate::plan::Simulation;

/// The processors of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processors {
    /// The machine that is its first one.
    pub(crate) first: usize,
    pub(crate) count: usize,
    /// Those that serve a queue, from the first on.
    pub(crate) queues: usize,
    /// The one that its program is on, counted from 0; `None` when each with a queue has one.
    program: Option<usize>,
}

impl Processors {
    /// Those of each host of a plan.
    pub(crate) fn all(plan: &Simulation) -> Vec<Self> {
        let mut first = 0;
        let of_stop = plan.stops.iter().map(|stop| {
            let host = stop.applied();
            // All are 16 at most. A host that was never read has none.
            let of_host = Processors {
                first,
                count: host.cpu.cpus.max(1) as usize,
                queues: host.card.queues.max(1) as usize,
                program: (host.application.cpu as usize).checked_sub(1),
            };
            first += of_host.count;
            of_host
        });
        of_stop.collect()
    }

    /// The machines of it.
    pub(crate) fn machines(self) -> std::ops::Range<usize> {
        self.first..self.first + self.count
    }

    /// The machine that takes a packet from a line.
    pub(crate) fn takes(self, packet: &Packet) -> usize {
        // Flows are dealt out to the queues in turn, as the best of hashes would do.
        self.first + usize::from(packet.client) % self.queues
    }

    /// The machine whose program a packet is handed over for.
    pub(crate) fn reads(self) -> usize {
        self.first + self.program.unwrap_or(0)
    }

    /// Whether a processor has a program that takes packets in, or sends all the time.
    pub(crate) fn has_worker(self, cpu: usize) -> bool {
        self.program
            .map_or(cpu < self.queues, |program| program == cpu)
    }

    /// Whether a processor has the program of which a host has one only.
    pub(crate) fn has_single(self, cpu: usize) -> bool {
        self.program.unwrap_or(0) == cpu
    }
}
