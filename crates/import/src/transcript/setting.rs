//! The setting under which a trial ran, from the text and from the user's corrections (`--map`).

use std::collections::BTreeMap;
use std::str::FromStr;

use nicpoll_model::{ImportedBasis, ImportedTrial, Side, SourcePlace};
use thiserror::Error;

use crate::lines::prose::SentenceKind;
use crate::transcript::found::{HostNames, PollingSwitch, Statement, SwitchScope, ToolSetting};

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

/// Whether an end polls, where the text says so, and whether it names the host.
struct EndState {
    is_polling: Option<bool>,
    place: SourcePlace,
    is_said: bool,
}

/// All settings in the text, by host.
pub struct HostSettings<'a> {
    by_scope: BTreeMap<&'a SwitchScope, Vec<&'a PollingSwitch>>,
    all: Vec<&'a PollingSwitch>,
    /// Settings other than polling, by host and name.
    knobs: BTreeMap<(Option<&'a str>, &'a str), Vec<&'a ToolSetting>>,
    knob_places: Vec<SourcePlace>,
}

impl<'a> HostSettings<'a> {
    pub fn of(switches: &'a [PollingSwitch], knobs: &'a [ToolSetting]) -> Self {
        let mut by_scope: BTreeMap<&SwitchScope, Vec<&PollingSwitch>> = BTreeMap::new();
        for switch in switches {
            by_scope.entry(&switch.scope).or_default().push(switch);
        }
        let mut by_name: BTreeMap<(Option<&str>, &str), Vec<&ToolSetting>> = BTreeMap::new();
        for knob in knobs {
            let key = (knob.host.as_deref(), knob.name.as_str());
            by_name.entry(key).or_default().push(knob);
        }
        HostSettings {
            by_scope,
            all: switches.iter().collect(),
            knobs: by_name,
            knob_places: knobs.iter().map(|it| it.place).collect(),
        }
    }

    /// The last switch before a place, in the same file.
    fn last(of: &[&'a PollingSwitch], place: &SourcePlace) -> Option<&'a PollingSwitch> {
        let before = of.partition_point(|it| it.place < *place);
        let last = of.get(before.checked_sub(1)?)?;
        (last.place.file == place.file).then_some(*last)
    }

    /// The last polling setting that the text gives these hosts.
    fn said_of(&self, scope: &SwitchScope, place: &SourcePlace) -> Option<&'a PollingSwitch> {
        Self::last(self.by_scope.get(scope)?, place)
    }

    /// Whether one end of a test polls, by its host's name or else by its part: what the text says last, or the
    /// opposite of what the host's next command turns on or off.
    fn of_end(&self, host: Option<&str>, side: Side, place: &SourcePlace) -> Option<EndState> {
        let scope = host.map(|host| SwitchScope::Host(String::from(host)));
        let own = scope.as_ref().and_then(|scope| self.said_of(scope, place));
        let part = self.said_of(&SwitchScope::End(side), place);
        let all = self.said_of(&SwitchScope::All, place);
        let all = all.filter(|_| host.is_some() || part.is_some());
        let said = [own, part, all].into_iter().flatten();
        let said = said.max_by_key(|it| it.place);
        let state = |switch: &PollingSwitch| EndState {
            is_polling: switch.is_polling,
            place: switch.place,
            is_said: matches!(switch.scope, SwitchScope::Host(_)),
        };
        said.map(state).or_else(|| {
            let own = self.by_scope.get(&scope?)?;
            let next = own.get(own.partition_point(|it| it.place < *place))?;
            let is_here = next.is_command && next.place.file == place.file;
            let is_polling = next.is_polling.map(|it| !it).filter(|_| is_here)?;
            Some(EndState {
                is_polling: Some(is_polling),
                place: next.place,
                is_said: false,
            })
        })
    }

    /// The setting of a trial at a place: how its ends receive, and what else was set.
    pub fn of_trial(&self, ends: TrialEnds, place: &SourcePlace) -> StatedSetting {
        let (mut name, mut basis, mut said) = self.receiving(ends, place);
        for (words, of, at) in self.other_knobs(ends, place) {
            match name.as_str() {
                NOT_SAID => (name, basis) = (words, of),
                _ => name += &format!("+{words}"),
            }
            if of != ImportedBasis::Said {
                basis = ImportedBasis::Inferred;
            }
            said = said.max(Some(at));
        }
        (name, basis, said)
    }

    /// Settings other than polling in effect at a place, on either end or on a third host. A variable's value
    /// before the first command that sets it is known if that command prints it.
    fn other_knobs(
        &self,
        ends: TrialEnds,
        place: &SourcePlace,
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
            let whose = match (end, host) {
                (Some(0), _) => String::from("sender-"),
                (Some(_), _) => String::from("receiver-"),
                (None, Some(host)) => format!("{host}-"),
                (None, None) => String::new(),
            };
            let basis = basis(is_said && end.is_some());
            Some((format!("{whose}{name}={value}"), basis, at))
        };
        self.knobs.iter().filter_map(of).collect()
    }

