//! The program of a release: one static file that needs nothing of the host but its kernel, with what it prints for
//! manual pages and completions. Its C library is glibc, as in the program that benchmarks measure.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::needs;
use crate::process::{cargo, output_of, run};
use crate::steps::Outcome;

/// Where a release goes.
pub const DIST: &str = "target/dist";
/// What the archive and the packages have besides the program.
pub const PARTS: &str = "target/package";
/// What the licenses of what is linked ask that copies carry.
pub const NOTICES: &str = "THIRD-PARTY.txt";
const BYTES_MAX: u64 = 16_000_000;

/// Completions by shell, and the file that the shell looks for.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "nicpoll.bash"),
    ("zsh", "_nicpoll"),
    ("fish", "nicpoll.fish"),
];

/// A release for one target.
#[derive(Clone, Copy)]
pub struct Release<'a> {
    /// Such as x86_64-unknown-linux-gnu.
    pub target: &'a str,
}

impl Release<'_> {
    /// Builds the program, refuses one that is not what a release promises, and makes a new folder for the release.
    /// Returns the program's version.
    pub fn build(self) -> Result<String> {
        run(&mut self.cargo("build"))?;
        let program = self.program();
        check_static(&program)?;
        let bytes = program.metadata()?.len();
        ensure!(
            bytes <= BYTES_MAX,
            "{} has {bytes} bytes, more than {BYTES_MAX}",
            program.display()
        );
        fresh(DIST)?;
        self.try_it()
    }

    /// Cargo with the program as it is shipped. Its flags are the same every time: others would build it again.
    fn cargo(self, action: &str) -> Command {
        let mut command = cargo();
        command.args([action, "--release", "--locked", "--package", "nicpoll"]);
        // With a target named, programs that only help to build stay dynamic, as macros must be.
        command.args(["--target", self.target]);
        // Packed, the table of relocations is 280 kB smaller. The program applies it itself, with glibc 2.36 or later inside.
        let is_packed = self.target.starts_with("x86_64");
        let packed = " -C link-arg=-Wl,-z,pack-relative-relocs".repeat(usize::from(is_packed));
        let flags = format!("-C target-feature=+crt-static{packed}");
        command.env("RUSTFLAGS", flags);
        command
    }

    /// What the program prints; one for another machine runs under the runner that cargo has for the target.
    fn said(self, args: &[&str]) -> Result<String> {
        output_of(self.cargo("run").arg("--quiet").arg("--").args(args))
            .with_context(|| format!("nicpoll {} failed", args.join(" ")))
    }

    /// The file that was built.
    pub fn program(self) -> PathBuf {
        Path::new("target")
            .join(self.target)
            .join("release/nicpoll")
    }

    /// The architecture as the kernel and RPM name it.
    pub fn machine(self) -> String {
        self.target.split('-').next().unwrap_or_default().to_owned()
    }

    /// It starts, says what it is of, and computes. Returns its version.
    fn try_it(self) -> Result<String> {
        let said = self.said(&["--version"])?;
        let commit = output_of(Command::new("git").args(["rev-parse", "--short=12", "HEAD"]));
        let commit = commit.context("this is no clone of git")?;
        ensure!(
            said.contains(&format!("({} ", commit.trim_end())),
            "it is not of this commit: {said}"
        );
        self.said(&["linerate", "1g"])?;
        self.said(&["sim", "run", "generic", "--workload", "poisson:rate=80k"])?;
        let version = said.split_whitespace().nth(1);
        Ok(version.context("it has no version")?.to_owned())
    }

    /// Manual pages, completions and notices.
    pub fn parts(self, notices: &str) -> Result<()> {
        let parts = fresh(PARTS)?;
        let [pages, completions] = ["man", "completions"].map(|name| parts.join(name));
        fs::create_dir(&pages)?;
        self.said(&["man", "--out", &pages.to_string_lossy()])?;
        fs::create_dir(&completions)?;
        for (shell, file) in COMPLETIONS {
            fs::write(completions.join(file), self.said(&["completions", shell])?)?;
        }
        fs::write(parts.join(NOTICES), notices)?;
        Ok(())
    }
}

/// A folder without what the last release left in it.
fn fresh(folder: &str) -> Result<&Path> {
    let folder = Path::new(folder);
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    Ok(folder)
}

/// Refuses a program that asks for a loader or a library.
fn check_static(program: &Path) -> Result<()> {
    let said = output_of(
        Command::new("readelf")
            .args(["--wide", "--program-headers", "--dynamic"])
            .arg(program),
    );
    let said = said.with_context(|| format!("readelf cannot read {}", program.display()))?;
    let needs = said.lines().find(|line| {
        let mut words = line.split_whitespace();
        words.any(|word| word == "INTERP" || word == "(NEEDED)")
    });
    ensure!(
        needs.is_none(),
        "{} is not static: {}",
        program.display(),
        needs.unwrap_or_default().trim()
    );
    Ok(())
}

/// Finds a host by /etc/hosts where nsswitch.conf(5) names a module first, as on most distributions. A module brings the
/// host's C library into a static program, which then crashes; this one ends whatever loads it.
pub fn find_host(program: &Path) -> Result<Outcome> {
    if !needs::can_install() {
        let reason = "it takes root to change the root folder";
        return Ok(Outcome::Skipped(String::from(reason)));
    }
    let root = tempfile::tempdir().context("cannot make a temporary directory")?;
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("etc"))?;
    fs::write(at("etc/hosts"), "127.0.0.1 by-hosts\n")?;
    fs::write(at("etc/nsswitch.conf"), "hosts: fatal files dns\n")?;
    let code = "__attribute__((constructor)) void load(void) { __builtin_trap(); }\n";
    fs::write(at("fatal.c"), code)?;
    run(Command::new("cc")
        .args(["-shared", "-fPIC", "-nostdlib", "-o"])
        .args([at("libnss_fatal.so.2"), at("fatal.c")]))?;
    fs::copy(program, at("nicpoll"))?;
    run(Command::new("chroot")
        .arg(root.path())
        .args(["/nicpoll", "netsend", "by-hosts", "9", "64", "1", "1"])
        .env("LD_LIBRARY_PATH", "/"))?;
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_static_program_passes() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("main.c");
        fs::write(
            &source,
            "#include <stdio.h>\nint main(void) { return puts(\"\"); }\n",
        )
        .unwrap();
        let compiled = |option: &str| {
            let program = folder.path().join("program");
            let mut cc = Command::new("cc");
            run(cc.arg(option).arg("-o").args([&program, &source])).unwrap();
            check_static(&program)
        };
        compiled("-static-pie").unwrap();
        compiled("-static").unwrap();
        let refused = compiled("-pie").unwrap_err().to_string();
        assert!(refused.contains("INTERP"), "{refused}");
        // A library has no loader, and still needs another.
        let refused = compiled("-shared").unwrap_err().to_string();
        assert!(refused.contains("NEEDED"), "{refused}");
    }
}
