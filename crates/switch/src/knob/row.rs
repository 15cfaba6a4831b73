//! A row of the table: all facts about one knob.

use std::cmp::Ordering;

use super::value::{KnobUnit, Value, ValueError};

/// A row of the [table](super::table).
#[derive(Debug)]
pub struct KnobRow {
    /// Its name in requests; the kernel's own, if it has one.
    pub name: &'static str,
    /// The unit of its numbers.
    pub unit: KnobUnit,
    /// The largest number; 1 for a switch.
    pub max: u64,
    /// Where it is read and written.
    pub(crate) place: KnobPlace,
    /// How its value has to be written and restored.
    pub(crate) rule: WriteRule,
    /// How a change affects packets that arrive meanwhile.
    pub disturbs: Disturbance,
    /// Its counterpart on FreeBSD.
    pub freebsd: Option<&'static str>,
    /// Options of `nicpoll set` that give it a value.
    pub options: &'static [KnobOption],
    /// Its meaning, in one line.
    pub help: &'static str,
}

/// An option of `nicpoll set` that gives a knob a value.
#[derive(Debug)]
pub struct KnobOption {
    /// Its name, without the dashes.
    pub long: &'static str,
    /// The name of its value; `None` for an option without one.
    pub value_name: Option<&'static str>,
    /// Its help text.
    pub help: &'static str,
    /// Options of other knobs that it excludes. Options of the same knob always exclude each other.
    pub conflicts: &'static [&'static str],
    /// Parses the value.
    pub parse: fn(&str) -> Result<Value, ValueError>,
}

/// When a knob is written among the knobs of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Sysctls of the host.
    Host,
    /// The link comes up first and goes down last.
    Link,
    /// Offloads: NAPI instances appear with some of them.
    Feature,
    /// NAPI instances: whether threads poll, and deferral.
    Napi,
    /// The card.
    Card,
    /// Threads, which appear with the instances' settings.
    Thread,
}

/// How a knob's value has to be written and restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteRule {
    /// Directly.
    Plain,
    /// From rest. An idle NAPI keeps counting down its old number, so all knobs with this rule are first set to 0 for
    /// one old timeout. They are recorded together.
    FromRest,
    /// While the knob is on, the driver changes neighbouring knobs itself. It is turned off before they are written.
    Adaptive,
}

/// How changing a knob affects packets that arrive meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// Not at all.
    Quiet,
    /// Not at all with most drivers; some restart their queues.
    DependsOnDriver,
    /// The queues restart: packets in them are lost.
    ResetsQueues,
    /// The link goes down, and up again.
    TakesLinkDown,
}

impl Disturbance {
    /// Returns the effect as text.
    pub fn describe(self) -> &'static str {
        match self {
            Disturbance::Quiet => "nothing",
            Disturbance::DependsOnDriver => "depends on the driver",
            Disturbance::ResetsQueues => "packets in the queues are lost",
            Disturbance::TakesLinkDown => "the link goes down or up",
        }
    }
}

/// Where a knob is read and written: one variant for all knobs that the kernel treats alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnobPlace {
    /// Whether the interface is up, over rtnetlink.
    Link,
    /// Offload features whose names match a pattern, over ethtool netlink.
    Feature(&'static str),
    /// A value of each NAPI instance, and perhaps of the interface too.
    Napi(NapiPlace),
    /// A number of a card, by its attribute in a table of ethtool netlink.
    Card(CardTable, u16),
    /// A value below `/proc/sys`, as the interface's network namespace sees it.
    Sysctl(&'static str),
    /// The CPUs that a thread may use.
    ThreadCpus,
    /// The class and priority of a thread.
    ThreadPolicy,
}

/// A table of a card's numbers, read together and set one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CardTable {
    /// `ETHTOOL_A_COALESCE_*`: interrupt moderation.
    Coalescing,
    /// `ETHTOOL_A_RINGS_*`: the sizes of rings.
    Rings,
}

