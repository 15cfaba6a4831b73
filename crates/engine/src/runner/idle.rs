//! How the engine's thread is scheduled, and polling with the CPU time that nobody else wants.
//!
//! One thread does both: between two ticks it lowers its priority (SCHED_IDLE), and at the tick a second thread on the same
//! CPU, which sleeps until then, restores it. A poll that is under way when the tick comes is finished first, and no lock is
//! needed. Between ticks the engine takes nothing from ordinary programs; from a tick on it runs before them.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use nicpoll_sys::schedule::{self, Policy};
use rustix::thread::gettid;

use crate::runner::clock::{own_cpu_ns, sleep_until};

/// How the kernel schedules the thread that receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// Before all ordinary programs, as a kernel's own polling runs; `user_frac` keeps their share.
    Fifo,
    /// As an ordinary program.
    Fair,
}

impl Scheduling {
    /// The name that reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Scheduling::Fifo => "fifo",
            Scheduling::Fair => "fair",
        }
    }

    pub(crate) const fn policy(self) -> Policy {
        match self {
            Scheduling::Fifo => Policy::Fifo {
                priority: ENGINE_PRIORITY,
            },
            Scheduling::Fair => Policy::Fair { nice: 0 },
        }
    }
}

/// Below it is room for the kernel's receive threads, and below those for programs that are to go before others.
const ENGINE_PRIORITY: u32 = 3;

/// Nobody has given the priority up.
const NOT_RESTING: u64 = 0;

/// Starts a thread that is bound to `cpu`, and does its work scheduled as `wanted`, or as an ordinary program without the
/// privilege for that.
///
/// # Errors
/// When the CPU cannot be had.
pub(crate) fn start_on<T: Send + 'static>(
    name: &str,
    cpu: u32,
    wanted: Scheduling,
    work: impl FnOnce(Scheduling) -> T + Send + 'static,
) -> io::Result<(JoinHandle<T>, Scheduling)> {
    let (ready, prepared) = mpsc::channel();
    let thread = thread::Builder::new().name(String::from(name));
    let thread = thread.spawn(move || {
        let prepared = prepare(cpu, wanted);
        let scheduling = *prepared.as_ref().unwrap_or(&Scheduling::Fair);
        let _ = ready.send(prepared);
        work(scheduling)
    })?;
    let scheduling = prepared.recv().map_err(io::Error::other).flatten()?;
    Ok((thread, scheduling))
}

fn prepare(cpu: u32, wanted: Scheduling) -> io::Result<Scheduling> {
    schedule::pin(cpu)?;
    // A timer may be late by 50 us otherwise; the least that can be asked is 1 ns.
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?;
    Ok(match schedule::set_policy(own_thread(), wanted.policy()) {
        Ok(()) => wanted,
        Err(_) => Scheduling::Fair,
    })
}

fn own_thread() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}

/// How idle polling leaves ordinary programs their share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdlePolling {
    /// It takes only what they leave (SCHED_IDLE).
    IdlePriority,
    /// It keeps to the network's part of each tick: a process in a group of its own competes as a group, whatever the
    /// priority within it, and without the privilege for SCHED_FIFO nothing would bring the engine back at a tick.
    ShareCheck,
}

impl IdlePolling {
    /// The name that reports use.
    pub const fn name(self) -> &'static str {
        match self {
            IdlePolling::IdlePriority => "idle-priority",
            IdlePolling::ShareCheck => "share-check",
        }
    }

    /// What this process can have where its engine is scheduled like that.
    pub(crate) fn here(scheduling: Scheduling) -> Self {
        match scheduling {
            Scheduling::Fifo if !is_in_a_group() => IdlePolling::IdlePriority,
            _ => IdlePolling::ShareCheck,
        }
    }
}

