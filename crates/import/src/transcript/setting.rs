//! The setting under which a trial ran, from the text and from the user's corrections (`--map`).

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::str::FromStr;

use nicpoll_model::{ImportedBasis, ImportedFile, ImportedTrial, Side, SourcePlace};
use thiserror::Error;

use crate::lines::command;
use crate::transcript::found::{Authors, HostNames, PollingSwitch, SwitchScope, ToolSetting};
use crate::transcript::told::SingleSwitch;

/// A setting, how it is known, and where the text states it.
pub type StatedSetting = (String, ImportedBasis, Option<SourcePlace>);

/// Sender and receiver of a trial, as far as known.
pub type TrialEnds<'e> = [Option<&'e str>; 2];

fn basis(is_said: bool) -> ImportedBasis {
    match is_said {
        true => ImportedBasis::Said,
        false => ImportedBasis::Inferred,
    }
}

/// The setting of trials for which the text does not say how hosts receive.
pub const NOT_SAID: &str = "not-said";

/// Before what is set at one end.
const SENDERS: &str = "sender-";
const RECEIVERS: &str = "receiver-";

/// Most changes before or after a test that are looked at for one that tells what it ran with.
const AHEAD_MAX: usize = 64;

/// Whether an end polls, where the text says so, and whether it names the host.
#[derive(Default)]
struct EndState {
    is_polling: Option<bool>,
    place: SourcePlace,
    is_said: bool,
    is_told: bool,
}

/// All settings in the text, by host.
pub struct HostSettings<'a> {
    by_scope: BTreeMap<&'a SwitchScope, Vec<&'a PollingSwitch>>,
    all: Vec<&'a PollingSwitch>,
    /// Settings other than polling, by host and name.
    knobs: BTreeMap<(Option<&'a str>, &'a str), Vec<&'a ToolSetting>>,
    knob_places: Vec<SourcePlace>,
    /// What is told of single trials, by their place.
    single: BTreeMap<SourcePlace, Vec<&'a PollingSwitch>>,
    /// All hosts that are an end of a trial.
    ends: HashSet<&'a str>,
    authors: &'a Authors,
    /// Whether the text has a box between the ends of its tests, and those that it names.
    is_routed: bool,
    boxes: HashSet<&'a str>,
}

impl<'a> HostSettings<'a> {
    pub fn of(
        switches: &'a [PollingSwitch],
        single: &'a [SingleSwitch],
        knobs: &'a [ToolSetting],
        trials: &'a [ImportedTrial],
        (authors, hosts, is_routed): (&'a Authors, &'a HostNames, bool),
    ) -> Self {
        let mut by_scope: BTreeMap<&SwitchScope, Vec<&PollingSwitch>> = BTreeMap::new();
        for switch in switches {
            by_scope.entry(&switch.scope).or_default().push(switch);
        }
        let mut by_name: BTreeMap<(Option<&str>, &str), Vec<&ToolSetting>> = BTreeMap::new();
        for knob in knobs {
            let key = (knob.host.as_deref(), knob.name.as_str());
            by_name.entry(key).or_default().push(knob);
        }
        let ends = trials.iter().flat_map(|it| [&it.sender, &it.receiver]);
        let ends: HashSet<&str> = ends.flatten().map(String::as_str).collect();
        let mut by_trial: BTreeMap<SourcePlace, Vec<&PollingSwitch>> = BTreeMap::new();
        for (trial, switch) in single {
            by_trial.entry(*trial).or_default().push(switch);
        }
        HostSettings {
            by_scope,
            all: switches.iter().collect(),
            knobs: by_name,
            knob_places: knobs.iter().map(|it| it.place).collect(),
            single: by_trial,
            ends,
            authors,
            is_routed,
            boxes: hosts.boxes().map(String::as_str).collect(),
        }
    }

