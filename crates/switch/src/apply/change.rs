//! The switch: makes the changes of a command on all of its interfaces, or on none.
//!
//! Every value is recorded before it is changed. Requests that cannot work are refused before the first change.

use std::fs;

use nicpoll_sys::privilege;

use crate::error::{Refusal, SwitchError};
use crate::journal::{Journal, Owner};
use crate::kernel::{Abilities, Interface, Machine, Target};
use crate::knob::Value;
use crate::knob::table::THREAD_CPUS;
use crate::knob::value::parse_numbers;
use crate::plan::{self, InterfaceFacts, Needs, Write, features, needs_napi, preconditions};
use crate::request::Order;
use crate::transaction::Held;

/// The CPUs online, as a list of ranges.
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// Checks that this process may change interfaces.
pub fn require_privileges() -> Result<(), SwitchError> {
    privilege::require_proc()?;
    let missing = privilege::missing_for_switch();
    let missing = missing.map_err(SwitchError::of_io("asking for privileges"))?;
    match missing.is_empty() {
        true => Ok(()),
        false => Err(SwitchError::Missing(format!(
            "changing an interface needs more than this process may do; missing here: {}.\nRun the same command as root, \
             with sudo before it",
            missing.join(", ")
        ))),
    }
}

/// Refuses CPUs that are not online for threads. If the list of CPUs cannot be read, the kernel decides.
fn require_cpus(orders: &[Order]) -> Result<(), SwitchError> {
    let online = fs::read_to_string(ONLINE).unwrap_or_default();
    let online = online.trim();
    let Ok(known) = parse_numbers(online) else {
        return Ok(());
    };
    for Order { target, values, .. } in orders {
        let Some(Value::Cpus(cpus)) = values.get(&THREAD_CPUS) else {
            continue;
        };
        if let Some(cpu) = cpus.iter().find(|cpu| !known.contains(cpu)) {
            return Err(SwitchError::Refused(Refusal {
                interface: target.interface.name.clone(),
                reason: format!("there is no CPU {cpu} for its threads"),
                remedy: format!("CPUs {online} are online"),
                is_of_kernel: false,
            }));
        }
    }
    Ok(())
}

/// The interfaces of this machine's network namespaces, and the journal of their changes.
pub struct Switch {
    journal: Journal,
    machine: Machine,
    abilities: Abilities,
}

impl Switch {
    /// Creates a switch that has entered no namespace yet.
    pub fn new(journal: Journal) -> Self {
        Switch {
            journal,
            machine: Machine::new(),
            abilities: Abilities::probe(),
        }
    }

    /// Returns the namespaces that have been entered.
    pub fn machine(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// Returns the journal of all present changes, whichever process made them.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Returns the state of a command's interfaces.
    ///
    /// # Errors
    /// A refusal when one of them can never take its values.
    pub fn survey(&mut self, orders: &[Order]) -> Result<Vec<InterfaceFacts>, SwitchError> {
        let all = gather(&mut self.machine, orders)?;
        for facts in &all {
            plan::check(facts, &self.abilities)?;
        }
        require_cpus(orders)?;
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

    /// Makes held changes: the owner undoes them if this process does not.
    pub fn hold(
        &mut self,
        orders: &[Order],
        needs: Needs,
        owner: Owner,
    ) -> Result<Held, SwitchError> {
        let (held, _) = self.write(orders, needs, owner, None)?;
        Ok(held)
    }

    /// Locks the interfaces of a command and their companions, before any change.
    pub(super) fn begin(
        &mut self,
        orders: &[Order],
        needs: Needs,
        owner: Owner,
        until_boottime_ns: Option<u64>,
    ) -> Result<Held, SwitchError> {
        let facts = gather(&mut self.machine, orders)?;
        let mut targets: Vec<Target> = Vec::new();
        for order in orders {
            if !targets.contains(&order.target) {
                targets.push(order.target.clone());
            }
        }
        let needed = preconditions(&facts, needs)?.into_iter();
        let mut companions: Vec<_> = needed.map(|(of, write)| (write.target, of)).collect();
        companions.dedup();
        let journal = &self.journal;
        Held::begin(journal, owner, until_boottime_ns, &targets, &companions)
    }

    /// Makes the changes of a command, and returns the writes. Settled changes ([`Held::settle`]) last until they are
    /// undone; otherwise `owner` undoes them, at `until_boottime_ns` if that is set.
    pub fn write(
        &mut self,
        orders: &[Order],
        needs: Needs,
        owner: Owner,
        until_boottime_ns: Option<u64>,
    ) -> Result<(Held, Vec<Write>), SwitchError> {
        let mut held = self.begin(orders, needs, owner, until_boottime_ns)?;
        let machine = &mut self.machine;
        match change(&mut held, machine, orders, needs) {
            Ok(writes) => Ok((held, writes)),
            Err(first) => Err(undone(held, machine, first)),
        }
    }
}

/// Undoes the held changes after `first` failed, and adds the second error if undoing fails too.
pub(super) fn undone(held: Held, machine: &mut Machine, first: SwitchError) -> SwitchError {
    match held.undo(machine) {
        Ok(()) => first,
        Err(second) => first.and_back(&second, ""),
    }
}

impl Held {
    /// Makes further changes on held interfaces.
    pub fn change(
        &mut self,
        switch: &mut Switch,
        orders: &[Order],
        needs: Needs,
    ) -> Result<(), SwitchError> {
        change(self, &mut switch.machine, orders, needs)?;
        Ok(())
    }

    /// Restores every value, last interface first, and closes the records.
    pub fn restore(self, switch: &mut Switch) -> Result<(), SwitchError> {
        self.undo_wherever(&mut switch.machine)
    }
}

pub(super) fn gather(
    machine: &mut Machine,
    orders: &[Order],
) -> Result<Vec<InterfaceFacts>, SwitchError> {
    let orders = orders.iter();
    orders
        .map(|order| InterfaceFacts::gather(machine, order))
        .collect()
}

/// Writes in three steps: NAPI instances may appear with the first, threads with the second.
fn change(
    held: &mut Held,
    machine: &mut Machine,
    orders: &[Order],
    needs: Needs,
) -> Result<Vec<Write>, SwitchError> {
    let facts = gather(machine, orders)?;
    let mut all = features(&facts);
    let needed = preconditions(&facts, needs)?.into_iter();
    all.extend(needed.map(|(_, write)| write));
    held.write(machine, &all)?;
    type PlanStep = fn(&InterfaceFacts) -> Result<Vec<Write>, Refusal>;
    let steps: [PlanStep; 2] = [
        |facts| require_napi(facts).and_then(|()| plan::settings(facts)),
        plan::threads,
    ];
    for step in steps {
        let mut writes = Vec::new();
        for facts in &gather(machine, orders)? {
            writes.extend(step(facts)?);
        }
        held.write(machine, &writes)?;
        all.append(&mut writes);
    }
    Ok(all)
}

/// Refuses an interface that has no NAPI instance even with all preconditions met: nothing would poll.
pub(super) fn require_napi(facts: &InterfaceFacts) -> Result<(), Refusal> {
    if needs_napi(&facts.asked.values) && facts.has_no_napi() {
        return Err(facts.refusal(
            "it has no NAPI instance, even though it is up",
            "set the interface that its packets come from",
        ));
    }
    Ok(())
}
