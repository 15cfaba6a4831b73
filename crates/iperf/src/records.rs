//! What streams count and tell whoever runs them: who is connected, interval records, what a stream came to, and
//! the times between and of datagrams.
//!
//! The records of a stream follow each other without a gap, and their counts add up to the stream's own. A
//! stream pays one comparison a packet for them; recording allocates nothing and reads no clock.

use std::array;
use std::net::SocketAddr;
use std::time::Duration;

use hdrhistogram::Histogram;
use nicpoll_model::TimeDistribution;
use nicpoll_model::traffic::{Direction, IperfBucket, IperfTcpStart, IperfTimes};
use nicpoll_sys::socket::TcpInfo;
use nicpoll_traffic::{RefusedSends, SocketBuffer};

use crate::config::StreamConfig;
use crate::options::Style;
use crate::wire::{ClientHeader, ServerReport};

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
    /// The stream breaks off, with what it came to until data flowed last. The caller of the stream gets the
    /// error.
    fn broken(&mut self, _: Total) {}
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
    /// What TCP knew of the connection right after the handshake; `None` for UDP.
    pub tcp: Option<IperfTcpStart>,
    /// What style 2.1 remarks of the stream.
    pub remarks: Remarks,
}

/// What the client asked for, or said of itself, that style 2.1 remarks of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// IP type of service, 0 when none was asked for (-S).
    pub type_of_service: u8,
}

impl Remarks {
    /// Of a stream as this end is configured and, at a server, as its client asked for it.
    pub(crate) fn of(stream: &StreamConfig, asked: Option<&ClientHeader>) -> Self {
        let service = asked.and_then(ClientHeader::type_of_service);
        let service = service.or(stream.socket.type_of_service);
        Remarks {
            type_of_service: service.unwrap_or(0),
        }
    }
}

/// How a received stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The sender ended it: TCP was closed; over UDP the FIN came, and silence after it where it is answered.
    Closed,
    /// [`Signals::sender_done`](nicpoll_traffic::Signals::sender_done) was set, and nothing was queued or more
    /// came without end.
    SenderDone,
    /// No datagram came for the idle timeout, or for some time when the test should have been over.
    Idle,
}

/// What one end of a stream came to. FINs and their answers are in no figure but their own.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Total {
    /// The stream as one interval: of TCP from the first write to the return of the last, or to the end that the
    /// reader saw; of UDP to the return of the last send, or to the first FIN that came, without one to the last
    /// datagram.
    pub whole: IntervalRecord,
    /// The socket buffer at the end.
    pub buffer: SocketBuffer,
    /// The same time as that of `whole`, but at a receiver of datagrams to the last one of data.
    pub seconds: f64,
    /// How it ended, at a receiver.
    pub end: Option<End>,
    /// From the first write until the receiver had read everything and closed; of a TCP sender. `None` when it did
    /// not close in time, and when the other direction goes on over the same connection.
    pub close_seconds: Option<f64>,
    /// Gaps between the beginnings of sends, or between arrivals; datagrams that were sent or handed over together
    /// have none between them. `None` when they are not recorded, and below two datagrams.
    pub gaps: Option<Box<IperfTimes>>,
    /// From sending until this program had it. `None` unless it was said beforehand that both ends have one clock.
    pub delays_to_program: Option<TimeDistribution>,
    /// What the server says it received.
    pub server_report: Option<ServerReport>,
    /// FINs that the kernel took, or that were read.
    pub fins: u64,
    /// Answers to them that were read, or that the kernel took.
    pub fin_answers: u64,
    /// Datagrams, FINs and answers too, that the kernel refused to send.
    pub refused: RefusedSends,
    /// Datagrams of other peers, and those that are none of iperf's.
    pub foreign_datagrams: u64,
    /// Whether no FIN of a UDP sender was answered where one should have been.
    pub is_unanswered: bool,
    /// When data flowed last, if that was before the end of `whole`.
    pub flowed_seconds: Option<f64>,
    /// Why a sender does not know how much arrived; `None` when it does.
    pub doubt: Option<&'static str>,
    /// What is wrong with the result, in words for people; `None` when nothing is.
    pub problem: Option<String>,
}

impl Total {
    /// What every stream has.
    pub(crate) fn of(whole: IntervalRecord, buffer: SocketBuffer) -> Self {
        Total {
            whole,
            buffer,
            seconds: whole.end,
            ..Total::default()
        }
    }

