//! Column headers and the lines below them.

use super::units::{loss_percent, rate, transfer, two_digits};
use super::{Format, Interval, Label, ReceiptFigures, StreamId, Style, printable};

/// Which columns follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Of TCP, and of a UDP sender.
    Sender,
    /// Of a UDP receiver, at its own end or relayed to the sender.
    Receiver,
    /// Of both directions of UDP together; style 2.1 only.
    DuplexSum,
    /// Of all streams where single ones are not told (`--sum-only`).
    SumOnly,
    /// The same of UDP streams at the end that receives them; style 2.1 only.
    SumOnlyReceivers,
}

/// The line above the columns.
pub fn header(header: Header) -> &'static str {
    match header {
        Header::Sender => "[ ID] Interval       Transfer     Bandwidth",
        Header::Receiver => {
            "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams"
        }
        Header::DuplexSum => "[ ID] Interval       Transfer     Bandwidth    Datagrams   PPS",
        Header::SumOnly => "[SUM-cnt] Interval       Transfer     Bandwidth",
        Header::SumOnlyReceivers => {
            "[SUM-cnt] Interval     Transfer     Bandwidth       Lost/Total    PPS"
        }
    }
}

/// What one end of a TCP stream, or the sender of a UDP stream, counted; or the sum of such.
/// ```
/// use nicpoll_iperf::text::{Format, Interval, Label, StreamId, Style, sender_line};
///
/// let format = Format { style: Style::V2_0, letter: 'm' };
/// let label = Label::Stream(StreamId { number: 3, is_reversed: false });
/// let interval = Interval { start_seconds: 0.0, end_seconds: 10.0, bytes: 1_176_502_272 };
/// let line = "[  3]  0.0-10.0 sec  1122 MBytes   941 Mbits/sec";
/// assert_eq!(sender_line(format, label, &interval), line);
/// ```
pub fn sender_line(format: Format, label: Label, interval: &Interval) -> String {
    format!(
        "{}  {}  {}",
        times(format.style, label, interval),
        transfer(format, interval.bytes),
        rate(format, interval)
    )
}

/// What the receiver of a UDP stream counted.
pub fn receiver_line(
    format: Format,
    id: StreamId,
    interval: &Interval,
    receipt: &ReceiptFigures,
) -> String {
    let ReceiptFigures { lost, total, .. } = receipt;
    let datagrams = match format.style {
        Style::V2_0 => format!("{lost:4}/{total:5}"),
        Style::V2_1 => format!("{lost}/{total}"),
    };
    format!(
        "{}  {:6.3} ms {datagrams} ({}%)",
        sender_line(format, Label::Stream(id), interval),
        printable(receipt.jitter_ms),
        two_digits(loss_percent(receipt))
    )
}

/// What the receivers of several UDP streams counted together; style 2.0 leaves out the losses.
pub fn receiver_sum_line(format: Format, interval: &Interval, receipt: &ReceiptFigures) -> String {
    let line = sender_line(format, Label::Sum, interval);
    match format.style {
        Style::V2_0 => line,
        Style::V2_1 => format!(
            "{line}   {}/{} ({}%)",
            receipt.lost,
            receipt.total,
            two_digits(loss_percent(receipt))
        ),
    }
}

/// What flowed in both directions of UDP together, below [`Header::DuplexSum`].
pub fn duplex_sum_line(format: Format, interval: &Interval, datagrams: u64) -> String {
    format!(
        "{} {datagrams}{:8.0} pps",
        sender_line(format, Label::Sum, interval),
        interval.per_second(datagrams as f64)
    )
}

/// How many datagrams came late; nothing if none did.
pub fn out_of_order_line(
    style: Style,
    label: Label,
    interval: &Interval,
    receipt: &ReceiptFigures,
) -> Option<String> {
    (receipt.out_of_order > 0).then(|| {
        format!(
            "{}  {} datagrams received out-of-order",
            times(style, label, interval),
            receipt.out_of_order
        )
    })
}

/// How many datagrams were sent in all.
pub fn sent_line(style: Style, label: Label, datagrams: u64) -> String {
    format!("{} Sent {datagrams} datagrams", label.text(style))
}

/// What stands above the receiver's report at the sender's end.
pub fn server_report_line(style: Style, id: StreamId) -> String {
    format!("{} Server Report:", Label::Stream(id).text(style))
}

/// Whom the line is about and when.
pub(super) fn times(style: Style, label: Label, interval: &Interval) -> String {
    let label = label.text(style);
    let start = printable(interval.start_seconds);
    let end = printable(interval.end_seconds);
    match style {
        Style::V2_0 => format!("{label} {start:4.1}-{end:4.1} sec"),
        Style::V2_1 => format!("{label} {start:.4}-{end:.4} sec"),
    }
}
