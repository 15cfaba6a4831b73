//! What iperf 2 prints: banners, connections and lines of figures, of both of its layouts.
//!
//! A line of figures is `[ID] start-end sec transfer rate [jitter ms lost/total (share)]`. Its parts are held against
//! each other: transfer over time is the rate, lost over total the share. Where a line was wrapped within a number,
//! the reading counts under which they agree.

use super::anchor::{Anchor, Recogniser, Seen, one};
use super::cursor::Cursor;
use crate::units::{self, Unit};

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

/// A line of figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    pub id: Id,
    pub start: f64,
    pub end: f64,
    pub bytes: f64,
    pub bits_per_second: f64,
    pub jitter_seconds: Option<f64>,
    /// Lost, and all that were sent.
    pub datagrams: Option<[f64; 2]>,
}

impl Interval {
    /// Whether its parts agree: figures are printed with three digits, or two.
    fn agrees(&self) -> bool {
        let seconds = self.end - self.start;
        let rate = self.bytes * 8.0 / seconds;
        let is_near = (rate / self.bits_per_second - 1.0).abs() < 0.06;
        seconds > 0.0 && (is_near || self.bits_per_second < 1e3 || seconds < 0.2)
    }
}

/// `[ID]`, and what follows.
pub struct InBrackets;

impl Recogniser for InBrackets {
    fn first(&self) -> &'static [u8] {
        b"["
    }

    fn read(&self, cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
        let began = cursor.at;
        let id = id(cursor)?;
        cursor.gap();
        if cursor.words("local ").is_some() {
            let connected = connected(cursor, id)?;
            return one(began, cursor, Seen::Connected(connected));
        }
        if cursor.words("Server Report").is_some() {
            let _ = cursor.gap().byte(b':');
            return one(began, cursor, Seen::Report(id));
        }
        if cursor.words("Sent").is_some() {
            let count = cursor.gap().count(true)?;
            cursor
                .words(" datagrams")
                .or_else(|| cursor.words(" datagram"))?;
            return one(began, cursor, Seen::Counted(id, "sent_datagrams", count));
        }
        let after = cursor.at;
        let line = figures(cursor);
        if let Some(line) = line {
            let interval = Box::new(Interval { id, ..line });
            return one(began, cursor, Seen::Interval(interval));
        }
        cursor.at = after;
        times(cursor)?;
        let count = cursor.gap().count(true)?;
        cursor.words(" datagrams received out-of-order")?;
        one(
            began,
            cursor,
            Seen::Counted(id, "out_of_order_datagrams", count),
        )
    }
}

/// A line of figures whose brackets were lost.
pub struct BareInterval;

impl Recogniser for BareInterval {
    fn first(&self) -> &'static [u8] {
        b"0123456789"
    }

    fn read(&self, cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
        let began = cursor.at;
        cursor.begins_number()?;
        let line = figures(cursor)?;
        one(began, cursor, Seen::Interval(Box::new(line)))
    }
}

fn id(cursor: &mut Cursor) -> Option<Id> {
    cursor.byte(b'[')?;
    cursor.gap();
    let id = cursor.word(6, |byte| {
        byte.is_ascii_digit() || matches!(byte, b'S' | b'U' | b'M' | b'*')
    })?;
    cursor.gap().byte(b']')?;
    Some(String::from(id))
}

fn connected(cursor: &mut Cursor, id: Id) -> Option<Connected> {
    let local = end(cursor)?;
    cursor.words(" connected with ")?;
    Some(Connected {
        id,
        local,
        peer: end(cursor)?,
    })
}

/// `A port P`.
fn end(cursor: &mut Cursor) -> Option<(String, u16)> {
    let address = cursor.word(64, is_of_address)?;
    // Without spaces, the word behind it hangs on.
    let length = address.find("port").unwrap_or(address.len());
    cursor.at -= address.len() - length;
    cursor.words(" port ")?;
    let port = cursor.count(false)?;
    Some((String::from(&address[..length]), port as u16))
}

fn is_of_address(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b':' | b'-' | b'%' | b'_')
}

fn times(cursor: &mut Cursor) -> Option<(f64, f64)> {
    let start = cursor.gap().number()?;
    cursor.gap().byte(b'-')?;
    let end = cursor.gap().number()?;
    cursor.gap();
    cursor.any(&["sec", "s"])?;
    (start < end).then_some((start, end))
}

