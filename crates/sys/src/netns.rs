//! Network namespaces held open by descriptor, and threads that stay in one.
//!
//! A namespace created here lives as long as something refers to it: a descriptor, a thread inside it, or the name
//! given by [`NetNamespace::keep_as`]. When the process dies, the kernel removes an unnamed namespace and its
//! interfaces.
//!
//! A thread that only changed its network namespace still sees the *host's* interfaces under `/sys`, so
//! [`enter_with_private_sysfs`] also gives the thread a mount namespace with its own sysfs. `/proc/thread-self/net` is
//! right in either case; `/proc/net` never is, because it follows the process's first thread.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::mount::{self, MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};
use thiserror::Error;

use crate::schedule;

/// Directory of ip-netns(8)'s names.
pub const NAMED_DIRECTORY: &str = "/run/netns";

/// A network namespace, held open by descriptor.
#[derive(Debug)]
pub struct NetNamespace {
    file: File,
    inode: u64,
}

impl NetNamespace {
    /// Creates an empty network namespace without moving the calling thread.
    ///
    /// # Errors
    /// `EPERM` without CAP_SYS_ADMIN; `ENOSPC` when `user.max_net_namespaces` is reached.
    pub fn create() -> io::Result<Self> {
        // unshare() moves the calling thread into the new namespace, so a short-lived thread calls it.
        let made = schedule::spawn("nicpoll-netns", || {
            unshare(UnshareFlags::NEWNET)?;
            Self::current()
        });
        made?
            .join()
            .map_err(|_| io::Error::other("the thread that makes namespaces panicked"))?
    }

    /// Returns the calling thread's namespace.
    pub fn current() -> io::Result<Self> {
        Self::open(Path::new("/proc/thread-self/ns/net"))
    }

    /// Opens the namespace that a path refers to: `/proc/PID/ns/net`, or a name under [`NAMED_DIRECTORY`].
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let inode = rustix::fs::fstat(&file)?.st_ino;
        Ok(NetNamespace { file, inode })
    }

    /// Returns the same namespace by another descriptor.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(NetNamespace {
            file: self.file.try_clone()?,
            inode: self.inode,
        })
    }

    /// Inode number, the kernel's identifier of the namespace, as in `readlink /proc/self/ns/net`.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Moves only the calling thread into the namespace.
    pub fn enter(&self) -> io::Result<()> {
        rustix::thread::move_into_link_name_space(
            self.file.as_fd(),
            Some(LinkNameSpaceType::Network),
        )?;
        Ok(())
    }

    /// Names the namespace as `ip netns add` does; it then outlives the process.
    ///
    /// # Errors
    /// `AlreadyExists` if the name is taken.
    pub fn keep_as(&self, name: &str) -> io::Result<PathBuf> {
        share_names()?;
        let path = Path::new(NAMED_DIRECTORY).join(name);
        File::create_new(&path)?;
        let target = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        if let Err(error) = mount::mount_bind(target.as_str(), &path) {
            fs::remove_file(&path)?;
            return Err(error.into());
        }
        Ok(path)
    }
}

impl AsFd for NetNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Makes the directory of names a shared mount unless it is one, as the first `ip netns add` on a machine does.
/// Otherwise that command would mount over existing names, and nobody could remove those any more.
fn share_names() -> io::Result<()> {
    fs::create_dir_all(NAMED_DIRECTORY)?;
    // Two at once would mount one over the other. ip(8) takes the same lock.
    let lock = File::open(NAMED_DIRECTORY)?;
    flock(&lock, FlockOperation::LockExclusive)?;
    let share = || {
        let shared = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
        mount::mount_change(NAMED_DIRECTORY, shared)
    };
    match share() {
        // Not a mount yet.
        Err(Errno::INVAL) => {
            mount::mount_bind_recursive(NAMED_DIRECTORY, NAMED_DIRECTORY)?;
            Ok(share()?)
        }
        shared => Ok(shared?),
    }
}

/// Returns the name of a namespace, if it has one.
pub fn name_of(inode: u64) -> Option<String> {
    let names = fs::read_dir(NAMED_DIRECTORY).ok()?.flatten();
    names
        .filter(|name| NetNamespace::open(&name.path()).is_ok_and(|found| found.inode() == inode))
        .find_map(|name| name.file_name().into_string().ok())
}

