//! Changes that stand until they are undone: `nicpoll set`.
//!
//! What must hold: a command changes everything that it names or nothing; every value is recorded before
//! it is changed; what cannot work is refused before anything is.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::error::SwitchError;
use crate::facts::Facts;
use crate::journal::{Entry, Journal, JournalError};
use crate::kernel::{Kernel, Target};
use crate::machine::Machine;
use crate::owner::Owner;
use crate::plan::{self, Refusal, RefusalKind};
use crate::probe::Abilities;
use crate::recover::{reach, resolve};
use crate::request::{Part, Request};
use crate::transaction::{Terms, Transaction, Write, settle_entry};
use crate::undo::{self, Drift};

/// An interface, or a part of one, that is to be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The interface.
    pub target: Target,
    /// Which of its NAPI instances.
    pub part: Part,
}

/// Why nothing was changed.
#[derive(Debug, Error)]
pub enum SetError {
    /// It cannot work, or not without more.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Something failed; what had been changed by then was put back.
    #[error(transparent)]
    Switch(#[from] SwitchError),
}

impl From<JournalError> for SetError {
    fn from(error: JournalError) -> Self {
        SetError::Switch(error.into())
    }
}

/// What would be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// Writes, in order.
    pub writes: Vec<Write>,
    /// Whether NAPI instances or threads come only with these writes, so that theirs cannot be listed.
    pub is_open_ended: bool,
}

/// Everything about the interfaces of a command.
///
/// # Errors
/// When one of them can never do what is asked.
pub fn survey(
    machine: &mut Machine,
    orders: &[Order],
    request: &Request,
    abilities: &Abilities,
) -> Result<Vec<Facts>, SetError> {
    let mut all = Vec::new();
    for order in orders {
        let facts = Facts::gather(machine, &order.target)?;
        plan::check(&facts, abilities, request, &order.part)?;
        all.push(facts);
    }
    Ok(all)
}

/// What a command would write.
pub fn preview(
    orders: &[Order],
    facts: &[Facts],
    request: &Request,
    fix: bool,
) -> Result<Preview, SetError> {
    let mut preview = Preview::default();
    for facts in facts {
        preview
            .writes
            .extend(plan::preconditions(facts, request, fix)?);
    }
    let needs_more = !preview.writes.is_empty();
    for (order, facts) in orders.iter().zip(facts) {
        match plan::settings(facts, request, &order.part) {
            Ok(writes) => preview.writes.extend(writes),
            // Queues and instances may come with what is fixed first.
            Err(_) if needs_more => preview.is_open_ended = true,
            Err(refusal) => return Err(refusal.into()),
        }
        let gets_threads = request.threaded.is_some() || needs_more;
        match plan::threads(facts, request, &order.part) {
            Ok(writes) => preview.writes.extend(writes),
            Err(_) if gets_threads => preview.is_open_ended = true,
            Err(refusal) => return Err(refusal.into()),
        }
    }
    preview.is_open_ended |= needs_more && request.irq_suspend_timeout_ns.is_some();
    Ok(preview)
}

/// Makes the changes of a command. They stand, or wait to be confirmed when `terms` say until when.
/// Returns what was written.
pub fn set(
    journal: &Journal,
    machine: &mut Machine,
    orders: &[Order],
    request: &Request,
    fix: bool,
    terms: Terms,
) -> Result<Vec<Write>, SetError> {
    let mut targets: Vec<Target> = Vec::new();
    let mut companions = Vec::new();
    for order in orders {
        let facts = Facts::gather(machine, &order.target)?;
        for write in plan::preconditions(&facts, request, fix)? {
            companions.push((write.target, order.target.clone()));
        }
        if !targets.contains(&order.target) {
            targets.push(order.target.clone());
        }
    }
    companions.dedup();
    let mut transaction = Transaction::begin(journal, terms, &targets, &companions)?;
    match change(&mut transaction, machine, orders, request, fix) {
        Ok(writes) => {
            if terms.until_boottime_ns.is_some() {
                transaction.leave();
            } else {
                transaction.settle()?;
            }
            Ok(writes)
        }
        Err(first) => match (transaction.undo(machine), first) {
            (Ok(()), first) => Err(first),
            (Err(second), SetError::Switch(first)) => Err(SwitchError::AndBack {
                first: Box::new(first),
                second: Box::new(second),
            }
            .into()),
            (Err(second), SetError::Refused(_)) => Err(second.into()),
        },
    }
}

/// In three steps, because NAPI instances may come with the first and threads with the second.
fn change(
    transaction: &mut Transaction,
    machine: &mut Machine,
    orders: &[Order],
    request: &Request,
    fix: bool,
) -> Result<Vec<Write>, SetError> {
    type Step = fn(&Facts, &Request, &Order, bool) -> Result<Vec<Write>, Refusal>;
    let steps: [Step; 3] = [
        |facts, request, _, fix| plan::preconditions(facts, request, fix),
        |facts, request, order, _| {
            require_napi(facts, request)?;
            plan::settings(facts, request, &order.part)
        },
        |facts, request, order, _| plan::threads(facts, request, &order.part),
    ];
    let mut all = Vec::new();
    for step in steps {
        let mut writes = Vec::new();
        for order in orders {
            let facts = Facts::gather(machine, &order.target)?;
            writes.extend(step(&facts, request, order, fix)?);
        }
        transaction.write(machine, &writes)?;
        all.extend(writes);
    }
    Ok(all)
}

/// Whatever was done for it: without an instance nothing would poll.
fn require_napi(facts: &Facts, request: &Request) -> Result<(), Refusal> {
    let is_missing = facts.napis.as_ref().is_some_and(Vec::is_empty);
    if request.needs_napi() && is_missing {
        return Err(Refusal {
            interface: facts.target.interface.name.clone(),
            reason: String::from("it has no NAPI instance, even though it is up"),
            remedy: String::from("set the interface that its packets come from"),
            kind: RefusalKind::Impossible,
        });
    }
    Ok(())
}

/// Lets the last change of an interface stand, and with it everything that the same command changed.
/// `false` when nothing waits to be confirmed.
pub fn confirm(journal: &Journal, path: &Path) -> Result<bool, SwitchError> {
    let Some(first) = journal.lock(path)? else {
        return Ok(false);
    };
    let Some(attempt) = first.record().attempt.clone() else {
        return Ok(false);
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
    for mut entry in entries {
        settle_entry(&mut entry)?;
    }
    Ok(true)
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
/// [`JournalError::Busy`] while somebody else has the record.
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
    if !reach(machine, entry.record())? {
        return Ok(entry.close()?);
    }
    resolve(journal, entry, machine).map(drop)
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
    let name = Journal::file_name(target);
    let records = journal.records()?.into_iter();
    let mut found = Vec::new();
    for (_, record) in
        records.filter(|(path, _)| path.file_name().is_some_and(|file| *file == *name))
    {
        let record = record?;
        let is_of_this_boot = record.is_of_this_boot().unwrap_or(false);
        if is_of_this_boot && record.interface.is_still(&target.interface) {
            found.extend(undo::drift(kernel, target, &record.all_changes())?);
        }
    }
    Ok(found)
}
