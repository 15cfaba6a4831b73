//! Reads terminal transcripts, as found in web pages and mails, into trials with figures.
//!
//! Prompts, commands and the output of several tools may come in any order and be broken in any way. Nothing is
//! guessed: a figure belongs to a trial because the text says so, or because what stands around it speaks for that
//! trial by a clear margin, which is marked; any other figure is listed as unplaced. Every figure keeps its line and
//! its bytes in the source.
//! Time and memory are proportional to the length of the text.
//!
//! `walk` reads a text from beginning to end into `found`, with the `words` that it has of its own; `trials` and `runs`
//! make trials of it, `setting` decides under which setting each ran with what `told` finds in sentences, of which `claims`
//! reads each, `table` reads tables of results, `evidence` books CPU states, and `attach` adds counters.

mod attach;
mod claims;
mod evidence;
mod found;
mod names;
mod runs;
mod setting;
mod table;
mod told;
mod trials;
mod walk;
mod words;

pub use setting::Correction;

use std::collections::{BTreeSet, HashMap, HashSet};

use nicpoll_model::{
    IMPORTED_SCHEMA, Imported, ImportedBasis, ImportedFile, ImportedReading, ImportedTrial, Origin,
    Side, SourcePlace, UnplacedFigure,
};
use thiserror::Error;

use crate::lines::clause::{KINDS, has_between, is_in};
use crate::lines::prose::{self};
use crate::lines::{Budget, FINDINGS_MAX, address};
use crate::plain::Plain;
use crate::transcript::attach::Near;
use crate::transcript::evidence::Context;
use crate::transcript::found::{Found, HostNames, Scene, TerminalHost, ToolSetting};
use crate::transcript::runs::of_netrate;
use crate::transcript::setting::{HostSettings, Map, NOT_SAID};
use crate::transcript::table::TranscriptTable;
use crate::transcript::walk::Walk;

/// Longest text in bytes.
pub const TRANSCRIPT_MAX_BYTES: usize = 64 << 20;

/// Why transcripts cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TranscriptError {
    /// A text is too long.
    #[error("{0} is longer than 64 MiB; cut it into parts, and import each")]
    Long(String),
    /// The texts have more findings than a study can hold.
    #[error(
        "in {0} the texts come to more than {max} lines of tools; cut them into parts, and import each",
        max = FINDINGS_MAX
    )]
    Full(String),
    /// A correction names a file that is not imported, or lines that it does not have.
    #[error("'{0}' names a file or lines that are not among those to import")]
    NoLines(String),
    /// A correction is of lines that have nothing of its kind.
    #[error("'{text}' changes nothing: {why}; --dry-run shows what is read, with its lines")]
    Idle {
        /// The correction.
        text: String,
        /// What its lines do not have.
        why: &'static str,
    },
}

/// Reads texts, each with its file name, into one study.
///
/// # Errors
/// [`TranscriptError`] when a text is too long, the texts have too many findings, or a correction names none of
/// them or changes nothing.
pub fn read_transcripts(
    files: &[(String, String)],
    corrections: &[Correction],
    origin: &Origin,
) -> Result<Imported, TranscriptError> {
    let map = Map::of(corrections, files.iter().map(|(name, _)| name.as_str()));
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
    let is_of_none = |it: &&Correction| !facts.iter().any(|file| it.is_of(file));
    if let Some(wrong) = corrections.iter().find(is_of_none) {
        return Err(TranscriptError::NoLines(wrong.text.clone()));
    }
    let mut imported = Imported {
        schema: String::from(IMPORTED_SCHEMA),
        origin: origin.clone(),
        files: facts,
        map: corrections.iter().map(|it| it.text.clone()).collect(),
        margin_ratio: 1.0,
        ..Imported::default()
    };
    let ended = put_together(&mut imported, walked, (files, &tables), &map, &mut budget);
    ended.map_err(|file| TranscriptError::Full(files[file as usize].0.clone()))?;
    if let Some(idle) = map.idle() {
        let (text, why) = (idle.text.clone(), idle.idle);
        return Err(TranscriptError::Idle { text, why });
    }
    Ok(imported)
}

