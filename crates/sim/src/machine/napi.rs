//! Linux's NAPI: `net_rx_action`, `__do_softirq`, ksoftirqd and the deferral of interrupts
//! (net/core/dev.c and kernel/softirq.c of 6.18).
//!
//! An interrupt masks the card and puts NAPI on the list. A softirq, on the way out of the interrupt,
//! polls it until the card is empty, or until packets or time of the pass are used up; after too much of
//! that ksoftirqd goes on, a thread that takes turns with the program.

use std::collections::VecDeque;

use nicpoll_model::sim::SimNapi;

use super::busy::BusyPoll;
use super::{Discipline, Link, Machine, NS_PER_SECOND, Of, Timer};
use crate::cpu::{Level, State, Step};
use crate::discipline::NapiOptions;
use crate::host::HostModel;

/// `MAX_SOFTIRQ_RESTART`: passes of one softirq.
const PASSES: u32 = 10;
/// `MAX_SOFTIRQ_TIME`: time after which a softirq does not begin another pass.
const SOFTIRQ_NS: u64 = 2_000_000;

#[derive(Clone, Debug)]
pub(crate) struct Napi {
    options: NapiOptions,
    /// The longest pass.
    budget_ns: u64,
    /// Cards whose NAPI is on the list; they are masked.
    list: VecDeque<usize>,
    softirq: Option<Softirq>,
    /// Empty polls until interrupts come back, for each card.
    deferred_left: Vec<u64>,
    /// Polling by the program.
    pub(super) busy: Option<BusyPoll>,
}

/// A softirq in progress.
#[derive(Clone, Copy, Debug)]
struct Softirq {
    passes_left: u32,
    ends_ns: u64,
    /// Of the pass.
    budget_left: u64,
    pass_ends_ns: u64,
    /// Packets of the poll.
    work: u64,
}

impl Napi {
    pub(crate) fn new(options: NapiOptions, host: &HostModel, cards: usize) -> Self {
        Napi {
            options,
            // netdev_budget_usecs is two ticks by default.
            budget_ns: options.budget_ns.unwrap_or(2 * NS_PER_SECOND / host.cpu.hz),
            list: VecDeque::new(),
            softirq: None,
            deferred_left: vec![0; cards],
            busy: options.busy.map(BusyPoll::new),
        }
    }

    pub(super) fn is_scheduled(&self, card: usize) -> bool {
        self.list.contains(&card)
    }

    fn waits(&self) -> bool {
        !self.list.is_empty() && self.softirq.is_none()
    }
}

fn state_of(level: Level) -> State {
    if level == Level::Soft {
        State::SoftInterrupt
    } else {
        State::System
    }
}

impl Discipline for Napi {
    const HAS_SOFT_THREAD: bool = false;

    /// The handler reads the cause.
    fn handler_ns(host: &HostModel) -> u64 {
        host.card.interrupt_ns
    }

    fn on_interrupt<L: Link>(machine: &mut Machine<Self, L>, card: usize) {
        machine.schedule_napi(card);
    }

    fn on_timer<L: Link>(machine: &mut Machine<Self, L>, timer: Timer) {
        match timer {
            Timer::Tick => machine.cpu.take_turns(),
            Timer::Deferral(card) => {
                machine.tally.napi.timer_polls += 1;
                machine.schedule_napi(card);
            }
        }
    }

    fn on_step<L: Link>(machine: &mut Machine<Self, L>, level: Level, step: Step) {
        machine.softirq_done(level, step);
    }

    fn on_interrupts_over<L: Link>(machine: &mut Machine<Self, L>) {
        machine.softirq_on_exit();
    }

    fn on_read<L: Link>(machine: &mut Machine<Self, L>, id: usize) {
        machine.busy_poll_or_read(id);
    }

    fn on_program_step<L: Link>(machine: &mut Machine<Self, L>, id: usize, step: Step) -> bool {
        machine.busy_poll_done(id, step)
    }

    fn napi<L: Link>(machine: &Machine<Self, L>) -> Option<SimNapi> {
        Some(machine.tally.napi)
    }
}

impl<L: Link> Machine<Napi, L> {
    pub(super) fn schedule_napi(&mut self, card: usize) {
        if !self.discipline.is_scheduled(card) {
            self.discipline.list.push_back(card);
        }
    }

    /// The way out of a hard interrupt (`irq_exit`): a softirq that waits runs, unless one is running.
    pub(super) fn softirq_on_exit(&mut self) {
        if self.discipline.waits() {
            self.begin_softirq(Level::Soft);
        }
    }

    fn begin_softirq(&mut self, level: Level) {
        let now_ns = self.now_ns;
        self.discipline.softirq = Some(Softirq {
            passes_left: PASSES,
            ends_ns: now_ns + SOFTIRQ_NS,
            budget_left: 0,
            pass_ends_ns: 0,
            work: 0,
        });
        self.cpu.is_soft_thread_held = level == Level::SoftThread;
        self.begin_pass(level);
    }

