//! One value of an interface: a row of the table, and whose value it is.
//!
//! What must hold: a knob and a value are all that putting back needs, so they say everything that the journal
//! has to keep, and nothing that depends on the kernel's version.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

mod form;
mod named;
mod options;
pub(crate) mod place;
mod row;
pub mod table;
mod value;

pub(crate) use named::rows as named_rows;
pub use named::{Kind, row_of};
pub use options::{KnobOption, ListError, options, parse_list};
pub use row::{Disturbance, KnobRow};
pub(crate) use row::{Manner, Phase};
pub(crate) use value::parse_numbers;
pub use value::{Unit, Value, ValueError};

/// Whose value it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The interface's own value. Writing one that NAPI instances have too gives it to each of them, and instances
    /// that come later start with it.
    Device,
    /// One NAPI instance, by id.
    Napi(u32),
    /// One thread, by its pid.
    Thread(u32),
}

/// One value of an interface.
#[derive(Clone, Debug)]
pub struct Knob {
    row: &'static KnobRow,
    scope: Scope,
    /// The offload feature, by the name that `ethtool -k` shows; a row may stand for several.
    feature: Option<String>,
}

impl Knob {
    /// The interface's own value.
    pub fn of_interface(row: &'static KnobRow) -> Self {
        Knob::new(row, Scope::Device)
    }

    /// The value of one NAPI instance.
    pub fn of_napi(row: &'static KnobRow, id: u32) -> Self {
        Knob::new(row, Scope::Napi(id))
    }

    /// The value of one thread.
    pub fn of_thread(row: &'static KnobRow, pid: u32) -> Self {
        Knob::new(row, Scope::Thread(pid))
    }

    /// An offload feature; `None` when no row stands for it.
    pub fn of_feature(name: &str) -> Option<Self> {
        let known = table::TABLE.into_iter().chain(named_rows());
        let row = known.into_iter().find(|row| row.stands_for(name))?;
        Some(Knob {
            feature: Some(String::from(name)),
            ..Knob::of_interface(row)
        })
    }

    pub(crate) fn new(row: &'static KnobRow, scope: Scope) -> Self {
        Knob {
            row,
            scope,
            feature: None,
        }
    }

    /// What is known of it.
    pub fn row(&self) -> &'static KnobRow {
        self.row
    }

    /// Whose value it is.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The name of the feature, of a knob that is one.
    pub fn feature(&self) -> Option<&str> {
        self.feature.as_deref()
    }

    /// Which value it is, without the NAPI instance whose value it is.
    pub fn name(&self) -> Cow<'static, str> {
        match (&self.feature, self.scope, self.row.place.label()) {
            (Some(name), _, _) => format!("feature {name}").into(),
            (None, Scope::Thread(pid), Some(label)) => format!("thread {pid} {label}").into(),
            (None, _, Some(label)) => format!("{label} {}", self.row.name).into(),
            (None, _, None) => Cow::Borrowed(self.row.name),
        }
    }

    /// The NAPI instance that the knob goes away with.
    pub fn napi_id(&self) -> Option<u32> {
        match self.scope {
            Scope::Napi(id) => Some(id),
            Scope::Device | Scope::Thread(_) => None,
        }
    }

    /// The knob of the whole interface that writes this one along.
    pub fn of_device(&self) -> Option<Knob> {
        let is_written_along = self.napi_id().is_some() && self.row.has_file();
        is_written_along.then(|| Knob::of_interface(self.row))
    }

    /// Whether undoing it takes a wait.
    pub(crate) fn is_deferral(&self) -> bool {
        self.row.manner == Manner::Deferral
    }

    fn key(&self) -> (Scope, &str, &Option<String>) {
        (self.scope, self.row.name, &self.feature)
    }
}

impl PartialEq for Knob {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Knob {}

impl PartialOrd for Knob {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Knob {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(id) = self.napi_id() {
            write!(f, "NAPI {id} ")?;
        }
        f.write_str(&self.name())
    }
}
