//! Published tables: what others measured, run by run, in their own units.
//!
//! A table is a TOML file (`sim/published/*.toml`). No number is invented: a run that the source describes without a
//! number has figures without one, and a run that is not simulated says why. Any text is read, or refused with a line
//! number within it.

use std::collections::HashSet;
use std::fmt::Display;

use nicpoll_model::FileError;
use nicpoll_sim::{ReceiveDiscipline, SimError, TrafficModel};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::quantity::{Quantity, SourceUnit};

/// No published number is greater.
const MEASURED_MAX: f64 = 1e15;
/// No published run is longer than a day.
const SECONDS_MAX: f64 = 86_400.0;

/// A published table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedTable {
    /// Its letter.
    pub name: String,
    /// Its subject.
    pub title: String,
    /// Its runs, in the order of the source.
    pub runs: Vec<PublishedRun>,
}

/// A run of a published table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedRun {
    /// Its name: what was run.
    pub name: String,
    /// How the hosts learned of packets.
    #[serde(rename = "discipline")]
    pub mode: Mode,
    /// Names of the hosts: sender, routers, receiver; only one when the sender is ideal.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// The traffic; `None` when the run is not simulated.
    #[serde(default, with = "workload")]
    pub workload: Option<TrafficModel>,
    /// Overrides of the hosts' numbers, as options of the discipline.
    pub with: Option<String>,
    /// The sender's discipline, when it differs from the others'.
    pub sender: Option<String>,
    /// Length of the published run.
    #[serde(default)]
    pub seconds: f64,
    /// Simulated length for the comparison, without a warm-up, when the effect takes long to show; otherwise
    /// [`RunLength::COMPARISON`](crate::RunLength::COMPARISON).
    pub simulated_seconds: Option<f64>,
    /// Whether the published processor shares were sampled by the hosts' clocks, as top(1) shows them, and are
    /// compared with samples; otherwise with exact shares.
    #[serde(default, rename = "sampled")]
    pub is_sampled: bool,
    /// Name of the group of parameters that are fitted to it.
    pub fit: Option<String>,
    /// Name of the run that figures of this one are compared with.
    pub baseline: Option<String>,
    /// What the simulation lacks, in a sentence.
    pub missing: Option<String>,
    /// Why no figure of it is scored, in a sentence.
    pub unscored: Option<String>,
    /// Why it sits on a knife's edge, in a sentence: it is simulated with several phases of its hosts' ticks.
    pub knife_edge: Option<String>,
    /// Its figures.
    #[serde(default)]
    pub figures: Vec<PublishedFigure>,
}

/// How the hosts of a run learned of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// FreeBSD's interrupts.
    #[serde(rename = "freebsd-interrupt")]
    Interrupt,
    /// FreeBSD's polling.
    #[serde(rename = "freebsd-polling")]
    Polling,
    /// Linux's NAPI.
    #[serde(rename = "napi")]
    Napi,
}

/// A figure of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// Its quantity, as named in the file.
    #[serde(rename = "quantity")]
    pub name: String,
    /// The unit of the source.
    pub unit: SourceUnit,
    /// The measured values, one for each repetition; empty when the source states no number.
    #[serde(default)]
    pub measured: Vec<f64>,
    /// Whether the fit uses it.
    #[serde(default, rename = "fit")]
    pub is_fitted: bool,
    /// What was chosen after looking at this figure, in a sentence.
    pub used: Option<String>,
    /// Why it is not scored, in a sentence.
    pub unscored: Option<String>,
    /// What the simulation lacks, in a sentence.
    pub missing: Option<String>,
}

/// A workload as its text.
mod workload {
    use nicpoll_sim::TrafficModel;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        workload: &Option<TrafficModel>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let text = workload.as_ref().map(TrafficModel::to_string);
        text.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<TrafficModel>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        let parsed = text.map(|text| TrafficModel::parse(&text));
        parsed.transpose().map_err(Error::custom)
    }
}

impl Mode {
    /// Its name in the files.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Interrupt => "freebsd-interrupt",
            Mode::Polling => "freebsd-polling",
            Mode::Napi => "napi",
        }
    }
}

impl PublishedFigure {
    /// Returns its quantity, if it can be simulated.
    pub(crate) fn quantity(&self) -> Option<Quantity> {
        Quantity::from_name(&self.name)
    }

    /// Returns the mean of the measured values; `None` when the source states no number.
    pub(crate) fn measured_mean(&self) -> Option<f64> {
        let runs = self.measured.len();
        (runs > 0).then(|| self.measured.iter().sum::<f64>() / runs as f64)
    }
}

