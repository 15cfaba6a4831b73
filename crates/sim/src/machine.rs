//! A simulated machine: its clock, its events, and who does what when.
//!
//! Virtual time goes from one moment to the next at which something can change: a step of the processor
//! ends, or a timer is due. At the same moment the step's end comes first, then the timers in their order.
//!
//! What must hold: a packet is in exactly one queue, or its end is counted. The state follows from host,
//! plan and seed alone.

mod busy;
mod card;
mod clock;
#[cfg(test)]
mod conformance;
mod discipline;
mod figures;
mod flow;
mod freebsd;
mod gro;
mod hard;
mod input;
mod interrupt_thread;
mod link;
mod napi;
mod netisr;
mod node;
mod output;
mod program;
mod sampling;
mod setup;
mod stream;
mod task;
mod tcp;
mod timers;
mod veth;

use nicpoll_model::LossPlace;

use crate::cpu::{Cpu, Level, Step};
use crate::host::HostModel;
use crate::packet::Packet;
use crate::queue::Queue;
use crate::shared::Shared;
use crate::tally::Tally;
use card::Card;
use clock::Clock;
pub(crate) use discipline::{Discipline, Timer};
pub(crate) use figures::{Start, ratio};
pub(crate) use flow::{Counts, Flow};
pub(crate) use freebsd::Freebsd;
pub(crate) use hard::CARDS_MAX;
use input::Input;
pub(crate) use link::{Link, OTHER_PROCESSOR};
pub(crate) use napi::Napi;
pub(crate) use node::Node;
use output::Output;
use program::Programs;
use sampling::Sampling;
pub(crate) use setup::{Attachment, FarEnd, Setup, machine};
pub(crate) use stream::Stream;
pub(crate) use task::{Pacer, Task};
pub(crate) use tcp::{End, Half};
use timers::{Due, Of, Timers};

const NS_PER_SECOND: u64 = 1_000_000_000;

/// A machine is its parts, each of which owns its state; what goes on between them is in the files of this folder.
#[derive(Debug)]
pub(crate) struct Machine<D, L> {
    /// Which host's of the world it is, as one of its processors.
    number: usize,
    host: HostModel,
    now_ns: u64,
    timers: Timers,
    clock: Clock,
    sampling: Sampling,
    cpu: Cpu,
    cards: Vec<Card>,
    input: Input,
    output: Output,
    /// Every flow of the world.
    flows: Vec<Flow>,
    programs: Programs,
    /// Its ends of TCP connections.
    ends: Vec<End>,
    /// How it learns of packets.
    discipline: D,
    /// What its cards are joined to others by.
    link: L,
    tally: Tally,
    /// A frame that has left for another machine's card, with the card that it left; or a packet for a program of
    /// another processor.
    outbox: Option<(usize, Packet)>,
    /// The world's, while this machine runs.
    shared: Box<Shared>,
}

impl<D: Discipline, L: Link> Machine<D, L> {
    /// When the next thing happens that this machine knows of.
    fn next_event_ns(&mut self) -> u64 {
        let due_ns = self.timers.first_ns();
        match self.cpu.dispatch() {
            Some((_, remaining_ns)) => due_ns.min(self.now_ns.saturating_add(remaining_ns)),
            None => due_ns,
        }
    }

    /// Lets everything happen that is due before `end_ns`, up to a packet's leaving for another machine.
    fn run_before(&mut self, end_ns: u64) {
        loop {
            let running = self.cpu.dispatch();
            let (due_ns, due) = self.timers.first();
            match running {
                Some((level, remaining_ns))
                    if self.now_ns.saturating_add(remaining_ns) <= due_ns =>
                {
                    let done_ns = self.now_ns.saturating_add(remaining_ns);
                    if done_ns >= end_ns {
                        return;
                    }
                    self.cpu.run(level, remaining_ns);
                    self.now_ns = done_ns;
                    self.step_done(level, self.cpu.step(level));
                    if self.outbox.is_some() {
                        return;
                    }
                    continue;
                }
                _ if due_ns >= end_ns => return,
                Some((level, _)) => self.cpu.run(level, due_ns - self.now_ns),
                None => self.cpu.idle(due_ns - self.now_ns),
            }
            self.now_ns = due_ns;
            self.on_timer(due);
            if self.outbox.is_some() {
                return;
            }
        }
    }

    /// Lets the time pass in which nothing happens. What falls on the edge itself is left for later.
    fn advance_to(&mut self, edge_ns: u64) {
        match self.cpu.dispatch() {
            Some((level, _)) => self.cpu.run(level, edge_ns - self.now_ns),
            None => self.cpu.idle(edge_ns - self.now_ns),
        }
        self.now_ns = edge_ns;
    }

    fn on_timer(&mut self, due: Due) {
        match due {
            Due::Sample => self.sample(),
            Due::Tick => {
                self.sample_at_tick();
                self.timers.set_tick(self.clock.next_ns());
                self.raise(hard::CLOCK);
            }
            Due::Card(card, Of::Offer) => self.offer(card),
            Due::Card(card, Of::Arrival) => self.arrive(card),
            Due::Card(card, Of::Moderation) => self.interrupt_now(card),
            Due::Card(card, Of::Deferral) => {
                self.timers.clear(card, Of::Deferral);
                self.raise(hard::deferral(card));
            }
            Due::Card(card, Of::Sent) => self.frame_sent(card),
            Due::Card(card, Of::Woken) => self.woken(card),
        }
    }

    fn step_done(&mut self, level: Level, step: Step) {
        match step {
            Step::Tick | Step::CardInterrupt | Step::Timer => return self.interrupt_done(step),
            Step::Background => return self.background_done(),
            _ => {}
        }
        match level {
            Level::Kernel => self.kernel_output_done(),
            Level::Program => self.program_step_done(step),
            _ => D::on_step(self, level, step),
        }
    }

    /// A packet is lost here.
    fn lose(&mut self, place: LossPlace, packet: &Packet) {
        self.tally.lose(place);
        self.shared.lose(self.number, place, packet);
    }

    /// A frame leaves a card for another machine.
    fn leave(&mut self, card: usize, packet: Packet) {
        self.tally.transmit(card, packet.line_bytes);
        self.outbox = Some((card, packet));
    }

    /// Packets that are somewhere in this machine, whatever has become of their datagrams.
    fn packets(&self) -> u64 {
        let queued: u64 = self.queues().map(|queue| queue.len()).sum();
        queued + self.input.held() + self.output.len()
    }

    /// Every packet in a queue of this machine, those on their way to its cards included.
    fn each_packet(&self) -> impl Iterator<Item = &Packet> {
        let queued = self.queues().flat_map(Queue::iter);
        let coming = self.cards.iter().flat_map(Card::coming);
        queued.chain(self.output.iter()).chain(coming)
    }

    /// Requests that a program has read and not answered, of those that count until they are.
    fn owed(&self) -> u64 {
        let programs = self.programs.list.iter();
        let owed = programs.filter_map(|program| program.task.owed());
        let counted = owed.filter(|request| self.flows[request.flow].counts == Counts::Exchange);
        counted.count() as u64
    }

    /// Every queue that this machine's packets wait in. What waits at the far end is not yet here.
    fn queues(&self) -> impl Iterator<Item = &Queue> {
        let cards = self.cards.iter().flat_map(Card::queues);
        let sockets = self.programs.list.iter().map(|program| &program.socket);
        cards.chain([self.input.queue()]).chain(sockets)
    }
}
