//! A transaction: everything that one command changes, on one interface or many. Either all of it is changed, or
//! nothing.
//!
//! Each old value is on disk before its new one is written. A process killed at any moment leaves records from which
//! every value can be restored. Once one of the interfaces is settled, all are. `undo` has the order of restoring.

use std::sync::atomic::{AtomicU64, Ordering};

use nicpoll_model::{SwitchValue, SwitchWrite};

use crate::error::SwitchError;
use crate::journal::{
    Attempt, Change, Entry, Journal, Owner, Record, fault_point, journal_error, merged,
};
use crate::kernel::{Kernel, Location, Machine, Target, locate};
use crate::knob::{KnobUnit, ScopedKnob, Value};
use crate::plan::Write;

pub(crate) mod undo;

/// The locked interfaces of a command, and the changes made on them. Nobody else can change these interfaces meanwhile.
///
/// Dropping it does *not* undo the changes, since that needs the [`crate::Switch`]: `restore` does. If it is dropped
/// unrestored, the owner's guard or [`crate::recover()`] at the next start undoes them.
#[derive(Debug)]
pub struct Held {
    entries: Vec<Entry>,
}

impl Held {
    /// Locks the interfaces, before any change.
    ///
    /// A companion is an interface that is changed only because another one needs it, such as the other end of a pair.
    /// It is restored with that one.
    ///
    /// # Errors
    /// When another process has one of them, or an earlier change of one waits to be confirmed.
    pub fn begin(
        journal: &Journal,
        owner: Owner,
        until_boottime_ns: Option<u64>,
        targets: &[Target],
        companions: &[(Target, Target)],
    ) -> Result<Self, SwitchError> {
        let mut wanted: Vec<(&Target, Option<&Target>)> =
            targets.iter().map(|target| (target, None)).collect();
        for (target, of) in companions {
            if !targets.contains(target) {
                wanted.push((target, Some(of)));
            }
        }
        // Every command locks in the same order: of two commands, one gets all interfaces.
        wanted.sort_by_key(|(target, _)| Journal::file_name(target));
        let group = wanted.iter().map(|(target, _)| Journal::file_name(target));
        let attempt = Attempt {
            owner,
            transaction: transaction_id(owner),
            group: group.collect(),
            until_boottime_ns,
            changes: Vec::new(),
        };
        let mut transaction = Held {
            entries: Vec::new(),
        };
        match transaction.take(journal, &attempt, &wanted) {
            Ok(()) => Ok(transaction),
            Err(error) => {
                transaction.entries.into_iter().try_for_each(end_attempt)?;
                Err(error)
            }
        }
    }

    fn take(
        &mut self,
        journal: &Journal,
        attempt: &Attempt,
        wanted: &[(&Target, Option<&Target>)],
    ) -> Result<(), SwitchError> {
        for (target, companion_of) in wanted {
            let companion_of = companion_of.map(Journal::file_name);
            let begin = |record: &mut Record| {
                if companion_of.is_none() || record.standing.is_empty() {
                    record.companion_of.clone_from(&companion_of);
                }
                record.attempt = Some(attempt.clone());
            };
            // A new record names its owner from the start: a guard looks for its own records.
            let mut entry = journal.take(target, begin)?;
            let taken = match &entry.record().attempt {
                Some(own) if own == attempt => Ok(()),
                Some(_) => return Err(unconfirmed(target)),
                None => entry.update(begin),
            };
            self.entries.push(entry);
            taken?;
        }
        Ok(())
    }

    /// Makes changes: records them all, writes them one by one, then checks that each took effect.
    pub fn write(&mut self, kernel: &mut dyn Kernel, writes: &[Write]) -> Result<(), SwitchError> {
        self.record(writes)?;
        self.carry_out(kernel, writes)
    }

    /// Records changes before they are made. They are on disk when this returns.
    pub fn record(&mut self, writes: &[Write]) -> Result<(), SwitchError> {
        for entry in &mut self.entries {
            let changes = changes_of(&entry.record().target(), writes);
            if !changes.is_empty() {
                entry.update(|record| {
                    if let Some(attempt) = &mut record.attempt {
                        attempt.changes = merged(&attempt.changes, &changes);
                    }
                })?;
            }
        }
        Ok(())
    }

