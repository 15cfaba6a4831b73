//! What streams count and tell whoever runs them: who is connected, interval records, and the times between
//! and of datagrams.
//!
//! The records of a stream follow each other without a gap, and their counts add up to the stream's own. A
//! stream pays one comparison a packet for them; recording allocates nothing and reads no clock.

use std::net::SocketAddr;
use std::time::Duration;

use hdrhistogram::Histogram;
use nicpoll_model::traffic::Direction;
use nicpoll_sys::socket::TcpInfo;
use nicpoll_traffic::sockets::SocketBuffer;

use crate::config::StreamConfig;
use crate::wire::{ClientHeader, Version, flags};

/// Below this a time is no base for a rate.
const SHORTEST_SECONDS: f64 = 100e-6;
/// Bins of the sizes of reads.
pub const READ_SIZE_BINS: usize = 8;

/// Receives a stream's progress, on the stream's own thread: time spent here is missing there.
pub trait Observer {
    /// The stream has a peer. Called once, before any record.
    fn connected(&mut self, connected: &Connected);
    /// An interval has ended.
    fn interval(&mut self, record: &IntervalRecord);
    /// The stream breaks off, with what it came to until then. The caller of the stream gets the error.
    fn broken(&mut self, _: &Broken) {}
}

/// Ignores it.
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
    /// Bytes from the start of a stream, without any other figure.
    pub(crate) fn of_bytes(bytes: u64, end: f64) -> Self {
        let totals = Totals {
            bytes,
            ..Totals::default()
        };
        IntervalRecord {
            end,
            ..totals.whole(Duration::ZERO)
        }
    }

    /// How many a second `count` is; none if the interval took no time to speak of.
    pub(crate) fn per_second(&self, count: f64) -> f64 {
        let elapsed = self.end - self.start;
        if elapsed >= SHORTEST_SECONDS {
            count / elapsed
        } else {
            0.0
        }
    }

    /// This stream and another one together, from the first start to the last end. The jitter is the greater
    /// one; state of TCP and times of transit are those of this stream.
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
        sum.receipt = match (self.receipt, other.receipt) {
            (Some(one), Some(other)) => Some(Receipt {
                expected: one.expected + other.expected,
                lost: one.lost + other.lost,
                out_of_order: one.out_of_order + other.out_of_order,
                duplicates: one.duplicates + other.duplicates,
                jitter_seconds: match one.jitter_seconds > other.jitter_seconds {
                    true => one.jitter_seconds,
                    false => other.jitter_seconds,
                },
                transit: one.transit,
            }),
            (one, other) => one.or(other),
        };
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
    /// Records a read of `read` bytes into room for `asked`.
    pub(crate) fn record_read(&mut self, read: usize, asked: usize) {
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

impl TcpState {
    /// Congestion window in bytes.
    pub(crate) fn window_bytes(&self) -> u64 {
        u64::from(self.congestion_window_segments) * u64::from(self.segment_bytes)
    }
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
pub(crate) struct Totals {
    pub(crate) bytes: u64,
    pub(crate) datagrams: u64,
    pub(crate) calls: Calls,
    /// TCP now; a sender's only.
    pub(crate) tcp: Option<TcpInfo>,
    pub(crate) receipt: Option<ReceiptTotals>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceiptTotals {
    pub(crate) expected: u64,
    pub(crate) lost: u64,
    pub(crate) out_of_order: u64,
    pub(crate) duplicates: u64,
    pub(crate) jitter_seconds: Option<f64>,
    /// Since the last record.
    pub(crate) interval_transit: Option<Transit>,
    pub(crate) transit: Option<Transit>,
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
    pub(crate) fn whole(&self, end: Duration) -> IntervalRecord {
        let mut whole = self.since(&Totals::default(), Duration::ZERO, end);
        if let (Some(receipt), Some(totals)) = (&mut whole.receipt, self.receipt) {
            receipt.transit = totals.transit;
        }
        whole
    }
}

/// Cuts a stream into intervals.
pub(crate) struct Intervals<'a> {
    pub(crate) observer: &'a mut dyn Observer,
    length: Option<Duration>,
    start: Duration,
    /// End of the running interval.
    boundary: Duration,
    at_start: Totals,
}

impl<'a> Intervals<'a> {
    /// No records when `length` is `None` or zero.
    pub(crate) fn new(length: Option<Duration>, observer: &'a mut dyn Observer) -> Self {
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
    pub(crate) fn are_asked_for(&self) -> bool {
        self.length.is_some()
    }

    /// Whether what happens `elapsed` after the start belongs to a later interval than the running
    /// one, which [`close_due`](Self::close_due) must then close first.
    pub(crate) fn is_due(&self, elapsed: Duration) -> bool {
        elapsed >= self.boundary
    }

    /// Time left in the running interval.
    pub(crate) fn left(&self, elapsed: Duration) -> Duration {
        self.boundary.saturating_sub(elapsed)
    }

    /// Closes the intervals that have ended. `totals` are those before what happens now: all of it
    /// belongs to the first of them, and the others are empty.
    #[cold]
    pub(crate) fn close_due(&mut self, elapsed: Duration, mut totals: Totals) {
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
    pub(crate) fn finish(&mut self, elapsed: Duration, totals: Totals) {
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

/// Times beyond an hour count as one.
const TIME_MAX_NS: u64 = 3_600_000_000_000;
/// Decimal digits that are kept of a recorded time: quantiles are within 1 %.
const DIGITS: u8 = 2;
/// End of the first bucket. Each further one ends at twice the time.
const FIRST_BUCKET_NS: u64 = 1_000;

/// How times spread.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// How many there are, one at least.
    pub count: u64,
    /// How many of them are 0.
    pub zeros: u64,
    /// The shortest, in nanoseconds.
    pub min_ns: u64,
    /// Their mean, in nanoseconds.
    pub mean_ns: f64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
    /// 50 of 100 are no longer, within 1 %, in nanoseconds.
    pub p50_ns: u64,
    /// 90 of 100.
    pub p90_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
    /// 999 of 1000.
    pub p999_ns: u64,
    /// The same times counted by length, in ascending order. The first bucket holds what is below 1 µs,
    /// each further one begins where the one before ends, and ends at twice the time.
    pub buckets: Vec<Bucket>,
}

/// Times of similar length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Where the next bucket begins, in nanoseconds: all times are below.
    pub below_ns: u64,
    /// How many times fell into it.
    pub count: u64,
}

/// Records times.
#[derive(Clone, Debug)]
struct Recorder {
    histogram: Histogram<u64>,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
}

impl Recorder {
    fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, TIME_MAX_NS, DIGITS);
        Recorder {
            histogram: histogram.expect("constant bounds that the histogram accepts"),
            min_ns: u64::MAX,
            max_ns: 0,
            sum_ns: 0,
        }
    }

    fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns += u128::from(ns);
    }

    fn record_zeros(&mut self, count: u64) {
        if count > 0 {
            self.histogram.saturating_record_n(0, count);
            self.min_ns = 0;
        }
    }

    /// `None` when nothing was recorded.
    fn distribution(&self) -> Option<Distribution> {
        let histogram = &self.histogram;
        let count = histogram.len();
        if count == 0 {
            return None;
        }
        let quantile = |share| histogram.value_at_quantile(share).min(self.max_ns);
        let buckets = histogram.iter_log(FIRST_BUCKET_NS, 2.0).map(|step| Bucket {
            below_ns: step.value_iterated_to().saturating_add(1),
            count: step.count_since_last_iteration(),
        });
        Some(Distribution {
            count,
            zeros: histogram.count_at(0),
            min_ns: self.min_ns,
            mean_ns: self.sum_ns as f64 / count as f64,
            max_ns: self.max_ns,
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            buckets: buckets.collect(),
        })
    }
}

/// The gaps from one datagram to the next.
#[derive(Clone, Debug)]
pub(crate) struct Gaps {
    recorder: Recorder,
    last_ns: Option<i64>,
}

impl Gaps {
    pub(crate) fn new() -> Self {
        Gaps {
            recorder: Recorder::new(),
            last_ns: None,
        }
    }

    /// Takes note of a datagram. One that comes before the last one did, as a clock that was set back
    /// makes it, has no gap.
    pub(crate) fn record(&mut self, at_ns: i64) {
        if let Some(last_ns) = self.last_ns.replace(at_ns) {
            let gap_ns = u64::try_from(at_ns.saturating_sub(last_ns));
            self.recorder.record(gap_ns.unwrap_or(0));
        }
    }

    /// Takes note of datagrams that are handed over together: all but the first have no gap.
    pub(crate) fn record_together(&mut self, at_ns: i64, datagrams: u64) {
        if datagrams > 0 {
            self.record(at_ns);
            self.recorder.record_zeros(datagrams - 1);
        }
    }

    /// `None` below two datagrams.
    pub(crate) fn distribution(&self) -> Option<Distribution> {
        self.recorder.distribution()
    }
}

/// Times of transit: of arrival by the receiver's clock less that of sending by the sender's. What the
/// two clocks differ by is part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transit {
    /// Datagrams, one at least.
    pub datagrams: u64,
    /// The mean, in seconds.
    pub mean_seconds: f64,
    /// The shortest, in seconds; less than nothing when the clocks disagree.
    pub min_seconds: f64,
    /// The longest, in seconds.
    pub max_seconds: f64,
    /// Standard deviation, in seconds; 0 below two datagrams.
    pub deviation_seconds: f64,
}

