//! Pages: relative links lead to files and headings that exist, and no line of prose is over 100 columns, since people read
//! it in terminals, too.
//!
//! Addresses with a scheme are not looked at; code is not searched.

use std::path::{Component, Path, PathBuf};

use super::source::Finding;

const WIDEST_PROSE: usize = 100;

/// Lines of prose that are too wide to read. Code, tables and headings are as wide as they have to be, and so
/// is what has no blank.
pub fn wide_prose(path: &Path, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in prose_lines(text) {
        let is_prose = !line.starts_with(['|', '#', '!', '`']);
        let width = line.chars().count();
        let words = line.split_whitespace().count();
        if is_prose && width > WIDEST_PROSE && words > 1 {
            let message = format!("{width} columns, at most {WIDEST_PROSE}");
            findings.push(Finding::new(path, number, message));
        }
    }
    findings
}

/// Links to files that are not there, and to headings that their page lacks. `read` gives the text of a file.
pub fn broken(path: &Path, text: &str, read: impl Fn(&Path) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, prose) in prose_lines(text) {
        for target in targets(prose) {
            let Some((file, anchor)) = local(path, &target) else {
                continue;
            };
            let message = match read(&file) {
                None => format!("link to {target}: there is no {}", file.display()),
                Some(page) if !anchor.is_empty() && !has_heading(&page, anchor) => {
                    format!("link to {target}: {} has no such heading", file.display())
                }
                Some(_) => continue,
            };
            findings.push(Finding::new(path, line, message));
        }
    }
    findings
}

/// The numbered lines of a page outside blocks of code.
pub fn prose_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        is_code ^= line.trim_start().starts_with("```");
        !is_code && !line.trim_start().starts_with("```")
    })
}

/// Whether a heading of the page gets this anchor from code hosts: lower case, dashes for blanks, no punctuation.
fn has_heading(page: &str, anchor: &str) -> bool {
    prose_lines(page).any(|(_, line)| {
        let name = line.trim_start_matches('#');
        let name = name.trim().to_lowercase().replace(' ', "-");
        let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_');
        line.starts_with('#') && name.chars().filter(is_kept).eq(anchor.chars())
    })
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

/// The file that the target names, from the root of the project, and the heading. A target that begins with a
/// slash counts from there too, as code hosts show it.
fn local<'a>(document: &Path, target: &'a str) -> Option<(PathBuf, &'a str)> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    if file.contains("://") || file.starts_with("mailto:") {
        return None;
    }
    let from = match file.strip_prefix('/') {
        Some(rooted) => PathBuf::from(rooted),
        None if file.is_empty() => document.to_owned(),
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
    Some((plain, anchor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(document: &str, text: &str) -> Vec<String> {
        let there = [
            "README.md",
            "docs/index.md",
            "docs/method.md",
            "docs/plots/a.svg",
        ];
        let read = |file: &Path| {
            let page = "# Words\n## The `5 %` verdict\n```\n# code\n```\n";
            let mut there = there.iter();
            there
                .any(|name| Path::new(name) == file)
                .then(|| page.to_owned())
        };
        let found = broken(Path::new(document), text, read);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_to_files_that_exist_pass() {
        let text = "See [method](method.md#the-5--verdict \"title\"), [home](../README.md), ![](plots/a.svg)\n\
                    and [root](/README.md), [here](#words), [site](https://example.org/x).\n\
                    [ref]: <method.md>\n";
        assert!(messages("docs/index.md", text).is_empty());
    }

    #[test]
    fn each_form_of_broken_link_is_found() {
        let text = "fine\n[a](gone.md) and [b](../gone.md#x)\n[ref]: gone.svg\n[c](#code), [d](method.md#word)\n";
        assert_eq!(
            messages("docs/index.md", text),
            [
                "docs/index.md:2: link to gone.md: there is no docs/gone.md",
                "docs/index.md:2: link to ../gone.md#x: there is no gone.md",
                "docs/index.md:3: link to gone.svg: there is no docs/gone.svg",
                "docs/index.md:4: link to #code: docs/index.md has no such heading",
                "docs/index.md:4: link to method.md#word: docs/method.md has no such heading",
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
