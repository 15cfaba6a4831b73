//! What becomes of changes that were made: confirmed, undone by whoever guards them, or compared with what is there.

use std::path::{Path, PathBuf};

use nicpoll_model::PendingShow;

use crate::error::SwitchError;
use crate::journal::{Entry, Journal, JournalError};
use crate::kernel::{Kernel, Target};
use crate::machine::Machine;
use crate::owner::Owner;
use crate::record::{Change, Record};
use crate::recover::{boottime_ns, resolve};
use crate::transaction::settle_entry;
use crate::undo::{self, Drift};
use crate::whereabouts::{Whereabouts, locate};

/// Lets the last change of an interface stand, and with it everything that the same command changed. Returns what is
/// kept, of each interface; none when nothing waits to be confirmed.
pub fn confirm(journal: &Journal, path: &Path) -> Result<Vec<(Target, Vec<Change>)>, SwitchError> {
    let Some(first) = journal.lock(path)? else {
        return Ok(Vec::new());
    };
    let Some(attempt) = first.record().attempt.clone() else {
        return Ok(Vec::new());
    };
    let mut entries = vec![first];
    for member in &attempt.group {
        let other = journal.directory().join(member);
        if other == path {
            continue;
        }
        let entry = journal.lock(&other)?;
        entries.extend(entry.filter(|entry| is_of(entry, &attempt.transaction)));
    }
    let mut kept = Vec::new();
    for mut entry in entries {
        settle_entry(&mut entry)?;
        kept.push((entry.record().target(), entry.record().standing.clone()));
    }
    Ok(kept)
}

fn is_of(entry: &Entry, transaction: &str) -> bool {
    let attempt = entry.record().attempt.as_ref();
    attempt.is_some_and(|attempt| attempt.transaction == transaction)
}

/// The records that wait for this owner.
pub fn attempts_of(journal: &Journal, owner: Owner) -> Result<Vec<PathBuf>, SwitchError> {
    let records = journal.records()?.into_iter();
    Ok(records
        .filter(|(_, record)| {
            let attempt = record.as_ref().ok().and_then(|r| r.attempt.as_ref());
            attempt.is_some_and(|attempt| attempt.owner == owner)
        })
        .map(|(path, _)| path)
        .collect())
}

/// Undoes an attempt that was not confirmed, or lets it stand when another part of its command does.
///
/// # Errors
/// [`JournalError::Busy`](crate::JournalError::Busy) while somebody else has the record.
pub fn undo_unconfirmed(
    journal: &Journal,
    machine: &mut Machine,
    path: &Path,
    owner: Owner,
) -> Result<(), SwitchError> {
    let Some(entry) = journal.lock(path)? else {
        return Ok(());
    };
    let attempt = entry.record().attempt.as_ref();
    if attempt.is_none_or(|attempt| attempt.owner != owner) {
        return Ok(());
    }
    match locate(machine, &entry.record().target())? {
        Whereabouts::At(target) => resolve(journal, entry, &target, machine).map(drop),
        Whereabouts::Gone => Ok(entry.close()?),
        Whereabouts::Unknown => Err(SwitchError::not_found(&entry)),
    }
}

/// What somebody else changed on an interface since it was set; none when nothing is recorded of it.
///
/// # Errors
/// When what is recorded of it cannot be read.
pub fn drift_of(
    journal: &Journal,
    kernel: &mut dyn Kernel,
    target: &Target,
) -> Result<Vec<Drift>, SwitchError> {
    match record_of(journal, target)? {
        Some(record) => undo::drift(kernel, target, &record.all_changes()),
        None => Ok(Vec::new()),
    }
}

/// The change of an interface that does not stand yet.
///
/// # Errors
/// When what is recorded of it cannot be read.
pub fn pending_of(journal: &Journal, target: &Target) -> Result<Option<PendingShow>, SwitchError> {
    let Some(attempt) = record_of(journal, target)?.and_then(|record| record.attempt) else {
        return Ok(None);
    };
    let is_owner_alive = attempt.owner.is_alive();
    let is_owner_alive = is_owner_alive.map_err(JournalError::io(journal.directory()))?;
    let until = attempt.until_boottime_ns;
    Ok(Some(PendingShow {
        owner_pid: attempt.owner.pid,
        is_owner_alive,
        undone_in_seconds: until.map(|until| (until as f64 - boottime_ns() as f64) / 1e9),
    }))
}

fn record_of(journal: &Journal, target: &Target) -> Result<Option<Record>, SwitchError> {
    let name = Journal::file_name(target);
    let mut records = journal.records()?.into_iter();
    let own = records.find(|(path, _)| path.file_name().is_some_and(|file| *file == *name));
    let record = own.map(|(_, record)| record).transpose()?;
    Ok(record.filter(|record| {
        let is_of_this_boot = record.is_of_this_boot().unwrap_or(false);
        is_of_this_boot && record.interface.is_still(&target.interface)
    }))
}
