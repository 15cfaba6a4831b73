//! The process that undoes a change which nobody confirms. It belongs to no terminal and no session, so it
//! outlives the program that started it and the connection that it came by.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow};
use nicpoll_switch::{
    DIRECTORY_VARIABLE, Journal, Machine, Owner, SwitchError, boottime_ns, standing,
};

use super::args::GuardArgs;
use crate::failure::Failure;
use crate::stop::Stop;

/// What the guard says when it no longer ends with its parent's terminal.
const READY: &str = "ready";
/// What it is told when everything has been changed; an end without it means that the parent died.
const STAY: &str = "stay";
/// How often it looks whether the change has been confirmed.
const LOOK: Duration = Duration::from_millis(250);

/// A guard that waits.
pub struct Guard {
    child: Child,
    /// The owner of the changes.
    pub owner: Owner,
}

impl Guard {
    /// Starts a guard. It must own the changes before the first of them is made.
    pub fn start(journal: &Journal, until_boottime_ns: u64) -> Result<Guard, Failure> {
        let program = std::env::current_exe().context("finding this program")?;
        let mut child = Command::new(program)
            .args(["guard", "--until", &until_boottime_ns.to_string()])
            // It needs nothing of the caller's.
            .env_clear()
            .env(DIRECTORY_VARIABLE, journal.directory())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("starting the process that undoes the change unless it is confirmed")?;
        let mut said = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut said)
                .context("waiting for the process that undoes the change")?;
        }
        if said.trim_end() != READY {
            let _ = child.wait();
            return Err(anyhow!("the process that undoes the change did not start").into());
        }
        let owner = Owner::of_process(child.id()).context("looking at the started process")?;
        Ok(Guard { child, owner })
    }

    /// Lets it wait on its own: everything has been changed.
    pub fn leave(mut self) -> Result<(), Failure> {
        let mut stdin = self.child.stdin.take();
        if let Some(stdin) = &mut stdin {
            writeln!(stdin, "{STAY}").context("leaving the change to its guard")?;
        }
        Ok(())
    }
}

/// Runs the guard.
pub fn guard(args: &GuardArgs) -> Result<u8, Failure> {
    rustix::process::setsid().context("leaving the caller's session")?;
    let stop = Stop::on_signals().context("catching signals")?;
    {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{READY}").context("telling the caller")?;
        stdout.flush().context("telling the caller")?;
    }
    let parent = Arc::new(Parent::default());
    let told = parent.clone();
    thread::spawn(move || {
        let mut said = String::new();
        let _ = io::stdin().lock().read_to_string(&mut said);
        let end = if said.trim_end() == STAY {
            &told.has_finished
        } else {
            &told.has_died
        };
        end.store(true, Ordering::Relaxed);
    });
    let journal = Journal::of_this_machine();
    let owner = Owner::this_process().context("looking at this process")?;
    wait(&journal, owner, args.until, &parent, &stop)?;
    undo(&journal, owner)?;
    Ok(0)
}

/// How the program ended that makes the changes.
#[derive(Default)]
struct Parent {
    /// Everything has been changed.
    has_finished: AtomicBool,
    /// It ended before that.
    has_died: AtomicBool,
}

/// Waits until the time has come, or nothing is left to be undone, or it is asked to end.
fn wait(
    journal: &Journal,
    owner: Owner,
    until: u64,
    parent: &Parent,
    stop: &Stop,
) -> Result<(), Failure> {
    while boottime_ns() < until
        && !stop.asked().load(Ordering::Relaxed)
        && !parent.has_died.load(Ordering::Relaxed)
    {
        // Asked first: what is made after the look is not missed then.
        let is_made = parent.has_finished.load(Ordering::Relaxed);
        if is_made && attempts_of(journal, owner)?.is_empty() {
            return Ok(());
        }
        let left = Duration::from_nanos(until.saturating_sub(boottime_ns()));
        thread::sleep(left.min(LOOK));
    }
    Ok(())
}

/// The records of changes that a guard owns and nobody has confirmed yet.
pub fn attempts_of(journal: &Journal, owner: Owner) -> Result<Vec<PathBuf>, Failure> {
    Ok(standing::attempts_of(journal, owner).map_err(anyhow::Error::from)?)
}

fn undo(journal: &Journal, owner: Owner) -> Result<(), Failure> {
    let mut machine = Machine::new();
    for path in attempts_of(journal, owner)? {
        loop {
            match standing::undo_unconfirmed(journal, &mut machine, &path, owner) {
                Ok(()) => break,
                // Whoever has it is confirming it or putting it back.
                Err(SwitchError::Journal(nicpoll_switch::JournalError::Busy { .. })) => {
                    thread::sleep(LOOK);
                }
                Err(error) => return Err(anyhow::Error::from(error).into()),
            }
        }
    }
    Ok(())
}
