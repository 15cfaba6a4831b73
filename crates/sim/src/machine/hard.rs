//! Hard interrupts: the clock, the card, the deferral timer. One at a time, the clock first.

use super::{Machine, Receive, Timer};
use crate::cpu::{Level, State, Step};

pub(super) const CLOCK: u8 = 1;
pub(super) const CARD: u8 = 2;
pub(super) const DEFERRAL: u8 = 4;

impl Machine {
    /// An interrupt reaches the processor.
    pub(super) fn raise(&mut self, source: u8) {
        self.hard_pending |= source;
        if !self.cpu.has_work(Level::Hard) {
            self.next_interrupt();
        }
    }

    fn next_interrupt(&mut self) {
        let source = self.hard_pending & self.hard_pending.wrapping_neg();
        self.hard_pending &= !source;
        let host = &self.host;
        let (step, work_ns) = match source {
            CLOCK => (Step::Tick, host.cpu.tick_ns),
            // An interrupt thread reads the cause itself; a Linux handler does it here.
            CARD => match self.receive {
                Receive::Threads(..) => (Step::CardInterrupt, 0),
                Receive::Napi(_) => (Step::CardInterrupt, host.card.interrupt_ns),
            },
            _ => (Step::Timer, 0),
        };
        let cost_ns = host.cpu.interrupt_entry_ns + work_ns;
        self.cpu.start(Level::Hard, step, cost_ns, State::Interrupt);
    }

    pub(super) fn interrupt_done(&mut self, step: Step) {
        // Stopped first: what follows may raise the next one.
        self.cpu.stop(Level::Hard);
        match step {
            Step::Tick => self.clock_ticked(),
            Step::CardInterrupt => {
                self.card.is_raised = false;
                self.mask();
                self.cause_background();
                match self.receive {
                    Receive::Threads(..) => self.wake_interrupt_thread(),
                    Receive::Napi(_) => self.schedule_napi(),
                }
            }
            _ => self.deferral_over(),
        }
        if !self.cpu.has_work(Level::Hard) && self.hard_pending != 0 {
            self.next_interrupt();
        }
        if !self.cpu.has_work(Level::Hard) {
            self.softirq_on_exit();
        }
    }

    fn clock_ticked(&mut self) {
        self.tick += 1;
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

    fn deferral_over(&mut self) {
        debug_assert_eq!(self.timers[Timer::Deferral as usize], super::NEVER);
        if let Receive::Napi(_) = self.receive {
            self.tally.napi.timer_polls += 1;
            self.schedule_napi();
        }
    }

    fn cause_background(&mut self) {
        let work_ns = self.host.background.interrupt_ns;
        if work_ns == 0 || self.background_events >= self.host.background.queue_events {
            return;
        }
        self.background_events += 1;
        if !self.cpu.has_work(Level::Kernel) {
            self.cpu
                .start(Level::Kernel, Step::Background, work_ns, State::System);
        }
    }

    pub(super) fn background_done(&mut self) {
        self.background_events -= 1;
        if self.background_events == 0 {
            self.cpu.stop(Level::Kernel);
        } else {
            let work_ns = self.host.background.interrupt_ns;
            self.cpu
                .start(Level::Kernel, Step::Background, work_ns, State::System);
        }
    }
}
