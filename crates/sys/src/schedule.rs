//! How the scheduler treats a thread, kernel threads included: its class with its numbers.

use std::io;
use std::mem;

use rustix::thread::{CpuSet, Pid};

/// How a thread is scheduled (sched(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_OTHER: a fair share, weighted by nice.
    Fair {
        /// -20 (most) to 19 (least).
        nice: i32,
    },
    /// SCHED_BATCH: as `Fair`, for work that does not wait.
    Batch {
        /// -20 to 19.
        nice: i32,
    },
    /// SCHED_IDLE: what nobody else wants.
    Idle,
    /// SCHED_FIFO: before every fair thread, until it sleeps.
    Fifo {
        /// 1 (least) to 99 (most).
        priority: u32,
    },
    /// SCHED_RR: as `Fifo`, in turns among equals.
    RoundRobin {
        /// 1 to 99.
        priority: u32,
    },
    /// SCHED_DEADLINE: so much time in every period, and no more.
    Deadline {
        /// Time it may run in a period, in ns.
        runtime_ns: u64,
        /// When that time must have been given, from the start of the period, in ns.
        deadline_ns: u64,
        /// The period, in ns.
        period_ns: u64,
    },
}

/// Asks how a thread is scheduled. `ESRCH` when it is gone.
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
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
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

/// Changes how a thread is scheduled.
///
/// # Errors
/// `ESRCH` when the thread is gone. For `Deadline`: `EBUSY` when the CPUs cannot promise that much,
/// `EPERM` when the thread is bound to some of them.
pub fn set_policy(pid: u32, policy: Policy) -> io::Result<()> {
    // SAFETY: all zeros is a valid sched_attr: it holds integers.
    let mut attributes: libc::sched_attr = unsafe { mem::zeroed() };
    attributes.size = mem::size_of::<libc::sched_attr>() as u32;
    let class = match policy {
        Policy::Fair { nice } => {
            attributes.sched_nice = nice;
            libc::SCHED_OTHER
        }
        Policy::Batch { nice } => {
            attributes.sched_nice = nice;
            libc::SCHED_BATCH
        }
        Policy::Idle => libc::SCHED_IDLE,
        Policy::Fifo { priority } => {
            attributes.sched_priority = priority;
            libc::SCHED_FIFO
        }
        Policy::RoundRobin { priority } => {
            attributes.sched_priority = priority;
            libc::SCHED_RR
        }
        Policy::Deadline {
            runtime_ns,
            deadline_ns,
            period_ns,
        } => {
            attributes.sched_runtime = runtime_ns;
            attributes.sched_deadline = deadline_ns;
            attributes.sched_period = period_ns;
            libc::SCHED_DEADLINE
        }
    };
    attributes.sched_policy = class as u32;
    // SAFETY: the kernel reads `size` bytes of the structure, which outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, pid, &raw const attributes, 0) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// CPUs that a thread may use, ascending. `ESRCH` when it is gone.
pub fn cpus(pid: u32) -> io::Result<Vec<u32>> {
    let set = rustix::thread::sched_getaffinity(Some(thread(pid)?))?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .map(|cpu| cpu as u32)
        .collect())
}

/// Binds a thread to CPUs.
///
/// # Errors
/// `EINVAL` when none of them is online, `ESRCH` when the thread is gone.
pub fn set_cpus(pid: u32, cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        // The set would panic beyond its size.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_what_it_was_given() {
        std::thread::spawn(|| {
            let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
            // Anybody may ask for less.
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
}
