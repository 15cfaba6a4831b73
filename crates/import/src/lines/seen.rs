//! What recognisers find: commands, interval lines, counters and settings.

use std::ops::{Deref, Range};

use crate::cursor::MeasuredUnit;

/// A finding.
#[derive(Clone, Debug)]
pub struct Anchor {
    /// Its range in the plain text.
    pub at: Range<usize>,
    /// What was found.
    pub seen: Seen,
}

/// What recognisers can find.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// A command, with its prompt's host.
    Command(ToolCommand),
    /// `Client connecting to` or `Server listening on`.
    Banner(Banner),
    /// A size line of a banner: what has this size, and the bytes.
    Size(&'static str, f64),
    /// `Reverse mode, remote host B is sending`.
    Reverse,
    /// `[ID] local A port P connected with B port Q`.
    Connected(ConnectedLine),
    /// An interval line.
    Interval(Box<IperfLine>),
    /// `[ID] ... datagrams received out-of-order` or `[ID] Sent N datagrams`: id, name and count.
    Counted(Id, &'static str, f64),
    /// `[ID] Server Report:`.
    Report(Id),
    /// A line of netblast or netsend.
    Blast(BlastField, f64),
    /// A line of netreceive: packets, and the seconds they arrived in.
    Receive(f64, f64),
    /// CPU time by state, as ratios: user, nice, system, interrupt, idle. Some programs do not tell all.
    Cpu([Option<f64>; 5]),
    /// A value that a command prints.
    Reading {
        /// Its name.
        name: String,
        /// The value.
        value: String,
        /// Whether it counts from boot.
        is_cumulative: bool,
    },
    /// A variable's value before a command set it: name and value.
    Was(String, String),
    /// An interface that ifconfig prints.
    Interface(String),
    /// Whether an interface's options include polling.
    Polls(bool),
    /// An address of the host.
    Address(String),
    /// The time since a host's start and the time of day, in seconds, as `top` prints them.
    Uptime(f64, f64),
    /// A time of day, and what it is rounded down to, in seconds.
    Clock(f64, f64),
    /// A figure with a unit outside any tool's known output.
    Loose(f64, MeasuredUnit),
    /// A line of a tool without a result.
    Remark,
    /// Heads of columns, of which the rows follow.
    Heads(Heads),
    /// Something like figures that cannot be read, and why.
    Spoilt(&'static str),
}

/// Heads of columns of numbers. Rows stand below, and later ones often without their heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heads {
    /// The program that prints them.
    pub of: RowsOf,
    /// What its readings are called.
    pub name: String,
    /// The names of the columns.
    pub columns: Vec<String>,
}

/// The program that prints rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsOf {
    Netstat,
    Vmstat,
    Mpstat,
}

/// Programs whose commands are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Iperf,
    Ttcp,
    Netblast,
    Netreceive,
    Netsend,
    /// Prints CPU states, counters or variables.
    Look,
    Sysctl,
    Ifconfig,
    Ethtool,
    /// Any other, of which only the prompt and the name are read.
    Other,
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCommand {
    pub tool: Tool,
    /// The host that the prompt names.
    pub host: Option<String>,
    /// Whether there is a prompt.
    pub is_prompted: bool,
    /// Its arguments.
    pub words: Vec<String>,
}

impl ToolCommand {
    /// The value of a one-letter option: glued to it, or the next word.
    pub fn option(&self, letter: char) -> Option<&str> {
        let is_it = |word: &String| {
            let name = word.strip_prefix('-').filter(|it| !it.starts_with('-'));
            name.is_some_and(|name| name.starts_with(letter))
        };
        let at = self.words.iter().position(is_it)?;
        match &self.words[at][2..] {
            "" => {
                let next = self.words.get(at + 1).map(String::as_str);
                next.filter(|it| !it.starts_with('-'))
            }
            glued => Some(glued),
        }
    }

    /// Whether it prints what a host says of itself.
    pub fn looks(&self) -> bool {
        match self.tool {
            Tool::Look | Tool::Sysctl | Tool::Ifconfig => true,
            // It sets something else.
            Tool::Ethtool => self.has('S'),
            _ => false,
        }
    }

    /// Whether what it prints is of the host on which it runs: not what a file says, which may be another's.
    pub fn is_of_host(&self) -> bool {
        const SHOWS: [&str; 5] = ["cat", "less", "more", "head", "tail"];
        let name = self.words.first().map_or("", String::as_str);
        self.looks() || self.tool == Tool::Other && !SHOWS.contains(&name)
    }