impl PublishedTable {
    /// Reads the file of a table.
    ///
    /// # Errors
    /// The first thing that is wrong with it, with its line.
    pub fn parse(text: &str) -> Result<PublishedTable, FileError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct TableDocument {
            table: String,
            title: String,
            #[serde(default)]
            run: Vec<Spanned<PublishedRun>>,
        }
        let document: TableDocument = read(text)?;
        let runs = document.run.iter().map(Spanned::get_ref);
        let names: HashSet<&str> = runs.map(|run| run.name.as_str()).collect();
        let mut before = HashSet::new();
        for run in &document.run {
            let is_new = before.insert(run.get_ref().name.as_str());
            let checked = run.get_ref().check(is_new, &names);
            checked.map_err(|mistake| mistake.after(text, run.span().start))?;
        }
        Ok(PublishedTable {
            name: document.table,
            title: document.title,
            runs: document.run.into_iter().map(Spanned::into_inner).collect(),
        })
    }
}

impl PublishedRun {
    /// Returns the discipline of the sender, or of the other hosts.
    pub(crate) fn discipline(&self, is_sender: bool) -> Result<ReceiveDiscipline, SimError> {
        let sender = self.sender.as_deref().filter(|_| is_sender);
        let name = sender.unwrap_or(self.mode.name());
        match &self.with {
            Some(with) => ReceiveDiscipline::parse(&format!("{name}:{with}")),
            None => ReceiveDiscipline::parse(name),
        }
    }

    /// Checks what entries require of each other; `names` are those of the table's runs.
    fn check(&self, is_new: bool, names: &HashSet<&str>) -> Result<(), Mistake> {
        let name = &self.name;
        let twice = format_args!("there are two runs '{name}'; give each its own name");
        require(is_new, "name", twice)?;
        let is_there = |name: &str| names.contains(name);
        let has_base = self.baseline.as_deref().is_none_or(is_there);
        require(has_base, "baseline", "baseline names no run of this table")?;
        let mut has_polling = self.mode == Mode::Polling;
        if self.workload.is_some() {
            let missing = "hosts are missing; give the sender, any routers, the receiver";
            require(!self.hosts.is_empty(), "workload", missing)?;
            for (is_sender, entry) in [(true, "sender"), (false, "with")] {
                let discipline = self.discipline(is_sender);
                let discipline = discipline.map_err(|error| Mistake::new(entry, error))?;
                has_polling |= discipline.name() == Mode::Polling.name();
            }
            let seconds = self.seconds;
            let wanted = format_args!("seconds = {seconds} is wrong; give the seconds of the run");
            require((1.0..=SECONDS_MAX).contains(&seconds), "seconds", wanted)?;
            let simulated = self.simulated_seconds.unwrap_or(1.0);
            let wanted = "give the seconds to simulate, 1 to 60";
            require(
                (1.0..=60.0).contains(&simulated),
                "simulated_seconds",
                wanted,
            )?;
        }
        let can_be_fitted = self.workload.is_some() && !has_polling;
        require(
            self.fit.is_none() || can_be_fitted,
            "fit",
            "only simulated runs under interrupts may be fitted; remove fit: what polling does is predicted",
        )?;
        let mut figures = self.figures.iter();
        figures.try_for_each(|figure| self.check_figure(figure))
    }

    fn check_figure(&self, figure: &PublishedFigure) -> Result<(), Mistake> {
        let (name, measured) = (&figure.name, &figure.measured);
        let at = format_args!("\"{name}\"");
        require(
            measured
                .iter()
                .all(|number| (0.0..=MEASURED_MAX).contains(number)),
            at,
            format_args!(
                "measured = {measured:?} is wrong; give the measured numbers, such as [221], or [] for none"
            ),
        )?;
        require(
            !figure.is_fitted || (self.fit.is_some() && !measured.is_empty()),
            at,
            "fit = true needs a measured number, and the name of a group in the run's fit",
        )?;
        let is_explained = figure.missing.is_some() || self.missing.is_some();
        let known = Quantity::NAMES;
        require(
            is_explained || figure.quantity().is_some(),
            at,
            format_args!(
                "'{name}' cannot be simulated; give one of {known}, or a sentence missing = \"...\""
            ),
        )
    }
}

/// An error in a file that is valid TOML, and a word in its line.
pub(crate) struct Mistake {
    at: String,
    message: String,
}

/// Fails unless `is_so`, in the line of the word `at`. Only a failure writes the message.
pub(crate) fn require(is_so: bool, at: impl Display, message: impl Display) -> Result<(), Mistake> {
    if is_so {
        return Ok(());
    }
    Err(Mistake::new(at, message))
}

