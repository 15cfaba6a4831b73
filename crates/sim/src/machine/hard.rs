//! Hard interrupts: the clock, each card, each deferral timer. One at a time, in this order.

use super::{Machine, Receive};
use crate::cpu::{Level, State, Step};

/// As many as the bits of a source leave room for; a host on a path has two.
pub(crate) const CARDS_MAX: usize = 8;

/// A source's bit.
pub(super) const CLOCK: u32 = 1;

pub(super) const fn card(card: usize) -> u32 {
    2 << card
}

pub(super) const fn deferral(card: usize) -> u32 {
    2 << (CARDS_MAX + card)
}

/// The card of a source that is not the clock.
fn card_of(source: u32) -> usize {
    (source.trailing_zeros() as usize - 1) % CARDS_MAX
}

impl Machine {
    /// An interrupt reaches the processor.
    pub(super) fn raise(&mut self, source: u32) {
        self.hard_pending |= source;
        if !self.cpu.has_work(Level::Hard) {
            self.next_interrupt();
        }
    }

    fn next_interrupt(&mut self) {
        let source = self.hard_pending & self.hard_pending.wrapping_neg();
        self.hard_pending &= !source;
        self.hard_served = source;
        let host = &self.host;
        let (step, work_ns) = match source {
            CLOCK => (Step::Tick, host.cpu.tick_ns),
            _ if source >= deferral(0) => (Step::Timer, 0),
            // An interrupt thread reads the cause itself; a Linux handler does it here.
            _ => {
                let handler_ns = match self.receive {
                    Receive::Threads(..) => 0,
                    Receive::Napi(_) => host.card.interrupt_ns,
                };
                (Step::CardInterrupt, host.background.at_once_ns + handler_ns)
            }
        };
        let cost_ns = host.cpu.interrupt_entry_ns + work_ns;
        self.cpu.start(Level::Hard, step, cost_ns, State::Interrupt);
    }

    pub(super) fn interrupt_done(&mut self, step: Step) {
        // Stopped first: what follows may raise the next one.
        self.cpu.stop(Level::Hard);
        match step {
            Step::Tick => self.clock_ticked(),
            Step::CardInterrupt => self.card_interrupted(card_of(self.hard_served)),
            _ => self.deferral_over(card_of(self.hard_served)),
        }
        if !self.cpu.has_work(Level::Hard) && self.hard_pending != 0 {
            self.next_interrupt();
        }
        if !self.cpu.has_work(Level::Hard) {
            self.softirq_on_exit();
        }
    }

    fn card_interrupted(&mut self, card: usize) {
        self.cards[card].is_raised = false;
        self.mask(card);
        self.cause_background();
        match self.receive {
            Receive::Threads(..) => self.wake_interrupt_thread(card),
            Receive::Napi(_) => self.schedule_napi(card),
        }
    }

    fn clock_ticked(&mut self) {
        self.tick += 1;
        self.tick_programs();
        self.tick_tcp();
        match &self.receive {
            Receive::Threads(..) => {
                self.tick_netisr();
                self.end_throttling();
            }
            Receive::Napi(_) => {
                let both =
                    self.cpu.has_work(Level::SoftThread) && self.cpu.has_work(Level::Program);
                if both {
                    self.cpu.is_programs_turn = !self.cpu.is_programs_turn;
                }
            }
        }
    }

    fn deferral_over(&mut self, card: usize) {
        if let Receive::Napi(_) = self.receive {
            self.tally.napi.timer_polls += 1;
            self.schedule_napi(card);
        }
    }

    fn cause_background(&mut self) {
        let work_ns = self.host.background.interrupt_ns;
        if work_ns == 0 || self.background_events >= self.host.background.queue_events {
            return;
        }
        self.background_events += 1;
        if !self.cpu.has_work(Level::Kernel) {
            self.next_of_kernel();
        }
    }

    pub(super) fn background_done(&mut self) {
        self.background_events -= 1;
        self.next_of_kernel();
    }

    /// A kernel thread has sent a packet.
    pub(super) fn kernel_output_done(&mut self) {
        self.output_done(Level::Kernel);
        self.next_of_kernel();
    }

    /// What kernel threads do next.
    pub(super) fn next_of_kernel(&mut self) {
        if self.output_next(Level::Kernel, State::System) {
            return;
        }
        if self.background_events == 0 {
            self.cpu.stop(Level::Kernel);
        } else {
            let work_ns = self.host.background.interrupt_ns;
            self.cpu
                .start(Level::Kernel, Step::Background, work_ns, State::System);
        }
    }
}
