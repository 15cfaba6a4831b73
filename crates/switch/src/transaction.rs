//! Everything that one command changes, on one interface or many: all of it, or none.
//!
//! What must hold: each old value is on disk before its new one is written; whoever dies in the middle leaves
//! records from which everything can be put back; and once one of the interfaces stands, all do.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::SwitchError;
use crate::fault;
use crate::journal::{Entry, Journal, JournalError};
use crate::kernel::{Kernel, Target};
use crate::knob::{Knob, Unit, Value};
use crate::machine::Machine;
use crate::owner::Owner;
use crate::record::{Attempt, Change, Record, merged};
use crate::undo;
use crate::whereabouts::{Whereabouts, locate};

/// A change to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Of which interface.
    pub target: Target,
    /// Which knob.
    pub knob: Knob,
    /// What it holds now.
    pub from: Value,
    /// What it is to hold.
    pub to: Value,
    /// Whether the kernel does it along with another write, or nothing is to change: it is recorded, and
    /// written only where it turns out not to be so.
    pub is_implied: bool,
}

/// How long the changes last, and whose they are.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The process whose end undoes them while they do not stand.
    pub owner: Owner,
    /// When they are undone unless they are confirmed, in ns of CLOCK_BOOTTIME.
    pub until_boottime_ns: Option<u64>,
}

/// Interfaces that are taken for a change, and what was changed on them.
#[derive(Debug)]
pub struct Transaction {
    entries: Vec<Entry>,
}

impl Transaction {
    /// Takes the interfaces. Nothing is changed yet.
    ///
    /// A companion is an interface that is changed only for another one's sake, such as the other end of
    /// a pair; it is put back with that one.
    ///
    /// # Errors
    /// When somebody else has one of them, or an earlier change of one waits to be confirmed.
    pub fn begin(
        journal: &Journal,
        terms: Terms,
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
        // In one order everywhere, so that of two commands one gets all.
        wanted.sort_by_key(|(target, _)| Journal::file_name(target));
        let mut transaction = Transaction {
            entries: Vec::new(),
        };
        match transaction.take(journal, terms, &wanted) {
            Ok(()) => Ok(transaction),
            Err(error) => {
                transaction.drop_attempts()?;
                Err(error.into())
            }
        }
    }

    fn take(
        &mut self,
        journal: &Journal,
        terms: Terms,
        wanted: &[(&Target, Option<&Target>)],
    ) -> Result<(), JournalError> {
        let group: Vec<String> = wanted
            .iter()
            .map(|(target, _)| Journal::file_name(target))
            .collect();
        let attempt = Attempt {
            owner: terms.owner,
            transaction: transaction_id(terms.owner),
            group,
            until_boottime_ns: terms.until_boottime_ns,
            changes: Vec::new(),
        };
        for (target, companion_of) in wanted {
            let companion_of = companion_of.map(Journal::file_name);
            let begin = |record: &mut Record| {
                if companion_of.is_none() || record.standing.is_empty() {
                    record.companion_of.clone_from(&companion_of);
                }
                record.attempt = Some(attempt.clone());
            };
            // A new record names its owner from the first moment: a guard looks for its own.
            let mut entry = journal.take(target, begin)?;
            let taken = match &entry.record().attempt {
                Some(own) if *own == attempt => Ok(()),
                Some(_) => return Err(JournalError::Unconfirmed(Box::new((*target).clone()))),
                None => entry.update(begin),
            };
            self.entries.push(entry);
            taken?;
        }
        Ok(())
    }

    /// Makes changes: records them all, then writes one after the other, then looks whether each was
    /// taken.
    pub fn write(&mut self, kernel: &mut dyn Kernel, writes: &[Write]) -> Result<(), SwitchError> {
        self.record(writes)?;
        self.carry_out(kernel, writes)
    }

