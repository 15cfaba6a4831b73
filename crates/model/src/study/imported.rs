//! Runs of other tools, read from their output or from transcripts. Each figure keeps its place in the source text.

use std::collections::HashMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::{Origin, Side};
use crate::study::comparison::ComparedSets;

/// Name and version of the JSON that [`Imported`] becomes.
pub const IMPORTED_SCHEMA: &str = "nicpoll.imported/1";

/// Where something stands.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct SourcePlace {
    /// Which file: its position in [`Imported::files`], from 0.
    pub file: u32,
    /// The line, from 1.
    pub line: u32,
    /// The first byte in the file, from 0.
    pub start_byte: u64,
    /// The byte after the last one.
    pub end_byte: u64,
}

/// How sure it is that something belongs where it was put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportedBasis {
    /// The text says so.
    Said,
    /// It follows from what stands near.
    Inferred,
    /// Whoever imported it said so, with `--map`.
    Mapped,
    /// Nothing says so.
    #[default]
    Unknown,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its lines.
    pub lines: u32,
}

/// A figure of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedFigure {
    /// What it is, with its unit.
    pub name: String,
    /// The end that counted it; null when nothing says which.
    pub side: Option<Side>,
    /// The value, in the unit of the name.
    pub value: f64,
    /// What stands in the text.
    pub printed: String,
    /// Why it is taken for this trial's.
    pub basis: ImportedBasis,
    /// Where it stands.
    pub place: SourcePlace,
    /// Of a counter that counts from the host's start, `value` is by how much it grew during the test: `place` is where
    /// its later value stands, and this is where the earlier one does. Null for any other figure.
    #[serde(default)]
    pub since: Option<SourcePlace>,
}

/// The rate in a part of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedInterval {
    /// Its beginning, from that of the trial.
    pub start_seconds: f64,
    /// Its end.
    pub end_seconds: f64,
    /// The rate in the trial's quantity.
    pub value: f64,
    /// Where it stands.
    pub place: SourcePlace,
}

/// One test of a text: one way. A test of both ways at once is two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedTrial {
    /// Position in the order of the text, from 1.
    pub sequence: u32,
    /// The test that it is of: trials with one number ran at once.
    pub test: u32,
    /// The program that measured: `iperf`, `netblast`, `netreceive`, or `table`.
    pub tool: String,
    /// What kind of traffic it was, under a name that tests of one kind share.
    pub workload: String,
    /// The setting: `polling`, `interrupt`, `polling-sender-only`, `polling-receiver-only`, `not-said`, or a name of `--map`.
    pub setting: String,
    /// Why it is taken for that.
    pub setting_basis: ImportedBasis,
    /// Where that is said; null when nothing says it.
    pub setting_place: Option<SourcePlace>,
    /// The host that sent: its name, else its address; null when neither is said.
    pub sender: Option<String>,
    /// The host that received, likewise.
    pub receiver: Option<String>,
    /// Why what both ends printed is taken for one test; `unknown` where one end alone printed.
    pub pairing: ImportedBasis,
    /// What `value` and `series` are: `bits_per_second` or `packets_per_second`.
    pub quantity: String,
    /// The rate of the whole trial; null when the text has none.
    pub value: Option<f64>,
    /// Whether only the sender counted: less may have arrived.
    pub is_sent: bool,
    /// How long it took; null when nothing says it.
    pub duration_seconds: Option<f64>,
    /// Where it begins, and the end of what belongs to it.
    pub place: SourcePlace,
    /// Its intervals by time; empty when none are printed.
    pub series: Vec<ImportedInterval>,
    /// Every figure.
    pub figures: Vec<ImportedFigure>,
    /// Where the same result is told again.
    pub quoted_again: Vec<SourcePlace>,
    /// What to know of it.
    pub notes: Vec<String>,
}

/// Something that a host's commands print and that is no figure of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedReading {
    /// The host; null when nothing says which.
    pub host: Option<String>,
    /// What it is: `kern.polling.burst`, `udp: delivered`.
    pub name: String,
    /// The value, as it stands there.
    pub value: String,
    /// Whether it counts from the host's start, and so holds more than any one trial.
    pub is_cumulative: bool,
    /// The trial that it stands next to, which is all that ties them; null when there is none.
    pub near_trial: Option<u32>,
    /// Where it stands.
    pub place: SourcePlace,
}

/// A figure that no trial is known for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnplacedFigure {
    /// What stands in the text.
    pub printed: String,
    /// Why it has no place.
    pub reason: String,
    /// Where it stands.
    pub place: SourcePlace,
}

/// Traffic by the name under which results of other programs are kept: `iperf-tcp-both-ways`, `netblast-64-ipv6`.
/// A measured workload of the same kind has the same name, so that both can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficKind<'a> {
    /// What makes it: `iperf-tcp`, `iperf-udp`, `netblast`.
    pub tool: &'a str,
    /// Bytes of payload in each datagram, where that is known.
    pub payload_bytes: Option<&'a str>,
    /// Whether IPv6 carries it.
    pub is_ipv6: bool,
    /// Streams of one client, where there are several.
    pub streams: Option<&'a str>,
    /// Whether it goes both ways at once.
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
    /// Who imported it. Nothing says when it was measured.
    #[serde(flatten)]
    pub origin: Origin,
    /// The files.
    pub files: Vec<ImportedFile>,
    /// What `--map` said, as it was given.
    pub map: Vec<String>,
    /// The trials in the order of the text.
    pub trials: Vec<ImportedTrial>,
    /// What else hosts printed.
    pub readings: Vec<ImportedReading>,
    /// Figures without a place.
    pub unplaced: Vec<UnplacedFigure>,
    /// The ratio from which on a difference matters.
    pub margin_ratio: f64,
    /// Settings held against each other, unpaired, where both have trials of one workload and one sender.
    pub comparisons: Vec<ComparedSets>,
    /// Settings that could be held against each other as well, beyond the first ones.
    #[serde(default)]
    pub comparisons_left_out: u32,
}

impl Imported {
    /// The settings of its trials in the order in which they first appear.
    pub fn settings(&self) -> Vec<&str> {
        let groups = grouped(&self.trials, |trial| &trial.setting);
        groups.into_iter().map(|(name, _)| name).collect()
    }

    /// The workloads of its trials, likewise.
    pub fn workloads(&self) -> Vec<&str> {
        let groups = self.by_workload();
        groups.into_iter().map(|(name, _)| name).collect()
    }

    /// Its trials by their workload, likewise.
    pub fn by_workload(&self) -> Vec<(&str, Vec<&ImportedTrial>)> {
        grouped(&self.trials, |trial| &trial.workload)
    }
}

impl ImportedTrial {
    /// Trials by their setting, in the order in which settings first appear.
    pub fn by_setting<'a>(
        trials: impl IntoIterator<Item = &'a ImportedTrial>,
    ) -> Vec<(&'a str, Vec<&'a ImportedTrial>)> {
        grouped(trials, |trial| &trial.setting)
    }
}

/// Trials by a name of each. There may be as many names as trials.
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
