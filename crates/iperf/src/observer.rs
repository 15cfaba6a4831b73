//! What a stream tells whoever runs it while it runs: who is connected, and interval records.
//!
//! What must hold: the records of a stream lie end to end from its start, and their counts add up to
//! the stream's own; a stream pays one comparison a packet for them.

use std::net::SocketAddr;
use std::time::Duration;

use nicpoll_sys::socket::TcpInfo;

use nicpoll_traffic::sockets::SocketBuffer;

use nicpoll_model::iperf::Direction;

use super::times::Transit;
use crate::config::StreamConfig;
use crate::wire::{ClientHeader, Version, flags};

/// Bins of the sizes of reads.
pub const READ_SIZE_BINS: usize = 8;

/// Is told of a stream's progress, on the stream's own thread: what takes long here is missing there.
pub trait Observer {
    /// The stream has a peer. Called once, before any record.
    fn connected(&mut self, connected: &Connected);
    /// An interval has ended.
    fn interval(&mut self, record: &IntervalRecord);
    /// The stream breaks off, and this is what it came to until then. Whoever runs it is told why.
    fn broken(&mut self, _: &Broken) {}
}

/// Looks away.
impl Observer for () {
    fn connected(&mut self, _: &Connected) {}
    fn interval(&mut self, _: &IntervalRecord) {}
}

/// A stream at its beginning.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Connected {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// Which way the test's data flow over this socket.
    pub direction: Direction,
    /// Whether this end sends the stream.
    pub is_sender: bool,
    /// The sender's send buffer or the receiver's receive buffer.
    pub buffer: SocketBuffer,
    /// What TCP knew of the connection; `None` for UDP.
    pub tcp: Option<TcpStart>,
    /// What style 2.1 remarks of the stream.
    pub remarks: Remarks,
}

/// What the client asked for, or said of itself, that style 2.1 remarks of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// IP type of service, 0 when none was asked for (-S).
    pub type_of_service: u8,
    /// Whether the kernel paces the sender's socket (`--fq-rate`).
    pub is_paced: bool,
    /// The version at the other end, where the client asked for it (-X) and it was told.
    pub peer_version: Option<Version>,
}

impl Remarks {
    /// Of a client's stream, before anything is known of the server.
    pub(crate) fn of_client(stream: &StreamConfig) -> Self {
        Remarks {
            type_of_service: stream.socket.type_of_service.unwrap_or(0),
            is_paced: stream.pacing_bytes_per_second.is_some(),
            peer_version: None,
        }
    }

    /// Of a server's stream, as its client asked for it; the server's own where it asked for nothing.
    pub(crate) fn of_server(stream: &StreamConfig, asked: Option<&ClientHeader>) -> Self {
        let own = Self::of_client(stream);
        let Some(asked) = asked else { return own };
        let extension = asked.extension;
        let version = extension.filter(|_| asked.flags & flags::PEER_DETECT != 0);
        Remarks {
            type_of_service: match asked.type_of_service() {
                Some(service) => service,
                None => own.type_of_service,
            },
            is_paced: asked.pacing_bytes_per_second.is_some(),
            peer_version: version.map(|extension| extension.version),
        }
    }
}

/// A stream that breaks off.
#[derive(Clone, Copy, Debug)]
pub struct Broken {
    /// The stream as one interval, which ends when data flowed last.
    pub whole: IntervalRecord,
    /// The socket buffer.
    pub buffer: SocketBuffer,
}

/// TCP right after the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpStart {
    /// Payload of a segment ("mss").
    pub segment_bytes: u32,
    /// Congestion window in segments. iperf's "icwnd" is this times the segment, in KiB.
    pub congestion_window_segments: u32,
    /// Round-trip time of the handshake ("irtt").
    pub round_trip: Duration,
    /// How long connecting took; `None` at a server.
    pub connecting: Option<Duration>,
}

