//! The two commands made of many steps: `test`, which the README promises to everyone, and `ci`,
//! which is the same behind the checks that a change must pass.

use std::process::Command;

use anyhow::Result;

use crate::process::{cargo, output_of, run, run_to_stdout};
use crate::steps::{Outcome, Steps};
use crate::{bpf, fuzz, guest, peers, tidy};

/// Installs what the tests need, runs them all, then checks what is not a test of the program.
pub fn test(steps: &mut Steps, no_install: bool, args: &[String]) {
    steps.run("peer programs", || peers::ensure(no_install));
    steps.run("guest", || guest::ensure(no_install));
    steps.run("tests", || cargo_test(args));
    steps.run("structure", tidy::check);
    steps.run("bpf", bpf::check);
    steps.run("fuzz targets", fuzz::check);
}

/// Everything that a change must pass. The quick steps come first.
pub fn ci(steps: &mut Steps) {
    steps.run("format", || {
        run(cargo().args(["fmt", "--all", "--check"]))?;
        passed(cargo().args(["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"]))
    });
    steps.run("clippy", || {
        let what = ["clippy", "--workspace", "--all-targets", "--locked"];
        passed(cargo().args(what).args(["--", "--deny", "warnings"]))
    });
    steps.run("dependencies", dependencies);
    steps.run("bpf compiler", bpf::install_compiler);
    test(steps, false, &[]);
}

/// Unit tests run in parallel. Tests that build namespaces would disturb one another's figures:
/// cargo runs one test program at a time, and such programs take a lock for each test.
fn cargo_test(args: &[String]) -> Result<Outcome> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]);
    if !args.is_empty() {
        command.arg("--").args(args);
    }
    run_to_stdout(&mut command)?;
    Ok(Outcome::Passed)
}

/// Licences, banned crates and sources. Advisories are left out: their database is a repository
/// outside the package registry, and CI reaches nothing but the registry and the distribution.
fn dependencies() -> Result<Outcome> {
    if output_of(cargo().args(["deny", "--version"])).is_none() {
        eprintln!("   cargo-deny is missing: installing it takes some minutes");
        run(cargo().args(["install", "cargo-deny", "--locked"]))?;
    }
    let deny = ["deny", "check", "--hide-inclusion-graph"];
    passed(cargo().args(deny).args(["bans", "licenses", "sources"]))
}

fn passed(command: &mut Command) -> Result<Outcome> {
    run(command)?;
    Ok(Outcome::Passed)
}
