//! A conformance test for any [`Device`], a simulated card or a real one.
//!
//! [`check`] makes fresh devices, lets packets arrive, polls, and checks the packets handed up. It sees a device only
//! through [`Bench`]. A device that passes loses no packet that it had room for, hands up none twice or out of order,
//! moves no more than requested, and interrupts for packets when, and only when, its interrupts are on.

use core::fmt;

use crate::device::{Command, Device, DeviceId, Time};
use crate::knob::Knob;
use crate::poller::Poller;

/// A device with both its ends: the line, where packets arrive, and the protocols above it.
pub trait Bench: Device {
    /// Packets that the device keeps until polled; at least 1.
    fn room(&self) -> u32;

    /// Lets the next `count` packets arrive; returns when the device has taken each or, without room, refused it.
    /// Packets are numbered from 0 since the device was made, refused ones too.
    fn arrive(&mut self, count: u32);

    /// Returns the number of the next packet handed up to the protocols; `None` when there is none yet.
    fn handed_up(&mut self) -> Option<u64>;

    /// Returns how many interrupts the device has raised since it was made, after their handlers have run.
    fn interrupts(&mut self) -> u64;
}

/// A rule for every device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// A poll that finds nothing returns 0 and hands up nothing, with either command.
    EmptyPoll,
    /// A poll does no more work than requested, and hands up no more packets.
    Count,
    /// Without anything else to move, the reported work is the packets handed up.
    Work,
    /// A poll moves at least one packet while any wait.
    Progress,
    /// Each packet is handed up once, in the order of arrival, and none that there was room for is lost.
    Order,
    /// A full device may refuse packets, and then continues as before.
    Overflow,
    /// With its interrupts off a device raises none.
    Silence,
    /// With its interrupts on again a device interrupts for the packets that wait, and for those that arrive.
    Interrupts,
    /// All of these together under the poller, from registration to deregistration.
    Poller,
}

impl Rule {
    fn kept(self, is_kept: bool, what: &'static str, expected: u64, found: u64) -> RuleOutcome {
        let violation = Violation {
            rule: self,
            what,
            expected,
            found,
        };
        is_kept.then_some(()).ok_or(violation)
    }

    fn same(self, what: &'static str, expected: u64, found: u64) -> RuleOutcome {
        self.kept(found == expected, what, expected, found)
    }

    fn at_most(self, what: &'static str, limit: u64, found: u64) -> RuleOutcome {
        self.kept(found <= limit, what, limit, found)
    }

    fn at_least(self, what: &'static str, limit: u64, found: u64) -> RuleOutcome {
        self.kept(found >= limit, what, limit, found)
    }
}

/// A rule broken by a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// What was checked.
    pub what: &'static str,
    /// The value or the limit expected.
    pub expected: u64,
    /// The value found.
    pub found: u64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}: {}: {} where {} was expected",
            self.rule, self.what, self.found, self.expected
        )
    }
}

impl core::error::Error for Violation {}

type RuleOutcome = Result<(), Violation>;

/// Checks devices made by `fresh` against every rule. Each begins with its interrupts on and without packets.
///
/// # Errors
/// The first broken rule.
pub fn check<B: Bench>(mut fresh: impl FnMut() -> B) -> Result<(), Violation> {
    empty_polls(fresh())?;
    for count in [1, 2, 5, 64, u32::MAX] {
        in_order(fresh(), count, Command::PollOnly)?;
        in_order(fresh(), count, Command::PollAndCheckStatus)?;
    }
    in_turns(fresh())?;
    overflow(fresh())?;
    silence(fresh())?;
    interrupts(fresh())?;
    under_the_poller(fresh())
}

/// Polls once and checks every rule of a single poll. Returns how many packets, from number `next` on, were handed
/// up.
fn poll<B: Bench>(
    bench: &mut B,
    command: Command,
    count: u32,
    next: u64,
) -> Result<u64, Violation> {
    let work = bench.poll(command, count);
    let mut handed = 0;
    while let Some(number) = bench.handed_up() {
        Rule::Order.same("number of a packet handed up", next + handed, number)?;
        handed += 1;
    }
    Rule::Count.at_most("work of a poll", count.into(), work.into())?;
    Rule::Count.at_most("packets handed up by a poll", count.into(), handed)?;
    Rule::Work.same("work of a poll that moved packets", handed, work.into())?;
    Ok(handed)
}

fn empty_polls<B: Bench>(mut bench: B) -> RuleOutcome {
    bench.set_interrupts(false);
    for command in [Command::PollOnly, Command::PollAndCheckStatus] {
        for count in [0, 1, 5, 1000] {
            let handed = poll(&mut bench, command, count, 0)?;
            Rule::EmptyPoll.same("packets from nothing", 0, handed)?;
        }
    }
    bench.arrive(1);
    let handed = poll(&mut bench, Command::PollOnly, 1, 0)?;
    Rule::Order.same("packets after empty polls", 1, handed)
}

/// Fills the device, and empties it in polls of `count`.
fn in_order<B: Bench>(mut bench: B, count: u32, command: Command) -> RuleOutcome {
    bench.set_interrupts(false);
    let packets = u64::from(bench.room());
    bench.arrive(bench.room());
    let handed = poll(&mut bench, command, 0, 0)?;
    Rule::Count.same("packets handed up when none were requested", 0, handed)?;
    take_all(&mut bench, command, count, 0, packets)?;
    let handed = poll(&mut bench, command, count, packets)?;
    Rule::EmptyPoll.same("packets after the last", 0, handed)
}

