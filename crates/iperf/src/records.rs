//! What a stream reports to its [`Observer`]: its endpoints, its interval records, its total, and the
//! distributions of its gaps and transit times.
//!
//! The records of a stream have no gaps between them, and their counts add up to the stream's total. They cost
//! one comparison per packet; recording allocates nothing and reads no clock.

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

/// Intervals shorter than this have no meaningful rate.
const SHORTEST_SECONDS: f64 = 100e-6;
/// Bins of the read size histogram.
pub const READ_SIZE_BINS: usize = 8;

/// Receives a stream's progress. Runs on the stream's own thread and delays it.
pub trait Observer {
    /// The stream has a peer. Called once, before any record.
    fn connected(&mut self, connected: &Connected);
    /// An interval has ended.
    fn interval(&mut self, record: &IntervalRecord);
    /// The stream failed. Gets its total up to the last data; the error goes to the stream's caller.
    fn broken(&mut self, _: Total) {}
}

/// Discards everything.
impl Observer for () {
    fn connected(&mut self, _: &Connected) {}
    fn interval(&mut self, _: &IntervalRecord) {}
}

/// A stream whose socket is ready.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Connected {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// Direction of the test data on this socket.
    pub direction: Direction,
    /// Whether this end sends the stream.
    pub is_sender: bool,
    /// The sender's send buffer or the receiver's receive buffer.
    pub buffer: SocketBuffer,
    /// TCP state right after the handshake; `None` for UDP.
    pub tcp: Option<IperfTcpStart>,
    /// IP type of service, 0 when none was set (-S).
    pub type_of_service: u8,
}

/// Returns the IP type of service of a stream, 0 when none was set. At a server, the client's request (`asked`) takes
/// precedence over this end's configuration.
pub(crate) fn type_of_service(stream: &StreamConfig, asked: Option<&ClientHeader>) -> u8 {
    let asked = asked.and_then(ClientHeader::type_of_service);
    asked.or(stream.socket.type_of_service).unwrap_or(0)
}

/// How a received stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The sender ended it: TCP closed, or over UDP a FIN came, followed by silence if FINs are answered.
    Closed,
    /// [`Signals::sender_done`](nicpoll_traffic::Signals::sender_done) was set, and the queue was empty or data
    /// kept coming without end.
    SenderDone,
    /// No datagram came within the idle timeout, or for a while after the test should have ended.
    Idle,
}

/// The totals of one end of a stream. Only their own fields count FINs and their answers.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Total {
    /// The stream as one interval. TCP: from the first write to the return of the last, or to the end of the
    /// stream at the reader. UDP: to the return of the last send, or to the first FIN received, or without a
    /// FIN to the last datagram.
    pub whole: IntervalRecord,
    /// The socket buffer at the end of the stream.
    pub buffer: SocketBuffer,
    /// Duration of `whole`; at a UDP receiver, up to the last datagram of data.
    pub seconds: f64,
    /// How the stream ended, at a receiver.
    pub end: Option<End>,
    /// From the first write until the receiver had read everything and closed; TCP senders only. `None` when it
    /// did not close in time, or when the other direction still uses the connection.
    pub close_seconds: Option<f64>,
    /// Gaps between the starts of sends, or between arrivals; zero within a batch. `None` when not recorded or
    /// with fewer than two datagrams.
    pub gaps: Option<Box<IperfTimes>>,
    /// One-way delay from send to this program. `None` unless both ends are known to share a clock.
    pub delays_to_program: Option<TimeDistribution>,
    /// What the server reports it received.
    pub server_report: Option<ServerReport>,
    /// FINs sent (taken by the kernel), or received.
    pub fins: u64,
    /// Answers to FINs received, or sent (taken by the kernel).
    pub fin_answers: u64,
    /// Datagrams, FINs and answers included, that the kernel refused to send.
    pub refused: RefusedSends,
    /// Datagrams from other peers, or that are not iperf's.
    pub foreign_datagrams: u64,
    /// Whether a UDP sender expected an answer to its FINs and got none.
    pub is_unanswered: bool,
    /// When data last flowed, if before the end of `whole`.
    pub flowed_seconds: Option<f64>,
    /// Why a sender does not know how much arrived; `None` when it does.
    pub doubt: Option<&'static str>,
    /// What is wrong with the result, for people to read; `None` when nothing is.
    pub problem: Option<String>,
}

impl Total {
    /// A total with the fields that every stream has.
    pub(crate) fn of(whole: IntervalRecord, buffer: SocketBuffer) -> Self {
        Total {
            whole,
            buffer,
            seconds: whole.end,
            ..Total::default()
        }
    }

    /// What a UDP receiver counted over the whole stream.
    pub fn receipt(&self) -> Receipt {
        self.whole.receipt.unwrap_or_default()
    }

