//! The two commands made of many steps: `test`, which the README promises to everyone, and `ci`,
//! which is the same behind the checks that a change must pass.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, bail};

use crate::needs::{self, Scope};
use crate::process::{cargo, output_of, run, run_line_by_line};
use crate::steps::{Outcome, Steps};
use crate::tally::{Skipped, Tally};
use crate::{bpf, fuzz, guests, page, programs, tidy};

/// The variable with the needs without which a test fails, as `crates/testkit` has it.
const REQUIRE: &str = "NICPOLL_REQUIRE";
/// The variable with the file in which tests list themselves as skipped, as `crates/testkit` has it.
const SKIPPED: &str = "NICPOLL_SKIPPED";

/// The need of tests that take long.
const TIME: &str = "time";
/// What every machine that runs CI has, or gets by the steps before the tests.
const REQUIRED_BY_CI: &str = "root,per-napi,receive-buffer,iperf,iperf3,nft,iptables,tc,ip,ethtool,qemu,postgres,chromium,debug,time";

/// What only the tests that take long are about, and a plain build leaves out.
const OPTIONAL: &str = "--features=nicpoll/postgres";

/// Installs what the tests need, runs them, then checks what is not a test of the program. The last line on stdout
/// says how many tests passed, failed and were skipped.
pub fn test(steps: &mut Steps, scope: Scope, no_install: bool, args: &[String]) {
    let mut required = std::env::var(REQUIRE).unwrap_or_default();
    if scope == Scope::All {
        required = [required.as_str(), TIME].join(",");
    }
    install(scope, steps, no_install);
    let tally = test_requiring(&required, scope, steps, args);
    if scope == Scope::All {
        steps.run("fuzz targets", fuzz::check);
    }
    println!("{tally}");
}

