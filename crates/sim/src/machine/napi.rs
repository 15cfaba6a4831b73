//! Linux's NAPI: `net_rx_action`, `__do_softirq`, ksoftirqd, the deferral of interrupts (net/core/dev.c and
//! kernel/softirq.c of 6.18), and busy polling by programs (`SO_BUSY_POLL` with `SO_PREFER_BUSY_POLL`).
//!
//! An interrupt masks the card and puts NAPI on the list. A softirq, on the way out of the interrupt, polls the card
//! until it is empty, or until the packets or the time of the pass are used up; after too many passes ksoftirqd, a
//! thread that takes turns with the program, continues.

use super::cpu::{CpuStep, Level, Of};
use super::kernel::Softirq;
use super::state::SimMachine;
use crate::spec::discipline::Busy;

/// `MAX_SOFTIRQ_RESTART`: passes of one softirq.
const PASSES: u32 = 10;
/// `MAX_SOFTIRQ_TIME`: time after which a softirq does not begin another pass.
const SOFTIRQ_NS: u64 = 2_000_000;

impl SimMachine {
    pub fn schedule_napi(&mut self, card: usize) {
        if !self.napi.is_scheduled(card) {
            self.napi.list.push_back(card);
        }
    }

    /// Lets NAPI poll a card whose deferral timer has expired.
    pub fn deferral_over(&mut self, card: usize) {
        self.tally.napi.timer_polls += 1;
        self.schedule_napi(card);
    }

    /// Runs a waiting softirq on the way out of a hard interrupt (`irq_exit`), unless one is running.
    pub fn softirq_on_exit(&mut self) {
        if self.napi.waits() {
            self.begin_softirq(Level::Soft);
        }
    }

    fn begin_softirq(&mut self, level: Level) {
        self.napi.is_in_softirq = true;
        self.napi.softirq = Softirq {
            passes_left: PASSES,
            ends_ns: self.now_ns + SOFTIRQ_NS,
            ..Softirq::default()
        };
        self.cpu.is_soft_thread_held = level == Level::SoftThread;
        self.begin_pass(level);
    }

    fn begin_pass(&mut self, level: Level) {
        let napi = &mut self.napi;
        napi.softirq.passes_left -= 1;
        napi.softirq.budget_left = napi.options.budget;
        napi.softirq.pass_ends_ns = self.now_ns + napi.budget_ns;
        self.begin_poll(level);
    }

    fn begin_poll(&mut self, level: Level) {
        self.napi.softirq.work = 0;
        let Some(card) = self.napi.list.front().copied() else {
            return;
        };
        let weight = self.napi.options.weight;
        self.cpu.begin_batch(level, card, weight);
        self.tally.napi.polls += 1;
        self.cpu.start(level, CpuStep::Look, self.host.card.poll_ns);
    }

    pub fn softirq_done(&mut self, level: Level, step: CpuStep) {
        match step {
            CpuStep::Wake => return self.soft_thread_woke(),
            CpuStep::Receive => self.napi.softirq.work += 1,
            _ => {}
        }
        if self.card_step_done(level, step) {
            return;
        }
        self.end_merging(level);
        if !self.output_next(level) {
            self.poll_done(level);
        }
    }

    /// GRO passes merged segments up at the end of a poll; TCP acknowledges them now.
    fn end_merging(&mut self, level: Level) {
        if self.input.gro.end_poll() {
            for end in 0..self.ends.len() {
                self.tcp_output(level, end);
            }
        }
    }

    fn poll_done(&mut self, level: Level) {
        let now_ns = self.now_ns;
        let napi = &mut self.napi;
        let softirq = &mut napi.softirq;
        let work = softirq.work;
        softirq.budget_left = softirq.budget_left.saturating_sub(work);
        let is_over = softirq.budget_left == 0 || now_ns >= softirq.pass_ends_ns;
        // Where the program prefers to poll, the rest of a full poll is left to it.
        let is_complete = work < napi.options.weight || napi.options.busy.is_some();
        // A card with more packets goes to the end of the list.
        let card = napi.list.pop_front();
        if !is_complete {
            napi.list.extend(card);
        }
        let is_empty = napi.list.is_empty();
        self.tally.napi.empty_polls += u64::from(work == 0);
        if is_complete && let Some(card) = card {
            self.complete(card, work);
        }
        if is_empty {
            self.end_softirq(level);
        } else if is_over {
            self.tally.napi.time_squeezes += 1;
            self.pass_done_early(level);
        } else {
            self.begin_poll(level);
        }
    }

