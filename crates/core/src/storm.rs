//! Interrupt storm detection: `intr_event_execute_handlers` and `ithread_loop` of FreeBSD's
//! `sys/kern/kern_intr.c`.
//!
//! The detector counts back-to-back passes of an interrupt thread, not a rate. At the threshold the thread sleeps a
//! tick before it unmasks the source, and the count stays: throttling lasts until the source is quiet.

/// How a pass over the handlers ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// The source may interrupt again.
    Rearm,
    /// The thread sleeps a tick first. With `is_reported` it logs `interrupt storm detected on "NAME"; throttling
    /// interrupt source`, at most once a second.
    Throttle {
        /// Whether the message is due.
        is_reported: bool,
    },
}

/// The detector of one interrupt source. Times are in ticks of `hz`.
/// ```
/// use nicpoll_core::{Pass, StormDetector};
///
/// let mut detector = StormDetector::new(2, 1_000);
/// assert_eq!(detector.pass(0), Pass::Rearm);
/// assert_eq!(detector.pass(0), Pass::Rearm);
/// // The third pass in a row waits for the next tick, and is reported.
/// assert_eq!(detector.pass(0), Pass::Throttle { is_reported: true });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StormDetector {
    threshold: u32,
    hz: u32,
    count: u32,
    reported_at_tick: Option<u64>,
}

impl StormDetector {
    /// Creates a detector that throttles after `threshold` back-to-back passes (`hw.intr_storm_threshold`; 0, the
    /// default of current FreeBSD, means never; older ones had 1000), with `hz` ticks a second.
    pub const fn new(threshold: u32, hz: u32) -> Self {
        StormDetector {
            threshold,
            hz,
            count: 0,
            reported_at_tick: None,
        }
    }

    /// Counts a run of the handlers. Returns what the thread does next.
    pub fn pass(&mut self, now_tick: u64) -> Pass {
        if self.threshold == 0 || self.count < self.threshold {
            self.count = self.count.wrapping_add(1);
            return Pass::Rearm;
        }
        // ppsratecheck with one message a second.
        let is_reported = self
            .reported_at_tick
            .is_none_or(|last| now_tick.wrapping_sub(last) >= u64::from(self.hz));
        if is_reported {
            self.reported_at_tick = Some(now_tick);
        }
        Pass::Throttle { is_reported }
    }

    /// Resets the count: the thread has found nothing pending and sleeps.
    pub fn sleep(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_to_back_passes_are_throttled_until_the_source_is_quiet() {
        let mut detector = StormDetector::new(3, 100);
        for _ in 0..3 {
            assert_eq!(detector.pass(1), Pass::Rearm);
        }
        assert_eq!(detector.pass(1), Pass::Throttle { is_reported: true });
        assert_eq!(detector.pass(100), Pass::Throttle { is_reported: false });
        assert_eq!(detector.pass(101), Pass::Throttle { is_reported: true });
        assert_eq!(detector.count, 3);
        detector.sleep();
        assert_eq!(detector.pass(102), Pass::Rearm);
    }

    #[test]
    fn passes_with_sleeps_between_are_no_storm_however_many() {
        let mut detector = StormDetector::new(1000, 100);
        for tick in 0..10_000 {
            assert_eq!(detector.pass(tick), Pass::Rearm);
            detector.sleep();
        }
    }

    #[test]
    fn threshold_0_never_throttles() {
        let mut detector = StormDetector::new(0, 100);
        assert!((0..10_000).all(|tick| detector.pass(tick) == Pass::Rearm));
    }
}
