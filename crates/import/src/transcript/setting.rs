//! The setting under which a trial ran, from the text and from the user's corrections (`--map`).

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use nicpoll_model::{ImportedBasis, SourcePlace};
use thiserror::Error;

use crate::transcript::found::{PollingSwitch, ToolSetting};

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

/// All settings in the text, by host.
pub struct HostSettings<'a> {
    by_host: HashMap<Option<&'a str>, Vec<&'a PollingSwitch>>,
    all: Vec<&'a PollingSwitch>,
    /// Settings other than polling, by host and name.
    knobs: BTreeMap<(Option<&'a str>, &'a str), Vec<&'a ToolSetting>>,
    knob_places: Vec<SourcePlace>,
}

impl<'a> HostSettings<'a> {
    pub fn of(switches: &'a [PollingSwitch], knobs: &'a [ToolSetting]) -> Self {
        let mut by_host: HashMap<Option<&str>, Vec<&PollingSwitch>> = HashMap::new();
        for switch in switches {
            by_host
                .entry(switch.host.as_deref())
                .or_default()
                .push(switch);
        }
        let mut by_name: BTreeMap<(Option<&str>, &str), Vec<&ToolSetting>> = BTreeMap::new();
        for knob in knobs {
            let key = (knob.host.as_deref(), knob.name.as_str());
            by_name.entry(key).or_default().push(knob);
        }
        HostSettings {
            by_host,
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

    /// The last polling setting that the text gives this host, or all hosts.
    fn of_host(&self, host: Option<&str>, place: &SourcePlace) -> Option<&'a PollingSwitch> {
        let said = |host: Option<&str>| Self::last(self.by_host.get(&host)?, place);
        let own = host.and_then(|host| said(Some(host)));
        let all = said(None);
        [own, all].into_iter().flatten().max_by_key(|it| it.place)
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
        match ends.map(|host| self.of_host(Some(host?), place)) {
            [Some(one), Some(other)] => {
                let is_said = [one, other].iter().all(|it| it.host.is_some());
                let name = match (one.is_polling, other.is_polling) {
                    (true, false) => "polling-sender-only",
                    (false, true) => "polling-receiver-only",
                    (both, _) => name(both),
                };
                said(name, is_said, one.place.max(other.place))
            }
            [Some(one), None] | [None, Some(one)] => said(name(one.is_polling), false, one.place),
            [None, None] => {
                let any = || Self::last(&self.all, place).filter(|_| ends == [None; 2]);
                if let Some(one) = self.of_host(None, place).or_else(any) {
                    return said(name(one.is_polling), false, one.place);
                }
                match self.next_command(ends, place) {
                    Some(next) => said(name(!next.is_polling), false, next.place),
                    None => (String::from(NOT_SAID), ImportedBasis::Unknown, None),
                }
            }
        }
    }

    /// The next command that changes polling, if the text says nothing about it before; the opposite then
    /// applied here.
    fn next_command(&self, ends: TrialEnds, place: &SourcePlace) -> Option<&'a PollingSwitch> {
        let after = self.all.partition_point(|it| it.place < *place);
        let is_of = |it: &&&PollingSwitch| {
            let host = it.host.as_deref();
            host.is_none() || ends == [None; 2] || ends.contains(&host)
        };
        let next = self.all.get(after..)?.iter().take(64).find(is_of)?;
        (next.is_command && next.place.file == place.file).then_some(*next)
    }

    /// Whether any setting changes between two places.
    pub fn changes_between(&self, one: &SourcePlace, other: &SourcePlace) -> bool {
        let at = |place: &SourcePlace| self.all.partition_point(|it| it.place < *place);
        let knobs = |place: &SourcePlace| self.knob_places.partition_point(|it| it < place);
        at(one) != at(other) || knobs(one) != knobs(other)
    }
}

/// Keys of a correction: the host of the terminal in these lines; setting, sender, receiver and workload of
/// trials that begin there; or to skip the lines.
const KEYS: [&str; 6] = ["host", "setting", "sender", "receiver", "workload", "skip"];

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
     setting, sender, receiver or workload; or FIRST-LAST:skip"
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
            let is_whole =
                is_skip == value.is_empty() && is_plain && !(is_skip && place.is_empty());
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
        ] {
            assert!(wrong.parse::<Correction>().is_err(), "{wrong}");
        }
    }
}
