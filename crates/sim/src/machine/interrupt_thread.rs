//! FreeBSD's interrupt thread of the card (`ithread_loop`): it runs the handler as long as interrupts
//! come while it runs, and sleeps otherwise. The core's storm detector watches it.

use nicpoll_core::{Pass, StormDetector};

use super::{Machine, Receive};
use crate::cpu::{Level, State, Step};
use crate::host::Host;

const LEVEL: Level = Level::InterruptThread;

#[derive(Clone, Debug)]
pub(super) struct InterruptThread {
    storm: StormDetector,
    /// Whether it sleeps a tick because of a storm.
    is_throttled: bool,
}

impl InterruptThread {
    pub(super) fn new(host: &Host) -> Self {
        // Both ranges end far below 2^32.
        let threshold = host.storm.threshold as u32;
        InterruptThread {
            storm: StormDetector::new(threshold, host.cpu.hz as u32),
            is_throttled: false,
        }
    }
}

impl Machine {
    pub(super) fn wake_interrupt_thread(&mut self) {
        self.tally.storm.passes += 1;
        self.left[LEVEL as usize] = self.host.card.pass_packets;
        let cost_ns = self.host.card.interrupt_ns;
        self.cpu.start(LEVEL, Step::Look, cost_ns, State::Interrupt);
    }

    pub(super) fn interrupt_thread_done(&mut self, step: Step) {
        match step {
            Step::Look if self.reclaim(LEVEL, State::Interrupt) => return,
            Step::Reclaim { done } => self.reclaimed(done),
            Step::Receive => self.take_from_card(),
            _ => {}
        }
        if !self.receive_next(LEVEL, State::Interrupt) {
            self.pass_done();
        }
    }

    fn pass_done(&mut self) {
        let tick = self.tick;
        let Receive::Threads(thread, _) = &mut self.receive else {
            return;
        };
        self.cpu.stop(LEVEL);
        match thread.storm.pass(tick) {
            Pass::Rearm => self.rearm(),
            Pass::Throttle { is_reported } => {
                thread.is_throttled = true;
                self.tally.storm.throttled += 1;
                self.tally.storm.reports += u64::from(is_reported);
            }
        }
    }

    /// The thread lets the card interrupt. Without an interrupt at once it has nothing to do, and sleeps;
    /// otherwise the next pass follows back to back.
    fn rearm(&mut self) {
        self.unmask();
        if let Receive::Threads(thread, _) = &mut self.receive
            && !self.card.is_raised
        {
            thread.storm.sleep();
        }
    }

    /// A tick ends the sleep of a throttled thread.
    pub(super) fn end_throttling(&mut self) {
        if let Receive::Threads(thread, _) = &mut self.receive
            && thread.is_throttled
        {
            thread.is_throttled = false;
            self.rearm();
        }
    }
}
