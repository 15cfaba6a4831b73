//! Knobs: the values of an interface that nicpoll can change.
//!
//! A [`ScopedKnob`] is a row of the [`table`] and the owner of its value. A knob and a [`Value`] are all that restoring
//! needs. The journal stores both, so neither depends on the kernel's version. Start with `table`; `row` defines what a
//! row holds, `value` how values are parsed and shown, `candidates` which settings are worth trying.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::json;

pub(crate) mod candidates;
pub(crate) mod row;
pub mod table;
pub(crate) mod value;

pub use row::{Disturbance, Kind, KnobOption, KnobRow};
pub(crate) use table::row_of;
pub use table::{options, parse_list};
pub use value::{KnobUnit, Value, ValueError};

use row::{JournalArgument, WriteRule};

/// The owner of a value: the interface, a NAPI instance or a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The interface itself. The kernel copies a write to a value that NAPI instances also have to all of them; later
    /// instances start with it.
    Device,
    /// One NAPI instance, by id.
    Napi(u32),
    /// One thread, by pid.
    Thread(u32),
}

/// One changeable value of an interface.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScopedKnob {
    // First field: knobs are sorted by owner when restored.
    scope: Scope,
    row: &'static KnobRow,
    /// The offload feature, by the name that `ethtool -k` shows; one row may cover several features.
    feature: Option<String>,
}

impl ScopedKnob {
    /// The knob of the interface itself.
    pub fn of_interface(row: &'static KnobRow) -> Self {
        ScopedKnob::new(row, Scope::Device)
    }

    /// The knob of one NAPI instance.
    pub fn of_napi(row: &'static KnobRow, id: u32) -> Self {
        ScopedKnob::new(row, Scope::Napi(id))
    }

    /// The knob of one thread.
    pub fn of_thread(row: &'static KnobRow, pid: u32) -> Self {
        ScopedKnob::new(row, Scope::Thread(pid))
    }

    /// The knob of an offload feature; `None` if no row covers it.
    pub fn of_feature(name: &str) -> Option<Self> {
        let row = table::all_rows().find(|row| row.stands_for(name))?;
        Some(ScopedKnob {
            feature: Some(String::from(name)),
            ..ScopedKnob::of_interface(row)
        })
    }

    pub(crate) fn new(row: &'static KnobRow, scope: Scope) -> Self {
        ScopedKnob {
            row,
            scope,
            feature: None,
        }
    }

    /// Returns the knob's row in the table.
    pub fn row(&self) -> &'static KnobRow {
        self.row
    }

    /// Returns the owner of its value.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Returns the name of the offload feature, if the knob is one.
    pub fn feature(&self) -> Option<&str> {
        self.feature.as_deref()
    }

    /// Returns the knob's name, without its NAPI instance.
    pub fn name(&self) -> Cow<'static, str> {
        match (&self.feature, self.scope, self.row.place.label()) {
            (Some(name), _, _) => format!("feature {name}").into(),
            (None, Scope::Thread(pid), Some(label)) => format!("thread {pid} {label}").into(),
            (None, _, Some(label)) => format!("{label} {}", self.row.name).into(),
            (None, _, None) => Cow::Borrowed(self.row.name),
        }
    }

    /// Returns the NAPI instance that owns the value. The knob disappears with the instance.
    pub fn napi_id(&self) -> Option<u32> {
        match self.scope {
            Scope::Napi(id) => Some(id),
            Scope::Device | Scope::Thread(_) => None,
        }
    }

    /// Returns the knob of the whole interface that the kernel copies to this one, if there is one.
    pub(crate) fn of_device(&self) -> Option<ScopedKnob> {
        let is_written_along = self.napi_id().is_some() && self.row.has_file();
        is_written_along.then(|| ScopedKnob::of_interface(self.row))
    }

    /// Whether it is one of the values that defer interrupts; restoring these takes a wait.
    pub(crate) fn is_deferral(&self) -> bool {
        self.row.rule == WriteRule::FromRest
    }
}

impl fmt::Display for ScopedKnob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(id) = self.napi_id() {
            write!(f, "NAPI {id} ")?;
        }
        f.write_str(&self.name())
    }
}

