//! The processor of a machine: which level runs, for how long, and what its time counts as; its clock, and the timers
//! of whatever happens by itself.
//!
//! Each level does one step at a time. The highest level that has a step runs; a higher one that gets a step preempts it,
//! and it continues later. Switching to another thread costs time; entering an interrupt is part of the interrupt's step.
//!
//! A preempted thread finds its code and data evicted from the caches when it continues, and pays the cache-related
//! preemption delay once for all that ran in between. Other threads and software interrupts evict; a hard interrupt (a
//! clock tick, a handler that wakes a thread) touches a few dozen lines, and its own cost includes them. A thread that
//! wakes after others have run finds cold caches too; that cost is a separate number, since a host may have it in the
//! cost of the switch.
//!
//! Guarantees that time adds up: every nanosecond belongs to a level or is idle, and a thread never has more than one
//! refill pending.

#[cfg(test)]
mod tests;

use crate::spec::host::{self, HostModel};

/// Who can have the processor, the highest first.
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
    /// ksoftirqd: a thread like the program's, which takes turns with it.
    SoftThread,
    /// The program.
    Program,
    /// What runs when there is nothing else: idle polling.
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

/// What a level does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Step {
    /// The clock interrupts.
    Tick,
    /// A card interrupts.
    CardInterrupt,
    /// The deferral timer interrupts.
    Timer,
    /// The card is looked at.
    #[default]
    Look,
    /// What was sent is cleared from the transmit ring, and what waits takes its place.
    Reclaim {
        /// Descriptors to clear.
        done: u64,
    },
    /// The interrupt thread ends a pass.
    Rearm,
    /// A packet is taken from the card.
    Receive,
    /// A packet is taken from the IP queue up to its socket.
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
    /// The program reads the clock over and over.
    Spin,
}

/// What time counts as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    User,
    System,
    Interrupt,
    SoftInterrupt,
    #[default]
    Idle,
}

const STATES: usize = 5;

