//! Which CPUs a thread may run on.

use std::io;

use rustix::thread::CpuSet;

/// CPUs that the calling thread may use, ascending.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .map(|cpu| cpu as u32)
        .collect())
}

/// The last of them.
///
/// # Errors
/// When they cannot be read, or there is none.
pub fn last_allowed_cpu() -> io::Result<u32> {
    let last = allowed_cpus()?.last().copied();
    last.ok_or_else(|| io::Error::other("no CPU is allowed"))
}

/// Binds the calling thread to one CPU.
///
/// # Errors
/// `EINVAL` when the CPU does not exist, is offline, or is not allowed by the cpuset.
pub fn pin(cpu: u32) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    rustix::thread::sched_setaffinity(None, &set)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_is_allowed_its_cpu_only() {
        std::thread::spawn(|| {
            let cpu = *allowed_cpus().unwrap().last().unwrap();
            pin(cpu).unwrap();
            assert_eq!(allowed_cpus().unwrap(), [cpu]);
        })
        .join()
        .unwrap();
    }
}
