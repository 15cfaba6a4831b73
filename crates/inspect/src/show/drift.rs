//! What the journal says of an interface: values that somebody else changed since, and a change that does not stand.

use std::io;

use nicpoll_model::{DriftShow, PendingShow};
use nicpoll_switch::{Journal, Machine, SwitchError, Target, drift_of, pending_of};
use nicpoll_sys::netns::NetNamespace;

/// The journal, as seen from the caller's namespace.
pub struct Standing {
    journal: Journal,
    /// A thread of its own looks: only that sees this namespace's devices under `/sys` for certain.
    machine: Machine,
}

/// What the journal says of one interface.
#[derive(Default)]
pub struct Recorded {
    /// What is no longer as it was set.
    pub drift: Vec<DriftShow>,
    /// A change that is put back by itself.
    pub pending: Option<PendingShow>,
}

impl Standing {
    /// The values in force, by the journal of this machine.
    pub fn of_this_machine() -> Self {
        Standing {
            journal: Journal::of_this_machine(),
            machine: Machine::new(),
        }
    }

    /// What is recorded of an interface of the namespace that the caller is in.
    ///
    /// # Errors
    /// When the journal may not be read.
    pub fn of(&mut self, interface: &str) -> Result<Recorded, SwitchError> {
        if self.journal.paths()?.is_empty() {
            return Ok(Recorded::default());
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
        Ok(Recorded {
            drift: drift.iter().map(DriftShow::from).collect(),
            pending: pending_of(&self.journal, &target)?,
        })
    }
}
