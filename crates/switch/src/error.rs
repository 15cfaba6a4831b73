//! The error type of every step of the switch.

use std::io;

use nicpoll_sys::privilege::NoProc;
use thiserror::Error;

/// Why an interface of this machine or of a FreeBSD host could not be found, changed or restored.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SwitchError {
    /// The change cannot work, or has unmet preconditions. Nothing was changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Somebody else is changing the interface or host.
    #[error("{0}")]
    Busy(String),
    /// The interface no longer exists, or is in a namespace that cannot be searched.
    #[error("{0}")]
    NotFound(String),
    /// A privilege or a kernel feature is missing.
    #[error("{0}")]
    Missing(String),
    /// Another reason, with the remedy.
    #[error("{0}")]
    Failed(String),
    /// The kernel, the file system or a program did not do something.
    #[error("{doing}")]
    System {
        /// The failed step.
        doing: String,
        /// The system's answer.
        source: io::Error,
    },
}

/// Why a change is refused, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{interface}: {reason}; {remedy}")]
#[non_exhaustive]
pub struct Refusal {
    /// The interface.
    pub interface: String,
    /// The reason.
    pub reason: String,
    /// The remedy.
    pub remedy: String,
    /// Whether the reason is a feature that this kernel lacks and another has.
    pub is_of_kernel: bool,
}

impl SwitchError {
    /// Makes an error of the failed step from the system's answer.
    pub fn of_io(doing: impl Into<String>) -> impl Fn(io::Error) -> SwitchError {
        let doing = doing.into();
        move |source| SwitchError::System {
            doing: doing.clone(),
            source,
        }
    }

    /// The kind of the kernel's answer: `Unsupported` if the device or kernel lacks the feature, `PermissionDenied` if
    /// the caller lacks a privilege.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            SwitchError::System { source, .. } => source.kind(),
            _ => io::ErrorKind::Other,
        }
    }

    /// Whether a privilege or a kernel feature is missing.
    pub fn is_missing(&self) -> bool {
        match self {
            SwitchError::Missing(_) => true,
            SwitchError::Refused(refusal) => refusal.is_of_kernel,
            _ => false,
        }
    }

    /// Adds that restoring failed too. `again` completes the command to repeat by hand.
    pub(crate) fn and_back(self, second: &SwitchError, again: &str) -> SwitchError {
        SwitchError::Failed(format!(
            "{self}; putting back failed too: {second}. Try again: nicpoll restore{again}"
        ))
    }
}

impl From<NoProc> for SwitchError {
    fn from(error: NoProc) -> Self {
        SwitchError::Missing(error.to_string())
    }
}
