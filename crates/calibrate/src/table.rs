//! Published tables: what others measured, run by run, in their own units; and reading TOML with errors that name the
//! line, for them and for the file of the fit.
//!
//! A table is a TOML file (`sim/published/*.toml`). No number is invented: a run that the source describes without a number
//! has figures without one, and a run that is not simulated says why. Any text is read, or refused with a line that it
//! has.

use std::ops::Range;

use nicpoll_model::FileError;
use nicpoll_sim::{ReceiveDiscipline, TrafficModel};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::quantity::{Quantity, Unit};

/// Nothing published is greater.
const MEASURED_MAX: f64 = 1e15;
/// A run longer than a day is none.
const SECONDS_MAX: f64 = 86_400.0;

/// A published table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its letter.
    pub name: String,
    /// What it is of.
    pub title: String,
    /// Its runs, in the order of the source.
    pub runs: Vec<PublishedRun>,
}

/// A run of a published table.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRun {
    /// What was run.
    pub name: String,
    /// How the hosts learned of packets.
    pub mode: Mode,
    /// How it is simulated; `None` when it is not.
    pub scenario: Option<RunScenario>,
    /// Name of the group of parameters that is fitted to it.
    pub fit: Option<String>,
    /// Name of the run that figures of this one are compared with.
    pub baseline: Option<String>,
    /// What the simulation lacks, in a sentence.
    pub missing: Option<String>,
    /// Why no figure of it is scored, in a sentence.
    pub unscored: Option<String>,
    /// Why it sits on a knife's edge, in a sentence: it is simulated with the ticks of its hosts at several places.
    pub knife_edge: Option<String>,
    /// Its figures.
    pub figures: Vec<Figure>,
}

/// How the hosts of a run learned of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// FreeBSD's interrupts.
    Interrupt,
    /// FreeBSD's polling.
    Polling,
    /// Linux's NAPI.
    Napi,
}

/// What is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct RunScenario {
    /// Names of the hosts: sender, routers, receiver; one only when the sender is ideal.
    pub hosts: Vec<String>,
    /// What is sent.
    pub workload: TrafficModel,
    /// The sender's discipline.
    pub sender: ReceiveDiscipline,
    /// That of the others.
    pub others: ReceiveDiscipline,
    /// How long the published run was.
    pub seconds: f64,
    /// How long it is simulated for the comparison, without a warm-up, when what it shows takes its time; otherwise
    /// [`Length::COMPARISON`](crate::Length::COMPARISON).
    pub simulated_seconds: Option<f64>,
    /// Whether the published shares of the processors are samples that the hosts' clocks took, as top(1) shows them,
    /// and are compared with such; otherwise exact ones stand for them.
    pub is_sampled: bool,
}

/// A figure of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is of, as the file calls it.
    pub name: String,
    /// The same, when it can be simulated.
    pub quantity: Option<Quantity>,
    /// The unit of the source.
    pub unit: Unit,
    /// What was measured, once for each run of it; empty when the source states no number.
    pub measured: Vec<f64>,
    /// Whether the fit uses it.
    pub is_fitted: bool,
    /// What was chosen by looking at it, in a sentence.
    pub used: Option<String>,
    /// Why it is not scored, in a sentence.
    pub unscored: Option<String>,
    /// What the simulation lacks, in a sentence.
    pub missing: Option<String>,
}

impl Mode {
    /// The word of the files.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Interrupt => "freebsd-interrupt",
            Mode::Polling => "freebsd-polling",
            Mode::Napi => "napi",
        }
    }
}

impl RunScenario {
    /// Whether any of its hosts polls.
    pub(crate) fn has_polling(&self) -> bool {
        [&self.sender, &self.others]
            .iter()
            .any(|discipline| discipline.name() == Mode::Polling.name())
    }
}

impl Figure {
    /// The mean of what was measured; `None` when the source states no number.
    pub(crate) fn measured_mean(&self) -> Option<f64> {
        let runs = self.measured.len();
        (runs > 0).then(|| self.measured.iter().sum::<f64>() / runs as f64)
    }
}

