//! The lengths of a study file: its own, and those at full length.

use std::time::Duration;

use nicpoll_model::FileError;
use nicpoll_model::time::{TimeError, parse_time};
use serde::Deserialize;
use toml::Spanned;

use crate::plan::Lengths;

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
        let time = |entry: &Option<Spanned<String>>| -> Result<Option<Duration>, FileError> {
            let Some(time) = entry else {
                return Ok(None);
            };
            let refused = |error: TimeError| FileError::at(text, time.span(), error.to_string());
            parse_time(time.get_ref()).map(Some).map_err(refused)
        };
        Ok(Lengths {
            blocks: self.blocks.unwrap_or(base.blocks),
            trial: time(&self.trial)?.unwrap_or(base.trial),
            warmup: time(&self.warmup)?.or(base.warmup),
            drain: time(&self.drain)?.or(base.drain),
            limit: time(&self.time)?,
            ..base.clone()
        })
    }
}
