//! The clocks that the engine reads, in ns.

use rustix::event::Timespec;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, clock_gettime};

pub(crate) const NS_PER_SECOND: u64 = 1_000_000_000;

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

fn ns_of(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * NS_PER_SECOND + time.tv_nsec as u64
}
