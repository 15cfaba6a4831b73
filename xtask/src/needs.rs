//! What the tests need of the machine: peer programs, and axe-core for pages. [`crate::guests`] has what boots in QEMU.
//!
//! Installs with apt-get only as root on Debian or Ubuntu, and only what is missing. Elsewhere each
//! step names what is missing and how to get it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use serde::Deserialize;

use crate::process::{find_program, output_of, run};
use crate::steps::Outcome;

/// Which tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those that take little time each.
    Quick,
    /// All of them, with every feature of the program.
    All,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Peers {
    peer: Vec<Peer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Peer {
    program: String,
    package: String,
    used_for: String,
    #[serde(default)]
    for_long_tests: bool,
}

fn peers() -> Vec<Peer> {
    let peers: Peers = toml::from_str(include_str!("../peers.toml")).expect("a test reads it");
    peers.peer
}

/// Installs the missing programs where that is possible, and names them where it is not.
pub fn ensure_peers(scope: Scope, no_install: bool) -> Result<Outcome> {
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
    if install(&packages).is_err() {
        // One that cannot be had must not keep the others away.
        for package in packages {
            let _ = install(&[package]);
        }
    }
    let programs = missing.iter().map(|peer| &*peer.program);
    let missing: Vec<_> = programs.filter(|program| !is_there(program)).collect();
    match missing[..] {
        [] => Ok(Outcome::Passed),
        _ => Ok(Outcome::Skipped(format!(
            "could not be installed: {}; tests that need them will skip and say so, or fail where they are required",
            missing.join(", ")
        ))),
    }
}

/// Whether this is root on a system that has apt-get.
pub fn can_install() -> bool {
    let os_release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let user = output_of(Command::new("id").arg("-u"));
    user.is_some_and(|id| id.trim() == "0") && is_debian_like(&os_release)
}

/// Debian asks this program before it starts a service.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// The answer that no service may be started, while packages are installed.
struct NoService;

impl NoService {
    /// An administrator's own policy stays.
    fn begin() -> Result<Option<Self>> {
        let mut policy = match File::options()
            .write(true)
            .create_new(true)
            .mode(0o755)
            .open(POLICY)
        {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
            policy => policy?,
        };
        let no_service = NoService;
        policy.write_all(b"#!/bin/sh\nexit 101\n")?;
        Ok(Some(no_service))
    }
}

impl Drop for NoService {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(POLICY) {
            eprintln!("remove {POLICY}: {error}");
        }
    }
}

/// Installs packages, without questions, and starts none of their services.
pub fn install(packages: &[&str]) -> Result<()> {
    let _no_service = NoService::begin()?;
    run(Command::new("apt-get").args(["update", "-qq"]))?;
    let install = ["install", "-qq", "--yes", "--no-install-recommends"];
    let mut apt_get = Command::new("apt-get");
    apt_get.env("DEBIAN_FRONTEND", "noninteractive");
    run(apt_get.args(install).args(packages))
}

fn missing(scope: Scope, is_there: impl Fn(&str) -> bool) -> Vec<Peer> {
    let mut peers = peers();
    peers.retain(|peer| scope == Scope::All || !peer.for_long_tests);
    peers.retain(|peer| !is_there(&peer.program));
    peers
}

fn packages(peers: &[Peer]) -> Vec<&str> {
    let unique: BTreeSet<_> = peers.iter().map(|peer| &*peer.package).collect();
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

/// axe-core comes from npm at this version; the project holds no copy. A newer version may find more: change it on purpose.
const AXE_PACKAGE: &str = "axe-core@4.11.0";
/// Where it goes, below the workspace.
const AXE_FOLDER: &str = "target/axe";
/// The file that tests read.
const AXE_SCRIPT: &str = "target/axe/node_modules/axe-core/axe.min.js";

/// Installs it where that is possible, and says how where it is not.
pub fn ensure_axe(no_install: bool) -> Result<Outcome> {
    if Path::new(AXE_SCRIPT).is_file() {
        return Ok(Outcome::Passed);
    }
    let install = format!("install --no-save --ignore-scripts --prefix {AXE_FOLDER} {AXE_PACKAGE}");
    if no_install || find_program("npm").is_none() {
        return Ok(Outcome::Skipped(format!(
            "tests that need axe-core will skip and say so; to run them: npm {install}"
        )));
    }
    fs::create_dir_all(AXE_FOLDER)?;
    run(Command::new("npm").args(install.split(' ')))?;
    if !Path::new(AXE_SCRIPT).is_file() {
        bail!("{AXE_SCRIPT} is still missing after npm installed {AXE_PACKAGE}");
    }
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_asked_for_and_once() {
        assert!(missing(Scope::All, |_| true).is_empty());
        let without_iproute = missing(Scope::All, |program| !matches!(program, "ip" | "tc"));
        assert_eq!(packages(&without_iproute), ["iproute2"]);
        let all = "ansible-core chromium ethtool iperf iperf3 iproute2 iptables ministat nftables \
                   openssh-client openssh-server postgresql prometheus slurm-client slurmctld \
                   slurmd";
        let quick =
            "ethtool iperf iproute2 iptables ministat nftables openssh-client openssh-server";
        for (scope, packages_in_order) in [(Scope::All, all), (Scope::Quick, quick)] {
            let missing = missing(scope, |_| false);
            assert_eq!(packages(&missing).join(" "), packages_in_order);
        }
    }

    #[test]
    fn debian_and_what_derives_from_it_have_apt() {
        assert!(is_debian_like("NAME=\"Debian\"\nID=debian\n"));
        assert!(is_debian_like("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"));
        assert!(!is_debian_like("ID=fedora\nNAME=\"not debian\"\n"));
        assert!(!is_debian_like(""));
    }
}