/// What happened from `start` to `end`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct IntervalRecord {
    /// Seconds from the start of the stream, an exact multiple of the interval.
    pub start: f64,
    /// Likewise, except for the last record of a stream that ends within an interval.
    pub end: f64,
    /// Whether the stream ended within the interval.
    pub is_partial: bool,
    /// Payload sent or received.
    pub bytes: u64,
    /// Datagrams of data, FINs excluded; 0 for TCP.
    pub datagrams: u64,
    /// The system calls that moved them.
    pub calls: Calls,
    /// What only a sender of TCP knows.
    pub tcp: Option<TcpState>,
    /// What only a receiver of datagrams knows.
    pub receipt: Option<Receipt>,
}

impl IntervalRecord {
    /// This stream and another one together, from the first start to the last end. What only one stream
    /// can have (state of TCP, jitter, times of transit) is that of this one.
    pub fn plus(&self, other: &IntervalRecord) -> IntervalRecord {
        let mut sum = *self;
        sum.start = self.start.min(other.start);
        sum.end = self.end.max(other.end);
        sum.bytes += other.bytes;
        sum.datagrams += other.datagrams;
        sum.calls.done += other.calls.done;
        sum.calls.refused += other.calls.refused;
        for (size, more) in sum.calls.read_sizes.iter_mut().zip(other.calls.read_sizes) {
            *size += more;
        }
        sum.tcp = self.tcp.zip(other.tcp).map(|(one, other)| TcpState {
            retransmitted_segments: one.retransmitted_segments + other.retransmitted_segments,
            ..one
        });
        if let (Some(sum), Some(other)) = (&mut sum.receipt, other.receipt) {
            sum.expected += other.expected;
            sum.lost += other.lost;
            sum.out_of_order += other.out_of_order;
            sum.duplicates += other.duplicates;
        }
        sum
    }
}

/// Writes to a sender's socket, reads from a receiver's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Those that moved something.
    pub done: u64,
    /// Writes that the kernel refused for the moment, for lack of room or because a closed port had
    /// been reported. Reads that found nothing are not counted.
    pub refused: u64,
    /// Reads of a TCP stream by what they yielded, in equal parts of the length asked for; zeros for
    /// whatever else.
    pub read_sizes: [u64; READ_SIZE_BINS],
}

impl Calls {
    /// Takes note of a read of `read` bytes, of `asked` that there was room for.
    pub(super) fn record_read(&mut self, read: usize, asked: usize) {
        self.done += 1;
        let bin = read.saturating_sub(1) * READ_SIZE_BINS / asked.max(1);
        self.read_sizes[bin.min(READ_SIZE_BINS - 1)] += 1;
    }

    fn since(&self, earlier: &Calls) -> Calls {
        let mut read_sizes = self.read_sizes;
        for (size, before) in read_sizes.iter_mut().zip(earlier.read_sizes) {
            *size -= before;
        }
        Calls {
            done: self.done - earlier.done,
            refused: self.refused - earlier.refused,
            read_sizes,
        }
    }
}

/// A sender's TCP at the end of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpState {
    /// Segments that were sent again within the interval.
    pub retransmitted_segments: u64,
    /// Payload of a segment.
    pub segment_bytes: u32,
    /// Congestion window in segments.
    pub congestion_window_segments: u32,
    /// Smoothed round-trip time.
    pub round_trip: Duration,
    /// Its mean deviation.
    pub round_trip_variation: Duration,
}

/// What a receiver of datagrams knows of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Receipt {
    /// By how much the highest id grew.
    pub expected: u64,
    /// By how much the number of missing ids grew: less than nothing when ids that an earlier
    /// interval missed came late.
    pub lost: i64,
    /// Datagrams that arrived after a later one.
    pub out_of_order: u64,
    /// Datagrams whose id had arrived before.
    pub duplicates: u64,
    /// The running jitter at the end of the interval; `None` before the second datagram.
    pub jitter_seconds: Option<f64>,
    /// Times of transit; `None` when they are not recorded, and when nothing arrived.
    pub transit: Option<Transit>,
}

