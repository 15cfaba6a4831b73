//! FreeBSD's interrupt thread of each card (`ithread_loop`): it runs the handler as long as interrupts
//! come while it runs, and sleeps otherwise. The core's storm detector watches each. Threads that wait for
//! each other have their turns in the order in which they woke.
//!
//! A driver may hand over what a pass does not take (`card.hands_over`; em(4) with MSI-X: `em_msix_rx`,
//! `em_handle_rx`): a task, which is a thread of the same priority, goes on pass by pass until it finds less than it may
//! take, and the card is masked until then. The interrupt thread sleeps meanwhile, so that the storm detector counts
//! anew; a throttled one may wake to find that the task has let the card interrupt again.

use std::collections::VecDeque;

use nicpoll_core::{Pass, StormDetector};

use super::freebsd::Freebsd;
use super::{Link, Machine};
use crate::cpu::{Level, State, Step};
use crate::host::HostModel;

const LEVEL: Level = Level::InterruptThread;

#[derive(Clone, Debug)]
pub(super) struct InterruptThread {
    /// One for each card.
    sources: Vec<SourceState>,
    /// Those that wait for another one to end.
    waiting: VecDeque<Turn>,
    /// The one that runs, or ran last.
    current: Turn,
}

/// A thread of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Its interrupt thread.
    Handler(usize),
    /// The task that goes on for it.
    Task(usize),
}

#[derive(Clone, Debug)]
struct SourceState {
    storm: StormDetector,
    /// Whether its thread sleeps a tick because of a storm.
    is_throttled: bool,
    /// Whether an interrupt has come meanwhile, which only a driver that hands over lets.
    is_needed: bool,
}

impl InterruptThread {
    pub(super) fn new(host: &HostModel, cards: usize) -> Self {
        // Both ranges end far below 2^32.
        let threshold = host.storm.threshold as u32;
        let source = SourceState {
            storm: StormDetector::new(threshold, host.cpu.hz as u32),
            is_throttled: false,
            is_needed: false,
        };
        InterruptThread {
            sources: vec![source; cards],
            waiting: VecDeque::new(),
            current: Turn::Handler(0),
        }
    }
}

impl<L: Link> Machine<Freebsd, L> {
    pub(super) fn wake_interrupt_thread(&mut self, card: usize) {
        let source = &mut self.discipline.threads.sources[card];
        if source.is_throttled {
            source.is_needed = true;
        } else {
            self.take_turn(Turn::Handler(card));
        }
    }

    /// A thread of the level has something to do: at once, or after those that had before it.
    fn take_turn(&mut self, turn: Turn) {
        if self.cpu.has_work(LEVEL) {
            self.discipline.threads.waiting.push_back(turn);
        } else {
            self.begin_pass_of(turn);
        }
    }

    fn begin_pass_of(&mut self, turn: Turn) {
        let (card, cost_ns) = match turn {
            Turn::Handler(card) => {
                self.tally.storm.passes += 1;
                (card, self.host.card.interrupt_ns)
            }
            // It knows the cause.
            Turn::Task(card) => (card, 0),
        };
        self.discipline.threads.current = turn;
        self.cpu
            .begin_batch(LEVEL, card, self.host.card.pass_packets);
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
        if self.receive_next(LEVEL, State::Interrupt) {
            return;
        }
        match self.discipline.threads.current {
            Turn::Handler(_) => {
                let cost_ns = self.host.card.rearm_ns;
                self.cpu
                    .start(LEVEL, Step::Rearm, cost_ns, State::Interrupt);
            }
            Turn::Task(card) => self.task_pass_done(card),
        }
    }

    /// Whether the pass took as much as it might: the driver takes that to mean that there is more.
    fn has_more(&self) -> bool {
        self.host.card.hands_over > 0 && self.cpu.batch(LEVEL).left == 0
    }

    fn task_pass_done(&mut self, card: usize) {
        let has_more = self.has_more();
        self.cpu.stop(LEVEL);
        if has_more {
            self.discipline.threads.waiting.push_back(Turn::Task(card));
        } else {
            self.unmask(card);
        }
        self.next_turn();
    }

    fn pass_done(&mut self) {
        let tick = self.clock.tick();
        let card = self.cpu.batch(LEVEL).card;
        let has_more = self.has_more();
        self.cpu.stop(LEVEL);
        let source = &mut self.discipline.threads.sources[card];
        if let Pass::Throttle { is_reported } = source.storm.pass(tick) {
            source.is_throttled = true;
            self.tally.storm.throttled += 1;
            self.tally.storm.reports += u64::from(is_reported);
        }
        let is_throttled = source.is_throttled;
        if has_more {
            self.discipline.threads.waiting.push_back(Turn::Task(card));
        } else if !is_throttled || self.host.card.hands_over > 0 {
            self.unmask(card);
        }
        if !is_throttled {
            self.sleep_unless_raised(card);
        }
        self.next_turn();
    }

    /// The next thread of the level runs, if one waits.
    fn next_turn(&mut self) {
        let threads = &mut self.discipline.threads;
        let last = threads.current;
        let Some(next) = threads.waiting.pop_front() else {
            return;
        };
        self.begin_pass_of(next);
        if next != last {
            self.cpu.switch_within(LEVEL);
        }
    }

    /// Without an interrupt at once the thread has nothing to do, and sleeps; otherwise the next pass follows back to
    /// back.
    fn sleep_unless_raised(&mut self, card: usize) {
        if !self.cards[card].is_raised() {
            self.discipline.threads.sources[card].storm.sleep();
        }
    }

    /// A tick ends the sleep of throttled threads.
    pub(super) fn end_throttling(&mut self) {
        for card in 0..self.cards.len() {
            let source = &mut self.discipline.threads.sources[card];
            if !std::mem::take(&mut source.is_throttled) {
                continue;
            }
            if std::mem::take(&mut source.is_needed) {
                self.take_turn(Turn::Handler(card));
                continue;
            }
            if self.host.card.hands_over == 0 {
                self.unmask(card);
            }
            self.sleep_unless_raised(card);
        }
    }
}
