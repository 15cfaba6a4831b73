//! A client or server from its options to its last line: the streams that they ask for, each on a
//! thread of its own, and one thread that prints what they report.

pub mod client;
mod realtime;
pub mod server;
mod settings;
mod ways;

use std::fs::File;
use std::io::{self, Write};

use nicpoll_model::{Rate, RateUnit};
use nicpoll_sys::stdio::StandardOutput;
use nicpoll_sys::tell;

use crate::options::Common;
use crate::text::{self, ReceiptFigures, StreamId, Style};
use crate::total::{Detail, Total};
use crate::{tcp, udp};

pub(crate) fn open_output(common: &Common, is_new: bool) -> io::Result<Box<dyn Write + Send>> {
    Ok(match &common.output {
        Some(path) => {
            if is_new {
                File::create(path)?;
            }
            // A daemon's errors go to the same file, and neither may write over the other.
            Box::new(File::options().append(true).open(path)?)
        }
        None => Box::new(StandardOutput),
    })
}

/// The kernel's words alone, as the original prints them.
fn kernel_words(error: &io::Error) -> String {
    let text = error.to_string();
    String::from(text.split(" (os error").next().unwrap_or(&text))
}

/// Microseconds from one datagram to the next at a rate; 0 without one.
fn gap_micros(rate: Option<Rate>, payload_bytes: usize) -> f64 {
    let bits = 8.0 * payload_bytes as f64;
    rate.map_or(0.0, |rate| match rate.unit() {
        RateUnit::BitsPerSecond => 1e6 * bits / rate.per_second(),
        RateUnit::PacketsPerSecond => 1e6 / rate.per_second(),
    })
}

/// What a sender of TCP came to. 2.1 tells the time until the receiver had read everything, 2.0 that of
/// the writing.
fn sent(style: Style, report: &tcp::SendReport) -> Total {
    let seconds = match style {
        Style::V2_1 => report.seconds_to_close.unwrap_or(report.seconds),
        Style::V2_0 => report.seconds,
    };
    Total::of(
        seconds,
        Detail {
            close_seconds: report.seconds_to_close,
            ..Detail::of(report.whole, report.send_buffer)
        },
    )
}

/// What a sender of datagrams came to.
fn sent_datagrams(
    common: &Common,
    number: u32,
    is_answered: bool,
    report: udp::SendReport,
) -> Total {
    if is_answered && report.fin_acks_received == 0 {
        let id = StreamId {
            number: number + 1,
            is_reversed: false,
        };
        let tries = report.fins_sent.try_into().unwrap_or(u32::MAX);
        tell!("{}", text::no_acknowledgement(common.style, id, tries));
    }
    Total {
        sent_datagrams: Some(report.datagrams_sent),
        server_report: report.server_report,
        ..Total::of(
            report.seconds,
            Detail {
                gaps: report.gaps,
                ..Detail::of(report.whole, report.send_buffer)
            },
        )
    }
}

/// What a receiver of datagrams came to.
fn received(report: udp::ReceiveReport) -> Total {
    let seconds = report.seconds_to_fin.unwrap_or(report.seconds);
    Total {
        receipt: Some(ReceiptFigures {
            jitter_ms: 1e3 * report.jitter_seconds.unwrap_or(0.0),
            lost: report.lost as i64,
            total: report.datagrams_expected,
            out_of_order: report.out_of_order,
        }),
        ..Total::of(
            seconds,
            Detail {
                gaps: report.gaps,
                one_way_delays: report.one_way_delays,
                ..Detail::of(report.whole, report.receive_buffer)
            },
        )
    }
}
