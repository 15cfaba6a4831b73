//! Transcripts of terminals, as web pages and mails have them: prompts, commands and the output of several tools, in
//! any order and however broken, become trials with figures.
//!
//! What must hold: nothing is guessed. A figure is in a trial because the text says so, or because it stands near one,
//! which is marked; any other figure is in the list of those without a place. Every figure has its line and its bytes
//! in the source. Any text is read in time and memory that follow from its length.
//!
//! Three stages: [`plain`] makes letters alike and keeps the way back; [`anchor`] finds what tools print, anywhere in
//! a line, and hands it to [`walk`] one by one; what follows puts it together.

mod anchor;
mod attach;
mod bits;
mod block;
mod command;
mod cursor;
mod figures;
mod found;
mod host;
pub(crate) mod iperf;
mod knob;
#[cfg(test)]
mod lengths;
mod loose;
mod map;
pub(crate) mod netrate;
mod plain;
mod setting;
mod statistics;
mod table;
mod top;
mod trials;
mod walk;

use std::collections::{HashMap, HashSet};

use nicpoll_model::{
    IMPORTED_SCHEMA, Imported, ImportedBasis, ImportedFile, ImportedTrial, Origin, SourcePlace,
    TrafficKind, UnplacedFigure,
};
use thiserror::Error;

pub use map::{Correction, NoCorrection};

pub(crate) use anchor::Seen;
pub(crate) use cursor::Cursor;

use anchor::{Budget, FINDINGS_MAX};
use block::Host;
use found::{Blast, Found, Stretch};
use map::{Map, MapKey};
use plain::Plain;
use setting::Settings;
use walk::Walk;

/// A longer text is refused, in bytes.
pub const TRANSCRIPT_MAX_BYTES: usize = 64 << 20;

/// Runs on either side that lines of netreceive are held against.
const REACH: usize = 16;

/// Why transcripts cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TranscriptError {
    /// It is too long.
    #[error("{0} is longer than 64 MiB; cut it into parts, and import each")]
    Long(String),
    /// They hold more than a study can.
    #[error(
        "in {0} the texts come to more than {max} lines of tools; cut them into parts, and import each",
        max = FINDINGS_MAX
    )]
    Full(String),
    /// A correction is about a file that is not imported.
    #[error("'{0}' names a file that is not among those to import")]
    NoFile(String),
}

/// Reads texts, each with the name of its file, as one study.
///
/// # Errors
/// [`TranscriptError`] when a text is too long, or a correction is about none of them.
pub fn read_transcripts(
    files: &[(String, String)],
    corrections: &[Correction],
    origin: &Origin,
) -> Result<Imported, TranscriptError> {
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    if let Some(wrong) = corrections
        .iter()
        .find(|it| it.file().is_some_and(|file| !names.contains(&file)))
    {
        return Err(TranscriptError::NoFile(String::from(wrong.text())));
    }
    let map = Map {
        corrections,
        files: names,
    };
    let mut walked = Found::default();
    let mut budget = Budget::of(FINDINGS_MAX);
    let mut facts = Vec::new();
    let mut tables = Vec::new();
    for ((name, text), file) in files.iter().zip(0..) {
        if text.len() > TRANSCRIPT_MAX_BYTES {
            return Err(TranscriptError::Long(name.clone()));
        }
        let full = || TranscriptError::Full(name.clone());
        let plain = Plain::of(text);
        Walk::through(&plain, file, &map, &mut budget, &mut walked).ok_or_else(full)?;
        tables.extend(table::tables(text, file, &mut budget).ok_or_else(full)?);
        facts.push(ImportedFile {
            name: name.clone(),
            bytes: text.len() as u64,
            lines: text.lines().count() as u32,
        });
    }
    let mut imported = Imported {
        schema: String::from(IMPORTED_SCHEMA),
        origin: origin.clone(),
        files: facts,
        map: corrections
            .iter()
            .map(|it| String::from(it.text()))
            .collect(),
        trials: Vec::new(),
        readings: Vec::new(),
        unplaced: Vec::new(),
        margin_ratio: 1.0,
        comparisons: Vec::new(),
        comparisons_left_out: 0,
    };
    let ended = put_together(&mut imported, walked, (files, &tables), &map, &mut budget);
    ended.map_err(|file| TranscriptError::Full(files[file as usize].0.clone()))?;
    Ok(imported)
}

