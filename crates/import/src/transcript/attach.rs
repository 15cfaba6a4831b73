//! Attaches CPU states and counters to the trials that they are next to.

use std::collections::BTreeMap;

use nicpoll_model::{
    ImportedBasis, ImportedFigure, ImportedReading, ImportedTrial, Side, SourcePlace,
    UnplacedFigure,
};

use crate::transcript::found;
use crate::transcript::found::{CpuLine, HostNames, said};
use crate::transcript::setting::Settings;

/// What stands further behind a test than this, and nearer to the next one, is of the next.
const FAR_BYTES: u64 = 4000;

/// The trials by place, for those who look for the nearest.
pub struct Near<'a> {
    /// Place and index of each, by place.
    by_place: Vec<(SourcePlace, usize)>,
    settings: &'a Settings<'a>,
}

impl<'a> Near<'a> {
    pub fn of(trials: &[ImportedTrial], settings: &'a Settings<'a>) -> Self {
        let places = trials.iter().enumerate();
        let mut by_place: Vec<_> = places.map(|(index, it)| (it.place, index)).collect();
        by_place.sort();
        Near { by_place, settings }
    }

    /// The trial that a place stands in, behind, or before.
    pub fn to(&self, place: &SourcePlace) -> Option<usize> {
        let after = self.by_place.partition_point(|(it, _)| it < place);
        let at = |at: usize| {
            let found = self.by_place.get(at);
            found.filter(|(it, _)| it.file == place.file)
        };
        let changes = |one, other| self.settings.changes_between(one, other);
        let before = after.checked_sub(1).and_then(at);
        let before = before.filter(|(it, _)| !changes(it, place));
        let next = at(after).filter(|(it, _)| !changes(place, it));
        if let (Some((one, index)), Some((other, next))) = (before, next) {
            let behind = place.start_byte.saturating_sub(one.end_byte);
            let ahead = other.start_byte.saturating_sub(place.end_byte);
            // What follows a test is of that test, unless it stands far off.
            let is_near = behind <= FAR_BYTES.max(ahead);
            return Some(if is_near { *index } else { *next });
        }
        before.or(next).map(|(_, index)| *index)
    }
}

/// Gives each CPU line to the trials of the nearest test.
pub fn cpu(
    trials: &mut [ImportedTrial],
    lines: &[CpuLine],
    hosts: &HostNames,
    near: &Near,
    unplaced: &mut Vec<UnplacedFigure>,
) {
    for line in lines {
        let (printed, place) = (&line.states.printed, line.states.place);
        let mut fails = |reason: &str| unplaced.push(found::unplaced(printed, reason, place));
        let Some(nearest) = near.to(&place) else {
            fails("no test stands near it under the same setting");
            continue;
        };
        let test = trials[nearest].test;
        let Some(one) = side_of(line, &trials[nearest], hosts) else {
            fails("nothing says on which host it was seen");
            continue;
        };
        // Both ways of a test ran at once: its hosts are the same.
        let ways = (nearest.saturating_sub(3)..(nearest + 4).min(trials.len()))
            .filter(|at| trials[*at].test == test);
        let ways: Vec<usize> = ways.collect();
        let sender = trials[nearest].sender.clone();
        for at in ways {
            let is_other_way = at != nearest && trials[at].sender != sender;
            let side = if is_other_way { one.other() } else { one };
            of_cpu(&mut trials[at], side, line);
        }
    }
}

/// The end of a trial that a CPU line was seen at.
fn side_of(line: &CpuLine, trial: &ImportedTrial, hosts: &HostNames) -> Option<Side> {
    let words = line.before.to_ascii_lowercase();
    // A name in the words just before counts more than the last prompt.
    let host = hosts.last_in(&words).or(line.host.name.as_deref());
    if let Some(host) = host {
        let is = |end: &Option<String>| end.as_deref() == Some(host);
        if is(&trial.sender) {
            return Some(Side::Sender);
        }
        if is(&trial.receiver) {
            return Some(Side::Receiver);
        }
        // Where the text has two hosts, the one that is not the one is the other.
        let is_host = |end: &Option<String>| end.as_ref().is_some_and(|it| hosts.has(it));
        let known = [&trial.sender, &trial.receiver].map(is_host);
        return match (hosts.count(), known) {
            (2, [true, false]) => Some(Side::Receiver),
            (2, [false, true]) => Some(Side::Sender),
            _ => None,
        };
    }
    let last = |names: &[&str]| names.iter().filter_map(|name| words.rfind(name)).max();
    let (sender, receiver) = (last(&["sender", "client"]), last(&["receiver", "server"]));
    match (sender, receiver) {
        (None, None) => None,
        (sender, receiver) if sender > receiver => Some(Side::Sender),
        _ => Some(Side::Receiver),
    }
}

