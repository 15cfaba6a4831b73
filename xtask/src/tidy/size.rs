//! How much code each crate has, without tests, comments and blank lines, and how much it may have.
//!
//! `xtask/size.toml` has a line for each crate. A crate that needs more says so in the same change;
//! one that has shrunk by more than [`SLACK`] lowers its line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::source::{Crate, Finding, code_lines};

pub const LIMITS: &str = "xtask/size.toml";
/// Lines that a crate may be below its limit before the limit is lowered.
const SLACK: usize = 100;

/// What `xtask/size.toml` says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Lines that all crates together may have.
    total: usize,
    /// Lines that each crate may have.
    crates: BTreeMap<String, usize>,
}

impl Limits {
    pub fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context(LIMITS)
    }
}

/// Lines of code of a crate.
fn lines(of: &Crate) -> usize {
    let modules = of.modules.values();
    modules
        .map(|module| {
            code_lines(&module.text)
                .filter(|(_, line)| is_code(line))
                .count()
        })
        .sum()
}

fn is_code(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with("//")
}

pub fn check(crates: &[Crate], limits: &Limits) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = |message| findings.push(Finding::new(Path::new(LIMITS), 0, message));
    for of in crates {
        let lines = lines(of);
        match limits.crates.get(&of.name) {
            None => found(format!("{}: {lines} lines, and no limit", of.name)),
            Some(&limit) if lines > limit => found(format!(
                "{}: {lines} lines, at most {limit}: write less, or raise the limit in this change and say why",
                of.name
            )),
            Some(&limit) if lines + SLACK < limit => {
                found(format!(
                    "{}: {lines} lines: lower its limit of {limit}",
                    of.name
                ));
            }
            Some(_) => {}
        }
    }
    for name in limits
        .crates
        .keys()
        .filter(|name| crates.iter().all(|of| of.name != **name))
    {
        found(format!("{name}: there is no such crate"));
    }
    let all: usize = limits.crates.values().sum();
    if all > limits.total {
        found(format!(
            "the limits add up to {all}, more than {} in all",
            limits.total
        ));
    }
    findings
}

/// A line for each crate: lines of code, limit, files.
pub fn table(crates: &[Crate], limits: &Limits) -> String {
    let mut text = format!(
        "{:12} {:>7} {:>7} {:>6}\n",
        "crate", "lines", "limit", "files"
    );
    let mut row = |name: &str, lines: usize, limit: Option<usize>, files: usize| {
        let limit = limit.map_or(String::from("-"), |limit| limit.to_string());
        writeln!(text, "{name:12} {lines:>7} {limit:>7} {files:>6}").expect("a String takes all");
    };
    for of in crates {
        row(
            &of.name,
            lines(of),
            limits.crates.get(&of.name).copied(),
            of.modules.len(),
        );
    }
    let all = crates.iter().map(lines).sum();
    let files = crates.iter().map(|of| of.modules.len()).sum();
    row("all", all, Some(limits.total), files);
    text
}

#[cfg(test)]
mod tests {
    use super::super::source::test_crate;
    use super::*;

    fn found(lines: usize, limits: &str) -> Vec<String> {
        let code = "//! Head.\n\n// Why.\n".to_owned() + &"f();\n".repeat(lines);
        let tests = "#[cfg(test)]\nmod tests {\n    f();\n}\n";
        let of = test_crate(&[("crates/a/src/lib.rs", &(code + tests))]);
        let found = check(&[of], &Limits::parse(limits).unwrap()).into_iter();
        found.map(|finding| finding.message).collect()
    }

    #[test]
    fn a_crate_has_a_limit_and_stays_near_it() {
        let limits = "total = 300\n[crates]\na = 200\n";
        assert_eq!(found(200, limits), [""; 0]);
        assert_eq!(found(100, limits), [""; 0]);
        assert!(found(201, limits)[0].starts_with("a: 201 lines, at most 200"));
        assert!(found(99, limits)[0].ends_with("lower its limit of 200"));
    }

    #[test]
    fn limits_are_those_of_the_crates_that_there_are() {
        assert!(found(1, "total = 9\n[crates]\n")[0].ends_with("no limit"));
        let found = found(1, "total = 9\n[crates]\na = 1\nb = 9\n");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("b: there is no such crate"));
        assert!(found[1].starts_with("the limits add up to 10"));
    }
}
