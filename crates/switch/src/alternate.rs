//! Two settings of interfaces that take turns while traffic goes on: the one that is there, and another one.
//!
//! What must hold: what was there is on disk once, before the first write, so that a turn writes nothing to disk
//! and whoever dies at any turn leaves what it takes to put everything back. What the other setting needs and does
//! not find, such as GRO, is changed before the first turn and stays in both. Only what disturbs no packet takes turns
//! unless somebody asks for more.

use crate::apply::{Order, SetError, Switch, planned, require_napi, undone};
use crate::error::SwitchError;
use crate::facts::InterfaceFacts;
use crate::kernel::Target;
use crate::knob::{Disturbance, KnobRow, Phase};
use crate::machine::Machine;
use crate::owner::Owner;
use crate::plan::{self, Needs, Refusal, RefusalKind};
use crate::record::Change;
use crate::transaction::{Terms, Transaction, Write};
use crate::undo::{self, Drift};

/// Which of the two settings is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// The one that was there.
    Reference,
    /// The other one, which is judged against it.
    Judged,
}

/// What two settings that take turns write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// Changed before the first turn, in force in both settings.
    pub once: Vec<Write>,
    /// Written at each turn, to and fro.
    pub each: Vec<Write>,
}

impl Turns {
    /// Rows whose change disturbs packets with some drivers, so that it has to be tried first.
    pub fn to_be_tried(&self) -> Vec<&'static KnobRow> {
        let rows = self.each.iter().map(|write| write.knob.row());
        let mut rows: Vec<_> = rows
            .filter(|row| row.disturbs == Disturbance::DependsOnDriver)
            .collect();
        rows.dedup();
        rows
    }
}

/// Interfaces on which two settings take turns. While it lives, nobody else can change them.
///
/// Dropping it does *not* put anything back: [`Alternation::restore`] does, or else the owner's guard.
#[derive(Debug)]
pub struct Alternation {
    transaction: Transaction,
    turns: Turns,
    /// `None` after somebody else changed a value.
    arm: Option<Arm>,
}

impl Switch {
    /// What two settings that take turns would write. Nothing is changed.
    ///
    /// # Errors
    /// A refusal, when they cannot take turns. Settings that need something else first may still be refused later:
    /// a veth has no instance before GRO is on.
    pub fn turns(&mut self, orders: &[Order], is_disruptive: bool) -> Result<Turns, SetError> {
        let facts = self.survey(orders)?;
        let mut turns = Turns {
            once: once(orders, &facts, is_disruptive)?,
            each: Vec::new(),
        };
        match each(orders, &facts) {
            Ok(writes) => turns.each = writes,
            Err(_) if !turns.once.is_empty() => {}
            Err(refusal) => return Err(refusal.into()),
        }
        Ok(turns)
    }

    /// Takes interfaces for two settings that take turns: changes what the setting of `orders` needs, and records
    /// everything. The reference is in force until the first turn.
    ///
    /// # Errors
    /// A refusal, when they cannot take turns or nothing would change; what had been changed by then was put back.
    pub fn alternate(
        &mut self,
        orders: &[Order],
        is_disruptive: bool,
        owner: Owner,
    ) -> Result<Alternation, SetError> {
        let terms = Terms {
            owner,
            until_boottime_ns: None,
        };
        let once = self.turns(orders, is_disruptive)?.once;
        let mut transaction = self.begin(orders, Needs::Fix, terms)?;
        let machine = self.machine();
        match prepare(&mut transaction, machine, orders, &once) {
            Ok(each) => Ok(Alternation {
                transaction,
                turns: Turns { once, each },
                arm: Some(Arm::Reference),
            }),
            Err(first) => Err(undone(transaction, machine, first)),
        }
    }
}

impl Alternation {
    /// What is written before and at each turn.
    pub fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Puts a setting in force, unless it is. The reference comes back from rest, as when everything is put back:
    /// that takes as long as one period of the timer and 10 ms.
    pub fn turn_to(&mut self, switch: &mut Switch, arm: Arm) -> Result<(), SwitchError> {
        if self.arm == Some(arm) {
            return Ok(());
        }
        self.arm = None;
        let machine = switch.machine();
        match arm {
            Arm::Judged => self.transaction.carry_out(machine, &self.turns.each)?,
            Arm::Reference => self.transaction.take_back(machine, &self.turns.each)?,
        }
        self.arm = Some(arm);
        Ok(())
    }

