//! Timers and the estimate of the round trip, both in clock ticks.
//!
//! What must hold: a timer is due on a tick, as the original's callouts are, and never before the next
//! one; so a host's clock rate acts on them as in life.

/// Fractions of a tick in the smoothed round trip (`TCP_RTT_SHIFT`) and in its variation
/// (`TCP_RTTVAR_SHIFT`); both are summed up in quarters of a tick (`TCP_DELTA_SHIFT`).
const RTT_SHIFT: u32 = 5;
const VARIATION_SHIFT: u32 = 4;
const DELTA_SHIFT: u32 = 2;
/// What a timeout grows by with each that follows the last (`tcp_backoff`).
const BACKOFF: [u64; 13] = [1, 2, 4, 8, 16, 32, 64, 64, 64, 64, 64, 64, 64];

/// A moment as a host sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Now {
    /// Virtual time.
    pub(crate) ns: u64,
    /// Ticks of the host's clock so far.
    pub(crate) tick: u64,
}

impl Now {
    /// The tick that is so many from now, and not this one.
    pub(super) fn after(&self, ticks: u64) -> u64 {
        self.tick + ticks.max(1)
    }
}

/// `TCPTV_DELACK`, `net.inet.tcp.delacktime`: a tenth of a second.
pub(super) fn delayed_ack_ticks(hz: u64) -> u64 {
    hz / 10
}

/// How long to wait for an acknowledgement (RFC 6298, `tcp_xmit_timer`).
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    hz: u64,
    /// In 1/32 of a tick; 0 before the first sample.
    smoothed: i64,
    /// In 1/16 of a tick.
    variation: i64,
}

impl RoundTrip {
    pub(super) fn new(hz: u64) -> Self {
        RoundTrip {
            hz,
            smoothed: 0,
            // Makes the first timeout TCPTV_RTOBASE, three seconds (`tcp_newtcpcb`).
            variation: ((3 * hz) << VARIATION_SHIFT >> DELTA_SHIFT) as i64,
        }
    }

    /// An acknowledgement answers what was sent at `sent`.
    pub(super) fn sample(&mut self, now: Now, sent: Now) {
        // A run is shorter than 2^63 ticks.
        let sample = now.tick.saturating_sub(sent.tick) as i64;
        if self.smoothed == 0 {
            self.smoothed = (sample + 1) << RTT_SHIFT;
            self.variation = (sample + 1) << (VARIATION_SHIFT - 1);
            return;
        }
        let delta = (sample << DELTA_SHIFT) - (self.smoothed >> (RTT_SHIFT - DELTA_SHIFT));
        self.smoothed = (self.smoothed + delta).max(1);
        let beyond = delta.abs() - (self.variation >> (VARIATION_SHIFT - DELTA_SHIFT));
        self.variation = (self.variation + beyond).max(1);
    }

    /// The timeout after `shift` timeouts in a row (`TCP_REXMTVAL`, `TCPT_RANGESET`): a fifth of a second
    /// (`net.inet.tcp.rexmit_slop`) on top of the estimate, which counts as a 33rd of a second at least,
    /// and no more than 64 seconds.
    pub(super) fn timeout_ticks(&self, shift: usize) -> u64 {
        let hz = self.hz;
        let quarters = (self.smoothed >> (RTT_SHIFT - DELTA_SHIFT)) + self.variation;
        let estimate = (quarters >> DELTA_SHIFT) as u64;
        let backed_off = estimate.max((hz / 33).max(1)) * backoff(shift);
        (backed_off + hz / 5).min(64 * hz)
    }

    /// How long a closed window is left alone before it is probed (`tcp_setpersist`): 5 to 60 seconds.
    pub(super) fn persist_ticks(&self, shift: usize) -> u64 {
        let hz = self.hz;
        let estimate = ((self.smoothed >> DELTA_SHIFT) + self.variation) >> 1;
        (estimate as u64 * backoff(shift) + hz / 5).clamp(5 * hz, 60 * hz)
    }
}

fn backoff(shift: usize) -> u64 {
    BACKOFF[shift.min(BACKOFF.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After samples of a path with these round trips, sent a tick apart.
    fn settled(round_trips: impl Iterator<Item = u64>) -> RoundTrip {
        let mut round_trip = RoundTrip::new(1000);
        for (sent, ticks) in (0u64..).zip(round_trips) {
            let at = |tick| Now {
                ns: tick * 1_000_000,
                tick,
            };
            round_trip.sample(at(sent + ticks), at(sent));
        }
        round_trip
    }

    #[test]
    fn a_timer_of_less_than_a_tick_waits_for_the_next_one() {
        let now = Now { ns: 5, tick: 7 };
        assert_eq!((now.after(0), now.after(1), now.after(100)), (8, 8, 107));
    }

    #[test]
    fn the_first_timeout_is_three_seconds_and_the_slop() {
        let round_trip = RoundTrip::new(1000);
        assert_eq!(round_trip.timeout_ticks(0), 3200);
        assert_eq!(round_trip.timeout_ticks(1), 6200);
        assert_eq!(round_trip.timeout_ticks(40), 64_000);
    }

    #[test]
    fn a_short_path_has_the_least_timeout() {
        let round_trip = settled([0; 100].into_iter());
        // 1000 / 33 = 30 ticks and 200 of slop; doubled without the slop.
        assert_eq!(round_trip.timeout_ticks(0), 230);
        assert_eq!(round_trip.timeout_ticks(1), 260);
        assert_eq!(round_trip.persist_ticks(0), 5000);
        assert_eq!(round_trip.persist_ticks(12), 5000);
    }

    #[test]
    fn the_estimate_settles_on_a_steady_path() {
        let ticks = settled([80; 1000].into_iter()).timeout_ticks(0) - 200;
        assert!((80..=82).contains(&ticks), "{ticks}");
        // An unsteady one adds four mean deviations.
        let unsteady = (0..1000).map(|number| 80 + 40 * (number % 2));
        let ticks = settled(unsteady).timeout_ticks(0) - 200;
        assert!((170..=190).contains(&ticks), "{ticks}");
    }
}
