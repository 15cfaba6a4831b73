//! Scheduling of threads: allowed CPUs, policy, and CPU time used.

use std::io;
use std::mem;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::thread::{CpuSet, Pid};
use serde::{Deserialize, Serialize};

use crate::kernel::checked;

/// Returns the CPUs that the calling thread may use, ascending.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    Ok(in_set(&rustix::thread::sched_getaffinity(None)?))
}

fn in_set(set: &CpuSet) -> Vec<u32> {
    let cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu));
    cpus.map(|cpu| cpu as u32).collect()
}

/// Returns the last of the allowed CPUs.
///
/// # Errors
/// If they cannot be read, or there is none.
pub fn last_allowed_cpu() -> io::Result<u32> {
    let last = allowed_cpus()?.last().copied();
    last.ok_or_else(|| io::Error::other("no CPU is allowed"))
}

/// Binds the calling thread to one CPU.
///
/// # Errors
/// `EINVAL` if the CPU does not exist, is offline, or is not in the cpuset.
pub fn pin(cpu: u32) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    rustix::thread::sched_setaffinity(None, &set)?;
    Ok(())
}

/// Scheduling policy of a thread (sched(7)). Change records contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Policy {
    /// SCHED_OTHER: a fair share, weighted by nice.
    Fair {
        /// -20 (largest share) to 19 (smallest).
        nice: i32,
    },
    /// SCHED_BATCH: like `Fair`, for non-interactive work.
    Batch {
        /// -20 to 19.
        nice: i32,
    },
    /// SCHED_IDLE: only time that nobody else wants.
    Idle,
    /// SCHED_FIFO: ahead of every fair thread, until it sleeps.
    Fifo {
        /// 1 (least) to 99 (most).
        priority: u32,
    },
    /// SCHED_RR: like `Fifo`, with time slices among equal priorities.
    RoundRobin {
        /// 1 to 99.
        priority: u32,
    },
    /// SCHED_DEADLINE: a fixed run time in every period, and no more.
    Deadline {
        /// Run time per period, in ns.
        runtime_ns: u64,
        /// Deadline for that run time, in ns from the start of the period.
        deadline_ns: u64,
        /// The period, in ns.
        period_ns: u64,
    },
}

/// Returns the policy of a thread. `ESRCH` when it is gone.
pub fn policy(pid: u32) -> io::Result<Policy> {
    // SAFETY: all zeros is a valid sched_attr: it holds integers.
    let mut attributes: libc::sched_attr = unsafe { mem::zeroed() };
    let size = mem::size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes at most `size` bytes to the structure, which outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            pid,
            &raw mut attributes,
            size as libc::c_uint,
            0,
        )
    };
    checked(result as libc::c_int)?;
    let nice = attributes.sched_nice;
    let priority = attributes.sched_priority;
    match attributes.sched_policy as libc::c_int {
        libc::SCHED_OTHER => Ok(Policy::Fair { nice }),
        libc::SCHED_BATCH => Ok(Policy::Batch { nice }),
        libc::SCHED_IDLE => Ok(Policy::Idle),
        libc::SCHED_FIFO => Ok(Policy::Fifo { priority }),
        libc::SCHED_RR => Ok(Policy::RoundRobin { priority }),
        libc::SCHED_DEADLINE => Ok(Policy::Deadline {
            runtime_ns: attributes.sched_runtime,
            deadline_ns: attributes.sched_deadline,
            period_ns: attributes.sched_period,
        }),
        other => Err(io::Error::other(format!(
            "thread {pid} has scheduling class {other}, which is not known here"
        ))),
    }
}