    /// What somebody else changed since a setting was put in force. The next turn writes all values again.
    pub fn drift(&mut self, switch: &mut Switch) -> Result<Vec<(Target, Drift)>, SwitchError> {
        let Some(arm) = self.arm else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for target in self.targets() {
            let own = self
                .turns
                .each
                .iter()
                .filter(|write| write.target == target);
            let changes: Vec<Change> = own
                .map(|write| Change {
                    knob: write.knob.clone(),
                    before: write.from.clone(),
                    written: match arm {
                        Arm::Reference => write.from.clone(),
                        Arm::Judged => write.to.clone(),
                    },
                })
                .collect();
            let drift = undo::drift(switch.machine(), &target, &changes)?;
            found.extend(drift.into_iter().map(|drift| (target.clone(), drift)));
        }
        if !found.is_empty() {
            self.arm = None;
        }
        Ok(found)
    }

    /// Every interface that was changed, each once.
    pub fn targets(&self) -> Vec<Target> {
        let mut targets: Vec<Target> = Vec::new();
        for write in self.turns.once.iter().chain(&self.turns.each) {
            if !targets.contains(&write.target) {
                targets.push(write.target.clone());
            }
        }
        targets
    }

    /// Puts everything back, wherever the interfaces are by now, and closes the records.
    pub fn restore(self, switch: &mut Switch) -> Result<(), SwitchError> {
        self.transaction.undo_wherever(switch.machine())
    }
}

fn prepare(
    transaction: &mut Transaction,
    machine: &mut Machine,
    orders: &[Order],
    once: &[Write],
) -> Result<Vec<Write>, SetError> {
    transaction.write(machine, once)?;
    let gather = |order: &Order| InterfaceFacts::gather(machine, &order.target);
    let facts: Vec<InterfaceFacts> = orders.iter().map(gather).collect::<Result<_, _>>()?;
    for (order, facts) in orders.iter().zip(&facts) {
        require_napi(facts, &order.values)?;
    }
    let each = each(orders, &facts)?;
    if each.iter().all(|write| write.from == write.to) {
        let interface = orders.first().map(|order| &order.target.interface.name);
        return Err(Refusal {
            interface: interface.cloned().unwrap_or_default(),
            reason: String::from("it has that setting already, so there is nothing to compare"),
            remedy: String::from("name another setting, such as --period 50us or -polling"),
            kind: RefusalKind::Impossible,
        }
        .into());
    }
    transaction.record(&each)?;
    Ok(each)
}

/// What is changed before the first turn.
fn once(
    orders: &[Order],
    facts: &[InterfaceFacts],
    is_disruptive: bool,
) -> Result<Vec<Write>, Refusal> {
    let planned = planned(orders, facts);
    let mut writes: Vec<Write> = Vec::new();
    for (order, facts) in orders.iter().zip(facts) {
        check_up(facts)?;
        for (row, _) in order.values.iter() {
            check_turn(facts, row, is_disruptive)?;
        }
        for write in plan::preconditions(facts, &order.values, &planned, Needs::Fix)? {
            if !writes.contains(&write) {
                writes.push(write);
            }
        }
    }
    Ok(writes)
}

/// What is written at each turn. Features are written before values of instances, which may come with them.
fn each(orders: &[Order], facts: &[InterfaceFacts]) -> Result<Vec<Write>, Refusal> {
    let mut writes = planned(orders, facts);
    for (order, facts) in orders.iter().zip(facts) {
        writes.extend(plan::settings(facts, &order.values, &order.part)?);
    }
    Ok(writes)
}

fn check_up(facts: &InterfaceFacts) -> Result<(), Refusal> {
    if facts.link.is_up {
        return Ok(());
    }
    let reason = "it is down, so it has no traffic to compare settings with";
    Err(refusal(facts, reason, "bring it up first"))
}

fn check_turn(facts: &InterfaceFacts, row: &KnobRow, is_disruptive: bool) -> Result<(), Refusal> {
    if row.phase == Phase::Thread {
        let reason = format!(
            "{} belongs to threads, which come and go with 'threaded' and cannot take turns",
            row.name
        );
        let remedy =
            "let threads stand first (nicpoll set IF --threaded ...), then compare without it";
        return Err(refusal(facts, &reason, remedy));
    }
    match row.disturbs {
        Disturbance::Quiet | Disturbance::DependsOnDriver => Ok(()),
        Disturbance::ResetsQueues if is_disruptive => Ok(()),
        Disturbance::ResetsQueues => {
            let reason = format!(
                "each change of {} begins the queues anew, and packets in them are lost",
                row.name
            );
            let remedy = "add --disruptive if the traffic may suffer that at every block";
            Err(refusal(facts, &reason, remedy))
        }
        Disturbance::TakesLinkDown => {
            let reason = "an interface that is down has no traffic";
            Err(refusal(facts, reason, "compare settings of one that is up"))
        }
    }
}

fn refusal(facts: &InterfaceFacts, reason: &str, remedy: &str) -> Refusal {
    Refusal {
        interface: facts.target.interface.name.clone(),
        reason: String::from(reason),
        remedy: String::from(remedy),
        kind: RefusalKind::Impossible,
    }
}
