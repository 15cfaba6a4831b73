//! What somebody else changed of the values that `nicpoll set` wrote.

use std::io;

use nicpoll_model::DriftShow;
use nicpoll_switch::{Journal, Machine, SwitchError, Target, drift_of};
use nicpoll_sys::netns::NetNamespace;

/// The journal, as seen from the caller's namespace.
pub struct Standing {
    journal: Journal,
    /// A thread of its own looks: only that sees this namespace's devices under `/sys` for certain.
    machine: Machine,
}

impl Standing {
    /// The values in force, by the journal of this machine.
    pub fn of_this_machine() -> Self {
        Standing {
            journal: Journal::of_this_machine(),
            machine: Machine::new(),
        }
    }

    /// What is no longer as it was set on an interface of the namespace that the caller is in.
    ///
    /// # Errors
    /// When the journal may not be read.
    pub fn drift_of(&mut self, interface: &str) -> Result<Vec<DriftShow>, SwitchError> {
        if self.journal.paths()?.is_empty() {
            return Ok(Vec::new());
        }
        let not_entered = |source: io::Error| SwitchError::Namespace {
            interface: String::from(interface),
            source,
        };
        let namespace = NetNamespace::current().map_err(not_entered)?;
        let netns_inode = self.machine.enter(namespace).map_err(not_entered)?;
        let name = String::from(interface);
        let interface = self
            .machine
            .run(netns_inode, move |control| control.interface(&name))??;
        let target = Target {
            netns_inode,
            interface,
        };
        let drift = drift_of(&self.journal, &mut self.machine, &target)?;
        Ok(drift.iter().map(DriftShow::from).collect())
    }
}
