//! The conformance suite passes a correct device, and finds each fault.

use std::collections::VecDeque;

use nicpoll_core::conformance::{Bench, Rule, check};
use nicpoll_core::{Command, Device};

const ROOM: usize = 32;

/// What a device does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// It reports work for nothing.
    IdleWork,
    /// It moves one packet more than asked.
    OneMore,
    /// It does not count a packet.
    Uncounted,
    /// A status check moves nothing.
    StatusOnly,
    /// Every tenth packet goes up twice.
    Twice,
    /// Every tenth packet is dropped.
    Drops,
    /// The latest packet goes up first.
    LastFirst,
    /// It stands still once it was full.
    Wedges,
    /// It interrupts even when told not to.
    Noisy,
    /// It does not interrupt for packets that came while its interrupts were off.
    Edge,
    /// It never interrupts.
    Mute,
    /// It hands up a packet that never came.
    Ghost,
    /// It stops interrupting after many packets.
    Tired,
}

struct Ring {
    fault: Fault,
    waiting: VecDeque<u64>,
    up: VecDeque<u64>,
    arrived: u64,
    is_wedged: bool,
    has_interrupts: bool,
    interrupts: u64,
}

impl Ring {
    fn new(fault: Fault) -> Self {
        Ring {
            fault,
            waiting: VecDeque::new(),
            up: VecDeque::new(),
            arrived: 0,
            is_wedged: false,
            has_interrupts: true,
            interrupts: 0,
        }
    }

    fn interrupt(&mut self) {
        let may = self.has_interrupts || self.fault == Fault::Noisy;
        let is_tired = self.fault == Fault::Tired && self.arrived > 100;
        if may && self.fault != Fault::Mute && !is_tired {
            self.interrupts += 1;
        }
    }

    fn hand_up(&mut self) -> bool {
        let number = match self.fault {
            Fault::LastFirst => self.waiting.pop_back(),
            Fault::Ghost => Some(self.waiting.pop_front().unwrap_or(self.arrived)),
            _ => self.waiting.pop_front(),
        };
        let Some(number) = number else {
            return false;
        };
        if self.fault != Fault::Drops || number % 10 != 9 {
            self.up.push_back(number);
        }
        if self.fault == Fault::Twice && number % 10 == 9 {
            self.up.push_back(number);
        }
        true
    }
}

impl Device for Ring {
    fn poll(&mut self, command: Command, count: u32) -> u32 {
        let is_status = command == Command::PollAndCheckStatus;
        if self.is_wedged || (is_status && self.fault == Fault::StatusOnly) {
            return 0;
        }
        let more = u32::from(self.fault == Fault::OneMore && count > 0);
        let count = count.saturating_add(more);
        let mut work = 0;
        while work < count && self.hand_up() {
            work += 1;
        }
        match self.fault {
            Fault::IdleWork if work == 0 => 1.min(count),
            Fault::Uncounted => work.saturating_sub(1),
            _ => work,
        }
    }

    fn set_interrupts(&mut self, on: bool) {
        self.has_interrupts = on;
        if on && !self.waiting.is_empty() && self.fault != Fault::Edge {
            self.interrupt();
        }
    }
}

impl Bench for Ring {
    fn room(&self) -> u32 {
        ROOM as u32
    }

    fn arrive(&mut self, count: u32) {
        for _ in 0..count {
            if self.waiting.len() < ROOM {
                self.waiting.push_back(self.arrived);
            } else if self.fault == Fault::Wedges {
                self.is_wedged = true;
            }
            self.arrived += 1;
            self.interrupt();
        }
    }

    fn handed_up(&mut self) -> Option<u64> {
        self.up.pop_front()
    }

    fn interrupts(&mut self) -> u64 {
        self.interrupts
    }
}

#[test]
fn a_device_that_does_all_it_must_passes() {
    assert_eq!(check(|| Ring::new(Fault::None)), Ok(()));
}

#[test]
fn each_fault_is_found() {
    for (fault, rule) in [
        (Fault::IdleWork, Rule::Work),
        (Fault::OneMore, Rule::Count),
        (Fault::Uncounted, Rule::Work),
        (Fault::StatusOnly, Rule::Progress),
        (Fault::Twice, Rule::Order),
        (Fault::Drops, Rule::Work),
        (Fault::LastFirst, Rule::Order),
        (Fault::Wedges, Rule::Overflow),
        (Fault::Noisy, Rule::Silence),
        (Fault::Edge, Rule::Interrupts),
        (Fault::Mute, Rule::Interrupts),
        (Fault::Ghost, Rule::EmptyPoll),
        (Fault::Tired, Rule::Poller),
    ] {
        let broken = check(|| Ring::new(fault)).unwrap_err();
        assert_eq!(broken.rule, rule, "{fault:?}: {broken}");
    }
}
