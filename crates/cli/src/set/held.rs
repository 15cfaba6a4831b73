//! Polling that is on only while this program runs, as a key of `nicpoll watch` switches it.
//!
//! What must hold: everything is recorded as a change that nobody will confirm and that another process guards.
//! However this program ends, killed or not, that process puts back what is left.

use std::path::PathBuf;

use anyhow::anyhow;
use nicpoll_switch::standing::{self, Preview};
use nicpoll_switch::{Abilities, DEFER_HARD_IRQS_MAX, Journal, Machine, Part, Request, Terms};

use super::args::PERIOD_NS;
use super::guard::{Guard, attempts_of};
use super::targets::{self, Name, Resolved};
use super::{Place, carries_own_ssh, check_privileges, failure};
use crate::failure::Failure;

/// As long as this program runs.
const FOREVER: u64 = u64::MAX;

/// What 'nicpoll set IF polling' asks for.
pub fn polling_request() -> Request {
    Request {
        defer_hard_irqs: Some(DEFER_HARD_IRQS_MAX),
        gro_flush_timeout_ns: Some(PERIOD_NS),
        ..Request::default()
    }
}

/// Interfaces of one namespace that this program has switched to polling.
pub struct Held {
    journal: Journal,
    machine: Machine,
    netns_inode: u64,
    guard: Guard,
    held: Vec<(String, Vec<PathBuf>)>,
}

impl Held {
    /// Nothing is switched yet, in the namespace of the calling thread.
    pub fn of_caller() -> Result<Self, Failure> {
        check_privileges()?;
        let journal = Journal::of_this_machine();
        nicpoll_switch::recover(&journal).map_err(anyhow::Error::from)?;
        let mut machine = Machine::new();
        Ok(Held {
            netns_inode: targets::enter(&mut machine, None)?,
            guard: Guard::start(&journal, FOREVER)?,
            journal,
            machine,
            held: Vec::new(),
        })
    }

    /// Switches polling on, or off again. Returns whether it is on now.
    pub fn toggle(&mut self, interface: &str) -> Result<bool, Failure> {
        match self.held.iter().position(|(name, _)| name == interface) {
            Some(at) => {
                self.undo(at)?;
                Ok(false)
            }
            None => {
                self.hold(interface)?;
                Ok(true)
            }
        }
    }

    /// Puts everything back and returns the names of the interfaces.
    pub fn undo_all(&mut self) -> Result<Vec<String>, Failure> {
        let mut names = Vec::new();
        while let Some(last) = self.held.len().checked_sub(1) {
            names.push(self.held[last].0.clone());
            self.undo(last)?;
        }
        Ok(names)
    }

    fn undo(&mut self, at: usize) -> Result<(), Failure> {
        for path in &self.held[at].1 {
            standing::undo_unconfirmed(&self.journal, &mut self.machine, path, self.guard.owner)
                .map_err(anyhow::Error::from)?;
        }
        self.held.remove(at);
        Ok(())
    }

    fn hold(&mut self, interface: &str) -> Result<(), Failure> {
        let place = Place {
            journal: self.journal.clone(),
            netns_inode: self.netns_inode,
            links: targets::links(&self.machine, self.netns_inode)?,
        };
        let name = Name {
            interface: String::from(interface),
            part: Part::Whole,
        };
        let Resolved { orders, .. } = targets::resolve(&[name], &place.links, self.netns_inode)?;
        let request = polling_request();
        let abilities = Abilities::probe();
        let machine = &mut self.machine;
        let facts = standing::survey(machine, &orders, &request, &abilities).map_err(failure)?;
        let preview = standing::preview(&orders, &facts, &request, false).map_err(failure)?;
        if preview == Preview::default() {
            return Err(anyhow!(
                "{interface} polls already; 'nicpoll set {interface} -polling' puts it back"
            )
            .into());
        }
        if carries_own_ssh(machine, &place, &orders)? {
            return Err(anyhow!(
                "{interface} carries your ssh connection; 'nicpoll set {interface} polling' switches it, \
                 and back unless you confirm it"
            )
            .into());
        }
        let before = attempts_of(&self.journal, self.guard.owner)?;
        let terms = Terms {
            owner: self.guard.owner,
            until_boottime_ns: Some(FOREVER),
        };
        standing::set(
            &self.journal,
            &mut self.machine,
            &orders,
            &request,
            false,
            terms,
        )
        .map_err(failure)?;
        let mut records = attempts_of(&self.journal, self.guard.owner)?;
        records.retain(|path| !before.contains(path));
        self.held.push((String::from(interface), records));
        Ok(())
    }
}