/// Running totals of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) bytes: u64,
    pub(super) datagrams: u64,
    pub(super) calls: Calls,
    /// TCP now; a sender's only.
    pub(super) tcp: Option<TcpInfo>,
    pub(super) receipt: Option<ReceiptTotals>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceiptTotals {
    pub(super) expected: u64,
    pub(super) lost: u64,
    pub(super) out_of_order: u64,
    pub(super) duplicates: u64,
    pub(super) jitter_seconds: Option<f64>,
    /// Since the last record.
    pub(super) interval_transit: Option<Transit>,
    pub(super) transit: Option<Transit>,
}

impl Totals {
    /// What happened since `before`.
    fn since(&self, before: &Totals, start: Duration, end: Duration) -> IntervalRecord {
        let receipt = self.receipt.map(|now| {
            let before = before.receipt.unwrap_or_default();
            Receipt {
                expected: now.expected - before.expected,
                lost: now.lost as i64 - before.lost as i64,
                out_of_order: now.out_of_order - before.out_of_order,
                duplicates: now.duplicates - before.duplicates,
                jitter_seconds: now.jitter_seconds,
                transit: now.interval_transit,
            }
        });
        let sent_again = |tcp: &TcpInfo| tcp.retransmitted_segments;
        let tcp = self.tcp.map(|now| TcpState {
            retransmitted_segments: sent_again(&now)
                .saturating_sub(before.tcp.as_ref().map_or(0, sent_again)),
            segment_bytes: now.send_segment_bytes,
            congestion_window_segments: now.congestion_window_segments,
            round_trip: now.round_trip,
            round_trip_variation: now.round_trip_variation,
        });
        IntervalRecord {
            start: start.as_secs_f64(),
            end: end.as_secs_f64(),
            is_partial: false,
            bytes: self.bytes - before.bytes,
            datagrams: self.datagrams - before.datagrams,
            calls: self.calls.since(&before.calls),
            tcp,
            receipt,
        }
    }

    /// The whole stream as one interval that ends at `end`.
    pub(super) fn whole(&self, end: Duration) -> IntervalRecord {
        let mut whole = self.since(&Totals::default(), Duration::ZERO, end);
        if let (Some(receipt), Some(totals)) = (&mut whole.receipt, self.receipt) {
            receipt.transit = totals.transit;
        }
        whole
    }
}

/// Cuts a stream into intervals.
pub(super) struct Intervals<'a> {
    pub(super) observer: &'a mut dyn Observer,
    length: Option<Duration>,
    start: Duration,
    /// End of the running interval.
    boundary: Duration,
    at_start: Totals,
}

impl<'a> Intervals<'a> {
    /// No records when `length` is `None` or zero.
    pub(super) fn new(length: Option<Duration>, observer: &'a mut dyn Observer) -> Self {
        let length = length.filter(|length| !length.is_zero());
        Intervals {
            observer,
            length,
            start: Duration::ZERO,
            boundary: length.unwrap_or(Duration::MAX),
            at_start: Totals::default(),
        }
    }

    /// Whether there are any.
    pub(super) fn are_asked_for(&self) -> bool {
        self.length.is_some()
    }

    /// Whether what happens `elapsed` after the start belongs to a later interval than the running
    /// one, which [`close_due`](Self::close_due) must then close first.
    pub(super) fn is_due(&self, elapsed: Duration) -> bool {
        elapsed >= self.boundary
    }

    /// Time left in the running interval.
    pub(super) fn left(&self, elapsed: Duration) -> Duration {
        self.boundary.saturating_sub(elapsed)
    }

