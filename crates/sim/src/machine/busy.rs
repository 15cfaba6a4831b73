//! Busy polling: a program polls the card for what it reads (`SO_BUSY_POLL` with `SO_PREFER_BUSY_POLL`).

use super::napi::Napi;
use super::{Link, Machine, Of};
use crate::cpu::{Level, State, Step};
use crate::discipline::Busy;

const LEVEL: Level = Level::Program;

#[derive(Clone, Copy, Debug)]
pub(super) struct BusyPoll {
    options: Busy,
    /// When the program gives up polling for nothing.
    spins_until_ns: u64,
    /// Whether what it does is polling.
    is_polling: bool,
}

impl BusyPoll {
    pub(super) fn new(options: Busy) -> Self {
        BusyPoll {
            options,
            spins_until_ns: 0,
            is_polling: false,
        }
    }
}

impl<L: Link> Machine<Napi, L> {
    /// Reads what the socket has, and polls or waits when it has nothing.
    pub(super) fn busy_poll_or_read(&mut self, id: usize) {
        match &mut self.discipline.busy {
            Some(busy) => {
                busy.spins_until_ns = self.now_ns + busy.options.spin_ns;
                self.poll_or_read(id);
            }
            None => self.read_or_block(id),
        }
    }

    /// Reads what there is; polls the card when there is nothing, for so long. When it does not poll, the
    /// deferral timer does in its place after a while, and at last lets the card interrupt again.
    fn poll_or_read(&mut self, id: usize) {
        let Some(busy) = &mut self.discipline.busy else {
            return;
        };
        busy.is_polling = false;
        let busy = *busy;
        let held = self.cpu.batch(LEVEL).card;
        if !self.programs.has_packets(id) {
            return self.poll_or_block(id, busy, held);
        }
        if !self.discipline.is_scheduled(held) && !self.cards[held].has_interrupts() {
            self.leave_to_timer(held);
        }
        self.read(id);
    }

    fn poll_or_block(&mut self, id: usize, busy: BusyPoll, held: usize) {
        // While a softirq or ksoftirqd has a card, there is nothing to poll and nothing to arm.
        if self.now_ns >= busy.spins_until_ns {
            if !self.discipline.is_scheduled(held) {
                self.leave_to_timer(held);
            }
            return self.block();
        }
        // If it is another one, the last was left to its timer when that one's packet was read.
        let card = self.programs.polls(id);
        let mut budget = 0;
        if !self.discipline.is_scheduled(card) {
            self.mask(card);
            self.timers.clear(card, Of::Deferral);
            budget = busy.options.budget;
        }
        self.cpu.begin_batch(LEVEL, card, budget);
        if let Some(busy) = &mut self.discipline.busy {
            busy.is_polling = true;
        }
        self.tally.napi.busy_polls += 1;
        let cost_ns = self.host.card.poll_ns;
        self.cpu.start(LEVEL, Step::Look, cost_ns, State::System);
    }

    /// A program's step is done. Whether it was one of polling.
    pub(super) fn busy_poll_done(&mut self, id: usize, step: Step) -> bool {
        if !self.discipline.busy.is_some_and(|busy| busy.is_polling) {
            return false;
        }
        match step {
            Step::Look if self.reclaim(LEVEL, State::System) => return true,
            Step::Reclaim { done } => self.reclaimed(LEVEL, done),
            Step::Receive => self.take_from_card(LEVEL),
            Step::Transmit => self.output_done(LEVEL),
            _ => {}
        }
        if !self.receive_next(LEVEL, State::System) {
            self.poll_or_read(id);
        }
        true
    }
}