/// What the tests need, by steps: those of everybody, then those of the tests that take long.
type Getting = (&'static str, Scope, fn(Scope, bool) -> Result<Outcome>);
const NEEDED: [Getting; 3] = [
    ("peer programs", Scope::Quick, needs::ensure_peers),
    ("guests", Scope::All, |_, no_install| {
        guests::ensure(no_install)
    }),
    ("axe-core", Scope::All, |_, no_install| {
        needs::ensure_axe(no_install)
    }),
];

/// Installs what the tests need.
fn install(scope: Scope, steps: &mut Steps, no_install: bool) {
    let of = NEEDED
        .iter()
        .filter(|it| it.1 == Scope::Quick || scope == Scope::All);
    for (name, _, get) in of {
        steps.run(name, || get(scope, no_install));
    }
}

fn test_requiring(required: &str, scope: Scope, steps: &mut Steps, args: &[String]) -> Tally {
    let mut tally = Tally::default();
    steps.run("tests", || run_tests(required, scope, args, &mut tally));
    steps.run("structure", tidy::check);
    steps.run("bpf", bpf::check);
    steps.run("page", page::check);
    tally
}

/// Everything that a change must pass. The quick steps come first. What the tests need is downloaded while the compiler
/// works.
pub fn ci(steps: &mut Steps) {
    let deny = thread::spawn(install_deny);
    steps.run("format", || {
        run(cargo().args(["fmt", "--all", "--check"]))?;
        passed(cargo().args(["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"]))
    });
    steps.run("bpf compiler", bpf::install_compiler);
    steps.run("page target", page::install_target);
    let getting = thread::spawn(|| NEEDED.map(|(name, _, get)| (name, get(Scope::All, false))));
    // With the features of the tests: what these share is compiled once.
    steps.run("clippy", || {
        let what = [
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            OPTIONAL,
        ];
        passed(cargo().args(what).args(["--", "--deny", "warnings"]))
    });
    steps.run("documentation", || {
        let mut doc = cargo();
        doc.args(["doc", "--workspace", "--no-deps", "--locked", OPTIONAL]);
        passed(doc.env("RUSTDOCFLAGS", "--deny warnings"))
    });
    match getting.join() {
        Ok(got) => got
            .into_iter()
            .for_each(|(name, result)| steps.run(name, || result)),
        Err(_) => steps.run("peer programs", || bail!("getting them panicked")),
    }
    steps.run("dependencies", || {
        let installed = deny.join();
        installed.unwrap_or_else(|_| bail!("installing cargo-deny panicked"))?;
        dependencies()
    });
    steps.run("advisories", advisories);
    let tally = test_requiring(REQUIRED_BY_CI, Scope::All, steps, &[]);
    // Builds the targets, which checks them, too.
    steps.run("fuzz", fuzz::run_briefly);
    println!("{tally}");
}

/// All test programs, then the examples of the documentation.
fn run_tests(required: &str, scope: Scope, args: &[String], tally: &mut Tally) -> Result<Outcome> {
    let folder = tempfile::tempdir().context("cannot make a temporary directory")?;
    let list = folder.path().join("skipped");
    let variables = [(REQUIRE, OsStr::new(required)), (SKIPPED, list.as_os_str())];
    let mut line = |line: &str| {
        println!("{line}");
        tally.add(line);
    };
    let features = match scope {
        Scope::Quick => None,
        Scope::All => Some(OPTIONAL),
    };
    let programs = programs::run(features, &variables, args, &mut line)?;
    let mut examples = cargo();
    examples.args(["test", "--workspace", "--doc", "--no-fail-fast"]);
    examples.args(features);
    if !args.is_empty() {
        examples.arg("--").args(args);
    }
    let examples_ended = run_line_by_line(&mut examples, line);
    // No test makes the file when none is skipped.
    let skipped = Skipped::parse(&fs::read_to_string(&list).unwrap_or_default());
    tally.take_off(&skipped);
    print!("{skipped}");
    for again in &programs.again {
        print!("{}", again.output);
        if again.passed {
            tally.passed_again(again.tests.len());
        }
    }
    for again in programs.again.iter().filter(|again| again.passed) {
        let (source, tests) = (&again.source, again.tests.join(", "));
        println!("unsteady {source}: {tests}: failed among others, passed alone");
    }
    programs.result.and(examples_ended)?;
    Ok(Outcome::Passed)
}

fn install_deny() -> Result<()> {
    if output_of(cargo().args(["deny", "--version"])).is_some() {
        return Ok(());
    }
    eprintln!("   cargo-deny is missing: installing it takes a minute or two");
    // It runs for a second, and to optimise it takes longer than to compile it.
    run(cargo().args(["install", "cargo-deny", "--locked", "--debug", "--quiet"]))
}

/// Licences, banned crates and sources.
fn dependencies() -> Result<Outcome> {
    let deny = ["deny", "check", "--hide-inclusion-graph"];
    passed(cargo().args(deny).args(["bans", "licenses", "sources"]))
}

/// Known faults of dependencies. Their database is a repository of its own, which not every machine reaches: without it
/// nothing was checked, and that is said.
fn advisories() -> Result<Outcome> {
    if run(cargo().args(["deny", "fetch", "db"])).is_err() {
        return Ok(Outcome::Skipped(String::from(
            "the database of advisories could not be fetched: nothing was checked",
        )));
    }
    passed(cargo().args([
        "deny",
        "check",
        "--disable-fetch",
        "--hide-inclusion-graph",
        "advisories",
    ]))
}

fn passed(command: &mut Command) -> Result<Outcome> {
    run(command)?;
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_named_by_what_they_hold() {
        let mut uses = 0;
        for workflow in fs::read_dir("../.github/workflows").unwrap() {
            let path = workflow.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            for line in text.lines() {
                let Some((_, action)) = line.split_once("uses: ") else {
                    continue;
                };
                uses += 1;
                let hash = action
                    .split_once('@')
                    .and_then(|(_, rest)| rest.split(' ').next());
                let is_hash =
                    |hash: &str| hash.len() == 40 && hash.bytes().all(|it| it.is_ascii_hexdigit());
                assert!(hash.is_some_and(is_hash), "{}: {action}", path.display());
            }
        }
        assert!(uses > 0);
    }
}
