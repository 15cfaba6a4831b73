//! FreeBSD's disciplines: interrupt threads, netisr, and the poller of the core.
//!
//! The interrupt thread of a card (`ithread_loop`) runs the handler as long as interrupts come while it runs, and
//! sleeps otherwise. The core's storm detector watches each. Waiting threads run in the order in which they woke. A
//! driver may hand over the rest of a full pass (`card.hands_over`; em(4) with MSI-X: `em_msix_rx`, `em_handle_rx`):
//! a task, a thread of the same priority, continues until a pass is not full, and the card is masked until then. The
//! interrupt thread sleeps meanwhile, so the storm detector starts again from 0; a throttled thread may wake to find
//! that the task has unmasked the card.
//!
//! Netisr, the network software interrupt, polls the cards for the poller, then empties the IP queue, then lets the
//! poller account for it (`netisr_poll`, `ipintr`, `netisr_pollmore`).

use nicpoll_core::{Command, DeviceId, Knob, Pass, Time};

use super::cpu::{CpuStep, Level};
use super::kernel::{PollRequest, Turn};
use super::state::SimMachine;

const THREAD: Level = Level::InterruptThread;

/// Interrupt threads.
impl SimMachine {
    pub fn wake_interrupt_thread(&mut self, card: usize) {
        let source = &mut self.freebsd.sources[card];
        if source.is_throttled {
            source.is_needed = true;
        } else {
            self.take_turn(Turn::Handler(card));
        }
    }

    /// Runs a thread of the level, at once or after those that wait already.
    fn take_turn(&mut self, turn: Turn) {
        if self.cpu.has_work(THREAD) {
            self.freebsd.waiting.push_back(turn);
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
            // A task does not read the cause.
            Turn::Task(card) => (card, 0),
        };
        self.freebsd.current = turn;
        let packets = self.host.card.pass_packets;
        self.cpu.begin_batch(THREAD, card, packets);
        self.cpu.start(THREAD, CpuStep::Look, cost_ns);
    }

    pub fn interrupt_thread_done(&mut self, step: CpuStep) {
        if step == CpuStep::Rearm {
            return self.handler_pass_done();
        }
        if self.card_step_done(THREAD, step) {
            return;
        }
        match self.freebsd.current {
            Turn::Handler(_) => self
                .cpu
                .start(THREAD, CpuStep::Rearm, self.host.card.rearm_ns),
            Turn::Task(card) => {
                let has_more = self.has_more();
                self.cpu.stop(THREAD);
                if has_more {
                    self.freebsd.waiting.push_back(Turn::Task(card));
                } else {
                    self.unmask(card);
                }
                self.next_turn();
            }
        }
    }

    /// Whether the pass was full: the driver concludes that there is more.
    fn has_more(&self) -> bool {
        self.host.card.hands_over > 0 && self.cpu.batches[THREAD as usize].left == 0
    }

    fn handler_pass_done(&mut self) {
        let tick = self.clock.tick;
        let card = self.cpu.batches[THREAD as usize].card;
        let has_more = self.has_more();
        self.cpu.stop(THREAD);
        let source = &mut self.freebsd.sources[card];
        if let Pass::Throttle { is_reported } = source.storm.pass(tick) {
            source.is_throttled = true;
            self.tally.storm.throttled_passes += 1;
            self.tally.storm.reports += u64::from(is_reported);
        }
        let is_throttled = source.is_throttled;
        if has_more {
            self.freebsd.waiting.push_back(Turn::Task(card));
        } else if !is_throttled || self.host.card.hands_over > 0 {
            self.unmask(card);
        }
        if !is_throttled {
            self.sleep_unless_raised(card);
        }
        self.next_turn();
    }

    /// Runs the next thread of the level, if one waits.
    fn next_turn(&mut self) {
        let last = self.freebsd.current;
        let Some(next) = self.freebsd.waiting.pop_front() else {
            return;
        };
        self.begin_pass_of(next);
        if next != last {
            self.cpu.switch_within(THREAD);
        }
    }

    /// Lets the thread sleep without a new interrupt; otherwise the next pass follows back to back.
    fn sleep_unless_raised(&mut self, card: usize) {
        if !self.cards[card].is_raised {
            self.freebsd.sources[card].storm.sleep();
        }
    }

