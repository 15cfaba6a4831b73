//! How much to send, and how fast.
//!
//! What must hold: a paced stream follows a schedule that was fixed at its start, so that no error of
//! a sleep adds up; it is never ahead by more than the length below which sleeping is not worth it.

use std::time::Duration;

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

/// iperf 2.1.8 sleeps for no shorter time; a datagram may be sent this much too early.
pub(super) const SLEEP_MIN: Duration = Duration::from_micros(100);

const NS_PER_SECOND: u128 = 1_000_000_000;

/// A schedule: after how many units (bytes or datagrams) which time has passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// The time that one unit takes is this many nanoseconds divided by `divisor`.
    ns: u128,
    divisor: u128,
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
        })
    }

    /// How long the schedule has still to run, `elapsed` after its start, before the next unit is
    /// due that follows on `sent` others; zero when it is due.
    pub(super) fn ahead(&self, sent: u64, elapsed: Duration) -> Duration {
        let due_ns = u128::from(sent).saturating_mul(self.ns) / self.divisor;
        let due_ns = u64::try_from(due_ns).unwrap_or(u64::MAX);
        Duration::from_nanos(due_ns).saturating_sub(elapsed)
    }
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
    fn extremes_neither_overflow_nor_divide_by_zero() {
        assert!(Pace::of_bytes(0).is_none());
        let slow = Pace::of_bytes(1).unwrap();
        let long = slow.ahead(u64::MAX, Duration::ZERO);
        assert_eq!(long, Duration::from_nanos(u64::MAX));
    }
}
