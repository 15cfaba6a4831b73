//! A host of the lab: a network namespace with a thread that lives in it.
//!
//! What must hold: everything that reads or changes a host's network runs on a thread inside its
//! namespace: the resident thread ([`Host::run`]), which also has a `/sys` of its own, or a pinned one
//! for traffic ([`Host::spawn_pinned`]). No thread ever leaves the namespace again, so none can touch
//! another one's interfaces by mistake. The namespace ends with the process.

use std::thread::JoinHandle;

use anyhow::{Context, Result};
use nicpoll_model::Side;
use nicpoll_observe::HostCounters;
use nicpoll_switch::{Control, Held, SwitchError};
use nicpoll_sys::netns::{NetNamespace, NetnsThread};

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

/// One end of the lab's link.
pub struct Host {
    side: Side,
    netns: NetNamespace,
    thread: NetnsThread<Resident>,
}

impl Host {
    /// Makes a namespace and starts the thread that lives in it.
    pub fn new(side: Side) -> Result<Self> {
        let netns = NetNamespace::create().context("making a network namespace")?;
        let home = netns.try_clone().context("opening the new namespace")?;
        let thread = NetnsThread::enter(home, || Resident {
            control: Control::new(),
            counters: HostCounters::of_caller(),
            held: None,
        })
        .with_context(|| format!("entering the {side}'s namespace"))?;
        Ok(Host {
            side,
            netns,
            thread,
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
        self.thread
            .run(job)
            .with_context(|| format!("at the {}", self.side))
    }

    /// Starts a thread inside the namespace, bound to `cpu`.
    pub fn spawn_pinned<T: Send + 'static>(
        &self,
        cpu: u32,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<std::io::Result<T>>> {
        self.thread
            .spawn_pinned(cpu, name, work)
            .with_context(|| format!("starting a thread at the {}", self.side))
    }
}