impl Table {
    /// Reads the file of a table.
    ///
    /// # Errors
    /// The first thing that is wrong with it, with its line.
    pub fn parse(text: &str) -> Result<Table, FileError> {
        let text = Text(text);
        let document = text.parse()?;
        let document = Section::of(text, &document);
        document.refuse_unknown("the file", &["table", "title", "run"])?;
        let mut table = Table {
            name: document.string("table", "give the table's letter, as in table = \"A\"")?,
            title: document.string("title", "give a text of one line: what the table is of")?,
            runs: Vec::new(),
        };
        for section in document.sections("run", "runs are given as [[run]]")? {
            let run = run(&section)?;
            if table.runs.iter().any(|other| other.name == run.name) {
                let message = format!("there are two runs '{}'; give each its own name", run.name);
                return Err(section.error_at("name", message));
            }
            table.runs.push(run);
        }
        for (section, run) in document.sections("run", "")?.iter().zip(&table.runs) {
            let is_there = |name: &String| table.runs.iter().any(|other| other.name == *name);
            if run.baseline.as_ref().is_some_and(|name| !is_there(name)) {
                let message = String::from("baseline names no run of this table");
                return Err(section.error_at("baseline", message));
            }
        }
        Ok(table)
    }
}

const RUN_ENTRIES: [&str; 15] = [
    "name",
    "discipline",
    "hosts",
    "workload",
    "with",
    "sender",
    "seconds",
    "simulated_seconds",
    "sampled",
    "fit",
    "baseline",
    "missing",
    "unscored",
    "knife_edge",
    "figures",
];

fn run(section: &Section<'_>) -> Result<PublishedRun, FileError> {
    section.refuse_unknown("a run", &RUN_ENTRIES)?;
    let mode = match section
        .string(
            "discipline",
            "give freebsd-interrupt, freebsd-polling or napi",
        )?
        .as_str()
    {
        "freebsd-interrupt" => Mode::Interrupt,
        "freebsd-polling" => Mode::Polling,
        "napi" => Mode::Napi,
        _ => {
            let message = String::from("discipline is freebsd-interrupt, freebsd-polling or napi");
            return Err(section.error_at("discipline", message));
        }
    };
    let run = PublishedRun {
        name: section.string("name", "give a text of one line: what was run")?,
        mode,
        scenario: scenario(section, mode)?,
        fit: section.optional_string("fit", "give the name of a group of the fit")?,
        baseline: section.optional_string("baseline", "give the name of a run of this table")?,
        missing: section.optional_string("missing", "give a sentence on what is missing")?,
        unscored: section.optional_string("unscored", "give a sentence on why it is not scored")?,
        knife_edge: section.optional_string("knife_edge", "give a sentence on what decides")?,
        figures: Vec::new(),
    };
    let is_polled =
        mode == Mode::Polling || run.scenario.as_ref().is_some_and(RunScenario::has_polling);
    if run.fit.is_some() && (is_polled || run.scenario.is_none()) {
        let message = String::from(
            "only simulated runs under interrupts may be fitted; take fit away: what polling does is predicted",
        );
        return Err(section.error_at("fit", message));
    }
    figures(section, run)
}

fn scenario(section: &Section<'_>, mode: Mode) -> Result<Option<RunScenario>, FileError> {
    let Some(text) = section.optional_string("workload", "give a workload of `sim run`")? else {
        return Ok(None);
    };
    let workload = TrafficModel::parse(&text)
        .map_err(|error| section.error_at("workload", error.to_string()))?;
    let hosts = section.strings("hosts", "give the names of the hosts on the path")?;
    if hosts.is_empty() {
        let message = String::from("hosts are missing; give the sender, any routers, the receiver");
        return Err(section.error(message));
    }
    let with =
        section.optional_string("with", "give numbers of the host, as discipline options")?;
    let discipline = |name: &str, entry| {
        let text = match &with {
            Some(with) => format!("{name}:{with}"),
            None => String::from(name),
        };
        ReceiveDiscipline::parse(&text).map_err(|error| section.error_at(entry, error.to_string()))
    };
    let is_long = section.has("simulated_seconds");
    let sender = section.optional_string("sender", "give the sender's discipline")?;
    Ok(Some(RunScenario {
        hosts,
        workload,
        sender: discipline(sender.as_deref().unwrap_or(mode.name()), "sender")?,
        others: discipline(mode.name(), "with")?,
        seconds: section.number("seconds", 1.0, SECONDS_MAX, "give the seconds of the run")?,
        simulated_seconds: is_long
            .then(|| {
                let wanted = "give the seconds to simulate, 1 to 60";
                section.number("simulated_seconds", 1.0, 60.0, wanted)
            })
            .transpose()?,
        is_sampled: section.flag("sampled", "give true or false")?,
    }))
}