/// Sets the policy of a thread.
///
/// # Errors
/// `ESRCH` when the thread is gone. For `Deadline`: `EBUSY` if the CPUs cannot guarantee that much, `EPERM` if the
/// thread is bound to some of them.
pub fn set_policy(pid: u32, policy: Policy) -> io::Result<()> {
    // SAFETY: all zeros is a valid sched_attr: it holds integers.
    let mut attributes: libc::sched_attr = unsafe { mem::zeroed() };
    attributes.size = mem::size_of::<libc::sched_attr>() as u32;
    let (class, nice, priority, [runtime, deadline, period]) = match policy {
        Policy::Fair { nice } => (libc::SCHED_OTHER, nice, 0, [0; 3]),
        Policy::Batch { nice } => (libc::SCHED_BATCH, nice, 0, [0; 3]),
        Policy::Idle => (libc::SCHED_IDLE, 0, 0, [0; 3]),
        Policy::Fifo { priority } => (libc::SCHED_FIFO, 0, priority, [0; 3]),
        Policy::RoundRobin { priority } => (libc::SCHED_RR, 0, priority, [0; 3]),
        Policy::Deadline {
            runtime_ns,
            deadline_ns,
            period_ns,
        } => {
            let times = [runtime_ns, deadline_ns, period_ns];
            (libc::SCHED_DEADLINE, 0, 0, times)
        }
    };
    attributes.sched_policy = class as u32;
    (attributes.sched_nice, attributes.sched_priority) = (nice, priority);
    attributes.sched_runtime = runtime;
    attributes.sched_deadline = deadline;
    attributes.sched_period = period;
    // SAFETY: the kernel reads `size` bytes of the structure, which outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, pid, &raw const attributes, 0) };
    checked(result as libc::c_int).map(|_| ())
}

/// Returns the CPUs that a thread may use, ascending. `ESRCH` when it is gone.
pub fn cpus(pid: u32) -> io::Result<Vec<u32>> {
    let set = rustix::thread::sched_getaffinity(Some(thread(pid)?))?;
    Ok(in_set(&set))
}

/// Binds a thread to CPUs.
///
/// # Errors
/// `EINVAL` if none of them is online, `ESRCH` when the thread is gone.
pub fn set_cpus(pid: u32, cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        // `CpuSet::set` would panic.
        if cpu as usize >= CpuSet::MAX_CPU {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        set.set(cpu as usize);
    }
    Ok(rustix::thread::sched_setaffinity(Some(thread(pid)?), &set)?)
}

fn thread(pid: u32) -> io::Result<Pid> {
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

/// CPU time of the process, over all threads.
///
/// The sum is accurate to the microsecond. Its split is estimated from samples at the clock tick unless the kernel was
/// built with precise accounting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTime {
    /// In user space.
    pub user: Duration,
    /// In the kernel on behalf of the process, including soft interrupts that ran in its context.
    pub system: Duration,
}

/// Returns the CPU time of the process since it began (getrusage(2)).
pub fn process_cpu_time() -> io::Result<CpuTime> {
    // SAFETY: `rusage` holds integers only, for which all bits zero are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a whole `rusage` that outlives the call.
    checked(unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) })?;
    Ok(CpuTime {
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
    })
}

/// Returns the CPU time in ns that a process has used, over all threads; a kernel thread is a process of its own. On
/// most kernels it includes interrupts that hit the process.
///
/// # Errors
/// `EINVAL` when the process is gone.
pub fn cpu_ns_of(pid: u32) -> io::Result<u64> {
    /// Clock of the time that the scheduler gave a process (`CPUCLOCK_SCHED`, include/linux/posix-timers_types.h).
    const SCHEDULED: libc::clockid_t = 2;
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let clock = (!pid << 3) | SCHEDULED;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a whole `timespec` that outlives the call.
    checked(unsafe { libc::clock_gettime(clock, &raw mut time) })?;
    Ok(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

/// Runs `work` in a thread of this name.
///
/// # Errors
/// When no thread can be created.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let named = thread::Builder::new().name(String::from(name));
    named.spawn(work)
}

/// The kernel never reports a negative time.
fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec.unsigned_abs())
        + Duration::from_micros(time.tv_usec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

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

    #[test]
    fn a_thread_keeps_what_it_was_given() {
        std::thread::spawn(|| {
            let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
            // Any user may lower a priority.
            set_policy(own, Policy::Batch { nice: 19 }).unwrap();
            assert_eq!(policy(own).unwrap(), Policy::Batch { nice: 19 });
            let cpu = *cpus(own).unwrap().last().unwrap();
            set_cpus(own, &[cpu]).unwrap();
            assert_eq!(cpus(own).unwrap(), [cpu]);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_that_is_gone_is_no_thread() {
        for pid in [0, u32::MAX] {
            let error = set_cpus(pid, &[0]).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ESRCH), "{pid}");
        }
        assert!(set_cpus(1, &[u32::MAX]).is_err());
    }

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
