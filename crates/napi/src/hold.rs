//! Changes that are held: recorded, made, proven, and put back in the order that works.
//!
//! What must hold: no value is written before its old one is on disk; putting back leaves every value
//! as it was, and says so if it could not.
//!
//! The order of undoing matters (facts of the kernel's `napi_complete_done`): with the deferral count
//! set to 0 alone, an idle NAPI goes on counting down the old number. So both values are set to 0, one
//! old timeout is waited for, in which the timer fires a last time and unmasks the interrupt, and only
//! then the saved values are written.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nicpoll_sys::netns::{self, NetNamespace};
use thiserror::Error;

use crate::control::{Control, ControlError, Interface};
use crate::journal::{Change, Entry, Journal, JournalError};

/// The largest value of `napi_defer_hard_irqs`: so many empty polls that the interrupt stays masked
/// once the timer runs.
pub const DEFER_HARD_IRQS_MAX: u32 = i32::MAX as u32;

/// Why a change could not be made or put back.
#[derive(Debug, Error)]
pub enum HoldError {
    /// It could not be recorded, so it was not made.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The kernel refused.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The kernel accepted a value and shows another one.
    #[error(
        "{interface}: {what} is {is} after it was set to {asked}; the driver does not allow it, or \
         something else changes it too"
    )]
    NotTaken {
        /// The interface.
        interface: String,
        /// The value's name.
        what: String,
        /// What was asked for.
        asked: String,
        /// What the kernel shows.
        is: String,
    },
    /// The NAPI instance is not there.
    #[error(
        "{interface} has no NAPI instance {napi_id}; it comes and goes with GRO, XDP and up/down"
    )]
    NoNapi {
        /// The interface.
        interface: String,
        /// The id.
        napi_id: u32,
    },
}

/// The changes that this process holds on one interface.
///
/// Dropping it does *not* put anything back, since that needs the interface's [`Control`]:
/// [`Held::restore`] does. What is dropped unrestored is found by [`recover`] at the next start.
#[derive(Debug)]
pub struct Held {
    journal: Journal,
    netns_inode: u64,
    interface: Interface,
    entry: Option<Entry>,
}

impl Held {
    /// A holder that has changed nothing yet.
    pub fn new(journal: &Journal, netns_inode: u64, interface: Interface) -> Self {
        Held {
            journal: journal.clone(),
            netns_inode,
            interface,
            entry: None,
        }
    }

