//! Pages: relative links lead to files that exist, and no line of prose is over 100 columns, since people read
//! it in terminals, too.
//!
//! Addresses with a scheme and anchors within a page are not looked at; code is not searched.

use std::path::{Component, Path, PathBuf};

use super::source::Finding;

const WIDEST_PROSE: usize = 100;

/// Lines of prose that are too wide to read. Code, tables and headings are as wide as they have to be, and so
/// is what has no blank.
pub fn wide_prose(path: &Path, text: &str) -> Vec<Finding> {
    let mut is_code = false;
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        let is_prose = !is_code && !line.starts_with(['|', '#', '!', '`']);
        let width = line.chars().count();
        let words = line.split_whitespace().count();
        if is_prose && width > WIDEST_PROSE && words > 1 {
            let message = format!("{width} columns, at most {WIDEST_PROSE}");
            findings.push(Finding::new(path, index + 1, message));
        }
    }
    findings
}

pub fn broken(path: &Path, text: &str, exists: impl Fn(&Path) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_fence = false;
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            in_fence = !in_fence;
            continue;
        }
        if in_fence {
            continue;
        }
        for target in targets(line) {
            if let Some(file) = local_file(path, &target)
                && !exists(&file)
            {
                let message = format!("link to {target}: there is no {}", file.display());
                findings.push(Finding::new(path, index + 1, message));
            }
        }
    }
    findings
}

/// The targets of `[text](target)` and of `[name]: target`, outside inline code.
fn targets(line: &str) -> Vec<String> {
    let prose: String = line.split('`').step_by(2).collect();
    let mut targets: Vec<String> = prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| without_title(target))
        .collect();
    if prose.starts_with('[')
        && let Some((_, target)) = prose.split_once("]: ")
    {
        targets.push(without_title(target));
    }
    targets
}

fn without_title(target: &str) -> String {
    let target = target.trim();
    let end = target.find(char::is_whitespace).unwrap_or(target.len());
    target[..end].trim_matches(['<', '>']).to_owned()
}

/// The file that the target names, from the root of the project. A target that begins with a slash
/// counts from there too, as code hosts show it.
fn local_file(document: &Path, target: &str) -> Option<PathBuf> {
    let file = target.split(['#', '?']).next().unwrap_or(target);
    let has_scheme = file.contains("://") || file.starts_with("mailto:");
    if file.is_empty() || has_scheme {
        return None;
    }
    let from = match file.strip_prefix('/') {
        Some(rooted) => PathBuf::from(rooted),
        None => document.parent().unwrap_or(Path::new("")).join(file),
    };
    let mut plain = PathBuf::new();
    for component in from.components() {
        match component {
            Component::ParentDir if plain.pop() => {}
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(document: &str, text: &str) -> Vec<String> {
        let there = ["README.md", "docs/method.md", "docs/plots/a.svg"];
        let exists = |file: &Path| there.iter().any(|name| Path::new(name) == file);
        let found = broken(Path::new(document), text, exists);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_to_files_that_exist_pass() {
        let text = "See [method](method.md#verdict \"title\"), [home](../README.md), ![](plots/a.svg)\n\
                    and [root](/README.md), [here](#words), [site](https://example.org/x).\n\
                    [ref]: <method.md>\n";
        assert!(messages("docs/index.md", text).is_empty());
    }

    #[test]
    fn each_form_of_broken_link_is_found() {
        let text = "fine\n[a](gone.md) and [b](../gone.md#x)\n[ref]: gone.svg\n";
        assert_eq!(
            messages("docs/index.md", text),
            [
                "docs/index.md:2: link to gone.md: there is no docs/gone.md",
                "docs/index.md:2: link to ../gone.md#x: there is no gone.md",
                "docs/index.md:3: link to gone.svg: there is no docs/gone.svg",
            ]
        );
    }

    #[test]
    fn a_link_out_of_the_project_is_broken() {
        assert_eq!(messages("README.md", "[x](../README.md)").len(), 1);
    }

    #[test]
    fn code_is_not_searched() {
        let text = "`[a](gone.md)`\n```\n[a](gone.md)\n```\n[b](gone.md)\n";
        assert_eq!(messages("README.md", text).len(), 1);
    }

    #[test]
    fn wide_prose_is_found_and_tables_and_code_are_not() {
        let wide = format!("a {}", "x".repeat(99));
        let path = Path::new("docs/page.md");
        for (text, found) in [
            (format!("first\n{wide}\n"), 1),
            (format!("- {}\n", &wide[..98]), 0),
            ("x".repeat(101), 0),
            (format!("| {wide} |\n"), 0),
            (format!("```text\n{wide}\n```\n"), 0),
            (format!("```text\n```\n{wide}\n"), 1),
        ] {
            assert_eq!(wide_prose(path, &text).len(), found, "{text}");
        }
    }
}
