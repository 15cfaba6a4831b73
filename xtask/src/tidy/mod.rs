//! The structure that the compiler does not check: lengths, where unsafe code may be, which crate
//! may use which, what errors are, what the program may be, unfinished work, paths of one machine, and links
//! between documents.
//!
//! What must hold: each rule is a function of a text (or of cargo's metadata) that gives its
//! findings, so that a test can show it failing; each finding says where, what and what to do.

mod direction;
mod errors;
mod files;
mod length;
mod links;
mod program;
mod unsafety;
mod wording;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process::{cargo, output_of};
use crate::steps::Outcome;

/// One place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    path: PathBuf,
    /// Counted from 1; 0 when the whole file is meant.
    line: usize,
    message: String,
}

impl Finding {
    fn new(path: &Path, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Checks every file of the project and the dependencies between its crates.
pub fn check() -> Result<Outcome> {
    let root = Path::new(".");
    let mut findings = Vec::new();
    let mut files = Vec::new();
    for path in files::of_project(root)? {
        let bytes = fs::read(root.join(&path))
            .with_context(|| format!("cannot read {}", path.display()))?;
        // Objects and seeds are searched for paths too.
        let text = String::from_utf8_lossy(&bytes).into_owned();
        findings.extend(in_file(root, &path, &text));
        files.push((path, text));
    }
    let files = files
        .iter()
        .map(|(path, text)| (path.as_path(), text.as_str()));
    findings.extend(program::size(files));
    let metadata = metadata()?;
    findings.extend(direction::check(&metadata));
    findings.extend(errors::with_anyhow(&metadata));
    findings.extend(unsafety::crate_roots(&metadata, |path| {
        fs::read_to_string(path)
    })?);
    for finding in &findings {
        eprintln!("   {finding}");
    }
    if findings.is_empty() {
        return Ok(Outcome::Passed);
    }
    bail!("{} finding(s)", findings.len());
}

fn in_file(root: &Path, path: &Path, text: &str) -> Vec<Finding> {
    let mut findings = wording::machine_paths(path, text);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => {
            findings.extend(length::file(path, text));
            findings.extend(length::functions(path, text));
            findings.extend(unsafety::code(path, text));
            findings.extend(wording::unfinished(path, text));
            findings.extend(wording::panicking_output(path, text));
            findings.extend(errors::as_text(path, text));
            findings.extend(program::siblings(path, text));
        }
        Some("md") => {
            findings.extend(length::prose(path, text));
            findings.extend(links::broken(path, text, |target| {
                root.join(target).exists()
            }));
        }
        _ => {}
    }
    findings
}

/// The lines of a file with their ends, and their numbers from 1. What is compiled for tests only is left out.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_test = false;
    let numbered = (1..).zip(text.split_inclusive('\n'));
    numbered.filter(move |(_, line)| {
        let line = line.trim_end();
        if line == "#[cfg(test)]" {
            is_test = true;
        }
        let ends =
            is_test && (line.starts_with('}') || line.ends_with(';') && !line.starts_with(' '));
        let is_code = !is_test;
        is_test &= !ends;
        is_code
    })
}

pub fn metadata() -> Result<Value> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--no-deps"]);
    let text = output_of(&mut command).context("`cargo metadata --no-deps` failed")?;
    serde_json::from_str(&text).context("`cargo metadata` did not print JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_its_place() {
        let path = Path::new("crates/wire/src/lib.rs");
        assert_eq!(
            Finding::new(path, 3, "too long").to_string(),
            "crates/wire/src/lib.rs:3: too long"
        );
        assert_eq!(
            Finding::new(path, 0, "too long").to_string(),
            "crates/wire/src/lib.rs: too long"
        );
    }

    #[test]
    fn tests_are_no_code() {
        let text =
            "a\n#[cfg(test)]\nmod tests;\nb\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\nc\n";
        let lines: Vec<_> = code_lines(text).collect();
        assert_eq!(lines, [(1, "a\n"), (4, "b\n"), (9, "c\n")]);
    }

    #[test]
    fn each_rule_is_applied_to_the_files_it_is_for() {
        let root = Path::new("no-such-folder");
        let broken = format!(
            "fn f() {{\n    {}!();\n}}\n[a](missing.md)\n{}",
            "todo",
            "\n".repeat(500)
        );
        let rules = |name: &str| in_file(root, Path::new(name), &broken).len();
        assert_eq!(rules("src/lib.rs"), 2); // file length, unfinished work
        assert_eq!(rules("README.md"), 1); // the link
        assert_eq!(rules("notes.txt"), 0);
        let with_path = format!("see /{}me/log", "ho");
        assert_eq!(in_file(root, Path::new("notes.txt"), &with_path).len(), 1);
    }
}
