//! A simulated machine: its clock, its events, and who does what when.
//!
//! Virtual time goes from one moment to the next at which something can change: a step of the processor
//! ends, or a timer is due. At the same moment the step's end comes first, then the timers in their order.
//!
//! What must hold: a packet is in exactly one queue, or its end is counted. The state follows from host,
//! plan and seed alone.

mod card;
mod clock;
#[cfg(test)]
mod conformance;
mod figures;
mod flow;
mod hard;
mod input;
mod interrupt_thread;
mod napi;
mod netisr;
mod output;
mod program;
mod setup;
mod stream;
mod task;
mod tcp;
mod timers;
mod veth;

use nicpoll_model::sim::SimPlace;

use crate::cpu::{Cpu, LEVELS, Level, Step};
use crate::host::Host;
use crate::packet::Packet;
use crate::queue::Queue;
use crate::shared::Shared;
use crate::tally::Tally;
use card::Card;
use clock::Clock;
pub(crate) use figures::{Start, ratio};
pub(crate) use flow::{Counts, Flow};
pub(crate) use hard::CARDS_MAX;
use input::Hold;
use interrupt_thread::InterruptThread;
use napi::Napi;
use netisr::Netisr;
use output::Outgoing;
use program::Programs;
pub(crate) use setup::{Attachment, FarEnd, Setup};
pub(crate) use stream::Stream;
pub(crate) use task::{Pacer, Task};
pub(crate) use tcp::{End, Half};
use timers::{Due, Of, Timers};

const NS_PER_SECOND: u64 = 1_000_000_000;

/// How the host learns of packets, with what that remembers.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a machine has one, and asks it at every step"
)]
enum Receive {
    /// FreeBSD: an interrupt thread for each card, netisr, and the poller if it polls.
    Threads(InterruptThread, Netisr),
    /// Linux.
    Napi(Napi),
}

#[derive(Debug)]
pub(crate) struct Machine {
    /// Which of the world's.
    number: usize,
    host: Host,
    now_ns: u64,
    timers: Timers,
    clock: Clock,
    /// Ticks so far.
    tick: u64,
    cpu: Cpu,
    /// Interrupts that wait, a bit for each, and the one that is served.
    hard_pending: u32,
    hard_served: u32,
    cards: Vec<Card>,
    /// Whether drivers put packets into the IP queue rather than hand them on.
    is_queued: bool,
    ip_queue: Queue,
    receive: Receive,
    /// Packets that each level may still take in its batch, and from which card.
    left: [u64; LEVELS],
    looks_at: [usize; LEVELS],
    outgoing: [Outgoing; LEVELS],
    /// Every flow of the world.
    flows: Vec<Flow>,
    /// Datagrams that are put together, by flow.
    holds: Vec<Hold>,
    programs: Programs,
    /// Its ends of TCP connections.
    pub(crate) ends: Vec<End>,
    /// Interrupts whose background work waits.
    background_events: u64,
    tally: Tally,
    in_flight_at_start: u64,
    /// Whether the softirq has woken a program of the other processor, and not paid for it yet.
    owes_wake: bool,
    /// A frame that has left for another machine's card, with the card that it left.
    outbox: Option<(usize, Packet)>,
    /// The world's, while this machine runs.
    pub(crate) shared: Box<Shared>,
}

impl Machine {
    /// When the next thing happens that this machine knows of.
    pub(crate) fn next_event_ns(&mut self) -> u64 {
        let due_ns = self.timers.first_ns();
        match self.cpu.dispatch() {
            Some((_, remaining_ns)) => due_ns.min(self.now_ns.saturating_add(remaining_ns)),
            None => due_ns,
        }
    }

    /// Lets everything happen that is due before `end_ns`, up to a packet's leaving for another machine.
    pub(crate) fn run_before(&mut self, end_ns: u64) {
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
    pub(crate) fn advance_to(&mut self, edge_ns: u64) {
        match self.cpu.dispatch() {
            Some((level, _)) => self.cpu.run(level, edge_ns - self.now_ns),
            None => self.cpu.idle(edge_ns - self.now_ns),
        }
        self.now_ns = edge_ns;
    }

    fn on_timer(&mut self, due: Due) {
        match due {
            Due::Tick => {
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
            Level::InterruptThread => self.interrupt_thread_done(step),
            Level::Kernel => self.kernel_output_done(),
            Level::Program => self.program_step_done(step),
            Level::Idle => self.idle_poll_done(step),
            _ if matches!(self.receive, Receive::Napi(_)) => self.softirq_done(level, step),
            _ => self.netisr_done(step),
        }
    }

    /// A packet is lost here.
    fn lose(&mut self, place: SimPlace, packet: &Packet) {
        self.tally.lose(place);
        self.shared.lose(self.number, place, packet);
    }

    /// Takes the frame that has left for another machine, with the card that it left.
    pub(crate) fn take_outbox(&mut self) -> Option<(usize, Packet)> {
        self.outbox.take()
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Packets that are somewhere in this machine, whatever has become of their datagrams.
    fn packets(&self) -> u64 {
        let queued: u64 = self.queues().map(|queue| queue.len()).sum();
        let held: u64 = self.holds.iter().map(|hold| hold.fragments).sum();
        let outgoing: u64 = self.outgoing.iter().map(Outgoing::len).sum();
        queued + held + outgoing
    }

    /// Every packet in a queue of this machine, those on their way to its cards included.
    pub(crate) fn each_packet(&self) -> impl Iterator<Item = &Packet> {
        let queued = self.queues().flat_map(Queue::iter);
        let outgoing = self.outgoing.iter().flat_map(Outgoing::iter);
        let coming = self.cards.iter().flat_map(Card::coming);
        queued.chain(outgoing).chain(coming)
    }

    /// Requests that a program has read and not answered, of those that count until they are.
    pub(crate) fn owed(&self) -> u64 {
        let programs = self.programs.list.iter();
        let owed = programs.filter_map(|program| program.task.owed());
        let counted = owed.filter(|request| self.flows[request.flow].counts == Counts::Exchange);
        counted.count() as u64
    }

    /// Every queue that this machine's packets wait in. What waits at the far end is not yet here.
    fn queues(&self) -> impl Iterator<Item = &Queue> {
        let cards = self
            .cards
            .iter()
            .flat_map(|card| [&card.rx_ring, &card.send_queue, &card.tx_ring]);
        let sockets = self.programs.list.iter().map(|program| &program.socket);
        cards.chain([&self.ip_queue]).chain(sockets)
    }
}
