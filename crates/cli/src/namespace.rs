//! Looking into another network namespace.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::anyhow;
use nicpoll_sys::netns::{self, NAMED_DIRECTORY, NetNamespace};

use crate::failure::Failure;

/// Does `work` in a thread that enters another namespace for good and ends. `name` is one of 'ip netns',
/// or a path.
pub fn inside<T: Send>(
    name: &str,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    let path = if name.contains('/') {
        PathBuf::from(name)
    } else {
        Path::new(NAMED_DIRECTORY).join(name)
    };
    let namespace = NetNamespace::open(&path).map_err(|error| not_open(&path, &error))?;
    let worker = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            netns::enter_with_private_sysfs(&namespace).map_err(|error| {
                Failure::Missing(format!(
                    "cannot enter the network namespace {name}: {error}; that takes CAP_SYS_ADMIN, so \
                     run it as root"
                ))
            })?;
            work()
        });
        worker.join()
    });
    worker.map_err(|_| Failure::Failed(anyhow!("the thread in namespace {name} panicked")))?
}

fn not_open(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    if error.kind() == io::ErrorKind::PermissionDenied {
        return Failure::Missing(format!("{path} may not be opened: {error}; run it as root"));
    }
    Failure::Failed(anyhow!(
        "no network namespace at {path}: {error}; 'ip netns list' lists those that have a name, and \
         /proc/PID/ns/net is a process's"
    ))
}
