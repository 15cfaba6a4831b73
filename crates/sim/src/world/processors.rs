//! Maps the processors of each host to machines of the world.
//!
//! Each processor is a machine of its own, with its part of the host's cards (a queue's rings and its interrupt), its
//! clock and its programs. Processors of a host share the host's lines. A card puts each flow's packets into one
//! queue; a packet whose program is on another processor is handed over after the protocols. A host's machines are
//! adjacent, in the order of its processors.

use crate::link::Packet;
use crate::spec::simulation::Simulation;

/// The processors of a host.
#[derive(Clone, Copy, Debug)]
pub struct Processors {
    /// The machine of its first processor.
    pub first: usize,
    pub count: usize,
    /// Processors that serve a queue, from the first on.
    pub queues: usize,
    /// The processor of its program, from 0; `None` when each processor with a queue has one.
    program: Option<usize>,
}

impl Processors {
    /// Returns the processors of each host of a plan.
    pub fn all(plan: &Simulation) -> Vec<Self> {
        let mut first = 0;
        let of_stop = plan.stops.iter().map(|stop| {
            let host = stop.applied();
            // All are at most 16. A default host, not read from a file, has 0.
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

    /// Its range of machines.
    pub fn machines(self) -> std::ops::Range<usize> {
        self.first..self.first + self.count
    }

    /// Returns the machine that receives a packet from a line.
    pub fn takes(self, packet: &Packet) -> usize {
        // Flows are dealt out to the queues in turn, as the best of hashes would do.
        self.first + usize::from(packet.client) % self.queues
    }

    /// Returns the machine with the program that packets are handed over to.
    pub fn reads(self) -> usize {
        self.first + self.program.unwrap_or(0)
    }

    /// Whether a processor has a program that receives, or sends all the time.
    pub fn has_worker(self, cpu: usize) -> bool {
        self.program
            .map_or(cpu < self.queues, |program| program == cpu)
    }

    /// Whether a processor has the program that exists once per host.
    pub fn has_single(self, cpu: usize) -> bool {
        self.program.unwrap_or(0) == cpu
    }
}