/// Ends with the position of a file when there is more in it than the budget has.
fn put_together(
    imported: &mut Imported,
    mut walked: Found,
    tables: (&[(String, String)], &[table::Table]),
    map: &Map,
    budget: &mut Budget,
) -> Result<(), u32> {
    let addresses = std::mem::take(&mut walked.addresses);
    let name_of = |host: &Host, address: Option<&str>| -> Option<String> {
        let by_address = || {
            let address = address?;
            Some(
                addresses
                    .get(address)
                    .cloned()
                    .unwrap_or_else(|| String::from(address)),
            )
        };
        host.name.clone().or_else(by_address)
    };
    let ends = trials::once(trials::ends(&walked.blocks));
    let pairs = trials::pairs(ends);
    let mut trials: Vec<ImportedTrial> = Vec::new();
    for pair in &pairs {
        let mut trial = trials::trial(pair, &name_of);
        // What one client ran at once is one test.
        trial.test = 1 + pair.ends().map(|it| it.index).min().unwrap_or_default() as u32;
        trials.push(trial);
    }
    trials.extend(of_netrate(
        &walked.blasts,
        &walked.stretches,
        &name_of,
        walked.blocks.len() as u32 + 1,
        &mut imported.unplaced,
    ));
    trials.sort_by_key(|it| it.place);
    let settings = Settings::of(&walked.switches, &walked.knobs);
    trials
        .iter_mut()
        .for_each(|trial| set(trial, &settings, map));
    let next = trials.iter().map(|it| it.test).max().unwrap_or(0) + 1;
    table::place(
        &mut trials,
        walked.loose,
        tables,
        next,
        &mut imported.unplaced,
        budget,
    )?;
    trials.sort_by_key(|it| it.place);
    number(&mut trials);
    name_by_sender(&mut trials, map);
    let near = attach::Near::of(&trials, &settings);
    let mut unplaced = std::mem::take(&mut walked.unplaced);
    attach::cpu(
        &mut trials,
        &walked.cpu,
        &walked.hosts,
        &near,
        &mut unplaced,
    );
    attach::differences(&mut trials, &walked.readings);
    imported.readings = attach::readings(&trials, walked.readings, &near);
    imported.trials = trials;
    imported.unplaced.extend(unplaced);
    imported.unplaced.sort_by_key(|it| it.place);
    Ok(())
}

/// Under which setting a trial ran, by the text and by `--map`.
fn set(trial: &mut ImportedTrial, settings: &Settings, map: &Map) {
    let (sender, receiver) = (trial.sender.as_deref(), trial.receiver.as_deref());
    let said = settings.of_trial(sender, receiver, &trial.place);
    (trial.setting, trial.setting_basis, trial.setting_place) = said;
    correct(trial, map);
}

/// What `--map` says of a trial.
fn correct(trial: &mut ImportedTrial, map: &Map) {
    let said = |key| map.at(key, &trial.place).map(String::from);
    if let Some(setting) = said(MapKey::Setting) {
        trial.setting = setting;
        trial.setting_basis = ImportedBasis::Mapped;
        trial.setting_place = None;
    }
    trial.sender = said(MapKey::Sender).or(trial.sender.take());
    trial.receiver = said(MapKey::Receiver).or(trial.receiver.take());
}

/// Numbers trials and tests by the order of the text.
fn number(trials: &mut [ImportedTrial]) {
    let mut tests: HashMap<u32, u32> = HashMap::new();
    for (trial, sequence) in trials.iter_mut().zip(1..) {
        trial.sequence = sequence;
        let next = tests.len() as u32 + 1;
        trial.test = *tests.entry(trial.test).or_insert(next);
    }
}

/// Where several hosts send one kind of traffic, the name says which: hosts are not compared with each other.
fn name_by_sender(trials: &mut [ImportedTrial], map: &Map) {
    let mut senders: HashMap<String, HashSet<Option<String>>> = HashMap::new();
    for trial in trials.iter() {
        senders
            .entry(trial.workload.clone())
            .or_default()
            .insert(trial.sender.clone());
    }
    for trial in trials {
        if let Some(name) = map.at(MapKey::Workload, &trial.place) {
            trial.workload = String::from(name);
        } else if senders[&trial.workload].len() > 1 {
            let sender = trial.sender.as_deref().unwrap_or("unknown");
            trial.workload += &format!("-from-{}", sender.replace(':', "."));
        }
    }
}

