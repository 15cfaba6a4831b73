//! The processor of a machine: which level runs, for how long, and what its time counts as; its clock, and the timers
//! of events that no level causes.
//!
//! Each level does one step at a time. The highest level that has a step runs; one that gets a step preempts lower
//! ones, which continue later. Switching to another thread costs time; entering an interrupt is part of the
//! interrupt's step.
//!
//! A preempted thread finds its code and data evicted from the caches when it continues, and pays the cache-related
//! preemption delay once for all that ran in between. Other threads and software interrupts evict; a hard interrupt
//! (a clock tick, a handler that wakes a thread) touches a few dozen lines, and its own cost includes them. A thread
//! that wakes after others have run finds cold caches too; that cost is a separate number, since a host may include
//! it in the switch.
//!
//! Guarantees that time adds up: every nanosecond belongs to a level or is idle, and a thread never has more than one
//! refill pending.

#[cfg(test)]
mod tests;

use nicpoll_core::NS_PER_SECOND;

use crate::source::NEVER;
use crate::spec::host::{self, HostModel};

/// Who can run, the highest priority first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// Hard interrupts.
    Hard,
    /// The card's interrupt thread.
    InterruptThread,
    /// Software interrupts.
    Soft,
    /// Kernel threads.
    Kernel,
    /// ksoftirqd, a thread that takes turns with the program.
    SoftThread,
    /// The program.
    Program,
    /// Idle polling, when nothing else runs.
    #[default]
    Idle,
}

pub const LEVELS: usize = 7;
pub const BY_NUMBER: [Level; LEVELS] = [
    Level::Hard,
    Level::InterruptThread,
    Level::Soft,
    Level::Kernel,
    Level::SoftThread,
    Level::Program,
    Level::Idle,
];

/// A step of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuStep {
    /// The clock interrupts.
    Tick,
    /// A card interrupts.
    CardInterrupt,
    /// The deferral timer interrupts.
    Timer,
    /// The driver looks at the card.
    #[default]
    Look,
    /// Sent packets are cleared from the transmit ring, and waiting ones take their place.
    Reclaim {
        /// Descriptors to clear.
        done: u64,
    },
    /// The interrupt thread ends a pass.
    Rearm,
    /// A packet is taken from the card.
    Receive,
    /// A packet goes from the IP queue to its socket.
    Protocol,
    /// An interrupt's background work.
    Background,
    /// ksoftirqd wakes.
    Wake,
    /// A program of the other processor is woken.
    WakeOther,
    /// A packet goes out to the driver, with the work of making it if the kernel makes it.
    Transmit,
    /// The program reads a packet.
    Read,
    /// The program reads the clock.
    Clock,
    /// The program works on the packet that it read.
    Use,
    /// The program calls to send a packet.
    Call,
    /// The program polls the clock.
    Spin,
}

/// The CPU state that time counts as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeState {
    User,
    System,
    Interrupt,
    SoftInterrupt,
    #[default]
    Idle,
}

const STATES: usize = 5;

impl TimeState {
    /// Returns the state that a step of a level counts as.
    fn of(level: Level, step: CpuStep) -> TimeState {
        match level {
            Level::Hard | Level::InterruptThread => TimeState::Interrupt,
            Level::Soft => TimeState::SoftInterrupt,
            Level::Program if step == CpuStep::Use => TimeState::User,
            Level::Kernel | Level::SoftThread | Level::Program | Level::Idle => TimeState::System,
        }
    }
}

const fn bit(level: Level) -> u8 {
    1 << level as u8
}

/// Time by state, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times([u64; STATES]);

impl Times {
    pub fn of(&self, state: TimeState) -> u64 {
        self.0[state as usize]
    }

    pub fn add(&mut self, state: TimeState, time: u64) {
        self.0[state as usize] += time;
    }

    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    step: CpuStep,
    state: TimeState,
    /// Time left, with the switch and the refill that come before its work.
    remaining_ns: u64,
}

