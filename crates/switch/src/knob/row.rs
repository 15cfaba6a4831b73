//! What nicpoll knows of a knob.

use super::named::Kind;
use super::options::KnobOption;
use super::place::Place;
use super::value::{Unit, Value, ValueError};

/// A row of the [table](super::table).
#[derive(Debug)]
pub struct KnobRow {
    /// Its name in requests: the kernel's own, where it has one.
    pub name: &'static str,
    /// What its numbers count.
    pub unit: Unit,
    /// The largest number.
    pub max: u64,
    /// Where it is read and written.
    pub(crate) place: Place,
    /// When it is written among the knobs of a command; putting back goes the other way round.
    pub(crate) phase: Phase,
    /// How its value has to be written and put back.
    pub(crate) manner: Manner,
    /// What changing it does to packets that arrive meanwhile.
    pub disturbs: Disturbance,
    /// What does the same on FreeBSD.
    pub freebsd: Option<&'static str>,
    /// Options of `nicpoll set` that give it a value.
    pub options: &'static [KnobOption],
    /// What it is.
    pub help: &'static str,
}

/// When a knob is written among those of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// The host around the interface.
    Host,
    /// The link comes up first and goes down last.
    Link,
    /// Offloads: NAPI instances come with some of them.
    Feature,
    /// NAPI instances: whether threads poll, and when.
    Napi,
    /// The card.
    Card,
    /// Threads, which come with the instances' settings.
    Thread,
}

/// How a knob's value has to be written or put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As it is.
    Plain,
    /// From rest: an idle NAPI goes on counting down the old number, so all knobs of this kind are set to 0 first,
    /// and one old timeout is waited for. They are recorded together.
    Deferral,
    /// It moves its neighbours by itself while it is on, so it goes off before they are written.
    Adaptive,
}

/// What changing a knob does to packets that arrive meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// Nothing.
    Quiet,
    /// Nothing with most drivers; some begin their queues anew.
    DependsOnDriver,
    /// The queues begin anew: what is in them is lost.
    ResetsQueues,
    /// The link goes down, and up again.
    TakesLinkDown,
}

impl Disturbance {
    /// What happens, for people.
    pub fn describe(self) -> &'static str {
        match self {
            Disturbance::Quiet => "nothing",
            Disturbance::DependsOnDriver => "depends on the driver",
            Disturbance::ResetsQueues => "packets in the queues are lost",
            Disturbance::TakesLinkDown => "the link goes down or up",
        }
    }
}

impl KnobRow {
    /// Reads a value, with its unit, within its range.
    pub fn parse(&self, text: &str) -> Result<Value, ValueError> {
        let value = self.unit.parse(text)?;
        self.check(&value)?;
        Ok(value)
    }

    /// Writes a value so that [`KnobRow::parse`] reads it.
    pub fn show(&self, value: &Value) -> String {
        self.unit.show(value)
    }

    /// Refuses what the knob cannot hold.
    pub fn check(&self, value: &Value) -> Result<(), ValueError> {
        if !value.is_of(self.unit) {
            return Err(ValueError::Kind {
                value: value.to_string(),
                wanted: self.unit.describe(),
            });
        }
        match value.number().filter(|number| *number > self.max) {
            None => Ok(()),
            Some(number) => Err(ValueError::Range {
                value: number.to_string(),
                min: 0,
                max: self.max,
            }),
        }
    }

    /// Whether the driver changes the knobs beside it while it is on.
    pub fn is_adaptive(&self) -> bool {
        self.manner == Manner::Adaptive
    }

    /// Whether it is an offload.
    pub fn is_offload(&self) -> bool {
        self.phase == Phase::Feature
    }

    /// Whether only a card has it: rings and interrupt moderation.
    pub fn is_of_card(&self) -> bool {
        self.phase == Phase::Card
    }

    /// Whether it is a parameter of interrupt moderation.
    pub fn is_moderation(&self) -> bool {
        matches!(self.place, Place::Coalescing { .. })
    }

    /// Its name with that of the features that it stands for.
    pub fn full_name(&self) -> String {
        match self.place {
            Place::Feature(pattern) if pattern != self.name => {
                format!("{pattern} ({})", self.name.to_uppercase())
            }
            _ => String::from(self.name),
        }
    }

    /// Where its values are, for people.
    pub fn location(&self) -> &'static str {
        self.place.location()
    }

    /// Whether it stands for an offload feature.
    pub fn stands_for(&self, feature: &str) -> bool {
        let Place::Feature(pattern) = self.place else {
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

    /// What it is a row of, if the table has none for it.
    pub fn named_kind(&self) -> Option<Kind> {
        match self.place {
            Place::Sysctl(_) => Some(Kind::Sysctl),
            Place::Feature(name) if name == self.name => Some(Kind::Feature),
            _ => None,
        }
    }

    /// Whether an interface has a value of its own that goes to every NAPI instance.
    pub(crate) fn has_file(&self) -> bool {
        matches!(&self.place, Place::Napi(scoped) if scoped.file.is_some())
    }
}

impl PartialEq for KnobRow {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for KnobRow {}
