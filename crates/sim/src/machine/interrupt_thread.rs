//! FreeBSD's interrupt thread of each card (`ithread_loop`): it runs the handler as long as interrupts
//! come while it runs, and sleeps otherwise. The core's storm detector watches each. Threads that wait for
//! each other have their turns in the order in which they woke.

use std::collections::VecDeque;

use nicpoll_core::{Pass, StormDetector};

use super::freebsd::Freebsd;
use super::{Link, Machine};
use crate::cpu::{Level, State, Step};
use crate::host::Host;

const LEVEL: Level = Level::InterruptThread;

#[derive(Clone, Debug)]
pub(super) struct InterruptThread {
    /// One for each card.
    sources: Vec<SourceState>,
    /// Cards whose thread waits for another one's.
    waiting: VecDeque<usize>,
}

#[derive(Clone, Debug)]
struct SourceState {
    storm: StormDetector,
    /// Whether its thread sleeps a tick because of a storm.
    is_throttled: bool,
}

impl InterruptThread {
    pub(super) fn new(host: &Host, cards: usize) -> Self {
        // Both ranges end far below 2^32.
        let threshold = host.storm.threshold as u32;
        let source = SourceState {
            storm: StormDetector::new(threshold, host.cpu.hz as u32),
            is_throttled: false,
        };
        InterruptThread {
            sources: vec![source; cards],
            waiting: VecDeque::new(),
        }
    }
}

impl<L: Link> Machine<Freebsd, L> {
    pub(super) fn wake_interrupt_thread(&mut self, card: usize) {
        if !self.cpu.has_work(LEVEL) {
            return self.begin_pass_of(card);
        }
        self.discipline.threads.waiting.push_back(card);
    }

    fn begin_pass_of(&mut self, card: usize) {
        self.tally.storm.passes += 1;
        self.cpu
            .begin_batch(LEVEL, card, self.host.card.pass_packets);
        let cost_ns = self.host.card.interrupt_ns;
        self.cpu.start(LEVEL, Step::Look, cost_ns, State::Interrupt);
    }

    pub(super) fn interrupt_thread_done(&mut self, step: Step) {
        match step {
            Step::Rearm => return self.pass_done(),
            Step::Look if self.reclaim(LEVEL, State::Interrupt) => return,
            Step::Reclaim { done } => self.reclaimed(LEVEL, done),
            Step::Receive => self.take_from_card(LEVEL),
            Step::Transmit => self.output_done(LEVEL),
            _ => {}
        }
        if !self.receive_next(LEVEL, State::Interrupt) {
            let cost_ns = self.host.card.rearm_ns;
            self.cpu
                .start(LEVEL, Step::Rearm, cost_ns, State::Interrupt);
        }
    }

    fn pass_done(&mut self) {
        let tick = self.clock.tick();
        let card = self.cpu.batch(LEVEL).card;
        self.cpu.stop(LEVEL);
        let thread = &mut self.discipline.threads;
        let source = &mut thread.sources[card];
        let next = thread.waiting.pop_front();
        match source.storm.pass(tick) {
            Pass::Rearm => self.rearm(card),
            Pass::Throttle { is_reported } => {
                source.is_throttled = true;
                self.tally.storm.throttled += 1;
                self.tally.storm.reports += u64::from(is_reported);
            }
        }
        if let Some(next) = next {
            self.begin_pass_of(next);
            self.cpu.switch_within(LEVEL);
        }
    }

    /// The thread lets the card interrupt. Without an interrupt at once it has nothing to do, and sleeps;
    /// otherwise the next pass follows back to back.
    fn rearm(&mut self, card: usize) {
        self.unmask(card);
        if !self.cards[card].is_raised() {
            self.discipline.threads.sources[card].storm.sleep();
        }
    }

    /// A tick ends the sleep of throttled threads.
    pub(super) fn end_throttling(&mut self) {
        for card in 0..self.cards.len() {
            if std::mem::take(&mut self.discipline.threads.sources[card].is_throttled) {
                self.rearm(card);
            }
        }
    }
}