/// The packets that a level takes from a card in one go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batch {
    /// The card.
    pub card: usize,
    /// Packets that may still be taken.
    pub left: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Cpu {
    /// Pending hard interrupts, a bit for each, and the one being served.
    pending: u32,
    pub served: u32,
    /// Interrupts whose background work waits.
    pub background: u64,
    /// The batch of each level.
    pub batches: [Batch; LEVELS],
    slots: [Slot; LEVELS],
    /// A bit for each level that has a step.
    runnable: u8,
    /// A bit for each level whose thread was preempted, and whose cache contents others have evicted since.
    displaced: u8,
    /// A bit for each level that has ended its work, and whose cache contents others have evicted since.
    cold: u8,
    /// A bit for each level whose step has a refill before its work.
    refilling: u8,
    /// Work left of that step when the refill was added.
    work_ns: [u64; LEVELS],
    /// The thread that runs, or that an interrupt has interrupted.
    pub thread: Level,
    context_switch_ns: u64,
    refill_ns: u64,
    wake_refill_ns: u64,
    /// A bit for each level that can lose cache contents when preempted (all but the idle thread), and after its work
    /// (neither the idle thread nor hard interrupts); none where the refill is free.
    with_caches: u8,
    with_caches_asleep: u8,
    /// Whether software interrupts have a thread of their own (FreeBSD) or borrow whatever thread they
    /// interrupt (Linux).
    soft_is_thread: bool,
    /// Whether the program runs when ksoftirqd has work, too.
    pub is_programs_turn: bool,
    /// Whether ksoftirqd is in a softirq, which the scheduler does not preempt.
    pub is_soft_thread_held: bool,
    pub times: Times,
    pub switches: u64,
}

impl Cpu {
    pub fn new(host: &host::Cpu, soft_is_thread: bool) -> Self {
        Cpu {
            context_switch_ns: host.context_switch_ns,
            refill_ns: host.refill_ns,
            wake_refill_ns: host.wake_refill_ns,
            with_caches: match host.refill_ns {
                0 => 0,
                _ => !bit(Level::Idle),
            },
            with_caches_asleep: match host.wake_refill_ns {
                0 => 0,
                _ => !bit(Level::Idle) & !bit(Level::Hard),
            },
            soft_is_thread,
            is_programs_turn: true,
            ..Cpu::default()
        }
    }

    /// Lets a level take up to `left` packets from a card.
    pub fn begin_batch(&mut self, level: Level, card: usize, left: u64) {
        self.batches[level as usize] = Batch { card, left };
    }

    /// Makes a hard interrupt pending.
    pub fn raise(&mut self, source: u32) {
        self.pending |= source;
    }

    /// Begins to serve the first pending hard interrupt; `None` when there is none.
    pub fn serve_next(&mut self) -> Option<u32> {
        if self.pending == 0 {
            return None;
        }
        let source = self.pending & self.pending.wrapping_neg();
        self.pending &= !source;
        self.served = source;
        Some(source)
    }

    /// Adds an interrupt's work for later, unless `events_max` wait already. Returns whether it did.
    pub fn cause_background(&mut self, events_max: u64) -> bool {
        let has_room = self.background < events_max;
        self.background += u64::from(has_room);
        has_room
    }

    /// Lets ksoftirqd and the program take turns at a tick, if both have work.
    pub fn take_turns(&mut self) {
        if self.has_work(Level::SoftThread) && self.has_work(Level::Program) {
            self.is_programs_turn = !self.is_programs_turn;
        }
    }

    /// Gives a level its next step.
    pub fn start(&mut self, level: Level, step: CpuStep, cost_ns: u64) {
        self.slots[level as usize] = Slot {
            step,
            state: TimeState::of(level, step),
            remaining_ns: cost_ns,
        };
        self.runnable |= bit(level);
        self.refilling &= !bit(level);
    }

    /// Adds a thread switch to the step just given to a level.
    pub fn switch_within(&mut self, level: Level) {
        self.switches += 1;
        self.slots[level as usize].remaining_ns += self.context_switch_ns;
    }

    /// Ends the level's work.
    pub fn stop(&mut self, level: Level) {
        self.runnable &= !bit(level);
    }

    pub fn has_work(&self, level: Level) -> bool {
        self.runnable & bit(level) != 0
    }

    /// Switches to the level that runs now. Returns it, and how long its step still takes; `None` when idle.
    pub fn dispatch(&mut self) -> Option<(Level, u64)> {
        let Some(level) = self.first_of(self.runnable) else {
            if self.thread != Level::Idle {
                self.switch_to(Level::Idle);
            }
            return None;
        };
        // A hard interrupt borrows the thread that it interrupts, and leaves it its caches.
        if level == Level::Soft && !self.soft_is_thread {
            self.displace();
            self.warm(level);
        } else if level != Level::Hard {
            self.warm(level);
            if self.displaced & bit(level) != 0 {
                self.refill(level);
            }
            if self.thread != level {
                self.displace();
                self.switch_to(level);
            }
        }
        Some((level, self.slots[level as usize].remaining_ns))
    }