/// Gives the calling thread's priority up and back.
pub(crate) struct Rest {
    thread: u32,
    before: Policy,
    resting_until: Arc<AtomicU64>,
    /// CPU time of the thread that gives it back.
    waker_cpu_ns: Arc<AtomicU64>,
    alarms: Option<mpsc::Sender<u64>>,
    waker: Option<JoinHandle<()>>,
}

impl Rest {
    /// For the calling thread, which is bound to a CPU and has the real-time policy `before`.
    pub(crate) fn of_caller(before: Policy) -> io::Result<Self> {
        let thread = own_thread();
        let resting_until = Arc::new(AtomicU64::new(NOT_RESTING));
        let (alarms, alarm) = mpsc::channel::<u64>();
        let until = Arc::clone(&resting_until);
        let waker_cpu_ns = Arc::new(AtomicU64::new(0));
        let used_ns = Arc::clone(&waker_cpu_ns);
        // It inherits the CPU, the policy and the exact timer of the caller.
        let waker = thread::Builder::new()
            .name(String::from("nicpoll-tick"))
            .spawn(move || {
                while let Ok(at_ns) = alarm.recv() {
                    sleep_until(at_ns);
                    // A rest that ended by itself has left; another may have begun since.
                    if take(&until, at_ns) {
                        let _ = schedule::set_policy(thread, before);
                    }
                    used_ns.store(own_cpu_ns(), Ordering::Relaxed);
                }
            })?;
        Ok(Rest {
            thread,
            before,
            resting_until,
            waker_cpu_ns,
            alarms: Some(alarms),
            waker: Some(waker),
        })
    }

    /// CPU time that it took besides the caller's.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.waker_cpu_ns.load(Ordering::Relaxed)
    }

    /// Runs `work` at idle priority; whatever it does, the thread has its priority back at `until_ns`.
    pub(crate) fn until(&self, until_ns: u64, work: impl FnOnce()) {
        let Some(alarms) = &self.alarms else { return };
        self.resting_until.store(until_ns, Ordering::SeqCst);
        let is_set = alarms.send(until_ns).is_ok();
        // Without anybody who gives it back it is not given up.
        if is_set && schedule::set_policy(self.thread, Policy::Idle).is_ok() {
            work();
        }
        if take(&self.resting_until, until_ns) {
            let _ = schedule::set_policy(self.thread, self.before);
        }
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        self.alarms = None;
        if let Some(waker) = self.waker.take() {
            let _ = waker.join();
        }
    }
}

/// Ends the rest that was to last until then. Returns whether it had not ended yet.
fn take(resting_until: &AtomicU64, until_ns: u64) -> bool {
    let ended =
        resting_until.compare_exchange(until_ns, NOT_RESTING, Ordering::SeqCst, Ordering::SeqCst);
    ended.is_ok()
}

/// Whether this process's idle threads compete with ordinary ones of others: by a session's group (sched(7), autogroup)
/// or by a control group with a weight. Taken to be so where the kernel does not say.
fn is_in_a_group() -> bool {
    let has_autogroup = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled")
        .is_ok_and(|text| text.trim() != "0");
    has_autogroup || fs::read_to_string("/proc/self/cgroup").map_or(true, |text| is_weighed(&text))
}

/// The lines of `/proc/PID/cgroup`: a folder of the cpu controller, or one of the unified hierarchy in which that is on.
fn is_weighed(cgroups: &str) -> bool {
    cgroups.lines().any(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or(""), parts.next().unwrap_or("/"));
        if controllers.is_empty() {
            let folder = Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/'));
            let mut folders = folder.ancestors();
            return folders.any(|folder| folder.join("cpu.weight").exists());
        }
        controllers.split(',').any(|name| name == "cpu") && path != "/"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_the_cpu_controller_is_a_group() {
        assert!(!is_weighed("4:memory:/a\n2:cpuacct:/b\n1:cpu:/\n0::/\n"));
        assert!(is_weighed("1:cpu,cpuacct:/user.slice\n"));
        assert!(!is_weighed("0::/no/such/folder\n"));
    }
}
