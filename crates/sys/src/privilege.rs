//! Privileges of this process.

use std::fs;
use std::io;
use std::path::Path;

use rustix::thread::CapabilitySet;
use thiserror::Error;

/// A capability, what needs it, and whether this process has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Name, such as `CAP_BPF`.
    pub name: &'static str,
    /// What needs it.
    pub purpose: &'static str,
    /// Whether it is effective.
    pub is_held: bool,
}

/// The capabilities used, most important first. Changing an interface's settings needs the first [`OF_SWITCH`], a lab
/// with its counters the first [`OF_LAB`].
const USED: [(CapabilitySet, &str, &str); 6] = [
    (
        CapabilitySet::NET_ADMIN,
        "CAP_NET_ADMIN",
        "changing settings, and nftables counters",
    ),
    (
        CapabilitySet::SYS_ADMIN,
        "CAP_SYS_ADMIN",
        "network namespaces: the demo, and --netns",
    ),
    (CapabilitySet::BPF, "CAP_BPF", "watching and counting polls"),
    (
        CapabilitySet::PERFMON,
        "CAP_PERFMON",
        "watching and counting polls",
    ),
    (
        CapabilitySet::NET_RAW,
        "CAP_NET_RAW",
        "AF_PACKET and AF_XDP sockets, and binding to an interface",
    ),
    (
        CapabilitySet::SYS_NICE,
        "CAP_SYS_NICE",
        "scheduling of threads that poll",
    ),
];
const OF_SWITCH: usize = 1;
const OF_LAB: usize = 4;

/// /proc cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "/proc is not mounted, and settings and counters are read from it; mount it: mount -t proc proc /proc"
)]
pub struct NoProc;

/// Fails without `/proc`.
///
/// # Errors
/// If it is not mounted.
pub fn require_proc() -> Result<(), NoProc> {
    match Path::new("/proc/self").exists() {
        true => Ok(()),
        false => Err(NoProc),
    }
}

/// Returns the capabilities that nicpoll uses, most important first.
pub fn capabilities() -> io::Result<Vec<Capability>> {
    let effective = rustix::thread::capabilities(None)?.effective;
    let capability = |(capability, name, purpose)| Capability {
        name,
        purpose,
        is_held: effective.contains(capability),
    };
    Ok(USED.map(capability).into())
}

/// Whether this process is in the initial user namespace; in any other, the kernel refuses the polling knobs even to
/// root.
pub fn in_initial_user_namespace() -> io::Result<bool> {
    let map = fs::read_to_string("/proc/self/uid_map")?;
    Ok(is_initial_user_namespace(&map))
}

/// Names what is missing to build a lab, most important first; empty if nothing is.
///
/// Capabilities count in the *initial* user namespace only: the kernel refuses the polling knobs to a root that exists
/// only in a container's user namespace.
pub fn missing_for_lab() -> io::Result<Vec<String>> {
    missing(OF_LAB)
}

/// Names what is missing to change an interface's settings, like [`missing_for_lab`].
pub fn missing_for_switch() -> io::Result<Vec<String>> {
    missing(OF_SWITCH)
}

fn missing(needed: usize) -> io::Result<Vec<String>> {
    let needed = capabilities()?.into_iter().take(needed);
    let mut missing: Vec<String> = needed
        .filter(|capability| !capability.is_held)
        .map(|capability| format!("{} ({})", capability.name, capability.purpose))
        .collect();
    if !in_initial_user_namespace()? {
        missing.push(String::from("the initial user namespace"));
    }
    Ok(missing)
}

/// Whether every id maps to itself, as in the initial user namespace.
fn is_initial_user_namespace(uid_map: &str) -> bool {
    let mut words = uid_map.split_whitespace();
    [words.next(), words.next(), words.next(), words.next()]
        == [Some("0"), Some("0"), Some("4294967295"), None]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_with_mapped_ids_is_not_the_initial_namespace() {
        assert!(is_initial_user_namespace(
            "         0          0 4294967295\n"
        ));
        assert!(!is_initial_user_namespace(
            "         0     100000      65536\n"
        ));
        assert!(!is_initial_user_namespace("0 1000 1\n1 100000 65536\n"));
        assert!(!is_initial_user_namespace(""));
    }
}
