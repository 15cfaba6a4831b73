//! Why an interface could not be found, changed or put back. Every step of the switch fails with this type.

use std::io;

use nicpoll_sys::privilege::NoProc;
use thiserror::Error;

/// Why an interface, of this machine or of a FreeBSD host, could not be found, changed or put back.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SwitchError {
    /// The change cannot work, or needs more. Nothing was changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Somebody else is changing the interface or host.
    #[error("{0}")]
    Busy(String),
    /// The interface is in a place that cannot be searched, or no longer exists.
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
        /// The step that failed.
        doing: String,
        /// The answer.
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
    /// Whether this kernel lacks something that another one has.
    pub is_of_kernel: bool,
}

impl SwitchError {
    /// Says which step failed.
    pub fn of_io(doing: impl Into<String>) -> impl Fn(io::Error) -> SwitchError {
        let doing = doing.into();
        move |source| SwitchError::System {
            doing: doing.clone(),
            source,
        }
    }

    /// The kind of the kernel's answer: `Unsupported` where a device or kernel lacks the feature,
    /// `PermissionDenied` where the caller may not.
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

    /// Adds that what had been changed could not be put back either. `again` is what to put back by hand.
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
