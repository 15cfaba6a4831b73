//! When a study ends: `stop = { width = "5%", at_most = "10m" }`.

use nicpoll_model::FileError;
use nicpoll_model::time::parse_length;
use serde::Deserialize;
use toml::Spanned;

use super::Reader;
use crate::plan::Lengths;

/// The narrowest interval that may be asked for, in percent: noise of the machine does not average out below.
const WIDTH_MIN: f64 = 0.1;
/// The widest.
const WIDTH_MAX: f64 = 100.0;

/// The stop rule as a file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StopEntry {
    width: Spanned<String>,
    at_most: Spanned<String>,
}

impl Reader<'_> {
    /// Puts a stop rule into the lengths.
    pub(super) fn stop(&self, entry: &StopEntry, lengths: &mut Lengths) -> Result<(), FileError> {
        let StopEntry { width, at_most } = entry;
        let percent = width.get_ref().strip_suffix('%');
        let percent: Option<f64> = percent.and_then(|number| number.trim().parse().ok());
        let percent = percent.filter(|percent| (WIDTH_MIN..=WIDTH_MAX).contains(percent));
        let Some(percent) = percent else {
            let message = format!(
                "a width is a share of the estimate, from {WIDTH_MIN}% to {WIDTH_MAX}%, such as \"5%\""
            );
            return Err(self.error(width.span(), message));
        };
        if lengths.limit.is_some() {
            let message = String::from(
                "a study has time or stop; at_most is the time of one with a stop rule",
            );
            return Err(self.error(at_most.span(), message));
        }
        let limit = parse_length(at_most.get_ref())
            .map_err(|error| self.error(at_most.span(), error.to_string()))?;
        lengths.limit = Some(limit);
        lengths.stop_width = Some(percent / 100.0);
        Ok(())
    }
}