/// A value of NAPI instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NapiPlace {
    /// The file of the interface's own value in its sysfs directory, the largest number it takes, and the first Linux
    /// that has it.
    pub file: Option<(&'static str, u64, &'static str)>,
    /// Its name in the journal.
    pub key: &'static str,
    /// Its number in `NETDEV_A_NAPI_*`.
    pub attribute: u16,
    /// Why a kernel refuses it on single NAPI instances, largest value first.
    pub lacking: &'static [Lacking],
}

/// Why a kernel cannot set a value on single NAPI instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lacking {
    /// The smallest value that is refused.
    pub from: u64,
    /// The missing feature.
    pub reason: &'static str,
    /// The remedy.
    pub remedy: &'static str,
}

/// The argument after a knob's key in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalArgument {
    /// Nothing: only one such knob exists.
    Nothing,
    /// The name of the feature or of the row: the key covers several rows.
    Name,
    /// The interface or a NAPI instance.
    Scope,
    /// The id of a NAPI instance.
    Napi,
    /// The pid of a thread.
    Thread,
}

/// The kind of a kernel name without a row in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value below `/proc/sys`.
    Sysctl,
    /// An offload feature, by the name that `ethtool -k` shows.
    Feature,
}

impl Kind {
    /// Returns the key under which a request lists such names.
    pub const fn key(self) -> &'static str {
        match self {
            Kind::Sysctl => "sysctl",
            Kind::Feature => "feature",
        }
    }

    /// Returns the kind of a request's key.
    pub(crate) fn of_key(key: &str) -> Option<Kind> {
        let kinds = [Kind::Sysctl, Kind::Feature];
        kinds.into_iter().find(|kind| kind.key() == key)
    }
}

impl KnobPlace {
    /// When knobs here are written among those of a command; they are restored in reverse.
    pub fn phase(&self) -> Phase {
        match self {
            KnobPlace::Sysctl(_) => Phase::Host,
            KnobPlace::Link => Phase::Link,
            KnobPlace::Feature(_) => Phase::Feature,
            KnobPlace::Napi(_) => Phase::Napi,
            KnobPlace::Card(..) => Phase::Card,
            KnobPlace::ThreadCpus | KnobPlace::ThreadPolicy => Phase::Thread,
        }
    }

    /// Returns the word before or after a knob's name that tells its kind.
    pub fn label(&self) -> Option<&'static str> {
        match self {
            KnobPlace::Card(CardTable::Coalescing, _) => Some("coalescing"),
            KnobPlace::Sysctl(_) => Some("sysctl"),
            KnobPlace::ThreadCpus => Some("CPUs"),
            KnobPlace::ThreadPolicy => Some("scheduling"),
            _ => None,
        }
    }

    /// Returns the noun for values of this kind, and the interface that accesses them, as text.
    pub fn describe(&self) -> (&'static str, &'static str) {
        const ETHTOOL: &str = "ethtool netlink";
        const SYSFS: &str =
            "sysfs directory of the interface; netdev netlink for single NAPI instances";
        match self {
            KnobPlace::Link => ("link", "rtnetlink"),
            KnobPlace::Feature(_) => ("feature", ETHTOOL),
            KnobPlace::Napi(own) if own.file.is_some() => ("NAPI value", SYSFS),
            KnobPlace::Napi(_) => ("NAPI value", "each NAPI instance, netdev netlink"),
            KnobPlace::Card(CardTable::Coalescing, _) => ("coalescing parameter", ETHTOOL),
            KnobPlace::Card(CardTable::Rings, _) => ("ring size", ETHTOOL),
            KnobPlace::Sysctl(_) => ("sysctl", "/proc/sys"),
            KnobPlace::ThreadCpus | KnobPlace::ThreadPolicy => ("thread", "the scheduler"),
        }
    }

    /// Returns the knob's key in the journal, and the kind of argument after it.
    pub fn journal_key(&self) -> (&'static str, JournalArgument) {
        match self {
            KnobPlace::Link => ("up", JournalArgument::Nothing),
            KnobPlace::Feature(_) => ("feature", JournalArgument::Name),
            KnobPlace::Napi(own) if own.file.is_some() => (own.key, JournalArgument::Scope),
            KnobPlace::Napi(own) => (own.key, JournalArgument::Napi),
            KnobPlace::Card(CardTable::Coalescing, _) => ("moderation", JournalArgument::Name),
            KnobPlace::Card(CardTable::Rings, _) => ("ring", JournalArgument::Name),
            KnobPlace::Sysctl(_) => ("sysctl", JournalArgument::Name),
            KnobPlace::ThreadCpus => ("thread_cpus", JournalArgument::Thread),
            KnobPlace::ThreadPolicy => ("thread_policy", JournalArgument::Thread),
        }
    }
}