    /// The last switch before a place, by the same author.
    fn last(&self, of: &[&'a PollingSwitch], place: &SourcePlace) -> Option<&'a PollingSwitch> {
        let before = of.partition_point(|it| it.place < *place);
        let near = of[..before].iter().rev().take(AHEAD_MAX);
        let own = near
            .clone()
            .find(|it| self.authors.is_one(&it.place, place));
        // A mail goes on with what it quotes.
        let quoted = || near.clone().find(|it| self.authors.is_quoted(&it.place));
        own.or_else(quoted).copied()
    }

    /// The last polling setting that the text gives these hosts.
    fn said_of(&self, scope: &SwitchScope, place: &SourcePlace) -> Option<&'a PollingSwitch> {
        self.last(self.by_scope.get(scope)?, place)
    }

    /// Whether a heading names polling for what is turned on below it, before a place.
    fn is_announced(&self, heading: &PollingSwitch, place: &SourcePlace) -> bool {
        let from = self.all.partition_point(|it| it.place <= heading.place);
        let near = self.all[from..].iter().take(AHEAD_MAX);
        let mut near = near.take_while(|it| it.place < *place);
        let is_host = |it: &&&PollingSwitch| matches!(it.scope, SwitchScope::Host(_));
        let turned = near.find(|it| is_host(it) && it.is_polling == Some(true));
        heading.is_heading && heading.is_polling == Some(true) && turned.is_some()
    }

    /// Whether one end of a test polls, by its host's name or else by its part: what the text says last, or the
    /// opposite of what the host's next command turns on or off.
    fn of_end(&self, host: Option<&str>, side: Side, place: &SourcePlace) -> Option<EndState> {
        let scope = host.map(|host| SwitchScope::Host(String::from(host)));
        let own = scope.as_ref().and_then(|scope| self.said_of(scope, place));
        let part = self.said_of(&SwitchScope::End(side), place);
        let all = self.said_of(&SwitchScope::All, place);
        let all = match all.filter(|it| self.is_announced(it, place)) {
            Some(heading) => self.said_of(&SwitchScope::All, &heading.place),
            None => all,
        };
        let all = all.filter(|_| host.is_some() || part.is_some());
        let is_lasting = own.is_some_and(|it| it.is_lasting);
        let all = all.filter(|it| it.is_meant(host) && !is_lasting);
        // What a sentence says of one host, it says of that alone.
        let said = [all, part, own].into_iter().flatten();
        let said = said.max_by_key(|it| it.place);
        let of_this = self.single.get(place).into_iter().flatten().rev();
        let mut of_this = of_this.copied().filter(|it| {
            it.scope == SwitchScope::All
                || it.scope == SwitchScope::End(side)
                || Some(&it.scope) == scope.as_ref()
        });
        // A sentence behind one on several tests says more of this one.
        let is_older = |it: &&PollingSwitch| said.is_some_and(|said| said.place > it.place);
        let of_this = of_this.next();
        let is_past = of_this
            .as_ref()
            .is_some_and(|it| it.is_polling.is_none() && is_older(it));
        let said = of_this.filter(|_| !is_past).or(said);
        // A command at a bare prompt is of one host: of which, if they have names?
        let is_name = host.is_some_and(|it| !it.contains(['.', ':']));
        let is_of_one = |it: &PollingSwitch| {
            let is_bare = it.is_command && !it.is_told && it.scope == SwitchScope::All;
            is_name && is_bare && it.is_polling == Some(true)
        };
        let state = |switch: &PollingSwitch| EndState {
            is_polling: switch.is_polling.filter(|_| !is_of_one(switch)),
            place: switch.place,
            is_said: matches!(switch.scope, SwitchScope::Host(_)),
            is_told: switch.is_told && switch.scope != SwitchScope::All,
        };
        said.map(state).or_else(|| {
            let scope = scope?;
            let is_of_it = |it: &PollingSwitch| match it.scope {
                SwitchScope::All => it.is_meant(host),
                _ => it.scope == scope,
            };
            let last = || {
                self.single.range(..place).next_back()?.1.iter().find(|it| {
                    it.is_polling == Some(false)
                        && self.authors.is_one(&it.place, place)
                        && is_of_it(it)
                })
            };
            let found = self.before_next(place, &is_of_it);
            let (place, is_polling) =
                found.or_else(|| last().map(|it| (it.place, it.is_polling)))?;
            Some(EndState {
                is_polling,
                place,
                ..EndState::default()
            })
        })
    }

    /// The setting of a trial at a place: how its ends receive, and what else was set.
    pub fn of_trial(&self, ends: TrialEnds, place: &SourcePlace) -> StatedSetting {
        let (mut name, mut basis, mut said) = self.receiving(ends, place);
        for (words, of, at) in self.other_knobs(ends, place, &name) {
            name += &format!("+{words}");
            if basis == ImportedBasis::Said {
                basis = of;
            }
            said = said.max(Some(at));
        }
        (name, basis, said)
    }

    /// Settings other than polling in effect at a place, on either end or on a third host. A variable's value
    /// before the first command that sets it is known if that command prints it. By what an end polls is told of ends
    /// that do, and without a prefix if the setting says which these are.
    fn other_knobs(
        &self,
        ends: TrialEnds,
        place: &SourcePlace,
        setting: &str,
    ) -> Vec<(String, ImportedBasis, SourcePlace)> {
        let of = |((host, name), all): (&(Option<&str>, &str), &Vec<&'a ToolSetting>)| {
            let after = all.partition_point(|it| it.place < *place);
            let in_file = |it: &&&ToolSetting| it.place.file == place.file;
            let last = after.checked_sub(1).and_then(|at| all.get(at));
            let (value, at, is_said) = match last.filter(in_file) {
                Some(last) => (&last.value, last.place, true),
                None => {
                    let next = all.get(after).filter(in_file)?;
                    (next.before.as_ref()?, next.place, false)
                }
            };
            let end = ends.iter().position(|end| host.is_some() && end == host);
            let polls_by = command::polling_words(name, value);
            let is_off = value == "0" && !name.starts_with(command::TUNING)
                || match setting {
                    "interrupt" => true,
                    "polling-sender-only" => end == Some(1),
                    "polling-receiver-only" => end == Some(0),
                    _ => false,
                };
            (polls_by.is_none() || !is_off).then_some(())?;
            let is_said_whose = polls_by.is_some() && end.is_some() && setting.ends_with("-only");
            let whose = match (end, host) {
                _ if is_said_whose => String::new(),
                (Some(0), _) => String::from(SENDERS),
                (Some(_), _) => String::from(RECEIVERS),
                (None, Some(host)) => format!("{host}-"),
                (None, None) => String::new(),
            };
            let basis = basis(is_said && end.is_some());
            let is_of_polling = polls_by.is_some();
            let words = polls_by.unwrap_or_else(|| format!("{name}={value}"));
            Some(((whose, words), is_of_polling, basis, at))
        };
        let mut found: Vec<_> = self.knobs.iter().filter_map(of).collect();
        // What both ends poll by is said once.
        let all: BTreeSet<(String, String)> = found.iter().map(|it| it.0.clone()).collect();
        for ((whose, words), ..) in found.iter_mut().filter(|it| it.1) {
            let is_of = |whose: &str| all.contains(&(String::from(whose), words.clone()));
            if is_of(SENDERS) && is_of(RECEIVERS) && [SENDERS, RECEIVERS].contains(&whose.as_str())
            {
                whose.clear();
            }
        }
        let mut seen = BTreeSet::new();
        found.retain(|it| seen.insert(it.0.clone()));
        let named = found.into_iter();
        named
            .map(|((whose, words), _, basis, at)| (whose + &words, basis, at))
            .collect()
    }

    /// How the ends of a trial receive.
    fn receiving(&self, ends: TrialEnds, place: &SourcePlace) -> StatedSetting {
        let name = |is_polling| if is_polling { "polling" } else { "interrupt" };
        let said = |name: &str, is_said, at| (String::from(name), basis(is_said), Some(at));
        let nothing = (String::from(NOT_SAID), ImportedBasis::Unknown, None);
        let [sender, receiver] = ends;
        let said_of = [(sender, Side::Sender), (receiver, Side::Receiver)];
        let said_of = said_of.map(|(host, side)| self.of_end(host, side, place));
        let is_named = |end: &Option<&str>| end.is_some_and(|it| !it.contains(['.', ':']));
        // What was said of all before one end's own setting may be of that end alone.
        let is_old = |own: usize| {
            let states = said_of[own].as_ref().zip(said_of[1 - own].as_ref());
            let is_before = states.is_some_and(|(own, other)| {
                other.is_told && own.is_polling != other.is_polling && own.place < other.place
            });
            is_before && !is_named(&ends[own])
        };
        let old = [is_old(0), is_old(1)];
        let [one, other] = said_of;
        let said_of = [one.filter(|_| !old[0]), other.filter(|_| !old[1])];
        // A box in between that polls, and ends that are not said to.
        let is_any = said_of
            .iter()
            .flatten()
            .any(|it| it.is_polling != Some(false));
        let is_unnamed = ends.contains(&None);
        // What was said of all before the box's own setting is of the box.
        let is_of_box = |at: SourcePlace| {
            let mut ends = said_of.iter().flatten();
            self.is_routed && !is_unnamed && ends.all(|it| !it.is_said && it.place < at)
        };
        match self.box_in_between(ends, place) {
            Some((at, polls)) if is_of_box(at) || polls && !is_any && self.is_routed => {
                return said(name(polls), false, at);
            }
            Some((_, true)) if !is_any => return nothing,
            None if self.is_elsewhere(ends, place).is_some_and(is_of_box) => return nothing,
            _ => {}
        }
        match said_of {
            [Some(one), Some(other)] if one.is_polling.or(other.is_polling).is_some() => {
                let is_said = one.is_said && other.is_said;
                let name = match (one.is_polling, other.is_polling) {
                    (Some(true), Some(false)) => "polling-sender-only",
                    (Some(false), Some(true)) => "polling-receiver-only",
                    (Some(both), Some(_)) => name(both),
                    _ => return nothing,
                };
                said(name, is_said, one.place.max(other.place))
            }
            [Some(one), None] | [None, Some(one)] => match one.is_polling {
                // The text knows two ends, and does not tell it of the other one.
                Some(true) if one.is_told || ends.iter().all(is_named) => nothing,
                Some(was) if self.is_other_since(was, &one.place, place) => nothing,
                Some(is_polling) => said(name(is_polling), false, one.place),
                None => nothing,
            },
            _ => nothing,
        }
    }

    /// Whether a host was told otherwise since a place, which may be the end that a trial does not name.
    fn is_other_since(&self, was: bool, since: &SourcePlace, place: &SourcePlace) -> bool {
        let until = self.all.partition_point(|it| it.place < *place);
        let near = self.all[..until].iter().rev().take(AHEAD_MAX);
        let mut near = near.take_while(|it| it.place > *since);
        let is_other = |it: &PollingSwitch| it.is_polling == Some(!was);
        let hosts = self.by_scope.iter().take(AHEAD_MAX);
        let mut hosts = hosts.filter(|it| matches!(it.0, SwitchScope::Host(_)));
        hosts.any(|it| self.last(it.1, place).is_some_and(is_other))
            || near.any(|it| is_other(it) && self.authors.is_one(&it.place, place))
    }

    /// Whether a test runs without a box that was switched.
    fn is_without(&self, switch: &PollingSwitch, place: &SourcePlace) -> bool {
        let of_this = self.single.get(place).into_iter().flatten();
        let mut without = of_this.filter(|it| it.is_polling.is_none());
        without.any(|it| it.scope == switch.scope || it.scope == SwitchScope::All)
    }

    /// Where a host was set last that is an end of other trials, and not of this one.
    fn is_elsewhere(&self, ends: TrialEnds, place: &SourcePlace) -> Option<SourcePlace> {
        let last = self.last(&self.all, place)?;
        let is_it = |host: &str| self.ends.contains(host) && !ends.contains(&Some(host));
        matches!(&last.scope, SwitchScope::Host(host) if is_it(host)).then_some(last.place)
    }

    /// Where the last host that is an end of no trial was turned to polling or interrupts, and to which, if nothing was
    /// said of others since.
    fn box_in_between(&self, ends: TrialEnds, place: &SourcePlace) -> Option<(SourcePlace, bool)> {
        let is_it = |host: &str| {
            let is_box = self.boxes.contains(host) && !ends.contains(&Some(host));
            is_box || !self.ends.contains(host)
        };
        let is_box =
            |it: &&&PollingSwitch| matches!(&it.scope, SwitchScope::Host(host) if is_it(host));
        let of_this = self.single.get(place).into_iter().flatten();
        if let Some((of_this, polls)) = of_this
            .rev()
            .find(is_box)
            .and_then(|it| Some((it, it.is_polling?)))
        {
            return Some((of_this.place, polls));
        }
        // `The ends stay on interrupts` may follow.
        let before = self.all.partition_point(|it| it.place < *place);
        let near = self.all[..before].iter().rev().take(AHEAD_MAX);
        let mut near = near.filter(|it| self.authors.is_one(&it.place, place));
        let is_end_off = |it: &PollingSwitch| {
            let is_end = |host: &str| self.ends.contains(host) && !self.boxes.contains(host);
            it.is_polling == Some(false)
                && match &it.scope {
                    SwitchScope::Host(host) => is_end(host),
                    SwitchScope::End(_) => true,
                    SwitchScope::All => false,
                }
        };
        // A case sets several hosts at once.
        let at = near.find(|it| !is_end_off(it))?.place;
        let until = self.all.partition_point(|it| it.place <= at);
        let near = self.all[..until].iter().rev().take(AHEAD_MAX);
        let mut near = near.take_while(|it| it.place == at);
        let last = near.find(|it| matches!(&it.scope, SwitchScope::Host(host) if is_it(host)))?;
        let polls = last.is_polling.filter(|_| !self.is_without(last, place))?;
        Some((at, polls))
    }

    /// The opposite of what the next command, or sentence that tells a change, turns on or off: that applied before.
    fn before_next(
        &self,
        place: &SourcePlace,
        is_of: &dyn Fn(&PollingSwitch) -> bool,
    ) -> Option<(SourcePlace, Option<bool>)> {
        let later = self.all[self.all.partition_point(|it| it.place < *place)..].iter();
        let later = later.take(AHEAD_MAX);
        let mut later = later.filter(|it| self.authors.is_one(&it.place, place) && is_of(it));
        let next = later.find(|it| it.is_command || it.is_polling.is_none())?;
        // Who turns it off everywhere says only that some polled.
        let is_open =
            next.is_told && next.scope == SwitchScope::All && next.is_polling == Some(false);
        let was = next.is_polling.filter(|_| !is_open);
        was.map(|it| (next.place, Some(!it)))
    }

    /// Whether any setting changes between two places.
    pub fn changes_between(&self, one: &SourcePlace, other: &SourcePlace) -> bool {
        let at = |place: &SourcePlace| self.all.partition_point(|it| it.place < *place);
        let knobs = |place: &SourcePlace| self.knob_places.partition_point(|it| it < place);
        at(one) != at(other) || knobs(one) != knobs(other)
    }
}

/// Keys of a correction: the host of the terminal in these lines; setting, sender, receiver and workload of
/// trials that begin there; the line in which the test of these CPU states begins, and the end (`sender` or
/// `receiver`) that they show; or to skip the lines. Next to each, why one may change nothing.
const KEYS: [(&str, &str); 8] = [
    ("host", NOTHING),
    ("setting", NO_TEST),
    ("sender", NO_TEST),
    ("receiver", NO_TEST),
    ("workload", NO_TEST),
    ("test", NO_SCREEN),
    ("end", NO_SCREEN),
    ("skip", NOTHING),
];
const NOTHING: &str = "nothing is read in these lines";
const NO_TEST: &str = "no test begins in these lines";
const NO_SCREEN: &str = "these lines show no CPU states";

/// One correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The text of the argument.
    pub(crate) text: String,
    /// The file that it names.
    pub(crate) file: Option<String>,
    lines: Option<(u32, u32)>,
    key: &'static str,
    /// Why it changes nothing, if it does not.
    pub(crate) idle: &'static str,
    value: String,
}

