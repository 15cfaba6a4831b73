//! The columns of the first screen.
//!
//! What must hold: all lines have the same columns, so that all bars lie on one scale, and none is wider than the page.

use std::collections::BTreeMap;

use nicpoll_model::{Study, WorkUnit};

use super::bar::BAR;
use super::differences::value;

/// Columns that the first screen is laid out for, whatever the page takes.
pub const WIDTH: usize = 80;
/// Least width of the names of workloads, with the blank behind them.
const WORKLOAD_MIN: usize = 8;
/// Width of the verdict in a word.
pub const WORD: usize = 11;
/// Width of a ratio with its interval, where names leave room for it.
const VALUE: usize = 22;
/// Width of the ratio of CPU time.
pub const CPU: usize = 9;
/// Width of the ratio of round trips.
const TRIP: usize = 7;
/// Blanks before each line.
const INDENT: usize = 2;

/// Widths that follow from what stands in the columns, so that all bars begin at one place.
#[derive(Clone, Copy)]
pub struct Columns {
    /// Names, with the blank behind them.
    pub name: usize,
    /// Ratios with their intervals.
    pub value: usize,
    /// Ratios of round trips: 0 where no workload has any.
    pub trip: usize,
}

impl Columns {
    /// The names have the room that they need as far as a page of `width` columns has it: first that behind the
    /// values goes, then the names are shortened.
    pub fn of(study: &Study, width: usize) -> Self {
        let names = study.workloads.iter();
        let names = names.map(|it| it.workload.chars().count() + 1);
        let needed = names.fold(WORKLOAD_MIN, usize::max);
        let judged = study.comparisons.iter().filter(|one| one.primary);
        let values = judged.map(|one| value(study, one).chars().count() + 1);
        let widest = values.max().unwrap_or(VALUE);
        let mut workloads = study.workloads.iter();
        let trip = match workloads.any(|it| it.unit == WorkUnit::Transactions) {
            true => TRIP,
            false => 0,
        };
        let room = width.max(WIDTH) - INDENT - WORD - BAR - CPU - trip;
        let value = VALUE.min(room.saturating_sub(needed)).max(widest);
        Columns {
            name: needed.min(room.saturating_sub(value)).max(WORKLOAD_MIN),
            value,
            trip,
        }
    }

    /// The text of a cell of the last column; empty where there is no such column.
    pub fn if_trips(self, text: &str) -> &str {
        if self.trip > 0 { text } else { "" }
    }
}

/// A name within so many columns: its beginning and its end, where names differ.
pub fn shortened(name: &str, width: usize) -> String {
    cut(name, width, width / 3)
}

/// The same with so many letters of the end.
fn cut(name: &str, width: usize, end: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= width {
        return String::from(name);
    }
    let end = &letters[letters.len() - end..];
    let begin = &letters[..width - end.len() - 1];
    begin.iter().chain(&['~']).chain(end).collect()
}

/// Names of one screen within so many columns. Different names stay different: where the usual cut makes two alike,
/// all are cut elsewhere, and where no cut keeps them apart, their positions do.
pub fn shortened_apart(names: &[&str], width: usize) -> Vec<String> {
    let ends = std::iter::once(width / 3).chain(0..width);
    for end in ends {
        let short: Vec<String> = names.iter().map(|name| cut(name, width, end)).collect();
        if are_apart(names, &short) {
            return short;
        }
    }
    let numbered = names.iter().map(|name| {
        let first = names.iter().position(|other| other == name).unwrap_or(0);
        let number = format!("~{}", first + 1);
        let room = width.saturating_sub(number.len());
        name.chars().take(room).chain(number.chars()).collect()
    });
    numbered.collect()
}

/// Whether no two different names have become one.
fn are_apart(names: &[&str], short: &[String]) -> bool {
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    names
        .iter()
        .zip(short)
        .all(|(name, short)| *known.entry(short).or_insert(name) == *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_screen_stay_apart() {
        let apart = |names: &[&str], width| {
            let short = shortened_apart(names, width);
            assert!(
                short.iter().all(|name| name.chars().count() <= width),
                "{short:?}"
            );
            short
        };
        // The usual cut keeps these apart, and leaves a short one as it is.
        assert_eq!(
            apart(&["udp", "udp-64-at-50-%", "udp-64-at-90-%"], 12),
            ["udp", "udp-64-~50-%", "udp-64-~90-%"]
        );
        // It would make these one.
        let middle = ["one-long-name-1-of-a-kind", "one-long-name-2-of-a-kind"];
        assert_eq!(shortened(middle[0], 9), shortened(middle[1], 9));
        let short = apart(&middle, 9);
        assert_ne!(short[0], short[1]);
        // One name twice is one name.
        let twice = apart(&[middle[0], middle[0], middle[1]], 9);
        assert!(twice[0] == twice[1] && twice[1] != twice[2], "{twice:?}");
        // A short name that another one is cut to.
        let trap = apart(&["ab~ef", "abcdef"], 5);
        assert_ne!(trap[0], trap[1]);
    }
}
