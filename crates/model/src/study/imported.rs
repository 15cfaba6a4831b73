//! Runs of other tools, parsed from their output or from transcripts. Each figure keeps its position in the source
//! text.

use std::collections::HashMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::{Origin, Side};
use crate::study::comparison::ComparedSets;

/// Name and version of the JSON of [`Imported`].
pub const IMPORTED_SCHEMA: &str = "nicpoll.imported/1";

/// A position in the source text.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct SourcePlace {
    /// The file, as an index into [`Imported::files`].
    pub file: u32,
    /// The line, from 1.
    pub line: u32,
    /// The first byte in the file, from 0.
    pub start_byte: u64,
    /// The byte after the last one.
    pub end_byte: u64,
}

/// How certain an attribution is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportedBasis {
    /// The text states it.
    Said,
    /// It is inferred from the surrounding text.
    Inferred,
    /// The user stated it with `--map`.
    Mapped,
    /// Nothing supports it.
    #[default]
    Unknown,
}

/// A source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its number of lines.
    pub lines: u32,
}

/// A figure of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedFigure {
    /// Its name, with the unit.
    pub name: String,
    /// The end that counted it; null when unknown.
    pub side: Option<Side>,
    /// The value, in the unit of the name.
    pub value: f64,
    /// The figure as printed in the text.
    pub printed: String,
    /// Why it is attributed to this trial.
    pub basis: ImportedBasis,
    /// Its position.
    pub place: SourcePlace,
    /// For counters that count from the host's start, `value` is their increase during the test: `place` has the later
    /// reading, and this has the earlier one. Null for other figures.
    #[serde(default)]
    pub since: Option<SourcePlace>,
}

/// The rate over a part of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedInterval {
    /// Its start, from the start of the trial.
    pub start_seconds: f64,
    /// Its end.
    pub end_seconds: f64,
    /// The rate in the trial's quantity.
    pub value: f64,
    /// Its position.
    pub place: SourcePlace,
}

/// One test in one direction. A test of both directions at once makes two trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedTrial {
    /// Position in text order, from 1.
    pub sequence: u32,
    /// Number of its test: trials with the same number ran at the same time.
    pub test: u32,
    /// The measuring program: `iperf`, `netblast`, `netreceive`, or `table`.
    pub tool: String,
    /// The kind of traffic, under a name shared by tests of one kind.
    pub workload: String,
    /// The setting: `polling`, `interrupt`, `polling-sender-only`, `polling-receiver-only`, `not-said`, or a name of `--map`.
    pub setting: String,
    /// Why this setting is assumed.
    pub setting_basis: ImportedBasis,
    /// Where the setting is stated; null when it is not.
    pub setting_place: Option<SourcePlace>,
    /// The sending host: its name, or else its address; null when neither is stated.
    pub sender: Option<String>,
    /// The receiving host, likewise.
    pub receiver: Option<String>,
    /// Why the output of both ends is taken for one test; `unknown` where only one end printed.
    pub pairing: ImportedBasis,
    /// What `value` and `series` are: `bits_per_second` or `packets_per_second`.
    pub quantity: String,
    /// The rate of the whole trial; null when the text has none.
    pub value: Option<f64>,
    /// Whether only the sender counted: fewer may have arrived.
    pub is_sent: bool,
    /// Its duration; null when not stated.
    pub duration_seconds: Option<f64>,
    /// Position of its text.
    pub place: SourcePlace,
    /// Its intervals in order of time; empty when none are printed.
    pub series: Vec<ImportedInterval>,
    /// Every figure.
    pub figures: Vec<ImportedFigure>,
    /// Positions where the same result is repeated.
    pub quoted_again: Vec<SourcePlace>,
    /// Remarks.
    pub notes: Vec<String>,
    /// What speaks for its setting and for the CPU states that are booked to it.
    #[serde(default)]
    pub evidence: Vec<ImportedEvidence>,
}

/// Something that speaks for an attribution, or against it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedEvidence {
    /// What is attributed: `setting`, or `CPU states of line 12`.
    pub of: String,
    /// How much it counts; below 0 against the attribution.
    pub points: i32,
    /// The reason.
    pub reason: String,
    /// Where the text has it.
    pub place: SourcePlace,
}