impl Correction {
    /// Whether a file has what it names.
    pub(crate) fn is_of(&self, file: &ImportedFile) -> bool {
        let is_named = self.file.as_ref().is_none_or(|name| *name == file.name);
        is_named && self.lines.is_none_or(|(first, _)| first <= file.lines)
    }
}

/// A correction that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "'{0}' is not a correction: give [[FILE:]FIRST[-LAST]:]KEY=VALUE, as in 120-180:setting=polling, where KEY is host, \
     setting, sender, receiver, workload, test or end; or FIRST-LAST:skip"
)]
pub struct NoCorrection(String);

impl FromStr for Correction {
    type Err = NoCorrection;

    fn from_str(text: &str) -> Result<Self, NoCorrection> {
        let read = || {
            let (before, value) = text.split_once('=').unwrap_or((text, ""));
            let (place, key) = before.rsplit_once(':').unwrap_or(("", before));
            let (key, idle) = KEYS.into_iter().find(|it| it.0 == key)?;
            let is_skip = key == "skip";
            let is_plain = value.bytes().all(|it| it.is_ascii_graphic() && it != b':');
            let is_of_key = match key {
                "test" => value.parse::<u32>().is_ok(),
                "end" => ["sender", "receiver"].contains(&value),
                _ => true,
            };
            let is_whole = is_skip == value.is_empty()
                && is_plain
                && is_of_key
                && !(is_skip && place.is_empty());
            is_whole.then_some(())?;
            let starts_so = |it: &str| it.starts_with(|letter: char| letter.is_ascii_digit());
            let (file, lines) = match place.rsplit_once(':') {
                Some(both) => both,
                None if starts_so(place) => ("", place),
                None => (place, ""),
            };
            let lines = match lines {
                "" => None,
                lines => {
                    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
                    let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
                    (1 <= first && first <= last).then_some(())?;
                    Some((first, last))
                }
            };
            Some(Correction {
                text: String::from(text),
                file: Some(String::from(file)).filter(|it| !it.is_empty()),
                lines,
                key,
                idle,
                value: String::from(value),
            })
        };
        read().ok_or_else(|| NoCorrection(String::from(text)))
    }
}

