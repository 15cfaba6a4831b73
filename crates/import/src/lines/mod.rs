//! The table of recognisers for lines of tools, and the search for them in a text.
//!
//! `seen` defines what a recogniser can find; the other modules each recognise one tool's lines. A recogniser
//! reads a bounded number of bytes, so the search is linear in the length of the text. Each byte belongs to one
//! finding at most.

pub(crate) mod address;
pub(crate) mod clause;
pub(crate) mod command;
mod host;
pub(crate) mod iperf;
pub(crate) mod layout;
pub(crate) mod netrate;
pub(crate) mod prose;
pub(crate) mod seen;
mod statistics;
pub(crate) mod ttcp;

use std::sync::LazyLock;

pub(crate) use self::host::is_variable;

use self::Recogniser::{One, Several};
use crate::cursor::Cursor;
use crate::lines::seen::{Anchor, Heads, Seen};
use crate::plain::Plain;

/// More findings than any session has. Texts with more are refused, since each takes memory: a line of CPU
/// states becomes five figures, each with its place and text.
pub const FINDINGS_MAX: usize = 500_000;
/// Most heads of columns whose rows may follow without them.
const HEADS_MAX: usize = 8;

/// The number of findings left.
#[derive(Debug)]
pub struct Budget(usize);

impl Budget {
    pub fn of(findings: usize) -> Self {
        Budget(findings)
    }

    /// Takes this many; `None` when fewer are left.
    pub fn take(&mut self, findings: usize) -> Option<()> {
        self.0 = self.0.checked_sub(findings)?;
        Some(())
    }
}

/// Reads what begins at the cursor, and moves the cursor past it.
#[derive(Clone, Copy)]
enum Recogniser {
    /// A single finding between the cursor's old and new position.
    One(fn(&mut Cursor) -> Option<Seen>),
    /// Several findings, or one with another range. The number is the end of the previous finding.
    Several(fn(&mut Cursor, usize) -> Option<Vec<Anchor>>),
}

const DIGITS: &[u8] = b"0123456789";
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const WORDS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The recognisers, each with its possible first bytes. The first one that finds something wins.
static RECOGNISERS: [(&[u8], Recogniser); 36] = [
    (b"[", One(iperf::bracketed)),
    (DIGITS, One(iperf::bare_interval)),
    (
        b"ACS",
        One(|cursor| iperf::banner(cursor).map(Seen::Banner)),
    ),
    (b"R", One(iperf::reverse)),
    (b"TUSR", One(iperf::size)),
    (b"#$%>:", Several(command::prompted)),
    (b"eins./", One(command::bare)),
    (b"L", One(command::ran_on)),
    (b"t", One(ttcp::line)),
    (b"u", One(host::uptime)),
    (b"sfat", One(netrate::blast_line)),
    (DIGITS, One(netrate::receive_line)),
    (b"C%", One(host::state_line)),
    (DIGITS, One(host::bare_states)),
    (b"i", Several(statistics::interrupt_table)),
    (b"NI", Several(statistics::interface_table)),
    (LETTERS, One(statistics::link_row)),
    (b"ip", Several(statistics::traffic_rows)),
    (b"pr", Several(statistics::vmstat_rows)),
    (b"C", Several(statistics::mpstat_rows)),
    (b"A", Several(statistics::mpstat_mean)),
    (DIGITS, Several(statistics::vmstat_row)),
    (LETTERS, One(statistics::interrupt_row)),
    (b"0123456789N", One(statistics::processors_row)),
    (b"RT", Several(statistics::link_counters)),
    (b"BIOTU", One(statistics::kernel_counter)),
    (DIGITS, One(statistics::counter)),
    (DIGITS, One(statistics::buffers)),
    (b"io", Several(statistics::traffic_row)),
    (b"khnd", Several(host::variable)),
    (WORDS, Several(statistics::card_counters)),
    (LETTERS, One(host::interface_head)),
    (b"io", One(host::interface_body)),
    (b"CraFLmipf", One(host::identity)),
    (DIGITS, One(host::clock)),
    (DIGITS, One(prose::figure)),
];

/// The recognisers by the byte that they can begin with.
static BY_FIRST: LazyLock<Vec<Vec<Recogniser>>> = LazyLock::new(|| {
    let mut by_first = vec![Vec::new(); 128];
    for (first, reader) in RECOGNISERS {
        for byte in first {
            by_first[usize::from(*byte)].push(reader);
        }
    }
    by_first
});

/// Passes everything found in a text to `found`, in order. Stops with `None` when that exceeds the budget.
pub fn scan(plain: &Plain, budget: &mut Budget, mut found: impl FnMut(Anchor)) -> Option<()> {
    let mut cursor = Cursor::new(&plain.bytes, 0);
    // The end of the last finding: a prompt does not reach back beyond it.
    let mut from = 0;
    let mut at = 0;
    let mut heads: Vec<Heads> = Vec::new();
    while at < plain.bytes.len() {
        cursor.at = at;
        // Nothing begins within a number.
        if plain.bytes[at].is_ascii_digit() && cursor.behind().is_ascii_digit() {
            at += 1;
            continue;
        }
        let candidates = &BY_FIRST[usize::from(plain.bytes[at] & 127)];
        // Rows often stand without the heads that the first of them had.
        let is_row = plain.bytes[at].is_ascii_digit() && cursor.begins_line().is_some();
        let mut known = heads.iter().rev().filter(|_| is_row);
        let row = known.find_map(|it| cursor.attempt(|cursor| it.line(cursor)));
        let read = row.or_else(|| {
            candidates.iter().find_map(|reader| {
                cursor.at = at;
                match reader {
                    One(read) => read(&mut cursor).map(|seen| {
                        let at = at..cursor.at;
                        vec![Anchor { at, seen }]
                    }),
                    Several(read) => read(&mut cursor, from),
                }
            })
        });
        let Some(anchors) = read else {
            at += 1;
            continue;
        };
        budget.take(anchors.len())?;
        if let Some(Seen::Heads(new)) = anchors.first().map(|it| &it.seen) {
            heads.retain(|it| it != new);
            heads.push(new.clone());
            heads.drain(..heads.len().saturating_sub(HEADS_MAX));
        }
        let is_clock = matches!(
            anchors[..],
            [Anchor {
                seen: Seen::Clock(..),
                ..
            }]
        );
        anchors.into_iter().for_each(&mut found);
        at = cursor.at.max(at + 1);
        // A prompt may have one.
        from = if is_clock { from } else { at };
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use nicpoll_testkit::golden_cases;

    use super::*;

    /// The findings in each text, and what a command sets.
    #[test]
    fn texts_are_seen_as_recorded() {
        golden_cases("src/lines/seen.txt", |_, text| {
            let mut seen = String::new();
            scan(&Plain::of(text), &mut Budget::of(100), |anchor| {
                seen += &format!("{:?}\n", anchor.seen);
                if let Seen::Command(command) = anchor.seen {
                    for (name, value) in command::set_by(&command) {
                        seen += &format!("  {name}={value}\n");
                    }
                }
            })
            .unwrap();
            seen
        });
    }
}