/// A value printed by a host's commands that is not a figure of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedReading {
    /// The host; null when unknown.
    pub host: Option<String>,
    /// Its name: `kern.polling.burst`, `udp: delivered`.
    pub name: String,
    /// The value as printed.
    pub value: String,
    /// Whether it counts from the host's start, and so covers more than any one trial.
    pub is_cumulative: bool,
    /// The adjacent trial, related to it only by position; null when there is none.
    pub near_trial: Option<u32>,
    /// Its position.
    pub place: SourcePlace,
}

/// A figure that could not be attributed to a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnplacedFigure {
    /// The figure as printed in the text.
    pub printed: String,
    /// Why it could not be attributed.
    pub reason: String,
    /// Corrections of `--map` of which one or two would decide; empty when there is nothing to choose from.
    #[serde(default)]
    pub candidates: Vec<String>,
    /// Its position.
    pub place: SourcePlace,
}

/// A kind of traffic, by the name under which other programs' results are stored: `iperf-tcp-both-ways`,
/// `netblast-64-ipv6`. A measured workload of the same kind has the same name, so both can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficKind<'a> {
    /// The sending program: `iperf-tcp`, `iperf-udp`, `netblast`.
    pub tool: &'a str,
    /// Bytes of payload per datagram, if known.
    pub payload_bytes: Option<&'a str>,
    /// Whether it uses IPv6.
    pub is_ipv6: bool,
    /// Streams of one client, if there are several.
    pub streams: Option<&'a str>,
    /// Whether it runs in both directions at once.
    pub is_both_ways: bool,
}

impl fmt::Display for TrafficKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.tool)?;
        if let Some(bytes) = self.payload_bytes {
            write!(f, "-{bytes}")?;
        }
        if self.is_ipv6 {
            f.write_str("-ipv6")?;
        }
        if let Some(streams) = self.streams {
            write!(f, "-p{streams}")?;
        }
        match self.is_both_ways {
            true => f.write_str("-both-ways"),
            false => Ok(()),
        }
    }
}

/// Everything that `nicpoll study import --json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// Name and version of this layout: [`IMPORTED_SCHEMA`].
    pub schema: String,
    /// The program that imported it. The time of the measurements is not known.
    #[serde(flatten)]
    pub origin: Origin,
    /// The files.
    pub files: Vec<ImportedFile>,
    /// The arguments of `--map`, as given.
    pub map: Vec<String>,
    /// The trials, in text order.
    pub trials: Vec<ImportedTrial>,
    /// Other values that hosts printed.
    pub readings: Vec<ImportedReading>,
    /// Figures without a trial.
    pub unplaced: Vec<UnplacedFigure>,
    /// The ratio from which on a difference matters.
    pub margin_ratio: f64,
    /// Unpaired comparisons of settings, where both have trials of the same workload and sender.
    pub comparisons: Vec<ComparedSets>,
    /// Number of further possible comparisons that are left out.
    #[serde(default)]
    pub comparisons_left_out: u32,
}

impl Imported {
    /// Returns the settings of its trials, by first appearance.
    pub fn settings(&self) -> Vec<&str> {
        let groups = grouped(&self.trials, |trial| &trial.setting);
        groups.into_iter().map(|(name, _)| name).collect()
    }

    /// Returns the workloads of its trials, by first appearance.
    pub fn workloads(&self) -> Vec<&str> {
        let groups = self.by_workload();
        groups.into_iter().map(|(name, _)| name).collect()
    }

    /// Groups its trials by workload, by first appearance.
    pub fn by_workload(&self) -> Vec<(&str, Vec<&ImportedTrial>)> {
        grouped(&self.trials, |trial| &trial.workload)
    }
}

impl ImportedTrial {
    /// Groups trials by setting, by first appearance.
    pub fn by_setting<'a>(
        trials: impl IntoIterator<Item = &'a ImportedTrial>,
    ) -> Vec<(&'a str, Vec<&'a ImportedTrial>)> {
        grouped(trials, |trial| &trial.setting)
    }
}

/// Groups trials by name. There may be as many names as trials.
fn grouped<'a>(
    trials: impl IntoIterator<Item = &'a ImportedTrial>,
    name: impl Fn(&'a ImportedTrial) -> &'a str,
) -> Vec<(&'a str, Vec<&'a ImportedTrial>)> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut groups: Vec<(&str, Vec<&ImportedTrial>)> = Vec::new();
    for trial in trials {
        let name = name(trial);
        let at = *known.entry(name).or_insert(groups.len());
        if at == groups.len() {
            groups.push((name, Vec::new()));
        }
        groups[at].1.push(trial);
    }
    groups
}
