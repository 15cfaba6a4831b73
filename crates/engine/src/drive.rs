//! How the engine learns of packets.
//!
//! What must hold: nothing else asks which discipline it is; a new one is a row here and a turn of the runner.

use std::str::FromStr;

use nicpoll_sys::schedule::Policy;

use crate::error::UnknownName;
use crate::port::Port;
use crate::runner::PortRunner;

/// A way to learn of packets, chosen by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drive {
    /// At each tick, as FreeBSD's polling does. No arrival wakes the program.
    #[default]
    Polling,
    /// An arrival wakes the program, which then reads until nothing is left.
    Interrupt,
    /// The program asks without a pause, and takes a whole CPU.
    BusyPoll,
    /// `Interrupt` while packets are rare, `Polling` while they are not.
    Adaptive,
}

/// How the kernel schedules the thread that receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// Before all ordinary programs, as a kernel's own polling runs; `user_frac` keeps their share.
    Fifo,
    /// As an ordinary program.
    Fair,
}

impl Scheduling {
    /// The name that reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Scheduling::Fifo => "fifo",
            Scheduling::Fair => "fair",
        }
    }

    pub(crate) const fn policy(self) -> Policy {
        match self {
            Scheduling::Fifo => Policy::Fifo {
                priority: ENGINE_PRIORITY,
            },
            Scheduling::Fair => Policy::Fair { nice: 0 },
        }
    }
}

/// Below it is room for the kernel's receive threads, and below those for programs that are to go before others.
const ENGINE_PRIORITY: u32 = 3;

struct Row {
    drive: Drive,
    name: &'static str,
    scheduling: Scheduling,
}

const TABLE: [Row; 4] = [
    Row {
        drive: Drive::Polling,
        name: "polling",
        scheduling: Scheduling::Fifo,
    },
    Row {
        drive: Drive::Interrupt,
        name: "interrupt",
        scheduling: Scheduling::Fair,
    },
    Row {
        drive: Drive::BusyPoll,
        name: "busy-poll",
        scheduling: Scheduling::Fair,
    },
    Row {
        drive: Drive::Adaptive,
        name: "adaptive",
        scheduling: Scheduling::Fair,
    },
];

impl Drive {
    /// The name by which it is chosen.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The names of all.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|row| row.name)
    }

    /// The discipline of a name.
    pub fn from_name(name: &str) -> Option<Drive> {
        let mut rows = TABLE.iter();
        rows.find(|row| row.name == name).map(|row| row.drive)
    }

    /// Whether the core's poller says when to poll, at least at times.
    pub fn polls(self) -> bool {
        matches!(self, Drive::Polling | Drive::Adaptive)
    }

    /// Whether the kernel's NAPI is best run in the program's own polls, which never pause.
    pub fn busy_polls(self) -> bool {
        self == Drive::BusyPoll
    }

    /// How its thread is best scheduled. Only a discipline that leaves others their share may go before them.
    pub fn scheduling(self) -> Scheduling {
        self.row().scheduling
    }

    /// What the runner does until it looks for requests again.
    pub(crate) fn turn<P: Port>(self) -> fn(&mut PortRunner<P>) {
        match self {
            Drive::Polling => PortRunner::polling_turn,
            Drive::Interrupt => PortRunner::interrupt_turn,
            Drive::BusyPoll => PortRunner::busy_poll_turn,
            Drive::Adaptive => PortRunner::adaptive_turn,
        }
    }

    fn row(self) -> &'static Row {
        let mut rows = TABLE.iter();
        rows.find(|row| row.drive == self)
            .expect("every discipline has its row")
    }
}

impl FromStr for Drive {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Self::from_name(name).ok_or_else(|| UnknownName::among(Self::names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_that_of_one_discipline() {
        for name in Drive::names() {
            assert_eq!(Drive::from_name(name).unwrap().name(), name);
        }
        assert_eq!(Drive::names().count(), 4);
        assert_eq!(Drive::from_name("poll"), None);
    }
}
