//! How long datagrams take from their sender to the program that receives them.
//!
//! What must hold: the time in the kernel's queues is part of it, and so is the time until the program looks. Both
//! ends have one clock, or nothing is told.

use std::time::{Duration, Instant};

use nicpoll_model::TimeDistribution;
use nicpoll_stats::Latencies;

use crate::wall_clock::WallClock;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
