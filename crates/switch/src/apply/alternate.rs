//! Two settings of the same interfaces that take turns under live traffic: the one found, and another one.
//!
//! The values found are on disk once, before the first write. A turn writes nothing to disk; a process killed at any
//! turn leaves a record of everything. Missing preconditions of the other setting, such as GRO, are met before the
//! first turn and stay met in both. Only knobs that disturb no packet take turns unless asked otherwise.

use super::change::{Switch, gather, require_napi, undone};
use crate::error::{Refusal, SwitchError};
use crate::journal::Owner;
use crate::kernel::{Machine, Target};
use crate::knob::row::Phase;
use crate::knob::{Disturbance, KnobRow};
use crate::plan::{InterfaceFacts, Needs, Write, features, preconditions, settings};
use crate::request::Order;
use crate::transaction::undo::{self, Drift};
use crate::transaction::{Held, changes_of};

/// Which of the two settings is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// The setting found.
    Reference,
    /// The other setting, which is judged against the reference.
    Judged,
}

/// How two settings take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnRules {
    /// Whether knobs whose change restarts the queues may take turns.
    pub is_disruptive: bool,
    /// Whether both settings are the one found: each turn writes the present values, and nothing changes.
    pub is_null: bool,
}

/// The writes of two settings that take turns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// Changed before the first turn, in force in both settings.
    pub once: Vec<Write>,
    /// Written at each turn, in one direction or the other.
    pub each: Vec<Write>,
}

impl Turns {
    /// Returns the rows whose change disturbs packets with some drivers: the caller has to try them first.
    pub fn to_be_tried(&self) -> Vec<&'static KnobRow> {
        let rows = self.each.iter().map(|write| write.change.knob.row());
        let mut rows: Vec<_> = rows
            .filter(|row| row.disturbs == Disturbance::DependsOnDriver)
            .collect();
        rows.dedup();
        rows
    }
}

/// Interfaces on which two settings take turns, locked against other changes.
///
/// Dropping it does *not* put anything back: [`Alternation::restore`] does, or the owner's guard.
#[derive(Debug)]
pub struct Alternation {
    held: Held,
    turns: Turns,
    /// `None` after somebody else changed a value.
    arm: Option<Arm>,
}

impl Switch {
    /// Returns the writes with which two settings would take turns. Nothing is changed.
    ///
    /// # Errors
    /// A refusal, when the settings cannot take turns. With unmet preconditions a refusal may still come later: a veth
    /// has no NAPI instance before GRO is on.
    pub fn turns(&mut self, orders: &[Order], rules: TurnRules) -> Result<Turns, SwitchError> {
        let facts = self.survey(orders)?;
        let mut turns = Turns {
            once: once(&facts, rules)?,
            each: Vec::new(),
        };
        match each(&facts, rules) {
            Ok(writes) => turns.each = writes,
            Err(_) if !turns.once.is_empty() || rules.is_null => {}
            Err(refusal) => return Err(refusal.into()),
        }
        Ok(turns)
    }

    /// Locks interfaces for two settings that take turns, meets the preconditions of the setting in `orders`, and
    /// records everything. The reference is in force until the first turn.
    ///
    /// # Errors
    /// A refusal, when the settings cannot take turns or nothing would change; changes made so far are restored.
    pub fn alternate(
        &mut self,
        orders: &[Order],
        rules: TurnRules,
        owner: Owner,
    ) -> Result<Alternation, SwitchError> {
        let once = self.turns(orders, rules)?.once;
        let mut held = self.begin(orders, Needs::Fix, owner, None)?;
        let machine = self.machine();
        match prepare(&mut held, machine, orders, &once, rules) {
            Ok(each) => Ok(Alternation {
                held,
                turns: Turns { once, each },
                arm: Some(Arm::Reference),
            }),
            Err(first) => Err(undone(held, machine, first)),
        }
    }
}

impl Alternation {
    /// Returns the writes before and at each turn.
    pub fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Puts a setting in force, unless it is already. Going back to the reference first sets the deferral to 0, which
    /// takes one period of the timer and 10 ms.
    pub fn turn_to(&mut self, switch: &mut Switch, arm: Arm) -> Result<(), SwitchError> {
        if self.arm == Some(arm) {
            return Ok(());
        }
        self.arm = None;
        let machine = switch.machine();
        match arm {
            Arm::Judged => self.held.carry_out(machine, &self.turns.each)?,
            Arm::Reference => self.held.take_back(machine, &self.turns.each)?,
        }
        self.arm = Some(arm);
        Ok(())
    }

