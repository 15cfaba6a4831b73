//! Linux's NAPI: `net_rx_action`, `__do_softirq`, ksoftirqd and the deferral of interrupts
//! (net/core/dev.c and kernel/softirq.c of 6.18).
//!
//! An interrupt masks the card and puts NAPI on the list. A softirq, on the way out of the interrupt,
//! polls it until the card is empty, or until packets or time of the pass are used up; after too much of
//! that ksoftirqd goes on, a thread that takes turns with the program.

use super::{Machine, NS_PER_SECOND, Receive, Timer};
use crate::cpu::{Level, State, Step};
use crate::discipline::NapiOptions;
use crate::host::Host;

/// `MAX_SOFTIRQ_RESTART`: passes of one softirq.
const PASSES: u32 = 10;
/// `MAX_SOFTIRQ_TIME`: time after which a softirq does not begin another pass.
const SOFTIRQ_NS: u64 = 2_000_000;

#[derive(Clone, Debug)]
pub(super) struct Napi {
    options: NapiOptions,
    /// The longest pass.
    budget_ns: u64,
    /// Whether it is on the list, and its card masked.
    is_scheduled: bool,
    softirq: Option<Softirq>,
    /// Empty polls until interrupts come back.
    deferred_left: u64,
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
    pub(super) fn new(options: NapiOptions, host: &Host) -> Self {
        Napi {
            options,
            // netdev_budget_usecs is two ticks by default.
            budget_ns: options.budget_ns.unwrap_or(2 * NS_PER_SECOND / host.cpu.hz),
            is_scheduled: false,
            softirq: None,
            deferred_left: 0,
        }
    }

    pub(super) fn is_scheduled(&self) -> bool {
        self.is_scheduled
    }
}

fn state_of(level: Level) -> State {
    if level == Level::Soft {
        State::SoftInterrupt
    } else {
        State::System
    }
}

impl Machine {
    fn napi(&mut self) -> Option<&mut Napi> {
        match &mut self.receive {
            Receive::Napi(napi) => Some(napi),
            Receive::Threads(..) => None,
        }
    }

    pub(super) fn schedule_napi(&mut self) {
        if let Some(napi) = self.napi() {
            napi.is_scheduled = true;
        }
    }

    /// The way out of a hard interrupt (`irq_exit`): a softirq that waits runs, unless one is running.
    pub(super) fn softirq_on_exit(&mut self) {
        let waits = |napi: &mut Napi| napi.is_scheduled && napi.softirq.is_none();
        if self.napi().is_some_and(waits) {
            self.begin_softirq(Level::Soft);
        }
    }

    fn begin_softirq(&mut self, level: Level) {
        let now_ns = self.now_ns;
        if let Some(napi) = self.napi() {
            napi.softirq = Some(Softirq {
                passes_left: PASSES,
                ends_ns: now_ns + SOFTIRQ_NS,
                budget_left: 0,
                pass_ends_ns: 0,
                work: 0,
            });
        }
        self.cpu.is_soft_thread_held = level == Level::SoftThread;
        self.begin_pass(level);
    }

    fn begin_pass(&mut self, level: Level) {
        let now_ns = self.now_ns;
        if let Some(napi) = self.napi()
            && let Some(softirq) = &mut napi.softirq
        {
            softirq.passes_left -= 1;
            softirq.budget_left = napi.options.budget;
            softirq.pass_ends_ns = now_ns + napi.budget_ns;
        }
        self.begin_poll(level);
    }

    fn begin_poll(&mut self, level: Level) {
        let Some(napi) = self.napi() else {
            return;
        };
        if let Some(softirq) = &mut napi.softirq {
            softirq.work = 0;
        }
        self.left[level as usize] = napi.options.weight;
        self.tally.napi.polls += 1;
        let cost_ns = self.host.card.poll_ns;
        self.cpu.start(level, Step::Look, cost_ns, state_of(level));
    }

    pub(super) fn softirq_done(&mut self, level: Level, step: Step) {
        match step {
            Step::Wake => return self.soft_thread_woke(),
            Step::Look if self.reclaim(level, state_of(level)) => return,
            Step::Reclaim { done } => self.reclaimed(done),
            Step::Receive => {
                self.take_from_card();
                if let Some(softirq) = self.napi().and_then(|napi| napi.softirq.as_mut()) {
                    softirq.work += 1;
                }
            }
            _ => {}
        }
        if !self.receive_next(level, state_of(level)) {
            self.poll_done(level);
        }
    }

    fn poll_done(&mut self, level: Level) {
        let now_ns = self.now_ns;
        let Some(napi) = self.napi() else {
            return;
        };
        let weight = napi.options.weight;
        let Some(softirq) = &mut napi.softirq else {
            return;
        };
        let work = softirq.work;
        softirq.budget_left = softirq.budget_left.saturating_sub(work);
        let is_over = softirq.budget_left == 0 || now_ns >= softirq.pass_ends_ns;
        // Where the program prefers to poll, the rest of a full poll is left to it.
        let is_complete = work < weight || napi.options.busy.is_some();
        self.tally.napi.empty_polls += u64::from(work == 0);
        if is_complete {
            self.complete(work);
            self.end_softirq(level);
        } else if is_over {
            self.tally.napi.time_squeezes += 1;
            self.pass_done_early(level);
        } else {
            self.begin_poll(level);
        }
    }

    /// `napi_complete_done`: NAPI leaves the list. Interrupts come back, or the timer polls again.
    fn complete(&mut self, work: u64) {
        let Some(napi) = self.napi() else {
            return;
        };
        napi.is_scheduled = false;
        if let Some(deferral) = napi.options.deferral {
            if work > 0 {
                napi.deferred_left = deferral.defer;
            }
            if napi.deferred_left > 0 {
                napi.deferred_left -= 1;
                return self.defer();
            }
        }
        self.unmask();
    }

    /// The program stops polling for now (`busy_poll_stop`).
    pub(super) fn leave_to_timer(&mut self) {
        if let Some(napi) = self.napi()
            && let Some(deferral) = napi.options.deferral
        {
            napi.deferred_left = deferral.defer;
        }
        self.defer();
    }

    /// The timer is to poll, unless something else does before.
    fn defer(&mut self) {
        let now_ns = self.now_ns;
        if let Some(deferral) = self.napi().and_then(|napi| napi.options.deferral) {
            self.timers[Timer::Deferral as usize] = now_ns + deferral.timeout_ns;
        }
    }

    fn end_softirq(&mut self, level: Level) {
        if let Some(napi) = self.napi() {
            napi.softirq = None;
        }
        self.cpu.is_soft_thread_held = false;
        self.cpu.stop(level);
    }

    /// Packets are left. Another pass follows, unless the softirq has had its time or somebody else is
    /// to run: then ksoftirqd goes on.
    fn pass_done_early(&mut self, level: Level) {
        let now_ns = self.now_ns;
        let is_rescheduled = self.is_rescheduled();
        let Some(softirq) = self.napi().and_then(|napi| napi.softirq) else {
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
        let waits = |napi: &mut Napi| napi.is_scheduled && napi.softirq.is_none();
        if self.napi().is_some_and(waits) {
            self.begin_softirq(Level::SoftThread);
        } else {
            self.cpu.stop(Level::SoftThread);
        }
    }
}
