//! Recovery: confirms, restores or closes the records that earlier commands and processes left in the journal.
//!
//! [`recover`] runs at every start, [`restore`] for `nicpoll restore`, [`confirm`] for `set --confirm`, and
//! [`undo_unconfirmed`] in the guard.

use std::path::{Path, PathBuf};

use nicpoll_model::{PendingShow, SwitchRestored, SwitchWrite};

use crate::apply::Switch;
use crate::error::SwitchError;
use crate::journal::{Change, Entry, Journal, Owner, Record, boottime_ns, journal_error};
use crate::kernel::{Kernel, Location, Machine, Target, locate};
use crate::persist::restore_files;
use crate::transaction::undo::{self, Drift};
use crate::transaction::{document, locate_entry, undo_attempt};

/// The outcome for a record that an earlier process left.
#[derive(Debug)]
pub enum Recovered {
    /// The owner still runs, or the change still waits to be confirmed.
    Busy,
    /// The values ended with the boot or with their interface.
    Gone,
    /// The interface was not found, and not every network namespace could be searched. The file was kept.
    NotFound,
    /// The values were restored.
    Restored,
    /// The values stand until they are undone.
    Standing,
    /// The file is not a record, or restoring failed. It was kept.
    Failed(SwitchError),
}

/// Restores the changes of processes that have ended, and closes records without changes in force.
pub fn recover(journal: &Journal) -> Result<Vec<(PathBuf, Recovered)>, SwitchError> {
    let mut outcomes = Vec::new();
    let mut machine = Machine::new();
    // Files first: whether the settings were settled decides about the files.
    match restore_files(journal) {
        Ok(files) => outcomes.extend(files.into_iter().map(|path| (path, Recovered::Restored))),
        Err(SwitchError::Busy(_)) => {}
        Err(error) => outcomes.push((journal.directory().to_path_buf(), Recovered::Failed(error))),
    }
    for path in journal.paths()? {
        let outcome = match journal.lock(&path) {
            Ok(Some(entry)) => recover_entry(journal, entry, &mut machine),
            Ok(None) => continue,
            Err(error) => Err(error),
        };
        let outcome = outcome.unwrap_or_else(|error| match error {
            SwitchError::NotFound(_) => Recovered::NotFound,
            SwitchError::Busy(_) => Recovered::Busy,
            error => Recovered::Failed(error),
        });
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
    let is_empty = record.standing.is_empty() && record.attempt.is_none();
    let target = locate_entry(&entry, machine)?.filter(|_| !is_empty);
    let Some(target) = target else {
        entry.close()?;
        return Ok(Recovered::Gone);
    };
    let Some(attempt) = &record.attempt else {
        let of = record.companion_of.as_ref();
        if of.is_some_and(|file| !journal.directory().join(file).exists()) {
            restore_entry(&entry, machine)?;
            entry.close()?;
            return Ok(Recovered::Restored);
        }
        return Ok(Recovered::Standing);
    };
    let is_alive = attempt.owner.is_alive();
    let is_alive = is_alive.map_err(journal_error(entry.path()))?;
    let until = attempt.until_boottime_ns;
    if is_alive && until.is_none_or(|until| boottime_ns() < until) {
        return Ok(Recovered::Busy);
    }
    end_attempt(journal, entry, &target, machine)
}

/// Ends an attempt whose owner is gone or whose time is over: it stands if another interface of its command is settled,
/// and is undone otherwise. `target` is where the interface is now.
fn end_attempt(
    journal: &Journal,
    mut entry: Entry,
    target: &Target,
    machine: &mut Machine,
) -> Result<Recovered, SwitchError> {
    let record = entry.record();
    let had_standing = !record.standing.is_empty();
    if let Some(attempt) = &record.attempt
        && journal.is_settled_elsewhere(attempt)?
    {
        entry.update(Record::settle)?;
        return Ok(Recovered::Standing);
    }
    undo_attempt(entry, target, machine)?;
    Ok(match had_standing {
        true => Recovered::Standing,
        false => Recovered::Restored,
    })
}

/// The result of restoring an interface.
#[derive(Debug)]
#[non_exhaustive]
pub struct Restored {
    /// The interface at its last change.
    pub recorded: Target,
    /// The interface as it is now.
    pub target: Target,
    /// The restored changes.
    pub changes: Vec<Change>,
    /// The values that somebody else had changed meanwhile.
    pub drift: Vec<Drift>,
    /// Whether nothing was left to restore, because the interface or the boot ended.
    pub is_gone: bool,
}

impl Restored {
    /// Returns the result as documents have it, with names as seen from a namespace.
    pub fn document(&self, own_netns_inode: u64) -> SwitchRestored {
        let interface = self.target.label(own_netns_inode);
        let drift = self.drift.iter();
        let mut notes: Vec<String> = drift.map(|drift| drift.describe(&interface)).collect();
        let was = self.recorded.label(own_netns_inode);
        if was != interface {
            notes.push(format!(
                "{was} was moved or renamed, and is {interface} now"
            ));
        }
        if self.is_gone {
            notes.push(format!(
                "{interface} no longer exists, and neither do the values set on it"
            ));
        }
        SwitchRestored {
            interface,
            is_as_before: !self.is_gone,
            notes,
        }
    }

    /// Returns the writes, each from the value found to the original one.
    pub fn writes(&self) -> Vec<SwitchWrite> {
        let of = |change: &Change| {
            let drift = self.drift.iter().find(|one| one.knob == change.knob);
            let now = match drift {
                Some(drift) => drift.now.as_ref()?,
                None => &change.written,
            };
            let differs = *now != change.before;
            differs.then(|| document(&self.target, &change.knob, [now, &change.before], false))
        };
        self.changes.iter().filter_map(of).collect()
    }
}

/// Restores one interface entirely, and its companions.
///
/// # Errors
/// [`SwitchError::Busy`] while a study holds it.
pub fn restore(switch: &mut Switch, path: &Path) -> Result<Vec<Restored>, SwitchError> {
    let journal = &switch.journal().clone();
    let machine = switch.machine();
    let mut restored = Vec::new();
    let mut done = Vec::new();
    for path in with_companions(journal, path)? {
        if let Some(entry) = journal.lock(&path)? {
            restored.push(restore_entry(&entry, machine)?);
            done.push(entry);
        }
    }
    // The interface's own record goes last: after a kill it leads to the companions.
    for entry in done.into_iter().rev() {
        entry.close()?;
    }
    Ok(restored)
}

/// Returns the changes that [`restore`] would undo, by interface. Interfaces that no longer exist are left out.
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
        if let Location::At(target) = locate(switch.machine(), &record.target())? {
            all.push((target, record.all_changes()));
        }
    }
    Ok(all)
}