/// All corrections, with whether each was of anything, and the files they may name.
pub struct Map<'a> {
    corrections: Vec<(&'a Correction, Cell<bool>)>,
    files: Vec<&'a str>,
}

impl<'a> Map<'a> {
    pub fn of(corrections: &'a [Correction], files: impl Iterator<Item = &'a str>) -> Self {
        Map {
            corrections: corrections.iter().map(|it| (it, Cell::default())).collect(),
            files: files.collect(),
        }
    }

    /// The value for a place; the last matching correction counts.
    pub fn at(&self, key: &str, place: &SourcePlace) -> Option<&str> {
        let file = self.files.get(place.file as usize)?;
        let is_here = |it: &Correction| {
            it.key == key
                && it.file.as_ref().is_none_or(|name| name == file)
                && it
                    .lines
                    .is_none_or(|(first, last)| (first..=last).contains(&place.line))
        };
        let of = self.corrections.iter().filter(|it| is_here(it.0));
        let said = of.inspect(|it| it.1.set(true)).last();
        said.map(|it| it.0.value.as_str())
    }

    /// The first correction of lines in which nothing was asked for it.
    pub fn idle(&self) -> Option<&Correction> {
        let mut of = self.corrections.iter();
        of.find(|it| it.0.lines.is_some() && !it.1.get())
            .map(|it| it.0)
    }
}

#[cfg(test)]
mod map_tests {
    use super::*;

    #[test]
    fn corrections_are_of_lines_of_a_file_or_of_all() {
        let place = |line| SourcePlace {
            file: 0,
            line,
            ..SourcePlace::default()
        };
        let corrections = [
            "setting=interrupt",
            "5-7:setting=polling",
            "b.txt:6:setting=x",
        ];
        let corrections = corrections.map(|text| text.parse::<Correction>().unwrap());
        let map = Map::of(&corrections, ["a.txt"].into_iter());
        let setting = |line| map.at("setting", &place(line));
        assert_eq!(
            [setting(4), setting(6), setting(8)],
            [Some("interrupt"), Some("polling"), Some("interrupt")]
        );
        for wrong in [
            "",
            "setting",
            "setting=",
            "colour=red",
            "7-5:setting=x",
            "0:host=a",
            "skip",
            "1:skip=x",
            "host=a b",
            "7:test=first",
            "7:end=middle",
        ] {
            assert!(wrong.parse::<Correction>().is_err(), "{wrong}");
        }
    }
}
