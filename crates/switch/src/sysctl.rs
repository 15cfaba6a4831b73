//! Sysctls as the calling thread's network namespace sees them.
//!
//! What must hold: what a namespace has of its own is told from what is the whole machine's by what the kernel lets
//! the namespace write; nothing is tried out.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use nicpoll_sys::netns::{NetNamespace, NetnsThread};

use crate::control::ControlError;
use crate::knob::Value;

const ROOT: &str = "/proc/sys";
/// Write permission of the owner, who is root.
const OWNER_WRITES: u32 = 0o200;

/// Whose a sysctl is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SysctlOwner {
    /// Each network namespace has its own.
    Namespace,
    /// The machine's, whatever the namespace: every interface and program is concerned.
    Machine,
    /// This kernel has none of that name, or nobody can write it.
    Nobody,
}

impl SysctlOwner {
    /// Whose sysctls of these names are, by what a namespace that is made for it may write.
    ///
    /// # Errors
    /// `EPERM` without CAP_SYS_ADMIN.
    pub fn of(names: Vec<String>) -> io::Result<Vec<SysctlOwner>> {
        let is_here: Vec<bool> = names.iter().map(|name| is_writable(name)).collect();
        let thread = NetnsThread::enter(NetNamespace::create()?, || ())?;
        let is_there = thread.run(move |()| {
            let names = names.iter();
            names
                .map(|name| is_of_network(name) && is_writable(name))
                .collect::<Vec<bool>>()
        });
        let is_there = is_there.map_err(io::Error::other)?;
        let owner = |(is_there, is_here)| match (is_there, is_here) {
            (true, _) => SysctlOwner::Namespace,
            (false, true) => SysctlOwner::Machine,
            (false, false) => SysctlOwner::Nobody,
        };
        Ok(is_there.into_iter().zip(is_here).map(owner).collect())
    }
}

fn path_of(name: &str) -> PathBuf {
    let path = match name.contains('/') {
        true => String::from(name),
        false => name.replace('.', "/"),
    };
    PathBuf::from(ROOT).join(path)
}

/// Only those below `net` are ever a namespace's own.
fn is_of_network(name: &str) -> bool {
    name.starts_with("net.") || name.starts_with("net/")
}

fn is_writable(name: &str) -> bool {
    let found = fs::metadata(path_of(name));
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & OWNER_WRITES != 0)
}

/// Why the namespace does not let a sysctl be written, and what to do.
pub(crate) fn why_not(name: &str) -> (String, &'static str) {
    (
        format!("its network namespace has no sysctl {name} of its own"),
        "sysctl -a shows those that there are; one of the whole machine is set outside of every namespace",
    )
}

/// What it holds; `None` when the namespace has none that can be written.
pub(crate) fn read(name: &str) -> Result<Option<Value>, ControlError> {
    if !is_writable(name) {
        return Ok(None);
    }
    let path = path_of(name);
    let text = fs::read_to_string(&path)
        .map_err(ControlError::of_io(format!("reading {}", path.display())))?;
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok(Some(Value::Text(words.join(" "))))
}

pub(crate) fn write(name: &str, text: &str) -> Result<(), ControlError> {
    let path = path_of(name);
    fs::write(&path, text).map_err(ControlError::of_io(format!(
        "writing '{text}' to {}",
        path.display()
    )))
}
