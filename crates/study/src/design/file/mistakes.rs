//! Words the errors of TOML's reader: the key, its value in the file, and what it takes.

use std::ops::Range;

use nicpoll_lab::bounds_of;
use nicpoll_model::FileError;
use nicpoll_model::numbers::count;
use nicpoll_switch::did_you_mean;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::plan::BLOCKS_MAX;

/// Most letters of a value that a message quotes.
const QUOTED: usize = 40;

/// Makes a [`FileError`] of an error of TOML's reader.
pub(crate) fn file_error(text: &str, error: &toml::de::Error) -> FileError {
    let span = error.span().unwrap_or_default();
    let entries = entries_within(text, &span);
    let message = error.message();
    let value = ["invalid value: ", "invalid type: "];
    let value = value.iter().find_map(|start| message.strip_prefix(start));
    let (at, message) =
        if let Some((found, wanted)) = value.and_then(|it| it.split_once(", expected ")) {
            wrong_value(&entries, found, wanted)
        } else if message.starts_with("unknown variant ") {
            unknown_word(&entries, message)
        } else if message.starts_with("unknown field ") {
            unknown_key(&entries, message)
        } else if let Some(key) = message.strip_prefix("missing field ") {
            (
                None,
                format!("the key {} is missing here", key.trim_matches('`')),
            )
        } else {
            // The check of a value may not know its key.
            let own = entries.iter().find(|entry| entry.span == span);
            let own = own.filter(|entry| !entry.is_table && !message.contains(&entry.key));
            let key = own.map_or_else(String::new, |entry| format!("{}: ", entry.key));
            (None, key + message)
        };
    FileError::at(text, at.unwrap_or(span), message)
}

/// A key and its value at a position in the text.
struct KeyAndValue {
    key: String,
    key_span: Range<usize>,
    span: Range<usize>,
    is_table: bool,
    /// The value as serde's errors show it.
    shown: String,
    /// The value as written.
    written: String,
}

/// Returns the entries within a span of the text, or of the table there.
fn entries_within(text: &str, span: &Range<usize>) -> Vec<KeyAndValue> {
    let mut all = Vec::new();
    if let Ok(document) = DeTable::parse(text) {
        for (key, value) in document.get_ref() {
            collect(text, span, false, (key, value), &mut all);
        }
    }
    all
}

fn collect(
    text: &str,
    span: &Range<usize>,
    is_of_it: bool,
    (key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>),
    all: &mut Vec<KeyAndValue>,
) {
    let is_within = |own: Range<usize>| span.start <= own.start && own.end <= span.end;
    let is_of_it = is_of_it || is_within(value.span()) || is_within(key.span());
    if is_of_it {
        let written = text.get(value.span()).unwrap_or_default();
        let written = written.lines().next().unwrap_or_default();
        all.push(KeyAndValue {
            key: key.get_ref().to_string(),
            key_span: key.span(),
            span: value.span(),
            is_table: value.get_ref().is_table(),
            shown: shown(value.get_ref()),
            written: written.chars().take(QUOTED).collect(),
        });
    }
    match value.get_ref() {
        DeValue::Table(table) => {
            for inner in table {
                collect(text, span, is_of_it, inner, all);
            }
        }
        DeValue::Array(items) => {
            for item in items.iter() {
                collect(text, span, is_of_it, (key, item), all);
            }
        }
        _ => {}
    }
}

fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("string {text:?}"),
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(number.as_str(), number.radix()).unwrap_or_default();
            format!("integer `{number}`")
        }
        DeValue::Float(number) => {
            let number: f64 = number.as_str().parse().unwrap_or_default();
            format!("floating point `{number:?}`")
        }
        DeValue::Boolean(flag) => format!("boolean `{flag}`"),
        DeValue::Array(_) => String::from("sequence"),
        DeValue::Table(_) => String::from("map"),
        DeValue::Datetime(_) => String::new(),
    }
}

/// A message, with a position if that is better than the error's.
type Told = (Option<Range<usize>>, String);

fn wrong_value(entries: &[KeyAndValue], found: &str, wanted: &str) -> Told {
    let entry = entries.iter().find(|entry| entry.shown == found);
    let Some(entry) = entry else {
        return (
            None,
            format!("{found} cannot be here: give {}", plain(wanted)),
        );
    };
    let takes = match &*entry.key {
        "blocks" => format!("1 to {} blocks", count(BLOCKS_MAX)),
        key => bounds_of(key).unwrap_or_else(|| plain(wanted)),
    };
    let message = format!("{} = {} cannot be: give {takes}", entry.key, entry.written);
    (Some(entry.span.clone()), message)
}

/// Translates Rust's name of a kind of value to TOML's.
fn plain(wanted: &str) -> String {
    let (least, kind) = match wanted.strip_prefix("a nonzero ") {
        Some(kind) => (1, kind),
        None => (0, wanted),
    };
    let most = [
        ("u8", u64::from(u8::MAX)),
        ("u16", u16::MAX.into()),
        ("u32", u32::MAX.into()),
        ("u64", i64::MAX as u64),
        ("usize", i64::MAX as u64),
    ];
    if let Some((_, most)) = most.iter().find(|(name, _)| *name == kind) {
        return format!("a whole number from {least} to {}", count(most));
    }
    let words = match kind {
        "a boolean" => "true or false",
        "a string" => "a text in quotes",
        "a sequence" => "a list, as in [1, 2]",
        kind if kind == "a map" || kind.starts_with("struct ") || kind.contains("enum ") => {
            "a table, as in { key = value }"
        }
        other => other,
    };
    String::from(words)
}

/// Returns the words in backticks of serde's message: the unknown one, and the known ones.
fn quoted(message: &str) -> (&str, Vec<&str>) {
    let mut words = message.split('`').skip(1).step_by(2);
    (words.next().unwrap_or_default(), words.collect())
}

fn there_are(known: &[&str]) -> String {
    let verb = if known.len() == 1 { "is" } else { "are" };
    format!("there {verb} {}", known.join(", "))
}

fn unknown_word(entries: &[KeyAndValue], message: &str) -> Told {
    let (word, known) = quoted(message);
    let shown = format!("string {word:?}");
    let entry = entries.iter().find(|entry| entry.shown == shown);
    let key = entry.map_or_else(String::new, |entry| format!("{} = ", entry.key));
    let meant = did_you_mean(word, known.iter().copied());
    let message = format!("{key}\"{word}\" is not known; {}{meant}", there_are(&known));
    (entry.map(|entry| entry.span.clone()), message)
}

fn unknown_key(entries: &[KeyAndValue], message: &str) -> Told {
    let (key, known) = quoted(message);
    let entry = entries.iter().find(|entry| entry.key == key);
    let meant = did_you_mean(key, known.iter().copied());
    let message = format!("there is no key {key} here; {}{meant}", there_are(&known));
    (entry.map(|entry| entry.key_span.clone()), message)
}
