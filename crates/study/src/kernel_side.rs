//! The kernel's side of receiving, changed for an engine by the switch: recorded before it is written, held by a guard,
//! put back at the end.
//!
//! What must hold: nothing is changed on an interface that carries the caller's own ssh connection. An interface
//! without NAPI instances gets them by GRO, not by the engine's XDP program, since they have to outlive that: what is
//! set on them could not be put back otherwise.

use std::io;
use std::process::Command;

use nicpoll_engine::{GrantedSetup, KernelSide, Named, ReceiveSetup, ReceiveWish, SetupError};
use nicpoll_model::engine::KernelSideFacts;
use nicpoll_switch::knob::table;
use nicpoll_switch::{
    Guard, Held, InterfaceFacts, Journal, Name, Needs, Order, POLLING_PERIOD_NS, Resolved, Switch,
    Value, Values, recover, require_privileges,
};
use nicpoll_sys::affinity;
use nicpoll_sys::schedule::Policy;

/// Changes the kernel's side by the switch.
pub struct SwitchSetup {
    guard: fn() -> io::Result<Command>,
}

impl SwitchSetup {
    /// `guard` is what starts a guard: [`nicpoll_switch::guard_of_this_program`], in a program that has one.
    pub fn new(guard: fn() -> io::Result<Command>) -> Self {
        SwitchSetup { guard }
    }
}

/// What is set, and who puts it back.
struct Granted {
    switch: Switch,
    held: Option<Held>,
    facts: KernelSideFacts,
    // Ends last: it finds nothing left to undo.
    _guard: Guard,
}

impl ReceiveSetup for SwitchSetup {
    fn set_up(&self, wish: &ReceiveWish) -> Result<Box<dyn GrantedSetup>, SetupError> {
        let ReceiveWish {
            interface, side, ..
        } = *wish;
        require_privileges()?;
        let journal = Journal::of_this_machine();
        recover(&journal)?;
        let mut switch = Switch::new(journal.clone());
        let cpus = match wish.kernel_cpus {
            [] => thread_cpus(&affinity::allowed_cpus()?, wish.engine_cpus),
            cpus => cpus.to_vec(),
        };
        let wanted = values(side, &cpus, wish.engine_cpus);
        let mut orders = orders(&mut switch, interface, &wanted)?;
        let facts = switch.survey(&orders)?;
        for (order, facts) in orders.iter_mut().zip(&facts) {
            if facts.napis().is_empty() {
                order.values.insert(&table::GRO, Value::Number(1));
            }
        }
        let netns_inode = orders.first().map_or(0, |order| order.target.netns_inode);
        if switch.carries_own_ssh(netns_inode, &orders)? {
            return Err("it carries your ssh connection".into());
        }
        let guard = Guard::start((self.guard)()?, &journal, None)?;
        // The engine's XDP program keeps offloads at the other end of a veth off.
        let held = switch.hold(&orders, Needs::Trust, guard.owner())?;
        let changes = orders.iter().flat_map(|order| order.values.list());
        let changes = changes.map(|(name, value)| format!("{name} {value}"));
        Ok(Box::new(Granted {
            facts: KernelSideFacts {
                name: String::from(side.name()),
                thread_cpus: match side {
                    KernelSide::Threaded => cpus,
                    KernelSide::Polling | KernelSide::AsIs => Vec::new(),
                },
                changes: changes.collect(),
            },
            switch,
            held: Some(held),
            _guard: guard,
        }))
    }
}

impl Granted {
    fn restore(&mut self) -> Result<(), SetupError> {
        match self.held.take() {
            Some(held) => Ok(held.restore(&mut self.switch)?),
            None => Ok(()),
        }
    }
}

impl GrantedSetup for Granted {
    fn facts(&self) -> KernelSideFacts {
        self.facts.clone()
    }

    fn put_back(mut self: Box<Self>) -> Result<(), SetupError> {
        self.restore()
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        // What fails here the guard does.
        let _ = self.restore();
    }
}

/// What there is to know of an interface of the calling thread's network namespace.
pub(crate) fn facts_of(interface: &str) -> Result<Vec<InterfaceFacts>, SetupError> {
    let mut switch = Switch::new(Journal::of_this_machine());
    let orders = orders(&mut switch, interface, &Values::new())?;
    Ok(switch.survey(&orders)?)
}

/// Threads of the kernel that poll an interface of the calling thread's network namespace.
pub(crate) fn napi_threads(interface: &str) -> Result<Vec<u32>, SetupError> {
    let facts = facts_of(interface)?;
    let napis = facts.iter().flat_map(|facts| facts.napis());
    Ok(napis.filter_map(|napi| napi.thread_pid).collect())
}

fn orders(switch: &mut Switch, interface: &str, values: &Values) -> Result<Vec<Order>, SetupError> {
    let netns_inode = switch.enter(None)?;
    let names = [Name::whole(interface)];
    let resolved = switch.resolve(&names, values, netns_inode, Needs::Trust);
    let Resolved { orders, .. } = resolved?;
    match orders
        .iter()
        .any(|order| order.target.interface.name != interface)
    {
        true => Err("its packets arrive at other interfaces; name one of those".into()),
        false => Ok(orders),
    }
}

/// What each side is, in the switch's knobs.
fn values(side: KernelSide, cpus: &[u32], engine_cpus: &[u32]) -> Values {
    match side {
        KernelSide::AsIs => Values::new(),
        KernelSide::Threaded => {
            let mut values = Values::new().with(&table::THREADED, 1);
            values.insert(&table::THREAD_CPUS, Value::Cpus(cpus.to_vec()));
            if is_held_back(cpus, engine_cpus) {
                // The engine lets them run in the network's part of each tick.
                values.insert(&table::THREAD_POLICY, Value::Policy(Policy::Idle));
            }
            values
        }
        KernelSide::Polling => Values::polling(POLLING_PERIOD_NS),
    }
}

/// Whether the kernel's threads share their only CPU with the engine, which then says when they run.
pub(crate) fn is_held_back(kernel_cpus: &[u32], engine_cpus: &[u32]) -> bool {
    matches!(kernel_cpus, [cpu] if engine_cpus.contains(cpu))
}

/// The CPUs that the engine leaves free; the engine's own where there are no others.
fn thread_cpus(allowed: &[u32], engine_cpus: &[u32]) -> Vec<u32> {
    let free = allowed.iter().filter(|cpu| !engine_cpus.contains(cpu));
    let free: Vec<u32> = free.copied().collect();
    if free.is_empty() {
        engine_cpus.to_vec()
    } else {
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_threads_keep_off_the_engines_cpus() {
        assert_eq!(thread_cpus(&[0, 1, 2], &[2]), [0, 1]);
        assert_eq!(thread_cpus(&[0, 1], &[0, 1]), [0, 1]);
    }
}