impl State {
    /// What a step of a level counts as.
    fn of(level: Level, step: Step) -> State {
        match level {
            Level::Hard | Level::InterruptThread => State::Interrupt,
            Level::Soft => State::SoftInterrupt,
            Level::Program if step == Step::Use => State::User,
            Level::Kernel | Level::SoftThread | Level::Program | Level::Idle => State::System,
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
    pub fn of(&self, state: State) -> u64 {
        self.0[state as usize]
    }

    pub fn add(&mut self, state: State, time: u64) {
        self.0[state as usize] += time;
    }

    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    step: Step,
    state: State,
    /// What is left of it, with the switch and the refill that come before its work.
    remaining_ns: u64,
}

/// What a level takes from a card in one go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batch {
    /// The card.
    pub card: usize,
    /// Packets that may still be taken.
    pub left: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Cpu {
    /// Hard interrupts that wait, a bit for each, and the one that is served.
    pending: u32,
    pub served: u32,
    /// Interrupts whose background work waits.
    pub background: u64,
    /// What each level still takes from a card.
    pub batches: [Batch; LEVELS],
    slots: [Slot; LEVELS],
    /// A bit for each level that has a step.
    runnable: u8,
    /// A bit for each level whose thread was preempted, and whose caches others have had since.
    displaced: u8,
    /// A bit for each level that has ended its work, and whose caches others have had since.
    cold: u8,
    /// A bit for each level whose step had a refill put before it.
    refilling: u8,
    /// What was left of that step's work then.
    work_ns: [u64; LEVELS],
    /// The thread that runs, or that an interrupt has interrupted.
    pub thread: Level,
    context_switch_ns: u64,
    refill_ns: u64,
    wake_refill_ns: u64,
    /// A bit for each level that has something to lose in the caches when it is preempted, and when it has ended its
    /// work: all but the idle thread's, and hard interrupts.
    with_caches: u8,
    with_caches_asleep: u8,
    /// Whether software interrupts have a thread of their own (FreeBSD) or borrow whatever thread they
    /// interrupt (Linux).
    soft_is_thread: bool,
    /// Whose turn it is when ksoftirqd and the program both have work.
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

    /// A level may take so many packets from a card.
    pub fn begin_batch(&mut self, level: Level, card: usize, left: u64) {
        self.batches[level as usize] = Batch { card, left };
    }

    /// A hard interrupt waits from now on.
    pub fn raise(&mut self, source: u32) {
        self.pending |= source;
    }

    /// The first hard interrupt that waits is served from now on; `None` when none waits.
    pub fn serve_next(&mut self) -> Option<u32> {
        if self.pending == 0 {
            return None;
        }
        let source = self.pending & self.pending.wrapping_neg();
        self.pending &= !source;
        self.served = source;
        Some(source)
    }

    /// An interrupt causes work for later, unless so many wait already. Whether it does.
    pub fn cause_background(&mut self, events_max: u64) -> bool {
        let has_room = self.background < events_max;
        self.background += u64::from(has_room);
        has_room
    }

    /// A tick: ksoftirqd and the program, when both have work, take turns.
    pub fn take_turns(&mut self) {
        if self.has_work(Level::SoftThread) && self.has_work(Level::Program) {
            self.is_programs_turn = !self.is_programs_turn;
        }
    }

    /// Gives a level its next step.
    pub fn start(&mut self, level: Level, step: Step, cost_ns: u64) {
        self.slots[level as usize] = Slot {
            step,
            state: State::of(level, step),
            remaining_ns: cost_ns,
        };
        self.runnable |= bit(level);
        self.refilling &= !bit(level);
    }

    /// The step just given to a level is another thread's than the level's last one.
    pub fn switch_within(&mut self, level: Level) {
        self.switches += 1;
        self.slots[level as usize].remaining_ns += self.context_switch_ns;
    }

    /// The level has nothing to do.
    pub fn stop(&mut self, level: Level) {
        self.runnable &= !bit(level);
    }

    pub fn has_work(&self, level: Level) -> bool {
        self.runnable & bit(level) != 0
    }

    /// Who runs now, and how long its step still takes; `None` when nobody does. Switches to it.
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

    /// The highest of some levels; of ksoftirqd and the program the one whose turn it is.
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

    /// The thread that ran last loses its caches, unless it is done.
    fn displace(&mut self) {
        self.displaced |= self.runnable & bit(self.thread) & self.with_caches;
    }

    /// A level runs: those that have nothing to do lose their caches to it, and it fetches its own if it has lost them.
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

    /// A preempted thread continues.
    fn refill(&mut self, level: Level) {
        self.displaced &= !bit(level);
        let left_ns = self.slots[level as usize].remaining_ns;
        // Preempted once more while it fetches, a thread has no more to fetch than at first.
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

    /// The level's step runs for some of its time.
    pub fn run(&mut self, level: Level, ns: u64) {
        let slot = &mut self.slots[level as usize];
        slot.remaining_ns -= ns;
        self.times.0[slot.state as usize] += ns;
    }

    /// What a look at the processor sees that does not see hard interrupts.
    pub fn seen_state(&self) -> State {
        let seen = self.first_of(self.runnable & !bit(Level::Hard));
        seen.map_or(State::Idle, |level| self.slots[level as usize].state)
    }

    /// Nobody runs.
    pub fn idle(&mut self, ns: u64) {
        self.times.0[State::Idle as usize] += ns;
    }

    /// What the level is doing.
    pub fn step(&self, level: Level) -> Step {
        self.slots[level as usize].step
    }
}

const NS_PER_SECOND: u64 = 1_000_000_000;
const MILLION: u128 = 1_000_000;

/// When a host's clock ticks. Two clocks drift apart by exactly what their host files say, however long the run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// When the first tick comes, after the first period.
    phase_ns: u64,
    /// Ticks that were set.
    ticks: u64,
    /// Ticks that the processor has seen.
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

    /// When the next tick comes.
    pub fn next_ns(&mut self) -> u64 {
        self.ticks += 1;
        let parts = MILLION + u128::from(self.slow_ppm);
        let since = u128::from(self.ticks) * u128::from(NS_PER_SECOND) * parts;
        let since_ns = since / (u128::from(self.hz) * MILLION);
        // A run ends long before 2^64 nanoseconds.
        self.phase_ns.saturating_add(since_ns as u64)
    }
}

/// The CPU account that samples, as `top` and `vmstat` show it: a clock looks at what the processor does, and each look
/// counts as much as another (`statclock`). It changes nothing: the cost of a look is in the cost of a tick.
///
/// A look that comes while a hard interrupt is served waits for its end, so it sees what that interrupted: the time of
/// hard interrupts is never seen. When the tick that looks also wakes the poller, the look comes first, and polling
/// that ends before the next tick is never seen either.
#[derive(Clone, Debug)]
pub struct Sampling {
    /// Its own clock's looks a second; 0 when each tick looks.
    pub hz: u64,
    /// Looks of its own clock that were set.
    set: u64,
    /// Looks by what they saw.
    pub seen: Times,
}

impl Sampling {
    pub fn new(hz: u64) -> Self {
        Sampling {
            hz,
            set: 0,
            seen: Times::default(),
        }
    }

    /// When its own clock looks next; never without one.
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

/// Never.
pub const NEVER: u64 = u64::MAX;

/// A card's timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The far end hands over a packet.
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

/// Which timer is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    Sample,
    Tick,
    Card(usize, Of),
}

/// What is due when. There is one timer for each source of events, so no list has to be kept in order. At the same moment
/// the sampling look comes first, then the tick, then the cards in their order, each with the order of [`Of`].
#[derive(Clone, Debug)]
pub struct Timers {
    /// The look, the tick, then each card's.
    due_ns: Vec<u64>,
    /// The earliest.
    first: usize,
}

impl Timers {
    pub fn new(cards: usize) -> Self {
        Timers {
            due_ns: vec![NEVER; FIRST_CARD + cards * EACH],
            first: 0,
        }
    }

    /// The earliest, and when it is due.
    pub fn first(&self) -> (u64, Due) {
        let due = match self.first.checked_sub(FIRST_CARD) {
            None if self.first == SAMPLE => Due::Sample,
            None => Due::Tick,
            Some(index) => Due::Card(index / EACH, IN_ORDER[index % EACH]),
        };
        (self.due_ns[self.first], due)
    }

    pub fn first_ns(&self) -> u64 {
        self.due_ns[self.first]
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
