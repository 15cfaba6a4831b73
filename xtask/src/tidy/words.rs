//! Words that only this project's authors would understand are not used: `xtask/words.toml` has each
//! with the term that a network engineer uses.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::pages::prose_lines;
use super::source::{Finding, code_lines};

pub const LIST: &str = "xtask/words.toml";

/// Words and phrases in lower case, each with what to write.
pub struct Words(BTreeMap<String, String>);

impl Words {
    pub fn parse(text: &str) -> Result<Self> {
        Ok(Self(toml::from_str(text).context(LIST)?))
    }

    /// Every line that has one: of pages all but blocks of code, of code all but tests.
    pub fn check(&self, path: &Path, text: &str) -> Vec<Finding> {
        let is_code = path.extension().is_some_and(|end| end == "rs");
        let stem = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default();
        let is_test = stem == "tests" || stem.ends_with("_tests");
        let is_source = !is_test && path.iter().any(|part| part == "src");
        let lines: Vec<(usize, &str)> = if is_code && is_source {
            code_lines(text).collect()
        } else if path.extension().is_some_and(|end| end == "md") {
            prose_lines(text).collect()
        } else {
            Vec::new()
        };
        let findings = lines.into_iter().flat_map(|(number, line)| {
            let line = line.to_lowercase();
            // What files and documents call a thing stays as it is.
            let is_key = line.contains("rename = \"") || line.contains("// a key");
            let found = self
                .0
                .iter()
                .filter(move |(word, _)| !is_key && has(&line, word));
            found.map(move |(word, instead)| {
                Finding::new(path, number, format!("\"{word}\": write {instead}"))
            })
        });
        findings.collect()
    }
}

/// Whether a line has the word, not as part of another.
fn has(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        let words = Words::parse("sitting = \"run\"\n\"what must hold\" = \"the guarantee\"\n");
        words.unwrap().check(Path::new(path), text).len()
    }

    #[test]
    fn a_private_word_is_found_in_pages_comments_messages_and_names() {
        for (path, text) in [
            ("docs/a.md", "A sitting ends."),
            ("crates/a/src/x.rs", "//! What must hold: all.\n"),
            ("crates/a/src/x.rs", "tell!(\"the sitting\");\n"),
            ("crates/a/src/x.rs", "mod sitting;\n"),
            ("xtask/src/x.rs", "fn begin_sitting() {}\n"),
        ] {
            assert_eq!(found(path, text), 1, "{text}");
        }
    }

    #[test]
    fn other_words_examples_and_tests_are_left_alone() {
        for (path, text) in [
            ("docs/a.md", "Babysitting holds."),
            ("docs/a.md", "```\nsitting\n```\n"),
            ("crates/a/tests/x.rs", "// sitting\n"),
            (
                "crates/a/src/x.rs",
                "#[cfg(test)]\nmod tests {\n    // sitting\n}\n",
            ),
            ("studies/a.toml", "# sitting\n"),
            ("crates/a/src/x/tests.rs", "// sitting\n"),
            ("crates/a/src/x.rs", "#[serde(rename = \"sitting\")]\n"),
        ] {
            assert_eq!(found(path, text), 0, "{text}");
        }
    }
}
