//! Reading TOML with errors that name the line: what the files of published tables and of the fit share.
//!
//! What must hold: whatever the text, it is read or refused with a line that the text has.

use std::ops::Range;

use nicpoll_model::FileError;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Longer texts than this are none of a table.
const CHARS_MAX: usize = 400;

/// A text, to tell where things stand in it.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a>(pub(crate) &'a str);

/// A table of the text and where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Section<'a> {
    text: Text<'a>,
    span: (usize, usize),
    table: &'a DeTable<'a>,
}

impl<'a> Text<'a> {
    pub(crate) fn parse(self) -> Result<Spanned<DeTable<'a>>, FileError> {
        DeTable::parse(self.0).map_err(|error| {
            let message = format!("this is no TOML: {}", error.message());
            self.error(error.span().unwrap_or_default(), message)
        })
    }

    pub(crate) fn error(self, span: Range<usize>, message: String) -> FileError {
        FileError::at(self.0, span, message)
    }
}

impl<'a> Section<'a> {
    pub(crate) fn of(text: Text<'a>, document: &'a Spanned<DeTable<'a>>) -> Self {
        Section {
            text,
            span: (0, 0),
            table: document.get_ref(),
        }
    }

    /// An error at the section itself.
    pub(crate) fn error(&self, message: String) -> FileError {
        self.text.error(self.span.0..self.span.1, message)
    }

    /// An error at one of its entries.
    pub(crate) fn error_at(&self, name: &str, message: String) -> FileError {
        let value = self.table.get(name);
        let span = value.map_or(self.span.0..self.span.1, Spanned::span);
        self.text.error(span, message)
    }

    /// Refuses entries of other names.
    pub(crate) fn refuse_unknown(&self, what: &str, known: &[&str]) -> Result<(), FileError> {
        let unknown = self
            .table
            .keys()
            .find(|key| !known.contains(&&**key.get_ref()));
        match unknown {
            None => Ok(()),
            Some(key) => {
                let message = format!(
                    "{what} has no {}; it has {}",
                    shortened(key.get_ref()),
                    known.join(", ")
                );
                Err(self.text.error(key.span(), message))
            }
        }
    }

    fn wrong(&self, name: &str, wanted: &str) -> FileError {
        let given = self.table.get(name).and_then(|value| {
            let text = self.text.0.get(value.span())?;
            Some(shortened(text.lines().next().unwrap_or_default()))
        });
        let message = match given {
            Some(given) => format!("{name} = {given} is wrong; {wanted}"),
            None => format!("{name} is missing; {wanted}"),
        };
        self.error_at(name, message)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// A text of one line that must be there.
    pub(crate) fn string(&self, name: &str, wanted: &str) -> Result<String, FileError> {
        let value = self.table.get(name).map(Spanned::get_ref);
        text_of(value).ok_or_else(|| self.wrong(name, wanted))
    }

    pub(crate) fn optional_string(
        &self,
        name: &str,
        wanted: &str,
    ) -> Result<Option<String>, FileError> {
        let is_there = self.has(name);
        is_there.then(|| self.string(name, wanted)).transpose()
    }

    pub(crate) fn flag(&self, name: &str, wanted: &str) -> Result<bool, FileError> {
        match self.table.get(name).map(Spanned::get_ref) {
            None => Ok(false),
            Some(DeValue::Boolean(value)) => Ok(*value),
            Some(_) => Err(self.wrong(name, wanted)),
        }
    }

    /// Texts; none when there is no such entry.
    pub(crate) fn strings(&self, name: &str, wanted: &str) -> Result<Vec<String>, FileError> {
        self.array(name, wanted, |value| text_of(Some(value)))
    }

    /// Numbers from 0 to `max`; none when there is no such entry.
    pub(crate) fn numbers(
        &self,
        name: &str,
        max: f64,
        wanted: &str,
    ) -> Result<Vec<f64>, FileError> {
        let in_range = |number: &f64| (0.0..=max).contains(number);
        self.array(name, wanted, |value| number_of(value).filter(in_range))
    }

    /// A number from `min` to `max` that must be there.
    pub(crate) fn number(
        &self,
        name: &str,
        min: f64,
        max: f64,
        wanted: &str,
    ) -> Result<f64, FileError> {
        let value = self.table.get(name).map(Spanned::get_ref);
        let number = value.and_then(number_of);
        number
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| self.wrong(name, wanted))
    }

    fn array<T>(
        &self,
        name: &str,
        wanted: &str,
        read: impl Fn(&DeValue<'a>) -> Option<T>,
    ) -> Result<Vec<T>, FileError> {
        let items = match self.table.get(name).map(Spanned::get_ref) {
            None => return Ok(Vec::new()),
            Some(DeValue::Array(items)) => items,
            Some(_) => return Err(self.wrong(name, wanted)),
        };
        let read = items.iter().map(|item| read(item.get_ref()));
        let all: Option<Vec<T>> = read.collect();
        all.ok_or_else(|| self.wrong(name, wanted))
    }

    /// Whole numbers from 1 to `max` by name, of a table that must be there.
    pub(crate) fn costs(
        &self,
        name: &str,
        max: f64,
        wanted: &str,
    ) -> Result<Vec<(String, u64)>, FileError> {
        let Some(DeValue::Table(table)) = self.table.get(name).map(Spanned::get_ref) else {
            return Err(self.wrong(name, wanted));
        };
        let whole = |number: &f64| (1.0..=max).contains(number) && number.fract() == 0.0;
        let mut costs = Vec::new();
        for (name, value) in table {
            let Some(cost) = number_of(value.get_ref()).filter(whole) else {
                let message = format!("{} is wrong; {wanted}", shortened(name.get_ref()));
                return Err(self.text.error(value.span(), message));
            };
            costs.push((name.get_ref().to_string(), cost as u64));
        }
        Ok(costs)
    }

    /// Tables in an array; none when there is no such entry.
    pub(crate) fn sections(&self, name: &str, wanted: &str) -> Result<Vec<Section<'a>>, FileError> {
        let items = match self.table.get(name).map(Spanned::get_ref) {
            None => return Ok(Vec::new()),
            Some(DeValue::Array(items)) => items,
            Some(_) => return Err(self.wrong(name, wanted)),
        };
        let section = |item: &'a Spanned<DeValue<'a>>| match item.get_ref() {
            DeValue::Table(table) => Some(Section {
                text: self.text,
                span: (item.span().start, item.span().end),
                table,
            }),
            _ => None,
        };
        let all: Option<Vec<_>> = items.iter().map(section).collect();
        all.ok_or_else(|| self.wrong(name, wanted))
    }
}

fn text_of(value: Option<&DeValue<'_>>) -> Option<String> {
    match value {
        Some(DeValue::String(text))
            if text.chars().count() <= CHARS_MAX && !text.contains(char::is_control) =>
        {
            Some(text.to_string())
        }
        _ => None,
    }
}

fn number_of(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}
