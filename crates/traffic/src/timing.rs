//! Wall-clock times, one-way delays, and whether a test lasted as long as requested.
//!
//! A delay includes the time in the kernel's queues and the time until the program reads. Delays are reported
//! only if both ends share a clock. A test that ended early never passes for a complete one.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nicpoll_model::TimeDistribution;
use nicpoll_stats::Latencies;

/// How often both clocks are read; the closest pair counts, in case of preemption in between.
const READINGS: u32 = 8;

/// Converts moments to wall-clock time, as the wall clock stood at [`Self::start`].
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    begun: Instant,
    begun_wall: Duration,
}

impl WallClock {
    /// Reads both clocks.
    pub fn start() -> Self {
        let reading = |_| {
            let before = Instant::now();
            let wall = SystemTime::now().duration_since(UNIX_EPOCH);
            let took = before.elapsed();
            (took, before + took / 2, wall.unwrap_or_default())
        };
        let nearest = (0..READINGS).map(reading).min_by_key(|(took, ..)| *took);
        let (_, begun, begun_wall) = nearest.unwrap_or_else(|| reading(0));
        WallClock { begun, begun_wall }
    }

    /// The wall clock that this one is ahead of by `ahead_ns`.
    fn of_one_behind(mut self, ahead_ns: i64) -> Self {
        let ahead = Duration::from_nanos(ahead_ns.unsigned_abs());
        self.begun_wall = match ahead_ns {
            0.. => self.begun_wall.saturating_sub(ahead),
            _ => self.begun_wall + ahead,
        };
        self
    }

    /// Time since 1970 at a moment not before [`Self::start`].
    pub fn at(&self, moment: Instant) -> Duration {
        self.begun_wall + moment.saturating_duration_since(self.begun)
    }
}

/// A datagram that arrives this long before its send time proves that the clocks differ. Send times in whole
/// microseconds and two readings of two clocks account for less.
const AHEAD_MAX: Duration = Duration::from_micros(100);

/// Collects one-way delays.
#[derive(Clone, Debug)]
pub struct OneWayDelays {
    clock: WallClock,
    delays: Latencies,
    is_clock_shared: bool,
}

impl OneWayDelays {
    /// Starts to collect. This host's wall clock is ahead of the sender's by `ahead_ns`.
    pub fn start(ahead_ns: i64) -> Self {
        OneWayDelays {
            clock: WallClock::start().of_one_behind(ahead_ns),
            delays: Latencies::default(),
            is_clock_shared: true,
        }
    }

    /// Records a datagram sent at `sent` since 1970 and read by the program at `at`.
    pub fn record(&mut self, sent: Duration, at: Instant) {
        let now = self.clock.at(at);
        self.is_clock_shared &= sent <= now + AHEAD_MAX;
        self.delays.record(now.saturating_sub(sent));
    }

    /// All delays; `None` if there are none or the clocks proved to differ.
    pub fn distribution(&self) -> Option<TimeDistribution> {
        let is_told = self.is_clock_shared && self.delays.samples() > 0;
        is_told.then(|| self.delays.distribution())
    }
}

/// The fraction of its time by which a test may end early, within these bounds: clocks and last datagrams
/// differ.
const TOLERANCE_PART: u32 = 8;
const TOLERANCE_MIN: Duration = Duration::from_millis(150);
const TOLERANCE_MAX: Duration = Duration::from_secs(1);

/// A test that ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// The requested duration.
    pub asked: Duration,
    /// Until when data flowed.
    pub obtained: Duration,
}

impl Shortfall {
    /// `None` if the test lasted as long as requested.
    pub fn of(asked: Duration, obtained: Duration) -> Option<Self> {
        let tolerance = (asked / TOLERANCE_PART).clamp(TOLERANCE_MIN, TOLERANCE_MAX);
        (obtained.saturating_add(tolerance) < asked).then_some(Shortfall { asked, obtained })
    }

    fn seconds(&self) -> String {
        let [obtained, asked] = [self.obtained, self.asked].map(|time| time.as_secs_f64());
        format!("after {obtained:.1} of {asked:.1} s")
    }

    /// In words, when datagrams were sent for the whole time.
    pub fn while_sending(&self) -> String {
        format!("no datagram got through {}", self.seconds())
    }
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ended {}", self.seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_later_is_as_much_later_by_the_wall_clock() {
        let clock = WallClock::start();
        let moment = Instant::now() + Duration::from_secs(5);
        let later = clock.at(moment + Duration::from_millis(3)) - clock.at(moment);
        assert_eq!(later, Duration::from_millis(3));
        // Within a day of the system's time: the clock may be set meanwhile.
        let system = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        assert!(clock.at(Instant::now()).abs_diff(system) < Duration::from_secs(86_400));
    }

    #[test]
    fn a_delay_is_told_unless_a_datagram_came_before_it_was_sent() {
        let mut delays = OneWayDelays::start(0);
        assert_eq!(delays.distribution(), None);
        let at = Instant::now() + Duration::from_secs(1);
        let now = delays.clock.at(at);
        delays.record(now - Duration::from_millis(1), at);
        // Less than the clocks can tell.
        delays.record(now + Duration::from_micros(2), at);
        let told = delays.distribution().unwrap();
        assert_eq!(told.entries, [1, 1]);
        assert!(told.below_ns[1] > 1_000_000 && told.below_ns[1] < 1_100_000);
        delays.record(now + Duration::from_secs(1), at);
        assert_eq!(delays.distribution(), None);
    }

    #[test]
    fn a_test_falls_short_by_more_than_its_tolerance() {
        let ms = Duration::from_millis;
        for (asked, obtained, is_short) in [
            (4000, 1000, true),
            (4000, 3499, true),
            (4000, 3500, false),
            (4000, 5000, false),
            (300, 149, true),
            (300, 150, false),
            (60_000, 58_999, true),
            (60_000, 59_000, false),
        ] {
            let shortfall = Shortfall::of(ms(asked), ms(obtained));
            assert_eq!(shortfall.is_some(), is_short, "{obtained} of {asked} ms");
        }
    }

    #[test]
    fn it_says_how_much_of_what() {
        let shortfall = Shortfall::of(Duration::from_secs(4), Duration::from_millis(1020));
        let text = shortfall.map(|shortfall| shortfall.to_string());
        assert_eq!(text.as_deref(), Some("ended after 1.0 of 4.0 s"));
    }
}