/// Serializes the knob for the journal: `"up"`, `{"feature": "rx-gro"}`, `{"moderation": "rx-usecs"}`,
/// `{"threaded": "device"}`, `{"gro_flush_timeout": {"napi": 257}}`, `{"irq_suspend_timeout": 257}`,
/// `{"thread_cpus": 4711}`. Earlier versions wrote the same.
impl Serialize for ScopedKnob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (key, argument) = self.row.place.journal_key();
        let form = match (argument, self.scope) {
            (JournalArgument::Nothing, _) => json!(key),
            (JournalArgument::Name, _) => json!({ key: self.feature().unwrap_or(self.row.name) }),
            (
                JournalArgument::Napi | JournalArgument::Thread,
                Scope::Napi(id) | Scope::Thread(id),
            ) => {
                json!({ key: id })
            }
            (_, scope) => json!({ key: scope }),
        };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ScopedKnob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = serde_json::Value::deserialize(deserializer)?;
        read(&form).ok_or_else(|| de::Error::custom("a knob that this nicpoll does not know"))
    }
}

fn read(form: &serde_json::Value) -> Option<ScopedKnob> {
    let (key, item) = match form {
        serde_json::Value::String(key) => (key, None),
        serde_json::Value::Object(member) if member.len() == 1 => {
            let (key, item) = member.iter().next()?;
            (key, Some(item))
        }
        _ => return None,
    };
    let of_table = table::TABLE.iter().find_map(|row| read_as(row, key, item));
    of_table.or_else(|| {
        let row = row_of(Kind::of_key(key)?, item?.as_str()?).ok()?;
        read_as(row, key, item)
    })
}

fn read_as(
    row: &'static KnobRow,
    key: &str,
    item: Option<&serde_json::Value>,
) -> Option<ScopedKnob> {
    let (own, argument) = row.place.journal_key();
    if own != key {
        return None;
    }
    let name = item.and_then(|item| item.as_str());
    let id = || u32::try_from(item?.as_u64()?).ok();
    let scope = match argument {
        JournalArgument::Nothing => item.is_none().then_some(Scope::Device)?,
        JournalArgument::Name if row.is_offload() => {
            return ScopedKnob::of_feature(name.filter(|name| row.stands_for(name))?);
        }
        JournalArgument::Name => (name == Some(row.name)).then_some(Scope::Device)?,
        JournalArgument::Scope => Scope::deserialize(item?).ok()?,
        JournalArgument::Napi => Scope::Napi(id()?),
        JournalArgument::Thread => Scope::Thread(id()?),
    };
    let is_own = argument == JournalArgument::Thread || !matches!(scope, Scope::Thread(_));
    is_own.then(|| ScopedKnob::new(row, scope))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_earlier_versions_are_read_and_written_the_same() {
        // As version 2 of the journal has them, from before there was a table.
        for text in [
            r#""up""#,
            r#"{"feature":"rx-gro"}"#,
            r#"{"feature":"tx-tcp-ecn-segmentation"}"#,
            r#"{"feature":"rx-checksum"}"#,
            r#"{"sysctl":"net.ipv4.tcp_ecn"}"#,
            r#"{"threaded":"device"}"#,
            r#"{"defer_hard_irqs":{"napi":257}}"#,
            r#"{"gro_flush_timeout":"device"}"#,
            r#"{"irq_suspend_timeout":257}"#,
            r#"{"moderation":"adaptive-rx"}"#,
            r#"{"thread_cpus":4711}"#,
        ] {
            let knob: ScopedKnob = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&knob).unwrap(), text);
        }
    }

    #[test]
    fn what_no_row_stands_for_is_refused() {
        for text in [
            r#""down""#,
            r#""threaded""#,
            r#"{"feature":"rx checksum"}"#,
            r#"{"sysctl":"net/../../etc/passwd"}"#,
            r#"{"moderation":"speed"}"#,
            r#"{"threaded":{"thread":7}}"#,
            r#"{"thread_cpus":{"napi":7}}"#,
            r#"{"threaded":"device","feature":"rx-gro"}"#,
            "{}",
        ] {
            assert!(serde_json::from_str::<ScopedKnob>(text).is_err(), "{text}");
        }
    }
}
