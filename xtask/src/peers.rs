//! The programs that tests run against: other implementations, and tools that give a second
//! opinion on what was set.
//!
//! What must hold: nothing is installed unless this is root on Debian or Ubuntu; elsewhere what is
//! missing is named with the way to get it. apt-get is not touched when nothing is missing.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Result, bail};

use crate::process::{find_program, output_of, run};
use crate::steps::Outcome;
use crate::suite::Scope;

struct Peer {
    program: &'static str,
    package: &'static str,
    used_for: &'static str,
    /// The tests that need it.
    scope: Scope,
}

const PEERS: [Peer; 10] = [
    Peer {
        program: "iperf",
        package: "iperf",
        used_for: "the other end of a transfer, as iperf 2",
        scope: Scope::Quick,
    },
    Peer {
        program: "ministat",
        package: "ministat",
        used_for: "what 'nicpoll study compare --ministat' must print",
        scope: Scope::Quick,
    },
    Peer {
        program: "nft",
        package: "nftables",
        used_for: "known loss on a link",
        scope: Scope::Quick,
    },
    Peer {
        program: "iptables-legacy-save",
        package: "iptables",
        used_for: "known loss by both kinds of iptables",
        scope: Scope::Quick,
    },
    Peer {
        program: "ethtool",
        package: "ethtool",
        used_for: "a second opinion on offloads",
        scope: Scope::Quick,
    },
    Peer {
        program: "ip",
        package: "iproute2",
        used_for: "a second opinion on links and namespaces",
        scope: Scope::Quick,
    },
    Peer {
        program: "tc",
        package: "iproute2",
        used_for: "a second opinion on shaped links",
        scope: Scope::Quick,
    },
    Peer {
        program: "iperf3",
        package: "iperf3",
        used_for: "traffic that nicpoll does not control",
        scope: Scope::All,
    },
    Peer {
        program: "pg_ctlcluster",
        package: "postgresql",
        used_for: "studies of a team on a server",
        scope: Scope::All,
    },
    Peer {
        program: "chromium",
        package: "chromium",
        used_for: "reports as a reader sees them",
        scope: Scope::All,
    },
];

/// Installs the missing programs where that is possible, and names them where it is not.
pub fn ensure(scope: Scope, no_install: bool) -> Result<Outcome> {
    let is_there = |program: &str| find_program(program).is_some();
    let missing = missing(scope, is_there);
    if missing.is_empty() {
        return Ok(Outcome::Passed);
    }
    for peer in &missing {
        eprintln!("   missing: {} ({})", peer.program, peer.used_for);
    }
    let packages = packages(&missing);
    if no_install || !can_install() {
        return Ok(Outcome::Skipped(format!(
            "tests that need these programs will skip and say so; to run them all: \
             as root, `apt-get install {}`, or the same programs from your system's packages",
            packages.join(" ")
        )));
    }
    install(&packages)?;
    if let Some(peer) = missing.iter().find(|peer| !is_there(peer.program)) {
        bail!("{} is still missing after installing", peer.program);
    }
    Ok(Outcome::Passed)
}

/// Whether this is root on a system that has apt-get.
pub fn can_install() -> bool {
    let os_release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let user = output_of(Command::new("id").arg("-u"));
    user.is_some_and(|id| id.trim() == "0") && is_debian_like(&os_release)
}

/// Learns what the archive offers now.
pub fn update() -> Result<()> {
    run(Command::new("apt-get").args(["update", "-qq"]))
}

/// Installs packages, without questions.
pub fn install(packages: &[&str]) -> Result<()> {
    update()?;
    let install = ["install", "-qq", "--yes", "--no-install-recommends"];
    let mut apt_get = Command::new("apt-get");
    apt_get.env("DEBIAN_FRONTEND", "noninteractive");
    run(apt_get.args(install).args(packages))
}

fn missing(scope: Scope, is_there: impl Fn(&str) -> bool) -> Vec<&'static Peer> {
    let is_meant = |peer: &&Peer| peer.scope == Scope::Quick || scope == Scope::All;
    let peers = PEERS.iter().filter(is_meant);
    peers.filter(|peer| !is_there(peer.program)).collect()
}

fn packages(peers: &[&'static Peer]) -> Vec<&'static str> {
    let unique: BTreeSet<_> = peers.iter().map(|peer| peer.package).collect();
    unique.into_iter().collect()
}

fn is_debian_like(os_release: &str) -> bool {
    os_release
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(key, _)| matches!(*key, "ID" | "ID_LIKE"))
        .flat_map(|(_, value)| value.trim_matches('"').split_whitespace())
        .any(|id| matches!(id, "debian" | "ubuntu"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_asked_for_and_once() {
        assert!(missing(Scope::All, |_| true).is_empty());
        let without_iproute = missing(Scope::All, |program| !matches!(program, "ip" | "tc"));
        assert_eq!(packages(&without_iproute), ["iproute2"]);
        let all = [
            "chromium",
            "ethtool",
            "iperf",
            "iperf3",
            "iproute2",
            "iptables",
            "ministat",
            "nftables",
            "postgresql",
        ];
        assert_eq!(packages(&missing(Scope::All, |_| false)), all);
        let quick = all.map(String::from).to_vec();
        let quick: Vec<_> = quick
            .into_iter()
            .filter(|name| !["chromium", "iperf3", "postgresql"].contains(&name.as_str()))
            .collect();
        assert_eq!(packages(&missing(Scope::Quick, |_| false)), quick);
    }

    #[test]
    fn debian_and_what_derives_from_it_have_apt() {
        assert!(is_debian_like("NAME=\"Debian\"\nID=debian\n"));
        assert!(is_debian_like("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"));
        assert!(!is_debian_like("ID=fedora\nNAME=\"not debian\"\n"));
        assert!(!is_debian_like(""));
    }
}