impl KnobRow {
    /// Parses a value with its unit, and checks its range.
    pub fn parse(&self, text: &str) -> Result<Value, ValueError> {
        let value = self.unit.parse(text)?;
        self.check(&value)?;
        Ok(value)
    }

    /// Formats a value as [`KnobRow::parse`] reads it.
    pub fn show(&self, value: &Value) -> String {
        self.unit.show(value)
    }

    /// Refuses a value that the knob cannot hold.
    pub fn check(&self, value: &Value) -> Result<(), ValueError> {
        if !value.is_of(self.unit) {
            let wanted = self.unit.describe();
            return Err(ValueError(format!("'{value}' is not {wanted}")));
        }
        let max = match self.unit {
            KnobUnit::Switch => 1,
            _ => self.max,
        };
        match value.number().filter(|number| *number > max) {
            None => Ok(()),
            Some(number) => Err(ValueError::out_of_range(number, 0, max)),
        }
    }

    /// Whether the driver changes neighbouring knobs while this one is on.
    pub fn is_adaptive(&self) -> bool {
        self.rule == WriteRule::Adaptive
    }

    /// Whether it is an offload.
    pub fn is_offload(&self) -> bool {
        matches!(self.place, KnobPlace::Feature(_))
    }

    /// Whether only physical cards have it: ring sizes and interrupt moderation.
    pub fn is_of_card(&self) -> bool {
        matches!(self.place, KnobPlace::Card(..))
    }

    /// Whether it is a parameter of interrupt moderation.
    pub fn is_moderation(&self) -> bool {
        matches!(self.place, KnobPlace::Card(CardTable::Coalescing, _))
    }

    /// Returns where its values are accessed, as text.
    pub fn location(&self) -> &'static str {
        self.place.describe().1
    }

    /// Whether it covers an offload feature.
    pub fn stands_for(&self, feature: &str) -> bool {
        let KnobPlace::Feature(pattern) = self.place else {
            return false;
        };
        match pattern.split_once('*') {
            None => feature == pattern,
            Some((start, end)) => {
                feature.len() >= start.len() + end.len()
                    && feature.starts_with(start)
                    && feature.ends_with(end)
            }
        }
    }

    /// Returns the kind of name that the row was created for; `None` for a row of the table.
    pub fn named_kind(&self) -> Option<Kind> {
        match self.place {
            KnobPlace::Sysctl(_) => Some(Kind::Sysctl),
            KnobPlace::Feature(name) if name == self.name => Some(Kind::Feature),
            _ => None,
        }
    }

    /// Whether the interface has a value of its own that the kernel copies to every NAPI instance.
    pub(crate) fn has_file(&self) -> bool {
        matches!(&self.place, KnobPlace::Napi(own) if own.file.is_some())
    }
}

impl PartialEq for KnobRow {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for KnobRow {}

impl PartialOrd for KnobRow {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KnobRow {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(other.name)
    }
}
