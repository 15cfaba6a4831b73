//! Prose: headings that name a setting, and rates in sentences.

use crate::cursor::{Cursor, MeasuredUnit, measured};
use crate::lines::seen::{Anchor, Seen};

/// Reads a rate: a number with its unit.
pub fn figure(cursor: &mut Cursor) -> Option<Seen> {
    cursor.begins_number()?;
    let rate = measured(cursor).filter(|it| it.unit != MeasuredUnit::Bytes)?;
    Some(Seen::Loose(rate.value, rate.unit))
}

/// Longer lines are sentences.
const HEADING_MAX: usize = 80;
/// Words that negate a setting.
const NOT: [&str; 8] = [
    "without", "no", "not", "off", "disabled", "disable", "non", "vs",
];

/// Reads a heading, or a line that ends with a colon, that names a setting: `== With polling ==`, `Without
/// polling:`.
pub fn heading(cursor: &mut Cursor, _from: usize) -> Option<Vec<Anchor>> {
    if !matches!(cursor.behind(), b'\n' | 0) {
        return None;
    }
    let began = cursor.at;
    let line = cursor.clone().word(HEADING_MAX + 1, |it| it != b'\n')?;
    let text = line.trim();
    let is_marked = text.starts_with(['=', '#', '*']) || text.ends_with(':');
    (line.len() <= HEADING_MAX && is_marked).then_some(())?;
    let seen = Seen::Heading(setting(text)?);
    // The rest of the line is still searched.
    cursor.at += 1;
    let at = began..began + line.len();
    Some(vec![Anchor { at, seen }])
}

/// Whether a heading means polling (`true`) or interrupts; `None` when it names both or neither.
pub fn setting(text: &str) -> Option<bool> {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = lower
        .split(|letter: char| !letter.is_ascii_alphabetic())
        .filter(|word| !word.is_empty())
        .collect();
    let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
    let (polls, interrupts) = (
        has(&["polling", "polled"]),
        has(&["interrupt", "interrupts"]),
    );
    let is_other = has(&["and", "vs", "versus", "storm", "or", "against"]);
    if polls == interrupts || is_other {
        return None;
    }
    Some(polls != has(&NOT))
}