    /// Makes recorded changes: writes them one by one, then checks that each took effect.
    pub fn carry_out(&self, kernel: &mut dyn Kernel, writes: &[Write]) -> Result<(), SwitchError> {
        for entry in &self.entries {
            let target = entry.record().target();
            let changes = changes_of(&target, writes);
            if lowers_count(&changes) {
                undo::come_to_rest(kernel, &target, &changes)?;
            }
        }
        for write in writes {
            let (target, Change { knob, written, .. }) = (&write.target, &write.change);
            // Another write has changed it already, unless coming to rest set it to 0.
            if write.is_implied && kernel.read(target, knob)?.as_ref() == Some(written) {
                continue;
            }
            fault_point();
            let done = kernel.write(target, knob, written);
            done.map_err(|error| undo::refused(error, target, knob, written))?;
        }
        for write in writes {
            let (target, Change { knob, written, .. }) = (&write.target, &write.change);
            let now = kernel.read(target, knob)?;
            if now.as_ref() != Some(written) {
                return Err(undo::not_taken(target, knob, written, now));
            }
        }
        Ok(())
    }

    /// Undoes changes that were carried out. Their record stays, so they can be carried out again.
    pub fn take_back(&self, kernel: &mut dyn Kernel, writes: &[Write]) -> Result<(), SwitchError> {
        for entry in self.entries.iter().rev() {
            let target = entry.record().target();
            let changes = changes_of(&target, writes);
            if !changes.is_empty() {
                undo::restore(kernel, &target, &changes)?;
            }
        }
        Ok(())
    }

    /// Returns every held value that differs from the one before.
    pub fn writes(&self) -> Vec<SwitchWrite> {
        let of = |entry: &Entry| {
            let attempt = entry.record().attempt.as_ref();
            let changes = attempt.map_or_else(Vec::new, |attempt| merged(&[], &attempt.changes));
            writes_kept(&entry.record().target(), &changes)
        };
        self.entries.iter().flat_map(of).collect()
    }

    /// Makes the changes permanent until they are undone.
    pub fn settle(self) -> Result<(), SwitchError> {
        for mut entry in self.entries {
            entry.update(Record::settle)?;
            if entry.record().standing.is_empty() {
                entry.close()?;
            }
        }
        Ok(())
    }

    /// Leaves the changes to their owner until they are confirmed.
    pub fn leave(self) {}

    /// Undoes every change of the transaction, last interface first.
    pub fn undo(self, kernel: &mut dyn Kernel) -> Result<(), SwitchError> {
        for entry in self.entries.into_iter().rev() {
            let target = entry.record().target();
            undo_attempt(entry, &target, kernel)?;
        }
        Ok(())
    }

    /// Undoes every change wherever the interfaces are now. The values of interfaces that no longer exist are gone. An
    /// interface that cannot be restored does not keep the others from it.
    pub(crate) fn undo_wherever(self, machine: &mut Machine) -> Result<(), SwitchError> {
        let mut outcome = Ok(());
        for entry in self.entries.into_iter().rev() {
            let done = match locate_entry(&entry, machine) {
                Ok(Some(target)) => undo_attempt(entry, &target, machine),
                Ok(None) => entry.close(),
                Err(error) => Err(error),
            };
            outcome = outcome.and(done);
        }
        outcome
    }
}

/// Finds the interface of a record; `None` if its values ended with the interface or the boot.
///
/// # Errors
/// [`SwitchError::NotFound`] if it may be in a namespace that cannot be searched.
pub(crate) fn locate_entry(
    entry: &Entry,
    machine: &mut Machine,
) -> Result<Option<Target>, SwitchError> {
    let record = entry.record();
    let is_of_this_boot = record.is_of_this_boot();
    if !is_of_this_boot.map_err(journal_error(entry.path()))? {
        return Ok(None);
    }
    match locate(machine, &record.target())? {
        Location::At(target) => Ok(Some(target)),
        Location::Gone => Ok(None),
        Location::Unknown => Err(not_found(entry)),
    }
}

/// Undoes an attempt; earlier changes stay. `target` is where the interface is now.
pub(crate) fn undo_attempt(
    entry: Entry,
    target: &Target,
    kernel: &mut dyn Kernel,
) -> Result<(), SwitchError> {
    if let Some(attempt) = &entry.record().attempt {
        let changes = merged(&[], &attempt.changes);
        undo::restore(kernel, target, &changes)?;
    }
    end_attempt(entry)
}

