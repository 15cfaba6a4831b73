//! A host of the lab: a network namespace with a thread that lives in it.
//!
//! What must hold: everything that reads or changes a host's network runs on a thread inside its
//! namespace: the resident thread ([`Host::run`]), which also has a `/sys` of its own, or a pinned one
//! for traffic ([`Host::spawn_pinned`]). No thread ever leaves the namespace again, so none can touch
//! another one's interfaces by mistake. The namespace ends with the process.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow};
use nicpoll_model::Side;
use nicpoll_observe::HostCounters;
use nicpoll_switch::{Control, Held, SwitchError};
use nicpoll_sys::netns::{self, NetNamespace};

use crate::INTERFACE;

/// What the resident thread of a host works with.
pub struct Resident {
    /// The settings of the host's interfaces.
    pub control: Control,
    /// The counters of the host.
    pub counters: HostCounters,
    /// What is changed on its interface at present.
    pub held: Option<Held>,
}

impl Resident {
    /// Puts back what is changed on the interface.
    pub fn restore(&mut self) -> Result<(), SwitchError> {
        match self.held.take() {
            Some(held) => held.restore(&mut self.control),
            None => Ok(()),
        }
    }
}

impl Drop for Resident {
    /// The way out when nobody called [`Resident::restore`]: an error or a panic elsewhere. The next
    /// start recovers what cannot be put back here.
    fn drop(&mut self) {
        let _ = self.restore();
    }
}

type Job = Box<dyn FnOnce(&mut Resident) + Send>;

/// One end of the lab's link.
pub struct Host {
    side: Side,
    netns: NetNamespace,
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// Makes a namespace and starts the thread that lives in it.
    pub fn new(side: Side) -> Result<Self> {
        let netns = NetNamespace::create().context("making a network namespace")?;
        let home = NetNamespace::open(&netns_path(&netns)).context("opening the new namespace")?;
        let (jobs, inbox) = mpsc::channel::<Job>();
        let (ready, entered) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(format!("nicpoll-{side}"))
            .spawn(move || {
                if let Err(error) = netns::enter_with_private_sysfs(&home) {
                    let _ = ready.send(Err(error));
                    return;
                }
                let _ = ready.send(Ok(()));
                let mut resident = Resident {
                    control: Control::new(),
                    counters: HostCounters::new(INTERFACE),
                    held: None,
                };
                for job in inbox {
                    job(&mut resident);
                }
            })?;
        entered
            .recv()
            .map_err(|_| anyhow!("the {side}'s thread ended before it entered its namespace"))?
            .with_context(|| format!("entering the {side}'s namespace"))?;
        Ok(Host {
            side,
            netns,
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Which end this is.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The host's namespace.
    pub fn netns(&self) -> &NetNamespace {
        &self.netns
    }

    /// Runs `job` on the thread that lives in the namespace and waits for what it returns.
    ///
    /// # Errors
    /// When the job panicked, now or earlier: the thread is gone then.
    pub fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Resident) -> T + Send + 'static,
    ) -> Result<T> {
        let (answer, result) = mpsc::channel();
        let gone = || anyhow!("the {}'s resident thread is gone", self.side);
        self.jobs
            .as_ref()
            .ok_or_else(gone)?
            .send(Box::new(move |resident| {
                let _ = answer.send(job(resident));
            }))
            .map_err(|_| gone())?;
        result.recv().map_err(|_| gone())
    }

    /// Starts a thread inside the namespace, bound to `cpu`.
    pub fn spawn_pinned<T: Send + 'static>(
        &self,
        cpu: u32,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<Result<T>>> {
        let home = NetNamespace::open(&netns_path(&self.netns))?;
        let side = self.side;
        Ok(thread::Builder::new()
            .name(format!("nicpoll-{name}"))
            .spawn(move || {
                home.enter()
                    .with_context(|| format!("entering the {side}'s namespace"))?;
                nicpoll_sys::affinity::pin(cpu)
                    .with_context(|| format!("binding the {side}'s thread to CPU {cpu}"))?;
                Ok(work())
            })?)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic on that thread has been reported by `run` already.
            let _ = thread.join();
        }
    }
}

fn netns_path(netns: &NetNamespace) -> std::path::PathBuf {
    use std::os::fd::{AsFd, AsRawFd};
    format!("/proc/self/fd/{}", netns.as_fd().as_raw_fd()).into()
}