    /// Ends the sleep of throttled threads, at a tick.
    pub fn end_throttling(&mut self) {
        for card in 0..self.cards.len() {
            let source = &mut self.freebsd.sources[card];
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

/// Netisr and the idle thread.
impl SimMachine {
    pub fn tick_netisr(&mut self) {
        let now = Time::from_ns(self.now_ns);
        let poller = self.freebsd.poller.as_mut();
        if poller.is_some_and(|poller| poller.hardclock(now)) {
            self.wake_netisr();
        }
    }

    /// Starts netisr, unless it is running.
    pub fn wake_netisr(&mut self) {
        if !self.cpu.has_work(Level::Soft) {
            self.begin_netisr();
        }
    }

    fn begin_netisr(&mut self) {
        let now = Time::from_ns(self.now_ns);
        let mut cycle = None;
        if let Some(poller) = &mut self.freebsd.poller {
            let state = poller.state();
            if state.poll_scheduled && state.residual_burst == 0 {
                cycle = Some((state.burst, state.burst_max));
            }
            let (asked, cards) = (&mut self.freebsd.asked, &self.cards);
            poller.netisr_poll(now, &mut |id: DeviceId, command, count| {
                let card = id.0 as usize;
                asked.push_back(PollRequest(card, command, count));
                // Few more packets come while these are taken.
                cards[card].rx_ring.len().min(count.into()) as u32
            });
        }
        if let Some((burst, limit)) = cycle {
            self.tally.cycles.begin(burst, limit);
        }
        self.next_look(self.host.cpu.netisr_ns);
    }

    /// Looks at the next card that the poller asked for, or continues with the protocols. `round_ns` is the round's
    /// own work, added to its first look.
    fn next_look(&mut self, round_ns: u64) {
        if let Some(asked) = self.freebsd.asked.pop_front() {
            return self.look_at_card(Level::Soft, asked, round_ns);
        }
        self.cpu.batches[Level::Soft as usize].left = 0;
        self.next_protocol();
    }

    pub fn look_at_card(&mut self, level: Level, asked: PollRequest, round_ns: u64) {
        let PollRequest(card, command, count) = asked;
        let status_ns = match command {
            Command::PollOnly => 0,
            Command::PollAndCheckStatus => self.host.card.status_ns,
        };
        self.tally.cycles.asked += u64::from(count);
        self.cpu.begin_batch(level, card, count.into());
        let cost_ns = round_ns + self.host.card.poll_ns + status_ns;
        self.cpu.start(level, CpuStep::Look, cost_ns);
    }

    pub fn netisr_done(&mut self, step: CpuStep) {
        if step == CpuStep::Protocol {
            self.take_from_ip_queue(Level::Soft);
            self.next_protocol();
        } else if !self.card_step_done(Level::Soft, step) {
            self.next_look(0);
        }
    }

    fn next_protocol(&mut self) {
        if self.output_next(Level::Soft) {
            return;
        }
        match self.next_protocol_ns() {
            Some(cost_ns) => self.cpu.start(Level::Soft, CpuStep::Protocol, cost_ns),
            None => self.end_netisr(),
        }
    }

    fn end_netisr(&mut self) {
        let now = Time::from_ns(self.now_ns);
        let runs_again = self.freebsd.poller.as_mut().is_some_and(|poller| {
            // A tick may have come after the last look at the poller. Its cycle polls before it accounts (`swi_net`).
            let begins = poller.state().poll_scheduled;
            begins || poller.netisr_pollmore(now) || poller.state().poll_scheduled
        });
        if runs_again {
            return self.begin_netisr();
        }
        self.cpu.stop(Level::Soft);
        if !self.cpu.has_work(Level::Idle) {
            self.next_idle_poll();
        }
    }

    /// Polls when nothing else runs: without end if `idle_poll` is on, or else what waits after a cycle, if the
    /// controller takes time that nobody claims.
    pub fn next_idle_poll(&mut self) {
        let Some(poller) = &mut self.freebsd.poller else {
            return;
        };
        let all = &mut self.freebsd.asked_idle;
        if all.is_empty() {
            let mut ask = |id: DeviceId, command, count| {
                all.push_back(PollRequest(id.0 as usize, command, count));
                // The controller learns nothing from the idle thread.
                0
            };
            let until = poller.unclaimed_until(Time::from_ns(self.timers.tick_ns()));
            if poller.read(Knob::IdlePoll) != 0 {
                poller.idle_poll(&mut ask);
            } else if self.now_ns < until.ns()
                && self.cards.iter().any(|card| !card.rx_ring.is_empty())
            {
                poller.poll_unclaimed(&mut ask);
            }
        }
        match all.pop_front() {
            Some(asked) => self.look_at_card(Level::Idle, asked, 0),
            None => self.cpu.stop(Level::Idle),
        }
    }

    pub fn idle_poll_done(&mut self, step: CpuStep) {
        if !self.card_step_done(Level::Idle, step) {
            self.next_idle_poll();
        }
    }
}
