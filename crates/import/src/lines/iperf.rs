//! Lines of iperf 2.
//!
//! A line of figures broken across lines is joined only if its bytes, times and rate then agree.

use crate::cursor::{Cursor, MeasuredUnit, measured_in};
use crate::lines::seen::{Banner, ConnectedLine, Id, IperfLine, Seen};

/// Parses an interval line of TCP or UDP: `[  3]  0.0-10.0 sec  1.10 GBytes   941 Mbits/sec`; a UDP receiver's
/// goes on with jitter and loss. `None` for any other line.
/// ```
/// use nicpoll_import::iperf_line;
///
/// let line = "[  3]  0.0- 4.1 sec  1.79 MBytes  3.66 Mbits/sec   0.120 ms  425/ 1701 (25%)";
/// let figures = iperf_line(line).unwrap();
/// assert_eq!(figures.bits_per_second, 3.66e6);
/// assert_eq!(figures.datagrams, Some([425.0, 1701.0]));
/// ```
pub fn iperf_line(line: &str) -> Option<IperfLine> {
    match as_it_stands(line)? {
        Seen::Interval(figures) => Some(*figures),
        _ => None,
    }
}

/// Parses a line that begins with brackets.
pub fn as_it_stands(line: &str) -> Option<Seen> {
    in_brackets(&mut Cursor::new(line.as_bytes(), 0), figures_as_they_stand)
}

/// Whether a line begins like an interval line: with brackets and times.
pub fn begins_figures(line: &str) -> bool {
    let mut cursor = Cursor::new(line.as_bytes(), 0);
    id(&mut cursor).and_then(|_| times(&mut cursor)).is_some()
}

/// Reads `[ID]` and what follows.
pub fn bracketed(cursor: &mut Cursor) -> Option<Seen> {
    in_brackets(cursor, figures)
}

/// Reads `[ID]` and what follows; `figures` reads the rest of an interval line.
fn in_brackets(
    cursor: &mut Cursor,
    figures: impl Fn(&mut Cursor) -> Option<IperfLine>,
) -> Option<Seen> {
    let id = id(cursor)?;
    cursor.gap();
    if cursor.words("local ").is_some() {
        return Some(Seen::Connected(connected(cursor, id)?));
    }
    if cursor.words("Server Report").is_some() {
        let _ = cursor.gap().byte(b':');
        return Some(Seen::Report(id));
    }
    if cursor.words("Sent").is_some() {
        let count = cursor.gap().count(true)?;
        cursor.any([" datagrams", " datagram"])?;
        return Some(Seen::Counted(id, "sent_datagrams", count));
    }
    if let Some(line) = cursor.attempt(figures) {
        return Some(Seen::Interval(Box::new(IperfLine { id, ..line })));
    }
    times(cursor)?;
    let count = cursor.gap().count(true)?;
    cursor.words(" datagrams received out-of-order")?;
    Some(Seen::Counted(id, "out_of_order_datagrams", count))
}

/// Reads an interval line whose brackets are missing.
pub fn bare_interval(cursor: &mut Cursor) -> Option<Seen> {
    cursor.begins_number()?;
    let line = figures(cursor)?;
    Some(Seen::Interval(Box::new(line)))
}

fn id(cursor: &mut Cursor) -> Option<Id> {
    cursor.byte(b'[')?;
    cursor.gap();
    // The sum of several streams may include their number: [SUM-2].
    let id = cursor.word(8, |byte| {
        byte.is_ascii_digit() || matches!(byte, b'S' | b'U' | b'M' | b'*' | b'-')
    })?;
    cursor.gap().byte(b']')?;
    // Of both ways at once iperf3 says which: [  7][RX-C].
    let role = cursor.attempt(|it| {
        it.byte(b'[')?;
        let role = it.any(ROLES)?;
        it.byte(b']').map(|()| role)
    });
    Some(format!("{id}{}", role.unwrap_or_default()))
}

/// What an end does in a stream, as iperf3's client and server print it behind the stream's number.
const ROLES: [&str; 4] = ["TX-C", "RX-C", "TX-S", "RX-S"];

/// The number of a stream without the end's role, and whether the end sends.
pub fn role(id: &str) -> Option<(&str, bool)> {
    let role = ROLES.into_iter().find(|it| id.ends_with(it))?;
    Some((id.strip_suffix(role)?, role.starts_with('T')))
}

fn connected(cursor: &mut Cursor, id: Id) -> Option<ConnectedLine> {
    let local = end(cursor)?;
    cursor.any([" connected with ", " connected to "])?;
    Some(ConnectedLine {
        id,
        local,
        peer: end(cursor)?,
    })
}

/// Reads `A port P`.
fn end(cursor: &mut Cursor) -> Option<(String, u16)> {
    let address = cursor.word(64, is_of_address)?;
    // Without spaces, `port` is glued to the address.
    let length = address.find("port").unwrap_or(address.len());
    cursor.at -= address.len() - length;
    Some((String::from(&address[..length]), port(cursor)?))
}

fn is_of_address(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b':' | b'-' | b'%' | b'_')
}

fn times(cursor: &mut Cursor) -> Option<(f64, f64)> {
    let start = cursor.gap().number()?;
    cursor.gap().byte(b'-')?;
    let end = cursor.gap().number()?;
    cursor.gap().any(["sec", "s"])?;
    (start <= end).then_some((start, end))
}

