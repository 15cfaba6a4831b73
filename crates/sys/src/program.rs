//! Runs programs that leave no process behind.
//!
//! A contained program and everything that it starts run in a PID namespace of their own (pid_namespaces(7)), below two
//! processes of ours:
//!
//! ```text
//! the thread that starts it -> keeper -> first process of the namespace -> the program -> what that starts
//! ```
//!
//! The kernel kills the keeper when the thread ends, the first process when the keeper ends, and everything in the
//! namespace when its first process ends. None of that needs code of ours to run, so it also holds when this process is
//! killed. A program can leave its namespace neither by forking nor by ignoring signals.

pub mod confined;

use std::env;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{self, Child, Command};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
pub use rustix::thread::CapabilitySet;
use rustix::thread::{
    CapabilitySets, configure_capability_in_ambient_set, remove_capability_from_bounding_set,
    set_capabilities, set_keep_capabilities, set_no_new_privs,
};

use crate::kernel::checked;

/// User and group of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// User ID.
    pub uid: u32,
    /// Group ID. A program has no supplementary groups.
    pub gid: u32,
}

impl User {
    /// Finds a user by name.
    ///
    /// # Errors
    /// `NotFound` if /etc/passwd has no such user.
    pub fn named(name: &str) -> io::Result<Self> {
        let users = fs::read_to_string("/etc/passwd")?;
        let found = users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let is_named = fields.next() == Some(name);
            let uid = fields.nth(1)?.parse().ok()?;
            let gid = fields.next()?.parse().ok()?;
            is_named.then_some(User { uid, gid })
        });
        found.ok_or_else(|| {
            let message = format!("there is no user '{name}' in /etc/passwd");
            io::Error::new(io::ErrorKind::NotFound, message)
        })
    }

    /// Returns the user who called sudo; `None` if this process was not started by sudo.
    pub fn of_sudo() -> Option<Self> {
        let id = |name| env::var(name).ok()?.parse().ok();
        Some(User {
            uid: id("SUDO_UID")?,
            gid: id("SUDO_GID")?,
        })
    }
}

/// Rights of a program and of what it starts. They cannot gain more, for example by a setuid program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// User and group; `None` for those of this process.
    pub user: Option<User>,
    /// Capabilities.
    pub capabilities: CapabilitySet,
}

/// Returns a capability by name, such as `net_raw` or `CAP_NET_RAW`.
pub fn capability_named(name: &str) -> Option<CapabilitySet> {
    let name = name.to_uppercase();
    CapabilitySet::from_name(name.strip_prefix("CAP_").unwrap_or(&name))
}

/// Starts a program in a PID namespace of its own, in the other namespaces and on the CPUs of the calling thread. It
/// and everything that it starts end with that thread. Without `rights` it has the rights of this process.
///
/// The returned process is the keeper: it ends when the program does, with the program's exit code, or with 128 plus
/// the number of the signal that ended the program. Killing the keeper ends all of them.
///
/// # Errors
/// `EPERM` without CAP_SYS_ADMIN; also the errors of [`Command::spawn`].
pub fn spawn_contained(command: &mut Command, rights: Option<Rights>) -> io::Result<Child> {
    let this_process = process::id();
    // SAFETY: between fork and exec the closure and what it calls make system calls only: they allocate nothing and take
    // no lock.
    unsafe { command.pre_exec(move || contain(this_process, rights)) };
    command.spawn()
}

/// Sends SIGTERM to a contained program and what it started.
///
/// # Errors
/// `ESRCH` if it has ended.
pub fn ask_to_end(keeper: &Child) -> io::Result<()> {
    let group = Pid::from_child(keeper);
    Ok(kill_process_group(group, Signal::TERM)?)
}

