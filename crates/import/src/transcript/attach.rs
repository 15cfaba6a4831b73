//! Attaches counters to the nearest trials.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use nicpoll_model::{
    ImportedBasis, ImportedFigure, ImportedReading, ImportedTrial, Side, SourcePlace,
};

use crate::transcript::setting::HostSettings;

/// A figure further after a test than this, and nearer to the next one, belongs to the next.
const FAR_BYTES: u64 = 4000;

/// Finds the nearest trial.
pub struct Near<'a> {
    /// Place and index of each trial, by place.
    by_place: Vec<(SourcePlace, usize)>,
    settings: &'a HostSettings<'a>,
}

impl<'a> Near<'a> {
    pub fn of(trials: &[ImportedTrial], settings: &'a HostSettings<'a>) -> Self {
        let places = trials.iter().enumerate();
        let mut by_place: Vec<_> = places.map(|(index, it)| (it.place, index)).collect();
        by_place.sort();
        Near { by_place, settings }
    }

    /// Names the nearest trial of each reading.
    pub fn name(&self, readings: &mut [ImportedReading], trials: &[ImportedTrial]) {
        for reading in readings {
            let index = self.to(&reading.place);
            reading.near_trial = index.map(|index| trials[index].sequence);
        }
    }

    /// The trial that contains `place`, or the nearest before or after it.
    fn to(&self, place: &SourcePlace) -> Option<usize> {
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
            // What follows a test belongs to it, unless it is far off.
            let is_near = behind <= FAR_BYTES.max(ahead);
            return Some(if is_near { *index } else { *next });
        }
        before.or(next).map(|(_, index)| *index)
    }
}

/// Most trials of one test between two readings.
const TRIALS_OF_TEST: usize = 64;

/// Gives counters whose host is not said that of all others with the same names.
pub fn like_others(readings: &mut [ImportedReading], doubted: &BTreeSet<SourcePlace>) {
    let mut known: HashMap<String, Option<String>> = HashMap::new();
    for reading in readings
        .iter()
        .filter(|it| it.is_cumulative && it.host.is_some())
    {
        let host = known
            .entry(reading.name.clone())
            .or_insert_with(|| reading.host.clone());
        host.take_if(|it| Some(&*it) != reading.host.as_ref());
    }
    // A table of which all rows are known is of that host.
    let of = |reading: &ImportedReading| known.get(&reading.name).cloned().flatten();
    let is_next = |one: &ImportedReading, other: &ImportedReading| {
        one.place.line + 1 >= other.place.line && one.host.is_none() == other.host.is_none()
    };
    for table in readings
        .chunk_by_mut(is_next)
        .filter(|it| it[0].host.is_none() && !doubted.contains(&it[0].place))
    {
        let host = of(&table[0]);
        if table.iter().all(|it| of(it) == host) {
            table.iter_mut().for_each(|it| it.host.clone_from(&host));
        }
    }
}

/// Attaches counter differences: for a counter that runs from boot, the growth between readings before and
/// after a test is a figure of that test. Skipped if another test is between them, or the counter fell.
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
                    // Only their places link two readings to a test.
                    basis: ImportedBasis::Inferred,
                    place: after.place,
                    since: Some(before.place),
                });
            }
        }
    }
}

/// The only trial between two readings on a host, and the host's side.
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

/// Parses the leading count of a value.
fn count(value: &str) -> Option<f64> {
    let digits = value.split(' ').next()?;
    digits.parse().ok()
}
