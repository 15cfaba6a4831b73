//! Processes untrusted input in a process that can do nothing else.
//!
//! [`Confined::start`] makes a process that first opens what it needs, with all rights of this one. Then it drops them:
//!
//! - root becomes the user `nobody` without supplementary groups, and loses every capability;
//! - Landlock hides all files but `/proc`, of which an ordinary user sees little, and forbids TCP and signals;
//! - seccomp refuses every system call but those for computing and for using what is open: it can start no program and
//!   make no process or socket.
//!
//! Landlock and seccomp are used as far as the kernel has them. If root can neither become another user nor be bound by
//! Landlock, nothing is read. The process may use [`MEMORY_MAX_BYTES`]. A panic, an abort or a limit ends only that
//! process, and is reported as [`ConfinedError`].

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::panic::{self, AssertUnwindSafe, catch_unwind};

use landlock::{
    ABI, Access, AccessFs, AccessNet, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::{
    Gid, Pid, Resource, Rlimit, Signal, Uid, WaitOptions, geteuid, getpid, getppid, getrlimit,
    kill_process, set_parent_process_death_signal, setrlimit, waitpid,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, set_capabilities, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};
use seccompiler::{SeccompAction, SeccompFilter, TargetArch, apply_filter};
use thiserror::Error;

use super::User;
use crate::kernel::fork;

/// Memory that such a process may allocate, and the size of a file that it writes.
pub const MEMORY_MAX_BYTES: u64 = 2 << 30;
/// Maximum size of an answer.
const ANSWER_MAX_BYTES: u64 = 1 << 30;
/// Newest Landlock ABI used. An older kernel enforces what it knows.
const LANDLOCK: ABI = ABI::V6;
/// `nobody`, if /etc/passwd has no such user.
const NOBODY: User = User {
    uid: 65_534,
    gid: 65_534,
};

/// Why such a process gave no answer.
#[derive(Debug, Error)]
pub enum ConfinedError {
    /// The process could not be made.
    #[error("a process for reading cannot be made: {0}")]
    NotMade(io::Error),
    /// The process could not drop its rights.
    #[error("the process for reading cannot drop its privileges, and nothing is read as root: {0}")]
    NotConfined(String),
    /// The work panicked with this message.
    #[error("this input triggers a bug in nicpoll, please report it: {0}")]
    Panicked(String),
    /// A limit or a fault ended the process.
    #[error(
        "the process that read it was ended by signal {signal}; it may use {} MiB of memory",
        MEMORY_MAX_BYTES >> 20
    )]
    Ended {
        /// Signal number.
        signal: i32,
    },
}

/// First byte of the answer.
const DONE: u8 = 0;
const PANICKED: u8 = 1;
const NOT_CONFINED: u8 = 2;

/// A process without rights. It is killed when this value is dropped.
#[derive(Debug)]
pub struct Confined {
    process: Pid,
    answer: PipeReader,
    is_collected: bool,
}

impl Confined {
    /// Makes the process. `open` runs with the rights of this process, `work` without. The process gets at most
    /// `cpu_seconds` of CPU time.
    ///
    /// # Errors
    /// If this process has more than one thread: the others would be missing in the new process, and locks that they
    /// held would stay locked. If the kernel makes no process.
    pub fn start<T>(
        cpu_seconds: Option<u64>,
        open: impl FnOnce() -> T,
        work: impl FnOnce(T) -> Vec<u8>,
    ) -> io::Result<Self> {
        let (answer, mut told) = io::pipe()?;
        let parent = getpid();
        if let Some(process) = fork()? {
            return Ok(Confined {
                process,
                answer,
                is_collected: false,
            });
        }
        drop(answer);
        panic::set_hook(Box::new(|_| {}));
        let whole = catch_unwind(AssertUnwindSafe(|| {
            // Its only output is its answer.
            let _ = File::options()
                .write(true)
                .open("/dev/null")
                .map(rustix::stdio::dup2_stderr);
            let opened = open();
            match confine(parent, cpu_seconds) {
                Ok(()) => (DONE, work(opened)),
                Err(error) => (NOT_CONFINED, error.to_string().into_bytes()),
            }
        }));
        let (kind, bytes) =
            whole.unwrap_or_else(|panic| (PANICKED, words_of(&*panic).into_bytes()));
        // The reader may be gone.
        let _ = told
            .write_all(&[kind])
            .and_then(|()| told.write_all(&bytes));
        // SAFETY: the call takes no pointer. It flushes nothing, so what the other process has buffered is not written
        // twice.
        unsafe { libc::_exit(0) }
    }

