//! The one way to change interfaces, whoever asks: plan, record, write, read back; then let it stand, leave it to be
//! confirmed, or hold it.
//!
//! What must hold: a command changes everything that it names or nothing; every value is recorded before it is
//! changed; what cannot work is refused before anything is.

use nicpoll_model::SwitchWrite;
use nicpoll_sys::privilege;
use thiserror::Error;

use crate::document::writes_kept;
use crate::error::SwitchError;
use crate::facts::InterfaceFacts;
use crate::journal::{Journal, JournalError};
use crate::kernel::{Kernel, Target};
use crate::knob::{KnobRow, Value};
use crate::machine::Machine;
use crate::owner::Owner;
use crate::plan::{self, Needs, Refusal, RefusalKind};
use crate::probe::Abilities;
use crate::request::{Part, Values};
use crate::transaction::{Terms, Transaction, Write};

/// Refuses to go on without what changing an interface takes.
pub fn require_privileges() -> Result<(), SwitchError> {
    privilege::require_proc()?;
    let missing = privilege::missing_for_switch().map_err(SwitchError::AskingPrivileges)?;
    match missing.is_empty() {
        true => Ok(()),
        false => Err(SwitchError::Privileges(missing)),
    }
}

/// What is to be set on an interface, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The interface.
    pub target: Target,
    /// Which of its NAPI instances.
    pub part: Part,
    /// The knobs with their values.
    pub values: Values,
}

/// Why nothing was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
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

/// Interfaces of this machine's network namespaces, and the journal of what is changed on them.
pub struct Switch {
    journal: Journal,
    machine: Machine,
    abilities: Abilities,
}

/// Changes that last as long as this value or its owner. While it lives, nobody else can change the interfaces.
///
/// Dropping it does *not* put anything back, since that needs the [`Switch`]: [`Held::restore`] does. What is
/// dropped unrestored is found by the owner's guard, or by [`crate::recover`] at the next start.
#[derive(Debug)]
pub struct Held {
    transaction: Transaction,
    orders: Vec<Order>,
}

impl Switch {
    /// A switch that has entered no namespace yet.
    pub fn new(journal: Journal) -> Self {
        Switch {
            journal,
            machine: Machine::new(),
            abilities: Abilities::probe(),
        }
    }

