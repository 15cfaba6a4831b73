//! Changes that a process holds on one interface while it runs: those of a study.
//!
//! What must hold: no value is written before its old one is on disk; putting back leaves every value
//! as it was, and says so if it could not.

use std::collections::BTreeMap;

use crate::control::{Control, Interface};
use crate::error::SwitchError;
use crate::journal::{Journal, JournalError};
use crate::kernel::Target;
use crate::knob::{Knob, Value, table};
use crate::owner::Owner;
use crate::transaction::{Terms, Transaction, Write};

/// The changes that this process holds on one interface.
///
/// Dropping it does *not* put anything back, since that needs the interface's [`Control`]:
/// [`Held::restore`] does. What is dropped unrestored is found by [`crate::recover`] at the next start.
#[derive(Debug)]
pub struct Held {
    journal: Journal,
    target: Target,
    transaction: Option<Transaction>,
}

impl Held {
    /// A holder that has changed nothing yet.
    pub fn new(journal: &Journal, netns_inode: u64, interface: Interface) -> Self {
        Held {
            journal: journal.clone(),
            target: Target {
                netns_inode,
                interface,
            },
            transaction: None,
        }
    }

    /// Turns features on or off, those that are not so already.
    pub fn set_features(
        &mut self,
        control: &mut Control,
        asked: &BTreeMap<String, bool>,
    ) -> Result<(), SwitchError> {
        let ifindex = self.target.interface.ifindex;
        let there = control.features(ifindex)?;
        let is = |set: &BTreeMap<String, bool>, name: &str| set.get(name).copied().unwrap_or(false);
        let changes: Vec<(Knob, Value, Value)> = asked
            .iter()
            .filter(|&(name, &on)| is(&there.wanted, name) != on)
            .filter_map(|(name, &on)| {
                let knob = Knob::of_feature(name)?;
                Some((knob, Value::flag(!on), Value::flag(on)))
            })
            .collect();
        self.write(control, changes)?;
        let now = control.features(ifindex)?.active;
        match asked.iter().find(|&(name, &on)| is(&now, name) != on) {
            Some((name, on)) => Err(SwitchError::NotTaken {
                interface: self.target.interface.name.clone(),
                what: name.clone(),
                asked: on.to_string(),
                is: (!on).to_string(),
            }),
            None => Ok(()),
        }
    }

    /// Sets the deferral of one NAPI instance. May be called again to move the timeout.
    pub fn set_deferral(
        &mut self,
        control: &mut Control,
        napi_id: u32,
        defer_hard_irqs: u32,
        gro_flush_timeout_ns: u64,
    ) -> Result<(), SwitchError> {
        let napis = control.napis(self.target.interface.ifindex)?;
        let Some(napi) = napis.iter().find(|napi| napi.id == napi_id) else {
            return Err(SwitchError::NoNapi {
                interface: self.target.interface.name.clone(),
                napi_id,
            });
        };
        let asked = [
            (
                Knob::of_napi(&table::DEFER_HARD_IRQS, napi_id),
                u64::from(defer_hard_irqs),
            ),
            (
                Knob::of_napi(&table::GRO_FLUSH_TIMEOUT, napi_id),
                gro_flush_timeout_ns,
            ),
        ];
        let changes = asked
            .into_iter()
            .filter_map(|(knob, asked)| {
                let now = napi.value_of(&knob)?;
                (now != asked).then_some((knob, Value::Number(now), Value::Number(asked)))
            })
            .collect();
        self.write(control, changes)
    }

    /// Puts everything back and closes the record.
    pub fn restore(self, control: &mut Control) -> Result<(), SwitchError> {
        match self.transaction {
            Some(transaction) => transaction.undo(control),
            None => Ok(()),
        }
    }

    fn write(
        &mut self,
        control: &mut Control,
        changes: Vec<(Knob, Value, Value)>,
    ) -> Result<(), SwitchError> {
        if changes.is_empty() {
            return Ok(());
        }
        let writes: Vec<Write> = changes
            .into_iter()
            .map(|(knob, from, to)| Write {
                target: self.target.clone(),
                knob,
                from,
                to,
                is_implied: false,
            })
            .collect();
        let transaction = match self.transaction.take() {
            Some(transaction) => transaction,
            None => self.begin()?,
        };
        self.transaction.insert(transaction).write(control, &writes)
    }

    /// A study needs the interface as it comes, so it begins on one that nobody has changed.
    fn begin(&self) -> Result<Transaction, SwitchError> {
        let path = self
            .journal
            .directory()
            .join(Journal::file_name(&self.target));
        let interface = &self.target.interface;
        if let Some(entry) = self.journal.lock(&path)?
            && !entry.record().standing.is_empty()
        {
            return Err(SwitchError::Journal(JournalError::Standing {
                interface: interface.name.clone(),
                ifindex: interface.ifindex,
            }));
        }
        let terms = Terms {
            owner: Owner::this_process().map_err(JournalError::io(&path))?,
            until_boottime_ns: None,
        };
        Transaction::begin(
            &self.journal,
            terms,
            std::slice::from_ref(&self.target),
            &[],
        )
    }
}
