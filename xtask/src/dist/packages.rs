//! The packages: for Debian by cargo-deb, for systems with RPM from the same files by rpmbuild.
//!
//! [`try_on`] installs them in a fresh root, and compares the names of all files before the installation and after the
//! removal.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::program::{DIST, PARTS, Release};
use crate::process::{cargo, find_program, output_of, run};
use crate::steps::Outcome;

/// Refuses to begin without what makes the packages.
pub fn check_tools() -> Result<()> {
    for (program, remedy) in [
        ("cargo-deb", "cargo install cargo-deb --locked"),
        ("dpkg-deb", "apt-get install dpkg"),
        ("rpmbuild", "apt-get install rpm"),
    ] {
        let remedy = || format!("{program} makes the packages: {remedy}");
        find_program(program).with_context(remedy)?;
    }
    Ok(())
}

/// Packs the program that was built, with its parts.
pub fn build(release: Release, version: &str) -> Result<()> {
    run(cargo()
        .args(["deb", "--no-build", "--locked", "--package", "nicpoll"])
        .args(["--output", DIST, "--target", release.target]))?;
    // The other package has the same files, but for what each kind of system has elsewhere.
    let files = fs::canonicalize(PARTS)?.join("files");
    run(Command::new("dpkg-deb")
        .arg("--extract")
        .args([&package("deb")?, &files]))?;
    let zsh = files.join("usr/share/zsh");
    fs::rename(zsh.join("vendor-completions"), zsh.join("site-functions"))?;
    let define = |name: &str, value: &Path| format!("{name} {}", value.display());
    run(Command::new("rpmbuild")
        .args(["-bb", "packaging/nicpoll.spec", "--target"])
        .arg(format!("{}-linux", release.machine()))
        .args(["--define", &define("version", Path::new(version))])
        .args(["--define", &define("tree", &files)])
        .args([
            "--define",
            &define("_sourcedir", &fs::canonicalize("packaging")?),
        ])
        .args(["--define", &define("_rpmdir", &fs::canonicalize(DIST)?)])
        .args(["--define", &define("_topdir", &files.with_file_name("rpm"))]))
}

/// Asks Debian's own checker about the newest package.
pub fn lint() -> Result<Outcome> {
    if find_program("lintian").is_none() {
        return Ok(Outcome::Skipped(String::from(
            "there is no lintian (package lintian)",
        )));
    }
    let tags = [
        // The package is no upload to Debian, which would have to close a request for it.
        "initial-upload-closes-no-bugs",
        // The program is static on purpose, looks like a library with its random place in memory, and needs none.
        "statically-linked-binary",
        "shared-library-lacks-prerequisites",
        "empty-field",
    ];
    run(Command::new("lintian")
        .args(["--allow-root", "--fail-on", "error,warning"])
        .args(["--suppress-tags", &tags.join(",")])
        .arg(package("deb")?))?;
    Ok(Outcome::Passed)
}

const UBUNTU_KEYS: &str = "/usr/share/keyrings/ubuntu-archive-keyring.gpg";

/// Installs the packages in a root that debootstrap makes of these words, tries them there, and removes them.
pub fn try_on(suite: &[&str]) -> Result<Outcome> {
    if find_program("debootstrap").is_none() {
        return Ok(Outcome::Skipped(String::from(
            "there is no debootstrap (package debootstrap)",
        )));
    }
    // Without it debootstrap looks for every suite at Debian's mirror.
    if suite.len() > 1 && !Path::new(UBUNTU_KEYS).exists() {
        return Ok(Outcome::Skipped(format!("there is no {UBUNTU_KEYS}")));
    }
    let deb = package("deb")?;
    if let Some(machine) = other_machine(&deb)? {
        return Ok(Outcome::Skipped(format!("the package is for {machine}")));
    }
    let root = tempfile::tempdir().context("cannot make a temporary directory")?;
    let root = root.path();
    run(Command::new("debootstrap")
        .args(["--variant=minbase", suite[0]])
        .arg(root)
        .args(&suite[1..]))?;
    fs::copy(&deb, root.join("package.deb"))?;
    fs::copy(package("rpm")?, root.join("package.rpm"))?;
    let inside = |command: &[&str]| run(Command::new("chroot").arg(root).args(command));
    leaves_nothing(root, || {
        inside(&["dpkg", "--install", "/package.deb"])?;
        inside(&["nicpoll", "linerate", "1g"])?;
        inside(&["test", "-s", "/usr/share/man/man1/nicpoll-set.1.gz"])?;
        inside(&[
            "test",
            "-s",
            "/usr/share/bash-completion/completions/nicpoll",
        ])?;
        inside(&["dpkg", "--purge", "nicpoll"])
    })?;
    // RPM does not know the shell that dpkg installed, and Debian has its database elsewhere.
    let rpm = |words: &[&str]| {
        let mut rpm = Command::new("rpm");
        rpm.arg("--root").arg(root);
        run(rpm
            .args(["--nodeps", "--force-debian", "--dbpath=/var/lib/rpm"])
            .args(words))
    };
    leaves_nothing(root, || {
        let package = root.join("package.rpm");
        rpm(&["--install", &package.to_string_lossy()])?;
        inside(&["nicpoll", "linerate", "1g"])?;
        rpm(&["--erase", "nicpoll"])
    })?;
    Ok(Outcome::Passed)
}

/// Refuses what leaves a file behind, or takes one along.
fn leaves_nothing(root: &Path, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let before = files(root)?;
    work()?;
    let after = files(root)?;
    let left: Vec<&PathBuf> = after.difference(&before).collect();
    let gone: Vec<&PathBuf> = before.difference(&after).collect();
    ensure!(
        left.is_empty() && gone.is_empty(),
        "after its removal there is more {left:?}, or less {gone:?}"
    );
    Ok(())
}

/// The architecture of a package that cannot be installed here.
fn other_machine(package: &Path) -> Result<Option<String>> {
    let own = output_of(Command::new("dpkg").arg("--print-architecture"));
    let own = own.context("there is no dpkg")?;
    let field = output_of(
        Command::new("dpkg-deb")
            .arg("--field")
            .arg(package)
            .arg("Architecture"),
    );
    let of_package = field.context("dpkg-deb cannot read the package")?;
    Ok((of_package != own).then(|| of_package.trim_end().to_owned()))
}

/// The package of this kind in the release.
fn package(kind: &str) -> Result<PathBuf> {
    let files = fs::read_dir(DIST).context("no package was built")?;
    let mut files = files.flatten().map(|entry| entry.path());
    files
        .find(|path| path.extension().is_some_and(|end| end == kind))
        .context("no package was built")
}

/// Every file and folder below `root`, by name, but for what package managers write by themselves.
fn files(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let path = entry.path().strip_prefix(root)?.to_owned();
            let own = [
                "var/lib/dpkg",
                "var/lib/rpm",
                "var/log",
                "var/cache",
                "proc",
                "sys",
            ];
            if own.iter().any(|own| path.starts_with(own)) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
            found.insert(path);
        }
    }
    Ok(found)
}
