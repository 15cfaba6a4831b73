//! Looking into another network namespace, and for interfaces in one.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::anyhow;
use nicpoll_switch::LinkFacts;
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

/// A name that is no interface's in the namespace that was looked at; `done` is what would be done to it.
pub fn not_here(name: &str, links: &[LinkFacts], done: &str) -> Failure {
    let known: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    Failure::Failed(anyhow!(
        "no interface '{name}' here; there are: {}. One in another network namespace is {done} with --netns",
        known.join(", ")
    ))
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
