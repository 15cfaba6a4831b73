//! The names under `kern.polling`, and what the original refuses.

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
