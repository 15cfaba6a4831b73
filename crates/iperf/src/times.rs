//! When the datagrams of a stream were sent or arrived: the gaps between them, and the time that they
//! were under way.
//!
//! What must hold: recording allocates nothing and reads no clock; a gap is there for each datagram but
//! the first.

use hdrhistogram::Histogram;

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
pub(super) struct Gaps {
    recorder: Recorder,
    last_ns: Option<i64>,
}

impl Gaps {
    pub(super) fn new() -> Self {
        Gaps {
            recorder: Recorder::new(),
            last_ns: None,
        }
    }

    /// Takes note of a datagram. One that comes before the last one did, as a clock that was set back
    /// makes it, has no gap.
    pub(super) fn record(&mut self, at_ns: i64) {
        if let Some(last_ns) = self.last_ns.replace(at_ns) {
            let gap_ns = u64::try_from(at_ns.saturating_sub(last_ns));
            self.recorder.record(gap_ns.unwrap_or(0));
        }
    }

    /// Takes note of datagrams that are handed over together: all but the first have no gap.
    pub(super) fn record_together(&mut self, at_ns: i64, datagrams: u64) {
        if datagrams > 0 {
            self.record(at_ns);
            self.recorder.record_zeros(datagrams - 1);
        }
    }

    /// `None` below two datagrams.
    pub(super) fn distribution(&self) -> Option<Distribution> {
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
pub(super) struct ArrivalTimes {
    gaps: Gaps,
    whole: Moments,
    interval: Moments,
    delays: Recorder,
    /// A datagram arrived before it was sent: the clocks are not one.
    is_clock_shared: bool,
}

impl ArrivalTimes {
    pub(super) fn new() -> Self {
        ArrivalTimes {
            gaps: Gaps::new(),
            whole: Moments::default(),
            interval: Moments::default(),
            delays: Recorder::new(),
            is_clock_shared: true,
        }
    }

    /// Takes note of a datagram of data, in nanoseconds since 1970.
    pub(super) fn record(&mut self, sent_ns: i64, arrival_ns: i64) {
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
    pub(super) fn begin_interval(&mut self) {
        self.interval = Moments::default();
    }

    pub(super) fn interval_transit(&self) -> Option<Transit> {
        self.interval.transit()
    }

    pub(super) fn transit(&self) -> Option<Transit> {
        self.whole.transit()
    }

    pub(super) fn gaps(&self) -> Option<Distribution> {
        self.gaps.distribution()
    }

    /// Delays by a clock that both ends have; `None` when they prove to have two.
    pub(super) fn delays(&self) -> Option<Distribution> {
        self.delays.distribution().filter(|_| self.is_clock_shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
