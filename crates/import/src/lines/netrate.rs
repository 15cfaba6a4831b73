//! Lines of netblast, netsend and netreceive.

use crate::cursor::{Cursor, MeasuredUnit, measured_in};
use crate::lines::seen::{BlastField, Seen};

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

/// Reads `send calls:        403121`.
pub fn blast_line(cursor: &mut Cursor) -> Option<Seen> {
    let field = field(cursor)?;
    let value = value(cursor, field)?;
    Some(Seen::Blast(field, value))
}

/// Reads a label.
pub fn field(cursor: &mut Cursor) -> Option<BlastField> {
    cursor.row(&FIELDS).copied()
}

/// Reads the value after a label.
pub fn value(cursor: &mut Cursor, field: BlastField) -> Option<f64> {
    cursor.gap();
    match field {
        BlastField::Throughput => Some(measured_in(cursor, MeasuredUnit::BitsPerSecond)?.value),
        // A timestamp has decimals, unlike other text after `start:`.
        BlastField::Start | BlastField::Finish => {
            let digits = cursor.at;
            let value = cursor.number()?;
            let text = &cursor.bytes[digits..cursor.at];
            text.contains(&b'.').then_some(value)
        }
        _ => cursor.count(true),
    }
}

/// Parses a line of netblast or netsend: `send success:      403121`. `None` for any other line.
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

/// Reads `   7244 pps    4.172 Mbps - 3622 pkts in 0.500012345 ns`.
pub fn receive_line(cursor: &mut Cursor) -> Option<Seen> {
    if cursor.behind().is_ascii_digit() {
        return None;
    }
    let (packets, seconds) = line(cursor)?;
    Some(Seen::Receive(packets, seconds))
}

/// Reads the packets of a netreceive line and their seconds, which it labels ns.
pub fn line(cursor: &mut Cursor) -> Option<(f64, f64)> {
    measured_in(cursor, MeasuredUnit::PacketsPerSecond)?;
    measured_in(cursor.gap(), MeasuredUnit::BitsPerSecond)?;
    cursor.gap().byte(b'-')?;
    let packets = cursor.gap().count(false)?;
    cursor.words(" pkts in ")?;
    let seconds = cursor.number()?;
    cursor.words(" ns")?;
    (packets / seconds)
        .is_finite()
        .then_some((packets, seconds))
}

/// A stretch without its first and last line if it has more than five: traffic began or ended within these.
pub fn steady<T>(lines: &[T]) -> &[T] {
    match lines.len() {
        0..=5 => lines,
        count => &lines[1..count - 1],
    }
}