    /// The namespaces that have been entered.
    pub fn machine(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// What is changed at present, by whomever.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Everything about the interfaces of a command.
    ///
    /// # Errors
    /// When one of them can never do what is asked.
    pub fn survey(&mut self, orders: &[Order]) -> Result<Vec<InterfaceFacts>, SetError> {
        let mut all = Vec::new();
        for order in orders {
            let facts = InterfaceFacts::gather(&mut self.machine, &order.target)?;
            plan::check(&facts, &self.abilities, &order.values, &order.part)?;
            all.push(facts);
        }
        Ok(all)
    }

    /// Refuses interfaces on which something stands: a study needs them as they come.
    pub fn require_unchanged(&self, orders: &[Order]) -> Result<(), SwitchError> {
        for Order { target, .. } in orders {
            let path = self.journal.directory().join(Journal::file_name(target));
            let entry = self.journal.lock(&path)?;
            if entry.is_some_and(|entry| !entry.record().standing.is_empty()) {
                let standing = JournalError::Standing(Box::new(target.clone()));
                return Err(SwitchError::Journal(standing));
            }
        }
        Ok(())
    }

    /// Makes the changes of a command, to stand until they are undone. Returns what was written.
    pub fn set(&mut self, orders: &[Order], needs: Needs) -> Result<Vec<Write>, SetError> {
        let owner = Owner::this_process().map_err(JournalError::io(self.journal.directory()))?;
        let terms = Terms {
            owner,
            until_boottime_ns: None,
        };
        let (transaction, writes) = self.write(orders, needs, terms)?;
        transaction.settle()?;
        Ok(writes)
    }

    /// Makes the changes of a command, to be undone by `owner` at a time unless they are confirmed before. Returns
    /// what was written.
    pub fn try_until(
        &mut self,
        orders: &[Order],
        needs: Needs,
        owner: Owner,
        boottime_ns: u64,
    ) -> Result<Vec<Write>, SetError> {
        let terms = Terms {
            owner,
            until_boottime_ns: Some(boottime_ns),
        };
        let (transaction, writes) = self.write(orders, needs, terms)?;
        transaction.leave();
        Ok(writes)
    }

    /// Makes changes that are held: the owner undoes them when this process does not.
    pub fn hold(&mut self, orders: &[Order], needs: Needs, owner: Owner) -> Result<Held, SetError> {
        let terms = Terms {
            owner,
            until_boottime_ns: None,
        };
        let (transaction, _) = self.write(orders, needs, terms)?;
        Ok(Held {
            transaction,
            orders: orders.to_vec(),
        })
    }

    /// Takes the interfaces of a command, and those that are changed for their sake. Nothing is changed yet.
    pub(crate) fn begin(
        &mut self,
        orders: &[Order],
        needs: Needs,
        terms: Terms,
    ) -> Result<Transaction, SetError> {
        let machine = &mut self.machine;
        let mut targets: Vec<Target> = Vec::new();
        let mut companions = Vec::new();
        let mut all = Vec::new();
        for order in orders {
            all.push(InterfaceFacts::gather(machine, &order.target)?);
            if !targets.contains(&order.target) {
                targets.push(order.target.clone());
            }
        }
        let planned = planned(orders, &all);
        for (order, facts) in orders.iter().zip(&all) {
            for write in plan::preconditions(facts, &order.values, &planned, needs)? {
                companions.push((write.target, order.target.clone()));
            }
        }
        companions.dedup();
        Ok(Transaction::begin(
            &self.journal,
            terms,
            &targets,
            &companions,
        )?)
    }

    fn write(
        &mut self,
        orders: &[Order],
        needs: Needs,
        terms: Terms,
    ) -> Result<(Transaction, Vec<Write>), SetError> {
        let mut transaction = self.begin(orders, needs, terms)?;
        let machine = &mut self.machine;
        match change(&mut transaction, machine, orders, needs) {
            Ok(writes) => Ok((transaction, writes)),
            Err(first) => Err(undone(transaction, machine, first)),
        }
    }
}

/// Undoes what was done when something failed, and says what.
pub(crate) fn undone(transaction: Transaction, machine: &mut Machine, first: SetError) -> SetError {
    match (transaction.undo(machine), first) {
        (Ok(()), first) => first,
        (Err(second), SetError::Switch(first)) => SwitchError::AndBack {
            first: Box::new(first),
            second: Box::new(second),
        }
        .into(),
        (Err(second), SetError::Refused(_)) => second.into(),
    }
}

impl Held {
    /// Changes what is held. Where only values differ from those of before, nothing else is read or written, so this may be
    /// done often.
    pub fn change(
        &mut self,
        switch: &mut Switch,
        orders: &[Order],
        needs: Needs,
    ) -> Result<(), SetError> {
        let before = std::mem::replace(&mut self.orders, orders.to_vec());
        if !have_same_knobs(&before, orders) {
            change(&mut self.transaction, &mut switch.machine, orders, needs)?;
            return Ok(());
        }
        for (order, before) in orders.iter().zip(&before) {
            for (row, value) in order.values.iter() {
                if before.values.get(row) != Some(value) {
                    self.rewrite(switch, &order.target, row, value)?;
                }
            }
        }
        Ok(())
    }

    fn rewrite(
        &mut self,
        switch: &mut Switch,
        target: &Target,
        row: &'static KnobRow,
        value: &Value,
    ) -> Result<(), SwitchError> {
        let mut writes = Vec::new();
        for (own, change) in self.transaction.changes() {
            if own != *target || change.knob.row() != row {
                continue;
            }
            let now = switch.machine.read(target, &change.knob)?;
            let Some(from) = now else { continue };
            writes.push(Write {
                target: own,
                is_implied: change.knob.of_device().is_some(),
                knob: change.knob,
                from,
                to: value.clone(),
            });
        }
        self.transaction.write(&mut switch.machine, &writes)
    }

    /// Every value that is held and was another one before, with what was there.
    pub fn writes(&self) -> Vec<SwitchWrite> {
        let changes = self.transaction.changes().into_iter();
        changes
            .flat_map(|(target, change)| writes_kept(&target, &[change]))
            .collect()
    }

