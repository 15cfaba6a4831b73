//! How much to send, and how fast.
//!
//! What must hold: a paced stream follows a schedule that was fixed at its start, so that no error of
//! a sleep adds up; nothing is sent before it is due, and what is due late is sent one by one unless
//! that cannot keep up.

use std::num::NonZeroU64;
use std::time::Duration;

use rustix::thread::set_current_timer_slack;

/// How much to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// For a time.
    Time(Duration),
    /// A number of bytes of payload.
    Bytes(u64),
}

/// How fast to send datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Bits of payload a second.
    BitsPerSecond(u64),
    /// Datagrams a second.
    PacketsPerSecond(u64),
}

/// A stream that is later than this sends together what is due. iperf 2.1.8 sleeps for no shorter
/// time, and so sends what falls due in it back to back.
const LATE_MAX: Duration = Duration::from_micros(100);

const NS_PER_SECOND: u128 = 1_000_000_000;

/// A schedule: after how many units (bytes or datagrams) which time has passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// The time that one unit takes is this many nanoseconds divided by `divisor`.
    ns: u128,
    divisor: u128,
    /// Units that are due at a time: the first of them when it is due by itself, the others with it.
    burst: u64,
}

impl Pace {
    /// A schedule of bytes; `None` for a rate of 0, which is none.
    pub(super) fn of_bytes(bits_per_second: u64) -> Option<Self> {
        Self::new(8, bits_per_second)
    }

    /// A schedule of datagrams of equal length; `None` for a rate of 0, which is none.
    pub(super) fn of_datagrams(rate: Rate, payload_bytes: usize) -> Option<Self> {
        match rate {
            Rate::BitsPerSecond(rate) => Self::new(8 * payload_bytes as u128, rate),
            Rate::PacketsPerSecond(rate) => Self::new(1, rate),
        }
    }

    fn new(cost: u128, rate: u64) -> Option<Self> {
        (rate > 0).then(|| Pace {
            ns: cost * NS_PER_SECOND,
            divisor: u128::from(rate),
            burst: 1,
        })
    }

    /// The same rate in bursts of so many units, 1 at least.
    pub(super) fn in_bursts(self, units: u32) -> Self {
        Pace {
            burst: u64::from(units.max(1)),
            ..self
        }
    }

    /// How long the schedule has still to run, `elapsed` after its start, before the next unit is
    /// due that follows on `sent` others; zero when it is due.
    pub(super) fn ahead(&self, sent: u64, elapsed: Duration) -> Duration {
        self.due(sent).saturating_sub(elapsed)
    }

    /// How many units, of which the next follows on `sent` others and is due, are to be sent together
    /// now: the rest of its burst, or all that are due when the stream is late by 100 µs.
    pub(super) fn due_together(&self, sent: u64, elapsed: Duration) -> u64 {
        if elapsed.saturating_sub(self.due(sent)) < LATE_MAX {
            return self.burst - sent % self.burst;
        }
        let due = elapsed.as_nanos().saturating_mul(self.divisor) / self.ns;
        let bursts = u64::try_from(due).unwrap_or(u64::MAX) / self.burst;
        bursts
            .saturating_add(1)
            .saturating_mul(self.burst)
            .saturating_sub(sent)
    }

    /// When the unit that follows on `sent` others is due, after the start.
    fn due(&self, sent: u64) -> Duration {
        let first_of_burst = sent - sent % self.burst;
        let due_ns = u128::from(first_of_burst).saturating_mul(self.ns) / self.divisor;
        Duration::from_nanos(u64::try_from(due_ns).unwrap_or(u64::MAX))
    }
}

/// Has the calling thread's sleeps end when they are over, rather than up to 50 µs later so that the
/// kernel may join wake-ups.
pub(super) fn make_sleeps_exact() {
    // What it costs to go without is said by the rate and the gaps that are reached.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_rate_has_the_gap_that_iperf_prints() {
        let pace = Pace::of_datagrams(Rate::BitsPerSecond(1_048_576), 1470).unwrap();
        let gap = pace.ahead(1, Duration::ZERO);
        assert_eq!(gap, Duration::from_nanos(11_215_209));
        // No error adds up: a million gaps are a million times the exact gap.
        let million = pace.ahead(1_000_000, Duration::ZERO);
        assert_eq!(million, Duration::from_nanos(11_215_209_960_937));
    }

    #[test]
    fn the_first_is_due_at_once_and_a_late_one_too() {
        let pace = Pace::of_datagrams(Rate::PacketsPerSecond(1000), 64).unwrap();
        assert_eq!(pace.ahead(0, Duration::ZERO), Duration::ZERO);
        assert_eq!(pace.ahead(5, Duration::from_millis(7)), Duration::ZERO);
        let ahead = pace.ahead(5, Duration::from_millis(3));
        assert_eq!(ahead, Duration::from_millis(2));
    }

    #[test]
    fn only_a_late_stream_sends_datagrams_together() {
        let pace = Pace::of_datagrams(Rate::PacketsPerSecond(100_000), 64).unwrap();
        let us = Duration::from_micros;
        for (sent, elapsed_us, together) in [
            (0, 0, 1),
            (0, 99, 1),
            // Due at 0, 10, ... 100.
            (0, 100, 11),
            (5, 149, 1),
            (5, 155, 11),
            (1_000_000, 10_000_200, 21),
        ] {
            assert_eq!(pace.due_together(sent, us(elapsed_us)), together, "{sent}");
        }
    }

    #[test]
    fn a_burst_is_due_at_once_and_the_next_one_when_its_rate_allows() {
        let pace = Pace::of_datagrams(Rate::PacketsPerSecond(10_000), 64).unwrap();
        let pace = pace.in_bursts(10);
        let us = Duration::from_micros;
        for (sent, elapsed_us, ahead_us) in [
            (0, 0, 0),
            (9, 5, 0),
            (10, 5, 995),
            (10, 1_000, 0),
            (19, 1_000, 0),
            (20, 1_500, 500),
        ] {
            assert_eq!(pace.ahead(sent, us(elapsed_us)), us(ahead_us), "{sent}");
        }
        for (sent, elapsed_us, together) in [
            (0, 0, 10),
            (3, 50, 7),
            (10, 1_000, 10),
            // Two bursts were missed.
            (10, 3_150, 30),
            (14, 3_150, 26),
        ] {
            assert_eq!(pace.due_together(sent, us(elapsed_us)), together, "{sent}");
        }
    }

    #[test]
    fn extremes_neither_overflow_nor_divide_by_zero() {
        assert!(Pace::of_bytes(0).is_none());
        let slow = Pace::of_bytes(1).unwrap();
        let long = slow.ahead(u64::MAX, Duration::ZERO);
        assert_eq!(long, Duration::from_nanos(u64::MAX));
    }
}
