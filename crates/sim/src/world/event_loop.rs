//! Machines joined by lines, under one virtual clock.
//!
//! The machine with the earliest event runs until another machine's event is due; at the same time the lower number
//! goes first. The running machine holds the state that all share. Events happen in the order of their times, so
//! machines and seed alone determine a run.

use std::collections::HashSet;
use std::mem;

use super::processors::Processors;
use crate::account::Shared;
use crate::machine::figures::Start;
use crate::machine::state::{OTHER_PROCESSOR, SimMachine};

#[derive(Debug)]
pub struct World {
    pub machines: Vec<SimMachine>,
    /// By host.
    pub processors: Vec<Processors>,
    /// Time of each machine's next event.
    next_ns: Vec<u64>,
    pub shared: Box<Shared>,
}

impl World {
    pub fn new(machines: Vec<SimMachine>, processors: Vec<Processors>, shared: Shared) -> Self {
        let mut world = World {
            next_ns: vec![0; machines.len()],
            machines,
            processors,
            shared: Box::new(shared),
        };
        for number in 0..world.machines.len() {
            world.let_run(number, |machine| machine.boot());
        }
        world
    }

    /// Lends a machine the shared state, and does `work` on it.
    fn let_run(&mut self, number: usize, work: impl FnOnce(&mut SimMachine)) {
        let machine = &mut self.machines[number];
        mem::swap(&mut machine.shared, &mut self.shared);
        work(machine);
        mem::swap(&mut machine.shared, &mut self.shared);
        self.next_ns[number] = machine.next_event_ns();
    }

    /// Runs the world until `edge_ns`. Events at `edge_ns` itself are left for later.
    pub fn run_until(&mut self, edge_ns: u64) {
        while let Some((number, end_ns)) = self.next_turn(edge_ns) {
            self.let_run(number, |machine| machine.run_before(end_ns));
            self.hand_over(number);
        }
        for machine in &mut self.machines {
            machine.advance_to(edge_ns);
        }
    }

    /// Returns which machine runs next, and until when; `None` when no event is left before the edge.
    fn next_turn(&self, edge_ns: u64) -> Option<(usize, u64)> {
        let by_time = |number: &usize| (self.next_ns[*number], *number);
        let first = (0..self.machines.len()).min_by_key(by_time)?;
        if self.next_ns[first] >= edge_ns {
            return None;
        }
        let others = (0..self.machines.len()).filter(|number| *number != first);
        let limit = |number: usize| self.next_ns[number].saturating_add(u64::from(first < number));
        let end_ns = others.map(limit).min().unwrap_or(u64::MAX);
        Some((first, end_ns.min(edge_ns)))
    }

    /// Delivers what a machine has put out: a frame starts on its way to another host; a packet for a program on
    /// another processor arrives at once.
    fn hand_over(&mut self, number: usize) {
        let from = &mut self.machines[number];
        let left_ns = from.now_ns;
        let Some((card, packet)) = from.outbox.take() else {
            return;
        };
        if card == OTHER_PROCESSOR {
            let reader = self.processors[from.number].reads();
            self.let_run(reader, |machine| {
                machine.advance_to(left_ns);
                machine.put_into_socket(packet);
            });
        } else if let Some(port) = from.cards[card].attachment.peer {
            let peer = self.processors[port.host].takes(&packet);
            self.machines[peer].expect(port.card, packet, left_ns);
            self.next_ns[peer] = self.machines[peer].next_event_ns();
        }
    }

    /// Returns the machines of a host's processors.
    pub fn of_host(&self, host: usize) -> &[SimMachine] {
        &self.machines[self.processors[host].machines()]
    }

    /// Starts counting, after the warm-up.
    pub fn begin_counting(&mut self) -> Counting {
        self.shared.begin_counting();
        Counting {
            in_flight: self.in_flight(),
            starts: self
                .machines
                .iter_mut()
                .map(SimMachine::begin_counting)
                .collect(),
        }
    }

    /// Returns the number of datagrams under way.
    pub fn in_flight(&self) -> u64 {
        let mut whole = self.machines.iter().map(SimMachine::owed).sum::<u64>();
        let mut cut = HashSet::new();
        for packet in self.machines.iter().flat_map(SimMachine::each_packet) {
            match packet.fate() {
                None => whole += 1,
                Some(fate) if self.shared.fates.is_lost(fate) => {}
                Some(fate) => {
                    cut.insert(fate);
                }
            }
        }
        whole + cut.len() as u64
    }
}

/// The state when the counted time began.
#[derive(Clone, Debug)]
pub struct Counting {
    pub in_flight: u64,
    /// By machine.
    pub starts: Vec<Start>,
}
