//! Sets how the kernel receives at the benchmark's link, and restores it.

use std::fs;

use anyhow::{Context, Result};
use nicpoll_switch::Control;
use nicpoll_sys::schedule;

use crate::course::Course;
use crate::trial::CPUS;

/// The contender's interface in sysfs.
const INTERFACE: &str = "/sys/class/net/em0";
/// Values for rounds that a timer begins.
const TIMER: [(&str, &str); 2] = [
    ("napi_defer_hard_irqs", "2147483647"),
    ("gro_flush_timeout", "200000"),
];

/// The kernel's part of receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// NAPI on the sender's core: a veth's default.
    OfSender,
    /// A timer begins the rounds, every 200 us.
    Timer,
    /// A kernel thread receives, on the receiver's core, as an ordinary program.
    Threaded,
    /// A kernel thread on the receiver's core, before all ordinary programs.
    ThreadedFifo,
    /// Receive packet steering hands packets to the receiver's core, where a soft interrupt works on them.
    Rps,
    /// Set and restored by the receiver's own program.
    OfProgram,
}

impl Kernel {
    /// Returns its words in a row.
    pub fn words(self) -> &'static str {
        match self {
            Kernel::OfSender => "NAPI on the sender's core",
            Kernel::Timer => "NAPI by a timer of 200 us",
            Kernel::Threaded => "threaded NAPI on the receiver's core",
            Kernel::ThreadedFifo => "threaded NAPI on the receiver's core, SCHED_FIFO",
            Kernel::Rps => "RPS to the receiver's core",
            Kernel::OfProgram => "as the program sets it up",
        }
    }

    /// Applies it.
    pub fn put(self, course: &Course) -> Result<()> {
        self.write(course, true)
    }

    /// Applies what needs a running receiver: an XDP program recreates the NAPI.
    pub fn follow(self, course: &Course) -> Result<()> {
        match self {
            Kernel::Threaded | Kernel::ThreadedFifo => self.bind_thread(course),
            _ => Ok(()),
        }
    }

    /// Restores the defaults.
    pub fn take_away(self, course: &Course) -> Result<()> {
        self.write(course, false)
    }

    fn write(self, course: &Course, is_on: bool) -> Result<()> {
        let mut values = Vec::new();
        match self {
            Kernel::OfSender | Kernel::OfProgram => {}
            Kernel::Timer => {
                let of =
                    |(name, on): (&'static str, &'static str)| (name, if is_on { on } else { "0" });
                values.extend(TIMER.map(of));
            }
            Kernel::Threaded | Kernel::ThreadedFifo => {
                values.push(("threaded", if is_on { "1" } else { "0" }));
            }
            Kernel::Rps => values.push(("queues/rx-0/rps_cpus", if is_on { "2" } else { "0" })),
        }
        for (name, value) in values {
            let path = format!("{INTERFACE}/{name}");
            let write = move |_: &mut ()| fs::write(&path, value);
            let written = course.contender().run(write)?;
            written.with_context(|| format!("writing {value} to {name}"))?;
        }
        Ok(())
    }

    /// Binds the thread that polls the contender's interface, if there is one.
    fn bind_thread(self, course: &Course) -> Result<()> {
        let pids = course.contender().run(|()| -> Result<Vec<u32>> {
            let mut control = Control::new();
            let ifindex = control.interface("em0")?.ifindex;
            let napis = control.napis(ifindex)?.into_iter();
            Ok(napis.filter_map(|napi| napi.thread_pid).collect())
        })?;
        for pid in pids? {
            schedule::set_cpus(pid, &CPUS[1..])?;
            let policy = match self {
                Kernel::ThreadedFifo => schedule::Policy::Fifo { priority: 50 },
                _ => schedule::Policy::Fair { nice: 0 },
            };
            schedule::set_policy(pid, policy)?;
        }
        Ok(())
    }
}