    /// Turns features on or off, those that are not so already.
    pub fn set_features(
        &mut self,
        control: &mut Control,
        asked: &BTreeMap<String, bool>,
    ) -> Result<(), HoldError> {
        let ifindex = self.interface.ifindex;
        let there = control.features(ifindex)?;
        let is = |set: &BTreeMap<String, bool>, name: &str| set.get(name).copied().unwrap_or(false);
        let changes: BTreeMap<String, bool> = asked
            .iter()
            .filter(|&(name, &on)| is(&there.wanted, name) != on || is(&there.active, name) != on)
            .map(|(name, &on)| (name.clone(), on))
            .collect();
        if changes.is_empty() {
            return Ok(());
        }
        let before = changes
            .keys()
            .map(|name| (name.clone(), is(&there.wanted, name)))
            .collect();
        self.record(Change::Features { before })?;
        control.set_features(ifindex, &changes)?;
        let now = control.features(ifindex)?.active;
        match changes.iter().find(|&(name, &on)| is(&now, name) != on) {
            Some((name, on)) => Err(self.not_taken(name, on, &!on)),
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
    ) -> Result<(), HoldError> {
        let before = self.napi(control, napi_id)?;
        let recorded_max = self.recorded_timeout_max_ns(napi_id);
        if recorded_max.is_none_or(|max| gro_flush_timeout_ns > max) {
            self.record(Change::Deferral {
                napi_id,
                defer_hard_irqs_before: before.defer_hard_irqs,
                gro_flush_timeout_before_ns: before.gro_flush_timeout_ns,
                gro_flush_timeout_max_ns: gro_flush_timeout_ns.max(before.gro_flush_timeout_ns),
            })?;
        }
        control.set_deferral(napi_id, defer_hard_irqs, gro_flush_timeout_ns)?;
        let now = self.napi(control, napi_id)?;
        if now.defer_hard_irqs != defer_hard_irqs {
            let what = "napi_defer_hard_irqs";
            return Err(self.not_taken(what, &defer_hard_irqs, &now.defer_hard_irqs));
        }
        if now.gro_flush_timeout_ns != gro_flush_timeout_ns {
            let what = "gro_flush_timeout";
            return Err(self.not_taken(what, &gro_flush_timeout_ns, &now.gro_flush_timeout_ns));
        }
        Ok(())
    }

    /// Puts everything back, last change first, and closes the record.
    pub fn restore(self, control: &mut Control) -> Result<(), HoldError> {
        match self.entry {
            Some(entry) => restore_entry(entry, control),
            None => Ok(()),
        }
    }

    fn record(&mut self, change: Change) -> Result<(), JournalError> {
        match &mut self.entry {
            Some(entry) => entry.add(change),
            None => {
                let interface = self.interface.clone();
                self.entry = Some(self.journal.begin(self.netns_inode, interface, change)?);
                Ok(())
            }
        }
    }

    fn recorded_timeout_max_ns(&self, napi_id: u32) -> Option<u64> {
        let changes = &self.entry.as_ref()?.record().changes;
        changes
            .iter()
            .filter_map(|change| match change {
                Change::Deferral {
                    napi_id: id,
                    gro_flush_timeout_max_ns,
                    ..
                } if *id == napi_id => Some(*gro_flush_timeout_max_ns),
                _ => None,
            })
            .max()
    }

    fn napi(&self, control: &mut Control, napi_id: u32) -> Result<crate::control::Napi, HoldError> {
        control
            .napis(self.interface.ifindex)?
            .into_iter()
            .find(|napi| napi.id == napi_id)
            .ok_or_else(|| HoldError::NoNapi {
                interface: self.interface.name.clone(),
                napi_id,
            })
    }

    fn not_taken(&self, what: &str, asked: &dyn ToString, is: &dyn ToString) -> HoldError {
        HoldError::NotTaken {
            interface: self.interface.name.clone(),
            what: String::from(what),
            asked: asked.to_string(),
            is: is.to_string(),
        }
    }
}

fn restore_entry(entry: Entry, control: &mut Control) -> Result<(), HoldError> {
    let record = entry.record();
    let ifindex = record.interface.ifindex;
    for change in record.changes.iter().rev() {
        match change {
            Change::Deferral {
                napi_id,
                defer_hard_irqs_before,
                gro_flush_timeout_before_ns,
                gro_flush_timeout_max_ns,
            } => {
                // An instance that is gone took its values along.
                let exists = control
                    .napis(ifindex)?
                    .iter()
                    .any(|napi| napi.id == *napi_id);
                if !exists {
                    continue;
                }
                control.set_deferral(*napi_id, 0, 0)?;
                thread::sleep(Duration::from_nanos(*gro_flush_timeout_max_ns));
                control.set_deferral(
                    *napi_id,
                    *defer_hard_irqs_before,
                    *gro_flush_timeout_before_ns,
                )?;
            }
            Change::Features { before } => {
                control.set_features(ifindex, before)?;
                let now = control.features(ifindex)?.wanted;
                let wrong = before
                    .iter()
                    .find(|&(name, &on)| now.get(name).copied().unwrap_or(false) != on);
                if let Some((name, on)) = wrong {
                    return Err(HoldError::NotTaken {
                        interface: record.interface.name.clone(),
                        what: name.clone(),
                        asked: on.to_string(),
                        is: (!on).to_string(),
                    });
                }
            }
        }
    }
    entry.close()?;
    Ok(())
}

/// What became of a record that an earlier process left.
#[derive(Debug)]
pub enum Recovered {
    /// Its owner still runs.
    Busy,
    /// The values did not outlive the boot, or went with their namespace or interface.
    Gone,
    /// They were put back.
    Restored,
    /// It is not a record, or putting back failed; the file is still there.
    Failed(HoldError),
}

/// Puts back what processes that are no more have left, and closes records that nothing is left of.
pub fn recover(journal: &Journal) -> Result<Vec<(PathBuf, Recovered)>, HoldError> {
    let mut outcomes = Vec::new();
    for entry in journal.entries()? {
        match entry {
            Ok(entry) => {
                let path = entry.path().to_path_buf();
                let outcome = recover_entry(entry).unwrap_or_else(Recovered::Failed);
                outcomes.push((path, outcome));
            }
            Err(error) => {
                let path = match &error {
                    JournalError::NotARecord { path, .. } | JournalError::Io { path, .. } => {
                        path.clone()
                    }
                    JournalError::Busy { .. } => PathBuf::new(),
                };
                outcomes.push((path, Recovered::Failed(error.into())));
            }
        }
    }
    Ok(outcomes)
}

fn recover_entry(entry: Entry) -> Result<Recovered, HoldError> {
    let failed = |source: io::Error| JournalError::Io {
        path: entry.path().to_path_buf(),
        source,
    };
    let record = entry.record();
    if !record.is_of_this_boot().map_err(failed)? {
        entry.close()?;
        return Ok(Recovered::Gone);
    }
    if record.owner.is_alive().map_err(failed)? {
        return Ok(Recovered::Busy);
    }
    let Some(namespace) = find_namespace(record.netns_inode).map_err(failed)? else {
        entry.close()?;
        return Ok(Recovered::Gone);
    };
    thread::scope(|scope| {
        scope
            .spawn(move || {
                namespace.enter().map_err(|source| JournalError::Io {
                    path: entry.path().to_path_buf(),
                    source,
                })?;
                let mut control = Control::new();
                // The index alone could be a later interface's.
                let recorded = &entry.record().interface;
                match control.interface(&recorded.name) {
                    Ok(now) if now == *recorded => {
                        restore_entry(entry, &mut control)?;
                        Ok(Recovered::Restored)
                    }
                    _ => {
                        entry.close()?;
                        Ok(Recovered::Gone)
                    }
                }
            })
            .join()
            .expect("restoring does not panic")
    })
}

/// A namespace lives by a process in it, or by a name.
fn find_namespace(inode: u64) -> io::Result<Option<NetNamespace>> {
    let names = std::fs::read_dir(netns::NAMED_DIRECTORY)
        .into_iter()
        .flatten()
        .flatten()
        .map(|file| file.path());
    let processes = std::fs::read_dir("/proc")?
        .flatten()
        .map(|process| process.path().join("ns/net"));
    let own = Path::new("/proc/thread-self/ns/net").to_path_buf();
    // Most paths are not namespaces or are gone by now.
    Ok(std::iter::once(own)
        .chain(names)
        .chain(processes)
        .filter_map(|path| NetNamespace::open(&path).ok())
        .find(|namespace| namespace.inode() == inode))
}
