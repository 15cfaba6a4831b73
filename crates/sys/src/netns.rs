//! Network namespaces held by descriptor.
//!
//! What must hold: a namespace made here lives exactly as long as something refers to it: a
//! descriptor, a thread inside it, or the name that [`NetNamespace::keep_as`] gave it. When the
//! process dies, however it dies, the kernel takes the namespace and its interfaces away.
//!
//! A thread that only changed its network namespace still sees the *host's* interfaces under `/sys`.
//! [`enter_with_private_sysfs`] therefore also gives the thread a mount namespace of its own in which
//! `/sys` shows the namespace it is in. `/proc/thread-self/net` is right in either case;
//! `/proc/net` never is, because it follows the process's first thread.

mod thread;

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::mount::{self, MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

pub use thread::{NetnsThread, ThreadGone};

/// Where ip-netns(8) keeps its names.
pub const NAMED_DIRECTORY: &str = "/run/netns";

/// A network namespace, held open by descriptor.
#[derive(Debug)]
pub struct NetNamespace {
    file: File,
    inode: u64,
}

impl NetNamespace {
    /// Makes a new, empty network namespace without moving the calling thread.
    ///
    /// # Errors
    /// `EPERM` without CAP_SYS_ADMIN; `ENOSPC` when `user.max_net_namespaces` is reached.
    pub fn create() -> io::Result<Self> {
        // The new namespace comes with the thread that asks for it, so a short-lived thread asks.
        std::thread::Builder::new()
            .name(String::from("nicpoll-netns"))
            .spawn(|| {
                unshare(UnshareFlags::NEWNET)?;
                Self::current()
            })?
            .join()
            .map_err(|_| io::Error::other("the thread that makes namespaces panicked"))?
    }

    /// The namespace that the calling thread is in.
    pub fn current() -> io::Result<Self> {
        Self::open(Path::new("/proc/thread-self/ns/net"))
    }

    /// The namespace that a path refers to: `/proc/PID/ns/net`, or a name under [`NAMED_DIRECTORY`].
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let inode = rustix::fs::fstat(&file)?.st_ino;
        Ok(NetNamespace { file, inode })
    }

    /// The same namespace by another descriptor.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(NetNamespace {
            file: self.file.try_clone()?,
            inode: self.inode,
        })
    }

    /// Inode number: the kernel's identity of the namespace, as `readlink /proc/self/ns/net` shows it.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Moves the calling thread, and only it, into the namespace.
    pub fn enter(&self) -> io::Result<()> {
        rustix::thread::move_into_link_name_space(
            self.file.as_fd(),
            Some(LinkNameSpaceType::Network),
        )?;
        Ok(())
    }

    /// Gives the namespace a name as `ip netns add` does, so that it outlives the process.
    ///
    /// # Errors
    /// `AlreadyExists` when the name is taken.
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

/// Makes the directory of the names a mount that is shared, unless it is one: what the first `ip netns add` of a machine
/// does, too. That one would otherwise be laid over names from before it, which nobody could take away any more.
fn share_names() -> io::Result<()> {
    fs::create_dir_all(NAMED_DIRECTORY)?;
    // Two at once would lay one mount over the other. ip(8) takes the same lock.
    let lock = File::open(NAMED_DIRECTORY)?;
    flock(&lock, FlockOperation::LockExclusive)?;
    let share = || {
        let shared = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
        mount::mount_change(NAMED_DIRECTORY, shared)
    };
    match share() {
        // No mount.
        Err(Errno::INVAL) => {
            mount::mount_bind_recursive(NAMED_DIRECTORY, NAMED_DIRECTORY)?;
            Ok(share()?)
        }
        shared => Ok(shared?),
    }
}

/// The name of a namespace, if it has one.
pub fn name_of(inode: u64) -> Option<String> {
    let names = fs::read_dir(NAMED_DIRECTORY).ok()?.flatten();
    names
        .filter(|name| NetNamespace::open(&name.path()).is_ok_and(|found| found.inode() == inode))
        .find_map(|name| name.file_name().into_string().ok())
}

/// Takes a name away again; the namespace goes when nothing else refers to it.
pub fn forget(path: &Path) -> io::Result<()> {
    mount::unmount(path, UnmountFlags::DETACH)?;
    fs::remove_file(path)
}

/// Moves the calling thread into `namespace` and mounts a sysfs for it that shows that namespace.
///
/// The thread gets a mount namespace of its own and cannot leave it: use a thread that does nothing
/// else and ends.
pub fn enter_with_private_sysfs(namespace: &NetNamespace) -> io::Result<()> {
    namespace.enter()?;
    unshare(UnshareFlags::NEWNS | UnshareFlags::FS)?;
    // Without this the new mount would show up in the host's mount namespace too.
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
        // A namespace has one sysfs; the kernel refuses to mount it over itself, so it is there already.
        Err(Errno::BUSY) => Ok(()),
        mounted => Ok(mounted?),
    }
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: only CLONE_FILES is unsafe here, because it would leave descriptors that other threads
    // believe to share; the flags used are CLONE_NEWNET, CLONE_NEWNS and CLONE_FS.
    unsafe { rustix::thread::unshare_unsafe(flags) }?;
    Ok(())
}
