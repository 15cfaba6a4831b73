//! The lengths of a study file: its own, and those at full length.

use std::time::Duration;

use nicpoll_model::FileError;
use nicpoll_model::time::{TimeError, parse_length, parse_time};
use serde::Deserialize;
use toml::Spanned;

use crate::plan::Lengths;

/// How a time is read.
type Parse = fn(&str) -> Result<Duration, TimeError>;

/// How long and how often, as a file says it. What it leaves out is as it was.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LengthsEntry {
    pub blocks: Option<u32>,
    pub trial: Option<Spanned<String>>,
    pub warmup: Option<Spanned<String>>,
    pub drain: Option<Spanned<String>>,
    pub time: Option<Spanned<String>>,
}

impl LengthsEntry {
    /// `base` with what the entry says; the entry stands in `text`.
    ///
    /// # Errors
    /// With the line of a time without its unit.
    pub fn over(&self, base: &Lengths, text: &str) -> Result<Lengths, FileError> {
        let read = |entry: &Option<Spanned<String>>, parse: Parse| {
            let read = |time: &Spanned<String>| {
                let refused =
                    |error: TimeError| FileError::at(text, time.span(), error.to_string());
                parse(time.get_ref()).map_err(refused)
            };
            entry.as_ref().map(read).transpose()
        };
        Ok(Lengths {
            blocks: self.blocks.unwrap_or(base.blocks),
            trial: read(&self.trial, parse_time)?.unwrap_or(base.trial),
            warmup: read(&self.warmup, parse_time)?.or(base.warmup),
            drain: read(&self.drain, parse_time)?.or(base.drain),
            limit: read(&self.time, parse_length)?,
            ..base.clone()
        })
    }
}
