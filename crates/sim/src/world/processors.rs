//! Which machines of the world are the processors of which host.
//!
//! Each processor is a machine of its own, with its part of the host's cards (a queue's rings and its interrupt), its
//! clock and its programs. Processors of a host share the host's lines. A card sends each flow's packets to one queue; a
//! packet whose program is on another processor is handed over there, after the protocols. A host's machines are
//! adjacent, in the order of its processors.

use crate::link::Packet;
use crate::spec::simulation::Simulation;

/// The processors of a host.
#[derive(Clone, Copy, Debug)]
pub struct Processors {
    /// The machine that is its first one.
    pub first: usize,
    pub count: usize,
    /// Those that serve a queue, from the first on.
    pub queues: usize,
    /// The one that its program is on, counted from 0; `None` when each with a queue has one.
    program: Option<usize>,
}

impl Processors {
    /// Those of each host of a plan.
    pub fn all(plan: &Simulation) -> Vec<Self> {
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
    pub fn machines(self) -> std::ops::Range<usize> {
        self.first..self.first + self.count
    }

    /// The machine that takes a packet from a line.
    pub fn takes(self, packet: &Packet) -> usize {
        // Flows are dealt out to the queues in turn, as the best of hashes would do.
        self.first + usize::from(packet.client) % self.queues
    }

    /// The machine whose program a packet is handed over for.
    pub fn reads(self) -> usize {
        self.first + self.program.unwrap_or(0)
    }

    /// Whether a processor has a program that takes packets in, or sends all the time.
    pub fn has_worker(self, cpu: usize) -> bool {
        self.program
            .map_or(cpu < self.queues, |program| program == cpu)
    }

    /// Whether a processor has the program that a host has only once.
    pub fn has_single(self, cpu: usize) -> bool {
        self.program.unwrap_or(0) == cpu
    }
}
