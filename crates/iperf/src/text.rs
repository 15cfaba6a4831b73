//! What iperf 2 prints, word for word, in the manner of version 2.0.5 or of 2.1.8.
//!
//! What must hold: every function is pure, takes what a line says and returns the line (several, for
//! a banner) without the newline at its end. Whatever the input, no figure is infinite or not a
//! number: the originals print such a thing when a test took no time or saw no datagram, and programs
//! that read their output stumble over it.

mod banner;
mod connection;
mod csv;
mod enhanced;
mod lines;
mod messages;
mod units;

pub use banner::{
    ClientBanner, ClientEnhanced, Mss, ServerBanner, Window, client_banner, server_banner,
};
pub use connection::{Connection, ConnectionEnhanced, InitialTcp, connection_line};
pub use csv::{CsvRow, csv_row, csv_runs_row, csv_sum_row};
pub use enhanced::{
    EnhancedHeader, connect_times_line, enhanced_header, gaps_line, tcp_receiver_line,
    tcp_sender_line, tcp_sender_sum_line, udp_receiver_line, udp_receiver_sum_line,
    udp_sender_line,
};
pub use lines::{
    Header, duplex_sum_line, header, out_of_order_line, receiver_line, receiver_sum_line,
    sender_line, sent_line, server_report_line,
};
pub use messages::{
    MISSING_REVERSE, WAITING_FOR_THREADS, bind_failed, connect_failed, mss_lines,
    no_acknowledgement, small_window, usage, version,
};
pub use units::{amount, loss_percent, rate, transfer, two_digits};

use crate::options::Common;

/// Whose output is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Version 2.0.5: times with one decimal, streams numbered as their sockets are.
    #[default]
    V2_0,
    /// Version 2.1.8 as Debian builds it: times with four decimals, streams numbered from 1.
    V2_1,
}

/// How figures are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Whose output is spoken.
    pub style: Style,
    /// The unit asked for with `-f`, `a` without it: see [`amount`].
    pub letter: char,
}

impl Format {
    /// The format that the command line asks for.
    pub fn of(common: &Common) -> Self {
        Format {
            style: common.style,
            letter: common.format,
        }
    }
}

/// What tells one stream from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamId {
    /// The socket's descriptor in style 2.0, a running number from 1 in style 2.1.
    pub number: u32,
    /// Whether data flow against the stream's usual direction; only style 2.1 marks it.
    pub is_reversed: bool,
}

/// Whom a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// One stream.
    Stream(StreamId),
    /// All streams together.
    Sum,
    /// All streams together, whose number is told.
    SumOf(u32),
}

impl Label {
    /// The bracketed field every line about a stream starts with.
    fn text(self, style: Style) -> String {
        match self {
            Self::Stream(id) if id.is_reversed && style == Style::V2_1 => {
                format!("[{:>3}]", format!("*{}", id.number))
            }
            Self::Stream(id) => format!("[{:>3}]", id.number),
            Self::Sum => String::from("[SUM]"),
            Self::SumOf(streams) => format!("[SUM-{streams}]"),
        }
    }
}

/// Below this a time is no base for a rate.
const SHORTEST_SECONDS: f64 = 100e-6;

/// What flowed between two instants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Start, in seconds since the stream's start.
    pub start_seconds: f64,
    /// End, in seconds since the stream's start.
    pub end_seconds: f64,
    /// Bytes of payload.
    pub bytes: u64,
}

impl Interval {
    /// How many a second `count` is; none if the interval took no time to speak of.
    fn per_second(&self, count: f64) -> f64 {
        let elapsed = self.end_seconds - self.start_seconds;
        if elapsed >= SHORTEST_SECONDS {
            count / elapsed
        } else {
            0.0
        }
    }

    fn bytes_per_second(&self) -> f64 {
        self.per_second(self.bytes as f64)
    }
}

/// What a UDP receiver says beyond the bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiptFigures {
    /// Smoothed variation of the transit time, in milliseconds.
    pub jitter_ms: f64,
    /// Datagrams that did not come; less than none in an interval that saw more come late.
    pub lost: i64,
    /// Datagrams that were sent, lost ones included.
    pub total: u64,
    /// Datagrams that came after one sent later.
    pub out_of_order: u64,
}

/// Wall-clock time, in whatever zone the caller chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    /// Year, as `2026`.
    pub year: u16,
    /// Month, from 1.
    pub month: u8,
    /// Day of the month, from 1.
    pub day: u8,
    /// Hour, from 0.
    pub hour: u8,
    /// Minute.
    pub minute: u8,
    /// Second.
    pub second: u8,
    /// Milliseconds.
    pub millis: u16,
}

/// The value itself if it can be printed as a figure, else the nearest one that can.
fn printable(value: f64) -> f64 {
    if value > 0.0 {
        value.min(f64::MAX)
    } else {
        // Neither what is not a number nor a zero with a sign.
        0.0
    }
}
