//! What the tests need of the machine: peer programs, axe-core for pages, a guest that boots in QEMU.
//!
//! Installs with apt-get only as root on Debian or Ubuntu, and only what is missing. Elsewhere each
//! step names what is missing and how to get it. The guest's parts go to the target directory, whole
//! or not at all.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;

use crate::process::{find_program, metadata, output_of, run};
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
    install(&packages)?;
    if let Some(peer) = missing.iter().find(|peer| !is_there(&peer.program)) {
        bail!("{} is still missing after installing", peer.program);
    }
    Ok(Outcome::Passed)
}

/// Whether this is root on a system that has apt-get.
pub fn can_install() -> bool {
    let os_release = fs::read_to_string("/etc/os-release").unwrap_or_default();
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

const QEMU: &str = "qemu-system-x86_64";
const QEMU_PACKAGE: &str = "qemu-system-x86";
/// What the guest is made of besides the kernel.
const GUEST_PACKAGES: [&str; 2] = ["busybox-static", "udev"];
/// Debian's kernel packages of one flavour, whatever their version.
const KERNEL_PREFIX: &str = "linux-image-";
const KERNEL_SUFFIX: &str = "-amd64";

/// Makes the guest's parts be there, or says why they are not.
pub fn ensure_guest(no_install: bool) -> Result<Outcome> {
    if std::env::consts::ARCH != "x86_64" {
        return skipped("the guest runs this machine's own programs, and its kernel is for x86_64");
    }
    let unpacked = directory()?;
    let has_qemu = find_program(QEMU).is_some();
    if has_qemu && unpacked.exists() {
        return Ok(Outcome::Passed);
    }
    if no_install || !can_install() {
        return skipped(
            "the test with a card's interrupts will skip; as root on Debian this step gets QEMU and a kernel",
        );
    }
    match get(&unpacked, has_qemu) {
        Ok(()) => Ok(Outcome::Passed),
        Err(error) => skipped(&format!("{error:#}")),
    }
}

fn skipped(reason: &str) -> Result<Outcome> {
    Ok(Outcome::Skipped(String::from(reason)))
}

/// Where the test looks: cargo gives it the same directory as `CARGO_TARGET_TMPDIR`.
fn directory() -> Result<PathBuf> {
    let metadata = metadata()?;
    let target = metadata["target_directory"].as_str();
    let target = target.context("`cargo metadata` names no target directory")?;
    Ok(Path::new(target).join("tmp").join("guest"))
}

fn get(unpacked: &Path, has_qemu: bool) -> Result<()> {
    if has_qemu {
        update()?;
    } else {
        install(&[QEMU_PACKAGE])?;
    }
    if unpacked.exists() {
        return Ok(());
    }
    let pattern = format!("^{KERNEL_PREFIX}[0-9].*{KERNEL_SUFFIX}$");
    let names = output_of(Command::new("apt-cache").args(["search", "--names-only", &pattern]))
        .context("`apt-cache search` failed")?;
    let kernel = newest(&names)
        .with_context(|| format!("this archive has no package {KERNEL_PREFIX}*{KERNEL_SUFFIX}"))?;
    let parent = unpacked.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent)?;
    // In the same file system, so that it can be moved into place.
    let home = tempfile::tempdir_in(parent).context("cannot make a temporary directory")?;
    let mut download = Command::new("apt-get");
    download
        .args(["download", "-qq", kernel])
        .args(GUEST_PACKAGES);
    run(download.current_dir(home.path()))?;
    let whole = home.path().join("guest");
    for file in fs::read_dir(home.path())? {
        let package = file?.path();
        if package.extension().is_some_and(|end| end == "deb") {
            run(Command::new("dpkg-deb")
                .arg("--extract")
                .args([&package, &whole]))?;
        }
    }
    fs::rename(&whole, unpacked).map_err(|error| anyhow!("{}: {error}", unpacked.display()))
}

/// The newest kernel among lines of `apt-cache search`. Packages without files, such as linux-image-6.1-amd64,
/// have no third number; flavours, such as linux-image-6.1.0-9-cloud-amd64, have words in their version.
fn newest(names: &str) -> Option<&str> {
    names
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter_map(|name| Some((version(name)?, name)))
        .max()
        .map(|(_, name)| name)
}

/// The numbers of a kernel package's version, such as 6, 12, 9, 12 of `6.12.9+deb12`.
fn version(package: &str) -> Option<Vec<u32>> {
    let text = package
        .strip_prefix(KERNEL_PREFIX)?
        .strip_suffix(KERNEL_SUFFIX)?;
    let (release, _) = text.split_once(['+', '-']).unwrap_or((text, ""));
    let is_flavour = text
        .rsplit('-')
        .next()
        .is_some_and(|word| word.starts_with(|letter: char| letter.is_ascii_alphabetic()));
    if release.split('.').count() < 3 || is_flavour {
        return None;
    }
    let numbers = text.split(|letter: char| !letter.is_ascii_digit());
    let numbers = numbers.filter(|number| !number.is_empty());
    numbers.map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_asked_for_and_once() {
        assert!(missing(Scope::All, |_| true).is_empty());
        let without_iproute = missing(Scope::All, |program| !matches!(program, "ip" | "tc"));
        assert_eq!(packages(&without_iproute), ["iproute2"]);
        let all = "chromium ethtool iperf iperf3 iproute2 iptables ministat nftables postgresql";
        let quick = "ethtool iperf iproute2 iptables ministat nftables";
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

    #[test]
    fn the_newest_kernel_with_files_and_all_drivers_is_chosen() {
        let names = "linux-image-6.1.0-50-amd64 - Linux 6.1 for 64-bit PCs (signed)\n\
            linux-image-6.1.0-9-amd64 - Linux 6.1 for 64-bit PCs (signed)\n\
            linux-image-6.1.0-56-cloud-amd64 - Linux 6.1 for x86-64 cloud (signed)\n\
            linux-image-6.12-amd64 - Linux for 64-bit PCs (meta-package)\n";
        assert_eq!(newest(names), Some("linux-image-6.1.0-50-amd64"));
        let more = format!(
            "{names}linux-image-6.12.100+deb12-amd64 - Linux 6.12\n\
             linux-image-6.12.99+deb12-amd64 - Linux 6.12\n\
             linux-image-6.12.101+deb12-rt-amd64 - Linux 6.12\n"
        );
        assert_eq!(newest(&more), Some("linux-image-6.12.100+deb12-amd64"));
        assert_eq!(newest("linux-image-amd64 - meta\n"), None);
        assert_eq!(newest(""), None);
    }
}
