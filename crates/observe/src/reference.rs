//! A load that knows by itself how long it was busy: what an account of CPU time is checked against.
//!
//! What must hold: nothing here asks the kernel where time went. The load looks at the clock all the
//! time, and adds up the steps from look to look. A step that is too long for a look is one in which
//! something else had the CPU, and is not the load's.

use std::io;

use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

const NS_PER_S: u64 = 1_000_000_000;
/// Longer than any look at the clock, shorter than any interrupt.
const LOOK_MAX_NS: u64 = 1_000;

/// How a load spent its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spun {
    /// It was busy.
    pub own_ns: u64,
    /// It was kept from being busy: by interrupts, other programs, other guests.
    pub away_ns: u64,
    /// How often it was. What it takes to come and go is in no event, so each may cost some microseconds
    /// that an account by events gives to the load; the more in a virtual machine.
    pub interruptions: u64,
}

impl Spun {
    /// Counts one step from look to look.
    fn step(&mut self, ns: u64) {
        if ns <= LOOK_MAX_NS {
            self.own_ns += ns;
        } else {
            self.away_ns += ns;
            self.interruptions += 1;
        }
    }

    /// Both together.
    pub fn plus(self, other: Spun) -> Spun {
        Spun {
            own_ns: self.own_ns + other.own_ns,
            away_ns: self.away_ns + other.away_ns,
            interruptions: self.interruptions + other.interruptions,
        }
    }
}

/// `CLOCK_MONOTONIC`, which BPF programs read too.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * NS_PER_S + now.tv_nsec as u64
}

/// The length of the kernel's clock tick.
pub fn tick_ns() -> u64 {
    let tick = rustix::time::clock_getres(ClockId::MonotonicCoarse);
    tick.tv_sec as u64 * NS_PER_S + tick.tv_nsec as u64
}

/// Sleeps until `CLOCK_MONOTONIC` shows `until_ns`.
pub fn sleep_until(until_ns: u64) -> io::Result<()> {
    let until = Timespec {
        tv_sec: (until_ns / NS_PER_S) as i64,
        tv_nsec: (until_ns % NS_PER_S) as i64,
    };
    loop {
        match clock_nanosleep_absolute(ClockId::Monotonic, &until) {
            Err(error) if error == Errno::INTR => {}
            done => return Ok(done?),
        }
    }
}

/// Is busy in user mode until `CLOCK_MONOTONIC` shows `until_ns`.
pub fn spin_until(until_ns: u64) -> Spun {
    let mut spun = Spun::default();
    let mut last = monotonic_ns();
    while last < until_ns {
        let now = monotonic_ns();
        spun.step(now - last);
        last = now;
    }
    spun
}

/// The first moment from `now_ns` on that is `phase_ns` past a multiple of `period_ns`.
pub fn next_phase(now_ns: u64, period_ns: u64, phase_ns: u64) -> u64 {
    let into = (now_ns + period_ns - phase_ns % period_ns) % period_ns;
    now_ns + (period_ns - into) % period_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_phase_is_never_in_the_past() {
        assert_eq!(next_phase(1_000, 400, 0), 1_200);
        assert_eq!(next_phase(1_200, 400, 0), 1_200);
        assert_eq!(next_phase(1_201, 400, 0), 1_600);
        assert_eq!(next_phase(1_000, 400, 100), 1_300);
        assert_eq!(next_phase(1_000, 400, 300), 1_100);
        assert_eq!(next_phase(1_000, 400, 700), 1_100);
    }

    #[test]
    fn a_long_step_is_not_the_loads() {
        let mut spun = Spun::default();
        for ns in [40, 60, 5_000, 50] {
            spun.step(ns);
        }
        assert_eq!((spun.own_ns, spun.away_ns), (150, 5_000));
        assert_eq!(spun.interruptions, 1);
    }

    #[test]
    fn spinning_takes_the_time_that_was_asked_for() {
        let from = monotonic_ns();
        let spun = spin_until(from + 2_000_000);
        let took = monotonic_ns() - from;
        assert!(took >= 2_000_000);
        assert!(spun.own_ns + spun.away_ns <= took);
    }

    #[test]
    fn a_tick_is_that_of_a_kernel() {
        assert!(
            (1_000_000..=10_000_000).contains(&tick_ns()),
            "{}",
            tick_ns()
        );
    }
}