    /// Returns the values that somebody else changed since the last turn. The next turn then writes all values again.
    pub fn drift(&mut self, switch: &mut Switch) -> Result<Vec<(Target, Drift)>, SwitchError> {
        let Some(arm) = self.arm else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for target in self.targets() {
            let mut changes = changes_of(&target, &self.turns.each);
            if arm == Arm::Reference {
                for change in &mut changes {
                    change.written = change.before.clone();
                }
            }
            let drift = undo::drift(switch.machine(), &target, &changes)?;
            found.extend(drift.into_iter().map(|drift| (target.clone(), drift)));
        }
        if !found.is_empty() {
            self.arm = None;
        }
        Ok(found)
    }

    /// Returns every changed interface once.
    pub fn targets(&self) -> Vec<Target> {
        let mut targets: Vec<Target> = Vec::new();
        for write in self.turns.once.iter().chain(&self.turns.each) {
            if !targets.contains(&write.target) {
                targets.push(write.target.clone());
            }
        }
        targets
    }

    /// Restores every value, in whichever namespace the interfaces are by now, and closes the records.
    pub fn restore(self, switch: &mut Switch) -> Result<(), SwitchError> {
        self.held.undo_wherever(switch.machine())
    }
}

fn prepare(
    held: &mut Held,
    machine: &mut Machine,
    orders: &[Order],
    once: &[Write],
    rules: TurnRules,
) -> Result<Vec<Write>, SwitchError> {
    held.write(machine, once)?;
    let facts = gather(machine, orders)?;
    if rules.is_null {
        let each = each(&facts, rules).unwrap_or_default();
        held.record(&each)?;
        return Ok(each);
    }
    facts.iter().try_for_each(require_napi)?;
    let each = each(&facts, rules)?;
    if let [first, ..] = &*facts
        && each.iter().all(|write| !write.change.is_any())
    {
        let reason = "it has that setting already, so there is nothing to compare";
        let remedy = "name another setting, such as --period 50us or -polling, or compare it with itself by --null";
        return Err(first.refusal(reason, remedy).into());
    }
    held.record(&each)?;
    Ok(each)
}

/// The changes before the first turn; none if both settings are the one found.
fn once(all: &[InterfaceFacts], rules: TurnRules) -> Result<Vec<Write>, Refusal> {
    for facts in all {
        if !facts.link.is_up {
            let reason = "it is down, so it has no traffic to compare settings with";
            return Err(facts.refusal(reason, "bring it up first"));
        }
        for (row, _) in facts.asked.values.iter() {
            check_turn(facts, row, rules.is_disruptive)?;
        }
    }
    let mut writes: Vec<Write> = Vec::new();
    if rules.is_null {
        return Ok(writes);
    }
    for (_, write) in preconditions(all, Needs::Fix)? {
        if !writes.contains(&write) {
            writes.push(write);
        }
    }
    Ok(writes)
}

/// The writes of each turn. Features come before values of NAPI instances, because instances may appear with them.
fn each(all: &[InterfaceFacts], rules: TurnRules) -> Result<Vec<Write>, Refusal> {
    let mut writes = features(all);
    for facts in all {
        writes.extend(settings(facts)?);
    }
    if rules.is_null {
        for change in writes.iter_mut().map(|write| &mut write.change) {
            change.written = change.before.clone();
        }
    }
    Ok(writes)
}

fn check_turn(facts: &InterfaceFacts, row: &KnobRow, is_disruptive: bool) -> Result<(), Refusal> {
    let (reason, remedy) = match row.disturbs {
        _ if row.place.phase() == Phase::Thread => (
            format!(
                "{} belongs to threads, which come and go with 'threaded' and cannot take turns",
                row.name
            ),
            "set the threads first (nicpoll set IF --threaded ...), then compare without it",
        ),
        Disturbance::Quiet | Disturbance::DependsOnDriver => return Ok(()),
        Disturbance::ResetsQueues if is_disruptive => return Ok(()),
        Disturbance::ResetsQueues => (
            format!(
                "each change of {} restarts the queues, and packets in them are lost",
                row.name
            ),
            "add --disruptive to accept that at every block",
        ),
        Disturbance::TakesLinkDown => (
            String::from("an interface that is down has no traffic"),
            "compare settings of one that is up",
        ),
    };
    Err(facts.refusal(reason, remedy))
}