    /// What a receiver of datagrams knows of the whole stream.
    pub fn receipt(&self) -> Receipt {
        self.whole.receipt.unwrap_or_default()
    }

    /// The stream as text has it: of a TCP sender, 2.1 states the time until the receiver had read
    /// everything, 2.0 that of the writing.
    pub(crate) fn told(&self, style: Style) -> IntervalRecord {
        let close = self.close_seconds.filter(|_| style == Style::V2_1);
        IntervalRecord {
            end: close.unwrap_or(self.whole.end),
            ..self.whole
        }
    }

    /// What the server said: when, and how many of the datagrams came.
    pub(crate) fn relayed(&self) -> Option<IntervalRecord> {
        let report = self.server_report?;
        Some(IntervalRecord {
            bytes: report.bytes,
            end: report.elapsed.as_secs_f64(),
            receipt: Some(Receipt {
                expected: report.datagrams,
                lost: report.lost as i64,
                out_of_order: report.out_of_order,
                jitter_seconds: Some(report.jitter.as_secs_f64()),
                ..Receipt::default()
            }),
            ..IntervalRecord::default()
        })
    }
}

/// What happened from `start` to `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct IntervalRecord {
    /// Seconds from the start of the stream, an exact multiple of the interval.
    pub start: f64,
    /// Likewise, except for the last record of a stream that ends within an interval.
    pub end: f64,
    /// Whether the stream ended within the interval.
    pub is_partial: bool,
    /// Payload sent or received; over TCP the header included, as in 2.1.8.
    pub bytes: u64,
    /// Datagrams of data, FINs excluded; 0 for TCP.
    pub datagrams: u64,
    /// The system calls that moved them.
    pub calls: Calls,
    /// What only a sender of TCP knows: TCP at the end of the interval, and the segments that were sent again
    /// within it.
    pub tcp: Option<TcpInfo>,
    /// What only a receiver of datagrams knows.
    pub receipt: Option<Receipt>,
}

impl IntervalRecord {
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
    pub(crate) fn plus(&self, other: &IntervalRecord) -> IntervalRecord {
        let mut sum = self.joined(other, u64::wrapping_add);
        sum.start = self.start.min(other.start);
        sum.end = self.end.max(other.end);
        if let (Some(sum), Some(other)) = (&mut sum.receipt, other.receipt)
            && other.jitter_seconds > sum.jitter_seconds
        {
            sum.jitter_seconds = other.jitter_seconds;
        }
        sum.receipt = sum.receipt.or(other.receipt);
        sum
    }

    /// The same with the counts of both, joined; the rest is as it was.
    fn joined(&self, other: &IntervalRecord, join: fn(u64, u64) -> u64) -> IntervalRecord {
        let (calls, others) = (self.calls, other.calls);
        IntervalRecord {
            bytes: join(self.bytes, other.bytes),
            datagrams: join(self.datagrams, other.datagrams),
            calls: Calls {
                done: join(calls.done, others.done),
                refused: join(calls.refused, others.refused),
                read_sizes: array::from_fn(|bin| {
                    join(calls.read_sizes[bin], others.read_sizes[bin])
                }),
            },
            tcp: self.tcp.map(|tcp| {
                let others = other.tcp.map_or(0, |tcp| tcp.retransmitted_segments);
                TcpInfo {
                    retransmitted_segments: join(tcp.retransmitted_segments, others),
                    ..tcp
                }
            }),
            receipt: self.receipt.map(|receipt| {
                let others = other.receipt.unwrap_or_default();
                Receipt {
                    expected: join(receipt.expected, others.expected),
                    lost: join(receipt.lost as u64, others.lost as u64) as i64,
                    out_of_order: join(receipt.out_of_order, others.out_of_order),
                    duplicates: join(receipt.duplicates, others.duplicates),
                    ..receipt
                }
            }),
            ..*self
        }
    }

    /// What was counted from the start of a stream, as one interval that ends now.
    pub(crate) fn until(self, elapsed: Duration) -> Self {
        IntervalRecord {
            end: elapsed.as_secs_f64(),
            ..self
        }
    }
}

/// Writes to a sender's socket, reads from a receiver's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Those that moved something. Reads of a TCP header are none.
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
}

/// Congestion window in bytes.
pub(crate) fn window_bytes(tcp: &TcpInfo) -> u64 {
    u64::from(tcp.congestion_window_segments) * u64::from(tcp.send_segment_bytes)
}

