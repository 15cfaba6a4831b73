//! What a stream came to.

use nicpoll_traffic::SocketBuffer;

use crate::text::{Interval, ReceiptFigures};
use crate::wire::ServerReport;
use crate::{Broken, Distribution, IntervalRecord, tcp};

/// The other end ended its stream as it does when all has been sent.
pub const LEFT_WELL: &str = "the server ended the stream";

/// What one end of a stream came to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Total {
    /// From the start to the end.
    pub interval: Interval,
    /// What a receiver of datagrams adds.
    pub receipt: Option<ReceiptFigures>,
    /// Datagrams that a sender sent.
    pub sent_datagrams: Option<u64>,
    /// What the server said it received.
    pub server_report: Option<ServerReport>,
    /// What only enhanced output and JSON tell.
    pub detail: Detail,
    /// When data flowed last, if that was before the end of the interval.
    pub flowed_seconds: Option<f64>,
    /// How the other end left a stream that it had not finished, if that is known.
    pub left: Option<&'static str>,
    /// What is wrong with the result, in words for people; `None` when nothing is.
    pub problem: Option<String>,
}

/// What iperf does not tell of a stream unless it is asked to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Detail {
    /// The stream as one interval.
    pub whole: IntervalRecord,
    /// From the first write until the receiver had read everything; of a TCP sender.
    pub close_seconds: Option<f64>,
    /// The socket buffer at the end.
    pub buffer: SocketBuffer,
    /// Gaps between datagrams.
    pub gaps: Option<Box<Distribution>>,
    /// From the sending of a datagram to its arrival.
    pub one_way_delays: Option<Box<Distribution>>,
}

impl Total {
    /// What took so long, and no more than that.
    pub fn of(seconds: f64, detail: Detail) -> Self {
        Total {
            interval: Interval {
                start_seconds: 0.0,
                end_seconds: seconds,
                bytes: detail.whole.bytes,
            },
            receipt: None,
            sent_datagrams: None,
            server_report: None,
            detail,
            flowed_seconds: None,
            left: None,
            problem: None,
        }
    }

    /// What a stream came to that broke off.
    pub fn broken(broken: &Broken, is_datagrams: bool, problem: String) -> Self {
        let whole = broken.whole;
        let is_sender = whole.receipt.is_none();
        Total {
            receipt: whole.receipt.map(|receipt| ReceiptFigures {
                jitter_ms: 1e3 * receipt.jitter_seconds.unwrap_or(0.0),
                lost: receipt.lost,
                total: receipt.expected,
                out_of_order: receipt.out_of_order,
            }),
            sent_datagrams: (is_datagrams && is_sender).then_some(whole.datagrams),
            problem: Some(problem),
            ..Total::of(whole.end, Detail::of(whole, broken.buffer))
        }
    }

    /// Until when data flowed, in seconds from the beginning.
    pub fn obtained_seconds(&self) -> f64 {
        self.flowed_seconds.unwrap_or(self.interval.end_seconds)
    }

    /// What a receiver of TCP came to.
    pub fn received(report: &tcp::ReceiveReport) -> Self {
        Total::of(
            report.seconds,
            Detail::of(report.whole, report.receive_buffer),
        )
    }

    /// What the server said: when, and what of the datagrams.
    pub fn relayed(&self) -> Option<(Interval, ReceiptFigures)> {
        let report = self.server_report?;
        let interval = Interval {
            start_seconds: 0.0,
            end_seconds: report.elapsed.as_secs_f64(),
            bytes: report.bytes,
        };
        let receipt = ReceiptFigures {
            jitter_ms: 1e3 * report.jitter.as_secs_f64(),
            lost: report.lost as i64,
            total: report.datagrams,
            out_of_order: report.out_of_order,
        };
        Some((interval, receipt))
    }
}

impl Detail {
    /// What every stream has.
    pub fn of(whole: IntervalRecord, buffer: SocketBuffer) -> Self {
        Detail {
            whole,
            close_seconds: None,
            buffer,
            gaps: None,
            one_way_delays: None,
        }
    }
}
