//! The Debian package: the program, a manual page for each command, completions, the docs, others' notices.
//!
//! What must hold: pages and completions come from the program that is packaged, so that they cannot say what it
//! does not. One that is built for another machine says them under that target's runner, which cargo knows. A root
//! that had the package is, after its removal, as it was before: [`check`] compares the names of all files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::notices;
use crate::process::{cargo, find_program, output_of, run};
use crate::steps::Outcome;

const PARTS: &str = "target/package";
const PACKAGES: &str = "target/debian";
/// What the licenses of the crates ask that copies carry.
const NOTICES: &str = "THIRD-PARTY.txt";

/// Completions by shell, and the file that the shell looks for.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "nicpoll.bash"),
    ("zsh", "_nicpoll"),
    ("fish", "nicpoll.fish"),
];

/// Builds the program for a target, or for this machine, and packs it.
pub fn build(target: Option<&str>) -> Result<Outcome> {
    if find_program("cargo-deb").is_none() {
        bail!("cargo-deb makes the package: cargo install cargo-deb --locked");
    }
    let target = target.map(|target| ["--target", target]);
    let target = target.as_ref().map_or(&[][..], |option| option);
    let program = |action: &str| {
        let mut command = cargo();
        command.args([action, "--release", "--locked", "--package", "nicpoll"]);
        command.args(target);
        command
    };
    run(&mut program("build"))?;
    let parts = Path::new(PARTS);
    if parts.exists() {
        fs::remove_dir_all(parts)?;
    }
    let pages = parts.join("man");
    fs::create_dir_all(&pages)?;
    run(program("run").args(["--", "man", "--out"]).arg(&pages))?;
    let completions = parts.join("completions");
    fs::create_dir(&completions)?;
    for (shell, file) in COMPLETIONS {
        let script = output_of(program("run").args(["--", "completions", shell]))
            .with_context(|| format!("no completions for {shell}"))?;
        fs::write(completions.join(file), script)?;
    }
    fs::write(parts.join(NOTICES), notices::of_program(target)?)?;
    run(cargo()
        .args(["deb", "--no-build", "--locked", "--package", "nicpoll"])
        .args(["--output", PACKAGES])
        .args(target))?;
    Ok(Outcome::Passed)
}

/// Asks Debian's own checker about the newest package.
pub fn lint() -> Result<Outcome> {
    if find_program("lintian").is_none() {
        return Ok(Outcome::Skipped(String::from(
            "there is no lintian (package lintian)",
        )));
    }
    // The package is no upload to Debian, which would have to close a request for it.
    run(Command::new("lintian")
        .args(["--allow-root", "--fail-on", "error,warning"])
        .args(["--suppress-tags", "initial-upload-closes-no-bugs"])
        .arg(newest()?))?;
    Ok(Outcome::Passed)
}

/// Installs the newest package in a root that debootstrap makes, tries it there, and removes it.
pub fn check() -> Result<Outcome> {
    if find_program("debootstrap").is_none() {
        return Ok(Outcome::Skipped(String::from(
            "there is no debootstrap (package debootstrap)",
        )));
    }
    let package = newest()?;
    if let Some(machine) = other_machine(&package)? {
        return Ok(Outcome::Skipped(format!("the package is for {machine}")));
    }
    let root = tempfile::tempdir().context("cannot make a temporary directory")?;
    let root = root.path();
    run(Command::new("debootstrap")
        .args(["--variant=minbase", "stable"])
        .arg(root))?;
    let before = files(root)?;
    fs::copy(&package, root.join("nicpoll.deb"))?;
    inside(root, &["dpkg", "--install", "/nicpoll.deb"])?;
    for command in [
        &["nicpoll", "--version"][..],
        &["nicpoll", "linerate", "1g"],
        &["test", "-s", "/usr/share/man/man1/nicpoll-set.1.gz"],
        &[
            "test",
            "-s",
            "/usr/share/bash-completion/completions/nicpoll",
        ],
    ] {
        inside(root, command)?;
    }
    inside(root, &["dpkg", "--purge", "nicpoll"])?;
    fs::remove_file(root.join("nicpoll.deb"))?;
    let after = files(root)?;
    let left: Vec<&PathBuf> = after
        .difference(&before)
        .filter(|path| !is_dpkgs(path))
        .collect();
    let gone: Vec<&PathBuf> = before
        .difference(&after)
        .filter(|path| !is_dpkgs(path))
        .collect();
    ensure!(
        left.is_empty() && gone.is_empty(),
        "after its removal there is more {left:?}, or less {gone:?}"
    );
    Ok(Outcome::Passed)
}

/// The architecture of a package that cannot be installed here.
fn other_machine(package: &Path) -> Result<Option<String>> {
    let own = output_of(Command::new("dpkg").arg("--print-architecture"));
    let own = own.context("there is no dpkg")?;
    let of_package = Command::new("dpkg-deb")
        .args([
            OsStr::new("--field"),
            package.as_os_str(),
            OsStr::new("Architecture"),
        ])
        .output()?;
    let of_package = String::from_utf8(of_package.stdout)?;
    Ok((of_package != own).then(|| of_package.trim_end().to_owned()))
}

fn newest() -> Result<PathBuf> {
    let packages = fs::read_dir(PACKAGES).context("no package was built")?;
    let packages = packages.flatten().map(|entry| entry.path());
    let packages = packages.filter(|path| path.extension().is_some_and(|end| end == "deb"));
    packages
        .max_by_key(|path| path.metadata().and_then(|file| file.modified()).ok())
        .context("no package was built")
}

fn inside(root: &Path, command: &[&str]) -> Result<()> {
    run(Command::new("chroot").arg(root).args(command))
}

/// Every file and folder below `root`, by name.
fn files(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
            found.insert(entry.path().strip_prefix(root)?.to_owned());
        }
    }
    Ok(found)
}

/// Whether the package manager keeps its own books there.
fn is_dpkgs(path: &Path) -> bool {
    ["var/lib/dpkg", "var/log", "var/cache", "proc", "sys"]
        .iter()
        .any(|own| path.starts_with(own))
}
