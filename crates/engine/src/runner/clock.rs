//! The clocks that the engine reads, in ns, and CPU time spent on purpose.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_core::NS_PER_SECOND;
use rustix::event::Timespec;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`.
pub(crate) fn now_ns() -> u64 {
    ns_of(ClockId::Monotonic)
}

/// CPU time of the calling thread, with the interrupts that came upon it.
pub(crate) fn own_cpu_ns() -> u64 {
    ns_of(ClockId::ThreadCPUTime)
}

/// Sleeps until a time of `CLOCK_MONOTONIC`, or until a signal comes.
pub(crate) fn sleep_until(ns: u64) {
    let until = Timespec {
        tv_sec: (ns / NS_PER_SECOND) as _,
        tv_nsec: (ns % NS_PER_SECOND) as _,
    };
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
}

/// The pause between two looks at what comes to its end.
const PAUSE: Duration = Duration::from_millis(5);

/// Looks so often, with pauses, whether something has come to its end.
pub(crate) fn await_end(looks: u32, mut is_at_end: impl FnMut() -> bool) {
    for _ in 0..looks {
        if is_at_end() {
            return;
        }
        thread::sleep(PAUSE);
    }
}

fn ns_of(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * NS_PER_SECOND + time.tv_nsec as u64
}

/// Rounds of one measurement, and measurements of which the fastest counts: nothing came between.
const ROUNDS: u64 = 100_000;
const MEASUREMENTS: u32 = 20;

/// An amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    rounds: u64,
}

impl Work {
    /// Work that takes about `ns` of a CPU at its present speed. Measuring that takes a few milliseconds.
    pub fn of_ns(ns: u64) -> Self {
        if ns == 0 {
            return Work { rounds: 0 };
        }
        let measured = (0..MEASUREMENTS).map(|_| {
            let began = Instant::now();
            spend(ROUNDS);
            began.elapsed().as_nanos().max(1)
        });
        let fastest = measured.min().unwrap_or(1);
        let rounds = u128::from(ns) * u128::from(ROUNDS) / fastest;
        Work {
            rounds: u64::try_from(rounds).unwrap_or(u64::MAX).max(1),
        }
    }

    /// Does it once.
    pub fn spend(self) {
        spend(self.rounds);
    }
}

fn spend(rounds: u64) {
    let mut value = 1u64;
    for _ in 0..rounds {
        // Each round needs the one before.
        value = black_box(
            value
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_times_the_time_is_ten_times_the_work() {
        let [one, ten] = [10_000, 100_000].map(|ns| Work::of_ns(ns).rounds);
        // The clock of a CPU may change between the two measurements.
        assert!(ten > 3 * one && ten < 30 * one, "{one} {ten}");
        assert_eq!(Work::of_ns(0).rounds, 0);
    }
}
