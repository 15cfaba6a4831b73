//! Libraries say what failed by a type of their own, which a caller can match. A `String` as an error, or
//! anyhow, is for those who only print it: the program and these commands.

use std::path::Path;

use serde_json::Value;

use super::direction;
use super::source::{Finding, code_lines};

/// The crates that only print errors.
const PRINTERS: [&str; 2] = ["cli", "xtask"];

/// Errors that are a `String`, in the code of libraries.
pub fn as_text(path: &Path, text: &str) -> Vec<Finding> {
    let library = path.strip_prefix("crates").ok();
    let library = library.and_then(|path| path.iter().next()?.to_str());
    let is_checked = library.is_some_and(|library| !PRINTERS.contains(&library));
    if !is_checked || !path.iter().any(|part| part == "src") {
        return Vec::new();
    }
    // Tests are blanked, so that places keep their lines.
    let mut code = String::new();
    for (number, line) in code_lines(text) {
        code.extend(std::iter::repeat_n(
            '\n',
            number - 1 - code.matches('\n').count(),
        ));
        code.push_str(line);
    }
    let code = code.as_str();
    let mut places: Vec<usize> = code.match_indices("Err = String;").map(|m| m.0).collect();
    let results = code.match_indices("Result<");
    places.extend(results.filter_map(|(at, begin)| {
        let error = last_argument(&code[at + begin.len()..])?;
        (error == "String").then_some(at)
    }));
    places.sort_unstable();
    let line = |at: usize| code[..at].matches('\n').count() + 1;
    let message = "a String as an error: give it a type of its own (thiserror)";
    places
        .into_iter()
        .map(|at| Finding::new(path, line(at), message))
        .collect()
}

/// Libraries that are built with anyhow.
pub fn with_anyhow(metadata: &Value) -> Vec<Finding> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let uses_anyhow = |package: &&Value| {
        let mut used = package["dependencies"].as_array().into_iter().flatten();
        used.any(|used| used["name"] == "anyhow" && used["kind"] != "dev")
    };
    packages
        .filter(|package| !PRINTERS.contains(&direction::short_name(package)))
        .filter(uses_anyhow)
        .map(|package| {
            let message = "a library has typed errors: anyhow is for the program only";
            Finding::new(&direction::manifest(metadata, package), 0, message)
        })
        .collect()
}

/// The last of several type arguments, when this is what stands after their opening bracket.
fn last_argument(text: &str) -> Option<&str> {
    let mut depth = 0;
    let mut begin = None;
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        match letter {
            '<' | '(' | '[' => depth += 1,
            '>' if before == '-' => {}
            '>' if depth == 0 => {
                let last = text[begin?..at].trim();
                return Some(last.trim_end_matches(',').trim_end());
            }
            '>' | ')' | ']' => depth -= 1,
            ',' if depth == 0 && !text[at + 1..].trim_start().starts_with('>') => {
                begin = Some(at + 1);
            }
            ';' | '{' | '}' => return None,
            _ => {}
        }
        before = letter;
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_is_found_in_libraries_and_their_code_only() {
        for form in [
            "fn f() -> Result<u8, String> {",
            "fn f() -> Result<(u8, u8), String> {",
            "fn f() -> Result<Box<dyn Fn(u8) -> u8>, String> {",
            "fn f() -> Result<\n    Vec<u8>,\n    String,\n> {",
            "    type Err = String;",
        ] {
            let text = format!("//! Doc.\n{form}\n");
            let of = |path: &str| as_text(Path::new(path), &text).len();
            assert_eq!(of("crates/wire/src/host.rs"), 1, "{form}");
            assert_eq!(of("crates/cli/src/set.rs"), 0, "{form}");
            assert_eq!(of("crates/wire/tests/host.rs"), 0, "{form}");
            assert_eq!(of("xtask/src/main.rs"), 0, "{form}");
            let in_tests = format!("#[cfg(test)]\nmod tests {{\n{form}\n}}\n");
            let found = as_text(Path::new("crates/wire/src/host.rs"), &in_tests);
            assert_eq!(found, [], "{form}");
        }
    }

    #[test]
    fn strings_that_are_no_errors_are_left_alone() {
        for form in [
            "fn f() -> Result<String, Error> {",
            "fn f() -> Result<BTreeMap<String, String>> {",
            "fn f() -> Result<Vec<(u8, String)>, Error> {",
            "fn f() -> io::Result<String> {",
        ] {
            let found = as_text(Path::new("crates/wire/src/host.rs"), form);
            assert_eq!(found, [], "{form}");
        }
    }

    #[test]
    fn anyhow_is_found_in_libraries_only() {
        let package = |name: &str, kind: Value| {
            json!({"name": name, "manifest_path": format!("/r/{name}/Cargo.toml"),
                   "dependencies": [{"name": "anyhow", "kind": kind}]})
        };
        let metadata = json!({"workspace_root": "/r", "packages": [
            package("nicpoll-switch", Value::Null),
            package("nicpoll-sim", json!("dev")),
            package("nicpoll", Value::Null),
            package("xtask", Value::Null),
        ]});
        let found = with_anyhow(&metadata);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, Path::new("nicpoll-switch/Cargo.toml"));
    }
}
