//! Where knobs are read and written: one kind of place each for all knobs that the kernel treats alike.
//!
//! What must hold: reading changes nothing; writing changes the knob and, for an interface's own value, the
//! same value of its NAPI instances.

use std::collections::BTreeMap;
use std::io;

use nicpoll_sys::schedule;

use super::form::Beside;
use super::table::TABLE;
use super::{Knob, KnobRow, Scope, Value, named_rows};
use crate::control::{Control, ControlError};
use crate::kernel::{Target, of_thread, supported};
use crate::sysctl;

/// A kind of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Whether the interface is up, by rtnetlink.
    Link,
    /// Offload features whose name matches, by ethtool netlink.
    Feature(&'static str),
    /// A value of each NAPI instance, and perhaps one of the interface.
    Napi(Scoped),
    /// A parameter of interrupt moderation, by its number in `ETHTOOL_A_COALESCE_*`.
    Coalescing { attribute: u16 },
    /// The size of a ring, by its number in `ETHTOOL_A_RINGS_*`.
    Ring { attribute: u16 },
    /// A value below `/proc/sys`, as the interface's network namespace sees it.
    Sysctl(&'static str),
    /// The CPUs that a thread may use.
    ThreadCpus,
    /// The class and priority of a thread.
    ThreadPolicy,
}

/// A value of NAPI instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scoped {
    /// The file of the interface's own value in its directory of sysfs, with the largest number that it takes.
    pub file: Option<(&'static str, u64)>,
    /// Its name in the journal.
    pub key: &'static str,
    /// Its number in `NETDEV_A_NAPI_*`.
    pub attribute: u16,
    /// What a kernel lacks that does not set it, largest value first.
    pub lacking: &'static [Lacking],
}

/// What a kernel lacks that does not set a value of single NAPI instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lacking {
    /// For values from here on.
    pub from: u64,
    /// What is missing.
    pub reason: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

impl Place {
    /// The word before or after a knob's name that says which kind it is.
    pub fn label(&self) -> Option<&'static str> {
        match self {
            Place::Coalescing { .. } => Some("coalescing"),
            Place::Sysctl(_) => Some("sysctl"),
            Place::ThreadCpus => Some("CPUs"),
            Place::ThreadPolicy => Some("scheduling"),
            Place::Link | Place::Feature(_) | Place::Napi(_) | Place::Ring { .. } => None,
        }
    }

    /// What it is a place for, for a driver that has none.
    pub fn describe(&self) -> &'static str {
        match self {
            Place::Link => "link",
            Place::Feature(_) => "feature",
            Place::Napi(_) => "NAPI value",
            Place::Coalescing { .. } => "coalescing parameter",
            Place::Ring { .. } => "ring size",
            Place::Sysctl(_) => "sysctl",
            Place::ThreadCpus | Place::ThreadPolicy => "thread",
        }
    }

    /// Where the values are, for people.
    pub fn location(&self) -> &'static str {
        match self {
            Place::Link => "rtnetlink",
            Place::Feature(_) | Place::Coalescing { .. } | Place::Ring { .. } => "ethtool netlink",
            Place::Napi(Scoped { file: Some(_), .. }) => {
                "sysfs directory of the interface; netdev netlink for single NAPI instances"
            }
            Place::Napi(_) => "each NAPI instance, netdev netlink",
            Place::Sysctl(_) => "/proc/sys",
            Place::ThreadCpus | Place::ThreadPolicy => "the scheduler",
        }
    }

    /// What the journal calls it, and what stands beside that name.
    pub fn journal_key(&self) -> (&'static str, Beside) {
        match self {
            Place::Link => ("up", Beside::Nothing),
            Place::Feature(_) => ("feature", Beside::Feature),
            Place::Napi(scoped) if scoped.file.is_none() => (scoped.key, Beside::Napi),
            Place::Napi(scoped) => (scoped.key, Beside::Scope),
            Place::Coalescing { .. } => ("moderation", Beside::KnobRow),
            Place::Ring { .. } => ("ring", Beside::KnobRow),
            Place::Sysctl(_) => ("sysctl", Beside::KnobRow),
            Place::ThreadCpus => ("thread_cpus", Beside::Thread),
            Place::ThreadPolicy => ("thread_policy", Beside::Thread),
        }
    }
}

impl Control {
    /// What a knob holds now; `None` when there is no such knob (any more).
    pub(crate) fn read_knob(
        &mut self,
        target: &Target,
        knob: &Knob,
    ) -> Result<Option<Value>, ControlError> {
        let interface = &target.interface;
        let ifindex = interface.ifindex;
        match (&knob.row.place, knob.scope) {
            (Place::Link, _) => {
                let links = self.links()?;
                let own = links.iter().find(|link| link.interface.ifindex == ifindex);
                Ok(own.map(|link| Value::flag(link.is_up)))
            }
            (Place::Feature(_), _) => {
                let wanted = self.features(ifindex)?.wanted;
                let name = knob.feature.as_deref().unwrap_or_default();
                Ok(wanted.get(name).map(|&on| Value::flag(on)))
            }
            (Place::Napi(scoped), Scope::Napi(id)) => {
                let napis = supported(self.napis(ifindex))?.unwrap_or_default();
                let napi = napis.into_iter().find(|napi| napi.id == id);
                Ok(napi
                    .and_then(|napi| napi.attribute(scoped.attribute))
                    .map(Value::Number))
            }
            (Place::Napi(scoped), _) => match scoped.file {
                Some((file, _)) => self.read_device(interface, file),
                None => Ok(None),
            },
            (Place::Coalescing { attribute }, _) => {
                let there = supported(self.coalescing(ifindex))?.unwrap_or_default();
                Ok(there
                    .get(attribute)
                    .map(|&value| Value::Number(value.into())))
            }
            (Place::Ring { attribute }, _) => {
                let there = supported(self.rings(ifindex))?.unwrap_or_default();
                Ok(there
                    .get(attribute)
                    .map(|&value| Value::Number(value.into())))
            }
            (Place::Sysctl(name), _) => sysctl::read(name),
            (Place::ThreadCpus, Scope::Thread(pid)) => {
                of_thread(pid, "asking for the CPUs", schedule::cpus)
                    .map(|cpus| cpus.map(Value::Cpus))
            }
            (Place::ThreadPolicy, Scope::Thread(pid)) => {
                of_thread(pid, "asking for the scheduling", schedule::policy)
                    .map(|policy| policy.map(Value::Policy))
            }
            (Place::ThreadCpus | Place::ThreadPolicy, _) => Ok(None),
        }
    }

