//! FreeBSD's disciplines: an interrupt thread for each card, netisr, and the core's poller if it polls.

use nicpoll_core::{Knob, Poller};
use nicpoll_model::sim::{SimPolling, SimStorm};

use super::interrupt_thread::InterruptThread;
use super::netisr::Netisr;
use super::{Discipline, Link, Machine, Start, Timer, ratio};
use crate::cpu::{Level, Step};
use crate::host::HostModel;

#[derive(Debug)]
pub(crate) struct Freebsd {
    pub(super) threads: InterruptThread,
    pub(super) netisr: Netisr,
}

impl Freebsd {
    /// With a poller cards never interrupt.
    pub(crate) fn new(poller: Option<Poller>, host: &HostModel, cards: usize) -> Self {
        Freebsd {
            threads: InterruptThread::new(host, cards),
            netisr: Netisr::new(poller),
        }
    }
}

impl Discipline for Freebsd {
    const HAS_SOFT_THREAD: bool = true;

    fn uses_interrupts(&self) -> bool {
        self.netisr.poller().is_none()
    }

    fn on_boot<L: Link>(machine: &mut Machine<Self, L>) {
        machine.start_idle_poll();
    }

    /// The thread reads the cause itself.
    fn on_interrupt<L: Link>(machine: &mut Machine<Self, L>, card: usize) {
        machine.wake_interrupt_thread(card);
    }

    fn on_timer<L: Link>(machine: &mut Machine<Self, L>, timer: Timer) {
        if timer == Timer::Tick {
            machine.tick_netisr();
            machine.end_throttling();
        }
    }

    fn on_step<L: Link>(machine: &mut Machine<Self, L>, level: Level, step: Step) {
        match level {
            Level::InterruptThread => machine.interrupt_thread_done(step),
            Level::Idle => machine.idle_poll_done(step),
            _ => machine.netisr_done(step),
        }
    }

    fn on_queued<L: Link>(machine: &mut Machine<Self, L>) {
        machine.wake_netisr();
    }

    fn knobs(&self) -> Vec<u32> {
        let read = |poller: &Poller| Knob::ALL.iter().map(|knob| poller.read(*knob)).collect();
        self.netisr.poller().map(read).unwrap_or_default()
    }

    fn storm<L: Link>(machine: &Machine<Self, L>) -> Option<SimStorm> {
        let is_thread = machine.discipline.uses_interrupts();
        is_thread.then_some(machine.tally.storm)
    }

    fn polling<L: Link>(machine: &Machine<Self, L>, start: &Start) -> Option<SimPolling> {
        let poller = machine.discipline.netisr.poller()?;
        let cycles = &machine.tally.cycles;
        Some(SimPolling {
            controller: String::from(poller.controller().name()),
            cycles: cycles.count,
            asked: cycles.asked,
            burst_mean: ratio(cycles.burst_sum, cycles.count),
            burst_min: cycles.burst_min,
            burst_max_reached: cycles.burst_max,
            full_cycles: cycles.at_burst_max,
            knobs: machine.knob_figures(start),
        })
    }
}
