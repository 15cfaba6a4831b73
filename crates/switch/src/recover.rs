//! What earlier processes left in the journal: put back, settled, or closed.

use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};

use crate::apply::Switch;
use crate::error::SwitchError;
use crate::journal::{Entry, Journal, JournalError};
use crate::kernel::Target;
use crate::machine::Machine;
use crate::record::{Attempt, Change, Record};
use crate::transaction::{settle_entry, undo_attempt};
use crate::undo;

/// What became of a record that an earlier process left.
#[derive(Debug)]
pub enum Recovered {
    /// Its owner still runs, or it still waits to be confirmed.
    Busy,
    /// The values did not outlive the boot, or went with their namespace or interface.
    Gone,
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
    if !is_of_this_boot || !reach(machine, record)? {
        entry.close()?;
        return Ok(Recovered::Gone);
    }
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
    resolve(journal, entry, machine)
}

/// Ends an attempt whose owner does not: lets it stand when another part of its command does, or puts it
/// back.
pub(crate) fn resolve(
    journal: &Journal,
    mut entry: Entry,
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
    undo_attempt(entry, machine)?;
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

/// Enters the namespace of a record. `false` when its interface is no more: the values went with it.
pub(crate) fn reach(machine: &mut Machine, record: &Record) -> Result<bool, SwitchError> {
    let is_there =
        machine
            .enter_inode(record.netns_inode)
            .map_err(|source| SwitchError::Namespace {
                interface: record.interface.name.clone(),
                source,
            })?;
    if !is_there {
        return Ok(false);
    }
    let links = machine.run(record.netns_inode, |control| control.links())??;
    Ok(links
        .iter()
        .any(|link| record.interface.is_still(&link.interface)))
}

/// What became of an interface that was to be put back.
#[derive(Debug)]
pub struct Restored {
    /// Which.
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
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut paths = vec![path.to_path_buf()];
    for (other, record) in journal.records()? {
        if record.is_ok_and(|record| record.companion_of.as_deref() == Some(&*name)) {
            paths.push(other);
        }
    }
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

fn put_back_entry(entry: &Entry, machine: &mut Machine) -> Result<Restored, SwitchError> {
    let record = entry.record();
    let target = record.target();
    let is_of_this_boot = record
        .is_of_this_boot()
        .map_err(JournalError::io(entry.path()))?;
    if !is_of_this_boot || !reach(machine, record)? {
        return Ok(Restored {
            target,
            changes: Vec::new(),
            drift: Vec::new(),
            is_gone: true,
        });
    }
    let changes = record.all_changes();
    let drift = undo::drift_before_putting_back(machine, &target, &changes)?;
    undo::put_back(machine, &target, &changes)?;
    Ok(Restored {
        target,
        changes,
        drift,
        is_gone: false,
    })
}
