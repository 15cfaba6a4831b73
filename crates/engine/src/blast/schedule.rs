//! When the next frame is due.
//!
//! What must hold: due times are fixed at the start, so that nothing that takes long shifts what follows.

use std::sync::Arc;
use std::time::Duration;

use nicpoll_model::Pace;

/// Recorded frames come again this long after the last one at least.
const GAP_MIN: Duration = Duration::from_micros(1);

/// When frames are due.
#[derive(Clone, Debug)]
pub(super) enum Schedule {
    /// All at once: as fast as they go.
    Unpaced,
    /// At a rate.
    Paced(Pace),
    /// At times since the start, and again after the last one.
    Recorded {
        times: Arc<[Duration]>,
        /// From one beginning to the next.
        round: Duration,
    },
}

impl Schedule {
    /// Times that do not run backwards, one at least. The first is due at once; the first of the next round as long
    /// after the last as they are apart on average.
    pub(super) fn recorded(times: impl Iterator<Item = Duration>) -> Self {
        let times: Arc<[Duration]> = times.collect();
        let last = times.last().copied().unwrap_or_default();
        let gaps = (times.len() as u32).saturating_sub(1).max(1);
        Schedule::Recorded {
            round: last + (last / gaps).max(GAP_MIN),
            times,
        }
    }

    /// How long until the frame is due that follows on `sent` others, `elapsed` after the start.
    pub(super) fn ahead(&self, sent: u64, elapsed: Duration) -> Duration {
        match self {
            Schedule::Unpaced => Duration::ZERO,
            Schedule::Paced(pace) => pace.ahead(sent, elapsed),
            Schedule::Recorded { times, round } => {
                recorded_at(times, *round, sent).saturating_sub(elapsed)
            }
        }
    }

    /// How many frames are due, of which the next is; `most` at most.
    pub(super) fn due(&self, sent: u64, elapsed: Duration, most: u64) -> u64 {
        match self {
            Schedule::Unpaced => most,
            Schedule::Paced(pace) => pace.due_together(sent, elapsed).min(most),
            Schedule::Recorded { times, round } => (0..most)
                .take_while(|more| recorded_at(times, *round, sent + more) <= elapsed)
                .count() as u64,
        }
    }
}

fn recorded_at(times: &[Duration], round: Duration, sent: u64) -> Duration {
    let rounds = sent / times.len() as u64;
    let at = times[(sent % times.len() as u64) as usize];
    let before = round.as_nanos().saturating_mul(u128::from(rounds));
    Duration::from_nanos(u64::try_from(before).unwrap_or(u64::MAX)).saturating_add(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicpoll_model::Rate;

    const US: fn(u64) -> Duration = Duration::from_micros;

    #[test]
    fn recorded_frames_are_due_when_they_came_and_come_again() {
        let schedule = Schedule::recorded([0, 2, 10].into_iter().map(US));
        // A gap of 5 us on average: the second round begins at 15.
        for (sent, elapsed, ahead) in [(0, 0, 0), (1, 0, 2), (2, 3, 7), (3, 10, 5), (4, 0, 17)] {
            assert_eq!(schedule.ahead(sent, US(elapsed)), US(ahead), "{sent}");
        }
        assert_eq!(schedule.due(0, US(2), 64), 2);
        // Six rounds, and the three frames of the seventh at 90, 92 and 100.
        assert_eq!(schedule.due(0, US(100), 64), 21);
        assert_eq!(schedule.due(0, US(100), 5), 5);
    }

    #[test]
    fn one_recorded_frame_does_not_come_all_at_once() {
        let schedule = Schedule::recorded([Duration::ZERO].into_iter());
        assert_eq!(schedule.due(0, US(0), 64), 1);
        assert_eq!(schedule.ahead(1, US(0)), US(1));
    }

    #[test]
    fn a_rate_is_kept_and_no_rate_is_as_fast_as_it_goes() {
        let rate = Rate::packets_per_second(1000).unwrap();
        let paced = Schedule::Paced(Pace::of_datagrams(rate, 0).in_bursts(10));
        assert_eq!(paced.due(0, US(0), 256), 10);
        assert_eq!(paced.ahead(10, US(0)), Duration::from_millis(10));
        assert_eq!(Schedule::Unpaced.due(7, US(0), 256), 256);
    }
}
