//! What earlier processes left in the journal: put back, settled, or closed.

use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};

use crate::apply::Switch;
use crate::error::SwitchError;
use crate::journal::{Entry, Journal, JournalError};
use crate::kernel::Target;
use crate::machine::Machine;
use crate::record::{Attempt, Change};
use crate::transaction::{settle_entry, undo_attempt};
use crate::undo;
use crate::whereabouts::{Whereabouts, locate};

/// What became of a record that an earlier process left.
#[derive(Debug)]
pub enum Recovered {
    /// Its owner still runs, or it still waits to be confirmed.
    Busy,
    /// The values did not outlive the boot, or went with their interface.
    Gone,
    /// The interface was not found, and not every network namespace could be searched. The file is still there.
    NotFound,
    /// They were put back.
    Restored,
    /// They stand until they are undone.
    Standing,
    /// It is not a record, or putting back failed; the file is still there.
    Failed(SwitchError),
}

/// Now, in ns of CLOCK_BOOTTIME: time since the machine was started, sleep included.
pub fn boottime_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Puts back what processes that are no more have left, and closes records that nothing is left of.
pub fn recover(journal: &Journal) -> Result<Vec<(PathBuf, Recovered)>, SwitchError> {
    let mut outcomes = Vec::new();
    let mut machine = Machine::new();
    for path in journal.paths()? {
        let outcome = match journal.lock(&path) {
            Ok(Some(entry)) => {
                recover_entry(journal, entry, &mut machine).unwrap_or_else(Recovered::Failed)
            }
            Ok(None) => continue,
            Err(JournalError::Busy { .. }) => Recovered::Busy,
            Err(error) => Recovered::Failed(error.into()),
        };
        outcomes.push((path, outcome));
    }
    journal.sweep()?;
    Ok(outcomes)
}

fn recover_entry(
    journal: &Journal,
    entry: Entry,
    machine: &mut Machine,
) -> Result<Recovered, SwitchError> {
    let record = entry.record();
    let is_of_this_boot = record
        .is_of_this_boot()
        .map_err(JournalError::io(entry.path()))?;
    let target = match is_of_this_boot {
        true => locate(machine, &record.target())?,
        false => Whereabouts::Gone,
    };
    let target = match target {
        Whereabouts::At(target) => target,
        Whereabouts::Unknown => return Ok(Recovered::NotFound),
        Whereabouts::Gone => {
            entry.close()?;
            return Ok(Recovered::Gone);
        }
    };
    let Some(attempt) = &record.attempt else {
        if record.standing.is_empty() {
            entry.close()?;
            return Ok(Recovered::Gone);
        }
        let sake = record.companion_of.as_ref();
        if sake.is_some_and(|file| !journal.directory().join(file).exists()) {
            put_back_entry(&entry, machine)?;
            entry.close()?;
            return Ok(Recovered::Restored);
        }
        return Ok(Recovered::Standing);
    };
    let is_alive = attempt
        .owner
        .is_alive()
        .map_err(JournalError::io(entry.path()))?;
    let is_due = attempt
        .until_boottime_ns
        .is_some_and(|until| boottime_ns() >= until);
    if is_alive && !is_due {
        return Ok(Recovered::Busy);
    }
    resolve(journal, entry, &target, machine)
}

/// Ends an attempt whose owner does not: lets it stand when another part of its command does, or puts it
/// back. `target` is where the interface is now.
pub(crate) fn resolve(
    journal: &Journal,
    mut entry: Entry,
    target: &Target,
    machine: &mut Machine,
) -> Result<Recovered, SwitchError> {
    let record = entry.record();
    let had_standing = !record.standing.is_empty();
    if let Some(attempt) = &record.attempt
        && stands_elsewhere(journal, attempt)?
    {
        settle_entry(&mut entry)?;
        return Ok(Recovered::Standing);
    }
    undo_attempt(entry, target, machine)?;
    Ok(if had_standing {
        Recovered::Standing
    } else {
        Recovered::Restored
    })
}

