//! Lines of ttcp.

use crate::cursor::{Cursor, MeasuredUnit, measured_in};
use crate::lines::command;
use crate::lines::seen::{Banner, IperfLine, Seen};

/// The sender's lines and the receiver's begin so. Results have these as their ids.
pub const SENDER: &str = "ttcp-t";
pub const RECEIVER: &str = "ttcp-r";

/// Reads `ttcp-t: 16777216 bytes in 1.45 real seconds = 11299.31 KB/sec +++`, any other line of ttcp, or its command.
pub fn line(cursor: &mut Cursor) -> Option<Seen> {
    /// Longest line in bytes.
    const LINE_MAX: usize = 200;
    const TORN: &str =
        "a result of ttcp whose bytes, time and rate do not agree, or are not all there";
    let Some(id) = cursor.any([SENDER, RECEIVER]) else {
        cursor.clone().words("ttcp ")?;
        return command::bare(cursor);
    };
    cursor.byte(b':')?;
    if let Some(figures) = cursor.attempt(|cursor| figures(cursor, id)) {
        return Some(Seen::Interval(Box::new(figures)));
    }
    let rest = cursor.word(LINE_MAX, |it| it != b'\n')?;
    // The next line may be glued to it.
    let ended = rest.find("ttcp-").unwrap_or(rest.len());
    cursor.at -= rest.len() - ended;
    let rest = &rest[..ended];
    let mut after = ["->", "accept from "]
        .iter()
        .filter_map(|it| rest.split_once(it));
    let peer = after.find_map(|it| it.1.split_whitespace().next());
    let is_first = rest.contains("buflen=") || peer.is_some();
    Some(match is_first {
        true => Seen::Banner(Banner {
            is_server: id == RECEIVER,
            is_udp: rest.contains(" udp"),
            peer: peer.map(String::from),
            port: None,
        }),
        false if rest.contains(" bytes in ") => Seen::Spoilt(TORN),
        false => Seen::Remark,
    })
}

/// Reads bytes, time and rate that agree.
fn figures(cursor: &mut Cursor, id: &str) -> Option<IperfLine> {
    /// Times are printed to a hundredth, and old versions measure in ticks.
    const TIME_STEP: f64 = 0.02;
    let bytes = cursor.gap().count(false)?;
    cursor.words(" bytes in ")?;
    let end = cursor.number()?;
    cursor.words(" real seconds = ")?;
    let rate = measured_in(cursor, MeasuredUnit::BitsPerSecond)?;
    let figures = IperfLine {
        id: String::from(id),
        end,
        bytes,
        bits_per_second: rate.value,
        rounding: rate.rounding() + TIME_STEP / end,
        ..IperfLine::default()
    };
    figures.agrees().then_some(figures)
}
