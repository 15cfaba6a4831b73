//! Wall-clock time at the price of one reading of the monotonic clock, and without its steps.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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
}
