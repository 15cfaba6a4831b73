//! No function of 70 lines or more: what is longer is two ideas. No prose over 100 columns: people read it in
//! terminals, too.
//!
//! Functions are measured on what rustfmt writes: from the line with `fn` to the first closing
//! brace at the same indentation. Tests count like everything else.

use std::path::Path;

use super::source::Finding;

const LONGEST_FUNCTION: usize = 69;
const WIDEST_PROSE: usize = 100;

pub fn functions(path: &Path, text: &str) -> Vec<Finding> {
    let lines: Vec<&str> = text.lines().collect();
    let mut findings = Vec::new();
    for start in 0..lines.len() {
        let Some(name) = function_name(lines[start]) else {
            continue;
        };
        let length = function_length(&lines[start..]);
        if length > LONGEST_FUNCTION {
            let message = format!(
                "function {name} has {length} lines, at most {LONGEST_FUNCTION}: give a part of it a name"
            );
            findings.push(Finding::new(path, start + 1, message));
        }
    }
    findings
}

/// Lines of prose that are too wide to read. Code, tables and headings are as wide as they have to be, and so
/// is what has no blank.
pub fn prose(path: &Path, text: &str) -> Vec<Finding> {
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

/// The name, when the line begins a function.
fn function_name(line: &str) -> Option<&str> {
    let (before, after) = match line.trim_start().strip_prefix("fn ") {
        Some(after) => ("", after),
        None => line.split_once(" fn ")?,
    };
    let is_qualifier = |word: &str| {
        matches!(word, "pub" | "const" | "async" | "unsafe" | "extern")
            || word.starts_with("pub(")
            || word.starts_with('"')
    };
    if !before.split_whitespace().all(is_qualifier) {
        return None;
    }
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some(&after[..end.unwrap_or(after.len())])
}

/// How many lines the function takes that begins at the first line; 0 for a declaration without a
/// body.
fn function_length(lines: &[&str]) -> usize {
    let first = lines[0];
    let indentation = &first[..first.len() - first.trim_start().len()];
    let mut has_body = false;
    for (index, line) in lines.iter().enumerate() {
        let at_same_level = line
            .strip_prefix(indentation)
            .filter(|rest| !rest.starts_with(' '));
        has_body |= at_same_level.is_some_and(|rest| rest.ends_with('{'));
        if !has_body && line.ends_with(';') {
            return 0;
        }
        let closes_here = match at_same_level {
            Some(rest) => rest.starts_with('}') || (!has_body && rest.ends_with('}')),
            None => false,
        };
        if closes_here {
            return index + 1;
        }
    }
    lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(text: &str) -> Vec<(&str, usize)> {
        let lines: Vec<&str> = text.lines().collect();
        (0..lines.len())
            .filter_map(|i| Some((function_name(lines[i])?, function_length(&lines[i..]))))
            .collect()
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
            assert_eq!(prose(path, &text).len(), found, "{text}");
        }
    }

    #[test]
    fn a_long_function_is_found_where_it_begins() {
        let of = |body: usize| {
            let lines = "        let x = 1;\n".repeat(body);
            format!("impl X {{\n    pub(crate) const fn long(&self) {{\n{lines}    }}\n}}\n")
        };
        let path = Path::new("src/lib.rs");
        assert_eq!(functions(path, &of(67)), []);
        let findings = functions(path, &of(68));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 2);
        assert!(findings[0].message.contains("long has 70 lines"));
    }

    #[test]
    fn every_form_of_function_is_measured() {
        let text = "\
fn one_line() {}
pub async extern \"C\" fn signature(
    a: u8,
) -> u8
where
    u8: Copy,
{
    if a > 0 {
        loop {}
    }
    a
}
trait T {
    fn declared(&self) -> u8;
    fn declared_over_lines(
        &self,
    ) -> u8;
    fn declared_where(&self)
    where
        Self: Sized;
    fn nested(&self) {
        fn inner() {
            work();
        }
    }
}
// a word like fn in a comment
let call = |x| x.fn_name();
";
        assert_eq!(
            lengths(text),
            [
                ("one_line", 1),
                ("signature", 11),
                ("declared", 0),
                ("declared_over_lines", 0),
                ("declared_where", 0),
                ("nested", 5),
                ("inner", 3),
            ]
        );
    }
}