/// Running moments after Welford (1962), which lose no digits to a large mean.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: u64,
    mean_ns: f64,
    squares: f64,
    min_ns: i64,
    max_ns: i64,
}

impl Moments {
    fn record(&mut self, ns: i64) {
        (self.min_ns, self.max_ns) = match self.count {
            0 => (ns, ns),
            _ => (self.min_ns.min(ns), self.max_ns.max(ns)),
        };
        self.count += 1;
        let deviation = ns as f64 - self.mean_ns;
        self.mean_ns += deviation / self.count as f64;
        self.squares += deviation * (ns as f64 - self.mean_ns);
    }

    fn transit(&self) -> Option<Transit> {
        if self.count == 0 {
            return None;
        }
        let variance = match self.count {
            1 => 0.0,
            count => self.squares / (count - 1) as f64,
        };
        Some(Transit {
            datagrams: self.count,
            mean_seconds: self.mean_ns / 1e9,
            min_seconds: self.min_ns as f64 / 1e9,
            max_seconds: self.max_ns as f64 / 1e9,
            deviation_seconds: variance.max(0.0).sqrt() / 1e9,
        })
    }
}

/// What a receiver learns from the times of arrival and of sending.
#[derive(Clone, Debug)]
pub(crate) struct ArrivalTimes {
    gaps: Gaps,
    whole: Moments,
    interval: Moments,
    delays: Recorder,
    /// A datagram arrived before it was sent: the clocks are not one.
    is_clock_shared: bool,
}

