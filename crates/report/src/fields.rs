//! Templates with fields of a document: a line of a page is one line of code.
//!
//! `{polls} polls, {empty_polls} of them empty` names fields as in the document's JSON (docs/schema.md), those of its
//! parts after a slash: `{cpu/user_ratio:%}`. Integers have separated thousands, other numbers three significant
//! figures, lists commas. Null, or a field of a null part, shows as `-`.
//!
//! A form follows a colon: `%` in percent with one decimal, `time` (of nanoseconds) in a suitable unit, `duration`
//! the same for a configured time, `raw` unchanged, `.2` with two decimals, `/1e6` in millions, `*100` a hundred
//! times, `plural` an s unless it is 1. `>9` before it aligns the number right in nine columns.
//!
//! Templates with many lines stand in text files, each under its name in brackets.

use nicpoll_model::numbers::{MISSING, count, duration_text, figure, time_figure};
use serde::Serialize;
use serde_json::Value;

use crate::json::compact;

/// Fills a template with the fields of a document.
pub(crate) fn filled(template: &str, document: &impl Serialize) -> String {
    fill(template, &json(document))
}

/// Fills a template with fields of a part; `None` if the part is null.
pub(crate) fn filled_part(template: &str, part: &impl Serialize) -> Option<String> {
    let part = json(part);
    (!part.is_null()).then(|| fill(template, &part))
}

/// Returns the text under a name in a file of templates.
pub(crate) fn section(file: &'static str, name: &str) -> &'static str {
    let mut sections = file.split("\n[").filter_map(|it| it.split_once("]\n"));
    let found = sections.find(|(own, _)| *own == name);
    let (_, text) = found.expect("the program's own files have what it asks for");
    text.trim_end_matches('\n')
}

/// Fills lines. One after `?` is left out as [`stated`] leaves out a sentence.
pub(crate) fn filled_lines(lines: &str, document: &impl Serialize) -> String {
    let document = json(document);
    let lines = lines.lines().filter_map(|line| {
        let optional = line.strip_prefix('?');
        let is_shown = optional.is_none_or(|line| is_told(line, &document));
        is_shown.then(|| fill(optional.unwrap_or(line), &document) + "\n")
    });
    lines.collect()
}

/// Fills sentences. One with a field that is null or an empty list, or that is 0 with a `+` after the colon, is left
/// out.
pub(crate) fn stated(document: &impl Serialize, templates: &[&str]) -> Vec<String> {
    let document = json(document);
    let told = templates.iter().filter(|it| is_told(it, &document));
    told.map(|template| fill(template, &document)).collect()
}

fn is_told(template: &str, document: &Value) -> bool {
    fields(template).all(|(path, form, _)| match at(document, path) {
        Value::Null => false,
        Value::Array(all) => !all.is_empty(),
        value => !form.starts_with('+') || value.as_f64() > Some(0.0),
    })
}

/// Fills a sentence; `-` if it would be left out.
pub(crate) fn stated_or_missing(document: &impl Serialize, template: &str) -> String {
    let sentence = stated(document, &[template]).pop();
    sentence.unwrap_or(String::from(MISSING))
}

/// Returns a row of a table: a cell for each template.
pub(crate) fn cells(row: &impl Serialize, templates: &[&str]) -> Vec<String> {
    let row = json(row);
    let templates = templates.iter();
    templates.map(|template| fill(template, &row)).collect()
}

/// Converts a document to a tree.
pub(crate) fn json(document: &impl Serialize) -> Value {
    serde_json::from_str(&compact(document)).expect("it was just written")
}

/// Splits a template into fields: the path of each, its form, and the text up to the next.
fn fields(template: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    template.split('{').skip(1).map(|piece| {
        let (field, rest) = piece.split_once('}').unwrap_or((piece, ""));
        let (path, form) = field.split_once(':').unwrap_or((field, ""));
        (path, form, rest)
    })
}

fn fill(template: &str, document: &Value) -> String {
    let mut text = String::from(template.split('{').next().unwrap_or_default());
    for (path, form, rest) in fields(template) {
        let (width, form) = width_of(form.trim_start_matches('+'));
        text += &format!("{:>width$}{rest}", shown(at(document, path), form));
    }
    text
}

fn at<'a>(document: &'a Value, path: &str) -> &'a Value {
    path.split('/').fold(document, |part, name| {
        let field = part.get(name);
        debug_assert!(field.is_some() || part.is_null(), "no field {path}");
        field.unwrap_or(&Value::Null)
    })
}