    /// Returns the highest of some levels; of ksoftirqd and the program the one whose turn it is.
    fn first_of(&self, levels: u8) -> Option<Level> {
        if levels == 0 {
            return None;
        }
        let level = BY_NUMBER[levels.trailing_zeros() as usize];
        let programs_turn = self.is_programs_turn && !self.is_soft_thread_held;
        if level == Level::SoftThread && programs_turn && self.has_work(Level::Program) {
            return Some(Level::Program);
        }
        Some(level)
    }

    /// Evicts the cache contents of the thread that ran last, unless its work is done.
    fn displace(&mut self) {
        self.displaced |= self.runnable & bit(self.thread) & self.with_caches;
    }

    /// Lets a level run: it evicts the cache contents of levels without work, and refills its own if it has lost
    /// them.
    fn warm(&mut self, level: Level) {
        if self.with_caches_asleep & bit(level) == 0 {
            return;
        }
        self.cold |= self.with_caches_asleep & !self.runnable;
        if self.cold & bit(level) != 0 {
            self.cold &= !bit(level);
            self.slots[level as usize].remaining_ns += self.wake_refill_ns;
        }
    }

    fn switch_to(&mut self, level: Level) {
        self.thread = level;
        self.switches += 1;
        if level != Level::Idle {
            self.slots[level as usize].remaining_ns += self.context_switch_ns;
        }
    }

    /// Adds the refill of a preempted thread that continues.
    fn refill(&mut self, level: Level) {
        self.displaced &= !bit(level);
        let left_ns = self.slots[level as usize].remaining_ns;
        // A thread preempted again during its refill has no more to fetch than at first.
        let is_refilling = self.refilling & bit(level) != 0;
        let work_ns = if is_refilling {
            self.work_ns[level as usize].min(left_ns)
        } else {
            left_ns
        };
        self.refilling |= bit(level);
        self.work_ns[level as usize] = work_ns;
        let to_fetch_ns = self.refill_ns.saturating_sub(left_ns - work_ns);
        self.slots[level as usize].remaining_ns += to_fetch_ns;
    }

    /// Runs the level's step for `ns`.
    pub fn run(&mut self, level: Level, ns: u64) {
        let slot = &mut self.slots[level as usize];
        slot.remaining_ns -= ns;
        self.times.0[slot.state as usize] += ns;
    }

    /// Returns the state that a look sees which cannot see hard interrupts.
    pub fn seen_state(&self) -> TimeState {
        let seen = self.first_of(self.runnable & !bit(Level::Hard));
        seen.map_or(TimeState::Idle, |level| self.slots[level as usize].state)
    }

    /// Adds idle time.
    pub fn idle(&mut self, ns: u64) {
        self.times.0[TimeState::Idle as usize] += ns;
    }

    /// Returns the level's step.
    pub fn step(&self, level: Level) -> CpuStep {
        self.slots[level as usize].step
    }
}

const MILLION: u128 = 1_000_000;

/// A host's clock. Two clocks drift apart by exactly what their host files say, however long the run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Delay of all ticks: the first comes this long after the first period.
    phase_ns: u64,
    /// Ticks scheduled so far.
    ticks: u64,
    /// Ticks that the processor has handled.
    pub tick: u64,
    hz: u64,
    slow_ppm: u64,
}

impl Clock {
    pub fn new(host: &HostModel, phase_ns: u64) -> Self {
        Clock {
            phase_ns,
            ticks: 0,
            tick: 0,
            hz: host.cpu.hz,
            slow_ppm: host.cpu.tick_slow_ppm,
        }
    }

    /// Returns when the next tick comes.
    pub fn next_ns(&mut self) -> u64 {
        self.ticks += 1;
        let parts = MILLION + u128::from(self.slow_ppm);
        let since = u128::from(self.ticks) * u128::from(NS_PER_SECOND) * parts;
        let since_ns = since / (u128::from(self.hz) * MILLION);
        // A run ends long before 2^64 nanoseconds.
        self.phase_ns.saturating_add(since_ns as u64)
    }
}