    /// How the ends of a trial receive.
    fn receiving(&self, ends: TrialEnds, place: &SourcePlace) -> StatedSetting {
        let name = |is_polling| if is_polling { "polling" } else { "interrupt" };
        let said = |name: &str, is_said, at| (String::from(name), basis(is_said), Some(at));
        let nothing = (String::from(NOT_SAID), ImportedBasis::Unknown, None);
        let [sender, receiver] = ends;
        let said_of = [(sender, Side::Sender), (receiver, Side::Receiver)];
        match said_of.map(|(host, side)| self.of_end(host, side, place)) {
            [Some(one), Some(other)] => {
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
                Some(is_polling) => said(name(is_polling), false, one.place),
                None => nothing,
            },
            [None, None] => {
                // Of a host in between, if of any.
                let any = || Self::last(&self.all, place);
                if let Some(one) = self.said_of(&SwitchScope::All, place).or_else(any) {
                    return match one.is_polling {
                        Some(is_polling) => said(name(is_polling), false, one.place),
                        None => nothing,
                    };
                }
                let next = self.next_command(place);
                match next.and_then(|it| Some((it.place, it.is_polling?))) {
                    Some((place, is_polling)) => said(name(!is_polling), false, place),
                    None => nothing,
                }
            }
        }
    }

    /// The next command that changes polling, if the text says nothing about it before; the opposite then
    /// applied here.
    fn next_command(&self, place: &SourcePlace) -> Option<&'a PollingSwitch> {
        let after = self.all.partition_point(|it| it.place < *place);
        let next = self.all.get(after)?;
        (next.is_command && next.place.file == place.file).then_some(*next)
    }

    /// Whether any setting changes between two places.
    pub fn changes_between(&self, one: &SourcePlace, other: &SourcePlace) -> bool {
        let at = |place: &SourcePlace| self.all.partition_point(|it| it.place < *place);
        let knobs = |place: &SourcePlace| self.knob_places.partition_point(|it| it < place);
        at(one) != at(other) || knobs(one) != knobs(other)
    }
}

