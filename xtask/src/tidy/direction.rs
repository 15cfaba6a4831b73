//! Which crate may use which, as `xtask/crates.toml` says. The pure crates at the bottom use none, so that they can be tested
//! without a machine; the engine and the simulator never know of each other; a report runs nothing,
//! so an old study can always be rendered again; nothing uses the program.
//!
//! Dependencies of tests are not checked: they shape no program.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::source::Finding;

pub const LIST: &str = "xtask/crates.toml";

/// The crates of the workspace that each may use.
pub struct Order(BTreeMap<String, Vec<String>>);

impl Order {
    pub fn parse(text: &str) -> Result<Self> {
        Ok(Self(toml::from_str(text).context(LIST)?))
    }
}

pub fn check(metadata: &Value, order: &Order) -> Vec<Finding> {
    let packages = || metadata["packages"].as_array().into_iter().flatten();
    let members: Vec<&str> = packages().filter_map(|p| p["name"].as_str()).collect();
    let mut findings = Vec::new();
    for package in packages() {
        let name = short_name(package);
        let manifest = manifest(metadata, package);
        let mut found = |message| findings.push(Finding::new(&manifest, 0, message));
        let Some(may_use) = order.0.get(name) else {
            found(format!("crate {name} has no place in the order of crates"));
            continue;
        };
        for used in package["dependencies"].as_array().into_iter().flatten() {
            let full = used["name"].as_str().unwrap_or_default();
            let for_tests = used["kind"] == "dev";
            if members.contains(&full)
                && !for_tests
                && may_use.iter().all(|other| other != short(full))
            {
                found(format!(
                    "{name} must not use {}; it may use: {}",
                    short(full),
                    list(may_use)
                ));
            }
        }
    }
    findings
}

fn list(crates: &[String]) -> String {
    if crates.is_empty() {
        "no crate of the workspace".to_owned()
    } else {
        crates.join(", ")
    }
}

/// The folder's name in `crates/`, of a package.
pub fn short_name(package: &Value) -> &str {
    short(package["name"].as_str().unwrap_or_default())
}

fn short(package: &str) -> &str {
    match package {
        "nicpoll" => "cli",
        _ => package.strip_prefix("nicpoll-").unwrap_or(package),
    }
}

/// A package's manifest, from the root of the workspace.
pub fn manifest(metadata: &Value, package: &Value) -> std::path::PathBuf {
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let path = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    path.strip_prefix(root).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn order() -> Order {
        Order::parse(include_str!("../../crates.toml")).unwrap()
    }

    fn findings(packages: &[(&str, &[&str])]) -> Vec<String> {
        let with_kind: Vec<_> = packages
            .iter()
            .map(|(name, uses)| {
                let uses: Vec<_> = uses.iter().map(|used| json!({"name": used})).collect();
                json!({"name": name, "manifest_path": "/r/Cargo.toml", "dependencies": uses})
            })
            .collect();
        let found = check(
            &json!({"workspace_root": "/r", "packages": with_kind}),
            &order(),
        );
        found.into_iter().map(|f| f.message).collect()
    }

    #[test]
    fn the_order_of_the_design_passes() {
        let packages: [(&str, &[&str]); 5] = [
            ("nicpoll-model", &["serde"]),
            ("nicpoll-stats", &["nicpoll-model", "statrs"]),
            ("nicpoll-report", &["nicpoll-model", "nicpoll-stats"]),
            ("nicpoll-study", &["nicpoll-model", "nicpoll-stats"]),
            ("nicpoll", &["nicpoll-study", "nicpoll-report", "clap"]),
        ];
        assert!(findings(&packages).is_empty());
    }

    #[test]
    fn each_forbidden_direction_is_found() {
        for (user, used) in [
            ("nicpoll-model", "nicpoll-stats"),
            ("nicpoll-core", "nicpoll-model"),
            ("nicpoll-wire", "nicpoll-sys"),
            ("nicpoll-stats", "nicpoll-wire"),
            ("nicpoll-engine", "nicpoll-sim"),
            ("nicpoll-engine", "nicpoll-switch"),
            ("nicpoll-switch", "nicpoll-observe"),
            ("nicpoll-traffic", "nicpoll-iperf"),
            ("nicpoll-sim", "nicpoll-calibrate"),
            ("nicpoll-sim", "nicpoll-engine"),
            ("nicpoll-report", "nicpoll-study"),
            ("nicpoll-study", "nicpoll"),
            ("xtask", "nicpoll-model"),
        ] {
            let found = findings(&[(user, &[used]), (used, &[])]);
            let expected = format!("{} must not use {}", short(user), short(used));
            assert_eq!(found.len(), 1, "{user} -> {used}: {found:?}");
            assert!(found[0].starts_with(&expected), "{found:?}");
        }
    }

    #[test]
    fn a_crate_without_a_place_is_found() {
        assert_eq!(
            findings(&[("nicpoll-extra", &[])]),
            ["crate extra has no place in the order of crates"]
        );
    }

    #[test]
    fn what_only_tests_use_is_left_out() {
        let used = json!({"name": "nicpoll-study", "kind": "dev"});
        let metadata = json!({"workspace_root": "/r", "packages": [
            {"name": "nicpoll-report", "manifest_path": "/r/Cargo.toml", "dependencies": [used]},
            {"name": "nicpoll-study", "manifest_path": "/r/Cargo.toml", "dependencies": []},
        ]});
        assert_eq!(check(&metadata, &order()), []);
    }
}
