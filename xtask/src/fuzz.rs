//! Runs and checks the fuzz targets of `fuzz/`. They are a workspace of their own, because libFuzzer needs a
//! C++ compiler, which a plain build must not.
//!
//! A target is a file `fuzz/fuzz_targets/NAME.rs` with committed seeds in `fuzz/seeds/NAME/`: even a
//! short run starts from inputs that get past the first check. What long runs found, and no seed reaches, is
//! committed in `fuzz/kept/NAME/`. Findings go to `fuzz/corpus` and `fuzz/artifacts`, which are not committed. The
//! project's stable compiler has all that libFuzzer needs.
//!
//! The table of long runs (`runs`) is written by the run that it tells of.

mod runs;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, bail};

use self::runs::{LongRun, LongRuns};
use crate::needs;
use crate::process::{Ended, cargo, find_program, run, run_reading_errors};
use crate::steps::Outcome;

const FOLDER: &str = "fuzz";
/// An input that keeps a parser busy for so long is a finding like a crash.
const SLOWEST_INPUT_S: u32 = 10;
/// Inputs are as long as the longest seed, or this many bytes where that is more: their time grows with their length.
const LONGEST_INPUT_BYTES: u64 = 1 << 10;
/// Seconds for each target in CI, after its seeds and what was kept. The workflow `fuzz` gives each a minute every night.
const CI_SECONDS: u32 = 2;
/// Stands before rustc, and instruments the crates whose coverage the fuzzer follows.
const WITH_COVERAGE: &str = "fuzz/rustc-with-coverage";

/// When a target's run ends.
#[derive(Clone, Copy)]
pub struct Limits {
    /// After so many seconds; without a number, whenever the executions are done.
    pub seconds: Option<u32>,
    /// After so many executions. The run is then for the table: targets go one at a time, and rows are written.
    pub executions: Option<u64>,
}

/// How the targets are compiled: the profile, and the folder that cargo names after it.
#[derive(Clone, Copy)]
enum Build {
    /// With what the tests have compiled already.
    Shared,
    /// Optimised, with the same checks.
    Fast,
}

/// Fuzzes the named targets, or all.
pub fn run_targets(wanted: &[String], limits: Limits) -> Result<Outcome> {
    run_built(wanted, limits, Build::Fast)
}

fn run_built(wanted: &[String], limits: Limits, how: Build) -> Result<Outcome> {
    let chosen = chosen(wanted)?;
    if find_program("c++").is_none() {
        bail!("fuzzing needs a C++ compiler: as root on Debian, `apt-get install g++`");
    }
    let built = build(wanted, how)?;
    let commands: Result<Vec<_>> = chosen
        .iter()
        .map(|target| Ok((target.as_str(), command(&built, target, limits)?)))
        .collect();
    match limits.executions {
        Some(_) => run_for_table(commands?)?,
        None => run_each(commands?)?,
    }
    Ok(Outcome::Passed)
}

/// The targets of these names, or all.
fn chosen(wanted: &[String]) -> Result<Vec<String>> {
    let targets = targets(Path::new(FOLDER))?;
    if let Some(unknown) = wanted.iter().find(|name| !targets.contains(name)) {
        bail!(
            "no fuzz target {unknown}; there are: {}",
            targets.join(", ")
        );
    }
    Ok(if wanted.is_empty() {
        targets
    } else {
        wanted.to_vec()
    })
}

/// How a target is run, from its committed inputs and what earlier runs found.
fn command(built: &Path, target: &str, limits: Limits) -> Result<Command> {
    let corpus = format!("{FOLDER}/corpus/{target}");
    let seeds = format!("{FOLDER}/seeds/{target}");
    let artifacts = format!("{FOLDER}/artifacts/{target}/");
    let kept = format!("{FOLDER}/kept/{target}");
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&artifacts)?;
    let mut fuzz = Command::new(built.join(target));
    // libFuzzer writes to the first directory only: what is committed stays as it is.
    fuzz.arg(&corpus).arg(&seeds);
    if Path::new(&kept).exists() {
        fuzz.arg(&kept);
    }
    fuzz.arg(&artifacts);
    if let Some(seconds) = limits.seconds {
        fuzz.arg(format!("-max_total_time={seconds}"));
    }
    if let Some(executions) = limits.executions {
        fuzz.arg(format!("-runs={executions}"));
    }
    let mut longest = LONGEST_INPUT_BYTES;
    for seed in fs::read_dir(&seeds)? {
        longest = longest.max(seed?.metadata()?.len());
    }
    fuzz.arg(format!("-max_len={longest}"));
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
    all_ended_well(&failed.into_inner().unwrap_or_default())
}

