//! Wall-clock times, delays from sender to receiver, and whether a test lasted as long as requested.
//!
//! The time in the kernel's queues and the time until the program looks are part of a delay. Delays are told only where both
//! ends have one clock. A test that ended early never passes for a complete one.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nicpoll_model::TimeDistribution;
use nicpoll_stats::Latencies;

/// How often both clocks are read together: whoever is preempted between two readings reads again.
const READINGS: u32 = 8;

/// Tells the wall-clock time of any moment by the wall clock as it stood when this value was made.
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

    /// Time since 1970 at a moment that is not before this value was made.
    pub fn at(&self, moment: Instant) -> Duration {
        self.begun_wall + moment.saturating_duration_since(self.begun)
    }
}

/// A datagram that comes so much before it was sent proves that the clocks are two. A stamp in whole microseconds
/// and two readings of two clocks make up for less.
const AHEAD_MAX: Duration = Duration::from_micros(100);

/// Counts them.
#[derive(Clone, Debug)]
pub struct OneWayDelays {
    clock: WallClock,
    delays: Latencies,
    is_clock_shared: bool,
}

impl OneWayDelays {
    /// Begins to count.
    pub fn start() -> Self {
        OneWayDelays {
            clock: WallClock::start(),
            delays: Latencies::default(),
            is_clock_shared: true,
        }
    }

    /// A datagram that was sent so long after 1970 is in the program's hands now, at `at`.
    pub fn record(&mut self, sent: Duration, at: Instant) {
        let now = self.clock.at(at);
        self.is_clock_shared &= sent <= now + AHEAD_MAX;
        self.delays.record(now.saturating_sub(sent));
    }

    /// All of them; `None` without any, and when the clocks prove to be two.
    pub fn distribution(&self) -> Option<TimeDistribution> {
        let is_told = self.is_clock_shared && self.delays.samples() > 0;
        is_told.then(|| self.delays.distribution())
    }
}

/// A test may end earlier by this part of its time, within these bounds: clocks and last datagrams differ.
const TOLERANCE_PART: u32 = 8;
const TOLERANCE_MIN: Duration = Duration::from_millis(150);
const TOLERANCE_MAX: Duration = Duration::from_secs(1);

/// A test that ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// What was asked for.
    pub asked: Duration,
    /// Until when data flowed.
    pub obtained: Duration,
}

impl Shortfall {
    /// `None` when the test lasted as long as was asked.
    pub fn of(asked: Duration, obtained: Duration) -> Option<Self> {
        let tolerance = (asked / TOLERANCE_PART).clamp(TOLERANCE_MIN, TOLERANCE_MAX);
        (obtained.saturating_add(tolerance) < asked).then_some(Shortfall { asked, obtained })
    }
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [obtained, asked] = [self.obtained, self.asked].map(|time| time.as_secs_f64());
        write!(f, "ended after {obtained:.1} of {asked:.1} s")
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
        // Within a day of what the system says: a clock that is set meanwhile is no error.
        let system = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        assert!(clock.at(Instant::now()).abs_diff(system) < Duration::from_secs(86_400));
    }

    #[test]
    fn a_delay_is_told_unless_a_datagram_came_before_it_was_sent() {
        let mut delays = OneWayDelays::start();
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
