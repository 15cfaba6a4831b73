//! What whoever imports a text knows better: `120-180:setting=polling`.

use std::str::FromStr;

use nicpoll_model::SourcePlace;
use thiserror::Error;

/// What is said of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKey {
    /// The host whose terminal the lines show.
    Host,
    /// The setting of trials that begin there.
    Setting,
    /// The host that sends in trials that begin there.
    Sender,
    /// The host that receives in trials that begin there.
    Receiver,
    /// The workload of trials that begin there.
    Workload,
    /// The lines are not read.
    Skip,
}

const KEYS: [(&str, MapKey); 6] = [
    ("host", MapKey::Host),
    ("setting", MapKey::Setting),
    ("sender", MapKey::Sender),
    ("receiver", MapKey::Receiver),
    ("workload", MapKey::Workload),
    ("skip", MapKey::Skip),
];

/// One correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    text: String,
    file: Option<String>,
    lines: Option<(u32, u32)>,
    key: MapKey,
    value: String,
}

/// A correction that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "'{0}' is no correction: give [[FILE:]FIRST[-LAST]:]KEY=VALUE, as in 120-180:setting=polling, where KEY is host, \
     setting, sender, receiver or workload; or FIRST-LAST:skip"
)]
pub struct NoCorrection(String);

impl FromStr for Correction {
    type Err = NoCorrection;

    fn from_str(text: &str) -> Result<Self, NoCorrection> {
        let read = || {
            let (before, value) = text.split_once('=').unwrap_or((text, ""));
            let (place, key) = before.rsplit_once(':').unwrap_or(("", before));
            let (_, key) = *KEYS.iter().find(|(name, _)| *name == key)?;
            let is_skip = key == MapKey::Skip;
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

/// All of them, for the files that they are about.
pub struct Map<'a> {
    pub corrections: &'a [Correction],
    pub files: Vec<&'a str>,
}

impl Map<'_> {
    /// What is said of a place; the last word counts.
    pub fn at(&self, key: MapKey, place: &SourcePlace) -> Option<&str> {
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

impl Correction {
    /// As it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The file that it names.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }
}

#[cfg(test)]
mod tests {
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
        let setting = |line| map.at(MapKey::Setting, &place(line));
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