/// Removes a name; the namespace disappears once nothing else refers to it.
pub fn forget(path: &Path) -> io::Result<()> {
    mount::unmount(path, UnmountFlags::DETACH)?;
    fs::remove_file(path)
}

/// Moves the calling thread into `namespace` and mounts a sysfs that shows it.
///
/// The thread gets a mount namespace of its own and cannot leave it: use a thread that does nothing else.
pub fn enter_with_private_sysfs(namespace: &NetNamespace) -> io::Result<()> {
    namespace.enter()?;
    unshare(UnshareFlags::NEWNS | UnshareFlags::FS)?;
    // Otherwise the new mount would appear in the host's mount namespace too.
    mount::mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    let mounted = mount::mount(
        "nicpoll",
        "/sys",
        "sysfs",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        None,
    );
    match mounted {
        // A namespace has one sysfs, which the kernel refuses to mount over itself: it is mounted already.
        Err(Errno::BUSY) => Ok(()),
        mounted => Ok(mounted?),
    }
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: only CLONE_FILES is unsafe here, because it would unshare descriptors that other threads expect to share;
    // the flags used are CLONE_NEWNET, CLONE_NEWNS and CLONE_FS.
    unsafe { rustix::thread::unshare_unsafe(flags) }?;
    Ok(())
}

type NamespaceJob<S> = Box<dyn FnOnce(&mut S) + Send>;

/// A thread inside a network namespace that runs one job after another on a shared state. The namespace lives at least
/// as long as this value.
#[derive(Debug)]
pub struct NetnsThread<S> {
    netns_inode: u64,
    jobs: Option<mpsc::Sender<NamespaceJob<S>>>,
    thread: Option<JoinHandle<()>>,
}

/// A job panicked, now or earlier, and its thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the thread in network namespace {netns_inode} is gone")]
pub struct ThreadGone {
    /// Inode number of the namespace.
    pub netns_inode: u64,
}

impl<S: 'static> NetnsThread<S> {
    /// Starts a thread that enters `namespace`. The thread makes the state of its jobs with `state`, and drops it when
    /// this value is dropped.
    ///
    /// # Errors
    /// `EPERM` without CAP_SYS_ADMIN.
    pub fn enter(
        namespace: NetNamespace,
        state: impl FnOnce() -> S + Send + 'static,
    ) -> io::Result<Self> {
        let netns_inode = namespace.inode();
        // The thread itself keeps the namespace from now on; a descriptor would keep it even after the thread.
        let enter = move || enter_with_private_sysfs(&namespace);
        NetnsThread::start(netns_inode, enter, state)
    }

    /// Starts a thread in the calling thread's namespace, which takes no privilege. The new thread's `/sys` is the
    /// caller's too, which may show another namespace.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn stay(state: impl FnOnce() -> S + Send + 'static) -> io::Result<Self> {
        let netns_inode = NetNamespace::current()?.inode();
        NetnsThread::start(netns_inode, || Ok(()), state)
    }

    fn start(
        netns_inode: u64,
        enter: impl FnOnce() -> io::Result<()> + Send + 'static,
        state: impl FnOnce() -> S + Send + 'static,
    ) -> io::Result<Self> {
        let (jobs, inbox) = mpsc::channel::<NamespaceJob<S>>();
        let (ready, entered) = mpsc::channel();
        let thread = named("netns").spawn(move || {
            let entering = enter();
            let is_in = entering.is_ok();
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

    /// Runs `job` in the namespace and returns its result.
    ///
    /// # Errors
    /// If this job or an earlier one panicked.
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
    /// If no thread can be started. The thread itself ends with an error if it cannot be bound.
    pub fn spawn_pinned<T: Send + 'static>(
        &self,
        cpu: u32,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<io::Result<T>>> {
        let builder = named(name);
        // A new thread inherits the namespaces of the thread that starts it.
        self.run(move |_| {
            builder.spawn(move || {
                schedule::pin(cpu)?;
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
            // `run` has already reported a panic of that thread.
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
        // A private sysfs shows only the loopback of the new namespace.
        let interfaces = thread.run(|_| std::fs::read_dir("/sys/class/net").unwrap().count());
        assert_eq!(interfaces, Ok(1));
        let cpu = schedule::allowed_cpus().unwrap()[0];
        let pinned = thread.spawn_pinned(cpu, "test", || {
            (inode_here(), schedule::allowed_cpus().unwrap())
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
