//! Options of `nicpoll set`, as the table has them.

use thiserror::Error;

use super::row::KnobRow;
use super::table::TABLE;
use super::value::{Value, ValueError};

/// An option that gives a knob a value.
#[derive(Debug)]
pub struct KnobOption {
    /// Its name, without the dashes.
    pub long: &'static str,
    /// What its value is called; `None` for an option without one.
    pub value_name: Option<&'static str>,
    /// What it does.
    pub help: &'static str,
    /// Options of other knobs that it does not go with. Those of the same knob never go together.
    pub conflicts: &'static [&'static str],
    /// Reads the value.
    pub parse: fn(&str) -> Result<Value, ValueError>,
}

/// An option without a value.
pub(crate) const fn flag(
    long: &'static str,
    help: &'static str,
    parse: fn(&str) -> Result<Value, ValueError>,
) -> KnobOption {
    KnobOption {
        long,
        value_name: None,
        help,
        conflicts: &[],
        parse,
    }
}

/// Every option with the row that it is of, in the order of the table.
pub fn options() -> impl Iterator<Item = (&'static KnobRow, &'static KnobOption)> {
    let of = |row: &'static KnobRow| row.options.iter().map(move |option| (row, option));
    TABLE.iter().copied().flat_map(of)
}

/// Reads `NAME=VALUE,...`, as `--moderation` and `--knob` take it. `is_meant` says which rows may be named; 'adaptive' is
/// every adaptive one of them.
pub fn parse_list(
    text: &str,
    is_meant: impl Fn(&KnobRow) -> bool,
) -> Result<Vec<(&'static KnobRow, Value)>, ListError> {
    let rows = || TABLE.iter().copied().filter(|row| is_meant(row));
    let mut given: Vec<(&'static KnobRow, Value)> = Vec::new();
    for piece in text.split(',') {
        let (name, value) = piece
            .split_once('=')
            .ok_or_else(|| ListError::NoValue(String::from(piece)))?;
        let mut named = rows()
            .filter(|row| row.name == name || (name == ADAPTIVE && row.is_adaptive()))
            .peekable();
        if named.peek().is_none() {
            let known: Vec<&str> = rows().map(|row| row.name).collect();
            return Err(ListError::Unknown {
                name: String::from(name),
                known: known.join(", "),
            });
        }
        for row in named {
            let value = row.parse(value).map_err(|source| ListError::Value {
                name: row.name,
                source,
            })?;
            given.retain(|(known, _)| *known != row);
            given.push((row, value));
        }
    }
    Ok(given)
}

/// Every adaptive parameter.
const ADAPTIVE: &str = "adaptive";

/// Why a list of knobs was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ListError {
    /// A name alone.
    #[error("'{0}' has no value, such as rx-usecs=50")]
    NoValue(String),
    /// No such knob.
    #[error("'{name}' is not known; known are {known} and {ADAPTIVE}")]
    Unknown {
        /// What was given.
        name: String,
        /// What could have been.
        known: String,
    },
    /// A value that the knob cannot hold.
    #[error("{name}: {source}")]
    Value {
        /// The knob.
        name: &'static str,
        /// Why not.
        source: ValueError,
    },
}
