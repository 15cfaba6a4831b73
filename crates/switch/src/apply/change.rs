//! The switch: makes the changes of a command on all of its interfaces, or on none.
//!
//! Every value is recorded before it is changed. What cannot work is refused before anything is.

use nicpoll_model::SwitchWrite;
use nicpoll_sys::privilege;
use thiserror::Error;

use crate::error::SwitchError;
use crate::journal::{Journal, JournalError, Owner};
use crate::kernel::{Abilities, ControlError, Kernel, Machine, Target};
use crate::knob::{KnobRow, Value};
use crate::plan::{
    self, InterfaceFacts, Needs, Refusal, RefusalKind, Write, features, needs_napi, preconditions,
};
use crate::request::{Order, Values};
use crate::transaction::{Terms, Transaction, writes_kept};

/// Checks that this process may change interfaces.
pub fn require_privileges() -> Result<(), SwitchError> {
    privilege::require_proc()?;
    let missing = privilege::missing_for_switch();
    let missing = missing.map_err(ControlError::of_io("asking for privileges"))?;
    match missing.is_empty() {
        true => Ok(()),
        false => Err(SwitchError::Privileges(missing)),
    }
}

/// Why nothing was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetError {
    /// It cannot work, or needs more.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Something failed; the changes made by then were put back.
    #[error(transparent)]
    Switch(#[from] SwitchError),
}

impl From<JournalError> for SetError {
    fn from(error: JournalError) -> Self {
        SetError::Switch(error.into())
    }
}

impl From<ControlError> for SetError {
    fn from(error: ControlError) -> Self {
        SetError::Switch(error.into())
    }
}

/// The interfaces of this machine's network namespaces, and the journal of their changes.
pub struct Switch {
    journal: Journal,
    machine: Machine,
    abilities: Abilities,
}

/// Changes that last as long as this value or its owner. Nobody else can change the interfaces meanwhile.
///
/// Dropping it does *not* put anything back, since that needs the [`Switch`]: [`Held::restore`] does. If it is
/// dropped unrestored, the owner's guard or [`crate::recover`] at the next start puts everything back.
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

    /// The journal of the present changes, whoever made them.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The state of a command's interfaces.
    ///
    /// # Errors
    /// When one of them can never take its values.
    pub fn survey(&mut self, orders: &[Order]) -> Result<Vec<InterfaceFacts>, SetError> {
        let all = gather(&mut self.machine, orders)?;
        for (order, facts) in orders.iter().zip(&all) {
            plan::check(facts, &self.abilities, &order.values, &order.part)?;
        }
        Ok(all)
    }

    /// Refuses interfaces that `nicpoll set` has changed: a study needs them unchanged.
    pub fn require_unchanged(&self, orders: &[Order]) -> Result<(), SwitchError> {
        for Order { target, .. } in orders {
            let entry = self.journal.lock(&self.journal.path_of(target))?;
            if entry.is_some_and(|entry| !entry.record().standing.is_empty()) {
                return Err(JournalError::Standing(Box::new(target.clone())).into());
            }
        }
        Ok(())
    }

    /// Makes the changes of a command until they are undone. Returns the writes.
    pub fn set(&mut self, orders: &[Order], needs: Needs) -> Result<Vec<Write>, SetError> {
        let owner = Owner::this_process().map_err(JournalError::io(self.journal.directory()))?;
        let (transaction, writes) = self.write(orders, needs, Terms::held_by(owner))?;
        transaction.settle()?;
        Ok(writes)
    }

    /// Makes the changes of a command; `owner` undoes them at a time unless they are confirmed before. Returns
    /// the writes.
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

    /// Makes changes that are held: the owner undoes them if this process does not.
    pub fn hold(&mut self, orders: &[Order], needs: Needs, owner: Owner) -> Result<Held, SetError> {
        let (transaction, _) = self.write(orders, needs, Terms::held_by(owner))?;
        Ok(Held {
            transaction,
            orders: orders.to_vec(),
        })
    }

    /// Locks the interfaces of a command and their companions. Nothing is changed yet.
    pub(super) fn begin(
        &mut self,
        orders: &[Order],
        needs: Needs,
        terms: Terms,
    ) -> Result<Transaction, SetError> {
        let facts = gather(&mut self.machine, orders)?;
        let mut targets: Vec<Target> = Vec::new();
        for order in orders {
            if !targets.contains(&order.target) {
                targets.push(order.target.clone());
            }
        }
        let needed = preconditions(orders, &facts, needs)?.into_iter();
        let mut companions: Vec<_> = needed.map(|(of, write)| (write.target, of)).collect();
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

/// Undoes a transaction after a failure, and adds to the failure if that failed too.
pub(super) fn undone(transaction: Transaction, machine: &mut Machine, first: SetError) -> SetError {
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
    /// Changes what is held. Where only values differ from those before, nothing else is read or written, so this
    /// may be done often.
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
            writes.extend(now.map(|from| Write {
                target: own,
                is_implied: change.knob.of_device().is_some(),
                knob: change.knob,
                from,
                to: value.clone(),
            }));
        }
        self.transaction.write(&mut switch.machine, &writes)
    }

    /// Every held value that differs from the one before.
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
    let names =
        |order: &Order| -> Vec<_> { order.values.iter().map(|(row, _)| row.name).collect() };
    let is_like = |(before, now): (&Order, &Order)| {
        before.target == now.target && before.part == now.part && names(before) == names(now)
    };
    before.len() == now.len() && before.iter().zip(now).all(is_like)
}

pub(super) fn gather(
    machine: &mut Machine,
    orders: &[Order],
) -> Result<Vec<InterfaceFacts>, ControlError> {
    let orders = orders.iter();
    orders
        .map(|order| InterfaceFacts::gather(machine, &order.target))
        .collect()
}

/// In three steps, because NAPI instances may come with the first and threads with the second.
fn change(
    transaction: &mut Transaction,
    machine: &mut Machine,
    orders: &[Order],
    needs: Needs,
) -> Result<Vec<Write>, SetError> {
    let facts = gather(machine, orders)?;
    let mut all = features(orders, &facts);
    let needed = preconditions(orders, &facts, needs)?.into_iter();
    all.extend(needed.map(|(_, write)| write));
    transaction.write(machine, &all)?;
    type Step = fn(&InterfaceFacts, &Order) -> Result<Vec<Write>, Refusal>;
    let steps: [Step; 2] = [
        |facts, order| {
            require_napi(facts, &order.values)?;
            plan::settings(facts, &order.values, &order.part)
        },
        |facts, order| plan::threads(facts, &order.values, &order.part),
    ];
    for step in steps {
        let mut writes = Vec::new();
        for (order, facts) in orders.iter().zip(&gather(machine, orders)?) {
            writes.extend(step(facts, order)?);
        }
        transaction.write(machine, &writes)?;
        all.append(&mut writes);
    }
    Ok(all)
}

/// After all preconditions: without a NAPI instance nothing would poll.
pub(super) fn require_napi(facts: &InterfaceFacts, values: &Values) -> Result<(), Refusal> {
    let is_missing = facts.napis.as_ref().is_some_and(Vec::is_empty);
    if needs_napi(values) && is_missing {
        return Err(Refusal::new(
            facts,
            RefusalKind::Impossible,
            "it has no NAPI instance, even though it is up",
            "set the interface that its packets come from",
        ));
    }
    Ok(())
}
