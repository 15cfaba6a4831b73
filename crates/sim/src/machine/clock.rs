//! A host's clock: when it ticks.
//!
//! What must hold: two clocks that should be alike drift apart by what their host files say, to the
//! nanosecond, however long the run.

use super::NS_PER_SECOND;
use crate::host::HostModel;

const PARTS: u128 = 1_000_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Beside the first period, when the first tick comes.
    phase_ns: u64,
    /// Ticks that were set.
    ticks: u64,
    /// Ticks that the processor has seen.
    seen: u64,
    hz: u64,
    slow_ppm: u64,
}

impl Clock {
    pub(super) fn new(host: &HostModel, phase_ns: u64) -> Self {
        Clock {
            phase_ns,
            ticks: 0,
            seen: 0,
            hz: host.cpu.hz,
            slow_ppm: host.cpu.tick_slow_ppm,
        }
    }

    /// The processor has seen a tick.
    pub(super) fn ticked(&mut self) {
        self.seen += 1;
    }

    /// Ticks that the processor has seen.
    pub(super) fn tick(&self) -> u64 {
        self.seen
    }

    /// When the next tick comes.
    pub(super) fn next_ns(&mut self) -> u64 {
        self.ticks += 1;
        let parts = PARTS + u128::from(self.slow_ppm);
        let since = u128::from(self.ticks) * u128::from(NS_PER_SECOND) * parts;
        let since_ns = since / (u128::from(self.hz) * PARTS);
        // A run ends long before 2^64 nanoseconds.
        self.phase_ns.saturating_add(since_ns as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(hz: u64, slow_ppm: u64, phase_ns: u64) -> impl FnMut() -> u64 {
        let mut host = HostModel::default();
        host.cpu.hz = hz;
        host.cpu.tick_slow_ppm = slow_ppm;
        let mut clock = Clock::new(&host, phase_ns);
        move || clock.next_ns()
    }

    #[test]
    fn a_slow_clock_loses_what_it_should() {
        let mut right = ticks(1000, 0, 0);
        let mut slow = ticks(1000, 60, 0);
        assert_eq!((right(), slow()), (1_000_000, 1_000_060));
        // A whole tick after 1 ms / 60 PPM = 16.7 s.
        let (right, slow) = (1..16_668).map(|_| (right(), slow())).last().unwrap();
        assert!(slow - right >= 1_000_000 && slow - right < 1_000_120);
    }

    #[test]
    fn fractions_of_a_nanosecond_are_kept() {
        let mut clock = ticks(3, 0, 5);
        let ticks = [clock(), clock(), clock()];
        assert_eq!(ticks, [333_333_338, 666_666_671, 1_000_000_005]);
    }
}
