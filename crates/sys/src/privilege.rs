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

/// Names what is missing to build a lab, most important first; empty when nothing is.
///
/// Capabilities count in the *initial* user namespace only: the kernel refuses the polling knobs to a
/// root that exists only in a container's user namespace.
pub fn missing_for_lab() -> io::Result<Vec<String>> {
    let effective = rustix::thread::capabilities(None)?.effective;
    let mut missing: Vec<String> = NEEDED
        .iter()
        .filter(|(capability, _)| !effective.contains(*capability))
        .map(|(_, name)| String::from(*name))
        .collect();
    if !is_initial_user_namespace(&fs::read_to_string("/proc/self/uid_map")?) {
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
