//! What this process may do.

use std::fs;
use std::io;

use rustix::thread::CapabilitySet;

/// Capabilities that a lab and its counters need, with what for.
const NEEDED: [(CapabilitySet, &str); 4] = [
    (
        CapabilitySet::NET_ADMIN,
        "CAP_NET_ADMIN (interfaces and their settings)",
    ),
    (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN (namespaces)"),
    (CapabilitySet::BPF, "CAP_BPF (counting polls and CPU time)"),
    (
        CapabilitySet::PERFMON,
        "CAP_PERFMON (counting polls and CPU time)",
    ),
];

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

/// Every capability that some part of nicpoll takes.
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

/// The capabilities that nicpoll's parts take, most important first.
pub fn capabilities() -> io::Result<Vec<Capability>> {
    let effective = rustix::thread::capabilities(None)?.effective;
    let capability =
        |(set, name, purpose): &(CapabilitySet, &'static str, &'static str)| Capability {
            name,
            purpose,
            is_held: effective.contains(*set),
        };
    Ok(USED.iter().map(capability).collect())
}

/// Whether this process is in the initial user namespace; in another one the kernel refuses the polling
/// knobs even to its root.
pub fn in_initial_user_namespace() -> io::Result<bool> {
    let map = fs::read_to_string("/proc/self/uid_map")?;
    Ok(is_initial_user_namespace(&map))
}

/// How many of them, from the first, changing an interface's settings needs.
const NEEDED_FOR_SWITCH: usize = 2;

/// Names what is missing to build a lab, most important first; empty when nothing is.
///
/// Capabilities count in the *initial* user namespace only: the kernel refuses the polling knobs to a
/// root that exists only in a container's user namespace.
pub fn missing_for_lab() -> io::Result<Vec<String>> {
    missing(&NEEDED)
}

/// Names what is missing to change an interface's settings, as [`missing_for_lab`] does.
pub fn missing_for_switch() -> io::Result<Vec<String>> {
    missing(&NEEDED[..NEEDED_FOR_SWITCH])
}

fn missing(needed: &[(CapabilitySet, &str)]) -> io::Result<Vec<String>> {
    let effective = rustix::thread::capabilities(None)?.effective;
    let mut missing: Vec<String> = needed
        .iter()
        .filter(|(capability, _)| !effective.contains(*capability))
        .map(|(_, name)| String::from(*name))
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
