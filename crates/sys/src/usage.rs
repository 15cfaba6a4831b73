//! What the process itself has used, and what others have.

use std::io;
use std::time::Duration;

/// CPU time of the process, all threads together.
///
/// The sum is right to the microsecond. How it divides is estimated from samples at the clock tick
/// unless the kernel was built with precise accounting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTime {
    /// In user space.
    pub user: Duration,
    /// In the kernel on behalf of the process, soft interrupts that ran there included.
    pub system: Duration,
}

/// CPU time of the process since it began (getrusage(2)).
pub fn process_cpu_time() -> io::Result<CpuTime> {
    // SAFETY: `rusage` holds integers only, for which all bits zero are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a whole `rusage` that outlives the call.
    let result = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(CpuTime {
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
    })
}

/// CPU time in ns that a process has used, all threads together; a thread of the kernel is a process of its own. The
/// interrupts that came upon it are in it on most kernels.
///
/// # Errors
/// `EINVAL` when it is gone.
pub fn cpu_ns_of(pid: u32) -> io::Result<u64> {
    /// The clock of what the scheduler gave a process (`CPUCLOCK_SCHED`, include/linux/posix-timers_types.h).
    const SCHEDULED: libc::clockid_t = 2;
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let clock = (!pid << 3) | SCHEDULED;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a whole `timespec` that outlives the call.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

/// The kernel never reports a negative time.
fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec.unsigned_abs())
        + Duration::from_micros(time.tv_usec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn the_time_of_a_process_is_that_which_it_tells_itself() {
        let own = cpu_ns_of(std::process::id()).unwrap();
        let told = process_cpu_time().unwrap();
        assert!(own > 0 && Duration::from_nanos(own) <= told.user + told.system);
        assert!(cpu_ns_of(u32::MAX).is_err());
    }

    #[test]
    fn work_takes_cpu_time() {
        let (before, start) = (process_cpu_time().unwrap(), Instant::now());
        while start.elapsed() < Duration::from_millis(30) {
            std::hint::spin_loop();
        }
        let after = process_cpu_time().unwrap();
        let used = (after.user + after.system).saturating_sub(before.user + before.system);
        assert!(used > Duration::ZERO, "{before:?} {after:?}");
    }
}
