//! How a command can fail, and its exit code.

use std::error::Error;
use std::fmt;

use nicpoll_ab::AbError;
use nicpoll_engine::EngineError;
use nicpoll_inspect::InspectError;
use nicpoll_lab::{LabError, Refused};
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
    /// Nobody reads standard output any more, as after `| head -1`: 128 + SIGPIPE, without a message.
    Unread,
}

/// The command failed.
pub const EXIT_FAILED: u8 = 1;
/// A verdict is worse than `--fail-on` allows.
pub const EXIT_GATED: u8 = 3;
/// Nothing could be concluded: the noise allows for anything, or too few trials count.
pub const EXIT_INCONCLUSIVE: u8 = 4;

/// An interface is gone, with `--gone exit`.
pub const EXIT_GONE: u8 = 6;

/// Returns the exit code of a gate and its message, if it is not open.
pub fn gated(gate: &Gate) -> (u8, Option<String>) {
    match gate {
        Gate::Open => (0, None),
        Gate::Shut(by) => {
            let by = by.join("; ");
            (
                EXIT_GATED,
                Some(format!("--fail-on: it is proven for {by}")),
            )
        }
        Gate::Blind(of) => {
            let of = of.join("; ");
            let said = format!("--fail-on: no interval for {of}");
            (EXIT_INCONCLUSIVE, (!of.is_empty()).then_some(said))
        }
    }
}

/// Returns the exit code of a run that ended well, or by a signal.
pub fn over(stop: &Stop) -> u8 {
    stop.signal().map_or(0, |signal| 128 + signal as u8)
}

impl Failure {
    /// Makes a failure of another process's exit code and message.
    pub fn of_code(code: u8, words: String) -> Self {
        match code {
            2 => Failure::Usage(words),
            5 => Failure::Missing(words),
            _ => Failure::Failed(anyhow::Error::msg(words)),
        }
    }

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
            Failure::Failed(error) => f.write_str(&text_with_causes(error)),
            Failure::Usage(text) | Failure::Missing(text) => f.write_str(text),
            Failure::Signal(_) => f.write_str("stopped by a signal; all settings are restored"),
            Failure::Unread => f.write_str("nobody reads standard output any more"),
        }
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        // The outermost error decides, not its causes.
        match error.chain().next() {
            _ if error.chain().any(stdio::reader_is_gone) => Failure::Unread,
            Some(first) if is_usage(first) => Failure::Usage(error.to_string()),
            Some(first) if is_missing(first) => Failure::Missing(text_with_causes(&error)),
            _ => Failure::Failed(error),
        }
    }
}

/// Returns whether the request itself is wrong.
fn is_usage(error: &(dyn Error + 'static)) -> bool {
    error.is::<Refused>()
        || error.is::<ValueError>()
        || matches!(error.downcast_ref(), Some(ResultError::Named(_)))
        || matches!(error.downcast_ref(), Some(EngineError::Usage(_)))
}

/// Returns whether a privilege or a kernel feature is missing.
fn is_missing(error: &(dyn Error + 'static)) -> bool {
    let lab = match (error.downcast_ref(), error.downcast_ref()) {
        (Some(StudyError::Lab(lab)), _) | (_, Some(AbError::Lab(lab))) => Some(lab),
        _ => error.downcast_ref(),
    };
    lab.is_some_and(LabError::is_missing)
        || error.downcast_ref().is_some_and(SwitchError::is_missing)
        || error.downcast_ref().is_some_and(InspectError::is_missing)
        || matches!(error.downcast_ref(), Some(EngineError::Privileges { .. }))
}

/// Returns the text of an error and its causes. Many errors name their cause before the remedy: it is not repeated.
fn text_with_causes(error: &anyhow::Error) -> String {
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
    use nicpoll_lab::{Doing, HostFailure};

    use super::*;

    #[test]
    fn what_a_host_lacks_is_missing() {
        let lacks = LabError::NoExactCpu(String::from("no BTF"));
        let doing = Err::<(), _>(HostFailure::of(lacks)).doing(|| "at the receiver");
        let failure = Failure::from(StudyError::Lab(doing.unwrap_err()));
        assert_eq!(failure.code(), 5);
        assert!(
            failure.to_string().ends_with("exactly here: no BTF"),
            "{failure}"
        );
        let other = Err::<(), _>(HostFailure::new("no answer came")).doing(|| "at the receiver");
        assert_eq!(Failure::from(other.unwrap_err()).code(), EXIT_FAILED);
    }

    #[test]
    fn a_cause_is_told_once() {
        let cause = || anyhow::anyhow!("no such device");
        let told_itself = cause().context("em0 is gone: no such device; bring it back");
        assert_eq!(
            text_with_causes(&told_itself),
            "em0 is gone: no such device; bring it back"
        );
        let plain = cause().context("asking for em0");
        assert_eq!(text_with_causes(&plain), "asking for em0: no such device");
    }
}
