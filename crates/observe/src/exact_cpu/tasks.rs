//! CPU time by thread and by process.

use std::collections::BTreeMap;

use super::account::TaskTimes;
use nicpoll_sys::bpf_maps::Thread;

/// What one thread used. Interrupts that came upon it are not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Number of the thread, as the initial PID namespace numbers it.
    pub tid: u32,
    /// Number of its process.
    pub pid: u32,
    /// The thread's name, by the latest rename; empty when it has not left a CPU yet.
    pub name: String,
    /// Its time by state.
    pub times: TaskTimes,
    /// How often it left a CPU.
    pub slices: u64,
}

impl ThreadTimes {
    pub(super) fn new(tid: u32, thread: &Thread) -> Self {
        let name = thread.comm.split(|byte| *byte == 0).next();
        ThreadTimes {
            tid,
            pid: thread.tgid,
            name: String::from_utf8_lossy(name.unwrap_or_default()).into_owned(),
            times: TaskTimes::of(&thread.ns),
            slices: thread.slices,
        }
    }
}

/// What each process used, by its number: the sum of its threads. Threads beyond the longest unused
/// 16384 are forgotten, so that all processes together may have less than the CPUs gave to tasks.
pub fn by_process(threads: &[ThreadTimes]) -> BTreeMap<u32, TaskTimes> {
    let mut processes: BTreeMap<u32, TaskTimes> = BTreeMap::new();
    for thread in threads {
        let process = processes.entry(thread.pid).or_default();
        *process = process.plus(thread.times);
    }
    processes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_with_its_first_zero() {
        let mut thread = Thread {
            ns: [9, 1, 2, 3],
            ..Thread::default()
        };
        thread.comm[..6].copy_from_slice(b"sh\0old");
        let times = ThreadTimes::new(7, &thread);
        assert_eq!(times.name, "sh");
        assert_eq!(times.times.total_ns(), 6);
    }

    #[test]
    fn a_process_is_its_threads() {
        let thread = |tid, tgid, system_ns| {
            let thread = Thread {
                ns: [0, 1, 0, system_ns],
                tgid,
                ..Thread::default()
            };
            ThreadTimes::new(tid, &thread)
        };
        let processes = by_process(&[thread(1, 1, 5), thread(2, 1, 7), thread(3, 3, 9)]);
        let totals: Vec<u64> = processes.values().map(TaskTimes::total_ns).collect();
        assert_eq!(totals, [14, 10]);
        assert_eq!(processes[&1].system_ns, 12);
    }
}
