//! How the engine learns of packets.
//!
//! What must hold: nothing else asks which discipline it is; a new one is a row here and a turn of the runner.

use nicpoll_sys::schedule::Policy;

use crate::names::Named;
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
        let mut rows = TABLE.iter();
        let row = rows.find(|row| row.drive == self);
        row.expect("every discipline has its row").scheduling
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
}

impl Named for Drive {
    fn all() -> impl Iterator<Item = (Self, &'static str)> {
        TABLE.iter().map(|row| (row.drive, row.name))
    }
}