    /// Waits for the result of `work`.
    ///
    /// # Errors
    /// [`ConfinedError`] if there is none.
    pub fn answer(mut self) -> Result<Vec<u8>, ConfinedError> {
        let mut bytes = Vec::new();
        let read = (&mut self.answer)
            .take(ANSWER_MAX_BYTES)
            .read_to_end(&mut bytes);
        read.map_err(ConfinedError::NotMade)?;
        self.is_collected = true;
        let ended = waitpid(Some(self.process), WaitOptions::empty());
        let status = ended.map_err(|error| ConfinedError::NotMade(error.into()))?;
        if let Some(signal) = status.and_then(|(_, status)| status.terminating_signal()) {
            return Err(ConfinedError::Ended { signal });
        }
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match bytes.split_first() {
            Some((&DONE, _)) => Ok(bytes.split_off(1)),
            Some((&PANICKED, text)) => Err(ConfinedError::Panicked(words(text))),
            Some((_, text)) => Err(ConfinedError::NotConfined(words(text))),
            None => Err(ConfinedError::NotMade(io::Error::other("no answer"))),
        }
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        if !self.is_collected {
            // It may have ended already.
            let _ = kill_process(self.process, Signal::KILL);
            let _ = waitpid(Some(self.process), WaitOptions::empty());
        }
    }
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    String::from(text.unwrap_or("no message"))
}

/// Drops every right of this process, which has one thread.
fn confine(parent: Pid, cpu_seconds: Option<u64>) -> io::Result<()> {
    limit(cpu_seconds)?;
    let landlock = landlocked();
    if let (Err(user), Err(landlock)) = (become_nobody(), landlock) {
        let why = format!("another user: {user}; Landlock: {landlock}");
        return Err(io::Error::other(why));
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none)?;
    // The process must not outlive the one that waits for it. The kernel resets this signal when the user changes, and
    // the parent may have ended in the meantime.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(parent) {
        return Err(io::Error::other("its parent is gone"));
    }
    // If the kernel lacks seccomp or this processor has no table, the other restrictions still hold.
    let _ = refuse_calls();
    Ok(())
}

fn limit(cpu_seconds: Option<u64>) -> io::Result<()> {
    let limits = [
        (Resource::Core, Some(0)),
        (Resource::Data, Some(MEMORY_MAX_BYTES)),
        (Resource::Fsize, Some(MEMORY_MAX_BYTES)),
        (Resource::Cpu, cpu_seconds),
    ];
    for (resource, most) in limits {
        let Some(most) = most else { continue };
        let has = getrlimit(resource);
        let most = has.maximum.map_or(most, |maximum| maximum.min(most));
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, limit)?;
    }
    Ok(())
}

/// Changes root to `nobody`; any other user stays.
fn become_nobody() -> io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let user = User::named("nobody").unwrap_or(NOBODY);
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    Ok(set_thread_res_uid(uid, uid, uid)?)
}

/// Forbids files, TCP and signals as far as this kernel can.
fn landlocked() -> io::Result<()> {
    let proc = PathFd::new("/proc").map_err(io::Error::other)?;
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK)))
        .and_then(|rules| rules.scope(Scope::from_all(LANDLOCK)))
        .and_then(Ruleset::create)
        .and_then(|rules| rules.add_rule(PathBeneath::new(proc, AccessFs::from_read(ABI::V1))))
        .and_then(|rules| rules.restrict_self())
        .map_err(io::Error::other)?;
    match rules.ruleset {
        RulesetStatus::NotEnforced => Err(io::ErrorKind::Unsupported.into()),
        _ => Ok(()),
    }
}

/// Allowed system calls: memory, time, and what is open. Opening is left to Landlock to refuse.
const CALLS: [libc::c_long; 68] = [
    libc::SYS_accept4,
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_faccessat,
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_fstat,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_futex,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpeername,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_pwrite64,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendfile,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_statx,
    libc::SYS_sysinfo,
    libc::SYS_tgkill,
    libc::SYS_uname,
    libc::SYS_umask,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_wait4,
];

/// Older forms of these calls, which only x86-64 has.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: [libc::c_long; 7] = [
    libc::SYS_access,
    libc::SYS_epoll_wait,
    libc::SYS_lstat,
    libc::SYS_open,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_stat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: [libc::c_long; 0] = [];

/// Makes every other call fail with `EPERM`.
fn refuse_calls() -> io::Result<()> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let calls = CALLS.into_iter().chain(OLD_CALLS);
    let rules: BTreeMap<_, _> = calls.map(|call| (call, Vec::new())).collect();
    let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let filter = SeccompFilter::new(rules, refused, SeccompAction::Allow, arch);
    let filter = filter.map_err(io::Error::other)?;
    let program = seccompiler::BpfProgram::try_from(filter).map_err(io::Error::other)?;
    apply_filter(&program).map_err(io::Error::other)
}