    fn begin_pass(&mut self, level: Level) {
        let now_ns = self.now_ns;
        let napi = &mut self.discipline;
        if let Some(softirq) = &mut napi.softirq {
            softirq.passes_left -= 1;
            softirq.budget_left = napi.options.budget;
            softirq.pass_ends_ns = now_ns + napi.budget_ns;
        }
        self.begin_poll(level);
    }

    fn begin_poll(&mut self, level: Level) {
        let napi = &mut self.discipline;
        if let Some(softirq) = &mut napi.softirq {
            softirq.work = 0;
        }
        let weight = napi.options.weight;
        let Some(card) = napi.list.front().copied() else {
            return;
        };
        self.cpu.begin_batch(level, card, weight);
        self.tally.napi.polls += 1;
        let cost_ns = self.host.card.poll_ns;
        self.cpu.start(level, Step::Look, cost_ns, state_of(level));
    }

    pub(super) fn softirq_done(&mut self, level: Level, step: Step) {
        match step {
            Step::Wake => return self.soft_thread_woke(),
            Step::Look if self.reclaim(level, state_of(level)) => return,
            Step::Reclaim { done } => self.reclaimed(level, done),
            Step::Transmit => self.output_done(level),
            Step::Receive => {
                self.take_from_card(level);
                if let Some(softirq) = &mut self.discipline.softirq {
                    softirq.work += 1;
                }
            }
            _ => {}
        }
        if self.receive_next(level, state_of(level)) {
            return;
        }
        self.end_merging(level);
        if !self.output_next(level, state_of(level)) {
            self.poll_done(level);
        }
    }

    fn poll_done(&mut self, level: Level) {
        let now_ns = self.now_ns;
        let napi = &mut self.discipline;
        let weight = napi.options.weight;
        let Some(softirq) = &mut napi.softirq else {
            return;
        };
        let work = softirq.work;
        softirq.budget_left = softirq.budget_left.saturating_sub(work);
        let is_over = softirq.budget_left == 0 || now_ns >= softirq.pass_ends_ns;
        // Where the program prefers to poll, the rest of a full poll is left to it.
        let is_complete = work < weight || napi.busy.is_some();
        // One that has more goes to the end of the list.
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

    /// `napi_complete_done`: NAPI is off the list. Interrupts come back, or the timer polls again.
    fn complete(&mut self, card: usize, work: u64) {
        let napi = &mut self.discipline;
        if let Some(deferral) = napi.options.deferral {
            let left = &mut napi.deferred_left[card];
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

    /// The program stops polling for now (`busy_poll_stop`).
    pub(super) fn leave_to_timer(&mut self, card: usize) {
        let napi = &mut self.discipline;
        if let Some(deferral) = napi.options.deferral {
            napi.deferred_left[card] = deferral.defer;
        }
        self.defer(card);
    }

    /// The timer is to poll, unless something else does before.
    fn defer(&mut self, card: usize) {
        let now_ns = self.now_ns;
        if let Some(deferral) = self.discipline.options.deferral {
            let due_ns = now_ns + deferral.timeout_ns + self.host.veth.timer_delay_ns;
            self.timers.set(card, Of::Deferral, due_ns);
        }
    }

    fn end_softirq(&mut self, level: Level) {
        self.discipline.softirq = None;
        self.cpu.is_soft_thread_held = false;
        self.cpu.stop(level);
    }

    /// Packets are left. Another pass follows, unless the softirq has had its time or somebody else is
    /// to run: then ksoftirqd goes on.
    fn pass_done_early(&mut self, level: Level) {
        let now_ns = self.now_ns;
        let is_rescheduled = self.is_rescheduled();
        let Some(softirq) = self.discipline.softirq else {
            return;
        };
        if softirq.passes_left > 0 && now_ns < softirq.ends_ns && !is_rescheduled {
            return self.begin_pass(level);
        }
        self.end_softirq(level);
        if level == Level::Soft {
            self.tally.napi.handovers += 1;
        }
        if !self.cpu.has_work(Level::SoftThread) {
            self.cpu
                .start(Level::SoftThread, Step::Wake, 0, State::System);
        }
    }

    /// Whether another thread than the one that runs, or was interrupted, is to run (`need_resched`).
    fn is_rescheduled(&self) -> bool {
        let programs_turn = self.cpu.is_programs_turn;
        if self.cpu.thread() == Level::Program {
            self.cpu.has_work(Level::SoftThread) && !programs_turn
        } else {
            self.cpu.has_work(Level::Program) && (self.cpu.thread() == Level::Idle || programs_turn)
        }
    }

    fn soft_thread_woke(&mut self) {
        if self.discipline.waits() {
            self.begin_softirq(Level::SoftThread);
        } else {
            self.cpu.stop(Level::SoftThread);
        }
    }
}
