//! The notices of the crates that the program is made of: their licenses ask that copies carry them.
//!
//! What must hold: every crate that the program is linked from is named, under the text that its own package has.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process::{cargo, output_of};

const HEAD: &str = "nicpoll is made of these crates beside its own code. Above each text stand those that it is of.\n";
const RULE: &str =
    "--------------------------------------------------------------------------------";

/// The notices for a program that is built with these options of cargo.
pub fn of_program(target: &[&str]) -> Result<String> {
    let linked = linked(target)?;
    let metadata = output_of(cargo().args(["metadata", "--locked", "--format-version=1"]));
    let metadata: Value = serde_json::from_str(&metadata.context("cargo metadata failed")?)?;
    let mut crates_by_text = BTreeMap::<String, Vec<String>>::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let field = |name: &str| package[name].as_str().unwrap_or_default();
        let name = format!("{} {}", field("name"), field("version"));
        if linked.contains(&name) {
            let license = field("license");
            let folder = Path::new(field("manifest_path")).parent();
            let text = text(folder.context("a manifest lies in a folder")?, license)?;
            let crates = crates_by_text.entry(text).or_default();
            crates.push(format!("{name} ({license})"));
        }
    }
    let named: usize = crates_by_text.values().map(Vec::len).sum();
    ensure!(
        named == linked.len(),
        "cargo metadata does not know every crate"
    );
    let mut notices = String::from(HEAD);
    for (text, crates) in crates_by_text {
        write!(notices, "\n{RULE}\n{}\n\n{text}\n", crates.join("\n"))?;
    }
    Ok(notices)
}

/// Name and version of the crates of others that the program is linked from.
fn linked(target: &[&str]) -> Result<BTreeSet<String>> {
    let tree = output_of(
        cargo()
            .args(["tree", "--locked", "--package", "nicpoll"])
            .args(["--edges", "normal,no-proc-macro", "--no-dedupe"])
            .args(["--prefix", "none", "--format", "{p}"])
            .args(target),
    );
    let tree = tree.context("cargo tree failed")?;
    // Those of the workspace have their folder as a third word.
    let others = tree.lines().filter_map(|line| line.split_once(" v"));
    let others = others.filter(|(_, version)| !version.contains(' '));
    Ok(others
        .map(|(name, version)| format!("{name} {version}"))
        .collect())
}

/// What the files of a package say; the name of its license where it has none.
fn text(folder: &Path, license: &str) -> Result<String> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let names = entries.map(|entry| Ok(entry?.file_name()));
    let names = chosen(names.collect::<Result<Vec<OsString>>>()?, license);
    let texts = names
        .iter()
        .map(|name| fs::read_to_string(folder.join(name)));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let texts: Vec<_> = texts.iter().map(|text| text.trim_end()).collect();
    Ok(if texts.is_empty() {
        format!("{license}: the package has no text of its own.")
    } else {
        texts.join("\n\n")
    })
}

/// Those of a package's files that say how it may be used: of several licenses, the MIT license where it is offered.
fn chosen(mut names: Vec<OsString>, license: &str) -> Vec<OsString> {
    let has = |name: &OsString, word: &str| name.to_string_lossy().to_uppercase().contains(word);
    names.retain(|name| {
        ["LICENSE", "LICENCE", "COPYING", "NOTICE"]
            .iter()
            .any(|word| has(name, word))
    });
    if license.contains("MIT") && names.iter().any(|name| has(name, "MIT")) {
        names.retain(|name| has(name, "MIT") || has(name, "NOTICE"));
    }
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mit_license_is_chosen_where_it_is_offered() {
        let choose = |names: &[&str], license| {
            let chosen = chosen(names.iter().map(OsString::from).collect(), license);
            chosen.join(&OsString::from(" ")).into_string().unwrap()
        };
        let both = ["Cargo.toml", "LICENSE-MIT", "LICENSE-APACHE", "NOTICE"];
        assert_eq!(choose(&both, "MIT OR Apache-2.0"), "LICENSE-MIT NOTICE");
        assert_eq!(choose(&["license.txt", "src"], "MIT"), "license.txt");
        assert_eq!(choose(&["LICENSE"], "Apache-2.0"), "LICENSE");
        assert_eq!(choose(&["README.md"], "MIT"), "");
    }
}
