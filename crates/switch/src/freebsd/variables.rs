//! The variables under kern.polling that can be set: one row each.

use nicpoll_core::Knob;

/// What nicpoll knows of a variable.
#[derive(Debug)]
pub struct Variable {
    /// Which.
    pub knob: Knob,
    /// The option of `nicpoll set` that sets it.
    option: &'static str,
    /// The largest value that means anything, where the kernel takes any.
    pub max: Option<u32>,
    /// Its range, for people.
    pub range: &'static str,
    /// What it is.
    pub help: &'static str,
    /// What to use on Linux instead.
    pub on_linux: &'static str,
}

/// In this order any values can be written: `each_burst` may not exceed `burst_max`, and lowering
/// `burst_max` changes it.
static TABLE: [Variable; 5] = [
    Variable {
        knob: Knob::BurstMax,
        option: "burst-max",
        max: None,
        range: "10 to 20000",
        help: "Maximum packets per tick (kern.polling.burst_max), 10 to 20000",
        on_linux: "on Linux the card's ring limits a round (ethtool -G), and net.core.netdev_budget",
    },
    Variable {
        knob: Knob::EachBurst,
        option: "each-burst",
        max: None,
        range: "1 to burst_max",
        help: "Maximum packets per call (kern.polling.each_burst), 1 to burst_max",
        on_linux: "on Linux a poll takes at most 64 packets, which cannot be changed",
    },
    Variable {
        knob: Knob::IdlePoll,
        option: "idle-poll",
        max: Some(1),
        range: "0 or 1",
        help: "Also poll while the CPU is idle (kern.polling.idle_poll), 0 or 1",
        on_linux: "use --busy-poll",
    },
    Variable {
        knob: Knob::UserFrac,
        option: "user-frac",
        max: None,
        range: "0 to 99",
        help: "CPU share reserved for user programs, in percent (kern.polling.user_frac), 0 to 99",
        on_linux: "use --threaded --cpu-share PERCENT, which is 100 - user_frac",
    },
    Variable {
        knob: Knob::RegFrac,
        option: "reg-frac",
        max: None,
        range: "1 to hz",
        help: "Ticks between checks of the card's status (kern.polling.reg_frac), 1 to hz",
        on_linux: "on Linux drivers check the card's status elsewhere",
    },
];

/// Every variable, in an order in which any values can be written.
pub fn variables() -> impl Iterator<Item = &'static Variable> {
    TABLE.iter()
}

impl Variable {
    /// Its name, without `kern.polling.` before it.
    pub fn name(&self) -> &'static str {
        self.knob.name()
    }

    /// The option of `nicpoll set` that sets it, without the dashes.
    pub fn option(&self) -> &'static str {
        self.option
    }

    /// The row of a variable that can be set.
    pub(crate) fn of(knob: Knob) -> Option<&'static Variable> {
        TABLE.iter().find(|variable| variable.knob == knob)
    }
}