    /// Puts everything back, last interface first, and closes the records.
    pub fn restore(self, switch: &mut Switch) -> Result<(), SwitchError> {
        self.transaction.undo_wherever(&mut switch.machine)
    }
}

fn have_same_knobs(before: &[Order], now: &[Order]) -> bool {
    let is_like = |(before, now): (&Order, &Order)| {
        let rows = |order: &Order| {
            order
                .values
                .iter()
                .map(|(row, _)| row.name)
                .collect::<Vec<_>>()
        };
        before.target == now.target && before.part == now.part && rows(before) == rows(now)
    };
    before.len() == now.len() && before.iter().zip(now).all(is_like)
}

/// What a command would write.
pub fn preview(
    orders: &[Order],
    facts: &[InterfaceFacts],
    needs: Needs,
) -> Result<Preview, SetError> {
    let mut writes = planned(orders, facts);
    let planned = writes.clone();
    for (order, facts) in orders.iter().zip(facts) {
        writes.extend(plan::preconditions(facts, &order.values, &planned, needs)?);
    }
    let needs_more = !writes.is_empty();
    let mut preview = Preview {
        writes,
        is_open_ended: false,
    };
    for (order, facts) in orders.iter().zip(facts) {
        let values = &order.values;
        match plan::settings(facts, values, &order.part) {
            Ok(writes) => preview.writes.extend(writes),
            // Queues and instances may come with what is changed first.
            Err(_) if needs_more => preview.is_open_ended = true,
            Err(refusal) => return Err(refusal.into()),
        }
        match plan::threads(facts, values, &order.part) {
            Ok(writes) => preview.writes.extend(writes),
            Err(_) if needs_more || plan::makes_threads(values) => preview.is_open_ended = true,
            Err(refusal) => return Err(refusal.into()),
        }
        preview.is_open_ended |= needs_more && plan::is_of_instances(values);
    }
    Ok(preview)
}

/// What is to be set of the links and their features: the rest may need it.
pub(crate) fn planned(orders: &[Order], facts: &[InterfaceFacts]) -> Vec<Write> {
    let pairs = orders.iter().zip(facts);
    pairs
        .flat_map(|(order, facts)| plan::features(facts, &order.values))
        .collect()
}

/// In three steps, because NAPI instances may come with the first and threads with the second.
fn change(
    transaction: &mut Transaction,
    machine: &mut Machine,
    orders: &[Order],
    needs: Needs,
) -> Result<Vec<Write>, SetError> {
    let gather = |machine: &mut Machine| {
        let all = orders
            .iter()
            .map(|order| InterfaceFacts::gather(machine, &order.target));
        all.collect::<Result<Vec<InterfaceFacts>, SwitchError>>()
    };
    let mut all = Vec::new();
    let facts = gather(machine)?;
    let mut writes = planned(orders, &facts);
    let planned = writes.clone();
    for (order, facts) in orders.iter().zip(&facts) {
        writes.extend(plan::preconditions(facts, &order.values, &planned, needs)?);
    }
    transaction.write(machine, &writes)?;
    all.append(&mut writes);
    type Step = fn(&InterfaceFacts, &Order) -> Result<Vec<Write>, Refusal>;
    let steps: [Step; 2] = [
        |facts, order| {
            require_napi(facts, &order.values)?;
            plan::settings(facts, &order.values, &order.part)
        },
        |facts, order| plan::threads(facts, &order.values, &order.part),
    ];
    for step in steps {
        for (order, facts) in orders.iter().zip(&gather(machine)?) {
            writes.extend(step(facts, order)?);
        }
        transaction.write(machine, &writes)?;
        all.append(&mut writes);
    }
    Ok(all)
}

/// Whatever was done for it: without an instance nothing would poll.
pub(crate) fn require_napi(facts: &InterfaceFacts, values: &Values) -> Result<(), Refusal> {
    let is_missing = facts.napis.as_ref().is_some_and(Vec::is_empty);
    if plan::needs_napi(values) && is_missing {
        return Err(Refusal {
            interface: facts.target.interface.name.clone(),
            reason: String::from("it has no NAPI instance, even though it is up"),
            remedy: String::from("set the interface that its packets come from"),
            kind: RefusalKind::Impossible,
        });
    }
    Ok(())
}