    /// Writes a knob.
    pub(crate) fn write_knob(
        &mut self,
        target: &Target,
        knob: &Knob,
        value: &Value,
    ) -> Result<(), ControlError> {
        let interface = &target.interface;
        let ifindex = interface.ifindex;
        match (&knob.row.place, knob.scope, value) {
            (Place::Link, _, Value::Number(up)) => self.set_up(ifindex, *up != 0),
            (Place::Feature(_), _, Value::Number(on)) => {
                let name = knob.feature.clone().unwrap_or_default();
                self.set_features(ifindex, &BTreeMap::from([(name, *on != 0)]))
            }
            (Place::Napi(scoped), Scope::Napi(id), Value::Number(number)) => {
                self.set_napi(id, scoped.attribute, knob.row.name, *number)
            }
            (Place::Napi(scoped), _, Value::Number(number)) => match scoped.file {
                Some((file, _)) => self.write_device(interface, file, *number),
                None => Err(unwritable(knob, value)),
            },
            (Place::Coalescing { attribute }, _, Value::Number(number)) => {
                let number = u32::try_from(*number).map_err(|_| unwritable(knob, value))?;
                let is_flag = knob.row.is_adaptive();
                self.set_coalescing(ifindex, (*attribute, knob.row.name), is_flag, number)
            }
            (Place::Ring { attribute }, _, Value::Number(number)) => {
                let number = u32::try_from(*number).map_err(|_| unwritable(knob, value))?;
                self.set_ring(ifindex, (*attribute, knob.row.name), number)
            }
            (Place::Sysctl(name), _, Value::Text(text)) => sysctl::write(name, text),
            (Place::ThreadCpus, Scope::Thread(pid), Value::Cpus(cpus)) => {
                schedule::set_cpus(pid, cpus).map_err(ControlError::of_io(format!(
                    "binding thread {pid} to CPUs {value}"
                )))
            }
            (Place::ThreadPolicy, Scope::Thread(pid), Value::Policy(policy)) => {
                schedule::set_policy(pid, *policy).map_err(ControlError::of_io(format!(
                    "scheduling thread {pid} as {value}"
                )))
            }
            _ => Err(unwritable(knob, value)),
        }
    }

    /// Every value of the interface's own, as far as this kernel and driver have them: by the same requests that
    /// [`Control::read_knob`] makes, one for each kind of place.
    pub(crate) fn read_own(
        &mut self,
        target: &Target,
    ) -> Result<BTreeMap<Knob, Value>, ControlError> {
        let ifindex = target.interface.ifindex;
        let features = supported(self.features(ifindex))?.unwrap_or_default();
        let mut own: BTreeMap<Knob, Value> = features
            .wanted
            .iter()
            .filter_map(|(name, &on)| Some((Knob::of_feature(name)?, Value::flag(on))))
            .collect();
        let coalescing = supported(self.coalescing(ifindex))?.unwrap_or_default();
        let rings = supported(self.rings(ifindex))?.unwrap_or_default();
        for row in TABLE.into_iter().chain(named_rows()) {
            let knob = Knob::of_interface(row);
            let value = match row.place {
                Place::Coalescing { attribute } => number_of(&coalescing, attribute),
                Place::Ring { attribute } => number_of(&rings, attribute),
                Place::Napi(_) | Place::Link | Place::Sysctl(_) => self.read_knob(target, &knob)?,
                Place::Feature(_) | Place::ThreadCpus | Place::ThreadPolicy => None,
            };
            own.extend(value.map(|value| (knob, value)));
        }
        Ok(own)
    }

    /// The parameters of interrupt moderation that the driver has.
    ///
    /// # Errors
    /// Of kind `Unsupported` when it has none.
    pub fn moderation(
        &mut self,
        ifindex: u32,
    ) -> Result<Vec<(&'static KnobRow, u32)>, ControlError> {
        let there = self.coalescing(ifindex)?;
        let of = |row: &&'static KnobRow| match row.place {
            Place::Coalescing { attribute } => Some((*row, *there.get(&attribute)?)),
            _ => None,
        };
        Ok(TABLE.iter().filter_map(of).collect())
    }
}

fn number_of(there: &BTreeMap<u16, u32>, attribute: u16) -> Option<Value> {
    let value = there.get(&attribute)?;
    Some(Value::Number(u64::from(*value)))
}

fn unwritable(knob: &Knob, value: &Value) -> ControlError {
    ControlError::of_io(format!("writing {value} to {knob}"))(io::ErrorKind::InvalidInput.into())
}
