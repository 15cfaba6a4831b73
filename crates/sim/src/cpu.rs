//! The processor: who runs, for how long, and what that time counts as.
//!
//! Each level does one step at a time. The highest level that has a step runs; a higher one that gets a
//! step interrupts it, and it goes on where it was. Switching to another thread costs time; entering an
//! interrupt is part of the interrupt's own step.
//!
//! What must hold: time adds up. Every nanosecond is some level's or idle.

/// Who can have the processor, the highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
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
    Idle,
}

pub(crate) const LEVELS: usize = 7;
const BY_NUMBER: [Level; LEVELS] = [
    Level::Hard,
    Level::InterruptThread,
    Level::Soft,
    Level::Kernel,
    Level::SoftThread,
    Level::Program,
    Level::Idle,
];

/// What a level does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The clock interrupts.
    Tick,
    /// A card interrupts.
    CardInterrupt,
    /// The deferral timer interrupts.
    Timer,
    /// The card is looked at.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    User,
    System,
    Interrupt,
    SoftInterrupt,
    Idle,
}

const STATES: usize = 5;

/// Time by state, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times([u64; STATES]);

impl Times {
    pub(crate) fn of(&self, state: State) -> u64 {
        self.0[state as usize]
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().sum()
    }
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    step: Step,
    state: State,
    remaining_ns: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Cpu {
    slots: [Slot; LEVELS],
    /// A bit for each level that has a step.
    runnable: u8,
    /// The thread that runs or was interrupted last.
    thread: Level,
    context_switch_ns: u64,
    /// Whether software interrupts have a thread of their own (FreeBSD) or borrow whatever thread they
    /// interrupt (Linux).
    soft_is_thread: bool,
    /// Whose turn it is when ksoftirqd and the program both have work.
    pub(crate) is_programs_turn: bool,
    /// Whether ksoftirqd is in a softirq, out of which the scheduler does not take it.
    pub(crate) is_soft_thread_held: bool,
    pub(crate) times: Times,
    pub(crate) switches: u64,
}

impl Cpu {
    pub(crate) fn new(context_switch_ns: u64, soft_is_thread: bool) -> Self {
        let nothing = Slot {
            step: Step::Look,
            state: State::Idle,
            remaining_ns: 0,
        };
        Cpu {
            slots: [nothing; LEVELS],
            runnable: 0,
            thread: Level::Idle,
            context_switch_ns,
            soft_is_thread,
            is_programs_turn: true,
            is_soft_thread_held: false,
            times: Times::default(),
            switches: 0,
        }
    }

    /// Gives a level its next step.
    pub(crate) fn start(&mut self, level: Level, step: Step, cost_ns: u64, state: State) {
        self.slots[level as usize] = Slot {
            step,
            state,
            remaining_ns: cost_ns,
        };
        self.runnable |= 1 << level as u8;
    }

    /// The step just given to a level is another thread's than the level's last one.
    pub(crate) fn switch_within(&mut self, level: Level) {
        self.switches += 1;
        self.slots[level as usize].remaining_ns += self.context_switch_ns;
    }

    /// The level has nothing to do.
    pub(crate) fn stop(&mut self, level: Level) {
        self.runnable &= !(1 << level as u8);
    }

    pub(crate) fn has_work(&self, level: Level) -> bool {
        self.runnable & (1 << level as u8) != 0
    }

    /// The thread that runs, or that an interrupt has interrupted.
    pub(crate) fn thread(&self) -> Level {
        self.thread
    }

    /// Who runs now, and how long its step still takes; `None` when nobody does. Switches to it.
    pub(crate) fn dispatch(&mut self) -> Option<(Level, u64)> {
        if self.runnable == 0 {
            self.switch_to(Level::Idle);
            return None;
        }
        let mut level = BY_NUMBER[self.runnable.trailing_zeros() as usize];
        let programs_turn = self.is_programs_turn && !self.is_soft_thread_held;
        if level == Level::SoftThread && programs_turn && self.has_work(Level::Program) {
            level = Level::Program;
        }
        let borrows = level == Level::Hard || (level == Level::Soft && !self.soft_is_thread);
        if !borrows && self.switch_to(level) && level != Level::Idle {
            self.slots[level as usize].remaining_ns += self.context_switch_ns;
        }
        Some((level, self.slots[level as usize].remaining_ns))
    }

    fn switch_to(&mut self, level: Level) -> bool {
        let switches = self.thread != level;
        if switches {
            self.thread = level;
            self.switches += 1;
        }
        switches
    }

    /// The level's step runs for some of its time.
    pub(crate) fn run(&mut self, level: Level, ns: u64) {
        let slot = &mut self.slots[level as usize];
        slot.remaining_ns -= ns;
        self.times.0[slot.state as usize] += ns;
    }

    /// Nobody runs.
    pub(crate) fn idle(&mut self, ns: u64) {
        self.times.0[State::Idle as usize] += ns;
    }

    /// What the level is doing.
    pub(crate) fn step(&self, level: Level) -> Step {
        self.slots[level as usize].step
    }
}