/// What a receiver of datagrams knows of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Receipt {
    /// By how much the highest id grew. The first FIN tells of the last ones, and of one too many for each FIN that
    /// was lost before it.
    pub expected: u64,
    /// By how much the number of missing ids grew: less than nothing when ids that an earlier
    /// interval missed came late.
    pub lost: i64,
    /// Datagrams that arrived after a later one.
    pub out_of_order: u64,
    /// Datagrams whose id had arrived before.
    pub duplicates: u64,
    /// The running jitter after RFC 3550 section 6.4.1, from the kernel's times of arrival; `None` before the second
    /// datagram.
    pub jitter_seconds: Option<f64>,
    /// Times of transit; `None` when they are not recorded, and when nothing arrived.
    pub transit: Option<Transit>,
}

impl Receipt {
    /// Datagrams whose id was not above all before, as the original counts those that are out of order.
    pub(crate) fn behind(&self) -> u64 {
        self.out_of_order.wrapping_add(self.duplicates)
    }
}

/// Cuts a stream into intervals. What is counted from the start of the stream comes in.
pub(crate) struct Intervals<'a> {
    pub(crate) observer: &'a mut dyn Observer,
    /// Times of transit within the running interval.
    pub(crate) transit: Moments,
    length: Option<Duration>,
    start: Duration,
    /// End of the running interval.
    boundary: Duration,
    at_start: IntervalRecord,
}

