//! The Debian package: the program, a manual page for each command, completions, the docs, and the
//! notices that the licenses of the linked crates ask for.
//!
//! Pages and completions come from the program that is packaged; one built for another machine runs
//! under that target's runner. [`check`] compares the names of all files of a root before the
//! installation and after the removal. The notices name every crate that the program links.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

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
    fs::write(parts.join(NOTICES), notices(target)?)?;
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

/// Whether the package manager writes there by itself.
fn is_dpkgs(path: &Path) -> bool {
    ["var/lib/dpkg", "var/log", "var/cache", "proc", "sys"]
        .iter()
        .any(|own| path.starts_with(own))
}

const NOTICES_HEAD: &str = "nicpoll is made of these crates besides its own code. Above each text are the crates that it belongs to.\n";
const RULE: &str =
    "--------------------------------------------------------------------------------";

/// The notices for a program that is built with these options of cargo.
fn notices(target: &[&str]) -> Result<String> {
    let linked = linked(target)?;
    let metadata = output_of(cargo().args(["metadata", "--locked", "--format-version=1"]));
    let metadata: Value = serde_json::from_str(&metadata.context("cargo metadata failed")?)?;
    let mut crates_by_text = BTreeMap::<String, Vec<String>>::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let field = |name: &str| package[name].as_str().unwrap_or_default();
        let name = format!("{} {}", field("name"), field("version"));
        if linked.contains(&name) {
            let license = field("license");
            let folder = Path::new(field("manifest_path")).parent();
            let text = license_text(folder.context("a manifest is in a folder")?, license)?;
            let crates = crates_by_text.entry(text).or_default();
            crates.push(format!("{name} ({license})"));
        }
    }
    let named: usize = crates_by_text.values().map(Vec::len).sum();
    ensure!(
        named == linked.len(),
        "cargo metadata does not know every crate"
    );
    let mut notices = String::from(NOTICES_HEAD);
    for (text, crates) in crates_by_text {
        write!(notices, "\n{RULE}\n{}\n\n{text}\n", crates.join("\n"))?;
    }
    Ok(notices)
}

/// Name and version of the crates of others that the program is linked from.
fn linked(target: &[&str]) -> Result<BTreeSet<String>> {
    let tree = output_of(
        cargo()
            .args(["tree", "--locked", "--package", "nicpoll"])
            .args(["--edges", "normal,no-proc-macro", "--no-dedupe"])
            .args(["--prefix", "none", "--format", "{p}"])
            .args(target),
    );
    let tree = tree.context("cargo tree failed")?;
    // Those of the workspace have their folder as a third word.
    let others = tree.lines().filter_map(|line| line.split_once(" v"));
    let others = others.filter(|(_, version)| !version.contains(' '));
    Ok(others
        .map(|(name, version)| format!("{name} {version}"))
        .collect())
}

/// What the files of a package say; the name of its license where it has none.
fn license_text(folder: &Path, license: &str) -> Result<String> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let names = entries.map(|entry| Ok(entry?.file_name()));
    let names = chosen(names.collect::<Result<Vec<OsString>>>()?, license);
    let texts = names
        .iter()
        .map(|name| fs::read_to_string(folder.join(name)));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let texts: Vec<_> = texts.iter().map(|text| text.trim_end()).collect();
    Ok(if texts.is_empty() {
        format!("{license}: the package has no text of its own.")
    } else {
        texts.join("\n\n")
    })
}

/// Those of a package's files that say how it may be used: of several licenses, the MIT license where it is offered.
fn chosen(mut names: Vec<OsString>, license: &str) -> Vec<OsString> {
    let has = |name: &OsString, word: &str| name.to_string_lossy().to_uppercase().contains(word);
    names.retain(|name| {
        ["LICENSE", "LICENCE", "COPYING", "NOTICE"]
            .iter()
            .any(|word| has(name, word))
    });
    if license.contains("MIT") && names.iter().any(|name| has(name, "MIT")) {
        names.retain(|name| has(name, "MIT") || has(name, "NOTICE"));
    }
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mit_license_is_chosen_where_it_is_offered() {
        let choose = |names: &[&str], license| {
            let chosen = chosen(names.iter().map(OsString::from).collect(), license);
            chosen.join(&OsString::from(" ")).into_string().unwrap()
        };
        let both = ["Cargo.toml", "LICENSE-MIT", "LICENSE-APACHE", "NOTICE"];
        assert_eq!(choose(&both, "MIT OR Apache-2.0"), "LICENSE-MIT NOTICE");
        assert_eq!(choose(&["license.txt", "src"], "MIT"), "license.txt");
        assert_eq!(choose(&["LICENSE"], "Apache-2.0"), "LICENSE");
        assert_eq!(choose(&["README.md"], "MIT"), "");
    }
}
