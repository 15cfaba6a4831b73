//! The guard: a process of its own that owns changes which must not outlive their client.
//!
//! It belongs to no terminal and no session, so it outlives the program that started it and the connection that it
//! came by. What must hold: it owns the changes before the first of them is made; it undoes what is left within
//! a second after its client is gone, kill -9 included, or when their time has come; until then it refers to no
//! network namespace, so it keeps none alive.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use thiserror::Error;

use crate::error::SwitchError;
use crate::journal::{DIRECTORY_VARIABLE, Journal, JournalError};
use crate::machine::Machine;
use crate::owner::Owner;
use crate::recover::boottime_ns;
use crate::standing::{attempts_of, undo_unconfirmed};

/// What the guard says when it no longer ends with its client's terminal.
const READY: &str = "ready";
/// What it is told when everything has been changed and is to wait for its time; an end without it means that the
/// client is gone.
const STAY: &str = "stay";
/// How often it looks whether the change has been confirmed, and whether it is asked to end.
const LOOK: Duration = Duration::from_millis(250);

/// How often it tries to undo a change that cannot be undone: for a minute.
const TRIES: u32 = 240;

/// The argument with which a program that has guards runs [`watch_over`]; `--until NS` may follow.
pub const GUARD_COMMAND: &str = "guard";

/// What starts a guard: the calling program once more, with [`GUARD_COMMAND`].
pub fn guard_of_this_program() -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(GUARD_COMMAND);
    Ok(command)
}

/// Why there is no guard.
#[derive(Debug, Error)]
#[error("the process that undoes the change did not start")]
pub struct GuardError(#[from] io::Error);

/// A guard that waits, as its client sees it. Once it is dropped the guard undoes what is left and ends.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    owner: Owner,
}

impl Guard {
    /// Starts a guard with `program`, which has to call [`watch_over`]. With `until_boottime_ns` it undoes the changes
    /// at that time.
    pub fn start(
        mut program: Command,
        journal: &Journal,
        until_boottime_ns: Option<u64>,
    ) -> Result<Guard, GuardError> {
        if let Some(until) = until_boottime_ns {
            program.args(["--until", &until.to_string()]);
        }
        let mut child = program
            // It needs nothing of the caller's.
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
            return Err(io::Error::other("it does not say that it is ready").into());
        }
        let owner = Owner::of_process(child.id())?;
        Ok(Guard { child, owner })
    }

    /// The owner of the changes.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Lets it wait on its own: everything has been changed.
    pub fn leave(mut self) -> io::Result<()> {
        match &mut self.child.stdin {
            Some(stdin) => writeln!(stdin, "{STAY}"),
            None => Ok(()),
        }
    }
}

/// How the client ended its part.
enum Client {
    /// Everything has been changed.
    HasFinished,
    /// It is gone.
    IsGone,
}

/// Watches over the changes that the calling process owns: the whole of the program that [`Guard::start`] starts.
/// Returns when nothing is left to be undone. `stop` asks it to undo them at once.
pub fn watch_over(
    journal: &Journal,
    until_boottime_ns: Option<u64>,
    stop: &AtomicBool,
) -> Result<(), SwitchError> {
    let failed = |source| JournalError::io(journal.directory())(source);
    rustix::process::setsid().map_err(|error| failed(error.into()))?;
    let owner = Owner::this_process().map_err(failed)?;
    say_ready().map_err(failed)?;
    let (client, ended) = mpsc::channel();
    thread::spawn(move || {
        let mut said = String::new();
        let _ = io::stdin().lock().read_to_string(&mut said);
        let end = match said.trim_end() {
            STAY => Client::HasFinished,
            _ => Client::IsGone,
        };
        let _ = client.send(end);
    });
    wait(journal, owner, until_boottime_ns, &ended, stop)?;
    undo(journal, owner)
}

fn say_ready() -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{READY}")?;
    stdout.flush()
}

/// Waits until the time has come, the client is gone, nothing is left to be undone, or somebody asks for an end.
fn wait(
    journal: &Journal,
    owner: Owner,
    until_boottime_ns: Option<u64>,
    ended: &mpsc::Receiver<Client>,
    stop: &AtomicBool,
) -> Result<(), SwitchError> {
    let until = until_boottime_ns.unwrap_or(u64::MAX);
    let mut has_finished = false;
    while boottime_ns() < until && !stop.load(Ordering::Relaxed) {
        if has_finished && attempts_of(journal, owner)?.is_empty() {
            return Ok(());
        }
        let left = Duration::from_nanos(until.saturating_sub(boottime_ns())).min(LOOK);
        match ended.recv_timeout(left) {
            Ok(Client::HasFinished) => has_finished = true,
            Ok(Client::IsGone) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
            // After the client's last word.
            Err(RecvTimeoutError::Disconnected) => thread::sleep(left),
        }
    }
    Ok(())
}

fn undo(journal: &Journal, owner: Owner) -> Result<(), SwitchError> {
    let mut outcome = Ok(());
    for path in attempts_of(journal, owner)? {
        let undo = || undo_unconfirmed(journal, &mut Machine::new(), &path, owner);
        // The others are put back whatever becomes of this one.
        outcome = outcome.and(insist(undo, || thread::sleep(LOOK)));
    }
    outcome
}

/// Tries again what failed: a namespace that is just being taken down, or one that could not be searched, is another
/// matter a moment later, and nobody else may come by who would put the values back.
fn insist(
    mut undo: impl FnMut() -> Result<(), SwitchError>,
    mut pause: impl FnMut(),
) -> Result<(), SwitchError> {
    let mut tries_left = TRIES;
    loop {
        match undo() {
            // Whoever has it is confirming it or putting it back, or is not quite gone.
            Err(SwitchError::Journal(JournalError::Busy { .. })) => {}
            Err(_) if tries_left > 1 => tries_left -= 1,
            done => return done,
        }
        pause();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> Result<(), SwitchError> {
        Err(
            JournalError::io(std::path::Path::new("/run/nicpoll"))(io::ErrorKind::Other.into())
                .into(),
        )
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
