//! What netblast and netsend print at their end, and netreceive twice a second.

use super::anchor::{Anchor, Recogniser, Seen, one};
use super::cursor::Cursor;
use crate::units::{self, Unit};

/// A line of netblast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlastField {
    Start,
    Finish,
    Calls,
    Errors,
    Success,
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
        let (_, field) = FIELDS
            .iter()
            .find(|(words, _)| cursor.words(words).is_some())?;
        cursor.gap();
        let value = match field {
            BlastField::Throughput => {
                let (value, Unit::BitsPerSecond) = units::quantity(cursor)? else {
                    return None;
                };
                value
            }
            // A time has nine decimals, which tells it from other things that start.
            BlastField::Start | BlastField::Finish => {
                let digits = cursor.at;
                let value = cursor.number()?;
                let text = &cursor.bytes[digits..cursor.at];
                text.contains(&b'.').then_some(value)?
            }
            _ => cursor.count(true)?,
        };
        one(began, cursor, Seen::Blast(*field, value))
    }
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