/// Runs in the new process, which becomes the keeper. Returns only in the program's process.
fn contain(parent: u32, rights: Option<Rights>) -> io::Result<()> {
    let before = block_signals()?;
    // SAFETY: these calls take no pointer but that to the array, which is as long as pipe2 expects.
    unsafe {
        checked(libc::setpgid(0, 0))?;
        end_with_parent()?;
        if libc::getppid().cast_unsigned() != parent {
            libc::_exit(1);
        }
        checked(libc::unshare(libc::CLONE_NEWPID | libc::CLONE_NEWNS))?;
        let mut alive = [0; 2];
        checked(libc::pipe2(alive.as_mut_ptr(), libc::O_CLOEXEC))?;
        let first = checked(libc::fork())?;
        if first > 0 {
            // The write end stays open as long as this process lives: the first process polls the other end.
            close_all_but(alive[1]);
            libc::_exit(code_of(first));
        }
        end_with_parent()?;
        libc::close(alive[1]);
        let mut keeper = libc::pollfd {
            fd: alive[0],
            events: libc::POLLIN,
            revents: 0,
        };
        // The keeper may have ended before PR_SET_PDEATHSIG took effect.
        if libc::poll(&raw mut keeper, 1, 0) != 0 {
            libc::_exit(1);
        }
        mount_proc()?;
        let program = checked(libc::fork())?;
        if program > 0 {
            close_all_but(-1);
            libc::_exit(code_of(program));
        }
        if let Some(rights) = rights {
            limit(rights)?;
        }
        checked(libc::sigprocmask(
            libc::SIG_SETMASK,
            &raw const before,
            std::ptr::null_mut(),
        ))?;
    }
    Ok(())
}

/// Restricts this process to these rights, for good.
fn limit(rights: Rights) -> io::Result<()> {
    let Rights { user, capabilities } = rights;
    for other in CapabilitySet::all().difference(capabilities).iter() {
        match remove_capability_from_bounding_set(other) {
            // A capability unknown to this kernel.
            Err(Errno::INVAL) => {}
            done => done?,
        }
    }
    set_keep_capabilities(true)?;
    if let Some(user) = user {
        // SAFETY: an empty list is allowed as a null pointer, and the others take no pointer.
        unsafe {
            checked(libc::setgroups(0, std::ptr::null()))?;
            checked(libc::setgid(user.gid))?;
            checked(libc::setuid(user.uid))?;
        }
    }
    let sets = CapabilitySets {
        effective: capabilities,
        permitted: capabilities,
        inheritable: capabilities,
    };
    set_capabilities(None, sets)?;
    for capability in capabilities.iter() {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(set_no_new_privs(true)?)
}

/// Blocks all signals, and returns those that were blocked before.
fn block_signals() -> io::Result<libc::sigset_t> {
    // SAFETY: all zeros is a valid sigset_t, and both calls read and write whole ones that outlive them.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        checked(libc::sigprocmask(
            libc::SIG_SETMASK,
            &raw const all,
            &raw mut before,
        ))?;
        Ok(before)
    }
}

/// Has the kernel kill this process when the thread that forked it ends.
fn end_with_parent() -> io::Result<()> {
    // SAFETY: the call takes no pointer.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).map(|_| ())
}

/// Mounts a `/proc` of the namespace's processes that only they see.
fn mount_proc() -> io::Result<()> {
    let (none, proc) = (std::ptr::null(), c"proc".as_ptr());
    let private = libc::MS_REC | libc::MS_PRIVATE;
    let plain = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: the strings end with NUL and outlive the calls; a null pointer is allowed where nothing is named.
    unsafe {
        checked(libc::mount(none, c"/".as_ptr(), none, private, none.cast()))?;
        checked(libc::mount(
            proc,
            c"/proc".as_ptr(),
            proc,
            plain,
            none.cast(),
        ))?;
    }
    Ok(())
}

/// Closes all descriptors but one: otherwise this process would hold the program's pipes open.
fn close_all_but(kept: libc::c_int) {
    // SAFETY: the calls take no pointer, and nothing of this process uses a descriptor after them.
    unsafe {
        let kept = libc::c_uint::try_from(kept).unwrap_or(libc::c_uint::MAX);
        if kept > 0 {
            libc::syscall(libc::SYS_close_range, 0, kept - 1, 0);
        }
        libc::syscall(
            libc::SYS_close_range,
            kept.saturating_add(1),
            libc::c_uint::MAX,
            0,
        );
    }
}