/// Reads an interval line, joined or not, whose parts agree. A line that was not wrapped is read only one way.
fn figures(cursor: &mut Cursor) -> Option<IperfLine> {
    let mut wrapped = cursor.clone();
    cursor.has_wrapped = false;
    let plain = figures_as_they_stand(cursor).filter(IperfLine::agrees);
    let ends_at_wrap = cursor.peek() == b'\n' && cursor.ahead(1).is_ascii_digit();
    if !cursor.has_wrapped || (plain.is_some() && !ends_at_wrap) {
        return plain;
    }
    wrapped.joins = true;
    let may_be_longer = plain.as_ref().is_none_or(|it| it.datagrams.is_some());
    let joined = figures_as_they_stand(&mut wrapped).filter(IperfLine::agrees);
    let joined = joined.filter(|_| may_be_longer);
    if joined.is_some() {
        cursor.at = wrapped.at;
    }
    joined.or(plain)
}

fn figures_as_they_stand(cursor: &mut Cursor) -> Option<IperfLine> {
    /// Times are rounded to a tenth or better.
    const TIME_STEP: f64 = 0.1;
    /// Tools differ in the time they divide by.
    const REST: f64 = 0.06;
    let (start, end) = times(cursor)?;
    let transfer = measured_in(cursor.gap(), MeasuredUnit::Bytes)?;
    let rate = measured_in(cursor.gap(), MeasuredUnit::BitsPerSecond)?;
    let mut line = IperfLine {
        start,
        end,
        bytes: transfer.value,
        bits_per_second: rate.value,
        rounding: transfer.rounding() + rate.rounding() + TIME_STEP / (end - start) + REST,
        ..IperfLine::default()
    };
    (line.jitter_seconds, line.datagrams) = cursor.attempt(arrived).unzip();
    line.is_receivers = cursor.attempt(|cursor| {
        // A sender's retransmissions come before the word.
        let _ = cursor.spaces().count(false);
        cursor.spaces();
        // A folded line leaves the word to the next one.
        if cursor.byte(b'\n').is_some() {
            let mut next = cursor.spaces().clone();
            next.word(10, |it| it.is_ascii_lowercase())?;
            matches!(next.peek(), b'\n' | 0).then_some(())?;
        }
        Some(cursor.any(["receiver", "sender"])? == "receiver")
    });
    // Retransmissions and the congestion window, which are no prose.
    let _ = cursor.attempt(|cursor| {
        cursor.spaces().count(false)?;
        measured_in(cursor.gap(), MeasuredUnit::Bytes)
    });
    Some(line)
}

/// Reads `jitter ms lost/total (share%)` of a receiver.
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

/// Reads `Client connecting to HOST, UDP port 5001` or `Server listening on TCP port 5001`; of iperf3 `Connecting to
/// host HOST, port 5201`, `Server listening on 5201 (test #2)` or `Accepted connection from HOST, port 40112`.
pub fn banner(cursor: &mut Cursor) -> Option<Banner> {
    const CLIENT: &str = "Client connecting to ";
    const SERVER: &str = "Server listening on ";
    const ACCEPTED: &str = "Accepted connection from ";
    let head = cursor.any([CLIENT, "Connecting to host ", SERVER, ACCEPTED])?;
    // A host name in angle brackets may be missing.
    let peer = match head {
        SERVER => None,
        _ => cursor.word(64, is_of_address).map(String::from),
    };
    let _ = cursor.gap().byte(b',');
    cursor.gap();
    let protocol = cursor.any(["UDP", "TCP"]);
    let port = match (head, protocol) {
        (SERVER, None) => cursor.count(false).map(|port| port as u16),
        _ => port(cursor),
    };
    // iperf3 names no protocol, but always a port.
    if protocol.is_none() && (head == CLIENT || port.is_none() || cursor.peek() == b'.') {
        return None;
    }
    let _ = cursor
        .words(" (test")
        .and_then(|()| cursor.word(8, |it| it != b'\n'));
    Some(Banner {
        is_server: matches!(head, SERVER | ACCEPTED),
        is_udp: protocol == Some("UDP"),
        peer,
        port: port.filter(|_| head != ACCEPTED),
    })
}

/// Reads `Reverse mode, remote host`.
pub fn reverse(cursor: &mut Cursor) -> Option<Seen> {
    cursor.words("Reverse mode, remote host ")?;
    cursor.word(64, |it| it != b'\n').map(|_| Seen::Reverse)
}

fn port(cursor: &mut Cursor) -> Option<u16> {
    cursor.words(" port ")?;
    cursor.count(false).map(|port| port as u16)
}

/// Reads `TCP window size: 32.5 KByte` or `Sending 1470 byte datagrams`.
pub fn size(cursor: &mut Cursor) -> Option<Seen> {
    const BUFFERS: [(&str, &str); 2] = [
        ("TCP window size", "tcp_window_bytes"),
        ("UDP buffer size", "udp_buffer_bytes"),
    ];
    if cursor.any(["Sending", "Receiving"]).is_some() {
        let bytes = cursor.gap().count(false)?;
        cursor.words(" byte datagrams")?;
        return Some(Seen::Size("datagram_bytes", bytes));
    }
    let name = cursor.row(&BUFFERS)?;
    let _ = cursor.gap().byte(b':');
    let bytes = measured_in(cursor.gap(), MeasuredUnit::Bytes)?.value;
    Some(Seen::Size(name, bytes))
}
