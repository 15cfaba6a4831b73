//! When requests are due.
//!
//! What must hold: an open loop's times depend on nothing but the rate and the number of the request.
//! However late a request is sent, its latency counts from its own time, so that a server which stalls
//! does not hide the wait of those that should have been sent meanwhile (coordinated omission).

use std::num::NonZeroU32;
use std::time::Duration;

use nicpoll_model::Rate;

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// As soon as fewer than `depth` are on their way.
    Closed {
        /// Requests on their way at a time.
        depth: NonZeroU32,
    },
    /// At a rate, whatever becomes of them.
    Open {
        /// Requests a second.
        rate: Rate,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct Schedule(Pacing);

impl Schedule {
    pub fn new(pacing: Pacing) -> Self {
        Schedule(pacing)
    }

    pub fn is_open(self) -> bool {
        matches!(self.0, Pacing::Open { .. })
    }

    /// Whether a request is due after `tried` others, and the time that it was scheduled for, which a
    /// closed loop does not know: `Some(None)`.
    pub fn due(self, now: Duration, tried: u64, on_their_way: usize) -> Option<Option<Duration>> {
        match self.0 {
            Pacing::Closed { depth } => (on_their_way < depth.get() as usize).then_some(None),
            Pacing::Open { .. } => {
                let time = self.time_of(tried)?;
                (time <= now).then_some(Some(time))
            }
        }
    }

    /// Time from `now` until a request is due, when time alone decides; `None` when an answer has to
    /// come first.
    pub fn left(self, now: Duration, tried: u64, on_their_way: usize) -> Option<Duration> {
        match self.0 {
            Pacing::Closed { depth } => {
                (on_their_way < depth.get() as usize).then_some(Duration::ZERO)
            }
            Pacing::Open { .. } => Some(self.time_of(tried)?.saturating_sub(now)),
        }
    }

    /// Requests whose time came before `end`; `None` in a closed loop.
    pub fn due_by(self, end: Duration) -> Option<u64> {
        match self.0 {
            Pacing::Closed { .. } => None,
            Pacing::Open { rate } => {
                let whole = rate.packets_in(end, 0);
                Some(whole + u64::from(rate.time_of(whole, 0) < end))
            }
        }
    }

    /// The time of the request after `tried` others; counted from the rate, never from the last one,
    /// so that it does not drift.
    fn time_of(self, tried: u64) -> Option<Duration> {
        match self.0 {
            Pacing::Closed { .. } => None,
            Pacing::Open { rate } => Some(rate.time_of(tried, 0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_loop_keeps_its_times_however_late_it_is() {
        let schedule = Schedule::new(Pacing::Open {
            rate: Rate::packets_per_second(1000).unwrap(),
        });
        let ms = Duration::from_millis;
        assert_eq!(schedule.due(ms(0), 0, 0), Some(Some(ms(0))));
        assert_eq!(schedule.due(ms(0), 1, 0), None);
        assert_eq!(schedule.left(ms(0), 1, 0), Some(ms(1)));
        // Half a second behind: the second request still counts from its own time.
        assert_eq!(schedule.due(ms(500), 1, 9), Some(Some(ms(1))));
        assert_eq!(schedule.due_by(ms(500)), Some(500));
        // Three million requests on, it has not drifted.
        assert_eq!(
            schedule.due(Duration::MAX, 3_000_000, 0),
            Some(Some(ms(3_000_000)))
        );
    }

    #[test]
    fn a_closed_loop_waits_for_answers() {
        let depth = NonZeroU32::new(2).unwrap();
        let schedule = Schedule::new(Pacing::Closed { depth });
        let now = Duration::from_secs(1);
        assert_eq!(schedule.due(now, 7, 1), Some(None));
        assert_eq!(schedule.due(now, 7, 2), None);
        assert_eq!(schedule.left(now, 7, 2), None);
        assert_eq!(schedule.due_by(now), None);
    }
}
