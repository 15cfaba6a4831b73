//! The variables under `kern.polling`: their names, their values, and the errors of the original.

use core::fmt;

/// Why the original refuses: its error numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    /// The knob can only be read (EPERM).
    Eperm,
    /// No such knob, or no such device in the list (ENOENT).
    Enoent,
    /// The device is in the list (EEXIST).
    Eexist,
    /// The list is full (ENOMEM).
    Enomem,
    /// The value is out of range (EINVAL).
    Einval,
}

impl Errno {
    /// The name of the error, such as `EINVAL`.
    pub const fn name(self) -> &'static str {
        match self {
            Errno::Eperm => "EPERM",
            Errno::Enoent => "ENOENT",
            Errno::Eexist => "EEXIST",
            Errno::Enomem => "ENOMEM",
            Errno::Einval => "EINVAL",
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl core::error::Error for Errno {}

/// Whether a knob can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// `CTLFLAG_RD`.
    ReadOnly,
    /// `CTLFLAG_RW`.
    ReadWrite,
}

macro_rules! knobs {
    ($($(#[$meta:meta])* $variant:ident $name:literal $access:ident,)*) => {
        /// A variable under `kern.polling`, sysctl(8).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Knob {
            $($(#[$meta])* $variant,)*
        }

        impl Knob {
            /// All of them, in the order of the original's source.
            pub const ALL: &'static [Knob] = &[$(Knob::$variant,)*];

            /// Its name, without `kern.polling.` before it.
            pub const fn name(self) -> &'static str {
                match self { $(Knob::$variant => $name,)* }
            }

            /// Whether it can be written.
            pub const fn access(self) -> Access {
                match self { $(Knob::$variant => Access::$access,)* }
            }
        }
    };
}

knobs! {
    /// Packets that each device may move in this cycle.
    Burst "burst" ReadOnly,
    /// The most that `burst` grows to; 10 to 20000.
    BurstMax "burst_max" ReadWrite,
    /// The most packets of one call; 1 to `burst_max`.
    EachBurst "each_burst" ReadWrite,
    /// Whether to poll when the processor is idle; not 0 for yes.
    IdlePoll "idle_poll" ReadWrite,
    /// Per cent of the processor that are user programs'; 0 to 99.
    UserFrac "user_frac" ReadWrite,
    /// Every how many cycles devices check their status; 1 to hz.
    RegFrac "reg_frac" ReadWrite,
    /// Ticks less than half a period after the one before.
    ShortTicks "short_ticks" ReadOnly,
    /// Ticks that came while an earlier one's work was not done.
    LostPolls "lost_polls" ReadOnly,
    /// Ticks whose work is not done.
    PendingPolls "pending_polls" ReadOnly,
    /// Packets of this cycle's burst not requested from a device yet.
    ResidualBurst "residual_burst" ReadOnly,
    /// Devices in the list.
    Handlers "handlers" ReadOnly,
    /// Where in a cycle it is: 0 idle, 1 a tick schedules, 2 scheduled, 3 polling, 4 polled, 5
    /// accounting or between chunks, 6 catching up.
    Phase "phase" ReadOnly,
    /// Ticks that found the last one's cycle scheduled but not begun.
    Suspect "suspect" ReadOnly,
    /// Times that more than 100 ticks were pending and were given up.
    Stalled "stalled" ReadOnly,
    /// Whether the idle thread sleeps.
    IdlepollSleeping "idlepoll_sleeping" ReadOnly,
}

impl Knob {
    /// The knob of a name, with or without `kern.polling.` before it.
    pub fn from_name(name: &str) -> Option<Knob> {
        let name = name.strip_prefix("kern.polling.").unwrap_or(name);
        Knob::ALL.iter().copied().find(|knob| knob.name() == name)
    }
}

/// Every variable under `kern.polling`, with those that the original keeps to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// [`Knob::Burst`].
    pub burst: u32,
    /// [`Knob::BurstMax`].
    pub burst_max: u32,
    /// [`Knob::EachBurst`].
    pub each_burst: u32,
    /// [`Knob::IdlePoll`].
    pub idle_poll: u32,
    /// [`Knob::UserFrac`].
    pub user_frac: u32,
    /// [`Knob::RegFrac`].
    pub reg_frac: u32,
    /// [`Knob::ShortTicks`]. It wraps at 2^32 like the other counters.
    pub short_ticks: u32,
    /// [`Knob::LostPolls`].
    pub lost_polls: u32,
    /// [`Knob::PendingPolls`].
    pub pending_polls: u32,
    /// [`Knob::ResidualBurst`].
    pub residual_burst: u32,
    /// [`Knob::Handlers`].
    pub handlers: u32,
    /// [`Knob::Phase`].
    pub phase: u32,
    /// [`Knob::Suspect`].
    pub suspect: u32,
    /// [`Knob::Stalled`].
    pub stalled: u32,
    /// [`Knob::IdlepollSleeping`]: 0 or 1.
    pub idlepoll_sleeping: u32,
    /// Cycles since the last check of status (`reg_frac_count`).
    pub reg_frac_count: u32,
    /// Whether [`Poller::netisr_poll`](crate::Poller::netisr_poll) has something to do.
    pub poll_scheduled: bool,
    /// Whether [`Poller::netisr_pollmore`](crate::Poller::netisr_pollmore) has something to do.
    pub pollmore_scheduled: bool,
    /// Whether ticks are passed over ([`Poller::shutdown`](crate::Poller::shutdown)).
    pub shutting_down: bool,
}

impl State {
    /// The original's defaults.
    pub(crate) const INITIAL: State = State {
        burst: 5,
        burst_max: 150,
        each_burst: 5,
        idle_poll: 0,
        user_frac: 50,
        reg_frac: 20,
        short_ticks: 0,
        lost_polls: 0,
        pending_polls: 0,
        residual_burst: 0,
        handlers: 0,
        phase: 0,
        suspect: 0,
        stalled: 0,
        idlepoll_sleeping: 0,
        reg_frac_count: 0,
        poll_scheduled: false,
        pollmore_scheduled: false,
        shutting_down: false,
    };

    /// The value of a knob.
    pub(crate) fn read(&self, knob: Knob) -> u32 {
        match knob {
            Knob::Burst => self.burst,
            Knob::BurstMax => self.burst_max,
            Knob::EachBurst => self.each_burst,
            Knob::IdlePoll => self.idle_poll,
            Knob::UserFrac => self.user_frac,
            Knob::RegFrac => self.reg_frac,
            Knob::ShortTicks => self.short_ticks,
            Knob::LostPolls => self.lost_polls,
            Knob::PendingPolls => self.pending_polls,
            Knob::ResidualBurst => self.residual_burst,
            Knob::Handlers => self.handlers,
            Knob::Phase => self.phase,
            Knob::Suspect => self.suspect,
            Knob::Stalled => self.stalled,
            Knob::IdlepollSleeping => self.idlepoll_sleeping,
        }
    }
}
