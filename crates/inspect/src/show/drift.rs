//! What somebody else changed of the values that `nicpoll set` wrote.

use nicpoll_model::DriftShow;
use nicpoll_switch::{Control, Drift, Journal, SwitchError, Target, drift_of};
use nicpoll_sys::netns::NetNamespace;

use crate::InspectError;
use crate::error::Doing;

/// The journal, as seen from the caller's namespace.
pub struct Standing {
    journal: Journal,
    netns_inode: u64,
}

impl Standing {
    /// The values in force in the namespace that the caller is in.
    pub fn of_caller() -> Result<Self, InspectError> {
        let namespace = NetNamespace::current().doing("looking for the network namespace")?;
        Ok(Standing {
            journal: Journal::of_this_machine(),
            netns_inode: namespace.inode(),
        })
    }

    /// What is no longer as it was set.
    ///
    /// # Errors
    /// When the journal may not be read.
    pub fn drift_of(
        &self,
        control: &mut Control,
        interface: &str,
    ) -> Result<Vec<DriftShow>, SwitchError> {
        let target = Target {
            netns_inode: self.netns_inode,
            interface: control.interface(interface)?,
        };
        let drift = drift_of(&self.journal, control, &target)?;
        Ok(drift.into_iter().map(shown).collect())
    }
}

fn shown(drift: Drift) -> DriftShow {
    DriftShow {
        name: drift.knob.to_string(),
        written: drift.written.to_string(),
        now: drift.now.map(|now| now.to_string()),
    }
}