/// Returns the minimum width of a field, and the rest of its form.
fn width_of(form: &str) -> (usize, &str) {
    let Some(form) = form.strip_prefix('>') else {
        return (0, form);
    };
    let digits = form.len() - form.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    (form[..digits].parse().unwrap_or(0), &form[digits..])
}

fn shown(value: &Value, form: &str) -> String {
    match (value, form) {
        (Value::Null, _) => String::from(MISSING),
        (Value::String(text), _) => text.clone(),
        (Value::Array(all), form) => {
            let all: Vec<String> = all.iter().map(|one| shown(one, form)).collect();
            all.join(", ")
        }
        (Value::Number(whole), "") if !whole.is_f64() => count(whole),
        (Value::Number(whole), "raw") if !whole.is_f64() => whole.to_string(),
        (value, form) => number(value.as_f64().unwrap_or(f64::NAN), form),
    }
}

fn number(value: f64, form: &str) -> String {
    let operand = |form: &str| form[1..].parse().unwrap_or(1.0);
    match form.chars().next() {
        None => figure(value),
        Some('/') => figure(value / operand(form)),
        Some('*') => figure(operand(form) * value),
        Some('.') => format!("{value:.0$}", form[1..].parse().unwrap_or(0)),
        Some('%') => format!("{:.1} %", 100.0 * value),
        Some('d') => duration_text(value as u64),
        Some('t') => time_figure(Some(value.round() as u64)),
        Some('p') => String::from(if value == 1.0 { "" } else { "s" }),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_of_a_section_are_left_out_where_they_have_nothing_to_tell() {
        let file = "# A head.\n\n[one]\n{n} bit{n:plural}\n?{none} of none\n\n?{zero:+} of 0\n\n[two]\n{n}\n";
        let document = json!({"n": 1, "none": null, "zero": 0});
        assert_eq!(filled_lines(section(file, "one"), &document), "1 bit\n\n");
        assert_eq!(section(file, "two"), "{n}");
        assert_eq!(filled("{n} bit{n:plural}", &json!({"n": 2})), "2 bits");
    }

    #[test]
    fn fields_show_as_their_form_says_and_what_is_missing_as_a_dash() {
        let document = json!({
            "polls": 12_345, "rate": 1234.5, "cpu": {"user_ratio": 0.123}, "none": null, "cpus": [0, 1],
            "ns": 1_500, "name": "em0", "zero": 0, "empty": [],
        });
        for (template, text) in [
            ("{polls} polls, {rate}/s", "12,345 polls, 1,230/s"),
            ("{polls:raw} {rate:raw} {rate:.1}", "12345 1234.5 1234.5"),
            ("{cpu/user_ratio:%} {cpu/user_ratio:*100}", "12.3 % 12.3"),
            ("{rate:/1e3} {ns:time}", "1.23 1.50 us"),
            ("{none} {none/deeper:%} of {name}", "- - of em0"),
            ("CPU {cpus}, {ns:duration}", "CPU 0, 1, 1.5 us"),
            (
                "|{rate:>8.1}|{polls:>9}|{none:>2}|",
                "|  1234.5|   12,345| -|",
            ),
        ] {
            assert_eq!(filled(template, &document), text);
        }
        let sentences = [
            "{polls:+} polls",
            "{none} of none",
            "{zero:+} of 0",
            "{zero} of all",
            "on {empty}",
        ];
        assert_eq!(stated(&document, &sentences), ["12,345 polls", "0 of all"]);
    }
}