    /// Returns the total as text prints it. For a TCP sender, 2.1 prints the time until the receiver had read
    /// everything, 2.0 the time of the writes.
    pub(crate) fn printed(&self, style: Style) -> IntervalRecord {
        let close = self.close_seconds.filter(|_| style == Style::V2_1);
        IntervalRecord {
            end: close.unwrap_or(self.whole.end),
            ..self.whole
        }
    }

    /// The server's report as a record.
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

/// The counts of a stream between `start` and `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct IntervalRecord {
    /// Seconds from the start of the stream; a multiple of the interval.
    pub start: f64,
    /// Also a multiple of the interval, except in the last record of a stream that ends within one.
    pub end: f64,
    /// Whether the stream ended within this interval.
    pub is_partial: bool,
    /// Payload sent or received. Over TCP it includes the header, as in 2.1.8.
    pub bytes: u64,
    /// Datagrams of data, FINs excluded; 0 for TCP.
    pub datagrams: u64,
    /// The system calls that moved the data.
    pub calls: Calls,
    /// TCP senders only: TCP state at the end of the interval, and segments retransmitted within it.
    pub tcp: Option<TcpInfo>,
    /// UDP receivers only.
    pub receipt: Option<Receipt>,
}

impl IntervalRecord {
    /// `count` per second; 0 for an interval too short for a rate.
    pub(crate) fn per_second(&self, count: f64) -> f64 {
        let elapsed = self.end - self.start;
        if elapsed >= SHORTEST_SECONDS {
            count / elapsed
        } else {
            0.0
        }
    }

    /// Adds another stream, from the earlier start to the later end. Keeps the greater jitter, and the TCP
    /// state and transit times of `self`.
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

    /// Joins the counts of both with `join`; the rest is that of `self`.
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

    /// Turns the running counts of a stream into one interval that ends at `elapsed`.
    pub(crate) fn until(self, elapsed: Duration) -> Self {
        IntervalRecord {
            end: elapsed.as_secs_f64(),
            ..self
        }
    }
}

/// Writes of a sender, reads of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Calls that moved data. Reads of a TCP header are not counted.
    pub done: u64,
    /// Writes refused for the moment, for lack of room or because of a closed port reported earlier. Reads that
    /// found nothing are not counted.
    pub refused: u64,
    /// TCP reads by size: bins of equal width up to the length asked for. Zeros for anything else.
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

/// What a UDP receiver counted in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Receipt {
    /// Growth of the highest id. The first FIN accounts for datagrams lost at the end, and for one too many per
    /// FIN lost before it.
    pub expected: u64,
    /// Growth of the number of missing ids; negative when ids missing from an earlier interval arrive late.
    pub lost: i64,
    /// Datagrams that arrived after one with a higher id.
    pub out_of_order: u64,
    /// Datagrams whose id had already arrived.
    pub duplicates: u64,
    /// Running jitter (RFC 3550 section 6.4.1) from kernel arrival timestamps; `None` before the second
    /// datagram.
    pub jitter_seconds: Option<f64>,
    /// Transit times; `None` when not recorded or when nothing arrived.
    pub transit: Option<Transit>,
}

impl Receipt {
    /// Datagrams whose id did not exceed all earlier ones: the original's out-of-order count.
    pub(crate) fn behind(&self) -> u64 {
        self.out_of_order.wrapping_add(self.duplicates)
    }
}

/// Splits a stream into intervals, given its running counts.
pub(crate) struct Splitter<'a> {
    pub(crate) observer: &'a mut dyn Observer,
    /// Transit times within the running interval.
    pub(crate) transit: Moments,
    length: Option<Duration>,
    start: Duration,
    /// End of the running interval.
    boundary: Duration,
    at_start: IntervalRecord,
}

impl<'a> Splitter<'a> {
    /// Makes no records when `length` is `None` or zero.
    pub(crate) fn new(length: Option<Duration>, observer: &'a mut dyn Observer) -> Self {
        let length = length.filter(|length| !length.is_zero());
        Splitter {
            observer,
            transit: Moments::default(),
            length,
            start: Duration::ZERO,
            boundary: length.unwrap_or(Duration::MAX),
            at_start: IntervalRecord::default(),
        }
    }

    /// Whether records are made.
    pub(crate) fn are_asked_for(&self) -> bool {
        self.length.is_some()
    }

    /// Whether an event at `elapsed` falls after the running interval, which [`close_due`](Self::close_due)
    /// must close first.
    pub(crate) fn is_due(&self, elapsed: Duration) -> bool {
        elapsed >= self.boundary
    }

    /// Time left in the running interval.
    pub(crate) fn left(&self, elapsed: Duration) -> Duration {
        self.boundary.saturating_sub(elapsed)
    }