impl<'a> Intervals<'a> {
    /// No records when `length` is `None` or zero.
    pub(crate) fn new(length: Option<Duration>, observer: &'a mut dyn Observer) -> Self {
        let length = length.filter(|length| !length.is_zero());
        Intervals {
            observer,
            transit: Moments::default(),
            length,
            start: Duration::ZERO,
            boundary: length.unwrap_or(Duration::MAX),
            at_start: IntervalRecord::default(),
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

    /// Closes the intervals that have ended. `counted` is what was before what happens now: all of it
    /// belongs to the first of them, and the others are empty.
    #[cold]
    pub(crate) fn close_due(&mut self, elapsed: Duration, counted: IntervalRecord) {
        let Some(length) = self.length else { return };
        while self.is_due(elapsed) {
            self.record(self.boundary, false, counted);
            self.boundary = self.boundary.saturating_add(length);
        }
    }

    /// Closes the last interval at the end of the stream, unless it is empty.
    pub(crate) fn finish(&mut self, elapsed: Duration, counted: IntervalRecord) {
        if self.length.is_none() {
            return;
        }
        self.close_due(elapsed, counted);
        let end = elapsed.max(self.start);
        let of = |counted: &IntervalRecord| {
            let expected = counted.receipt.map_or(0, |receipt| receipt.expected);
            (counted.bytes, counted.datagrams, expected)
        };
        if end > self.start || of(&counted) != of(&self.at_start) {
            self.record(end, true, counted);
        }
    }

    fn record(&mut self, end: Duration, is_partial: bool, counted: IntervalRecord) {
        let before = std::mem::replace(&mut self.at_start, counted);
        let mut record = IntervalRecord {
            start: self.start.as_secs_f64(),
            end: end.as_secs_f64(),
            is_partial,
            ..counted.joined(&before, u64::wrapping_sub)
        };
        let transit = std::mem::take(&mut self.transit);
        if let Some(receipt) = &mut record.receipt {
            receipt.transit = transit.transit();
        }
        self.observer.interval(&record);
        self.start = end;
    }
}

/// Times beyond an hour count as one.
const TIME_MAX_NS: u64 = 3_600_000_000_000;
/// Decimal digits that are kept of a recorded time: quantiles are within 1 %.
const DIGITS: u8 = 2;
/// End of the first bucket. Each further one ends at twice the time.
const FIRST_BUCKET_NS: u64 = 1_000;

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
    fn times(&self) -> Option<Box<IperfTimes>> {
        let histogram = &self.histogram;
        let samples = histogram.len();
        if samples == 0 {
            return None;
        }
        let seconds = |ns: u64| ns as f64 / 1e9;
        let quantile = |share| seconds(histogram.value_at_quantile(share).min(self.max_ns));
        let steps = histogram.iter_log(FIRST_BUCKET_NS, 2.0);
        Some(Box::new(IperfTimes {
            samples,
            zero_samples: histogram.count_at(0),
            min_seconds: seconds(self.min_ns),
            mean_seconds: self.sum_ns as f64 / samples as f64 / 1e9,
            p50_seconds: quantile(0.5),
            p90_seconds: quantile(0.9),
            p99_seconds: quantile(0.99),
            p999_seconds: quantile(0.999),
            max_seconds: seconds(self.max_ns),
            buckets: steps
                .map(|step| IperfBucket {
                    below_seconds: seconds(step.value_iterated_to().saturating_add(1)),
                    samples: step.count_since_last_iteration(),
                })
                .collect(),
        }))
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

    /// Takes note of datagrams that are handed over together: all but the first have no gap. Nor have those
    /// that come before the last one did, as a clock that was set back makes it.
    pub(crate) fn record(&mut self, at_ns: i64, datagrams: u64) {
        if let Some(last_ns) = self.last_ns.replace(at_ns) {
            let gap_ns = u64::try_from(at_ns.saturating_sub(last_ns));
            self.recorder.record(gap_ns.unwrap_or(0));
        }
        self.recorder.record_zeros(datagrams - 1);
    }

    /// `None` below two datagrams.
    pub(crate) fn times(&self) -> Option<Box<IperfTimes>> {
        self.recorder.times()
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
pub(crate) struct Moments {
    count: u64,
    mean_ns: f64,
    squares: f64,
    min_ns: i64,
    max_ns: i64,
}

impl Moments {
    pub(crate) fn record(&mut self, ns: i64) {
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
    transit: Moments,
}

impl ArrivalTimes {
    pub(crate) fn new() -> Self {
        ArrivalTimes {
            gaps: Gaps::new(),
            transit: Moments::default(),
        }
    }

    /// Takes note of a datagram of data, in nanoseconds since 1970.
    pub(crate) fn record(&mut self, sent_ns: i64, arrival_ns: i64) {
        self.gaps.record(arrival_ns, 1);
        self.transit.record(arrival_ns.saturating_sub(sent_ns));
    }

    pub(crate) fn transit(&self) -> Option<Transit> {
        self.transit.transit()
    }

    pub(crate) fn gaps(&self) -> Option<Box<IperfTimes>> {
        self.gaps.times()
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

    fn of_bytes(bytes: u64) -> IntervalRecord {
        IntervalRecord {
            bytes,
            ..IntervalRecord::default()
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
        let of = |calls| IntervalRecord {
            calls,
            ..IntervalRecord::default()
        };
        let before = of(calls);
        calls.record_read(70_000, 131_072);
        let since = of(calls).joined(&before, u64::wrapping_sub).calls;
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
        assert_eq!(gaps.times(), None);
        gaps.record(5_000, 1);
        assert_eq!(gaps.times(), None);
        gaps.record(7_000, 3);
        // Set back: no gap rather than a negative one.
        gaps.record(6_000, 1);
        gaps.record(1_006_000, 1);
        let gaps = gaps.times().unwrap();
        assert_eq!((gaps.samples, gaps.zero_samples), (5, 3));
        assert_eq!((gaps.min_seconds, gaps.max_seconds), (0.0, 0.001));
        assert_eq!(gaps.mean_seconds, 1_002_000.0 / 5.0 / 1e9);
        assert_eq!((gaps.p50_seconds, gaps.p999_seconds), (0.0, 0.001));
        let counts: Vec<u64> = gaps.buckets.iter().map(|bucket| bucket.samples).collect();
        assert_eq!(counts.iter().sum::<u64>(), gaps.samples);
        assert_eq!(gaps.buckets[0].below_seconds, 1e-6);
        // 2 us begins the bucket that ends at 4 us.
        assert_eq!(counts[..4], [3, 0, 1, 0]);
        assert_eq!(counts.last(), Some(&1));
        let ends = gaps.buckets.iter().map(|bucket| bucket.below_seconds);
        assert!(ends.is_sorted());
    }

    #[test]
    fn moments_are_those_of_what_was_recorded() {
        let mut times = ArrivalTimes::new();
        assert_eq!(times.transit(), None);
        times.record(0, 1_000_000_000);
        assert_eq!(times.transit().unwrap().deviation_seconds, 0.0);
        times.record(0, 3_000_000_000);
        let transit = times.transit().unwrap();
        assert_eq!((transit.datagrams, transit.mean_seconds), (2, 2.0));
        assert_eq!((transit.min_seconds, transit.max_seconds), (1.0, 3.0));
        assert!((transit.deviation_seconds - f64::sqrt(2.0)).abs() < 1e-9);
        times.record(0, 8_000_000_000);
        assert_eq!(times.transit().unwrap().mean_seconds, 4.0);
    }
}
