//! What a stream came to.

use nicpoll_traffic::SocketBuffer;

use crate::text::{Interval, Receipt};
use crate::wire::ServerReport;
use crate::{Distribution, IntervalRecord, tcp};

/// What one end of a stream came to.
#[derive(Clone, Debug)]
pub struct Total {
    /// From the start to the end.
    pub interval: Interval,
    /// What a receiver of datagrams adds.
    pub receipt: Option<Receipt>,
    /// Datagrams that a sender sent.
    pub sent_datagrams: Option<u64>,
    /// What the server said it received.
    pub server_report: Option<ServerReport>,
    /// What only enhanced output and JSON tell.
    pub detail: Detail,
}

/// What iperf does not tell of a stream unless it is asked to.
#[derive(Clone, Debug)]
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
        }
    }

    /// What a receiver of TCP came to.
    pub fn received(report: &tcp::ReceiveReport) -> Self {
        Total::of(
            report.seconds,
            Detail::of(report.whole, report.receive_buffer),
        )
    }

    /// What the server said: when, and what of the datagrams.
    pub fn relayed(&self) -> Option<(Interval, Receipt)> {
        let report = self.server_report?;
        let interval = Interval {
            start_seconds: 0.0,
            end_seconds: report.elapsed.as_secs_f64(),
            bytes: report.bytes,
        };
        let receipt = Receipt {
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