    /// Closes the intervals that ended by `elapsed`. All of `counted`, the running counts before the current
    /// event, goes to the first of them; the others are empty.
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

/// Longer times are recorded as one hour.
const TIME_MAX_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits kept per time: quantiles are within 1 %.
const DIGITS: u8 = 2;
/// End of the first bucket. Each bucket ends at twice the end of the one before.
const FIRST_BUCKET_NS: u64 = 1_000;

/// Gaps between consecutive datagrams: a histogram, with their exact sum and extremes.
#[derive(Clone, Debug)]
pub(crate) struct Gaps {
    histogram: Histogram<u64>,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
    last_ns: Option<i64>,
}

impl Default for Gaps {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, TIME_MAX_NS, DIGITS);
        Gaps {
            histogram: histogram.expect("constant bounds that the histogram accepts"),
            min_ns: u64::MAX,
            max_ns: 0,
            sum_ns: 0,
            last_ns: None,
        }
    }
}

impl Gaps {
    /// Records `datagrams` that arrive together: after the first, the gaps are 0. A clock set back also gives a
    /// gap of 0.
    pub(crate) fn record(&mut self, at_ns: i64, datagrams: u64) {
        if let Some(last_ns) = self.last_ns.replace(at_ns) {
            let ns = u64::try_from(at_ns.saturating_sub(last_ns)).unwrap_or(0);
            self.histogram.saturating_record(ns);
            self.min_ns = self.min_ns.min(ns);
            self.max_ns = self.max_ns.max(ns);
            self.sum_ns += u128::from(ns);
        }
        if datagrams > 1 {
            self.histogram.saturating_record_n(0, datagrams - 1);
            self.min_ns = 0;
        }
    }

    /// `None` with fewer than two datagrams.
    pub(crate) fn times(&self) -> Option<Box<IperfTimes>> {
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

/// Transit times: arrival by the receiver's clock minus send by the sender's. They include the offset between
/// the clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transit {
    /// Datagrams, at least 1.
    pub datagrams: u64,
    /// The mean, in seconds.
    pub mean_seconds: f64,
    /// The shortest, in seconds; may be negative when the clocks disagree.
    pub min_seconds: f64,
    /// The longest, in seconds.
    pub max_seconds: f64,
    /// Standard deviation, in seconds; 0 for a single datagram.
    pub deviation_seconds: f64,
}

/// Running moments after Welford (1962), which stay precise when the mean is large.
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

    pub(crate) fn transit(&self) -> Option<Transit> {
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

/// Gaps and transit times at a receiver.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArrivalTimes {
    pub gaps: Gaps,
    pub transit: Moments,
}

impl ArrivalTimes {
    /// Records a datagram of data; times are nanoseconds since 1970.
    pub(crate) fn record(&mut self, sent_ns: i64, arrival_ns: i64) {
        self.gaps.record(arrival_ns, 1);
        self.transit.record(arrival_ns.saturating_sub(sent_ns));
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
        let mut intervals = Splitter::new(Some(HALF), &mut records);
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
            let mut intervals = Splitter::new(length, &mut records);
            assert!(!intervals.are_asked_for() && !intervals.is_due(HALF));
            intervals.finish(HALF, of_bytes(1));
        }
        assert_eq!(records.0, []);
        let mut intervals = Splitter::new(Some(HALF), &mut records);
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
        // The buffer is smaller than the number of bins.
        Calls::default().record_read(1, 1);
    }

    #[test]
    fn gaps_are_between_datagrams_and_none_within_a_batch() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.times(), None);
        gaps.record(5_000, 1);
        assert_eq!(gaps.times(), None);
        gaps.record(7_000, 3);
        // The clock was set back: a gap of 0, not a negative one.
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
        // 2 us falls in the bucket that ends at 4 us.
        assert_eq!(counts[..4], [3, 0, 1, 0]);
        assert_eq!(counts.last(), Some(&1));
        let ends = gaps.buckets.iter().map(|bucket| bucket.below_seconds);
        assert!(ends.is_sorted());
    }

    #[test]
    fn moments_are_those_of_what_was_recorded() {
        let mut times = ArrivalTimes::default();
        assert_eq!(times.transit.transit(), None);
        times.record(0, 1_000_000_000);
        assert_eq!(times.transit.transit().unwrap().deviation_seconds, 0.0);
        times.record(0, 3_000_000_000);
        let transit = times.transit.transit().unwrap();
        assert_eq!((transit.datagrams, transit.mean_seconds), (2, 2.0));
        assert_eq!((transit.min_seconds, transit.max_seconds), (1.0, 3.0));
        assert!((transit.deviation_seconds - f64::sqrt(2.0)).abs() < 1e-9);
        times.record(0, 8_000_000_000);
        assert_eq!(times.transit.transit().unwrap().mean_seconds, 4.0);
    }
}
