//! What stands near a trial: CPU lines, and what hosts print of themselves.
//!
//! What must hold: nearness alone ties these to a trial, and is marked as inferred. A CPU line of which nothing says
//! the host has no place. Nothing is tied across a change of the setting.

use nicpoll_model::{
    ImportedBasis, ImportedReading, ImportedTrial, Side, SourcePlace, UnplacedFigure,
};

use super::figures;
use super::found::{CpuLine, Read};
use super::setting::Settings;

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
        let before = after.checked_sub(1).map(|at| self.by_place[at]);
        let before = before.filter(|(it, _)| it.file == place.file);
        let next = self
            .by_place
            .get(after)
            .filter(|(it, _)| it.file == place.file);
        let before = before.filter(|(it, _)| !self.settings.changes_between(it, place));
        let next = next.filter(|(it, _)| !self.settings.changes_between(place, it));
        match (before, next) {
            (Some((one, index)), Some((other, next))) => {
                let behind = place.start_byte.saturating_sub(one.end_byte);
                let ahead = other.start_byte.saturating_sub(place.end_byte);
                // What follows a test is of that test, unless it stands far off.
                Some(if behind <= FAR_BYTES.max(ahead) {
                    index
                } else {
                    *next
                })
            }
            (one, other) => one
                .map(|(_, index)| index)
                .or(other.map(|(_, index)| *index)),
        }
    }
}

/// Gives each CPU line to the trials of the nearest test.
pub fn cpu(
    trials: &mut [ImportedTrial],
    lines: &[CpuLine],
    hosts: &[String],
    near: &Near,
    unplaced: &mut Vec<UnplacedFigure>,
) {
    for line in lines {
        let mut fails = |reason: &str| {
            unplaced.push(UnplacedFigure {
                printed: line.printed.clone(),
                reason: String::from(reason),
                place: line.place,
            });
        };
        let Some(nearest) = near.to(&line.place) else {
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
            figures::of_cpu(&mut trials[at], side, line);
        }
    }
}

/// The end of a trial that a CPU line was seen at.
fn side_of(line: &CpuLine, trial: &ImportedTrial, hosts: &[String]) -> Option<Side> {
    let words = line.before.to_ascii_lowercase();
    // A name in the words just before counts more than the last prompt.
    let named = hosts
        .iter()
        .filter_map(|host| Some((words.rfind(&host.to_ascii_lowercase())?, host)));
    let named = named.max().map(|(_, host)| host.as_str());
    let host = named.or(line.host.name.as_deref());
    if let Some(host) = host {
        let is = |end: &Option<String>| end.as_deref() == Some(host);
        if is(&trial.sender) {
            return Some(Side::Sender);
        }
        if is(&trial.receiver) {
            return Some(Side::Receiver);
        }
        // Where the text has two hosts, the one that is not the one is the other.
        let is_host = |end: &Option<String>| end.as_ref().is_some_and(|it| hosts.contains(it));
        return match (
            hosts.len(),
            is_host(&trial.sender),
            is_host(&trial.receiver),
        ) {
            (2, true, false) => Some(Side::Receiver),
            (2, false, true) => Some(Side::Sender),
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

/// What hosts print of themselves, each beside the trial that it stands next to.
pub fn readings(trials: &[ImportedTrial], read: Vec<Read>, near: &Near) -> Vec<ImportedReading> {
    let readings = read.into_iter().map(|it| ImportedReading {
        near_trial: near.to(&it.place).map(|index| trials[index].sequence),
        host: it
            .host
            .name
            .filter(|_| it.host.basis != ImportedBasis::Unknown),
        name: it.name,
        value: it.value,
        is_cumulative: it.is_cumulative,
        place: it.place,
    });
    readings.collect()
}
