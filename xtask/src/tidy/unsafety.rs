//! Unsafe code lives in crates/sys. The compiler forbids it everywhere else.

use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::source::Finding;

const SYS: &str = "crates/sys";
const FORBID: &str = "#![forbid(unsafe_code)]";
/// Assembled, so that this file does not find itself.
const KEYWORD: &str = concat!("un", "safe");
/// What follows the keyword in code, and hardly ever in prose.
const IN_CODE: [&str; 6] = ["{", "fn ", "impl", "trait ", "extern ", "("];

/// Unsafe code, or leave to write it, outside it.
pub fn code(path: &Path, text: &str) -> Vec<Finding> {
    if path.starts_with(SYS) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split("//").next().unwrap_or(line);
        let allows = ["allow", "expect"].map(|level| format!("{level}({KEYWORD}_code"));
        if is_code(line) || allows.iter().any(|allow| line.contains(allow)) {
            let message = format!("{KEYWORD} code belongs in {SYS}, behind a safe function");
            findings.push(Finding::new(path, index + 1, message));
        }
    }
    findings
}

fn is_code(line: &str) -> bool {
    line.match_indices(KEYWORD).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + KEYWORD.len()..].trim_start();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            && IN_CODE.iter().any(|next| after.starts_with(next))
    })
}

/// The root of every library and program says to the compiler what is checked here by eye.
pub fn crate_roots(
    metadata: &Value,
    read: impl Fn(&Path) -> io::Result<String>,
) -> Result<Vec<Finding>> {
    let root = Path::new(metadata["workspace_root"].as_str().unwrap_or_default());
    let mut findings = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        for target in package["targets"].as_array().into_iter().flatten() {
            let kinds = target["kind"].as_array().into_iter().flatten();
            let mut kinds = kinds.filter_map(Value::as_str);
            let Some(source) = target["src_path"].as_str().map(Path::new) else {
                continue;
            };
            if kinds.any(|kind| matches!(kind, "lib" | "bin")) {
                let path = source.strip_prefix(root).unwrap_or(source);
                let text =
                    read(source).with_context(|| format!("cannot read {}", source.display()))?;
                findings.extend(crate_root(path, &text));
            }
        }
    }
    Ok(findings)
}

fn crate_root(path: &Path, text: &str) -> Option<Finding> {
    let has = |attribute: &str| text.lines().any(|line| line.trim_end() == attribute);
    if path.starts_with(SYS) || has(FORBID) {
        return None;
    }
    let message = format!("needs {FORBID} below its documentation");
    Some(Finding::new(path, 0, message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_is_found_outside_sys_only() {
        for form in [
            "{ f() }",
            "fn f() {}",
            "impl Pod for T {}",
            "extern \"C\" {",
            "(no_mangle)]",
        ] {
            let text = format!("// prose\n{KEYWORD} {form}\n");
            for (path, found) in [
                ("crates/engine/src/lib.rs", 1),
                ("crates/observe/src/polls.rs", 1),
                ("crates/observe/src/map_types.rs", 1),
                ("crates/sys/src/netns.rs", 0),
            ] {
                assert_eq!(code(Path::new(path), &text).len(), found, "{path}: {text}");
            }
        }
    }

    #[test]
    fn leave_to_write_it_is_found_too() {
        let text = format!("#![allow({KEYWORD}_code)]");
        assert_eq!(code(Path::new("crates/observe/src/lib.rs"), &text).len(), 1);
        assert_eq!(code(Path::new("crates/sys/src/bpf_maps.rs"), &text), []);
    }

    #[test]
    fn prose_and_lints_are_not_code() {
        let text = format!(
            "//! The only {KEYWORD} {{ code }} is elsewhere.\n{FORBID}\nlet is_{KEYWORD} = (1);\n"
        );
        assert_eq!(code(Path::new("crates/wire/src/lib.rs"), &text), []);
    }

    #[test]
    fn roots_without_the_attribute_are_found() {
        let target = |kind: &str, path: &str| json!({"kind": [kind], "src_path": path});
        let metadata = json!({"workspace_root": "/r", "packages": [
            {"targets": [target("lib", "/r/crates/wire/src/lib.rs"),
                         target("test", "/r/crates/wire/tests/iperf.rs")]},
            {"targets": [target("lib", "/r/crates/sys/src/lib.rs")]},
            {"targets": [target("lib", "/r/crates/observe/src/lib.rs")]},
            {"targets": [target("bin", "/r/crates/cli/src/main.rs")]},
        ]});
        let found = |text: &str| -> Vec<_> {
            let findings = crate_roots(&metadata, |_| Ok(text.to_owned())).unwrap();
            findings
                .iter()
                .map(|f| f.path.display().to_string())
                .collect()
        };
        let [wire, observe, cli] = [
            "crates/wire/src/lib.rs",
            "crates/observe/src/lib.rs",
            "crates/cli/src/main.rs",
        ];
        assert_eq!(found("//! Nothing.\n"), [wire, observe, cli]);
        assert_eq!(found(&format!("// {FORBID}\n")), [wire, observe, cli]);
        // What can be allowed again further down does not do.
        let denied = FORBID.replace("forbid", "deny");
        assert_eq!(found(&denied), [wire, observe, cli]);
        assert!(found(&format!("//! Doc.\n{FORBID}\n")).is_empty());
    }
}