/// Removes an attempt without changes in force. A record with nothing else is removed in one step: without its attempt
/// it would have no owner.
fn end_attempt(mut entry: Entry) -> Result<(), SwitchError> {
    if entry.record().standing.is_empty() {
        return entry.close();
    }
    entry.update(|record| record.attempt = None)
}

/// Returns the changes of one interface.
pub(crate) fn changes_of(target: &Target, writes: &[Write]) -> Vec<Change> {
    let own = writes.iter().filter(|write| write.target == *target);
    own.map(|write| write.change.clone()).collect()
}

/// The error when an earlier change of an interface still waits to be confirmed.
fn unconfirmed(target: &Target) -> SwitchError {
    let (name, netns) = (&target.interface.name, target.netns_option());
    SwitchError::Failed(format!(
        "interface {name} has a change that is not confirmed; keep it with 'nicpoll set {name}{netns} --confirm', or \
         undo it with 'nicpoll set {name}{netns} -polling'"
    ))
}

/// The error when the interface of a record was not found but may still exist.
fn not_found(entry: &Entry) -> SwitchError {
    let record = entry.record();
    let changed = record.all_changes().into_iter().filter(Change::is_any);
    let text =
        |change: Change| format!("{} {}, was {}", change.knob, change.written, change.before);
    SwitchError::NotFound(format!(
        "{} is in no network namespace that can be searched from here. It may still have these values: {}; \
         its record {} is kept. Move the interface to a namespace that 'ip netns' lists, then: nicpoll restore. If \
         the interface no longer exists, remove the record",
        record.interface.name,
        changed.map(text).collect::<Vec<_>>().join(", "),
        entry.path().display()
    ))
}

impl From<&Write> for SwitchWrite {
    fn from(write: &Write) -> Self {
        let (target, change) = (&write.target, &write.change);
        let values = [&change.before, &change.written];
        document(target, &change.knob, values, write.is_implied)
    }
}

/// Makes the form of a write that documents have.
pub(crate) fn document(
    target: &Target,
    knob: &ScopedKnob,
    [before, after]: [&Value; 2],
    is_implied: bool,
) -> SwitchWrite {
    SwitchWrite {
        interface: target.interface.name.clone(),
        netns_inode: target.netns_inode,
        napi_id: knob.napi_id(),
        name: knob.name().into_owned(),
        before: SwitchValue::from(before),
        after: SwitchValue::from(after),
        is_implied,
    }
}

impl From<&Value> for SwitchValue {
    fn from(value: &Value) -> Self {
        match value {
            Value::Number(number) => SwitchValue::Number(*number),
            Value::Cpus(cpus) => SwitchValue::Cpus(cpus.clone()),
            Value::Policy(_) | Value::Text(_) => SwitchValue::Words(value.to_string()),
        }
    }
}

/// Returns the changed values of an interface as documents have them, from the value before to the written one.
pub fn writes_kept(target: &Target, changes: &[Change]) -> Vec<SwitchWrite> {
    let changed = changes.iter().filter(|change| change.is_any());
    let write = |Change {
                     knob,
                     before,
                     written,
                 }: &Change| {
        document(target, knob, [before, written], knob.of_device().is_some())
    };
    changed.map(write).collect()
}

/// Returns the writes that would undo changes.
pub fn writes_back(target: &Target, changes: &[Change]) -> Vec<SwitchWrite> {
    let changed = changes.iter().filter(|change| change.is_any());
    let back = |one: &Change| document(target, &one.knob, [&one.written, &one.before], false);
    changed.map(back).collect()
}

/// An idle NAPI keeps counting down its old number, so a smaller one has to start from rest.
fn lowers_count(changes: &[Change]) -> bool {
    changes.iter().any(|change| {
        change.knob.is_deferral()
            && change.knob.row().unit == KnobUnit::Count
            && change.written.number() < change.before.number()
    })
}

/// Makes an id that is unique in this boot.
fn transaction_id(owner: Owner) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let own = std::process::id();
    format!("{}-{}-{own}-{count}", owner.pid, owner.start_time_ticks)
}

#[cfg(test)]
mod tests;