/// Returns the changes of polling that sentences tell, for the hosts that they name: by name, by their part in the
/// next test, or all.
pub fn told(
    statements: &[Statement],
    hosts: &HostNames,
    trials: &[ImportedTrial],
) -> Vec<PollingSwitch> {
    let mut found = Vec::new();
    for Statement {
        place, sentence, ..
    } in statements
    {
        let Some(is_polling) = sentence.changes_to() else {
            continue;
        };
        let (named, parts) = (hosts.named_in(sentence), sentence.parts());
        let is_change = sentence.kind == SentenceKind::Plain && !sentence.introduces;
        let mut add = |scope, is_polling: Option<bool>, is_command| {
            found.push(PollingSwitch {
                place: *place,
                scope,
                is_polling,
                is_command,
            });
        };
        let after = trials.partition_point(|it| it.place < *place);
        let near = trials
            .get(after)
            .or_else(|| trials.get(after.checked_sub(1)?));
        let mut part = |side: Side, is_polling, is_command| {
            let host = near.and_then(|trial| match side {
                Side::Sender => trial.sender.clone(),
                Side::Receiver => trial.receiver.clone(),
            });
            let scope = host.map_or(SwitchScope::End(side), SwitchScope::Host);
            add(scope, Some(is_polling), is_command);
        };
        match (parts.sender, parts.receiver) {
            (true, false) | (false, true) if named.is_empty() && !parts.all => {
                let side = if parts.sender {
                    Side::Sender
                } else {
                    Side::Receiver
                };
                part(side, is_polling, is_change);
                if parts.only {
                    part(side.other(), !is_polling, false);
                }
            }
            _ if named.is_empty() || parts.all || named.len() > 1 => {
                let is_known = parts.all || !parts.only;
                add(SwitchScope::All, is_known.then_some(is_polling), is_change);
            }
            _ => {
                add(
                    SwitchScope::Host(String::from(named[0])),
                    Some(is_polling),
                    is_change,
                );
                let ends = near.map(|it| [&it.sender, &it.receiver]);
                let other = ends
                    .into_iter()
                    .flatten()
                    .flatten()
                    .find(|it| it.as_str() != named[0]);
                if let Some(other) = other.filter(|_| parts.only) {
                    add(SwitchScope::Host(other.clone()), Some(!is_polling), false);
                }
            }
        }
    }
    found
}

/// Sets the trial before each conclusion that names a setting: `=> without polling, 4 kpps`.
pub fn conclude(trials: &mut [ImportedTrial], statements: &[Statement]) {
    let mut since = SourcePlace::default();
    for Statement {
        place, sentence, ..
    } in statements
    {
        if sentence.kind != SentenceKind::Conclusion {
            continue;
        }
        let from = std::mem::replace(&mut since, *place);
        let before = trials.partition_point(|it| it.place < *place);
        let (Some(is_polling), Some(trial)) = (sentence.setting(), before.checked_sub(1)) else {
            continue;
        };
        let trial = &mut trials[trial];
        if trial.place > from && trial.place.file == place.file {
            let name = if is_polling { "polling" } else { "interrupt" };
            // Other settings stay part of the name.
            let is_receiving =
                |it: &str| it.starts_with("polling") || it == "interrupt" || it == NOT_SAID;
            let parts = trial.setting.split('+').filter(|it| !is_receiving(it));
            let parts: Vec<&str> = [name].into_iter().chain(parts).collect();
            trial.setting = parts.join("+");
            trial.setting_basis = ImportedBasis::Inferred;
            trial.setting_place = Some(*place);
        }
    }
}

/// Keys of a correction: the host of the terminal in these lines; setting, sender, receiver and workload of
/// trials that begin there; the line in which the test of these CPU states begins, and the end (`sender` or
/// `receiver`) that they show; or to skip the lines.
const KEYS: [&str; 8] = [
    "host", "setting", "sender", "receiver", "workload", "test", "end", "skip",
];

/// One correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The text of the argument.
    pub(crate) text: String,
    /// The file that it names.
    pub(crate) file: Option<String>,
    lines: Option<(u32, u32)>,
    key: &'static str,
    value: String,
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
            let key = KEYS.into_iter().find(|it| *it == key)?;
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
                value: String::from(value),
            })
        };
        read().ok_or_else(|| NoCorrection(String::from(text)))
    }
}

/// All corrections, and the files they may name.
pub struct Map<'a> {
    pub corrections: &'a [Correction],
    pub files: Vec<&'a str>,
}

impl Map<'_> {
    /// The value for a place; the last matching correction counts.
    pub fn at(&self, key: &str, place: &SourcePlace) -> Option<&str> {
        let file = self.files.get(place.file as usize)?;
        let said = self.corrections.iter().rev().find(|it| {
            it.key == key
                && it.file.as_ref().is_none_or(|name| name == file)
                && it
                    .lines
                    .is_none_or(|(first, last)| (first..=last).contains(&place.line))
        });
        said.map(|it| it.value.as_str())
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
        let map = Map {
            corrections: &corrections,
            files: vec!["a.txt"],
        };
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