fn figures(section: &Section<'_>, mut run: PublishedRun) -> Result<PublishedRun, FileError> {
    for entry in section.sections("figures", "figures are given as tables in an array")? {
        entry.refuse_unknown(
            "a figure",
            &[
                "quantity", "unit", "measured", "fit", "used", "unscored", "missing",
            ],
        )?;
        let name = entry.string("quantity", "give what the figure is of")?;
        let figure = Figure {
            quantity: Quantity::from_name(&name),
            name,
            unit: unit(&entry)?,
            measured: entry.numbers(
                "measured",
                MEASURED_MAX,
                "give the measured numbers, none for none: measured = [221]",
            )?,
            is_fitted: entry.flag("fit", "give true or false")?,
            used: entry.optional_string("used", "give a sentence on what it was used for")?,
            unscored: entry
                .optional_string("unscored", "give a sentence on why it is not scored")?,
            missing: entry.optional_string("missing", "give a sentence on what is missing")?,
        };
        if figure.is_fitted && (run.fit.is_none() || figure.measured.is_empty()) {
            let message = String::from(
                "fit = true needs a measured number, and the name of a group in the run's fit",
            );
            return Err(entry.error_at("fit", message));
        }
        let is_explained = figure.missing.is_some() || run.missing.is_some();
        if figure.quantity.is_none() && !is_explained {
            let message = format!(
                "'{}' cannot be simulated; give one of {}, or a sentence missing = \"...\"",
                figure.name,
                Quantity::NAMES
            );
            return Err(entry.error_at("quantity", message));
        }
        run.figures.push(figure);
    }
    Ok(run)
}

fn unit(entry: &Section<'_>) -> Result<Unit, FileError> {
    let name = entry.string(
        "unit",
        "give the unit of the source; \"\" for a number alone",
    )?;
    Unit::from_name(&name).ok_or_else(|| {
        let message = format!("'{name}' is no known unit; there are {}", Unit::NAMES);
        entry.error_at("unit", message)
    })
}

/// Longer texts than this are none of a table.
const CHARS_MAX: usize = 400;

/// A text, to tell where things stand in it.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a>(pub(crate) &'a str);

/// A table of the text and where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Section<'a> {
    text: Text<'a>,
    span: (usize, usize),
    table: &'a DeTable<'a>,
}

impl<'a> Text<'a> {
    pub(crate) fn parse(self) -> Result<Spanned<DeTable<'a>>, FileError> {
        DeTable::parse(self.0).map_err(|error| {
            let message = format!("this is no TOML: {}", error.message());
            self.error(error.span().unwrap_or_default(), message)
        })
    }

    pub(crate) fn error(self, span: Range<usize>, message: String) -> FileError {
        FileError::at(self.0, span, message)
    }
}

impl<'a> Section<'a> {
    pub(crate) fn of(text: Text<'a>, document: &'a Spanned<DeTable<'a>>) -> Self {
        Section {
            text,
            span: (0, 0),
            table: document.get_ref(),
        }
    }

    /// An error at the section itself.
    pub(crate) fn error(&self, message: String) -> FileError {
        self.text.error(self.span.0..self.span.1, message)
    }

    /// An error at one of its entries.
    pub(crate) fn error_at(&self, name: &str, message: String) -> FileError {
        let value = self.table.get(name);
        let span = value.map_or(self.span.0..self.span.1, Spanned::span);
        self.text.error(span, message)
    }

    /// Refuses entries of other names.
    pub(crate) fn refuse_unknown(&self, what: &str, known: &[&str]) -> Result<(), FileError> {
        let unknown = self
            .table
            .keys()
            .find(|key| !known.contains(&&**key.get_ref()));
        match unknown {
            None => Ok(()),
            Some(key) => {
                let message = format!(
                    "{what} has no {}; it has {}",
                    shortened(key.get_ref()),
                    known.join(", ")
                );
                Err(self.text.error(key.span(), message))
            }
        }
    }

    fn wrong(&self, name: &str, wanted: &str) -> FileError {
        let given = self.table.get(name).and_then(|value| {
            let text = self.text.0.get(value.span())?;
            Some(shortened(text.lines().next().unwrap_or_default()))
        });
        let message = match given {
            Some(given) => format!("{name} = {given} is wrong; {wanted}"),
            None => format!("{name} is missing; {wanted}"),
        };
        self.error_at(name, message)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// A text of one line that must be there.
    pub(crate) fn string(&self, name: &str, wanted: &str) -> Result<String, FileError> {
        let value = self.table.get(name).map(Spanned::get_ref);
        text_of(value).ok_or_else(|| self.wrong(name, wanted))
    }

    pub(crate) fn optional_string(
        &self,
        name: &str,
        wanted: &str,
    ) -> Result<Option<String>, FileError> {
        let is_there = self.has(name);
        is_there.then(|| self.string(name, wanted)).transpose()
    }

    pub(crate) fn flag(&self, name: &str, wanted: &str) -> Result<bool, FileError> {
        match self.table.get(name).map(Spanned::get_ref) {
            None => Ok(false),
            Some(DeValue::Boolean(value)) => Ok(*value),
            Some(_) => Err(self.wrong(name, wanted)),
        }
    }

    /// Texts; none when there is no such entry.
    pub(crate) fn strings(&self, name: &str, wanted: &str) -> Result<Vec<String>, FileError> {
        self.array(name, wanted, |value| text_of(Some(value)))
    }

    /// Numbers from 0 to `max`; none when there is no such entry.
    pub(crate) fn numbers(
        &self,
        name: &str,
        max: f64,
        wanted: &str,
    ) -> Result<Vec<f64>, FileError> {
        let in_range = |number: &f64| (0.0..=max).contains(number);
        self.array(name, wanted, |value| number_of(value).filter(in_range))
    }

    /// A number from `min` to `max` that must be there.
    pub(crate) fn number(
        &self,
        name: &str,
        min: f64,
        max: f64,
        wanted: &str,
    ) -> Result<f64, FileError> {
        let value = self.table.get(name).map(Spanned::get_ref);
        let number = value.and_then(number_of);
        number
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| self.wrong(name, wanted))
    }

