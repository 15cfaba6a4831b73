//! The columns of the first screen.
//!
//! What must hold: all lines have the same columns, so that all bars lie on one scale, and none is wider than the page.

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
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= width {
        return String::from(name);
    }
    let end = &letters[letters.len() - width / 3..];
    let begin = &letters[..width - end.len() - 1];
    begin.iter().chain(&['~']).chain(end).collect()
}
