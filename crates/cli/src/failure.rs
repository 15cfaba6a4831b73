//! How a command can fail, and its exit code.

use std::fmt;

use nicpoll_ab::AbError;
use nicpoll_engine::EngineError;
use nicpoll_inspect::InspectError;
use nicpoll_lab::{LabError, Refused};
use nicpoll_store::StoreError;
use nicpoll_study::{Gate, ResultError, StudyError};
use nicpoll_switch::{SwitchError, ValueError};
use nicpoll_sys::stdio;
use nicpoll_traffic::signals::Stop;
use signal_hook::consts::SIGPIPE;

/// A failure with its exit code.
#[derive(Debug)]
pub enum Failure {
    /// Something went wrong: 1.
    Failed(anyhow::Error),
    /// The command line is wrong, or a file that it names is missing, cannot be read or is not what it should be: 2.
    Usage(String),
    /// A privilege or a kernel feature is missing: 5.
    Missing(String),
    /// A signal stopped it, and everything is restored: 128 + its number.
    Signal(i32),
    /// Nobody reads standard output any more, as after `| head -1`: 128 + SIGPIPE, and not a word.
    Unread,
}

/// The command failed.
pub const EXIT_FAILED: u8 = 1;
/// A verdict is worse than `--fail-on` allows.
pub const EXIT_GATED: u8 = 3;
/// Nothing could be concluded: the noise allows for anything, or too few trials count.
pub const EXIT_INCONCLUSIVE: u8 = 4;

/// The exit code of a gate.
pub fn gated(gate: Gate) -> u8 {
    match gate {
        Gate::Open => 0,
        Gate::Shut => EXIT_GATED,
        Gate::Blind => EXIT_INCONCLUSIVE,
    }
}

/// The exit code of what went well until it was over, or until a signal came.
pub fn over(stop: &Stop) -> u8 {
    stop.signal().map_or(0, |signal| 128 + signal as u8)
}

impl Failure {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Failed(_) => EXIT_FAILED,
            Failure::Usage(_) => 2,
            Failure::Missing(_) => 5,
            Failure::Signal(number) => 128 + *number as u8,
            Failure::Unread => 128 + SIGPIPE as u8,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Failed(error) => f.write_str(&told(error)),
            Failure::Usage(text) | Failure::Missing(text) => f.write_str(text),
            Failure::Signal(_) => f.write_str("stopped by a signal; all settings are restored"),
            Failure::Unread => f.write_str("nobody reads standard output any more"),
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Usage(what) => Failure::Usage(what),
            EngineError::Privileges { .. } => Failure::Missing(error.to_string()),
            error => Failure::Failed(error.into()),
        }
    }
}

impl From<InspectError> for Failure {
    fn from(error: InspectError) -> Self {
        if error.is_missing() {
            Failure::Missing(error.to_string())
        } else {
            Failure::Failed(error.into())
        }
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Missing(what) => Failure::Missing(what),
            LabError::Switch(error) => error.into(),
            other => Failure::Failed(other.into()),
        }
    }
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Self {
        match error {
            StudyError::Lab(error) => error.into(),
            other => Failure::Failed(other.into()),
        }
    }
}

impl From<AbError> for Failure {
    fn from(error: AbError) -> Self {
        match error {
            AbError::Lab(error) => error.into(),
            AbError::Store(error) => error.into(),
        }
    }
}

impl From<Refused> for Failure {
    fn from(error: Refused) -> Self {
        Failure::Usage(error.to_string())
    }
}

impl From<ResultError> for Failure {
    fn from(error: ResultError) -> Self {
        match error {
            ResultError::Named(why) => Failure::Usage(why),
            other => Failure::Failed(other.into()),
        }
    }
}

impl From<SwitchError> for Failure {
    fn from(error: SwitchError) -> Self {
        match error.is_missing() {
            true => Failure::Missing(error.to_string()),
            false => Failure::Failed(error.into()),
        }
    }
}

impl From<ValueError> for Failure {
    fn from(error: ValueError) -> Self {
        Failure::Usage(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Failed(error.into())
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        if error.chain().any(stdio::reader_is_gone) {
            Failure::Unread
        } else {
            Failure::Failed(error)
        }
    }
}

/// An error with its causes. Many tell their cause themselves, before what to do about it: it is not told again.
fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text += ": ";
            text += &cause;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let cause = || anyhow::anyhow!("no such device");
        let told_itself = cause().context("em0 is gone: no such device; bring it back");
        assert_eq!(
            told(&told_itself),
            "em0 is gone: no such device; bring it back"
        );
        let plain = cause().context("asking for em0");
        assert_eq!(told(&plain), "asking for em0: no such device");
    }
}
