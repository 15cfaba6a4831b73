//! The structure that the compiler does not check.
//!
//! Each rule is a function of a text, of a crate's modules or of cargo's metadata, and has a test that
//! shows it failing. Each finding says where, what is wrong and what to do.

mod direction;
mod errors;
mod exports;
mod modules;
mod pages;
mod program;
mod size;
mod source;
mod wording;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::metadata;
use crate::steps::Outcome;
use source::Finding;

/// Checks every file of the project and the dependencies between its crates.
pub fn check() -> Result<Outcome> {
    let root = Path::new(".");
    let files = read(root)?;
    let texts = || {
        files
            .iter()
            .map(|(path, text)| (path.as_path(), text.as_str()))
    };
    let words = words::Words::parse(&fs::read_to_string(words::LIST).context(words::LIST)?)?;
    let mut findings = Vec::new();
    for (path, text) in texts() {
        findings.extend(in_file(root, path, text));
        findings.extend(words.check(path, text));
    }
    let crates = source::crates(texts());
    let used = exports::Words::of(texts());
    for of in &crates {
        findings.extend(modules::crowded(of));
        findings.extend(modules::circles(of));
        findings.extend(exports::unused(of, &used));
    }
    findings.extend(size::check(&crates, &limits()?));
    let metadata = metadata()?;
    let order = fs::read_to_string(direction::LIST).context(direction::LIST)?;
    findings.extend(direction::check(
        &metadata,
        &direction::Order::parse(&order)?,
    ));
    findings.extend(errors::with_anyhow(&metadata));
    for finding in &findings {
        eprintln!("   {finding}");
    }
    if findings.is_empty() {
        return Ok(Outcome::Passed);
    }
    bail!("{} finding(s)", findings.len());
}

/// Prints the size of each crate.
pub fn print_sizes() -> Result<Outcome> {
    let files = read(Path::new("."))?;
    let texts = files
        .iter()
        .map(|(path, text)| (path.as_path(), text.as_str()));
    print!("{}", size::table(&source::crates(texts), &limits()?));
    Ok(Outcome::Passed)
}

fn limits() -> Result<size::Limits> {
    size::Limits::parse(&fs::read_to_string(size::LIMITS).context(size::LIMITS)?)
}

/// Every file with its text. Objects and seeds are read as text: paths are searched for in them, too.
fn read(root: &Path) -> Result<Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    for path in source::files_of_project(root)? {
        let bytes = fs::read(root.join(&path))
            .with_context(|| format!("cannot read {}", path.display()))?;
        files.push((path, String::from_utf8_lossy(&bytes).into_owned()));
    }
    Ok(files)
}

fn in_file(root: &Path, path: &Path, text: &str) -> Vec<Finding> {
    let mut findings = wording::machine_paths(path, text);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => {
            findings.extend(wording::unfinished(path, text));
            findings.extend(wording::panicking_output(path, text));
            findings.extend(wording::raw_output(path, text));
            findings.extend(errors::as_text(path, text));
            findings.extend(program::siblings(path, text));
        }
        Some("md") => {
            findings.extend(pages::wide_prose(path, text));
            findings.extend(pages::broken(path, text, |target| {
                let target = root.join(target);
                let text =
                    || String::from_utf8_lossy(&fs::read(&target).unwrap_or_default()).into_owned();
                target.exists().then(text)
            }));
        }
        _ => {}
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_applied_to_the_files_it_is_for() {
        let root = Path::new("no-such-folder");
        let broken = format!("fn f() {{\n    // {}ME\n}}\n[a](missing.md)\n", "FIX");
        let rules = |name: &str| in_file(root, Path::new(name), &broken).len();
        assert_eq!(rules("src/lib.rs"), 1); // unfinished work
        assert_eq!(rules("README.md"), 1); // the link
        assert_eq!(rules("notes.txt"), 0);
        let with_path = format!("see /{}me/log", "ho");
        assert_eq!(in_file(root, Path::new("notes.txt"), &with_path).len(), 1);
    }
}
