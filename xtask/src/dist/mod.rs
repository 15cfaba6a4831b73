//! What a release has for one target, in target/dist: the program as one static file, an archive of it with manual
//! pages, completions and docs, a Debian package, an RPM package, a bill of materials (SBOM), and checksums.

mod made_of;
mod packages;
mod program;

use std::env::consts::ARCH;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{output_of, run};
use crate::steps::{Outcome, Steps};
use program::{DIST, NOTICES, PARTS, Release};

/// Builds all of it for a target, or for this machine, and installs the packages in fresh roots if asked.
pub fn run_steps(steps: &mut Steps, target: Option<&str>, is_checked: bool) {
    let host = format!("{ARCH}-unknown-linux-gnu");
    let target = target.unwrap_or(&host);
    let release = Release { target };
    steps.run("dist", || build(release));
    if target == host {
        steps.run("names of hosts", || program::find_host(&release.program()));
    }
    if is_checked {
        steps.run("lintian", packages::lint);
        steps.run("packages on Debian 12", || packages::try_on(&["bookworm"]));
        // Older versions of debootstrap do not know the release; all of Ubuntu are made by the same script.
        let noble = ["noble", "", "gutsy"];
        steps.run("packages on Ubuntu 24.04", || packages::try_on(&noble));
    }
}

fn build(release: Release) -> Result<Outcome> {
    packages::check_tools()?;
    let version = release.build()?;
    let program = release.program();
    let name = format!("nicpoll-{version}-{}", release.machine());
    let dist = Path::new(DIST);
    fs::copy(&program, dist.join(&name))?;
    let made_of = made_of::linked(release.target)?;
    made_of.check_names_in(&fs::read(&program)?)?;
    let sums = sums(&[OsString::from(&name)])?;
    let sum = sums.split_whitespace().next().unwrap_or_default();
    let sbom = serde_json::to_string_pretty(&made_of.sbom(&version, sum))? + "\n";
    fs::write(dist.join(format!("{name}.cdx.json")), sbom)?;
    release.parts(&made_of.notices()?)?;
    pack(&program, &name)?;
    packages::build(release, &version)?;
    let files = fs::read_dir(dist)?.map(|file| Ok(file?.file_name()));
    let mut files = files.collect::<Result<Vec<_>>>()?;
    files.sort();
    fs::write(dist.join("SHA256SUMS"), self::sums(&files)?)?;
    Ok(Outcome::Passed)
}

/// The archive: a folder with the program, what describes it, and what is installed with it.
fn pack(program: &Path, name: &str) -> Result<()> {
    let names = format!("s,^target/.*release/,,;s,^{PARTS}/,,;s,^,{name}/,");
    let docs = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "docs"];
    let parts = ["man", "completions", NOTICES].map(|part| Path::new(PARTS).join(part));
    run(Command::new("tar")
        .args(["--create", "--gzip", "--sort=name", "--owner=0"])
        .args(["--group=0", "--transform", &names, "--file"])
        .arg(Path::new(DIST).join(format!("{name}.tar.gz")))
        .args(docs.iter().chain(&["LICENSE-APACHE", "LICENSE-MIT"]))
        .arg(program)
        .args(parts))
}

/// The checksums of files of the release, as sha256sum(1) prints and checks them.
fn sums(files: &[OsString]) -> Result<String> {
    output_of(Command::new("sha256sum").current_dir(DIST).args(files)).context("sha256sum failed")
}
