//! The two commands made of many steps: `test`, which the README promises to everyone, and `ci`,
//! which is the same behind the checks that a change must pass.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{cargo, output_of, run, run_line_by_line};
use crate::steps::{Outcome, Steps};
use crate::tally::{Skipped, Tally};
use crate::{bpf, fuzz, guest, peers, tidy};

/// The variable with the needs without which a test fails, as `crates/testkit` has it.
const REQUIRE: &str = "NICPOLL_REQUIRE";
/// The variable with the file in which tests list themselves as skipped, as `crates/testkit` has it.
const SKIPPED: &str = "NICPOLL_SKIPPED";

/// What every machine that runs CI has, or gets by the steps before the tests.
const REQUIRED_BY_CI: &str =
    "root,per-napi,receive-buffer,iperf,nft,iptables,tc,ip,ethtool,qemu,postgres,debug";

/// Installs what the tests need, runs them all, then checks what is not a test of the program. The last
/// line on stdout says how many tests passed, failed and were skipped.
pub fn test(steps: &mut Steps, no_install: bool, args: &[String]) {
    let required = std::env::var(REQUIRE).unwrap_or_default();
    let tally = test_requiring(&required, steps, no_install, args);
    steps.run("fuzz targets", fuzz::check);
    println!("{tally}");
}

fn test_requiring(required: &str, steps: &mut Steps, no_install: bool, args: &[String]) -> Tally {
    steps.run("peer programs", || peers::ensure(no_install));
    steps.run("guest", || guest::ensure(no_install));
    let mut tally = Tally::default();
    steps.run("tests", || cargo_test(required, args, &mut tally));
    steps.run("structure", tidy::check);
    steps.run("bpf", bpf::check);
    tally
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
    steps.run("documentation", || {
        let mut doc = cargo();
        doc.args(["doc", "--workspace", "--no-deps", "--locked"]);
        passed(doc.env("RUSTDOCFLAGS", "--deny warnings"))
    });
    steps.run("dependencies", dependencies);
    steps.run("bpf compiler", bpf::install_compiler);
    let tally = test_requiring(REQUIRED_BY_CI, steps, false, &[]);
    // Builds the targets, which checks them, too.
    steps.run("fuzz", fuzz::run_briefly);
    println!("{tally}");
}

/// Unit tests run in parallel. Tests that build namespaces would disturb one another's figures:
/// cargo runs one test program at a time, and such programs take a lock for each test.
fn cargo_test(required: &str, args: &[String], tally: &mut Tally) -> Result<Outcome> {
    let folder = tempfile::tempdir().context("cannot make a temporary directory")?;
    let list = folder.path().join("skipped");
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]);
    // With what a plain build leaves out.
    command.args(["--features", "nicpoll/postgres"]);
    command.env(REQUIRE, required).env(SKIPPED, &list);
    if !args.is_empty() {
        command.arg("--").args(args);
    }
    let ended = run_line_by_line(&mut command, |line| {
        println!("{line}");
        tally.add(line);
    });
    // No test makes the file when none is skipped.
    let skipped = Skipped::parse(&fs::read_to_string(&list).unwrap_or_default());
    tally.take_off(&skipped);
    print!("{skipped}");
    ended?;
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
