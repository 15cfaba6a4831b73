//! What the process itself has used.

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
