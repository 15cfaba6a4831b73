//! Interfaces that a running program switches to polling and back, as a key of `nicpoll watch` does.
//!
//! What must hold: every change is held by a guard. However the program ends, killed or not, what is left is
//! put back.

use std::process::Command;

use thiserror::Error;

use crate::apply::{Held, Preview, SetError, Switch, preview, require_privileges};
use crate::error::SwitchError;
use crate::guard::{Guard, GuardError};
use crate::journal::Journal;
use crate::plan::Needs;
use crate::recover::recover;
use crate::request::{Name, POLLING_PERIOD_NS, Values};
use crate::resolve::{ResolveError, Resolved};

/// Interfaces of one namespace, and those of them that poll because of this program.
pub struct Toggles {
    switch: Switch,
    netns_inode: u64,
    guard: Guard,
    held: Vec<(String, Held)>,
}

/// Why an interface was not switched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ToggleError {
    /// It polls without this program.
    #[error("{0} polls already; 'nicpoll set {0} -polling' puts it back")]
    PollsAlready(String),
    /// The caller could be cut off.
    #[error(
        "{0} carries your ssh connection; 'nicpoll set {0} polling' switches it, and back unless you confirm it"
    )]
    OwnConnection(String),
    /// It cannot be found.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// It cannot be set.
    #[error(transparent)]
    Set(#[from] SetError),
    /// It cannot be put back.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// Nobody would put it back if the program were killed.
    #[error(transparent)]
    Guard(#[from] GuardError),
}

impl Toggles {
    /// Nothing is switched yet, in the namespace of the calling thread. `guard` starts a guard.
    pub fn of_caller(journal: Journal, guard: Command) -> Result<Self, ToggleError> {
        require_privileges()?;
        recover(&journal)?;
        let guard = Guard::start(guard, &journal, None)?;
        let mut switch = Switch::new(journal);
        Ok(Toggles {
            netns_inode: switch.enter(None)?,
            switch,
            guard,
            held: Vec::new(),
        })
    }

    /// Switches polling on, or off again. Returns whether it is on now.
    pub fn toggle(&mut self, interface: &str) -> Result<bool, ToggleError> {
        match self.held.iter().position(|(name, _)| name == interface) {
            Some(at) => {
                let (_, held) = self.held.remove(at);
                held.restore(&mut self.switch)?;
                Ok(false)
            }
            None => {
                let held = self.hold(interface)?;
                self.held.push((String::from(interface), held));
                Ok(true)
            }
        }
    }

    /// Puts everything back and returns the names of the interfaces.
    pub fn restore(&mut self) -> Result<Vec<String>, ToggleError> {
        let mut names = Vec::new();
        while let Some((name, held)) = self.held.pop() {
            held.restore(&mut self.switch)?;
            names.push(name);
        }
        Ok(names)
    }

    fn hold(&mut self, interface: &str) -> Result<Held, ToggleError> {
        let values = Values::polling(POLLING_PERIOD_NS);
        let names = [Name::whole(interface)];
        let Resolved { orders, .. } =
            self.switch
                .resolve(&names, &values, self.netns_inode, Needs::Refuse)?;
        let facts = self.switch.survey(&orders)?;
        if preview(&orders, &facts, Needs::Refuse)? == Preview::default() {
            return Err(ToggleError::PollsAlready(String::from(interface)));
        }
        if self.switch.carries_own_ssh(self.netns_inode, &orders)? {
            return Err(ToggleError::OwnConnection(String::from(interface)));
        }
        Ok(self
            .switch
            .hold(&orders, Needs::Refuse, self.guard.owner())?)
    }
}