impl Mistake {
    fn new(at: impl Display, message: impl Display) -> Self {
        Mistake {
            at: at.to_string(),
            message: message.to_string(),
        }
    }

    /// Returns the error with its line: of its word after a place in the text, or of the place itself.
    pub(crate) fn after(self, text: &str, place: usize) -> FileError {
        let rest = text.get(place..).unwrap_or_default();
        let at = place + rest.find(&self.at).unwrap_or(0);
        FileError::at(text, at..at, self.message)
    }
}

/// Reads the text of a TOML file.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, FileError> {
    toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        FileError::at(text, span, error.message().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"table = "Z"
title = "a table"

[[run]]
name = "interrupts"
discipline = "freebsd-interrupt"
hosts = ["a"]
workload = "constant:rate=5k"
seconds = 60
fit = "all"
figures = [
    { quantity = "loss", unit = "%", measured = [5, 6.5], fit = true },
    { quantity = "jitter", unit = "ms", measured = [] },
]

[[run]]
name = "freebsd-polling"
discipline = "freebsd-polling"
baseline = "interrupts"
missing = "It is not simulated."
figures = [{ quantity = "colour", unit = "", measured = [1] }]
"#;

    fn refused(from: &str, to: &str) -> FileError {
        assert!(TABLE.contains(from), "{from}");
        PublishedTable::parse(&TABLE.replacen(from, to, 1)).unwrap_err()
    }

    fn line_of(text: &str) -> usize {
        1 + TABLE.lines().position(|line| line.contains(text)).unwrap()
    }

    #[test]
    fn a_table_is_read() {
        let table = PublishedTable::parse(TABLE).unwrap();
        assert_eq!((table.name.as_str(), table.runs.len()), ("Z", 2));
        let figures = &table.runs[0].figures;
        assert_eq!(figures[0].measured_mean(), Some(5.75));
        assert!(figures[0].is_fitted);
        assert_eq!(figures[1].measured_mean(), None);
        assert_eq!(table.runs[1].figures[0].quantity(), None);
        assert!(table.runs[1].workload.is_none());
    }

    #[test]
    fn errors_name_line_entry_and_remedy() {
        for (from, to, line, words) in [
            (
                "unit = \"%\"",
                "unit = \"per cent\"",
                "loss",
                "'per cent' is no known unit; there are",
            ),
            (
                "quantity = \"loss\"",
                "quantity = \"losses\"",
                "loss",
                "'losses' cannot be simulated; give one of",
            ),
            (
                "[5, 6.5]",
                "[5, -6.5]",
                "loss",
                "measured = [5.0, -6.5] is wrong; give the measured numbers",
            ),
            (
                "discipline = \"freebsd-interrupt\"",
                "discipline = \"fast\"",
                "\"freebsd-interrupt\"",
                "unknown variant `fast`, expected one of `freebsd-interrupt`, `freebsd-polling`, `napi`",
            ),
            ("rate=5k", "rate=0", "workload", "give 1 to"),
            (
                "seconds = 60",
                "seconds = 0",
                "seconds",
                "seconds = 0 is wrong; give the seconds",
            ),
            (
                "hosts = [\"a\"]",
                "host = [\"a\"]",
                "hosts",
                "unknown field `host`, expected one of `name`, `discipline`",
            ),
            (
                "baseline = \"interrupts\"",
                "baseline = \"nothing\"",
                "baseline",
                "baseline names no run",
            ),
            ("fit = \"all\"\n", "", "loss", "needs a measured number"),
        ] {
            let error = refused(from, to);
            let removed = usize::from(to.is_empty());
            assert_eq!(error.line, line_of(line) - removed, "{to}: {error}");
            assert!(error.message.contains(words), "{to}: {error}");
        }
        let error = refused("name = \"freebsd-polling\"", "name = \"interrupts\"");
        assert!(error.message.contains("two runs 'interrupts'"), "{error}");
    }

    #[test]
    fn a_sender_that_polls_is_polling_too() {
        let error = refused(
            "seconds = 60",
            "sender = \"freebsd-polling:user_frac=20\"\nseconds = 60",
        );
        assert!(
            error
                .message
                .contains("only simulated runs under interrupts"),
            "{error}"
        );
    }

    #[test]
    fn what_polling_does_is_never_fitted() {
        let error = refused(
            "discipline = \"freebsd-interrupt\"",
            "discipline = \"freebsd-polling\"",
        );
        assert_eq!(error.line, line_of("fit = \"all\""));
        assert!(
            error.message.contains("what polling does is predicted"),
            "{error}"
        );
    }
}
