//! The switch: makes the changes of a command on all of its interfaces, or on none.
//!
//! Every value is recorded before it is changed. What cannot work is refused before anything is.

use nicpoll_model::SwitchWrite;
use nicpoll_sys::privilege;

use crate::error::{Refusal, SwitchError};
use crate::journal::{Journal, Owner, journal_error};
use crate::kernel::{Abilities, Interface, Machine, Target};
use crate::plan::{self, InterfaceFacts, Needs, Write, features, needs_napi, preconditions};
use crate::request::{Order, Values};
use crate::transaction::{Terms, Transaction, writes_kept};

/// Checks that this process may change interfaces.
pub fn require_privileges() -> Result<(), SwitchError> {
    privilege::require_proc()?;
    let missing = privilege::missing_for_switch();
    let missing = missing.map_err(SwitchError::of_io("asking for privileges"))?;
    match missing.is_empty() {
        true => Ok(()),
        false => Err(SwitchError::Missing(format!(
            "changing an interface needs more than this process may do; missing here: {}.\nRun it as root: sudo \
             nicpoll set ...",
            missing.join(", ")
        ))),
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
pub struct Held(Transaction);

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
    pub fn survey(&mut self, orders: &[Order]) -> Result<Vec<InterfaceFacts>, SwitchError> {
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
                let Interface { name, ifindex, .. } = &target.interface;
                return Err(SwitchError::Failed(format!(
                    "interface {name} (ifindex {ifindex}) has settings of 'nicpoll set' in force; put them back first: \
                     nicpoll restore {name}{}",
                    target.netns_option()
                )));
            }
        }
        Ok(())
    }

    /// Makes the changes of a command until they are undone. Returns the writes.
    pub fn set(&mut self, orders: &[Order], needs: Needs) -> Result<Vec<Write>, SwitchError> {
        let owner = Owner::this_process().map_err(journal_error(self.journal.directory()))?;
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
    ) -> Result<Vec<Write>, SwitchError> {
        let terms = Terms {
            owner,
            until_boottime_ns: Some(boottime_ns),
        };
        let (transaction, writes) = self.write(orders, needs, terms)?;
        transaction.leave();
        Ok(writes)
    }

    /// Makes changes that are held: the owner undoes them if this process does not.
    pub fn hold(
        &mut self,
        orders: &[Order],
        needs: Needs,
        owner: Owner,
    ) -> Result<Held, SwitchError> {
        let (transaction, _) = self.write(orders, needs, Terms::held_by(owner))?;
        Ok(Held(transaction))
    }

    /// Locks the interfaces of a command and their companions. Nothing is changed yet.
    pub(super) fn begin(
        &mut self,
        orders: &[Order],
        needs: Needs,
        terms: Terms,
    ) -> Result<Transaction, SwitchError> {
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
        Transaction::begin(&self.journal, terms, &targets, &companions)
    }

    fn write(
        &mut self,
        orders: &[Order],
        needs: Needs,
        terms: Terms,
    ) -> Result<(Transaction, Vec<Write>), SwitchError> {
        let mut transaction = self.begin(orders, needs, terms)?;
        let machine = &mut self.machine;
        match change(&mut transaction, machine, orders, needs) {
            Ok(writes) => Ok((transaction, writes)),
            Err(first) => Err(undone(transaction, machine, first)),
        }
    }
}

/// Undoes a transaction after a failure, and adds to the failure if that failed too.
pub(super) fn undone(
    transaction: Transaction,
    machine: &mut Machine,
    first: SwitchError,
) -> SwitchError {
    match transaction.undo(machine) {
        Ok(()) => first,
        Err(second) => first.and_back(&second, ""),
    }
}

impl Held {
    /// Changes what is held.
    pub fn change(
        &mut self,
        switch: &mut Switch,
        orders: &[Order],
        needs: Needs,
    ) -> Result<(), SwitchError> {
        change(&mut self.0, &mut switch.machine, orders, needs)?;
        Ok(())
    }

    /// Every held value that differs from the one before.
    pub fn writes(&self) -> Vec<SwitchWrite> {
        let changes = self.0.changes().into_iter();
        changes
            .flat_map(|(target, change)| writes_kept(&target, &[change]))
            .collect()
    }

    /// Puts everything back, last interface first, and closes the records.
    pub fn restore(self, switch: &mut Switch) -> Result<(), SwitchError> {
        self.0.undo_wherever(&mut switch.machine)
    }
}

pub(super) fn gather(
    machine: &mut Machine,
    orders: &[Order],
) -> Result<Vec<InterfaceFacts>, SwitchError> {
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
) -> Result<Vec<Write>, SwitchError> {
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
        return Err(facts.refusal(
            "it has no NAPI instance, even though it is up",
            "set the interface that its packets come from",
        ));
    }
    Ok(())
}