/// The hosts of addresses: by terminals, and by what sentences say.
fn addresses(walked: &mut Found) -> HashMap<String, String> {
    let mut addresses = std::mem::take(&mut walked.addresses);
    walked.hosts.take_kinds(&walked.statements);
    walked.hosts.take_partners(&walked.statements);
    walked.hosts.take_joined(&walked.statements);
    walked.hosts.take_parts(&walked.statements);
    walked.deny_parts();
    for (address, name) in walked.hosts.in_order(&walked.statements) {
        addresses.entry(address).or_insert(name);
    }
    let mut own: HashMap<String, usize> = HashMap::new();
    for name in addresses.values() {
        *own.entry(name.clone()).or_default() += 1;
    }
    for mention in std::mem::take(&mut walked.mentions) {
        let name = mention.host(|it| walked.hosts.has(it)).map(|name| {
            let known = walked.hosts.named_in(&format!(" {name} "));
            known.first().map_or(name.clone(), |it| String::from(*it))
        });
        if let Some(name) = name.filter(|it| walked.hosts.has(it) || !is_in(it, KINDS)) {
            walked.hosts.add(&name);
            // Of two that one terminal seems to have, a sentence gives one to another host.
            let known = addresses.get(&mention.address);
            if known.is_some_and(|it| *it != name && own.get(it) > Some(&1)) {
                addresses.remove(&mention.address);
            }
            addresses.entry(mention.address).or_insert(name);
        }
    }
    addresses
}

/// The trials that tools printed, without settings.
fn printed(walked: &mut Found, unplaced: &mut Vec<UnplacedFigure>) -> Vec<ImportedTrial> {
    let addresses = addresses(walked);
    // `fs = .5` tells the last byte of an address.
    let of = |address: &str| {
        let last = || addresses.get(&address[address.rfind('.')?..]);
        addresses.get(address).or_else(last)
    };
    let name_of = |host: &TerminalHost, address: Option<&str>| -> Option<String> {
        let by_address = |address: &str| match of(address) {
            Some(name) => name.clone(),
            None => String::from(address),
        };
        // An address says more than what stands near.
        let is_inferred = host.basis == ImportedBasis::Inferred;
        let known = address.and_then(of);
        let known = known.filter(|_| is_inferred).cloned();
        known
            .or_else(|| host.name.clone())
            .or_else(|| address.map(by_address))
    };
    // Neither another author nor a command that sets something stands in between.
    let is_one_run = |one: &SourcePlace, other: &SourcePlace| {
        let (first, last) = (one.min(other), one.max(other));
        let after = walked.statements.partition_point(|it| it.place <= *first);
        let between = walked.statements[after..].iter();
        let mut between = between.take_while(|it| it.place < *last);
        let is_next = between.any(|it| {
            let sentence = &it.sentence;
            sentence.names_run()
                || sentence.is_numbered()
                || sentence.modes.is_some()
                || sentence.has_any(prose::ONE_MORE)
        });
        let after = walked.switches.partition_point(|it| it.place <= *first);
        let set = walked.switches[after..].iter();
        let mut set = set.take_while(|it| it.place < *last);
        let is_one = walked.authors.is_one(one, other);
        is_one && !is_next && !set.any(|it| it.is_command)
    };
    let ends = trials::once(trials::ends(&walked.blocks));
    let pairs = trials::pairs(ends, &is_one_run);
    let trial = |pair| trials::trial(pair, &name_of);
    let mut trials: Vec<ImportedTrial> = pairs.iter().map(trial).collect();
    trials.extend(of_netrate(
        (&walked.blasts, &walked.stretches),
        &is_one_run,
        &name_of,
        walked.blocks.len() as u32 + 1,
        unplaced,
    ));
    trials.sort_by_key(|it| it.place);
    trials
}

