//! What a text is searched for, wherever in a line it stands: the table of recognisers, and the search.
//!
//! What must hold: a recogniser looks at a bounded number of bytes from where it is asked, so that the search takes
//! time in proportion to the text. What one has taken no other one is asked about.

use std::ops::Range;

use super::cursor::Cursor;
use super::plain::Plain;
use super::{command, host, iperf, loose, netrate, statistics, top};
use crate::units::Unit;

/// More findings than any session has: texts with more of them are refused, since each takes memory. A line of CPU states
/// becomes five figures, each with its place and what was printed.
pub const FINDINGS_MAX: usize = 500_000;

/// Findings that are left.
#[derive(Debug)]
pub struct Budget(usize);

impl Budget {
    pub fn of(findings: usize) -> Self {
        Budget(findings)
    }

    /// Takes so many of them; nothing when fewer are left.
    pub fn take(&mut self, findings: usize) -> Option<()> {
        self.0 = self.0.checked_sub(findings)?;
        Some(())
    }
}

/// Something that was found.
#[derive(Clone, Debug)]
pub struct Anchor {
    /// Where, in the plain text.
    pub at: Range<usize>,
    /// What.
    pub seen: Seen,
}

/// What can be found.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// A command, with what its prompt says.
    Command(command::Command),
    /// `Client connecting to` or `Server listening on`.
    Banner(iperf::Banner),
    /// A line of a banner with a size in bytes: what it is of, and the size.
    Size(&'static str, f64),
    /// `[ID] local A port P connected with B port Q`.
    Connected(iperf::Connected),
    /// A line of figures.
    Interval(Box<iperf::IperfLine>),
    /// `[ID] ... datagrams received out-of-order`, `[ID] Sent N datagrams`: what was counted.
    Counted(iperf::Id, &'static str, f64),
    /// `[ID] Server Report:`.
    Report(iperf::Id),
    /// A line of netblast or netsend.
    Blast(netrate::BlastField, f64),
    /// A line of netreceive: packets, and the seconds they came in.
    Receive(f64, f64),
    /// CPU time by state, in shares of 1: user, nice, system, interrupt, idle.
    Cpu([f64; 5]),
    /// A value that a command prints.
    Reading {
        /// What it is.
        name: String,
        /// The value.
        value: String,
        /// Whether it counts from the host's start.
        is_cumulative: bool,
    },
    /// What a variable was before a command set it.
    Was(String, String),
    /// An interface, by what ifconfig prints of it.
    Interface(String),
    /// The options of an interface: whether it polls.
    Polls(bool),
    /// An address of the host.
    Address(String),
    /// A heading that names a setting.
    Heading(bool),
    /// A figure with a unit that no tool's output is known around.
    Loose(f64, Unit),
    /// Something that looks like figures and cannot be read: why.
    Spoilt(&'static str),
}

/// Finds one kind of thing.
pub trait Recogniser: Sync {
    /// The bytes that it can begin with.
    fn first(&self) -> &'static [u8];

    /// What begins here. The cursor is left behind it.
    fn read(&self, cursor: &mut Cursor, from: usize) -> Option<Vec<Anchor>>;
}

/// Every recogniser. Where several find something at one place, the first one has it.
static RECOGNISERS: [&dyn Recogniser; 21] = [
    &iperf::InBrackets,
    &iperf::BareInterval,
    &iperf::Banners,
    &iperf::Sizes,
    &command::Prompted,
    &command::Bare,
    &loose::Heading,
    &netrate::BlastLines,
    &netrate::ReceiveLines,
    &top::StateLine,
    &top::BareStates,
    &statistics::InterruptTable,
    &statistics::InterruptRow,
    &statistics::Counters,
    &statistics::Buffers,
    &statistics::TrafficRow,
    &host::Variable,
    &host::InterfaceHead,
    &host::InterfaceBody,
    &host::Identity,
    &loose::Figure,
];

/// Hands over everything that a text holds, in its order; stops, and tells nothing, when that is more than the budget.
pub fn scan(plain: &Plain, budget: &mut Budget, mut found: impl FnMut(Anchor)) -> Option<()> {
    let mut by_first: Vec<Vec<&dyn Recogniser>> = vec![Vec::new(); 128];
    for recogniser in RECOGNISERS {
        for byte in recogniser.first() {
            by_first[usize::from(*byte)].push(recogniser);
        }
    }
    // Where the last finding ended: a prompt does not reach back beyond it.
    let mut from = 0;
    let mut at = 0;
    while at < plain.bytes.len() {
        let candidates = &by_first[usize::from(plain.bytes[at] & 127)];
        let mut cursor = Cursor::new(&plain.bytes, at);
        let read = candidates.iter().find_map(|recogniser| {
            cursor.at = at;
            recogniser.read(&mut cursor, from)
        });
        let Some(anchors) = read else {
            at += 1;
            continue;
        };
        budget.take(anchors.len())?;
        anchors.into_iter().for_each(&mut found);
        at = cursor.at.max(at + 1);
        from = at;
    }
    Some(())
}

/// One finding from a place to the cursor's.
pub fn one(began: usize, cursor: &Cursor, seen: Seen) -> Option<Vec<Anchor>> {
    let at = began..cursor.at;
    Some(vec![Anchor { at, seen }])
}
