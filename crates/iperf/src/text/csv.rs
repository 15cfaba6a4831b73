//! One line of comma-separated values a report (`-y C`).

use std::net::SocketAddr;

use nicpoll_traffic::repeat::Outcome;

use super::units::loss_percent;
use super::{Interval, ReceiptFigures, StreamId, Style, Timestamp, printable};

/// What a row says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CsvRow {
    /// When the row is written, in local time.
    pub time: Timestamp,
    /// Whether milliseconds are told (`-e`); style 2.1 only.
    pub has_millis: bool,
    /// The end that counted: the server's in a report it relayed.
    pub reporter: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// Whether the reporter is the end that sent.
    pub is_sender: bool,
    /// The stream.
    pub id: StreamId,
    /// What flowed.
    pub interval: Interval,
    /// What a UDP receiver adds. A UDP sender of style 2.1 adds it too, with the datagrams it sent
    /// as the total and the rest 0; one of style 2.0 adds nothing.
    pub receipt: Option<ReceiptFigures>,
}

/// One stream's row.
pub fn csv_row(style: Style, row: &CsvRow) -> String {
    // Style 2.0 tells the own end first, style 2.1 the sending one.
    let (first, second) = match style {
        Style::V2_1 if !row.is_sender => (row.peer, row.reporter),
        _ => (row.reporter, row.peer),
    };
    fields(style, row, (first, second), &row.id.number.to_string())
}

/// The row of all streams together, made of one of them. 2.1.8 has none: that of style 2.1 is 2.2's.
///
/// Ports that differ between the streams show as 0: in style 2.0 a client's own, and at a server's end
/// both; in style 2.1 the client's, at either end.
pub fn csv_sum_row(style: Style, is_client: bool, row: &CsvRow) -> String {
    together(style, is_client, row, "-1")
}

/// The row of all runs of a client (--repeat), made of one of their streams with the runs' time and bytes
/// added up; `None` when no run has a rate. The original has no such row: its id is -2. Behind the first nine
/// fields stand the median of the runs' rates, the least, the greatest, the ends of the interval (empty
/// when there is none), how many runs have a rate, and how many were asked for; rates in bit/s.
pub fn csv_runs_row(style: Style, row: &CsvRow, outcome: &Outcome) -> Option<String> {
    let summary = outcome.summary?;
    let (low, high) = outcome.interval.map_or_else(Default::default, |interval| {
        (
            format!("{:.0}", interval.low),
            format!("{:.0}", interval.high),
        )
    });
    Some(format!(
        "{},{:.0},{:.0},{:.0},{low},{high},{},{}",
        together(style, true, row, "-2"),
        summary.median,
        summary.min,
        summary.max,
        summary.n,
        outcome.asked
    ))
}

/// A row of several streams.
fn together(style: Style, is_client: bool, row: &CsvRow, id: &str) -> String {
    let (mut own, mut other) = (row.reporter, row.peer);
    if style == Style::V2_0 || is_client {
        own.set_port(0);
    }
    if style == Style::V2_0 && !row.is_sender || style == Style::V2_1 && !is_client {
        other.set_port(0);
    }
    let ends = match style {
        Style::V2_1 if !row.is_sender => (other, own),
        _ => (own, other),
    };
    fields(style, row, ends, id)
}

fn fields(
    style: Style,
    row: &CsvRow,
    (first, second): (SocketAddr, SocketAddr),
    id: &str,
) -> String {
    let interval = row.interval;
    let mut line = format!(
        "{},{},{},{},{},{id},{:.1}-{:.1},{},{:.0}",
        timestamp(row.time, row.has_millis && style == Style::V2_1),
        first.ip(),
        first.port(),
        second.ip(),
        second.port(),
        printable(interval.start_seconds),
        printable(interval.end_seconds),
        interval.bytes,
        interval.per_second(interval.bytes as f64 * 8.0).trunc(),
    );
    if let Some(receipt) = row.receipt {
        line += &format!(
            ",{:.3},{},{},{:.3},{}",
            printable(receipt.jitter_ms),
            receipt.lost,
            receipt.total,
            loss_percent(&receipt),
            receipt.out_of_order
        );
    }
    line
}

fn timestamp(time: Timestamp, has_millis: bool) -> String {
    let seconds = format!(
        "{:04}{:02}{:02}{:02}{:02}{:02}",
        time.year, time.month, time.day, time.hour, time.minute, time.second
    );
    if has_millis {
        format!("{seconds}.{:03}", time.millis)
    } else {
        seconds
    }
}
