//! The guard: a separate process that owns changes which must not outlive their client.
//!
//! The guard runs in a session of its own without a terminal, so it outlives the client and the connection that the
//! client came by. It owns the changes before the first of them is made. Within a second after the client is gone,
//! `kill -9` included, or at the set time, it undoes the changes that are left. Until then it refers to no network
//! namespace and keeps none alive. [`Toggles`] are changes of a running program that a guard owns.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::apply::{Resolved, Switch, require_privileges};
use crate::error::SwitchError;
use crate::journal::{DIRECTORY_VARIABLE, Journal, Owner, boottime_ns, journal_error};
use crate::kernel::Machine;
use crate::plan::{Needs, Preview, preview};
use crate::recover::{attempts_of, recover, undo_unconfirmed};
use crate::request::{KnobValues, Name, POLLING_PERIOD_NS};
use crate::transaction::Held;

/// The guard's message once it has left its client's session.
const READY: &str = "ready";
/// The client's message when every change is made and waits to be confirmed. If stdin ends without it, the client is
/// gone.
const STAY: &str = "stay";
/// How often the guard checks whether the change is confirmed and whether it must stop.
const LOOK: Duration = Duration::from_millis(250);

/// Failed attempts to undo a change before the guard gives up: one minute of them.
const TRIES: u32 = 240;

/// The argument on which a program with guards runs [`watch_over`]; `--until NS` may follow.
pub const GUARD_COMMAND: &str = "guard";

/// Returns the command that starts a guard: the calling program with [`GUARD_COMMAND`].
pub fn guard_of_this_program() -> io::Result<Command> {
    let own = std::env::current_exe()?;
    // A program that was copied to another machine for one command is removed as soon as it runs.
    let mut command = match own.exists() {
        true => Command::new(own),
        false => Command::new("/proc/self/exe"),
    };
    command.arg(GUARD_COMMAND);
    Ok(command)
}

/// A running guard, as its client sees it. Once this is dropped, the guard undoes the changes that are left and exits.
#[derive(Debug)]
pub struct Guard {
    client: ChildStdin,
    owner: Owner,
}

impl Guard {
    /// Starts a guard with `program`, which has to call [`watch_over`]. With `until_boottime_ns` it undoes the changes
    /// at that time.
    pub fn start(
        program: Command,
        journal: &Journal,
        until_boottime_ns: Option<u64>,
    ) -> Result<Guard, SwitchError> {
        let doing = "the process that undoes the change did not start";
        Self::spawn(program, journal, until_boottime_ns).map_err(SwitchError::of_io(doing))
    }

    fn spawn(
        mut program: Command,
        journal: &Journal,
        until_boottime_ns: Option<u64>,
    ) -> io::Result<Guard> {
        if let Some(until) = until_boottime_ns {
            program.args(["--until", &until.to_string()]);
        }
        let mut child = program
            // The guard needs nothing from the client's environment.
            .env_clear()
            .env(DIRECTORY_VARIABLE, journal.directory())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut said = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut said)?;
        }
        if said.trim_end() != READY {
            let _ = child.wait();
            return Err(io::Error::other("it did not report that it is ready"));
        }
        let owner = Owner::of_process(child.id())?;
        let client = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        // A client with many guards, one after another, would be left with as many zombies.
        thread::spawn(move || child.wait());
        Ok(Guard { client, owner })
    }

    /// Returns the guard as owner of the changes.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Leaves the guard to wait for the confirmation, after every change is made.
    pub fn leave(mut self) -> io::Result<()> {
        writeln!(self.client, "{STAY}")
    }
}

/// Runs a guard in the calling process: watches over the changes that this process owns, and returns when nothing is
/// left to undo. `stop` makes it undo them at once.
pub fn watch_over(
    journal: &Journal,
    until_boottime_ns: Option<u64>,
    stop: &AtomicBool,
) -> Result<(), SwitchError> {
    let failed = journal_error(journal.directory());
    rustix::process::setsid().map_err(|error| failed(error.into()))?;
    let owner = Owner::this_process().map_err(&failed)?;
    say_ready().map_err(&failed)?;
    let (client, has_finished) = mpsc::channel();
    thread::spawn(move || {
        let mut said = String::new();
        let _ = io::stdin().lock().read_to_string(&mut said);
        let _ = client.send(said.trim_end() == STAY);
    });
    wait(journal, owner, until_boottime_ns, &has_finished, stop)?;
    undo(journal, owner)
}

fn say_ready() -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{READY}")?;
    stdout.flush()
}

