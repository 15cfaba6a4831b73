//! CPU time of threads that do not belong to the study.
//!
//! The study's threads are those of this process, of the programs in its PID namespaces, and the kernel threads that
//! receive packets. All other threads on a core are foreign.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use nicpoll_observe::{CpuTimes, ExactCpu, ThreadTimes};
use nicpoll_sys::schedule;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::error::LabError;

/// Name prefixes of the kernel threads that run soft interrupts and NAPI polls.
pub const KERNEL_RECEIVERS: [&str; 2] = ["ksoftirqd/", "napi/"];

/// Time of one core in a window, and how much of it was foreign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreTime {
    /// All of its time.
    pub times: CpuTimes,
    /// Time of foreign threads, interrupts left out.
    pub foreign_ns: u64,
}

/// CPU time of each thread of the study in a window, ns.
pub type StudyThreads = Vec<(String, u64)>;

/// Finds the id of this process in the CPU account, by a thread with a unique name: in a container it differs from
/// [`std::process::id`]. The account must be attached.
pub fn own_process(exact: &ExactCpu) -> Result<u32, LabError> {
    let name = format!("np-{:x}", clock_gettime(ClockId::Monotonic).tv_nsec);
    // Only a switch away from a CPU shows the thread.
    let marker = || thread::sleep(Duration::from_millis(1));
    let marker = schedule::spawn(&name, marker)?;
    marker.join().map_err(|_| LabError::Panicked("marker"))?;
    let threads = exact.threads()?;
    let found = threads.iter().find(|thread| thread.name == name);
    let found = found.ok_or_else(|| {
        let what = "the account of CPU time does not show this process";
        LabError::Unexpected(String::from(what))
    })?;
    Ok(found.pid)
}

/// Returns the CPU time of the study's threads between two lists of all threads: those of `process`, those in the PID
/// namespaces that it began, and kernel threads that receive.
pub fn of_study(before: &[ThreadTimes], after: &[ThreadTimes], process: u32) -> StudyThreads {
    let before: BTreeMap<u32, &ThreadTimes> =
        before.iter().map(|thread| (thread.tid, thread)).collect();
    let is_own = |thread: &&ThreadTimes| {
        let is_receiver = KERNEL_RECEIVERS
            .iter()
            .any(|name| thread.name.starts_with(name));
        is_receiver || thread.pid == process || thread.starter_pid == Some(process)
    };
    let used = |thread: &ThreadTimes| {
        let earlier = before.get(&thread.tid).map(|earlier| earlier.times);
        let earlier = earlier.map_or(0, |times| times.total_ns());
        (
            thread.name.clone(),
            thread.times.total_ns().saturating_sub(earlier),
        )
    };
    after.iter().filter(is_own).map(used).collect()
}

/// Splits the time of cores, the sender's and the receiver's, into the study's and foreign time. `core_of` names the
/// core of bound threads; time of other threads is taken from the remaining time of all cores.
pub fn split(
    cores: Vec<CpuTimes>,
    threads: &StudyThreads,
    core_of: impl Fn(&str) -> Option<u32>,
) -> Vec<CoreTime> {
    let mut bound: BTreeMap<u32, u64> = BTreeMap::new();
    let mut loose_ns = 0;
    for (name, ns) in threads {
        match core_of(name) {
            Some(core) => *bound.entry(core).or_default() += ns,
            None => loose_ns += ns,
        }
    }
    let left_ns = |times: &CpuTimes| {
        let tasks = times.user_ns + times.nice_ns + times.system_ns;
        tasks.saturating_sub(bound.get(&times.core).copied().unwrap_or(0))
    };
    let all_left_ns: u64 = cores.iter().map(left_ns).sum();
    let is_foreign = all_left_ns.saturating_sub(loose_ns) as f64 / all_left_ns.max(1) as f64;
    let core = |times: CpuTimes| CoreTime {
        foreign_ns: (left_ns(&times) as f64 * is_foreign) as u64,
        times,
    };
    cores.into_iter().map(core).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(core: u32, tasks_ns: u64) -> CpuTimes {
        CpuTimes {
            core,
            wall_ns: 1_000,
            system_ns: tasks_ns,
            ..CpuTimes::default()
        }
    }

    #[test]
    fn what_no_thread_of_the_study_used_is_foreign() {
        let threads = [("send", 600), ("receive", 300), ("main", 50)];
        let threads = threads.map(|(name, ns)| (String::from(name), ns)).to_vec();
        let bound = |name: &str| match name {
            "send" => Some(0),
            "receive" => Some(1),
            _ => None,
        };
        let foreign = |tasks: [u64; 2]| -> Vec<u64> {
            let cores = vec![core(0, tasks[0]), core(1, tasks[1])];
            let split = split(cores, &threads, bound);
            split.iter().map(|core| core.foreign_ns).collect()
        };
        assert_eq!(foreign([650, 300]), [0, 0]);
        assert_eq!(foreign([600, 950]), [0, 600]);
        // The loose thread's time is taken where there is any left.
        assert_eq!(foreign([700, 400]), [75, 75]);
    }
}
