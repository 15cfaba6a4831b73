//! Errors of looking, and looking into another network namespace.

use std::io;
use std::path::{Path, PathBuf};

use nicpoll_observe::BpfError;
use nicpoll_switch::{ControlError, LinkInfo, SwitchError};
use nicpoll_sys::netns::{NAMED_DIRECTORY, NetNamespace, NetnsThread, ThreadGone};
use nicpoll_sys::privilege::NoProc;
use thiserror::Error;

/// Why something could not be read. A privilege or kernel feature that only a part needs is no error: that
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
        /// The verb for the message: `shown`, `watched`.
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
        /// The kernel's answer.
        error: io::Error,
    },
    /// This user may not enter a network namespace.
    #[error(
        "cannot enter the network namespace {name}: {error}; that takes CAP_SYS_ADMIN, so run it as root"
    )]
    EnterForbidden {
        /// Its name, or its path.
        name: String,
        /// The kernel's answer.
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
        /// The step that failed.
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
        /// The step that failed.
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
}

/// The links of these names, in their order, or all but the loopback when there is no name. `done` is the verb for
/// the message: `shown`, `watched`.
pub(crate) fn chosen<'a>(
    links: &'a [LinkInfo],
    names: &[String],
    done: &'static str,
) -> Result<Vec<&'a LinkInfo>, InspectError> {
    if names.is_empty() {
        return Ok(links.iter().filter(|link| !link.is_loopback).collect());
    }
    let find = |name: &String| {
        let mut links_of_name = links.iter().filter(|link| link.interface.name == *name);
        links_of_name
            .next()
            .ok_or_else(|| InspectError::NoInterface {
                name: name.clone(),
                known: links
                    .iter()
                    .map(|link| link.interface.name.clone())
                    .collect(),
                done,
            })
    };
    names.iter().map(find).collect()
}

/// Runs `work` in a thread that enters another namespace and then ends. `name` is one of 'ip netns', or a path.
///
/// # Errors
/// When there is no such namespace or it may not be entered, or those of `work`.
pub fn inside<T: Send + 'static, E: From<InspectError> + Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    let path = match name.contains('/') {
        true => PathBuf::from(name),
        false => Path::new(NAMED_DIRECTORY).join(name),
    };
    let namespace = NetNamespace::open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => InspectError::NamespaceForbidden { path, error },
        _ => InspectError::NoNamespace { path, error },
    })?;
    let thread =
        NetnsThread::enter(namespace, || ()).map_err(|error| InspectError::EnterForbidden {
            name: String::from(name),
            error,
        })?;
    thread.run(move |()| work()).map_err(InspectError::from)?
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