/// Whether another interface of the same command stands already: then its last write was made, and all
/// are to stand.
fn stands_elsewhere(journal: &Journal, attempt: &Attempt) -> Result<bool, JournalError> {
    let records = journal.records()?;
    Ok(records.into_iter().any(|(path, record)| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_other = attempt.group.iter().any(|member| *member == name);
        is_other
            && record.is_ok_and(|record| record.transaction.as_ref() == Some(&attempt.transaction))
    }))
}

/// What became of an interface that was to be put back.
#[derive(Debug)]
#[non_exhaustive]
pub struct Restored {
    /// Where it was when it was last changed.
    pub recorded: Target,
    /// Which, and where it is now.
    pub target: Target,
    /// What was put back.
    pub changes: Vec<Change>,
    /// What had been changed by somebody else meanwhile.
    pub drift: Vec<undo::Drift>,
    /// Whether there was something left to put back: not when the interface or the boot is another.
    pub is_gone: bool,
}

/// Puts one interface back entirely, what stands included, and those that were changed for its sake.
///
/// # Errors
/// [`JournalError::Busy`] while a study holds it.
pub fn restore(switch: &mut Switch, path: &Path) -> Result<Vec<Restored>, SwitchError> {
    let journal = &switch.journal().clone();
    let machine = switch.machine();
    let paths = with_companions(journal, path)?;
    let mut restored = Vec::new();
    let mut done = Vec::new();
    for path in paths {
        if let Some(entry) = journal.lock(&path)? {
            restored.push(put_back_entry(&entry, machine)?);
            done.push(entry);
        }
    }
    // The interface's own record goes last: by it the others are found again after a kill.
    for entry in done.into_iter().rev() {
        entry.close()?;
    }
    Ok(restored)
}

/// What [`restore`] would put back: each interface, where it is now, with its changes. One that is no more is left out.
pub fn would_restore(
    switch: &mut Switch,
    path: &Path,
) -> Result<Vec<(Target, Vec<Change>)>, SwitchError> {
    let journal = &switch.journal().clone();
    let paths = with_companions(journal, path)?;
    let mut all = Vec::new();
    for (path, record) in journal.records()? {
        if !paths.contains(&path) {
            continue;
        }
        let record = record?;
        if let Whereabouts::At(target) = locate(switch.machine(), &record.target())? {
            all.push((target, record.all_changes()));
        }
    }
    Ok(all)
}

/// A record, and those of interfaces that were changed for its interface's sake.
fn with_companions(journal: &Journal, path: &Path) -> Result<Vec<PathBuf>, JournalError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut paths = vec![path.to_path_buf()];
    for (other, record) in journal.records()? {
        if record.is_ok_and(|record| record.companion_of.as_deref() == Some(&*name)) {
            paths.push(other);
        }
    }
    Ok(paths)
}

fn put_back_entry(entry: &Entry, machine: &mut Machine) -> Result<Restored, SwitchError> {
    let record = entry.record();
    let recorded = record.target();
    let is_of_this_boot = record
        .is_of_this_boot()
        .map_err(JournalError::io(entry.path()))?;
    let whereabouts = match is_of_this_boot {
        true => locate(machine, &recorded)?,
        false => Whereabouts::Gone,
    };
    let target = match whereabouts {
        Whereabouts::At(target) => target,
        Whereabouts::Unknown => return Err(SwitchError::not_found(entry)),
        Whereabouts::Gone => {
            return Ok(Restored {
                target: recorded.clone(),
                recorded,
                changes: Vec::new(),
                drift: Vec::new(),
                is_gone: true,
            });
        }
    };
    let changes = record.all_changes();
    let drift = undo::drift_before_putting_back(machine, &target, &changes)?;
    undo::put_back(machine, &target, &changes)?;
    Ok(Restored {
        recorded,
        target,
        changes,
        drift,
        is_gone: false,
    })
}