    /// Unmasks a card whose NAPI is complete, or lets its timer poll again (`napi_complete_done`).
    fn complete(&mut self, card: usize, work: u64) {
        if let Some(deferral) = self.napi.options.deferral {
            let left = &mut self.napi.deferred_left[card];
            if work > 0 {
                *left = deferral.defer;
            }
            if *left > 0 {
                *left -= 1;
                return self.defer(card);
            }
        }
        self.unmask(card);
    }

    /// Lets the timer poll, unless something else does before.
    fn defer(&mut self, card: usize) {
        if let Some(deferral) = self.napi.options.deferral {
            let due_ns = self.now_ns + deferral.timeout_ns + self.host.veth.timer_delay_ns;
            self.timers.set(card, Of::Deferral, due_ns);
        }
    }

    fn end_softirq(&mut self, level: Level) {
        self.napi.is_in_softirq = false;
        self.cpu.is_soft_thread_held = false;
        self.cpu.stop(level);
    }

    /// Begins another pass for the packets left; if the softirq's time is over or another thread must run, ksoftirqd
    /// continues.
    fn pass_done_early(&mut self, level: Level) {
        let softirq = self.napi.softirq;
        let has_time = softirq.passes_left > 0 && self.now_ns < softirq.ends_ns;
        if has_time && !self.is_rescheduled() {
            return self.begin_pass(level);
        }
        self.end_softirq(level);
        if level == Level::Soft {
            self.tally.napi.handovers += 1;
        }
        if !self.cpu.has_work(Level::SoftThread) {
            self.cpu.start(Level::SoftThread, CpuStep::Wake, 0);
        }
    }

    /// Whether a thread must replace the one that runs or was interrupted (`need_resched`).
    fn is_rescheduled(&self) -> bool {
        let programs_turn = self.cpu.is_programs_turn;
        if self.cpu.thread == Level::Program {
            self.cpu.has_work(Level::SoftThread) && !programs_turn
        } else {
            self.cpu.has_work(Level::Program) && (self.cpu.thread == Level::Idle || programs_turn)
        }
    }

    fn soft_thread_woke(&mut self) {
        if self.napi.waits() {
            self.begin_softirq(Level::SoftThread);
        } else {
            self.cpu.stop(Level::SoftThread);
        }
    }
}

/// Busy polling.
impl SimMachine {
    /// Lets a program read its socket; if that is empty, the program polls or waits.
    pub fn read_or_wait(&mut self, id: usize) {
        match self.napi.options.busy {
            Some(busy) => {
                self.napi.spins_until_ns = self.now_ns + busy.spin_ns;
                self.poll_or_read(id, busy);
            }
            None if self.programs.has_packets(id) => self.read(id),
            None => self.block(),
        }
    }

    /// Reads the socket; if that is empty, polls the card for a limited time. When the program does not poll, the
    /// deferral timer does, and finally unmasks the card.
    fn poll_or_read(&mut self, id: usize, busy: Busy) {
        self.napi.is_busy_polling = false;
        let last = self.cpu.batches[Level::Program as usize].card;
        if !self.programs.has_packets(id) {
            return self.poll_or_block(id, busy, last);
        }
        if !self.napi.is_scheduled(last) && !self.cards[last].has_interrupts {
            self.leave_to_timer(last);
        }
        self.read(id);
    }

    fn poll_or_block(&mut self, id: usize, busy: Busy, last: usize) {
        // While a softirq or ksoftirqd has a card, there is nothing to poll and no timer to set.
        if self.now_ns >= self.napi.spins_until_ns {
            if !self.napi.is_scheduled(last) {
                self.leave_to_timer(last);
            }
            return self.block();
        }
        // If this is another card, the last one was left to its timer when this one's packet was read.
        let card = self.programs.list[id].polls;
        let mut budget = 0;
        if !self.napi.is_scheduled(card) {
            self.mask(card);
            self.timers.clear(card, Of::Deferral);
            budget = busy.budget;
        }
        self.cpu.begin_batch(Level::Program, card, budget);
        self.napi.is_busy_polling = true;
        self.tally.napi.busy_polls += 1;
        let cost_ns = self.host.card.poll_ns;
        self.cpu.start(Level::Program, CpuStep::Look, cost_ns);
    }

    /// Leaves a card to its timer: the program stops polling for now (`busy_poll_stop`).
    fn leave_to_timer(&mut self, card: usize) {
        if let Some(deferral) = self.napi.options.deferral {
            self.napi.deferred_left[card] = deferral.defer;
        }
        self.defer(card);
    }

    /// Ends a step of a program that polls.
    pub fn busy_poll_done(&mut self, id: usize, step: CpuStep) {
        if !self.card_step_done(Level::Program, step)
            && let Some(busy) = self.napi.options.busy
        {
            self.poll_or_read(id, busy);
        }
    }
}