/// Trials that may lie between two readings: those of one test.
const TRIALS_OF_TEST: usize = 64;

/// Counters that count from a host's start, read before a test and after it: by how much they grew is a figure of that
/// test. Nothing where another test lies between the readings as well, or a counter has fallen.
pub fn differences(trials: &mut [ImportedTrial], read: &[ImportedReading]) {
    let mut counters: BTreeMap<(Option<&str>, &str), Vec<&ImportedReading>> = BTreeMap::new();
    for one in read.iter().filter(|it| it.is_cumulative) {
        let key = (one.host.as_deref(), one.name.as_str());
        counters.entry(key).or_default().push(one);
    }
    for ((host, name), readings) in counters {
        for pair in readings.windows(2) {
            let [before, after] = [pair[0], pair[1]];
            let Some((trial, side)) = test_between(trials, before, after, host) else {
                continue;
            };
            if let [Some(from), Some(to)] = [before, after].map(|it| count(&it.value))
                && to >= from
            {
                trials[trial].figures.push(ImportedFigure {
                    name: format!("difference of {name}"),
                    side,
                    value: to - from,
                    printed: format!("{} -> {}", before.value, after.value),
                    // Nothing but their places ties two readings to a test.
                    basis: ImportedBasis::Inferred,
                    place: after.place,
                    since: Some(before.place),
                });
            }
        }
    }
}

/// The trial that alone lies between two readings on a host, and the side that the host is.
fn test_between(
    trials: &[ImportedTrial],
    before: &ImportedReading,
    after: &ImportedReading,
    host: Option<&str>,
) -> Option<(usize, Option<Side>)> {
    let (before, after) = (before.place, after.place);
    let first = trials.partition_point(|it| it.place < before);
    let end = trials.partition_point(|it| it.place < after);
    let within = trials.get(first..end)?;
    let is_one = within.len() <= TRIALS_OF_TEST
        && within.iter().all(|it| {
            it.test == within[0].test
                && it.place.file == before.file
                && it.place.end_byte <= after.start_byte
        });
    // A test that began before the first reading is in the difference, too.
    let is_clear = first.checked_sub(1).is_none_or(|last| {
        let last = trials[last].place;
        last.file != before.file || last.end_byte <= before.start_byte
    });
    if within.is_empty() || !is_one || !is_clear || before.file != after.file {
        return None;
    }
    let Some(host) = host else {
        return Some((first, None));
    };
    within.iter().enumerate().find_map(|(at, trial)| {
        let is = |end: &Option<String>| end.as_deref() == Some(host);
        let side = match (is(&trial.sender), is(&trial.receiver)) {
            (true, _) => Side::Sender,
            (_, true) => Side::Receiver,
            _ => return None,
        };
        Some((first + at, Some(side)))
    })
}

/// The count that a value begins with.
fn count(value: &str) -> Option<f64> {
    let digits = value.split(' ').next()?;
    digits.parse().ok()
}

/// Adds a line of CPU states.
pub fn of_cpu(trial: &mut ImportedTrial, side: Side, line: &CpuLine) {
    const NAMES: [&str; 5] = [
        "cpu_user_ratio",
        "cpu_nice_ratio",
        "cpu_system_ratio",
        "cpu_interrupt_ratio",
        "cpu_idle_ratio",
    ];
    for (name, value) in NAMES.into_iter().zip(line.states.value) {
        trial.figures.push(ImportedFigure {
            // Nothing but its place ties a line of top to a test.
            basis: ImportedBasis::Inferred,
            ..said(Some(side), name, value, &line.states)
        });
    }
}
