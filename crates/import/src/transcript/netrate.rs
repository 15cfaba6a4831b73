//! What netblast and netsend print at their end, and netreceive twice a second.
//!
//! What must hold: these forms are read here and nowhere else, in transcripts and where a program printed them just now
//! ([`crate::netblast`], [`crate::netreceive`]).

use super::anchor::{Anchor, Recogniser, Seen, one};
use super::cursor::Cursor;
use crate::units::{self, Unit};

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

const FIELDS: [(&str, BlastField); 10] = [
    ("start:", BlastField::Start),
    ("finish:", BlastField::Finish),
    ("send calls:", BlastField::Calls),
    ("send errors:", BlastField::Errors),
    ("send success:", BlastField::Success),
    ("approx send rate:", BlastField::Rate),
    ("approx error rate:", BlastField::ErrorRate),
    ("approx throughput:", BlastField::Throughput),
    ("approx Ethernet throughput:", BlastField::Throughput),
    ("time/packet:", BlastField::ErrorRate),
];

/// `send calls:        403121`.
pub struct BlastLines;

impl Recogniser for BlastLines {
    fn first(&self) -> &'static [u8] {
        b"sfat"
    }

    fn read(&self, cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
        let began = cursor.at;
        let field = field(cursor)?;
        let value = value(cursor, field)?;
        one(began, cursor, Seen::Blast(field, value))
    }
}

/// The label that stands here.
pub fn field(cursor: &mut Cursor) -> Option<BlastField> {
    let mut fields = FIELDS.iter();
    let (_, field) = fields.find(|(words, _)| cursor.words(words).is_some())?;
    Some(*field)
}

/// What stands behind a label.
pub fn value(cursor: &mut Cursor, field: BlastField) -> Option<f64> {
    cursor.gap();
    match field {
        BlastField::Throughput => {
            let (value, Unit::BitsPerSecond) = units::quantity(cursor)? else {
                return None;
            };
            Some(value)
        }
        // A time has nine decimals, which tells it from other things that start.
        BlastField::Start | BlastField::Finish => {
            let digits = cursor.at;
            let value = cursor.number()?;
            let text = &cursor.bytes[digits..cursor.at];
            text.contains(&b'.').then_some(value)
        }
        _ => cursor.count(true),
    }
}

/// Reads a line of netblast or netsend: `send success:      403121`. Nothing when it is another line, or cannot be read.
/// ```
/// use nicpoll_import::{BlastField, netblast_line};
///
/// let (field, value) = netblast_line("send success:      403121").unwrap();
/// assert_eq!((field, value), (BlastField::Success, 403121.0));
/// ```
pub fn netblast_line(line: &str) -> Option<(BlastField, f64)> {
    let mut cursor = Cursor::new(line.as_bytes(), 0);
    let field = field(&mut cursor)?;
    Some((field, value(&mut cursor, field)?))
}

/// `   7244 pps    4.172 Mbps - 3622 pkts in 0.500012345 ns`.
pub struct ReceiveLines;

impl Recogniser for ReceiveLines {
    fn first(&self) -> &'static [u8] {
        b"0123456789"
    }

    fn read(&self, cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
        let began = cursor.at;
        if cursor.behind().is_ascii_digit() {
            return None;
        }
        let (packets, seconds) = line(cursor)?;
        one(began, cursor, Seen::Receive(packets, seconds))
    }
}

/// The packets of a line of netreceive, and the seconds that they came in, which it calls ns.
pub fn line(cursor: &mut Cursor) -> Option<(f64, f64)> {
    let (_, Unit::PacketsPerSecond) = units::quantity(cursor)? else {
        return None;
    };
    cursor.gap();
    let (_, Unit::BitsPerSecond) = units::quantity(cursor)? else {
        return None;
    };
    cursor.gap().byte(b'-')?;
    let packets = cursor.gap().count(false)?;
    cursor.words(" pkts in ")?;
    let seconds = cursor.number()?;
    cursor.words(" ns")?;
    (packets / seconds)
        .is_finite()
        .then_some((packets, seconds))
}

/// The lines of a stretch between which nothing began or ended: those within, of more than five.
pub fn steady<T>(lines: &[T]) -> &[T] {
    match lines.len() {
        0..=5 => lines,
        count => &lines[1..count - 1],
    }
}
