//! Runs and checks the fuzz targets of `fuzz/`. They are a workspace of their own, because libFuzzer needs a
//! C++ compiler, which a plain build must not.
//!
//! A target is a file `fuzz/fuzz_targets/NAME.rs` with committed seeds in `fuzz/seeds/NAME/`: even a
//! short run starts from inputs that get past the first check. Findings go to `fuzz/corpus` and
//! `fuzz/artifacts`, which are not committed. The project's stable compiler has all that libFuzzer needs.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, bail};

use crate::needs;
use crate::process::{cargo, find_program, run};
use crate::steps::Outcome;

const FOLDER: &str = "fuzz";
/// Where cargo puts what it builds with the profile `dev`.
const BUILT: &str = "debug";
/// An input that keeps a parser busy for so long is a finding like a crash.
const SLOWEST_INPUT_S: u32 = 10;
/// Seconds for each target in CI: enough for all seeds and some hundred thousand inputs around them.
const CI_SECONDS: u32 = 2;
/// Stands before rustc, and instruments the crates whose coverage the fuzzer follows.
const WITH_COVERAGE: &str = "fuzz/rustc-with-coverage";

/// Fuzzes one target, or each in turn, for so many seconds.
pub fn run_targets(wanted: Option<&str>, seconds: u32) -> Result<Outcome> {
    let targets = targets(Path::new(FOLDER))?;
    let chosen: Vec<_> = match wanted {
        Some(name) => targets.iter().filter(|target| *target == name).collect(),
        None => targets.iter().collect(),
    };
    if chosen.is_empty() {
        bail!("no such fuzz target; there are: {}", targets.join(", "));
    }
    if find_program("c++").is_none() {
        bail!("fuzzing needs a C++ compiler: as root on Debian, `apt-get install g++`");
    }
    let built = build(wanted)?;
    let commands: Result<Vec<_>> = chosen
        .into_iter()
        .map(|target| Ok((target.as_str(), command(&built, target, seconds)?)))
        .collect();
    run_each(commands?)?;
    Ok(Outcome::Passed)
}

/// How a target is run, from its committed seeds and what earlier runs found.
fn command(built: &Path, target: &str, seconds: u32) -> Result<Command> {
    let corpus = format!("{FOLDER}/corpus/{target}");
    let artifacts = format!("{FOLDER}/artifacts/{target}/");
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&artifacts)?;
    let mut fuzz = Command::new(built.join(target));
    // libFuzzer writes to the first directory only: the seeds stay as committed.
    fuzz.arg(&corpus).arg(format!("{FOLDER}/seeds/{target}"));
    fuzz.arg(&artifacts);
    fuzz.arg(format!("-max_total_time={seconds}"));
    fuzz.arg(format!("-timeout={SLOWEST_INPUT_S}"));
    fuzz.arg(format!("-artifact_prefix={artifacts}"));
    fuzz.args(["-print_final_stats=1", "-verbosity=0"]);
    Ok(fuzz)
}

