//! How a command can end other than well, and the exit code that says so.

use std::fmt;

use nicpoll_inspect::InspectError;

/// A failure with its exit code.
#[derive(Debug)]
pub enum Failure {
    /// Something went wrong: 1.
    Failed(anyhow::Error),
    /// The command line asks for what cannot be: 2.
    Usage(String),
    /// A privilege or a kernel feature is missing: 5.
    Missing(String),
    /// A signal asked to stop, and everything was put back: 128 + its number.
    Signal(i32),
}

/// What was measured is not as it should be.
pub const EXIT_FAILED: u8 = 1;
/// Nothing could be concluded: too many trials were void, or the machine was disturbed.
pub const EXIT_INCONCLUSIVE: u8 = 4;

impl Failure {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Failed(_) => EXIT_FAILED,
            Failure::Usage(_) => 2,
            Failure::Missing(_) => 5,
            Failure::Signal(number) => 128 + *number as u8,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Failed(error) => write!(f, "{error:#}"),
            Failure::Usage(text) | Failure::Missing(text) => f.write_str(text),
            Failure::Signal(_) => {
                f.write_str("stopped by a signal; every setting was put back, nothing is left")
            }
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

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure::Failed(error)
    }
}
