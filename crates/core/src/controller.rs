//! How the burst of the next cycle follows from the last one.
//!
//! What must hold: [`Memory::Freebsd`] does exactly what `sys/kern/kern_poll.c` does at each of these
//! places, and nothing at the others.

use crate::poller::State;
use crate::share::Share;
use crate::time::Time;

const NS_PER_SECOND: u64 = 1_000_000_000;

/// A way to adapt the burst, chosen by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controller {
    /// The original's: one packet less after a cycle that took more than its share, one more after
    /// any other, an eighth less when ticks were missed.
    #[default]
    Freebsd,
    /// By the clock: a cycle ends before the chunk that would not fit into the share.
    Share,
}

impl Controller {
    /// All of them.
    pub const ALL: [Controller; 2] = [Controller::Freebsd, Controller::Share];

    /// The name by which it is chosen.
    pub const fn name(self) -> &'static str {
        match self {
            Controller::Freebsd => "freebsd",
            Controller::Share => "share",
        }
    }

    /// The controller of a name.
    pub fn from_name(name: &str) -> Option<Controller> {
        Controller::ALL
            .into_iter()
            .find(|controller| controller.name() == name)
    }
}

/// A cycle, as a controller sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cycle {
    /// When it began (`poll_start_t`), less what it is charged for.
    pub(crate) start: Time,
    /// What it is charged for of that.
    pub(crate) charge_ns: u64,
    /// From when on it may use its share: its own beginning, or the last tick when it makes up for one
    /// that was missed.
    pub(crate) share_start: Time,
    /// The share: the time of a tick that is not user programs', short of its end, because a cycle that
    /// lasts until the next tick finds that pending.
    pub(crate) share_ns: u64,
    /// Ticks a second.
    pub(crate) hz: u32,
}

impl Cycle {
    /// What is left of its share.
    pub(crate) fn room_ns(&self, now: Time) -> u64 {
        let deadline_ns = self.share_start.ns().saturating_add(self.share_ns);
        deadline_ns.saturating_sub(now.ns())
    }

    /// Whether more is left of its share than may be: a fiftieth of a tick, or a quarter of a small share.
    pub(crate) fn has_time(&self, now: Time) -> bool {
        let tick_ns = NS_PER_SECOND / u64::from(self.hz);
        let most_ns = (tick_ns / 50).min(self.share_ns / 4);
        self.room_ns(now) > most_ns
    }
}

/// The time of a tick that polling may use.
pub(crate) fn share_ns(hz: u32, user_frac: u32) -> u64 {
    let tick_ns = NS_PER_SECOND / u64::from(hz);
    tick_ns * u64::from(100 - user_frac) / 100 - 1
}

/// A controller with what it remembers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Memory {
    Freebsd,
    Share(Share),
}

impl Memory {
    pub(crate) fn of(controller: Controller) -> Self {
        match controller {
            Controller::Freebsd => Memory::Freebsd,
            Controller::Share => Memory::Share(Share::default()),
        }
    }

    pub(crate) fn controller(&self) -> Controller {
        match self {
            Memory::Freebsd => Controller::Freebsd,
            Memory::Share(_) => Controller::Share,
        }
    }

    /// A cycle begins: the packets that its chunks may ask each device for.
    pub(crate) fn begin(&mut self, now: Time, cycle: &Cycle, state: &State) -> u32 {
        match self {
            Memory::Freebsd => state.burst,
            Memory::Share(share) => share.begin(now, cycle, state),
        }
    }

    /// A chunk that began at `began` asked each device for `requested` packets; none moved more than `moved`.
    pub(crate) fn polled(&mut self, began: Time, requested: u32, moved: u32) {
        if let Memory::Share(share) = self {
            share.polled(began, requested, moved);
        }
    }

    /// A chunk has ended at `now`: the packets that later ones may ask for.
    pub(crate) fn after_chunk(&mut self, now: Time, cycle: &Cycle, state: &State) -> u32 {
        match self {
            Memory::Freebsd => state.residual_burst,
            Memory::Share(share) => share.after_chunk(now, cycle, state),
        }
    }

    /// The cycle has ended at `now`: the burst. The original's first correction, by the load of the cycle
    /// in per cent of a tick.
    pub(crate) fn after_cycle(&mut self, now: Time, cycle: &Cycle, state: &State) -> u32 {
        match self {
            Memory::Freebsd => freebsd_step(now, cycle, state),
            Memory::Share(share) => share.after_cycle(now, cycle, state),
        }
    }

    /// Ticks were missed: the burst. The original's second correction.
    pub(crate) fn after_missed_tick(&self, state: &State) -> u32 {
        match self {
            Memory::Freebsd => (state.burst - state.burst / 8).max(1),
            // The clock ends what makes up for it.
            Memory::Share(_) => state.burst,
        }
    }
}

fn freebsd_step(now: Time, cycle: &Cycle, state: &State) -> u32 {
    let elapsed_us = now.us_since(cycle.start);
    let load_percent = elapsed_us.saturating_mul(i64::from(cycle.hz)) / 10_000;
    if load_percent > 100 - i64::from(state.user_frac) {
        state.burst.saturating_sub(1).max(1)
    } else {
        state.burst_max.min(state.burst + 1)
    }
}