/// The sampling CPU account that `top` and `vmstat` show: a clock looks at what the processor does, and each look
/// counts the same (`statclock`). A look takes no time of its own: the cost of a tick includes it.
///
/// A look during a hard interrupt waits for its end, and sees what it interrupted: the time of hard interrupts is
/// never seen. When the looking tick also wakes the poller, the look comes first, and polling that ends before the
/// next tick is never seen either.
#[derive(Clone, Debug)]
pub struct SampledCpu {
    /// Looks a second of its own clock; 0 when each tick looks.
    pub hz: u64,
    /// Looks of its own clock scheduled so far.
    set: u64,
    /// Looks, by the state they saw.
    pub seen: Times,
}

impl SampledCpu {
    pub fn new(hz: u64) -> Self {
        SampledCpu {
            hz,
            set: 0,
            seen: Times::default(),
        }
    }

    /// Returns when its own clock looks next; [`NEVER`] without one.
    pub fn next_ns(&mut self) -> u64 {
        if self.hz == 0 {
            return NEVER;
        }
        self.set += 1;
        // A run ends long before 2^64 nanoseconds.
        (u128::from(self.set) * u128::from(NS_PER_SECOND) / u128::from(self.hz)) as u64
    }

    /// Looks at what the processor does.
    pub fn look(&mut self, cpu: &Cpu) {
        self.seen.add(cpu.seen_state(), 1);
    }
}

/// A card's timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The far end sends a packet.
    Offer,
    /// A frame reaches the card.
    Arrival,
    /// The card may interrupt again.
    Moderation,
    /// The deferral timer of its NAPI.
    Deferral,
    /// A frame has left the card.
    Sent,
    /// The processor turns to programs that another one woke.
    Woken,
}

const SAMPLE: usize = 0;
const TICK: usize = 1;
const FIRST_CARD: usize = 2;
const EACH: usize = 6;
const IN_ORDER: [Of; EACH] = [
    Of::Offer,
    Of::Arrival,
    Of::Moderation,
    Of::Deferral,
    Of::Sent,
    Of::Woken,
];

/// A timer that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueTimer {
    Sample,
    Tick,
    Card(usize, Of),
}

/// The timers of a machine. There is one for each source of events, so no list has to be kept in order. At the same
/// time the sampling look comes first, then the tick, then the cards in their order, each in the order of [`Of`].
#[derive(Clone, Debug)]
pub struct Timers {
    /// The look, the tick, then each card's.
    due_ns: Vec<u64>,
    /// Index of the earliest.
    first: usize,
}

impl Timers {
    pub fn new(cards: usize) -> Self {
        Timers {
            due_ns: vec![NEVER; FIRST_CARD + cards * EACH],
            first: 0,
        }
    }

    /// Returns when the earliest is due, and which it is.
    pub fn first(&self) -> (u64, DueTimer) {
        let due = match self.first.checked_sub(FIRST_CARD) {
            None if self.first == SAMPLE => DueTimer::Sample,
            None => DueTimer::Tick,
            Some(index) => DueTimer::Card(index / EACH, IN_ORDER[index % EACH]),
        };
        (self.due_ns[self.first], due)
    }

    pub fn first_ns(&self) -> u64 {
        self.due_ns[self.first]
    }

    pub fn tick_ns(&self) -> u64 {
        self.due_ns[TICK]
    }

    pub fn set_tick(&mut self, ns: u64) {
        self.set_at(TICK, ns);
    }

    pub fn set_sample(&mut self, ns: u64) {
        self.set_at(SAMPLE, ns);
    }

    pub fn set(&mut self, card: usize, of: Of, ns: u64) {
        self.set_at(FIRST_CARD + card * EACH + of as usize, ns);
    }

    pub fn clear(&mut self, card: usize, of: Of) {
        self.set(card, of, NEVER);
    }

    pub fn is_set(&self, card: usize, of: Of) -> bool {
        self.due_ns[FIRST_CARD + card * EACH + of as usize] != NEVER
    }

    fn set_at(&mut self, index: usize, ns: u64) {
        self.due_ns[index] = ns;
        if index == self.first {
            self.first = 0;
            for other in 1..self.due_ns.len() {
                if self.due_ns[other] < self.due_ns[self.first] {
                    self.first = other;
                }
            }
        } else if (ns, index) < (self.due_ns[self.first], self.first) {
            self.first = index;
        }
    }
}
