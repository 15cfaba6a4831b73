//! Settings worth trying on an interface: what `nicpoll tune` races.
//!
//! Each is what a user would type after `nicpoll set IF`; its values come from the options of the [table](super::table).

use super::table::{options, parse_list};
use crate::request::{KnobValues, POLLING_PERIOD_NS};

/// A setting to try.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its name in tables.
    pub name: String,
    /// Its words for `nicpoll set IF`.
    pub words: String,
    /// Its values.
    pub values: KnobValues,
}

const PERIODS: [&str; 6] = ["20us", "50us", "100us", "200us", "500us", "1ms"];

/// The words for interrupts without deferral.
const INTERRUPTS: &str = "--defer=0 --period=0s";

/// Deferral that gives the interrupt back when no packet comes, threads that never sleep, and suspension by programs
/// that poll.
const OTHERS: [(&str, &str); 4] = [
    ("deferral 20us", "--defer=2 --period=20us"),
    ("deferral 100us", "--defer=2 --period=100us"),
    ("suspension 20ms", "--defer=2 --period=200us --suspend=20ms"),
    ("busy polling", "--defer=0 --period=0s --busy-poll"),
];

/// What people turn first on a card: its interrupt moderation. The second of a name is for drivers that adapt nothing.
const OF_CARDS: [(&str, &str); 7] = [
    ("adaptive moderation", "adaptive=on"),
    ("moderation 0us", "adaptive=off,rx-usecs=0"),
    ("moderation 0us", "rx-usecs=0"),
    ("moderation 20us", "adaptive=off,rx-usecs=20"),
    ("moderation 20us", "rx-usecs=20"),
    ("moderation 100us", "adaptive=off,rx-usecs=100"),
    ("moderation 100us", "rx-usecs=100"),
];

/// Returns the settings to try on a card or another interface. `cpus` are those to which threads may be bound. Of
/// several with one name the first that can be set is meant.
pub fn candidates(is_card: bool, cpus: &[u32]) -> Vec<Candidate> {
    let mut all = Vec::new();
    for (suffix, threaded) in [("", ""), (", threaded", " --threaded")] {
        all.push((
            format!("interrupts{suffix}"),
            format!("{INTERRUPTS}{threaded}"),
        ));
        all.extend(PERIODS.map(|period| {
            let words = format!("polling --period={period}{threaded}");
            (format!("polling {period}{suffix}"), words)
        }));
    }
    let others = OTHERS.map(|(name, words)| (String::from(name), String::from(words)));
    let of_cards = OF_CARDS.map(|(name, list)| {
        let words = format!("{INTERRUPTS} --moderation={list}");
        (String::from(name), words)
    });
    let bound = cpus.iter().map(|cpu| {
        let words = format!("polling --period=200us --threaded --threaded-cpus={cpu}");
        (format!("polling 200us, threaded on CPU {cpu}"), words)
    });
    all.extend(others);
    all.extend(of_cards.into_iter().filter(|_| is_card));
    all.extend(bound);
    all.into_iter().map(Candidate::of).collect()
}

impl Candidate {
    fn of((name, words): (String, String)) -> Self {
        let mut values = KnobValues::new();
        for word in words.split(' ') {
            let (name, text) = word.split_once('=').unwrap_or((word, ""));
            match name.trim_start_matches("--") {
                "polling" => values = KnobValues::polling(POLLING_PERIOD_NS),
                "moderation" => {
                    let list = parse_list(text, |row| row.is_moderation());
                    let list = list.expect("the table's own words are read by its test");
                    list.into_iter()
                        .for_each(|(row, value)| values.insert(row, value));
                }
                long => {
                    let mut known = options();
                    let (row, option) = known
                        .find(|(_, option)| option.long == long)
                        .expect("the table's own options are found by its test");
                    let value = (option.parse)(text);
                    values.insert(
                        row,
                        value.expect("the table's own values are read by its test"),
                    );
                }
            }
        }
        Candidate {
            name,
            words,
            values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_can_be_read_and_sets_something_else() {
        let all = candidates(true, &[0, 1]);
        for (at, one) in all.iter().enumerate() {
            assert!(!one.values.is_empty(), "{}", one.words);
            let is_same = |other: &Candidate| other.values == one.values;
            assert!(!all[..at].iter().any(is_same), "{}", one.words);
        }
        let without = candidates(false, &[]);
        assert!(
            without
                .iter()
                .all(|it| it.values.iter().all(|(row, _)| !row.is_of_card()))
        );
    }
}