    /// Whether a flag is given.
    pub fn has(&self, letter: char) -> bool {
        // Flags may share a dash: -us.
        let flags = self.words.iter().filter_map(|word| word.strip_prefix('-'));
        let mut flags = flags.filter(|it| !it.starts_with('-'));
        flags.any(|it| it.starts_with(letter) || (it.len() < 4 && it.contains(letter)))
    }
}

/// The text in brackets: a number, `*` and a number, or `SUM`. Empty where brackets are missing.
pub type Id = String;

/// A banner.
#[derive(Clone, Debug, PartialEq)]
pub struct Banner {
    pub is_server: bool,
    pub is_udp: bool,
    pub peer: Option<String>,
    pub port: Option<u16>,
}

/// A connection as one end prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectedLine {
    pub id: Id,
    pub local: (String, u16),
    pub peer: (String, u16),
}

/// An interval line of iperf 2, or of iperf3's text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IperfLine {
    /// The text in brackets: a number, `*` and a number, or `SUM`. Empty where brackets are missing.
    pub id: Id,
    /// Start, in seconds from the start of the test.
    pub start: f64,
    /// End, likewise.
    pub end: f64,
    /// Payload sent or received.
    pub bytes: f64,
    /// Payload in bit/s.
    pub bits_per_second: f64,
    /// Interarrival jitter, printed by a UDP receiver.
    pub jitter_seconds: Option<f64>,
    /// Datagrams lost, and all datagrams sent.
    pub datagrams: Option<[f64; 2]>,
    /// Whether iperf3 says that the receiver counted this, or the sender.
    pub(crate) is_receivers: Option<bool>,
    /// Relative difference that rounding allows between the rate and transfer over time.
    pub(crate) rounding: f64,
}

impl AsRef<IperfLine> for IperfLine {
    fn as_ref(&self) -> &IperfLine {
        self
    }
}

impl IperfLine {
    /// Whether rate, transfer and time agree within their rounding.
    pub(crate) fn agrees(&self) -> bool {
        let seconds = self.end - self.start;
        let rate = self.bytes * 8.0 / seconds;
        let off = (rate - self.bits_per_second).abs();
        let may_be_off = self.rounding * rate.max(self.bits_per_second);
        seconds > 0.0 && (off == 0.0 || off <= may_be_off)
    }

    /// Whether both have the same figures, whatever their ids.
    pub(crate) fn is_same_as(&self, other: &IperfLine) -> bool {
        let figures = |it: &IperfLine| {
            (
                it.start,
                it.end,
                it.bytes,
                it.bits_per_second,
                it.jitter_seconds,
                it.datagrams,
            )
        };
        figures(self) == figures(other)
    }
}

/// A line of netblast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlastField {
    /// Start, in seconds of the clock.
    Start,
    /// End.
    Finish,
    /// Calls of send(2).
    Calls,
    /// Calls that failed.
    Errors,
    /// Calls that succeeded.
    Success,
    /// Packets per second.
    Rate,
    /// An integer division: 0 even with millions of errors.
    ErrorRate,
    /// Bit/s of frames without FCS.
    Throughput,
}

/// Interval lines in the order they came.
#[derive(Clone, Debug)]
pub struct Lines<T> {
    all: Vec<T>,
    latest_end: f64,
    whole: Option<usize>,
}

impl<T> Default for Lines<T> {
    fn default() -> Self {
        Lines {
            all: Vec::new(),
            latest_end: 0.0,
            whole: None,
        }
    }
}

impl<T> Deref for Lines<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.all
    }
}

impl<T: AsRef<IperfLine>> Lines<T> {
    pub fn add(&mut self, line: T) {
        let figures = line.as_ref();
        if figures.end > self.latest_end {
            self.latest_end = figures.end;
            self.whole = None;
        }
        if figures.start == 0.0 && figures.end >= self.latest_end {
            self.whole = Some(self.all.len());
        }
        self.all.push(line);
    }

    /// The index of the summary line: the last one from 0 to the latest end.
    pub fn whole(&self) -> Option<usize> {
        self.whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_is_the_last_line_from_0_that_reaches_to_the_end() {
        let mut lines: Lines<IperfLine> = Lines::default();
        let mut wholes = Vec::new();
        for (start, end) in [
            (0.0, 1.0),
            (1.0, 2.0),
            (0.0, 2.0),
            (0.0, 1.5),
            (2.0, 3.0),
            (0.0, 3.0),
            (0.0, 3.0),
        ] {
            lines.add(IperfLine {
                start,
                end,
                ..IperfLine::default()
            });
            wholes.push(lines.whole());
        }
        assert_eq!(
            wholes,
            [Some(0), None, Some(2), Some(2), None, Some(5), Some(6)]
        );
        assert_eq!(lines.len(), 7);
    }
}
