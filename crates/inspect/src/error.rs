//! Errors of observation, and observation in another network namespace.

use std::io;
use std::path::{Path, PathBuf};

use nicpoll_model::Unseen;
use nicpoll_observe::BpfError;
use nicpoll_switch::{LinkInfo, SwitchError};
use nicpoll_sys::netns::{NAMED_DIRECTORY, NetNamespace, NetnsThread, ThreadGone};
use nicpoll_sys::privilege::NoProc;
use thiserror::Error;

/// Why an observation failed. A privilege or kernel feature that only one part needs is not an error: that part is left
/// out and reported.
#[derive(Debug, Error)]
pub enum InspectError {
    /// A privilege or a kernel feature is missing.
    #[error("{0}")]
    Missing(String),
    /// There is no such interface or namespace, or a measurement could not be made.
    #[error("{0}")]
    Failed(String),
    /// A running BPF program could not be read.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// The kernel, an interface or the journal could not be read.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// The thread in another namespace panicked.
    #[error(transparent)]
    ThreadGone(#[from] ThreadGone),
}

impl InspectError {
    /// Whether a privilege or a kernel feature is missing.
    pub fn is_missing(&self) -> bool {
        match self {
            InspectError::Missing(_) => true,
            InspectError::Switch(error) => error.is_missing(),
            _ => false,
        }
    }

    /// The error when a BPF program does not load: a privilege or a kernel feature is missing.
    pub(crate) fn no_exact_account(error: BpfError) -> InspectError {
        InspectError::Missing(format!(
            "{error}.\nRun it as root: sudo nicpoll doctor --cpu-truth"
        ))
    }
}

impl From<NoProc> for InspectError {
    fn from(error: NoProc) -> Self {
        InspectError::Missing(error.to_string())
    }
}

/// Finds the links with these names, in order, or all but the loopback if there are no names. `done` is the verb in the
/// message: `shown`, `watched`.
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
        links_of_name.next().ok_or_else(|| {
            let known: Vec<&str> = links.iter().map(|link| &*link.interface.name).collect();
            InspectError::Failed(format!(
                "no interface '{name}' here; there are: {}. One in another network namespace is {done} with --netns",
                known.join(", ")
            ))
        })
    };
    names.iter().map(find).collect()
}

/// Runs `work` in a thread that enters another namespace and then ends. `name` is from 'ip netns', or a path.
///
/// # Errors
/// When the namespace does not exist or may not be entered, or errors of `work`.
pub fn inside<T: Send + 'static, E: From<InspectError> + Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    let path = match name.contains('/') {
        true => PathBuf::from(name),
        false => Path::new(NAMED_DIRECTORY).join(name),
    };
    let at = path.display();
    let namespace = NetNamespace::open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            InspectError::Missing(format!("{at} may not be opened: {error}; run it as root"))
        }
        _ => InspectError::Failed(format!(
            "no network namespace at {at}: {error}; 'ip netns list' lists those that have a name, and \
             /proc/PID/ns/net is a process's"
        )),
    })?;
    let thread = NetnsThread::enter(namespace, || ()).map_err(|error| {
        InspectError::Missing(format!(
            "cannot enter the network namespace {name}: {error}; that takes CAP_SYS_ADMIN, so run it as root"
        ))
    })?;
    thread.run(move |()| work()).map_err(InspectError::from)?
}

/// Makes a report of something that could not be observed.
pub(crate) fn unseen(what: &str, why: impl Into<String>) -> Unseen {
    Unseen {
        what: String::from(what),
        why: why.into(),
    }
}

/// Adds the failed step to an error.
pub(crate) trait NamedStep<T> {
    fn doing(self, doing: &'static str) -> Result<T, InspectError>;
}

impl<T> NamedStep<T> for io::Result<T> {
    fn doing(self, doing: &'static str) -> Result<T, InspectError> {
        self.map_err(|error| SwitchError::of_io(doing)(error).into())
    }
}
