//! Runs and checks the fuzz targets of `fuzz/`. A run needs a nightly compiler and cargo-fuzz, and they are a
//! workspace of their own for that reason.
//!
//! What must hold: a target is a file `fuzz/fuzz_targets/NAME.rs` and has committed seeds in
//! `fuzz/seeds/NAME/`, so that a short run starts from inputs that get past the first check. What a
//! run finds goes to `fuzz/corpus` and `fuzz/artifacts`, which are not committed.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{cargo, output_of, run};
use crate::steps::Outcome;

const FOLDER: &str = "fuzz";
/// An input that keeps a parser busy for so long is a finding like a crash.
const SLOWEST_INPUT_S: u32 = 10;

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
    if !has_tools() {
        bail!(
            "fuzzing needs nightly and cargo-fuzz: `rustup toolchain install nightly` and \
             `cargo install cargo-fuzz --locked`"
        );
    }
    for target in chosen {
        let corpus = format!("{FOLDER}/corpus/{target}");
        fs::create_dir_all(&corpus)?;
        let mut fuzz = cargo_fuzz();
        // libFuzzer writes to the first directory only: the seeds stay as committed.
        // The parsers are safe code: a sanitizer has nothing to find there and takes most of the time.
        fuzz.args(["run", "--sanitizer", "none", target, &corpus]);
        fuzz.arg(format!("{FOLDER}/seeds/{target}"));
        fuzz.args(["--", &format!("-max_total_time={seconds}")]);
        run(fuzz.arg(format!("-timeout={SLOWEST_INPUT_S}")))
            .with_context(|| format!("target {target}"))?;
    }
    Ok(Outcome::Passed)
}

/// Checks that every target has seeds, and that all of them compile: with the compiler that runs this
/// program, in the folder where most of what they depend on has been checked already.
pub fn check() -> Result<Outcome> {
    targets(Path::new(FOLDER))?;
    let folder = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let mut check = cargo();
    check.args(["check", "--locked", "--bins"]);
    check.args(["--manifest-path", "fuzz/Cargo.toml"]);
    // A check links nothing, so that libFuzzer itself need not be built.
    check.env("CUSTOM_LIBFUZZER_PATH", "/nowhere/libfuzzer.a");
    run(check.env("CARGO_TARGET_DIR", folder))?;
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

fn has_tools() -> bool {
    output_of(cargo_fuzz().arg("--version")).is_some()
}

/// cargo-fuzz under nightly, whatever toolchain runs this program.
fn cargo_fuzz() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", "fuzz"]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

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