/// Assembles the study. The error is the index of the file in which the budget ends.
fn put_together(
    imported: &mut Imported,
    mut walked: Found,
    tables: (&[(String, String)], &[TranscriptTable]),
    map: &Map,
    budget: &mut Budget,
) -> Result<(), u32> {
    let mut trials = printed(&mut walked, &mut imported.unplaced);
    let statements = std::mem::take(&mut walked.statements);
    names::complete(&mut trials, &statements, &walked);
    walked.take_interfaces(&trials);
    walked.hosts.take_box(&trials);
    let (switches, single, tabled) = told::told(&walked, &statements, &trials);
    walked.switches.extend(switches);
    walked.switches.sort_by_key(|it| it.place);
    let named = trials.clone();
    let mut words = statements.iter().map(|it| &it.sentence.words);
    let is_routed = walked.hosts.boxes().next().is_some() || words.any(|it| has_between(it));
    let of = (&walked.authors, &walked.hosts, is_routed);
    let settings = HostSettings::of(&walked.switches, &single, &walked.knobs, &named, of);
    let tabled: Vec<_> = single.iter().cloned().chain(tabled).collect();
    let by_results = HostSettings::of(&walked.switches, &tabled, &walked.knobs, &named, of);
    trials
        .iter_mut()
        .for_each(|it| state(it, &settings, &by_results));
    trials.iter_mut().for_each(|trial| correct(trial, map));
    let windows = runs::windows(&walked, &trials);
    let (left, hosts) = (&mut imported.unplaced, &walked.hosts);
    table::place(&mut trials, walked.loose, tables, hosts, left, budget)?;
    let bare = table::bare(&statements, &printed_at(&trials, left, tables.0));
    for figure in bare {
        budget.take(1).ok_or(figure.place.file)?;
        left.push(figure);
    }
    let of_tables = trials.iter_mut().filter(|it| it.tool == "table");
    of_tables.for_each(|trial| correct(trial, map));
    trials.sort_by_key(|it| it.place);
    number(&mut trials);
    name_by_sender(&mut trials, map);
    let near = Near::of(&trials, &settings);
    imported.unplaced.append(&mut walked.unplaced);
    let context = Context {
        statements: &statements,
        hosts: &walked.hosts,
        settings: &settings,
        authors: &walked.authors,
        trials: trials.iter().map(|it| it.place).collect(),
        screens: evidence::screens(&walked.cpu),
        rows: walked.cpu.iter().map(|it| it.states.place).collect(),
        standing: evidence::standing(&statements, &walked.hosts),
        listings: evidence::listings(&statements, &trials),
        windows,
    };
    let (readings, scenes) = (&mut walked.readings, &walked.reading_scenes);
    of_hosts(readings, scenes, &context, &trials);
    let unplaced = &mut imported.unplaced;
    evidence::book(
        &mut trials,
        &walked.cpu,
        &context,
        |it| mapped(map, it),
        unplaced,
    );
    attach::differences(&mut trials, &walked.readings);
    walked.readings.extend(table::variables(tables, budget)?);
    if trials.is_empty() {
        walked.readings.extend(of_knobs(&walked.knobs));
    }
    walked.readings.sort_by_key(|it| it.place);
    near.name(&mut walked.readings, &trials);
    imported.readings = walked.readings;
    imported.trials = trials;
    imported.unplaced.sort_by_key(|it| it.place);
    Ok(())
}

/// The figures of trials and those that have no place, by their lines.
fn printed_at(
    trials: &[ImportedTrial],
    unplaced: &[UnplacedFigure],
    files: &[(String, String)],
) -> HashMap<(u32, u32), Vec<String>> {
    let text = |place: &SourcePlace| {
        let text = files.get(place.file as usize).map(|it| it.1.as_str());
        let text = text?.get(place.start_byte as usize..place.end_byte as usize)?;
        Some(String::from(text))
    };
    let told = trials.iter().flat_map(|it| {
        let figures = it.figures.iter().map(|it| it.place);
        figures.chain(it.quoted_again.iter().copied())
    });
    let told = told.chain(unplaced.iter().map(|it| it.place));
    let mut all: HashMap<(u32, u32), Vec<String>> = HashMap::new();
    for place in told {
        let of = all.entry((place.file, place.line)).or_default();
        of.extend(text(&place));
    }
    all
}

/// Names the hosts of readings, each by what stands before it.
fn of_hosts(
    readings: &mut [ImportedReading],
    scenes: &[Scene],
    context: &Context,
    trials: &[ImportedTrial],
) {
    let ends = evidence::agreed_by_all(trials);
    let mut doubted = BTreeSet::new();
    for (scene, reading) in scenes.iter().zip(&mut *readings) {
        reading.host = context.host_of(scene, &reading.place, &ends);
        if context.is_doubted(scene, &reading.place) {
            doubted.insert(reading.place);
        }
    }
    by_interface(readings, scenes, context.hosts, &doubted);
    attach::like_others(readings, &doubted);
}

