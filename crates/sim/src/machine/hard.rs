//! Hard interrupts: the clock, each card, each deferral timer. One at a time, in this order.

use super::{Discipline, Link, Machine, Timer};
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

impl<D: Discipline, L: Link> Machine<D, L> {
    /// An interrupt reaches the processor.
    pub(super) fn raise(&mut self, source: u32) {
        self.cpu.raise(source);
        if !self.cpu.has_work(Level::Hard) {
            self.next_interrupt();
        }
    }

    fn next_interrupt(&mut self) {
        let Some(source) = self.cpu.serve_next() else {
            return;
        };
        let host = &self.host;
        let (step, work_ns) = match source {
            CLOCK => (Step::Tick, host.cpu.tick_ns),
            _ if source >= deferral(0) => (Step::Timer, 0),
            _ => (
                Step::CardInterrupt,
                host.background.at_once_ns + D::handler_ns(host),
            ),
        };
        let cost_ns = host.cpu.interrupt_entry_ns + work_ns;
        self.cpu.start(Level::Hard, step, cost_ns, State::Interrupt);
    }

    pub(super) fn interrupt_done(&mut self, step: Step) {
        // Stopped first: what follows may raise the next one.
        self.cpu.stop(Level::Hard);
        let source = self.cpu.served();
        match step {
            Step::Tick => self.clock_ticked(),
            Step::CardInterrupt => self.card_interrupted(card_of(source)),
            _ => D::on_timer(self, Timer::Deferral(card_of(source))),
        }
        if !self.cpu.has_work(Level::Hard) {
            self.next_interrupt();
        }
        if !self.cpu.has_work(Level::Hard) {
            D::on_interrupts_over(self);
        }
    }

    fn card_interrupted(&mut self, card: usize) {
        self.cards[card].interrupt_served();
        self.mask(card);
        self.cause_background();
        D::on_interrupt(self, card);
    }

    fn clock_ticked(&mut self) {
        self.clock.ticked();
        self.tick_programs();
        self.tick_tcp();
        D::on_timer(self, Timer::Tick);
    }

    fn cause_background(&mut self) {
        let background = &self.host.background;
        if background.interrupt_ns > 0
            && self.cpu.cause_background(background.queue_events)
            && !self.cpu.has_work(Level::Kernel)
        {
            self.next_of_kernel();
        }
    }

    pub(super) fn background_done(&mut self) {
        self.cpu.background_done();
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
        if self.cpu.has_background() {
            let work_ns = self.host.background.interrupt_ns;
            self.cpu
                .start(Level::Kernel, Step::Background, work_ns, State::System);
        } else {
            self.cpu.stop(Level::Kernel);
        }
    }
}