impl ArrivalTimes {
    pub(crate) fn new() -> Self {
        ArrivalTimes {
            gaps: Gaps::new(),
            whole: Moments::default(),
            interval: Moments::default(),
            delays: Recorder::new(),
            is_clock_shared: true,
        }
    }

    /// Takes note of a datagram of data, in nanoseconds since 1970.
    pub(crate) fn record(&mut self, sent_ns: i64, arrival_ns: i64) {
        self.gaps.record(arrival_ns);
        let transit_ns = arrival_ns.saturating_sub(sent_ns);
        self.whole.record(transit_ns);
        self.interval.record(transit_ns);
        match u64::try_from(transit_ns) {
            Ok(delay_ns) => self.delays.record(delay_ns),
            Err(_) => self.is_clock_shared = false,
        }
    }

    /// Begins another interval.
    pub(crate) fn begin_interval(&mut self) {
        self.interval = Moments::default();
    }

    pub(crate) fn interval_transit(&self) -> Option<Transit> {
        self.interval.transit()
    }

    pub(crate) fn transit(&self) -> Option<Transit> {
        self.whole.transit()
    }

    pub(crate) fn gaps(&self) -> Option<Distribution> {
        self.gaps.distribution()
    }

    /// Delays by a clock that both ends have; `None` when they prove to have two.
    pub(crate) fn delays(&self) -> Option<Distribution> {
        self.delays.distribution().filter(|_| self.is_clock_shared)
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

    #[test]
    fn gaps_are_between_datagrams_and_none_within_a_batch() {
        let mut gaps = Gaps::new();
        assert_eq!(gaps.distribution(), None);
        gaps.record(5_000);
        assert_eq!(gaps.distribution(), None);
        gaps.record_together(7_000, 3);
        // Set back: no gap rather than a negative one.
        gaps.record(6_000);
        gaps.record(1_006_000);
        let gaps = gaps.distribution().unwrap();
        assert_eq!((gaps.count, gaps.zeros), (5, 3));
        assert_eq!((gaps.min_ns, gaps.max_ns), (0, 1_000_000));
        assert_eq!(gaps.mean_ns, 1_002_000.0 / 5.0);
        assert_eq!((gaps.p50_ns, gaps.p999_ns), (0, 1_000_000));
        let counted: u64 = gaps.buckets.iter().map(|bucket| bucket.count).sum();
        assert_eq!(counted, gaps.count);
        assert_eq!(gaps.buckets[0].below_ns, 1_000);
        let counts: Vec<u64> = gaps.buckets.iter().map(|bucket| bucket.count).collect();
        // 2 us begins the bucket that ends at 4 us.
        assert_eq!(counts[..4], [3, 0, 1, 0]);
        assert_eq!(gaps.buckets.last().unwrap().count, 1);
        let ends = gaps.buckets.iter().map(|bucket| bucket.below_ns);
        assert!(ends.is_sorted());
    }

    #[test]
    fn moments_are_those_of_the_interval_and_of_the_whole() {
        let mut times = ArrivalTimes::new();
        times.record(0, 1_000_000_000);
        times.record(0, 3_000_000_000);
        let transit = times.interval_transit().unwrap();
        assert_eq!((transit.datagrams, transit.mean_seconds), (2, 2.0));
        assert_eq!((transit.min_seconds, transit.max_seconds), (1.0, 3.0));
        assert!((transit.deviation_seconds - f64::sqrt(2.0)).abs() < 1e-9);
        times.begin_interval();
        assert_eq!(times.interval_transit(), None);
        times.record(0, 8_000_000_000);
        assert_eq!(times.interval_transit().unwrap().deviation_seconds, 0.0);
        assert_eq!(times.transit().unwrap().mean_seconds, 4.0);
        assert_eq!(times.delays().unwrap().count, 3);
    }

    #[test]
    fn clocks_that_contradict_each_other_yield_no_delay() {
        let mut times = ArrivalTimes::new();
        times.record(10, 20);
        times.record(30, 29);
        assert_eq!(times.delays(), None);
        assert_eq!(times.transit().unwrap().min_seconds, -1e-9);
    }
}