/// Names the hosts of readings that stand together, if one of them is of an interface that only one host has.
fn by_interface(
    readings: &mut [ImportedReading],
    scenes: &[Scene],
    hosts: &HostNames,
    doubted: &BTreeSet<SourcePlace>,
) {
    let mut owners: HashMap<u64, BTreeSet<String>> = HashMap::new();
    let all = || scenes.iter().map(|it| it.begins).zip(&*readings);
    for (begins, reading) in all().filter(|it| it.1.host.is_none()) {
        let words = reading.name.split(|it: char| !it.is_ascii_alphanumeric());
        let words = words.filter(|it| address::is_numbered(it));
        let owned = words.flat_map(|it| hosts.meant_in(&format!(" {it} ")));
        let of = owners.entry(begins).or_default();
        of.extend(owned.map(String::from));
    }
    for (scene, reading) in scenes.iter().zip(readings) {
        let of = owners.get(&scene.begins).filter(|it| it.len() == 1);
        let is_open = reading.host.is_none() && !doubted.contains(&reading.place);
        if let Some(host) = of.and_then(|it| it.first()).filter(|_| is_open) {
            reading.host = Some(host.clone());
        }
    }
}

/// The line of the test, and the end, that `--map` gives a line of CPU states.
fn mapped(map: &Map, place: &SourcePlace) -> (Option<u32>, Option<Side>) {
    let test = map.at("test", place).and_then(|line| line.parse().ok());
    let end = map.at("end", place);
    let mut sides = Side::ALL.into_iter();
    (test, sides.find(|side| Some(side.name()) == end))
}

/// Settings made by commands, as readings; only without trials, since trials name their settings.
fn of_knobs(knobs: &[ToolSetting]) -> impl Iterator<Item = ImportedReading> {
    knobs.iter().map(|knob| ImportedReading {
        host: knob.host.clone(),
        name: format!("set: {}", knob.name),
        value: knob.value.clone(),
        is_cumulative: false,
        near_trial: None,
        place: knob.place,
    })
}

/// Sets the setting of a trial from the text: by what tables of results tell, too (`by_results`), if nothing else does.
/// What contradicts them is not said.
fn state(trial: &mut ImportedTrial, settings: &HostSettings, by_results: &HostSettings) {
    let ends = [trial.sender.as_deref(), trial.receiver.as_deref()];
    let said = settings.of_trial(ends, &trial.place);
    let tabled = by_results.of_trial(ends, &trial.place);
    let is_open = said.0.starts_with(NOT_SAID);
    let way = |it: &str| it.split('+').next().map(String::from);
    let is_told = tabled.0.starts_with(NOT_SAID) || way(&said.0) == way(&tabled.0);
    (trial.setting, trial.setting_basis, trial.setting_place) = match () {
        () if is_told => said,
        () if is_open => tabled,
        () => (String::from(NOT_SAID), ImportedBasis::Unknown, None),
    };
}

/// Sets the setting and the hosts of a trial from `--map`.
fn correct(trial: &mut ImportedTrial, map: &Map) {
    let said = |key: &str| map.at(key, &trial.place).map(String::from);
    if let Some(setting) = said("setting") {
        trial.setting = setting;
        trial.setting_basis = ImportedBasis::Mapped;
        trial.setting_place = None;
    }
    trial.sender = said("sender").or(trial.sender.take());
    trial.receiver = said("receiver").or(trial.receiver.take());
}

/// Numbers trials and tests in text order.
fn number(trials: &mut [ImportedTrial]) {
    let mut tests: HashMap<u32, u32> = HashMap::new();
    for (trial, sequence) in trials.iter_mut().zip(1..) {
        trial.sequence = sequence;
        let next = tests.len() as u32 + 1;
        trial.test = *tests.entry(trial.test).or_insert(next);
    }
}

/// Adds the sender to the workload's name if several hosts send the same traffic, since hosts are not compared
/// with each other.
fn name_by_sender(trials: &mut [ImportedTrial], map: &Map) {
    let mut senders: HashMap<String, HashSet<Option<String>>> = HashMap::new();
    for trial in trials.iter() {
        senders
            .entry(trial.workload.clone())
            .or_default()
            .insert(trial.sender.clone());
    }
    for trial in trials {
        if let Some(name) = map.at("workload", &trial.place) {
            trial.workload = String::from(name);
        } else if senders[&trial.workload].len() > 1 {
            let sender = trial.sender.as_deref().unwrap_or("unknown");
            trial.workload += &format!("-from-{}", sender.replace(':', "."));
        }
    }
}

#[cfg(test)]
mod lengths;
