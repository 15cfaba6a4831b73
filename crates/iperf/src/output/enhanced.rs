//! Which line `-e` makes of a record in style 2.1.

use crate::text::{self, EnhancedHeader, Format, Interval, Label, ReceiptFigures, StreamId};
use crate::{Connected, IntervalRecord};

/// The line of one stream, and the header that belongs above it; `None` when TCP does not tell what the
/// line says.
pub fn line(
    format: Format,
    id: StreamId,
    connected: &Connected,
    interval: &Interval,
    receipt: Option<&ReceiptFigures>,
    record: &IntervalRecord,
) -> Option<(EnhancedHeader, String)> {
    let calls = &record.calls;
    let label = Label::Stream(id);
    Some(match (connected.tcp, receipt) {
        (Some(_), _) if connected.is_sender => (
            EnhancedHeader::TcpSender,
            text::tcp_sender_line(format, id, interval, calls, record.tcp.as_ref()?),
        ),
        (Some(_), _) => (
            EnhancedHeader::TcpReceiver,
            text::tcp_receiver_line(format, label, interval, calls),
        ),
        (None, Some(receipt)) => {
            let transit = record.receipt.and_then(|receipt| receipt.transit);
            let (datagrams, transit) = (record.datagrams, transit.as_ref());
            (
                EnhancedHeader::UdpReceiver,
                text::udp_receiver_line(format, id, interval, receipt, datagrams, transit),
            )
        }
        (None, None) => (
            EnhancedHeader::UdpSender,
            text::udp_sender_line(format, label, interval, calls, record.datagrams),
        ),
    })
}

/// The line of several streams like the one connected so, and the header that belongs above it where it
/// stands alone (`--sum-only`).
pub fn sum_line(
    format: Format,
    label: Label,
    connected: &Connected,
    interval: &Interval,
    receipt: Option<&ReceiptFigures>,
    record: &IntervalRecord,
) -> (EnhancedHeader, String) {
    let calls = &record.calls;
    match (connected.tcp, receipt) {
        (Some(_), _) if connected.is_sender => {
            let sent_again = record.tcp.map_or(0, |tcp| tcp.retransmitted_segments);
            (
                EnhancedHeader::TcpSenders,
                text::tcp_sender_sum_line(format, label, interval, calls, sent_again),
            )
        }
        (Some(_), _) => (
            EnhancedHeader::TcpReceivers,
            text::tcp_receiver_line(format, label, interval, calls),
        ),
        (None, Some(receipt)) => (
            EnhancedHeader::UdpReceivers,
            text::udp_receiver_sum_line(format, label, interval, receipt, record.datagrams),
        ),
        (None, None) => (
            EnhancedHeader::UdpSenders,
            text::udp_sender_line(format, label, interval, calls, record.datagrams),
        ),
    }
}