/// Reaps ended processes until `process` is among them, and returns its exit code.
fn code_of(process: libc::pid_t) -> libc::c_int {
    let mut status = 0;
    loop {
        // SAFETY: the kernel writes one integer, which outlives the call.
        let ended = unsafe { libc::waitpid(-1, &raw mut status, 0) };
        if ended == process && libc::WIFSIGNALED(status) {
            return 128 + libc::WTERMSIG(status);
        }
        if ended == process {
            return libc::WEXITSTATUS(status);
        }
        if ended < 0 {
            return 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::Stdio;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped());
        command
    }

    /// Whether any process has these words in its command line.
    fn runs(words: &str) -> bool {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines
            .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
            .any(|line| line.contains(words) && !line.contains("sh -c"))
    }

    fn wait_until(what: &str, is_so: impl Fn() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < Duration::from_secs(20), "{what}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Only root can make PID namespaces; others get an error.
    fn may_contain() -> bool {
        match spawn_contained(&mut shell("exit 0"), None) {
            Ok(mut keeper) => keeper.wait().is_ok(),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                eprintln!("skipped: containing a program takes CAP_SYS_ADMIN");
                false
            }
        }
    }

    #[test]
    fn the_exit_code_and_the_output_are_the_programs() {
        if !may_contain() {
            return;
        }
        for (script, code, said) in [
            ("echo hello; exit 7", 7, "hello\n"),
            ("echo $$; kill -9 $$", 137, "2\n"),
            // The keeper ends with the program, whatever else still holds the pipe.
            ("sleep 300.125 & echo left", 0, "left\n"),
        ] {
            let mut keeper = spawn_contained(&mut shell(script), None).unwrap();
            let mut output = String::new();
            let mut stdout = keeper.stdout.take().unwrap();
            stdout.read_to_string(&mut output).unwrap();
            assert_eq!(keeper.wait().unwrap().code(), Some(code), "{script}");
            assert_eq!(output, said, "{script}");
        }
        wait_until("what it left", || !runs("sleep 300.125"));
        let missing = spawn_contained(&mut Command::new("no-such-program"), None).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn nothing_outlives_the_keeper_or_the_thread_that_started_it() {
        if !may_contain() {
            return;
        }
        let stubborn = |seconds: &str| {
            format!(
                "trap '' TERM HUP; setsid sh -c 'trap \"\" TERM; sleep {seconds}; true' & sleep {seconds}; true"
            )
        };
        let mut keeper = spawn_contained(&mut shell(&stubborn("301.125")), None).unwrap();
        wait_until("it runs", || runs("sleep 301.125"));
        ask_to_end(&keeper).unwrap();
        keeper.kill().unwrap();
        keeper.wait().unwrap();
        wait_until("what the keeper left", || !runs("sleep 301.125"));

        let script = stubborn("302.125");
        let started = thread::spawn(move || spawn_contained(&mut shell(&script), None).unwrap());
        let mut keeper = started.join().unwrap();
        keeper.wait().unwrap();
        wait_until("what the thread left", || !runs("sleep 302.125"));
    }

    /// Returns the output of a shell with these rights.
    fn said_with(rights: Rights, script: &str) -> String {
        let mut keeper = spawn_contained(&mut shell(script), Some(rights)).unwrap();
        let mut output = String::new();
        let mut stdout = keeper.stdout.take().unwrap();
        stdout.read_to_string(&mut output).unwrap();
        assert!(keeper.wait().unwrap().success());
        output
    }

    #[test]
    fn a_program_has_the_user_and_the_capabilities_that_it_was_given() {
        if !may_contain() {
            return;
        }
        let nobody = User::named("nobody").unwrap();
        assert!(User::named("no-such-user").is_err());
        assert!(capability_named("net_rawer").is_none());
        let net_raw = capability_named("CAP_net_raw").unwrap();
        let script = "id -u; grep -E 'Cap(Eff|Bnd)|NoNewPrivs' /proc/self/status";
        let own = rustix::process::geteuid().as_raw();
        for (user, uid) in [(None, own), (Some(nobody), nobody.uid)] {
            for (capabilities, bits) in [(CapabilitySet::empty(), 0), (net_raw, 1 << 13)] {
                let said = said_with(Rights { user, capabilities }, script);
                let expected =
                    format!("{uid}\nCapEff:\t{bits:016x}\nCapBnd:\t{bits:016x}\nNoNewPrivs:\t1\n");
                assert_eq!(said, expected);
            }
        }
    }
}
