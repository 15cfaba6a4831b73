//! The variables under `kern.polling`: their names, their values, and the errors of the original.

use core::fmt;

/// The error numbers that the original returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    /// The knob can only be read (EPERM).
    Eperm,
    /// No such knob, or no such device in the list (ENOENT).
    Enoent,
    /// The device is already in the list (EEXIST).
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
    ($($(#[$meta:meta])* $variant:ident $name:ident $access:ident = $initial:literal,)*) => {
        /// A variable under `kern.polling`, sysctl(8).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Knob {
            $($(#[$meta])* $variant,)*
        }

        impl Knob {
            /// All knobs, in the order of the original's source.
            pub const ALL: &'static [Knob] = &[$(Knob::$variant,)*];

            /// The name without the prefix `kern.polling.`.
            pub const fn name(self) -> &'static str {
                match self { $(Knob::$variant => stringify!($name),)* }
            }

            /// Whether it can be written.
            pub const fn access(self) -> Access {
                match self { $(Knob::$variant => Access::$access,)* }
            }
        }

        /// Every variable under `kern.polling`, and the original's internal ones. Counters wrap at 2^32.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct State {
            $($(#[$meta])* pub $name: u32,)*
            /// Cycles since the last status check (`reg_frac_count`).
            pub reg_frac_count: u32,
            /// Whether [`Poller::netisr_poll`](crate::Poller::netisr_poll) has something to do.
            pub poll_scheduled: bool,
            /// Whether [`Poller::netisr_pollmore`](crate::Poller::netisr_pollmore) has something to do.
            pub pollmore_scheduled: bool,
            /// Whether ticks are ignored ([`Poller::shutdown`](crate::Poller::shutdown)).
            pub shutting_down: bool,
        }

        impl State {
            /// The original's defaults.
            pub(crate) const INITIAL: State = State {
                $($name: $initial,)*
                reg_frac_count: 0,
                poll_scheduled: false,
                pollmore_scheduled: false,
                shutting_down: false,
            };

            /// The value of a knob.
            pub(crate) fn read(&self, knob: Knob) -> u32 {
                match knob { $(Knob::$variant => self.$name,)* }
            }
        }
    };
}

// Variant, name, access and the original's default.
knobs! {
    /// Packets that each device may move in this cycle.
    Burst burst ReadOnly = 5,
    /// Upper limit of `burst`; 10 to 20000.
    BurstMax burst_max ReadWrite = 150,
    /// Most packets of one call; 1 to `burst_max`.
    EachBurst each_burst ReadWrite = 5,
    /// Whether to poll when the processor is idle; any value but 0 means yes.
    IdlePoll idle_poll ReadWrite = 0,
    /// Per cent of the processor reserved for user programs; 0 to 99.
    UserFrac user_frac ReadWrite = 50,
    /// Cycles from one status check to the next; 1 to hz.
    RegFrac reg_frac ReadWrite = 20,
    /// Ticks less than half a period after the previous one.
    ShortTicks short_ticks ReadOnly = 0,
    /// Ticks that came before an earlier tick's work was done.
    LostPolls lost_polls ReadOnly = 0,
    /// Ticks whose work is not done.
    PendingPolls pending_polls ReadOnly = 0,
    /// Packets of this cycle's burst not requested from a device yet.
    ResidualBurst residual_burst ReadOnly = 0,
    /// Devices in the list.
    Handlers handlers ReadOnly = 0,
    /// Phase of the cycle: 0 idle, 1 a tick schedules, 2 scheduled, 3 polling, 4 polled, 5 accounting or between
    /// chunks, 6 catching up.
    Phase phase ReadOnly = 0,
    /// Ticks that found the previous tick's cycle scheduled but not begun.
    Suspect suspect ReadOnly = 0,
    /// How often more than 100 pending ticks were given up.
    Stalled stalled ReadOnly = 0,
    /// Whether the idle thread sleeps.
    IdlepollSleeping idlepoll_sleeping ReadOnly = 0,
}

impl Knob {
    /// Returns the knob named `name`, with or without the prefix `kern.polling.`.
    pub fn from_name(name: &str) -> Option<Knob> {
        let name = name.strip_prefix("kern.polling.").unwrap_or(name);
        Knob::ALL.iter().copied().find(|knob| knob.name() == name)
    }
}
