//! What this process may do.

use std::fs;
use std::io;
use std::path::Path;

use rustix::thread::CapabilitySet;
use thiserror::Error;

/// A capability, what takes it, and whether this process has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Its name.
    pub name: &'static str,
    /// What takes it.
    pub purpose: &'static str,
    /// Whether it is effective.
    pub is_held: bool,
}

/// A capability that some part of nicpoll takes.
struct Used {
    capability: CapabilitySet,
    name: &'static str,
    purpose: &'static str,
    /// Whether a lab and its counters take it.
    is_of_lab: bool,
    /// Whether changing an interface's settings takes it.
    is_of_switch: bool,
}

/// All of them, most important first.
const USED: [Used; 6] = [
    Used {
        capability: CapabilitySet::NET_ADMIN,
        name: "CAP_NET_ADMIN",
        purpose: "changing settings, and nftables counters",
        is_of_lab: true,
        is_of_switch: true,
    },
    Used {
        capability: CapabilitySet::SYS_ADMIN,
        name: "CAP_SYS_ADMIN",
        purpose: "network namespaces: the demo, and --netns",
        is_of_lab: true,
        is_of_switch: true,
    },
    Used {
        capability: CapabilitySet::BPF,
        name: "CAP_BPF",
        purpose: "watching and counting polls",
        is_of_lab: true,
        is_of_switch: false,
    },
    Used {
        capability: CapabilitySet::PERFMON,
        name: "CAP_PERFMON",
        purpose: "watching and counting polls",
        is_of_lab: true,
        is_of_switch: false,
    },
    Used {
        capability: CapabilitySet::NET_RAW,
        name: "CAP_NET_RAW",
        purpose: "AF_PACKET and AF_XDP sockets, and binding to an interface",
        is_of_lab: false,
        is_of_switch: false,
    },
    Used {
        capability: CapabilitySet::SYS_NICE,
        name: "CAP_SYS_NICE",
        purpose: "scheduling of threads that poll",
        is_of_lab: false,
        is_of_switch: false,
    },
];

/// What the kernel tells of processes and settings cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "/proc is not mounted here, and what is changed and counted is read from it; mount it: mount -t proc proc /proc"
)]
pub struct NoProc;

/// Refuses to go on without `/proc`.
///
/// # Errors
/// When it is not mounted.
pub fn require_proc() -> Result<(), NoProc> {
    match Path::new("/proc/self").exists() {
        true => Ok(()),
        false => Err(NoProc),
    }
}

/// The capabilities that nicpoll's parts take, most important first.
pub fn capabilities() -> io::Result<Vec<Capability>> {
    let effective = rustix::thread::capabilities(None)?.effective;
    let capability = |used: &Used| Capability {
        name: used.name,
        purpose: used.purpose,
        is_held: effective.contains(used.capability),
    };
    Ok(USED.iter().map(capability).collect())
}

/// Whether this process is in the initial user namespace; in another one the kernel refuses the polling
/// knobs even to its root.
pub fn in_initial_user_namespace() -> io::Result<bool> {
    let map = fs::read_to_string("/proc/self/uid_map")?;
    Ok(is_initial_user_namespace(&map))
}

/// Names what is missing to build a lab, most important first; empty when nothing is.
///
/// Capabilities count in the *initial* user namespace only: the kernel refuses the polling knobs to a
/// root that exists only in a container's user namespace.
pub fn missing_for_lab() -> io::Result<Vec<String>> {
    missing(|used| used.is_of_lab)
}

/// Names what is missing to change an interface's settings, as [`missing_for_lab`] does.
pub fn missing_for_switch() -> io::Result<Vec<String>> {
    missing(|used| used.is_of_switch)
}

fn missing(is_needed: fn(&Used) -> bool) -> io::Result<Vec<String>> {
    let effective = rustix::thread::capabilities(None)?.effective;
    let needed = USED.iter().filter(|used| is_needed(used));
    let mut missing: Vec<String> = needed
        .filter(|used| !effective.contains(used.capability))
        .map(|used| format!("{} ({})", used.name, used.purpose))
        .collect();
    if !in_initial_user_namespace()? {
        missing.push(String::from("the initial user namespace"));
    }
    Ok(missing)
}

/// The initial user namespace maps every id to itself.
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