/// The line under the reading in which its parts agree; a line that was not wrapped has one only.
fn figures(cursor: &mut Cursor) -> Option<Interval> {
    let began = cursor.clone();
    let plain = figures_as_they_stand(cursor);
    let ends_at_wrap = cursor.peek() == b'\n' && cursor.ahead(1).is_ascii_digit();
    if plain.as_ref().is_some_and(Interval::agrees) && !ends_at_wrap {
        return plain;
    }
    let mut wrapped = Cursor {
        joins: true,
        ..began
    };
    let joined = figures_as_they_stand(&mut wrapped).filter(Interval::agrees);
    match joined.filter(|_| {
        plain
            .as_ref()
            .is_none_or(|it| !it.agrees() || it.datagrams.is_some())
    }) {
        Some(joined) => {
            cursor.at = wrapped.at;
            Some(joined)
        }
        None => plain.filter(Interval::agrees),
    }
}

fn figures_as_they_stand(cursor: &mut Cursor) -> Option<Interval> {
    let (start, end) = times(cursor)?;
    cursor.gap();
    let (bytes, Unit::Bytes) = units::quantity(cursor)? else {
        return None;
    };
    cursor.gap();
    let (bits_per_second, Unit::BitsPerSecond) = units::quantity(cursor)? else {
        return None;
    };
    let mut line = Interval {
        start,
        end,
        bytes,
        bits_per_second,
        ..Interval::default()
    };
    let behind = cursor.at;
    if let Some((jitter, datagrams)) = arrived(cursor) {
        line.jitter_seconds = Some(jitter);
        line.datagrams = Some(datagrams);
    } else {
        cursor.at = behind;
    }
    Some(line)
}

/// `jitter ms lost/total (share%)`: what a receiver knows.
fn arrived(cursor: &mut Cursor) -> Option<(f64, [f64; 2])> {
    let jitter = cursor.gap().number()?;
    cursor.words(" ms")?;
    let lost = cursor.gap().count(true)?;
    cursor.gap().byte(b'/')?;
    let total = cursor.gap().count(true)?;
    cursor.gap();
    if cursor.byte(b'(').is_some() {
        let share = cursor.gap().number()?;
        let exponent = cursor.at;
        // Small shares are printed as 1.5e-05.
        if cursor.byte(b'e').is_some() {
            cursor.byte(b'-')?;
            cursor.count(false)?;
        }
        let is_small = cursor.at > exponent;
        cursor.gap().byte(b'%')?;
        let _ = cursor.gap().byte(b')');
        let own = lost / total * 100.0;
        let is_near = is_small || (own - share).abs() <= 0.06 * own.max(share) + 0.06;
        is_near.then_some(())?;
    }
    (lost <= total).then_some((jitter / 1e3, [lost, total]))
}

/// The banners, and what is wrong in them at times.
pub struct Banners;

impl Recogniser for Banners {
    fn first(&self) -> &'static [u8] {
        b"CS"
    }

    fn read(&self, cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
        let began = cursor.at;
        let banner = if cursor.words("Client connecting to ").is_some() {
            // A name between angle brackets may be gone.
            let peer = cursor.word(64, is_of_address).map(String::from);
            cursor.gap();
            let _ = cursor.byte(b',');
            cursor.gap();
            let is_udp = protocol(cursor)?;
            Banner {
                is_server: false,
                is_udp,
                peer,
                port: port(cursor),
            }
        } else {
            cursor.words("Server listening on ")?;
            let is_udp = protocol(cursor)?;
            Banner {
                is_server: true,
                is_udp,
                peer: None,
                port: port(cursor),
            }
        };
        one(began, cursor, Seen::Banner(banner))
    }
}

fn protocol(cursor: &mut Cursor) -> Option<bool> {
    Some(cursor.any(&["UDP", "TCP"])? == "UDP")
}

fn port(cursor: &mut Cursor) -> Option<u16> {
    cursor.words(" port ")?;
    cursor.count(false).map(|port| port as u16)
}

/// `TCP window size: 32.5 KByte`, `Sending 1470 byte datagrams`.
pub struct Sizes;

impl Recogniser for Sizes {
    fn first(&self) -> &'static [u8] {
        b"TUSR"
    }

    fn read(&self, cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
        const BUFFERS: [(&str, &str); 2] = [
            ("TCP window size", "tcp_window_bytes"),
            ("UDP buffer size", "udp_buffer_bytes"),
        ];
        let began = cursor.at;
        if cursor.any(&["Sending", "Receiving"]).is_some() {
            let bytes = cursor.gap().count(false)?;
            cursor.words(" byte datagrams")?;
            return one(began, cursor, Seen::Size("datagram_bytes", bytes));
        }
        let (words, name) = BUFFERS
            .iter()
            .find(|(words, _)| cursor.words(words).is_some())?;
        debug_assert!(!words.is_empty());
        let _ = cursor.gap().byte(b':');
        cursor.gap();
        let (bytes, Unit::Bytes) = units::quantity(cursor)? else {
            return None;
        };
        one(began, cursor, Seen::Size(name, bytes))
    }
}