/// Lists a record and those of its interface's companions.
fn with_companions(journal: &Journal, path: &Path) -> Result<Vec<PathBuf>, SwitchError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut paths = vec![path.to_path_buf()];
    for (other, record) in journal.records()? {
        if record.is_ok_and(|record| record.companion_of.as_deref() == Some(&*name)) {
            paths.push(other);
        }
    }
    Ok(paths)
}

fn restore_entry(entry: &Entry, machine: &mut Machine) -> Result<Restored, SwitchError> {
    let record = entry.record();
    let recorded = record.target();
    let Some(target) = locate_entry(entry, machine)? else {
        return Ok(Restored {
            target: recorded.clone(),
            recorded,
            changes: Vec::new(),
            drift: Vec::new(),
            is_gone: true,
        });
    };
    let changes = record.all_changes();
    let drift = undo::drift_before_putting_back(machine, &target, &changes)?;
    undo::restore(machine, &target, &changes)?;
    Ok(Restored {
        recorded,
        target,
        changes,
        drift,
        is_gone: false,
    })
}

/// Confirms the last change of an interface and every other change of the same command. Returns the changes in force,
/// by interface; none if nothing waits to be confirmed.
pub fn confirm(journal: &Journal, path: &Path) -> Result<Vec<(Target, Vec<Change>)>, SwitchError> {
    let Some(first) = journal.lock(path)? else {
        return Ok(Vec::new());
    };
    let Some(attempt) = first.record().attempt.clone() else {
        return Ok(Vec::new());
    };
    let is_of_command = |entry: &Entry| {
        let own = entry.record().attempt.as_ref();
        own.is_some_and(|own| own.transaction == attempt.transaction)
    };
    let mut entries = vec![first];
    for member in &attempt.group {
        let other = journal.directory().join(member);
        if other != path {
            entries.extend(journal.lock(&other)?.filter(is_of_command));
        }
    }
    let mut confirmed = Vec::new();
    for mut entry in entries {
        entry.update(Record::settle)?;
        let record = entry.record();
        confirmed.push((record.target(), record.standing.clone()));
    }
    Ok(confirmed)
}

/// Lists the records with an unconfirmed change of this owner.
pub fn attempts_of(journal: &Journal, owner: Owner) -> Result<Vec<PathBuf>, SwitchError> {
    let is_own = |record: &Result<Record, SwitchError>| {
        let attempt = record.as_ref().ok().and_then(|one| one.attempt.as_ref());
        attempt.is_some_and(|attempt| attempt.owner == owner)
    };
    let records = journal.records()?.into_iter();
    let own = records.filter(|(_, record)| is_own(record));
    Ok(own.map(|(path, _)| path).collect())
}

/// Undoes an unconfirmed change; it stands if another interface of its command is settled.
///
/// # Errors
/// [`SwitchError::Busy`] while another process has the record.
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
    match locate_entry(&entry, machine)? {
        Some(target) => end_attempt(journal, entry, &target, machine).map(drop),
        None => entry.close(),
    }
}

/// Returns the interface's values that somebody else has changed since; none if it has no record.
///
/// # Errors
/// When its record cannot be read.
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

/// Returns the unconfirmed change of an interface.
///
/// # Errors
/// When its record cannot be read.
pub fn pending_of(journal: &Journal, target: &Target) -> Result<Option<PendingShow>, SwitchError> {
    let Some(attempt) = record_of(journal, target)?.and_then(|record| record.attempt) else {
        return Ok(None);
    };
    let is_owner_alive = attempt.owner.is_alive();
    let is_owner_alive = is_owner_alive.map_err(journal_error(journal.directory()))?;
    let until = attempt.until_boottime_ns;
    Ok(Some(PendingShow {
        owner_pid: attempt.owner.pid,
        is_owner_alive,
        undone_in_seconds: until.map(|until| (until as f64 - boottime_ns() as f64) / 1e9),
    }))
}

fn record_of(journal: &Journal, target: &Target) -> Result<Option<Record>, SwitchError> {
    let own_path = journal.path_of(target);
    let mut records = journal.records()?.into_iter();
    let own = records.find(|(path, _)| *path == own_path);
    let record = own.map(|(_, record)| record).transpose()?;
    Ok(record.filter(|record| {
        let is_of_this_boot = record.is_of_this_boot().unwrap_or(false);
        is_of_this_boot && record.interface.is_still(&target.interface)
    }))
}