/// Runs every command, as many at a time as there are processors: each fuzzer uses one. All of them run, whatever
/// one finds; the error names each that failed.
fn run_each(commands: Vec<(&str, Command)>) -> Result<()> {
    let processors = thread::available_parallelism()?.get();
    let waiting = Mutex::new(commands);
    let failed = Mutex::new(Vec::new());
    let next = || waiting.lock().ok()?.pop();
    thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while let Some((target, mut command)) = next() {
                    if let (Err(error), Ok(mut failed)) = (run(&mut command), failed.lock()) {
                        failed.push(format!("target {target}: {error:#}"));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_default();
    if !failed.is_empty() {
        bail!("{}", failed.join("; "));
    }
    Ok(())
}

/// Fuzzes every target for some seconds, after getting the compiler where that is possible.
pub fn run_briefly() -> Result<Outcome> {
    if find_program("c++").is_none() {
        if !needs::can_install() {
            let reason = "there is no C++ compiler, and this is not root on Debian or Ubuntu";
            return Ok(Outcome::Skipped(reason.into()));
        }
        needs::install(&["g++"])?;
    }
    run_targets(None, CI_SECONDS)
}

/// Builds the targets, or one; returns the folder with the programs. What other projects wrote was compiled for the
/// tests in the same way, and is there already.
fn build(wanted: Option<&str>) -> Result<PathBuf> {
    let folder = target_folder();
    let mut build = cargo();
    build.args(["build", "--locked", "--manifest-path", "fuzz/Cargo.toml"]);
    match wanted {
        Some(name) => build.args(["--bin", name]),
        None => build.arg("--bins"),
    };
    build.env("CARGO_TARGET_DIR", &folder);
    run(build.env("RUSTC_WRAPPER", std::path::absolute(WITH_COVERAGE)?))?;
    Ok(folder.join(BUILT))
}

fn target_folder() -> PathBuf {
    let folder = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    // A relative one is relative to the project, where these commands run.
    std::path::absolute(PathBuf::from(folder)).unwrap_or_else(|_| PathBuf::from("target"))
}

/// Checks that every target has seeds, and that all of them compile: with the compiler that runs this
/// program, in the folder where most of what they depend on has been checked already.
pub fn check() -> Result<Outcome> {
    targets(Path::new(FOLDER))?;
    let mut check = cargo();
    check.args(["check", "--locked", "--bins"]);
    check.args(["--manifest-path", "fuzz/Cargo.toml"]);
    // A check links nothing, so that libFuzzer itself need not be built.
    check.env("CUSTOM_LIBFUZZER_PATH", "/nowhere/libfuzzer.a");
    run(check.env("CARGO_TARGET_DIR", target_folder()))?;
    Ok(Outcome::Passed)
}

/// The targets' names. One without seeds is an error: nobody would notice that it never gets
/// anywhere.
fn targets(folder: &Path) -> Result<Vec<String>> {
    let sources = folder.join("fuzz_targets");
    let mut targets = Vec::new();
    for entry in
        fs::read_dir(&sources).with_context(|| format!("cannot read {}", sources.display()))?
    {
        let file = entry?.file_name();
        if let Some(name) = file.to_str().and_then(|file| file.strip_suffix(".rs")) {
            let seeds = folder.join("seeds").join(name);
            if !fs::read_dir(&seeds).is_ok_and(|mut seeds| seeds.next().is_some()) {
                bail!("fuzz target {name} needs seeds in {}", seeds.display());
            }
            targets.push(name.to_owned());
        }
    }
    targets.sort();
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_runs_and_each_that_fails_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let ran = |name: &str| folder.path().join(name);
        let commands = ["one", "two", "three"].map(|name| {
            let mut command = Command::new("sh");
            let ending = if name == "two" { "false" } else { "true" };
            let script = format!("touch {} && {ending}", ran(name).display());
            command.args(["-c", &script]);
            (name, command)
        });
        let error = run_each(commands.into()).unwrap_err().to_string();
        assert!(error.starts_with("target two: "), "{error}");
        assert!(
            ["one", "two", "three"]
                .iter()
                .all(|name| ran(name).exists())
        );
    }

    #[test]
    fn a_target_without_seeds_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let sources = folder.path().join("fuzz_targets");
        fs::create_dir_all(&sources).unwrap();
        assert!(targets(folder.path()).unwrap().is_empty());

        fs::write(sources.join("header.rs"), "").unwrap();
        let error = targets(folder.path()).unwrap_err().to_string();
        assert!(error.contains("header needs seeds"), "{error}");

        let seeds = folder.path().join("seeds/header");
        fs::create_dir_all(&seeds).unwrap();
        assert!(targets(folder.path()).is_err());
        fs::write(seeds.join("one"), "x").unwrap();
        assert_eq!(targets(folder.path()).unwrap(), ["header"]);
    }
}
