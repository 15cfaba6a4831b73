//! TCP: a connection that carries data one way, as those of iperf do, and acknowledgements the other way.
//!
//! Pure state machines: a [`Sender`] and a [`Receiver`] that are told of segments, acknowledgements, reads,
//! writes and the time, and are asked what to send and when they want to be woken. The rules are those of
//! FreeBSD 6 (`tcp_input.c`, `tcp_output.c`, `tcp_timer.c`), which its functions' names mark here, and with
//! them RFC 793 and 1122 (windows), 1323 (timestamps), 3042 (limited transmit), 3390 (initial window), 3782
//! (NewReno), 5681 (congestion control) and 6298 (timeout).
//!
//! What must hold: every byte that was written comes out of the receiver once and in order, whatever is
//! lost, and while data waits some timer runs that moves it. Nothing here reads a clock or draws at random.
//!
//! Left out: opening and closing (a connection begins open, with the peer's first window known), data in
//! both directions of one connection, selective acknowledgement, the Nagle rule's exceptions, giving up
//! after too many timeouts, undoing a timeout that was wrong, and the bandwidth-delay limit of
//! `net.inet.tcp.inflight`, which leaves paths below 10 ms alone. Bytes are counted, not carried. Sequence
//! numbers are 64 bits long and count from 0: they do not wrap.

mod congestion;
mod reassembly;
mod receiver;
mod sender;
mod timing;

#[cfg(test)]
mod tests;

pub(crate) use receiver::Receiver;
pub(crate) use sender::{Held, Sender, SenderCounts};
pub(crate) use timing::Now;

use nicpoll_model::line::{
    FCS_BYTES, FRAME_MIN_BYTES, GAP_BYTES, IpVersion, MAC_HEADER_BYTES, PREAMBLE_BYTES,
};

/// A TCP header with the timestamp option, which FreeBSD 6 sends in every segment (`net.inet.tcp.rfc1323`).
const TCP_HEADER_BYTES: u64 = 32;

/// The most data of a segment, for the longest IP packet of a line.
pub(crate) fn segment_bytes_max(mtu_bytes: u64, ip: IpVersion) -> u64 {
    mtu_bytes.saturating_sub(headers_bytes(ip))
}

fn headers_bytes(ip: IpVersion) -> u64 {
    let ip_header_bytes = match ip {
        IpVersion::V4 => 20,
        IpVersion::V6 => 40,
    };
    ip_header_bytes + TCP_HEADER_BYTES
}

/// What a segment's frame takes on the line, with preamble and gap.
pub(crate) fn line_bytes(ip: IpVersion, data_bytes: u32) -> u32 {
    let packet_bytes = headers_bytes(ip) + u64::from(data_bytes);
    let frame_bytes = (MAC_HEADER_BYTES + packet_bytes + FCS_BYTES).max(FRAME_MIN_BYTES);
    // Far below 2^32: the longest packet has 65,535 bytes.
    (frame_bytes + PREAMBLE_BYTES + GAP_BYTES) as u32
}

/// Data on their way. The data themselves are not there, only their place in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Number of the first byte.
    pub(crate) seq: u64,
    /// Bytes, above 0.
    pub(crate) bytes: u64,
    /// When it was made: the timestamp option.
    pub(crate) stamp: Now,
}

impl Segment {
    /// Number of the byte after the last one.
    pub(crate) fn end(&self) -> u64 {
        self.seq + self.bytes
    }
}

/// An acknowledgement on its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    /// Number of the byte that is expected next.
    pub(crate) next: u64,
    /// Bytes from there on that there is room for.
    pub(crate) window: u64,
    /// The stamp of the segment that it answers.
    pub(crate) echo: Now,
}