/// Runs one command after the other, and writes the row of each into the table as it ends.
fn run_for_table(commands: Vec<(&str, Command)>) -> Result<()> {
    let mut failed = Vec::new();
    for (target, mut command) in commands {
        let corpus = Path::new(FOLDER).join("corpus").join(target);
        let Ended {
            errors,
            cpu_seconds,
            result,
        } = run_reading_errors(&mut command)?;
        let inputs = fs::read_dir(&corpus)?.count();
        let row = LongRun::of(&errors, cpu_seconds, inputs, result.is_err());
        let row = row.with_context(|| format!("target {target} told no executions"))?;
        eprintln!("   {target}: {row}");
        // Read again for each: two runs of different targets may write it.
        LongRuns::change(&targets(Path::new(FOLDER))?, target, row)?;
        if let Err(error) = result {
            failed.push(format!("target {target}: {error:#}"));
        }
    }
    all_ended_well(&failed)
}

fn all_ended_well(failed: &[String]) -> Result<()> {
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{}", failed.join("; "))
}

/// Keeps the fewest inputs of the corpus that reach every edge which the seeds do not.
pub fn keep(wanted: &[String]) -> Result<Outcome> {
    let chosen = chosen(wanted)?;
    let built = build(wanted, Build::Fast)?;
    for target in &chosen {
        let folder = |kind: &str| Path::new(FOLDER).join(kind).join(target);
        let (seeds, kept) = (folder("seeds"), folder("kept"));
        let merged = tempfile::tempdir()?;
        let mut names = Vec::new();
        for seed in fs::read_dir(&seeds)? {
            let seed = seed?;
            fs::copy(seed.path(), merged.path().join(seed.file_name()))?;
            names.push(seed.file_name());
        }
        let mut merge = Command::new(built.join(target));
        // How often an edge is passed does not count: it would keep hundreds of inputs for each target.
        merge.args([
            "-merge=1",
            "-set_cover_merge=1",
            "-use_counters=0",
            "-verbosity=0",
        ]);
        merge.arg(merged.path());
        let others = [folder("corpus"), kept.clone()];
        run(merge.args(others.iter().filter(|folder| folder.exists())))?;
        if kept.exists() {
            fs::remove_dir_all(&kept)?;
        }
        fs::create_dir_all(&kept)?;
        for input in fs::read_dir(merged.path())? {
            let input = input?;
            if !names.contains(&input.file_name()) {
                fs::copy(input.path(), kept.join(input.file_name()))?;
            }
        }
    }
    Ok(Outcome::Passed)
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
    let limits = Limits {
        seconds: Some(CI_SECONDS),
        executions: None,
    };
    run_built(&[], limits, Build::Shared)
}

/// Builds the targets, or some; returns the folder with the programs. What other projects wrote was compiled for the
/// tests in the same way as a shared build has it, and is there already.
fn build(wanted: &[String], how: Build) -> Result<PathBuf> {
    let folder = target_folder();
    let mut build = cargo();
    build.args(["build", "--locked", "--manifest-path", "fuzz/Cargo.toml"]);
    let built = match how {
        Build::Shared => "debug",
        Build::Fast => {
            build.arg("--release");
            "release"
        }
    };
    match wanted {
        [] => build.arg("--bins"),
        names => build.args(names.iter().flat_map(|name| ["--bin", name])),
    };
    build.env("CARGO_TARGET_DIR", &folder);
    run(build.env("RUSTC_WRAPPER", std::path::absolute(WITH_COVERAGE)?))?;
    Ok(folder.join(built))
}

fn target_folder() -> PathBuf {
    let folder = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    // A relative one is relative to the project, where these commands run.
    std::path::absolute(PathBuf::from(folder)).unwrap_or_else(|_| PathBuf::from("target"))
}

/// Checks that every target has seeds, and that all of them compile: with the compiler that runs this
/// program, in the folder where most of what they depend on has been checked already.
pub fn check() -> Result<Outcome> {
    LongRuns::read()?.names_all(&targets(Path::new(FOLDER))?)?;
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