/// Runs of netblast, and what netreceive counted of them.
fn of_netrate(
    blasts: &[Blast],
    stretches: &[Stretch],
    name_of: &dyn Fn(&Host, Option<&str>) -> Option<String>,
    first: u32,
    unplaced: &mut Vec<UnplacedFigure>,
) -> Vec<ImportedTrial> {
    let mut known: HashMap<[u64; 3], usize> = HashMap::new();
    let mut trials: Vec<ImportedTrial> = Vec::new();
    for blast in blasts {
        let mut trial = trial_of_blast(blast, name_of);
        figures::of_blast(&mut trial, blast);
        if trial.value.is_none() {
            unplaced.extend(blast.fields.iter().map(|(_, it)| UnplacedFigure {
                printed: it.printed.clone(),
                reason: String::from(
                    "the run of netblast that it is of has neither counts nor a rate",
                ),
                place: it.place,
            }));
            continue;
        }
        let of = |name: &str| {
            trial
                .figures
                .iter()
                .find(|it| it.name == name)
                .map_or(0, |it| it.value.to_bits())
        };
        let print = [
            of("send_calls"),
            of("send_errors"),
            trial.duration_seconds.unwrap_or(0.0).to_bits(),
        ];
        match known.get(&print).filter(|_| of("send_calls") != 0) {
            Some(same) => trials[*same].quoted_again.push(trial.place),
            None => {
                known.insert(print, trials.len());
                trial.test = first + trials.len() as u32;
                trials.push(trial);
            }
        }
    }
    let runs = trials.len();
    let mut taken = vec![false; runs];
    for stretch in stretches {
        let near = nearest_run(&trials[..runs], &taken, stretch);
        match near {
            Some(at) => {
                taken[at] = true;
                trials[at].pairing = ImportedBasis::Inferred;
                trials[at].receiver = stretch.host.name.clone().or(trials[at].receiver.take());
                figures::of_stretch(&mut trials[at], stretch, ImportedBasis::Inferred);
            }
            None => {
                let mut trial = blank("netreceive", stretch.place);
                trial.receiver = name_of(&stretch.host, None);
                trial.workload = String::from("netreceive");
                trial.test = first + trials.len() as u32;
                figures::of_stretch(&mut trial, stretch, ImportedBasis::Said);
                trials.push(trial);
            }
        }
    }
    trials
}

/// The run that a stretch stands next to. Clocks of two hosts may differ by years: they say nothing.
fn nearest_run(runs: &[ImportedTrial], taken: &[bool], stretch: &Stretch) -> Option<usize> {
    if let [one] = runs
        && one.place.file != stretch.place.file
    {
        return (!taken[0]).then_some(0);
    }
    let after = runs.partition_point(|it| it.place < stretch.place);
    let around = after.saturating_sub(REACH)..(after + REACH).min(runs.len());
    let free = around.filter(|at| {
        let run = &runs[*at];
        let hosts = (&run.sender, &stretch.host.name);
        let is_other_host = hosts.0.is_none() || hosts.1.is_none() || hosts.0 != hosts.1;
        !taken[*at] && run.place.file == stretch.place.file && is_other_host
    });
    free.min_by_key(|at| runs[*at].place.line.abs_diff(stretch.place.line))
}

fn trial_of_blast(
    blast: &Blast,
    name_of: &dyn Fn(&Host, Option<&str>) -> Option<String>,
) -> ImportedTrial {
    let words = blast.command.as_ref().map_or(&[][..], |it| &it.words[..]);
    let to = words.first().map(String::as_str);
    let mut trial = blank("netblast", blast.place);
    trial.sender = name_of(&blast.host, None);
    trial.receiver = to.and_then(|to| {
        let nobody = Host {
            name: None,
            basis: ImportedBasis::Unknown,
        };
        name_of(&nobody, Some(to))
    });
    let kind = TrafficKind {
        tool: "netblast",
        payload_bytes: words.get(2).map(String::as_str),
        is_ipv6: to.is_some_and(|to| to.contains(':')),
        streams: None,
        is_both_ways: false,
    };
    trial.workload = kind.to_string();
    trial
}

fn blank(tool: &str, place: SourcePlace) -> ImportedTrial {
    ImportedTrial {
        sequence: 0,
        test: 0,
        tool: String::from(tool),
        workload: String::new(),
        setting: String::new(),
        setting_basis: ImportedBasis::Unknown,
        setting_place: None,
        sender: None,
        receiver: None,
        pairing: ImportedBasis::Unknown,
        quantity: String::from("packets_per_second"),
        value: None,
        is_sent: false,
        duration_seconds: None,
        place,
        series: Vec::new(),
        figures: Vec::new(),
        quoted_again: Vec::new(),
        notes: Vec::new(),
    }
}
