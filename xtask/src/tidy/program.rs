//! The commands of one group use none of another. What two groups need is in a crate below both.

use std::path::{Component, Path};

use super::source::{Finding, code_lines};

const SOURCE: &str = "crates/cli/src";
/// The parts of the program that are no commands. All commands may use them.
const SHARED: [&str; 5] = ["failure", "options", "output", "progress", "reading"];
/// The parts that put the commands together.
const DISPATCH: [&str; 2] = ["main", "args"];

/// Imports of one group's modules by another group.
pub fn siblings(path: &Path, text: &str) -> Vec<Finding> {
    let Some(own) = module(path) else {
        return Vec::new();
    };
    if DISPATCH.contains(&own) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in code_lines(text) {
        let code = line.split("//").next().unwrap_or(line);
        for used in code.split("crate::").skip(1).flat_map(named) {
            if used != own && !SHARED.contains(&used) {
                let message = format!(
                    "{own} must not use {used}: what both need belongs in a crate below the program"
                );
                findings.push(Finding::new(path, number, message));
            }
        }
    }
    findings
}

/// What follows `crate::`, one module or several in braces.
fn named(after: &str) -> Vec<&str> {
    let list = after.strip_prefix('{').unwrap_or(after);
    let parts = if list.len() == after.len() {
        vec![after]
    } else {
        list.split(',').map(str::trim).collect()
    };
    let name = |part: &'_ str| {
        let end = part.find(|c: char| !c.is_alphanumeric() && c != '_');
        end.unwrap_or(part.len())
    };
    // Functions and types of the root itself have no module, and macros are not of this program.
    let is_module = |name: &&str| name.starts_with(|c: char| c.is_ascii_lowercase());
    parts
        .into_iter()
        .map(|part| &part[..name(part)])
        .filter(is_module)
        .collect()
}

/// The top module that a file of the program belongs to, unless it is a test.
fn module(path: &Path) -> Option<&str> {
    let inside = path.strip_prefix(SOURCE).ok()?;
    if inside.file_name()? == "tests.rs" || path.extension()? != "rs" {
        return None;
    }
    let Component::Normal(first) = inside.components().next()? else {
        return None;
    };
    Path::new(first).file_stem()?.to_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let findings = siblings(Path::new(path), text);
        findings.into_iter().map(|f| f.message).collect()
    }

    #[test]
    fn a_command_that_uses_another_is_found() {
        let text =
            "use crate::{failure::Failure, interface::held};\nfn f() { crate::study::now() }\n";
        let [interface, study] = &found("crates/cli/src/traffic/rr.rs", text)[..] else {
            panic!("two siblings");
        };
        assert!(interface.starts_with("traffic must not use interface"));
        assert!(study.starts_with("traffic must not use study"));
    }

    #[test]
    fn own_parts_shared_ones_and_dispatch_are_no_siblings() {
        let text = "use crate::output::print;\nuse crate::interface::set;\n// crate::demo\n";
        assert!(found("crates/cli/src/interface.rs", text).is_empty());
        assert!(found("crates/cli/src/interface/set.rs", text).is_empty());
        assert!(found("crates/cli/src/args.rs", "use crate::demo;").is_empty());
        assert!(found("crates/sim/src/host.rs", "use crate::demo;").is_empty());
        let tests = "#[cfg(test)]\nmod tests {\n    use crate::set;\n}\n";
        assert!(found("crates/cli/src/demo.rs", tests).is_empty());
    }
}
