//! The CPU account that samples, as `top` and `vmstat` show it: a clock looks at what the processor does, and each
//! look counts as much as another (`statclock`). It stands beside the exact account and changes nothing: what a look
//! takes is in the cost of a tick.
//!
//! A look that comes while a hard interrupt is served waits for its end, as in life, so what it sees is what that has
//! interrupted: the time of hard interrupts is never seen. When the tick that looks is the one that wakes the poller,
//! the look comes first, and polling that ends before the next tick is never seen either.

use super::timers::NEVER;
use super::{Discipline, Link, Machine, NS_PER_SECOND};
use crate::cpu::Times;

/// When the processor is looked at, and what was seen.
#[derive(Clone, Debug)]
pub(super) struct Sampling {
    /// Its own clock's looks a second; 0 when each tick looks.
    hz: u64,
    /// Looks of its own clock that were set.
    set: u64,
    /// Looks by what they saw.
    seen: Times,
}

impl Sampling {
    pub(super) fn new(hz: u64) -> Self {
        Sampling {
            hz,
            set: 0,
            seen: Times::default(),
        }
    }

    /// When its own clock looks next; never without one.
    pub(super) fn next_ns(&mut self) -> u64 {
        if self.hz == 0 {
            return NEVER;
        }
        self.set += 1;
        // A run ends long before 2^64 nanoseconds.
        (u128::from(self.set) * u128::from(NS_PER_SECOND) / u128::from(self.hz)) as u64
    }

    pub(super) fn seen(&self) -> Times {
        self.seen
    }
}

impl<D: Discipline, L: Link> Machine<D, L> {
    /// Its own clock looks at the processor.
    pub(super) fn sample(&mut self) {
        let next_ns = self.sampling.next_ns();
        self.timers.set_sample(next_ns);
        self.look_at_processor();
    }

    /// The clock ticks, and looks at the processor if there is no other one that does.
    pub(super) fn sample_at_tick(&mut self) {
        if self.sampling.hz == 0 {
            self.look_at_processor();
        }
    }

    fn look_at_processor(&mut self) {
        let state = self.cpu.seen_state();
        self.sampling.seen.add(state, 1);
    }
}
