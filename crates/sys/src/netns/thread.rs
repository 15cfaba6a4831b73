//! A thread that lives in a network namespace.
//!
//! What must hold: it has a `/sys` of its own and never leaves the namespace again, so nothing that runs
//! on it can touch another namespace's interface of the same name; a thread that it starts is where it
//! is.

use std::io;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use thiserror::Error;

use super::{NetNamespace, enter_with_private_sysfs};
use crate::affinity;

type Job<S> = Box<dyn FnOnce(&mut S) + Send>;

/// A thread inside a network namespace that runs one job after another, and what they work with. The
/// namespace lives at least as long as this value.
#[derive(Debug)]
pub struct NetnsThread<S> {
    netns_inode: u64,
    jobs: Option<mpsc::Sender<Job<S>>>,
    thread: Option<JoinHandle<()>>,
}

/// A job panicked, now or earlier, and its thread is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the thread in network namespace {netns_inode} is gone")]
pub struct ThreadGone {
    /// Inode number of the namespace.
    pub netns_inode: u64,
}

impl<S: 'static> NetnsThread<S> {
    /// Starts a thread that enters `namespace`; `state` makes what its jobs work with, on that thread. The
    /// thread drops it too, when this value is dropped.
    ///
    /// # Errors
    /// `EPERM` without CAP_SYS_ADMIN.
    pub fn enter(
        namespace: NetNamespace,
        state: impl FnOnce() -> S + Send + 'static,
    ) -> io::Result<Self> {
        let netns_inode = namespace.inode();
        let (jobs, inbox) = mpsc::channel::<Job<S>>();
        let (ready, entered) = mpsc::channel();
        let thread = named("netns").spawn(move || {
            let entering = enter_with_private_sysfs(&namespace);
            let is_in = entering.is_ok();
            // Held by being in it from now on; a descriptor would keep it from going away later.
            drop(namespace);
            let _ = ready.send(entering);
            if !is_in {
                return;
            }
            let mut state = state();
            for job in inbox {
                job(&mut state);
            }
        })?;
        entered
            .recv()
            .map_err(|_| io::Error::other("the thread ended before it entered the namespace"))??;
        Ok(NetnsThread {
            netns_inode,
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Inode number of the namespace.
    pub fn netns_inode(&self) -> u64 {
        self.netns_inode
    }

    /// Runs `job` in the namespace and waits for what it returns.
    ///
    /// # Errors
    /// When a job panicked, this one or an earlier one.
    pub fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut S) -> T + Send + 'static,
    ) -> Result<T, ThreadGone> {
        let gone = ThreadGone {
            netns_inode: self.netns_inode,
        };
        let (answer, result) = mpsc::channel();
        self.jobs
            .as_ref()
            .ok_or(gone)?
            .send(Box::new(move |state| {
                let _ = answer.send(job(state));
            }))
            .map_err(|_| gone)?;
        result.recv().map_err(|_| gone)
    }

    /// Starts another thread in the namespace, bound to `cpu`.
    ///
    /// # Errors
    /// When no thread can be started. The thread itself ends with an error when it cannot be bound.
    pub fn spawn_pinned<T: Send + 'static>(
        &self,
        cpu: u32,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<io::Result<T>>> {
        let builder = named(name);
        // A new thread begins in the namespaces of the one that starts it.
        self.run(move |_| {
            builder.spawn(move || {
                affinity::pin(cpu)?;
                Ok(work())
            })
        })
        .map_err(io::Error::other)?
    }
}

impl<S> Drop for NetnsThread<S> {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // `run` has reported a panic on that thread already.
            let _ = thread.join();
        }
    }
}

fn named(name: &str) -> thread::Builder {
    thread::Builder::new().name(format!("nicpoll-{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inode_here() -> u64 {
        NetNamespace::current().unwrap().inode()
    }

    #[test]
    fn a_job_runs_in_the_namespace_and_its_state_is_dropped_there() {
        let Ok(namespace) = NetNamespace::create() else {
            println!("skipped: making a network namespace takes root");
            return;
        };
        let inode = namespace.inode();
        struct Last(mpsc::Sender<u64>);
        impl Drop for Last {
            fn drop(&mut self) {
                self.0.send(inode_here()).unwrap();
            }
        }
        let (dropped, inbox) = mpsc::channel();
        let thread = NetnsThread::enter(namespace, move || Last(dropped)).unwrap();
        assert_eq!(thread.run(|_| inode_here()), Ok(inode));
        // A sysfs of its own: only the loopback of the new namespace is there.
        let interfaces = thread.run(|_| std::fs::read_dir("/sys/class/net").unwrap().count());
        assert_eq!(interfaces, Ok(1));
        let cpu = affinity::allowed_cpus().unwrap()[0];
        let pinned = thread.spawn_pinned(cpu, "test", || {
            (inode_here(), affinity::allowed_cpus().unwrap())
        });
        let pinned = pinned.unwrap().join().unwrap().unwrap();
        assert_eq!(pinned, (inode, vec![cpu]));
        assert_ne!(inode_here(), inode);
        drop(thread);
        assert_eq!(inbox.recv(), Ok(inode));
    }

    #[test]
    fn after_a_panic_the_thread_is_gone_and_says_so() {
        let Ok(namespace) = NetNamespace::create() else {
            println!("skipped: making a network namespace takes root");
            return;
        };
        let thread = NetnsThread::enter(namespace, || ()).unwrap();
        let gone = ThreadGone {
            netns_inode: thread.netns_inode(),
        };
        assert_eq!(
            thread.run(|()| panic!("as the test wants it")),
            Err::<(), _>(gone)
        );
        assert_eq!(thread.run(|()| 1), Err(gone));
    }
}