/// Waits until the time has come, the client is gone, nothing is left to undo, or `stop` is set.
fn wait(
    journal: &Journal,
    owner: Owner,
    until_boottime_ns: Option<u64>,
    has_finished: &mpsc::Receiver<bool>,
    stop: &AtomicBool,
) -> Result<(), SwitchError> {
    let until = until_boottime_ns.unwrap_or(u64::MAX);
    let mut is_left = false;
    while boottime_ns() < until && !stop.load(Ordering::Relaxed) {
        if is_left && attempts_of(journal, owner)?.is_empty() {
            return Ok(());
        }
        let left = Duration::from_nanos(until.saturating_sub(boottime_ns())).min(LOOK);
        match has_finished.recv_timeout(left) {
            Ok(true) => is_left = true,
            // The client ended without its message.
            Ok(false) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
            // The channel is empty and closed: the client's message came before.
            Err(RecvTimeoutError::Disconnected) => thread::sleep(left),
        }
    }
    Ok(())
}

fn undo(journal: &Journal, owner: Owner) -> Result<(), SwitchError> {
    let mut outcome = Ok(());
    for path in attempts_of(journal, owner)? {
        let undo = || undo_unconfirmed(journal, &mut Machine::new(), &path, owner);
        // One failure does not keep the other records from being undone.
        outcome = outcome.and(insist(undo, || thread::sleep(LOOK)));
    }
    outcome
}

/// Repeats a failed undo: a namespace that is being taken down or could not be searched may be accessible a moment
/// later, and no other process may ever restore the values.
fn insist(
    mut undo: impl FnMut() -> Result<(), SwitchError>,
    mut pause: impl FnMut(),
) -> Result<(), SwitchError> {
    let mut tries_left = TRIES;
    loop {
        match undo() {
            // Whoever holds the lock is confirming, restoring, or about to exit.
            Err(SwitchError::Busy(_)) => {}
            Err(_) if tries_left > 1 => tries_left -= 1,
            done => return done,
        }
        pause();
    }
}

/// Interfaces of one namespace that a running program switches to polling and back, as a key of `nicpoll watch` does.
/// However the program ends, killed or not, the guard restores them.
pub struct Toggles {
    switch: Switch,
    netns_inode: u64,
    guard: Guard,
    held: Vec<(String, Held)>,
}

impl Toggles {
    /// Starts a guard by the command `guard`, for the namespace of the calling thread. No interface is switched yet.
    pub fn of_caller(journal: Journal, guard: Command) -> Result<Self, SwitchError> {
        require_privileges()?;
        recover(&journal)?;
        let guard = Guard::start(guard, &journal, None)?;
        let mut switch = Switch::new(journal);
        Ok(Toggles {
            netns_inode: switch.enter(None)?,
            switch,
            guard,
            held: Vec::new(),
        })
    }

    /// Switches polling on, or off again. Returns whether it is on now.
    pub fn toggle(&mut self, interface: &str) -> Result<bool, SwitchError> {
        match self.held.iter().position(|(name, _)| name == interface) {
            Some(at) => {
                let (_, held) = self.held.remove(at);
                held.restore(&mut self.switch)?;
                Ok(false)
            }
            None => {
                let held = self.hold(interface)?;
                self.held.push((String::from(interface), held));
                Ok(true)
            }
        }
    }

    /// Restores every interface and returns their names.
    pub fn restore(&mut self) -> Result<Vec<String>, SwitchError> {
        let mut names = Vec::new();
        while let Some((name, held)) = self.held.pop() {
            held.restore(&mut self.switch)?;
            names.push(name);
        }
        Ok(names)
    }

    fn hold(&mut self, interface: &str) -> Result<Held, SwitchError> {
        let values = KnobValues::polling(POLLING_PERIOD_NS);
        let names = [Name::whole(interface)];
        let netns_inode = self.netns_inode;
        let resolved = self
            .switch
            .resolve(&names, &values, netns_inode, Needs::Refuse);
        let Resolved { orders, .. } = resolved?;
        let facts = self.switch.survey(&orders)?;
        let preview = preview(&facts, Needs::Refuse)?;
        if preview == Preview::default() {
            return Err(SwitchError::Failed(format!(
                "{interface} polls already; 'nicpoll set {interface} -polling' puts it back"
            )));
        }
        if self.switch.carries_own_ssh(netns_inode, &orders)? {
            return Err(SwitchError::Failed(format!(
                "{interface} carries your ssh connection; 'nicpoll set {interface} polling' switches it, and back unless \
                 you confirm it"
            )));
        }
        let owner = self.guard.owner();
        self.switch.hold(&orders, Needs::Refuse, owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> Result<(), SwitchError> {
        Err(SwitchError::Failed(String::from("it did not work")))
    }

    #[test]
    fn what_fails_for_a_moment_is_undone_all_the_same() {
        let mut results = [failure(), failure(), Ok(())].into_iter();
        let mut pauses = 0;
        let done = insist(|| results.next().unwrap(), || pauses += 1);
        assert!(done.is_ok());
        assert_eq!(pauses, 2);
    }

    #[test]
    fn what_cannot_be_undone_is_given_up_at_last() {
        let mut tries = 0;
        let undo = || {
            tries += 1;
            failure()
        };
        assert!(insist(undo, || {}).is_err());
        assert_eq!(tries, TRIES);
    }
}
