//! Looking into another network namespace.

use std::io;
use std::path::{Path, PathBuf};

use nicpoll_sys::netns::{NAMED_DIRECTORY, NetNamespace, NetnsThread};

use crate::InspectError;

/// Does `work` in a thread that enters another namespace for good and ends. `name` is one of 'ip netns',
/// or a path.
///
/// # Errors
/// When there is no such namespace or it may not be entered, or those of `work`.
pub fn inside<T: Send + 'static, E: From<InspectError> + Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    let path = if name.contains('/') {
        PathBuf::from(name)
    } else {
        Path::new(NAMED_DIRECTORY).join(name)
    };
    let namespace = NetNamespace::open(&path).map_err(|error| not_open(path, error))?;
    let thread =
        NetnsThread::enter(namespace, || ()).map_err(|error| InspectError::EnterForbidden {
            name: String::from(name),
            error,
        })?;
    thread.run(move |()| work()).map_err(InspectError::from)?
}

fn not_open(path: PathBuf, error: io::Error) -> InspectError {
    if error.kind() == io::ErrorKind::PermissionDenied {
        InspectError::NamespaceForbidden { path, error }
    } else {
        InspectError::NoNamespace { path, error }
    }
}
