//! How a machine learns of packets: what it does when a card or a timer interrupts, and what each step of the
//! kernel leads to.

use std::fmt;

use nicpoll_model::sim::{SimNapi, SimPolling, SimStorm};

use super::{Link, Machine, Start};
use crate::cpu::{Level, Step};
use crate::host::HostModel;

/// A timer that interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The clock's.
    Tick,
    /// That of a card whose interrupts are deferred.
    Deferral(usize),
}

/// A receive discipline at work, with what it remembers. Its methods have the whole machine, itself as
/// `machine.discipline`, so that whatever they cause may come back to it.
pub(crate) trait Discipline: fmt::Debug + Sized {
    /// Whether software interrupts have a thread of their own and a queue before the protocols, or borrow
    /// whatever thread they interrupt and hand packets on at once.
    const HAS_SOFT_THREAD: bool;

    /// What the hard interrupt of a card takes beside its entry.
    fn handler_ns(_host: &HostModel) -> u64 {
        0
    }

    /// Whether cards interrupt at all.
    fn uses_interrupts(&self) -> bool {
        true
    }

    /// The machine has started.
    fn on_boot<L: Link>(_machine: &mut Machine<Self, L>) {}

    /// A card has interrupted, and is masked.
    fn on_interrupt<L: Link>(machine: &mut Machine<Self, L>, card: usize);

    /// A timer has interrupted.
    fn on_timer<L: Link>(machine: &mut Machine<Self, L>, timer: Timer);

    /// A level's step is done: that of an interrupt thread, a software interrupt or the idle thread.
    fn on_step<L: Link>(machine: &mut Machine<Self, L>, level: Level, step: Step);

    /// No more hard interrupts wait.
    fn on_interrupts_over<L: Link>(_machine: &mut Machine<Self, L>) {}

    /// A packet waits in the queue before the protocols.
    fn on_queued<L: Link>(_machine: &mut Machine<Self, L>) {}

    /// A program reads what its socket has, and waits when it has nothing.
    fn on_read<L: Link>(machine: &mut Machine<Self, L>, id: usize) {
        machine.read_or_block(id);
    }

    /// A program's step is done. Whether it was the discipline's, and has been dealt with.
    fn on_program_step<L: Link>(_machine: &mut Machine<Self, L>, _id: usize, _step: Step) -> bool {
        false
    }

    /// Knobs and counters of its poller, in the order of [`nicpoll_core::Knob::ALL`]; empty without one.
    fn knobs(&self) -> Vec<u32> {
        Vec::new()
    }

    /// What its storm detection did.
    fn storm<L: Link>(_machine: &Machine<Self, L>) -> Option<SimStorm> {
        None
    }

    /// What its poller did.
    fn polling<L: Link>(_machine: &Machine<Self, L>, _start: &Start) -> Option<SimPolling> {
        None
    }

    /// What its NAPI did.
    fn napi<L: Link>(_machine: &Machine<Self, L>) -> Option<SimNapi> {
        None
    }
}