/// Polls until all packets from `next` to before `end` are handed up.
fn take_all<B: Bench>(
    bench: &mut B,
    command: Command,
    count: u32,
    mut next: u64,
    end: u64,
) -> RuleOutcome {
    while next < end {
        let handed = poll(bench, command, count, next)?;
        Rule::Progress.at_least("packets by a poll while some wait", 1, handed)?;
        next += handed;
        Rule::Order.at_most("packets handed up of the arrived", end, next)?;
    }
    Ok(())
}

/// Lets packets arrive between polls, many times round any ring.
fn in_turns<B: Bench>(mut bench: B) -> RuleOutcome {
    bench.set_interrupts(false);
    let room = bench.room();
    let (mut arrived, mut next) = (0u64, 0u64);
    for turn in 0..200u32 {
        let waiting = (arrived - next) as u32;
        let more = (turn % 7 + 1).min(room - waiting);
        bench.arrive(more);
        arrived += u64::from(more);
        let command = if turn % 20 == 0 {
            Command::PollAndCheckStatus
        } else {
            Command::PollOnly
        };
        next += poll(&mut bench, command, turn % 6, next)?;
        Rule::Order.at_most("packets handed up of the arrived", arrived, next)?;
    }
    take_all(&mut bench, Command::PollOnly, 5, next, arrived)
}

/// Offers twice as many packets as fit, then as many as fit: the latter must all come.
fn overflow<B: Bench>(mut bench: B) -> RuleOutcome {
    bench.set_interrupts(false);
    let room = u64::from(bench.room());
    bench.arrive(bench.room());
    bench.arrive(bench.room());
    let (mut taken, mut last) = (0u64, None);
    // More polls than there can be packets.
    for _ in 0..=2 * room {
        bench.poll(Command::PollOnly, 5);
        while let Some(number) = bench.handed_up() {
            let is_later = last.is_none_or(|last| number > last);
            if !is_later || number >= 2 * room {
                let expected = last.map_or(0, |last| last + 1);
                Rule::Overflow.kept(false, "number after too many", expected, number)?;
            }
            last = Some(number);
            taken += 1;
        }
    }
    Rule::Overflow.at_least("packets kept of too many", room, taken)?;
    bench.arrive(bench.room());
    take_all(&mut bench, Command::PollOnly, 5, 2 * room, 3 * room)
}

fn silence<B: Bench>(mut bench: B) -> RuleOutcome {
    bench.set_interrupts(false);
    let before = bench.interrupts();
    for next in 0..20 {
        bench.arrive(1);
        let handed = poll(&mut bench, Command::PollOnly, 5, next)?;
        Rule::Silence.same("packets without interrupts", 1, handed)?;
    }
    let after = bench.interrupts();
    Rule::Silence.same("interrupts while they were off", before, after)
}

fn interrupts<B: Bench>(mut bench: B) -> RuleOutcome {
    bench.set_interrupts(false);
    bench.arrive(1);
    let before = bench.interrupts();
    bench.set_interrupts(true);
    interrupted_for(&mut bench, before, "number of the packet", 0)?;
    bench.set_interrupts(true);
    let before = bench.interrupts();
    bench.arrive(1);
    interrupted_for(&mut bench, before, "number of the next", 1)
}

/// Checks that an interrupt came after the first `before`, and that its handler or a poll hands up the packet.
fn interrupted_for<B: Bench>(
    bench: &mut B,
    before: u64,
    what: &'static str,
    packet: u64,
) -> RuleOutcome {
    let raised = bench.interrupts();
    Rule::Interrupts.at_least("interrupts, at least", before + 1, raised)?;
    bench.set_interrupts(false);
    bench.poll(Command::PollOnly, 1);
    let handed_up = bench.handed_up().unwrap_or(u64::MAX);
    Rule::Interrupts.same(what, packet, handed_up)
}

/// Runs the poller for a hundred ticks, as an operating system does.
fn under_the_poller<B: Bench>(mut bench: B) -> RuleOutcome {
    const HZ: u32 = 1000;
    const ID: DeviceId = DeviceId(0);
    let mut poller = Poller::new(HZ).expect("a clock may tick so often");
    let _ = poller.register(ID).expect("the list is empty");
    bench.set_interrupts(false);
    let silent = bench.interrupts();
    let room = bench.room();
    let (mut arrived, mut next) = (0u64, 0u64);
    for tick in 1..=100u64 {
        // No more than a cycle takes, so none is refused.
        let more = room.min(poller.read(Knob::Burst)).min(5);
        bench.arrive(more);
        arrived += u64::from(more);
        let now = Time::from_us(tick * 1000);
        let mut runs = poller.hardclock(now);
        while runs {
            poller.netisr_poll(now, core::slice::from_mut(&mut bench));
            while let Some(number) = bench.handed_up() {
                Rule::Poller.same("number of a packet", next, number)?;
                next += 1;
            }
            runs = poller.netisr_pollmore(now);
        }
        Rule::Poller.same("packets by the end of a cycle", arrived, next)?;
    }
    Rule::Poller.same(
        "interrupts while it is registered",
        silent,
        bench.interrupts(),
    )?;
    poller.deregister(ID).expect("it is in the list");
    bench.set_interrupts(true);
    bench.arrive(1);
    let raised = bench.interrupts();
    Rule::Poller.at_least("interrupts after it, at least", silent + 1, raised)
}
