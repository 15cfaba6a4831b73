//! Making a machine, from its host, its place in the world and what its programs do.

use std::collections::BTreeMap;

use super::card::Card;
use super::clock::Clock;
use super::input::Input;
use super::link::Ethernet;
use super::program::{Program, Programs};
use super::sampling::Sampling;
use super::veth::Veth;
use super::{Discipline, End, Flow, Link, Machine, Node, Of, Output, Task, Timers};
use crate::clients::Clients;
use crate::cpu::Cpu;
use crate::host::HostModel;
use crate::packet::Shape;
use crate::plan::packet_bytes;
use crate::queue::Queue;
use crate::tally::Tally;

/// What a machine is made of.
#[derive(Debug)]
pub(crate) struct Setup {
    /// Which host's of the world.
    pub(crate) number: usize,
    /// With the discipline's own numbers.
    pub(crate) host: HostModel,
    /// One for each card.
    pub(crate) attachments: Vec<Attachment>,
    /// Every flow of the world, with this machine's card for it.
    pub(crate) flows: Vec<Flow>,
    pub(crate) tasks: Vec<Task>,
    /// Its ends of TCP connections.
    pub(crate) ends: Vec<End>,
    /// How much later than that of a clock that starts with the run its first tick comes.
    pub(crate) tick_phase_ns: u64,
}

/// What a card is attached to.
#[derive(Clone, Debug)]
pub(crate) struct Attachment {
    /// The line out, of the world's.
    pub(crate) wire: usize,
    /// The line's delay.
    pub(crate) delay_ns: u64,
    /// The far end, when it is no simulated machine.
    pub(crate) far: Option<FarEnd>,
}

/// The other end of a line, where ideal hosts are.
#[derive(Clone, Debug)]
pub(crate) struct FarEnd {
    /// Who sends; `None` when nobody does.
    pub(crate) clients: Option<Clients>,
    /// What they send.
    pub(crate) flow: usize,
    /// The frame of each payload, where packets differ.
    pub(crate) frames: BTreeMap<u32, Shape>,
    /// The line from it, of the world's.
    pub(crate) wire: usize,
    /// What waits for the line; the first packet is on it.
    pub(crate) queue: Queue,
}

/// A machine under a discipline, joined to others as its host says.
pub(crate) fn machine<D: Discipline + 'static>(setup: Setup, discipline: D) -> Box<dyn Node> {
    if setup.host.joint().is_polled_by_sender {
        Box::new(Machine::<D, Veth>::new(setup, discipline))
    } else {
        Box::new(Machine::<D, Ethernet>::new(setup, discipline))
    }
}

impl<D: Discipline, L: Link> Machine<D, L> {
    pub(super) fn new(setup: Setup, discipline: D) -> Self {
        let host = setup.host;
        let cards = setup.attachments.len();
        let socket = |task: &Task| {
            // What a program reads is as long as what it sends.
            let payload_bytes = setup.flows[task.flow()].payload_bytes;
            host.socket.buffer_bytes / packet_bytes(&host, payload_bytes)
        };
        let programs = setup.tasks.into_iter().map(|task| {
            let packets = socket(&task);
            let card = setup.flows[task.flow()].card;
            Program::new(task, packets, card)
        });
        Machine {
            number: setup.number,
            now_ns: 0,
            timers: Timers::new(cards),
            clock: Clock::new(&host, setup.tick_phase_ns),
            sampling: Sampling::new(host.cpu.stat_hz),
            cpu: Cpu::new(&host.cpu, D::HAS_SOFT_THREAD),
            programs: Programs::new(programs.collect()),
            input: Input::new(D::HAS_SOFT_THREAD, &host.network, setup.flows.len()),
            output: Output::default(),
            flows: setup.flows,
            ends: setup.ends,
            discipline,
            link: L::default(),
            tally: Tally::new(cards),
            outbox: None,
            shared: Box::default(),
            cards: setup
                .attachments
                .into_iter()
                .map(|attachment| Card::new(&host, attachment))
                .collect(),
            host,
        }
    }

    /// Starts the clock, the cards and the programs.
    pub(super) fn start(&mut self) {
        self.timers.set_tick(self.clock.next_ns());
        self.timers.set_sample(self.sampling.next_ns());
        let has_interrupts = self.discipline.uses_interrupts();
        for (number, card) in self.cards.iter_mut().enumerate() {
            if let Some(first_ns) = card.boot(has_interrupts) {
                self.timers.set(number, Of::Offer, first_ns);
            }
        }
        D::on_boot(self);
        self.start_programs();
    }
}
