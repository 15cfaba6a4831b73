//! When `adaptive` polls: by the packets of a tick.
//!
//! An interrupt for each packet costs less than a tick while there are fewer packets than ticks, and more when there
//! are several to a tick. Between the two nothing changes, so that a load in the middle does not flap.
//!
//! What must hold: polling begins only after a load that lasted, and ends only after a lull that lasted.

/// Packets a tick from which on a tick is busy.
const BUSY_PACKETS: u64 = 4;
/// Busy ticks in a row before polling begins.
const BUSY_TICKS: u64 = 3;
/// Ticks that are looked at together before polling ends: fewer packets than ticks end it.
const LULL_TICKS: u64 = 50;

/// What the rule remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Adapt {
    is_polling: bool,
    ticks: u64,
    packets: u64,
}

impl Adapt {
    /// Whether it polls now.
    pub(crate) fn is_polling(&self) -> bool {
        self.is_polling
    }

    /// So many packets came in the `ticks` since the last call. Returns whether the discipline changes.
    pub(crate) fn observe(&mut self, ticks: u64, packets: u64) -> bool {
        self.ticks += ticks;
        self.packets += packets;
        let changes = if self.is_polling {
            if self.ticks < LULL_TICKS {
                return false;
            }
            self.packets < self.ticks
        } else {
            if packets < ticks * BUSY_PACKETS {
                (self.ticks, self.packets) = (0, 0);
                return false;
            }
            if self.ticks < BUSY_TICKS {
                return false;
            }
            true
        };
        self.is_polling ^= changes;
        (self.ticks, self.packets) = (0, 0);
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_lasts_begins_polling_and_a_lull_that_lasts_ends_it() {
        let mut adapt = Adapt::default();
        // Two busy ticks, a quiet one: a burst.
        for packets in [9, 9, 3] {
            assert!(!adapt.observe(1, packets));
        }
        assert!(!adapt.observe(1, 4) && !adapt.observe(1, 4));
        assert!(adapt.observe(1, 4) && adapt.is_polling());
        // A packet a tick is enough to stay.
        assert!((0..500).all(|_| !adapt.observe(1, 1)));
        let lull = (0..500).position(|_| adapt.observe(1, 0));
        assert_eq!(lull, Some(LULL_TICKS as usize - 1));
        assert!(!adapt.is_polling());
    }

    #[test]
    fn several_ticks_at_once_count_by_their_mean() {
        let mut adapt = Adapt::default();
        assert!(!adapt.observe(20, 79));
        assert!(adapt.observe(20, 80));
    }
}