    /// Records changes that are to be made. When this returns, they are on disk.
    pub fn record(&mut self, writes: &[Write]) -> Result<(), JournalError> {
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

    /// Makes changes that are recorded: writes one after the other, then looks whether each was taken.
    pub fn carry_out(&self, kernel: &mut dyn Kernel, writes: &[Write]) -> Result<(), SwitchError> {
        for entry in &self.entries {
            let target = entry.record().target();
            let changes = changes_of(&target, writes);
            if lowers_count(&changes) {
                undo::come_to_rest(kernel, &target, &changes)?;
            }
        }
        for write in writes {
            let holds = |kernel: &mut dyn Kernel| -> Result<bool, SwitchError> {
                Ok(kernel.read(&write.target, &write.knob)?.as_ref() == Some(&write.to))
            };
            // The kernel has done it along, unless it was set to 0 to come to rest.
            if write.is_implied && holds(kernel)? {
                continue;
            }
            fault::point();
            kernel.write(&write.target, &write.knob, &write.to)?;
        }
        for write in writes {
            let now = kernel.read(&write.target, &write.knob)?;
            if now.as_ref() != Some(&write.to) {
                return Err(SwitchError::NotTaken {
                    interface: write.target.interface.name.clone(),
                    what: write.knob.to_string(),
                    asked: write.to.to_string(),
                    is: now.map_or_else(|| String::from("gone"), |now| now.to_string()),
                });
            }
        }
        Ok(())
    }

    /// Takes changes back that were carried out. Their record stays, so that they can be carried out again.
    pub fn take_back(&self, kernel: &mut dyn Kernel, writes: &[Write]) -> Result<(), SwitchError> {
        for entry in self.entries.iter().rev() {
            let target = entry.record().target();
            let changes = changes_of(&target, writes);
            if !changes.is_empty() {
                undo::put_back(kernel, &target, &changes)?;
            }
        }
        Ok(())
    }

    /// What was changed since the transaction began.
    pub fn changes(&self) -> Vec<(Target, Change)> {
        let of = |entry: &Entry| {
            let target = entry.record().target();
            let attempt = entry.record().attempt.clone();
            let changes = attempt.map_or_else(Vec::new, |attempt| attempt.changes);
            merged(&[], &changes)
                .into_iter()
                .map(move |change| (target.clone(), change))
                .collect::<Vec<_>>()
        };
        self.entries.iter().flat_map(of).collect()
    }

    /// Lets the changes stand until they are undone.
    pub fn settle(self) -> Result<(), SwitchError> {
        for mut entry in self.entries {
            settle_entry(&mut entry)?;
            close_if_empty(entry)?;
        }
        Ok(())
    }

    /// Leaves the changes to their owner, until they are confirmed.
    pub fn leave(self) {}

    /// Puts back what was changed since the transaction began, on the interface that was taken last
    /// first.
    pub fn undo(self, kernel: &mut dyn Kernel) -> Result<(), SwitchError> {
        for entry in self.entries.into_iter().rev() {
            let target = entry.record().target();
            undo_attempt(entry, &target, kernel)?;
        }
        Ok(())
    }

    /// The same, wherever the interfaces are by now. Those that are no more have taken their values along. One
    /// that cannot be put back does not keep the others from it.
    pub fn undo_wherever(self, machine: &mut Machine) -> Result<(), SwitchError> {
        let mut outcome = Ok(());
        for entry in self.entries.into_iter().rev() {
            let done = match locate(machine, &entry.record().target()) {
                Ok(Whereabouts::At(target)) => undo_attempt(entry, &target, machine),
                Ok(Whereabouts::Gone) => entry.close().map_err(SwitchError::from),
                Ok(Whereabouts::Unknown) => Err(SwitchError::not_found(&entry)),
                Err(error) => Err(error),
            };
            outcome = outcome.and(done);
        }
        outcome
    }

    fn drop_attempts(self) -> Result<(), JournalError> {
        for entry in self.entries {
            end_attempt(entry)?;
        }
        Ok(())
    }
}

/// Lets an attempt stand.
pub(crate) fn settle_entry(entry: &mut Entry) -> Result<(), JournalError> {
    entry.update(crate::record::Record::settle)
}

/// Puts back what an attempt changed; what stood before it stays. `target` is where the interface is now.
pub(crate) fn undo_attempt(
    entry: Entry,
    target: &Target,
    kernel: &mut dyn Kernel,
) -> Result<(), SwitchError> {
    if let Some(attempt) = &entry.record().attempt {
        let changes = merged(&[], &attempt.changes);
        undo::put_back(kernel, target, &changes)?;
    }
    Ok(end_attempt(entry)?)
}

/// Ends an attempt of which nothing is in force. A record in which nothing stands goes in one step: without its
/// attempt it would be nobody's.
fn end_attempt(mut entry: Entry) -> Result<(), JournalError> {
    if entry.record().standing.is_empty() {
        return entry.close();
    }
    entry.update(|record| record.attempt = None)
}

fn close_if_empty(entry: Entry) -> Result<(), JournalError> {
    let record = entry.record();
    if record.standing.is_empty() && record.attempt.is_none() {
        entry.close()?;
    }
    Ok(())
}

fn changes_of(target: &Target, writes: &[Write]) -> Vec<Change> {
    writes
        .iter()
        .filter(|write| write.target == *target)
        .map(|write| Change {
            knob: write.knob.clone(),
            before: write.from.clone(),
            written: write.to.clone(),
        })
        .collect()
}

/// An idle NAPI goes on counting down the old number, so a smaller one has to start from rest.
fn lowers_count(changes: &[Change]) -> bool {
    changes.iter().any(|change| {
        change.knob.is_deferral()
            && change.knob.row().unit == Unit::Count
            && change.written.number() < change.before.number()
    })
}

/// Unlike any other of this boot.
fn transaction_id(owner: Owner) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let own = std::process::id();
    format!("{}-{}-{own}-{count}", owner.pid, owner.start_time_ticks)
}

#[cfg(test)]
mod tests;
