//! When what is paced is due.
//!
//! What must hold: a paced stream follows a schedule that was fixed at its start, so that no error of
//! a sleep adds up; nothing is sent before it is due, and what is due late is sent one by one unless
//! that cannot keep up.

use std::time::Duration;

use crate::Rate;

/// A stream that is later than this sends together what is due. iperf 2.1.8 sleeps for no shorter
/// time, and so sends what falls due in it back to back.
const LATE_MAX: Duration = Duration::from_micros(100);

/// A schedule: after how many units (bytes or datagrams) which time has passed.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    rate: Rate,
    unit_bits: u64,
    /// Units that are due at a time: the first of them when it is due by itself, the others with it.
    burst: u64,
}

impl Pace {
    /// A schedule of bytes.
    pub fn of_bytes(rate: Rate) -> Self {
        Self::of_datagrams(rate, 1)
    }

    /// A schedule of datagrams of equal length.
    pub fn of_datagrams(rate: Rate, payload_bytes: usize) -> Self {
        Pace {
            rate,
            unit_bits: 8 * payload_bytes as u64,
            burst: 1,
        }
    }

    /// The same rate in bursts of so many units, 1 at least.
    pub fn in_bursts(self, units: u32) -> Self {
        Pace {
            burst: u64::from(units.max(1)),
            ..self
        }
    }

    /// How long the schedule has still to run, `elapsed` after its start, before the next unit is
    /// due that follows on `sent` others; zero when it is due.
    pub fn ahead(&self, sent: u64, elapsed: Duration) -> Duration {
        self.due(sent).saturating_sub(elapsed)
    }

    /// How many units, of which the next follows on `sent` others and is due, are to be sent together
    /// now: the rest of its burst, or all that are due when the stream is late by 100 µs.
    pub fn due_together(&self, sent: u64, elapsed: Duration) -> u64 {
        if elapsed.saturating_sub(self.due(sent)) < LATE_MAX {
            return self.burst - sent % self.burst;
        }
        let bursts = self.rate.packets_in(elapsed, self.unit_bits) / self.burst;
        bursts
            .saturating_add(1)
            .saturating_mul(self.burst)
            .saturating_sub(sent)
    }

    /// When the unit that follows on `sent` others is due, after the start.
    fn due(&self, sent: u64) -> Duration {
        let first_of_burst = sent - sent % self.burst;
        self.rate.time_of(first_of_burst, self.unit_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RateUnit;

    fn packets(per_second: u64) -> Rate {
        Rate::packets_per_second(per_second).unwrap()
    }

    #[test]
    fn the_default_rate_has_the_gap_that_iperf_prints() {
        let pace = Pace::of_datagrams(Rate::bits_per_second(1_048_576).unwrap(), 1470);
        let gap = pace.ahead(1, Duration::ZERO);
        assert_eq!(gap, Duration::from_nanos(11_215_209));
        // No error adds up: a million gaps are a million times the exact gap.
        let million = pace.ahead(1_000_000, Duration::ZERO);
        assert_eq!(million, Duration::from_nanos(11_215_209_960_937));
    }

    #[test]
    fn the_first_is_due_at_once_and_a_late_one_too() {
        let pace = Pace::of_datagrams(packets(1000), 64);
        assert_eq!(pace.ahead(0, Duration::ZERO), Duration::ZERO);
        assert_eq!(pace.ahead(5, Duration::from_millis(7)), Duration::ZERO);
        let ahead = pace.ahead(5, Duration::from_millis(3));
        assert_eq!(ahead, Duration::from_millis(2));
    }

    #[test]
    fn only_a_late_stream_sends_datagrams_together() {
        let pace = Pace::of_datagrams(packets(100_000), 64);
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
        let pace = Pace::of_datagrams(packets(10_000), 64);
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

    /// What a stream sends that looks at the clock as often as it likes: each when it is due.
    #[test]
    fn fractions_of_a_datagram_are_neither_rounded_nor_lost() {
        let rate = |text| Rate::decimal(RateUnit::PacketsPerSecond, text, 1).unwrap();
        for (text, seconds, sent) in [
            ("0.4", 1, 1),
            ("0.4", 5, 2),
            ("0.4", 6, 3),
            ("1.4", 1, 2),
            ("1.4", 1000, 1400),
            ("2.6", 1, 3),
            ("2.6", 1000, 2600),
        ] {
            let pace = Pace::of_datagrams(rate(text), 1470);
            let end = Duration::from_secs(seconds);
            let mut now = Duration::ZERO;
            let mut count = 0;
            while now < end {
                now += pace.ahead(count, now);
                count += u64::from(now < end);
            }
            assert_eq!(count, sent, "{text} for {seconds} s");
        }
    }
}