    fn array<T>(
        &self,
        name: &str,
        wanted: &str,
        read: impl Fn(&DeValue<'a>) -> Option<T>,
    ) -> Result<Vec<T>, FileError> {
        let items = match self.table.get(name).map(Spanned::get_ref) {
            None => return Ok(Vec::new()),
            Some(DeValue::Array(items)) => items,
            Some(_) => return Err(self.wrong(name, wanted)),
        };
        let read = items.iter().map(|item| read(item.get_ref()));
        let all: Option<Vec<T>> = read.collect();
        all.ok_or_else(|| self.wrong(name, wanted))
    }

    /// Whole numbers from 1 to `max` by name, of a table that must be there.
    pub(crate) fn costs(
        &self,
        name: &str,
        max: f64,
        wanted: &str,
    ) -> Result<Vec<(String, u64)>, FileError> {
        let Some(DeValue::Table(table)) = self.table.get(name).map(Spanned::get_ref) else {
            return Err(self.wrong(name, wanted));
        };
        let whole = |number: &f64| (1.0..=max).contains(number) && number.fract() == 0.0;
        let mut costs = Vec::new();
        for (name, value) in table {
            let Some(cost) = number_of(value.get_ref()).filter(whole) else {
                let message = format!("{} is wrong; {wanted}", shortened(name.get_ref()));
                return Err(self.text.error(value.span(), message));
            };
            costs.push((name.get_ref().to_string(), cost as u64));
        }
        Ok(costs)
    }

    /// Tables in an array; none when there is no such entry.
    pub(crate) fn sections(&self, name: &str, wanted: &str) -> Result<Vec<Section<'a>>, FileError> {
        let items = match self.table.get(name).map(Spanned::get_ref) {
            None => return Ok(Vec::new()),
            Some(DeValue::Array(items)) => items,
            Some(_) => return Err(self.wrong(name, wanted)),
        };
        let section = |item: &'a Spanned<DeValue<'a>>| match item.get_ref() {
            DeValue::Table(table) => Some(Section {
                text: self.text,
                span: (item.span().start, item.span().end),
                table,
            }),
            _ => None,
        };
        let all: Option<Vec<_>> = items.iter().map(section).collect();
        all.ok_or_else(|| self.wrong(name, wanted))
    }
}

fn text_of(value: Option<&DeValue<'_>>) -> Option<String> {
    match value {
        Some(DeValue::String(text))
            if text.chars().count() <= CHARS_MAX && !text.contains(char::is_control) =>
        {
            Some(text.to_string())
        }
        _ => None,
    }
}

fn number_of(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
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
        Table::parse(&TABLE.replacen(from, to, 1)).unwrap_err()
    }

    fn line_of(text: &str) -> usize {
        1 + TABLE.lines().position(|line| line.contains(text)).unwrap()
    }

    #[test]
    fn a_table_is_read() {
        let table = Table::parse(TABLE).unwrap();
        assert_eq!((table.name.as_str(), table.runs.len()), ("Z", 2));
        let figures = &table.runs[0].figures;
        assert_eq!(figures[0].measured_mean(), Some(5.75));
        assert!(figures[0].is_fitted);
        assert_eq!(figures[1].measured_mean(), None);
        assert_eq!(table.runs[1].figures[0].quantity, None);
        assert!(table.runs[1].scenario.is_none());
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
                "measured = [5, -6.5] is wrong; give the measured numbers",
            ),
            (
                "discipline = \"freebsd-interrupt\"",
                "discipline = \"fast\"",
                "\"freebsd-interrupt\"",
                "discipline is freebsd-interrupt, freebsd-polling or napi",
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
                "a run has no host; it has name, discipline",
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
