//! How the burst of the next cycle follows from the last one.

use crate::share::Share;

/// A way to adapt the burst, chosen by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controller {
    /// The original's: one packet less after a cycle that took more than its share, one more after
    /// any other, an eighth less when ticks were missed.
    #[default]
    Freebsd,
    /// From the measured cost of a packet: the burst that fills the share. A cycle whose time is up
    /// ends at its next chunk.
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

/// A controller with what it remembers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Memory {
    Freebsd,
    Share(Share),
}

impl Memory {
    pub(crate) fn of(controller: Controller, burst: u32) -> Self {
        match controller {
            Controller::Freebsd => Memory::Freebsd,
            Controller::Share => Memory::Share(Share::new(burst)),
        }
    }

    pub(crate) fn controller(&self) -> Controller {
        match self {
            Memory::Freebsd => Controller::Freebsd,
            Memory::Share(_) => Controller::Share,
        }
    }
}

/// The original's first correction, by the load of the cycle in per cent of a tick.
pub(crate) fn freebsd_step(burst: u32, burst_max: u32, load_percent: i64, user_frac: u32) -> u32 {
    if load_percent > 100 - i64::from(user_frac) {
        if burst > 1 { burst - 1 } else { burst }
    } else if burst < burst_max {
        burst + 1
    } else {
        burst
    }
}

/// The original's second correction, when ticks were missed.
pub(crate) fn freebsd_catch_up(burst: u32) -> u32 {
    (burst - burst / 8).max(1)
}