    /// Closes the intervals that have ended. `totals` are those before what happens now: all of it
    /// belongs to the first of them, and the others are empty.
    #[cold]
    pub(super) fn close_due(&mut self, elapsed: Duration, mut totals: Totals) {
        let Some(length) = self.length else { return };
        while self.is_due(elapsed) {
            self.record(self.boundary, false, totals);
            self.boundary = self.boundary.saturating_add(length);
            if let Some(receipt) = &mut totals.receipt {
                receipt.interval_transit = None;
            }
        }
    }

    /// Closes the last interval at the end of the stream, unless it is empty.
    pub(super) fn finish(&mut self, elapsed: Duration, totals: Totals) {
        if self.length.is_none() {
            return;
        }
        self.close_due(elapsed, totals);
        let end = elapsed.max(self.start);
        let has_changed = (totals.bytes, totals.datagrams)
            != (self.at_start.bytes, self.at_start.datagrams)
            || totals.receipt.map_or(0, |receipt| receipt.expected)
                != self.at_start.receipt.map_or(0, |receipt| receipt.expected);
        if end > self.start || has_changed {
            self.record(end, true, totals);
        }
    }

    fn record(&mut self, end: Duration, is_partial: bool, totals: Totals) {
        let before = std::mem::replace(&mut self.at_start, totals);
        self.observer.interval(&IntervalRecord {
            is_partial,
            ..totals.since(&before, self.start, end)
        });
        self.start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Records(Vec<(f64, f64, u64, bool)>);

    impl Observer for Records {
        fn connected(&mut self, _: &Connected) {}
        fn interval(&mut self, record: &IntervalRecord) {
            let IntervalRecord { start, end, .. } = *record;
            self.0.push((start, end, record.bytes, record.is_partial));
        }
    }

    fn of_bytes(bytes: u64) -> Totals {
        Totals {
            bytes,
            ..Totals::default()
        }
    }

    const HALF: Duration = Duration::from_millis(500);

    #[test]
    fn what_comes_late_belongs_to_the_interval_it_comes_in() {
        let mut records = Records::default();
        let mut intervals = Intervals::new(Some(HALF), &mut records);
        assert!(!intervals.is_due(HALF - Duration::from_nanos(1)));
        assert!(intervals.is_due(HALF));
        intervals.close_due(3 * HALF + HALF / 2, of_bytes(7));
        assert_eq!(intervals.left(3 * HALF + HALF / 2), HALF / 2);
        intervals.finish(4 * HALF + HALF / 5, of_bytes(9));
        let expected = [
            (0.0, 0.5, 7, false),
            (0.5, 1.0, 0, false),
            (1.0, 1.5, 0, false),
            (1.5, 2.0, 2, false),
            (2.0, 2.1, 0, true),
        ];
        assert_eq!(records.0, expected);
    }

    #[test]
    fn nothing_is_recorded_unasked_and_no_empty_rest() {
        let mut records = Records::default();
        for length in [None, Some(Duration::ZERO)] {
            let mut intervals = Intervals::new(length, &mut records);
            assert!(!intervals.are_asked_for() && !intervals.is_due(HALF));
            intervals.finish(HALF, of_bytes(1));
        }
        assert_eq!(records.0, []);
        let mut intervals = Intervals::new(Some(HALF), &mut records);
        intervals.finish(HALF, of_bytes(1));
        assert_eq!(records.0, [(0.0, 0.5, 1, false)]);
    }

    #[test]
    fn reads_are_counted_by_the_part_of_the_buffer_that_they_filled() {
        let mut calls = Calls::default();
        for read in [1, 16_384, 16_385, 131_072] {
            calls.record_read(read, 131_072);
        }
        assert_eq!(calls.read_sizes, [2, 1, 0, 0, 0, 0, 0, 1]);
        let before = calls;
        calls.record_read(70_000, 131_072);
        let since = calls.since(&before);
        assert_eq!(
            (since.done, since.read_sizes),
            (1, [0, 0, 0, 0, 1, 0, 0, 0])
        );
        // Shorter than a bin is wide.
        Calls::default().record_read(1, 1);
    }
}
