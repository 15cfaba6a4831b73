//! Findings: commands, lines of figures, counters and settings that a recogniser reads.

use std::ops::{Deref, Range};

use crate::cursor::Unit;

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
    Command(Command),
    /// `Client connecting to` or `Server listening on`.
    Banner(Banner),
    /// A line of a banner with a size in bytes: what it is of, and the size.
    Size(&'static str, f64),
    /// `[ID] local A port P connected with B port Q`.
    Connected(Connected),
    /// A line of figures.
    Interval(Box<IperfLine>),
    /// `[ID] ... datagrams received out-of-order`, `[ID] Sent N datagrams`: what was counted.
    Counted(Id, &'static str, f64),
    /// `[ID] Server Report:`.
    Report(Id),
    /// A line of netblast or netsend.
    Blast(BlastField, f64),
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

/// Programs whose commands are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Iperf,
    Netblast,
    Netreceive,
    Netsend,
    /// Prints CPU states, counters or variables.
    Look,
    Sysctl,
    Ifconfig,
    Ethtool,
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub tool: Tool,
    /// The host that the prompt names.
    pub host: Option<String>,
    /// Whether there is a prompt.
    pub is_prompted: bool,
    /// Its arguments.
    pub words: Vec<String>,
}

impl Command {
    /// The value of an option of one letter: glued to it, or the next word.
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

    /// Whether an option without a value is there.
    pub fn has(&self, letter: char) -> bool {
        // Flags may share a dash: -us.
        let flags = self.words.iter().filter_map(|word| word.strip_prefix('-'));
        let mut flags = flags.filter(|it| !it.starts_with('-'));
        flags.any(|it| it.starts_with(letter) || (it.len() < 4 && it.contains(letter)))
    }
}

/// What stands in brackets: a number, `*` and a number, or `SUM`. Empty where the brackets are missing.
pub type Id = String;

/// A banner.
#[derive(Clone, Debug, PartialEq)]
pub struct Banner {
    pub is_server: bool,
    pub is_udp: bool,
    pub peer: Option<String>,
    pub port: Option<u16>,
}

/// A connection as one end sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    pub id: Id,
    pub local: (String, u16),
    pub peer: (String, u16),
}

/// A line of figures of iperf 2, or of iperf3's text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IperfLine {
    /// What stands in its brackets: a number, `*` and a number, or `SUM`. Empty where they are missing.
    pub id: Id,
    /// Its beginning, in seconds from that of the test.
    pub start: f64,
    /// Its end, likewise.
    pub end: f64,
    /// Payload that was sent or received.
    pub bytes: f64,
    /// Payload a second, in bits.
    pub bits_per_second: f64,
    /// Interarrival jitter, which a receiver of datagrams prints.
    pub jitter_seconds: Option<f64>,
    /// Datagrams that were lost, and all that were sent.
    pub datagrams: Option<[f64; 2]>,
    /// The share by which transfer over time may differ from the rate: each is rounded to its last digit.
    pub(crate) rounding: f64,
}

impl AsRef<IperfLine> for IperfLine {
    fn as_ref(&self) -> &IperfLine {
        self
    }
}

impl IperfLine {
    /// Whether its parts agree, as far as they were printed.
    pub(crate) fn agrees(&self) -> bool {
        let seconds = self.end - self.start;
        let rate = self.bytes * 8.0 / seconds;
        let off = (rate - self.bits_per_second).abs();
        let may_be_off = self.rounding * rate.max(self.bits_per_second);
        seconds > 0.0 && (off == 0.0 || off <= may_be_off)
    }

    /// Whether both tell the same, whatever their brackets say.
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
    /// When it began, in seconds of the clock.
    Start,
    /// When it ended.
    Finish,
    /// Calls of send(2).
    Calls,
    /// Those of them that failed.
    Errors,
    /// Those of them that did not.
    Success,
    /// Packets a second.
    Rate,
    /// It is an integer division: 0 with millions of errors.
    ErrorRate,
    /// Bits a second of frames without their FCS.
    Throughput,
}

/// The lines, in the order in which they came.
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

    /// The position of the line of the whole test: the last one from 0 that reaches to the latest end.
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
