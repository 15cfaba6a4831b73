//! Why something could not be looked at.

use std::io;
use std::path::PathBuf;

use nicpoll_observe::BpfError;
use nicpoll_switch::{ControlError, LinkFacts, SwitchError};
use nicpoll_sys::netns::ThreadGone;
use nicpoll_sys::privilege::NoProc;
use thiserror::Error;

/// Why something could not be looked at. A privilege or kernel feature that only a part takes is no error: that
/// part is left out and named.
#[derive(Debug, Error)]
pub enum InspectError {
    /// A name is no interface's.
    #[error(
        "no interface '{name}' here; there are: {}. One in another network namespace is {done} with --netns",
        .known.join(", ")
    )]
    NoInterface {
        /// The name.
        name: String,
        /// The interfaces that there are.
        known: Vec<String>,
        /// What would be done to it: `shown`, `watched`.
        done: &'static str,
    },
    /// There is no such network namespace.
    #[error(
        "no network namespace at {}: {error}; 'ip netns list' lists those that have a name, and \
         /proc/PID/ns/net is a process's", .path.display()
    )]
    NoNamespace {
        /// Where it was looked for.
        path: PathBuf,
        /// Why it could not be opened.
        error: io::Error,
    },
    /// This user may not open a network namespace.
    #[error("{} may not be opened: {error}; run it as root", .path.display())]
    NamespaceForbidden {
        /// Where it is.
        path: PathBuf,
        /// What the kernel answered.
        error: io::Error,
    },
    /// This user may not enter a network namespace.
    #[error(
        "cannot enter the network namespace {name}: {error}; that takes CAP_SYS_ADMIN, so run it as root"
    )]
    EnterForbidden {
        /// Its name, or its path.
        name: String,
        /// What the kernel answered.
        error: io::Error,
    },
    /// Nothing can be looked at.
    #[error(transparent)]
    NoProc(#[from] NoProc),
    /// A BPF program does not load: a privilege or a kernel feature is missing.
    #[error("{0}.\nRun it as root: sudo nicpoll doctor --cpu-truth")]
    NoExactAccount(BpfError),
    /// A BPF program that runs does not answer.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// An interface does not answer.
    #[error("{doing}")]
    Interface {
        /// What was being done.
        doing: String,
        /// Why it failed.
        #[source]
        source: ControlError,
    },
    /// The journal of what was set does not answer.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// A file or a system call.
    #[error("{doing}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The work in another namespace ended with a panic.
    #[error(transparent)]
    ThreadGone(#[from] ThreadGone),
    /// A measurement did not take place.
    #[error("{0}")]
    NotMeasured(String),
}

impl InspectError {
    /// Whether a privilege or a kernel feature is missing.
    pub fn is_missing(&self) -> bool {
        matches!(
            self,
            InspectError::NamespaceForbidden { .. }
                | InspectError::EnterForbidden { .. }
                | InspectError::NoProc(_)
                | InspectError::NoExactAccount(_)
        )
    }

    pub(crate) fn no_interface(name: &str, links: &[LinkFacts], done: &'static str) -> Self {
        InspectError::NoInterface {
            name: String::from(name),
            known: links.iter().map(|link| link.name.clone()).collect(),
            done,
        }
    }
}

/// Says what was being done when something failed.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T, InspectError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str) -> Result<T, InspectError> {
        self.map_err(|source| InspectError::System { doing, source })
    }
}

impl<T> Doing<T> for Result<T, ControlError> {
    fn doing(self, doing: &'static str) -> Result<T, InspectError> {
        self.map_err(|source| InspectError::Interface {
            doing: String::from(doing),
            source,
        })
    }
}
