//! Reads a result by its name: a file of another tool's output, or a stored study.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use nicpoll_import::{MeasuredQuantity, ResultFormat, ToolRun};
use nicpoll_lab::still_runs;
use nicpoll_model::ab::LiveAb;
use nicpoll_model::{
    ComparedAlone, FileError, Imported, ImportedTrial, Measure, Metric, MetricKind, Study,
    StudyKind, StudyState, Trial, Warning, WarningName, WorkloadFacts,
};
use nicpoll_store::{OpenStore, Store, StoreError, StoredDocument, Which};
use nicpoll_switch::did_you_mean;
use nicpoll_sys::stdio::read_text;
use thiserror::Error;

use crate::design::measures::rate;
use crate::judge::comparisons::{value, what_happened};
use crate::judge::conclude;
use crate::judge::warnings::warning;
use crate::run::session::{StudyError, design_of};

/// Returns a stored study for display. An unfinished one is judged by its trials so far, and labelled.
///
/// # Errors
/// When its stored documents cannot be read.
pub fn shown(kept: StoredDocument<Study>) -> Result<Study, StudyError> {
    let entry = &kept.entry;
    if entry.state == StudyState::Finished {
        return Ok(kept.document);
    }
    let id = entry.id;
    let design = design_of(&kept)?;
    let state = match entry.state {
        StudyState::Running => "is running",
        _ => "was interrupted",
    };
    let (done, planned) = (entry.trials_done, entry.trials_planned);
    let (is_running, study) = (entry.state == StudyState::Running, kept.document);
    let (run, blocks) = (study.blocks_most(), study.plan.blocks);
    let goes_on = match is_running {
        true => String::new(),
        false => format!("; 'nicpoll study run --resume {id}' goes on with it"),
    };
    let text = format!(
        "study {id} {state}: {run} of {blocks} blocks, {done} of {planned} trials, are stored{goes_on}"
    );
    let mut study = conclude(&design, study)?;
    // The time of an unfinished study is not over.
    let is_over = |one: &Warning| one.name == WarningName::LimitCameFirst;
    study.warnings.retain(|one| !is_over(one));
    study.warnings.push(warning(WarningName::Interrupted, text));
    Ok(study)
}

/// Fewest runs that are compared as values; with fewer, the intervals of a single run are.
const RUNS_MIN: usize = 3;

/// Limit of a result file, which is read into memory whole.
const FILE_MAX_BYTES: u64 = 256 << 20;

/// Parts of a name: study, setting and workload.
const NAME_PARTS: usize = 3;

/// The name of a study or of some of its trials: `7`, `last`, `7:polling`, `7:polling:udp64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultName {
    text: String,
    which: Which,
    pub(crate) setting: Option<String>,
    workload: Option<String>,
}

impl FromStr for ResultName {
    type Err = ResultError;

    fn from_str(text: &str) -> Result<Self, ResultError> {
        let mut parts = text.splitn(NAME_PARTS, ':');
        let which = parts.next().unwrap_or_default().parse();
        let which: Which = which.map_err(|_| {
            ResultError::Named(format!(
                "there is no file '{text}', and it names no study: give a file, or a study as in 7, 7:polling or last"
            ))
        })?;
        let mut part = || parts.next().filter(|it| !it.is_empty()).map(String::from);
        Ok(ResultName {
            text: String::from(text),
            which,
            setting: part(),
            workload: part(),
        })
    }
}

impl fmt::Display for ResultName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl ResultName {
    pub(crate) fn takes(&self, workload: &str) -> bool {
        self.workload.as_ref().is_none_or(|it| it == workload)
    }
}

/// A result that was read.
#[derive(Clone, Debug)]
pub enum ResultSource {
    /// A study of the store.
    Study(Box<StudySource>),
    /// A comparison under live traffic, by its number in the store.
    Live(i64, Box<LiveAb>),
    /// A file.
    File(FileSource),
}

/// A stored study: the values of its trials by workload and setting.
#[derive(Clone, Debug)]
pub struct StudySource {
    pub(crate) id: i64,
    pub(crate) name: ResultName,
    /// The document, whose trials alternated; `None` of an import.
    pub(crate) study: Option<Box<Study>>,
    workloads: Vec<String>,
    settings: Vec<String>,
    cells: BTreeMap<(String, String), ValueSet>,
}

/// The workloads and settings of a study that can be compared: the study's own name of the workload, by the name that
/// both sides use and the setting.
pub(crate) type Cells = BTreeMap<(String, String), String>;

impl StudySource {
    pub(crate) fn of_study(id: i64, name: ResultName, study: Study) -> Self {
        let workloads = study.workloads.iter();
        let settings: Vec<String> = study.settings.iter().map(|it| it.setting.clone()).collect();
        let of = |workload: &WorkloadFacts, setting: &String| {
            let cell = (workload.workload.clone(), setting.clone());
            let trials = study.trials.iter();
            let trials = trials.filter(|it| (&it.workload, &it.setting) == (&cell.0, &cell.1));
            let values = values_of_study(trials, rate(workload.unit));
            (cell, values)
        };
        let cells = workloads
            .clone()
            .flat_map(|workload| settings.iter().map(move |setting| of(workload, setting)));
        StudySource {
            id,
            name,
            cells: cells.collect(),
            workloads: workloads.map(|it| it.workload.clone()).collect(),
            settings,
            study: Some(Box::new(study)),
        }
    }

    pub(crate) fn of_import(id: i64, name: ResultName, imported: &Imported) -> Self {
        let mut cells: BTreeMap<_, Vec<&ImportedTrial>> = BTreeMap::new();
        for trial in &imported.trials {
            let cell = (trial.workload.clone(), trial.setting.clone());
            cells.entry(cell).or_default().push(trial);
        }
        let cells = cells.into_iter();
        let owned = |names: Vec<&str>| names.into_iter().map(String::from).collect();
        StudySource {
            id,
            name,
            study: None,
            workloads: owned(imported.workloads()),
            settings: owned(imported.settings()),
            cells: cells
                .map(|(cell, trials)| (cell, values_of_trials(&trials)))
                .collect(),
        }
    }

    /// Checks that the study has the setting and the workload of its name.
    pub(crate) fn into_named(self) -> Result<Self, ResultError> {
        let parts = [
            ("setting", &self.name.setting, &self.settings),
            ("workload", &self.name.workload, &self.workloads),
        ];
        for (what, asked, known) in parts {
            let mistyped = asked.as_ref().filter(|asked| !known.contains(asked));
            if let Some(asked) = mistyped {
                let (id, text) = (self.id, &self.name.text);
                let meant = did_you_mean(asked, known.iter().map(String::as_str));
                let known = known.join(", ");
                return Err(ResultError::Named(format!(
                    "{text}: study {id} has no {what} '{asked}'; it has {known}{meant}"
                )));
            }
        }
        Ok(self)
    }

    /// Returns the setting in its name.
    pub(crate) fn setting(&self) -> Result<String, ResultError> {
        self.name.setting.clone().ok_or_else(|| {
            let (name, id, known) = (&self.name.text, self.id, self.settings.join(", "));
            ResultError::Unfit(format!(
                "{name} names no setting of the study; name one as in {id}:SETTING, where it is {known}"
            ))
        })
    }

    /// Names what it has: its settings and workloads.
    pub(crate) fn contents(&self) -> String {
        let (settings, workloads) = (self.settings.join(", "), self.workloads.join(", "));
        format!("{} has {settings} under {workloads}", self.id)
    }

    /// Makes the error of a study given twice, with what can be compared within it.
    pub(crate) fn compared_with_itself(&self) -> ResultError {
        let (id, known) = (self.id, self.settings.join(", "));
        let two: Vec<String> = self
            .settings
            .iter()
            .rev()
            .take(2)
            .rev()
            .map(|it| format!("{id}:{it}"))
            .collect();
        ResultError::Named(format!(
            "both results are study {id}: name another study, or two settings of this one, as in 'nicpoll study compare \
             {}'; it has {known}",
            two.join(" ")
        ))
    }

    /// Returns the metrics to compare with another study under a workload; none of an import, which has only rates.
    pub(crate) fn judged(&self, workload: &str) -> Vec<Metric> {
        let Some(study) = &self.study else {
            return Vec::new();
        };
        let planned = study.plan.drop_order.iter();
        let planned = planned.filter(|it| it.workload == workload);
        let mut judged: Vec<Metric> = Vec::new();
        for metric in planned.flat_map(|it| &it.metrics) {
            if !judged.contains(metric) {
                judged.push(*metric);
            }
        }
        judged
    }

    /// Returns the values of one metric under a workload and a setting of a measured study.
    pub(crate) fn values_of(&self, workload: &str, setting: &str, metric: Metric) -> ValueSet {
        let trials = self.study.iter().flat_map(|study| &study.trials);
        values_of_study(
            trials.filter(|it| it.workload == workload && it.setting == setting),
            metric,
        )
    }

    /// Returns the rates under a workload and a setting, in the order of the trials.
    pub(crate) fn values(&self, workload: &str, setting: &str) -> ValueSet {
        let cell = (String::from(workload), String::from(setting));
        self.cells.get(&cell).cloned().unwrap_or_default()
    }

    /// Returns the workloads and settings that have trials, as far as the name selects them.
    pub(crate) fn cells(&self, other: &StudySource) -> Cells {
        let is_named = |setting: &str| self.name.setting.as_ref().is_none_or(|it| it == setting);
        let is_mixed = self.study.is_some() != other.study.is_some();
        let cells = self.cells.iter().filter(|(_, values)| values.trials > 0);
        cells
            .map(|(cell, _)| cell.clone())
            .filter(|(workload, setting)| self.name.takes(workload) && is_named(setting))
            .map(|(workload, setting)| {
                let common = match (is_mixed, &self.study) {
                    (true, Some(study)) => String::from(kind_of(study, &workload)),
                    _ => workload.clone(),
                };
                ((common, setting), workload)
            })
            .collect()
    }

    /// Describes a workload and a setting that the other study does not have.
    pub(crate) fn alone(&self, workload: String, setting: String) -> ComparedAlone {
        ComparedAlone {
            result: self.name.to_string(),
            workload,
            setting,
        }
    }
}

/// Returns an import's name for this kind of traffic; the study's own name if there is none, or if two of its
/// workloads would share it.
fn kind_of<'a>(study: &'a Study, workload: &'a str) -> &'a str {
    let mut workloads = study.workloads.iter();
    let facts = workloads.find(|it| it.workload == workload);
    let kind = facts.and_then(|it| it.kind.as_deref());
    let alike = study.workloads.iter();
    let alike = alike.filter(|it| it.kind.as_deref() == kind);
    kind.filter(|_| alike.count() == 1).unwrap_or(workload)
}

/// The values of a file.
#[derive(Clone, Debug)]
pub struct FileSource {
    path: PathBuf,
    values: ValueSet,
}

/// Errors of comparing results.
#[derive(Debug, Error)]
pub enum ResultError {
    /// A wrong name, or a wrong file.
    #[error("{0}")]
    Named(String),
    /// The results cannot be compared.
    #[error("{0}")]
    Unfit(String),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl fmt::Display for ResultSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResultSource::Study(study) => study.name.fmt(f),
            ResultSource::Live(id, _) => id.fmt(f),
            ResultSource::File(file) => file.path.display().fmt(f),
        }
    }
}

/// An open result whose content has not been read: reading it needs no right to open it.
pub enum OpenResult {
    /// The text of a file, by its name.
    File(PathBuf, String),
    /// A study by its name, in its store.
    Study(ResultName, Box<OpenStore>),
}

impl OpenResult {
    /// Opens a file, or else the store for a study of that name.
    ///
    /// # Errors
    /// [`ResultError`] when there is neither, or it cannot be read.
    pub fn named(
        name: &str,
        store: impl FnOnce() -> Result<OpenStore, StoreError>,
    ) -> Result<Self, ResultError> {
        let path = Path::new(name);
        let is_study = name.parse::<ResultName>().is_ok();
        if path.is_file() || path.exists() && !is_study {
            let text = read_text(path, FILE_MAX_BYTES)
                .map_err(|error| ResultError::Named(format!("cannot read {name}: {error}")))?;
            return Ok(OpenResult::File(path.to_owned(), text));
        }
        Ok(OpenResult::Study(name.parse()?, Box::new(store()?)))
    }

    /// Reads the result. `column` of a table of numbers counts from 1; default: the first.
    ///
    /// # Errors
    /// [`ResultError`] when it cannot be read.
    pub fn read(self, column: Option<usize>) -> Result<ResultSource, ResultError> {
        match self {
            OpenResult::File(path, text) => {
                Ok(ResultSource::File(FileSource::of(path, &text, column)?))
            }
            OpenResult::Study(name, store) => ResultSource::stored(name, &store.store()?),
        }
    }
}

impl ResultSource {
    /// Reads a stored study, never a file.
    ///
    /// # Errors
    /// [`ResultError`] when there is none, or it cannot be read.
    pub fn stored(name: ResultName, store: &Store) -> Result<ResultSource, ResultError> {
        let entry = store.entry(name.which, still_runs)?;
        let which = Which::Id(entry.id);
        let source = match entry.kind {
            StudyKind::Ab => {
                let live = store.read(which, still_runs)?.document;
                return Ok(ResultSource::Live(entry.id, Box::new(live)));
            }
            StudyKind::Imported => {
                let imported = store.read(which, still_runs)?.document;
                StudySource::of_import(entry.id, name, &imported)
            }
            _ => StudySource::of_study(entry.id, name, store.read(which, still_runs)?.document),
        };
        Ok(ResultSource::Study(Box::new(source.into_named()?)))
    }

    /// Returns the numbers alone, in order, as ministat reads them.
    ///
    /// # Errors
    /// [`ResultError`] when a study's setting or workload is not named.
    pub fn numbers(&self) -> Result<Vec<f64>, ResultError> {
        Ok(self.values()?.values)
    }

    /// Returns its single set of values.
    pub(crate) fn values(&self) -> Result<ValueSet, ResultError> {
        let study = match self {
            ResultSource::File(file) => return Ok(file.values.clone()),
            ResultSource::Study(study) => study,
            ResultSource::Live(id, _) => {
                return Err(ResultError::Unfit(format!(
                    "{id} is of 'nicpoll ab', which compares two settings itself: 'nicpoll study show {id}'; --by host \
                     puts those of several hosts side by side"
                )));
            }
        };
        let setting = study.setting()?;
        let workloads = study.workloads.iter();
        let chosen: Vec<&String> = workloads.filter(|it| study.name.takes(it)).collect();
        let [workload] = chosen[..] else {
            let (name, known) = (&study.name, study.workloads.join(", "));
            return Err(ResultError::Unfit(format!(
                "{name} has several workloads; name one as in 7:polling:{{WORKLOAD}}, where it is {known}"
            )));
        };
        // The name of the quantity in files.
        let quantity = MeasuredQuantity::BitsPerSecond.name();
        Ok(study.values(workload, &setting).in_quantity(quantity))
    }
}

impl FileSource {
    fn of(path: PathBuf, text: &str, column: Option<usize>) -> Result<Self, ResultError> {
        let shown = path.display();
        let format = ResultFormat::of(text);
        let is_column_meant = column.is_some() || format.word != NUMBERS;
        let runs = match decimal_comma(text).filter(|_| !is_column_meant) {
            Some(error) => Err(error),
            None => format.read(text, column.unwrap_or(1)),
        };
        let values = runs.and_then(|runs| values_of(&runs, format));
        let values = values.map_err(|error| {
            ResultError::Named(format!("{shown}, {error} (read as {})", format.name))
        })?;
        Ok(FileSource { path, values })
    }
}

/// The format of a column of numbers.
const NUMBERS: &str = "numbers";

/// Returns the first line that may be a number with a decimal comma, or two columns.
fn decimal_comma(text: &str) -> Option<FileError> {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|it| it.is_ascii_digit());
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut found = lines.enumerate().filter(|(_, line)| {
        let parts = line.trim_start_matches('-').split_once(',');
        parts.is_some_and(|(whole, fraction)| is_number(whole) && is_number(fraction))
    });
    let (index, line) = found.next()?;
    let message = format!(
        "'{line}' is one number with a decimal comma, or two columns: write a decimal point, or choose with --column 1"
    );
    Some(FileError {
        line: index + 1,
        message,
    })
}

/// Returns the values of a file's runs.
fn values_of(runs: &[ToolRun], format: &ResultFormat) -> Result<ValueSet, FileError> {
    let fails = |line, message: &str| FileError {
        line,
        message: String::from(message),
    };
    let quantity = runs
        .first()
        .map_or(MeasuredQuantity::Number, |run| run.quantity);
    let intervals = match runs {
        [one] if one.series.len() >= RUNS_MIN => Some(one.series.clone()),
        _ => None,
    };
    let are_intervals = intervals.is_some();
    let values = match intervals {
        Some(series) => series,
        None => {
            let whole = |run: &ToolRun| {
                let lacks = "the run that begins here has no figure of the whole run; leave it out";
                run.value.ok_or_else(|| fails(run.line, lacks))
            };
            runs.iter().map(whole).collect::<Result<_, _>>()?
        }
    };
    Ok(ValueSet {
        quantity: String::from(quantity.name()),
        read_as: String::from(format.name),
        values,
        are_intervals,
        is_sent: runs.iter().any(|run| run.is_sent),
        ..ValueSet::default()
    })
}

/// A set of values with its description.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueSet {
    /// Name of the quantity.
    pub quantity: String,
    /// The study's metric; `None` for files and imports.
    pub metric: Option<Metric>,
    /// How they were read.
    pub read_as: String,
    /// Number of trials that they come from.
    pub trials: usize,
    pub values: Vec<f64>,
    /// The same in datagrams a second, if a study's values are payload.
    pub packets: Option<Vec<f64>>,
    pub are_intervals: bool,
    pub is_sent: bool,
    /// What happened to most of the trials that have no value.
    pub unmeasured: Option<String>,
}

impl ValueSet {
    /// Returns their measure; `None` for plain numbers.
    pub fn measure(&self) -> Option<Measure> {
        let quantity = || {
            MeasuredQuantity::ALL
                .into_iter()
                .find(|it| it.name() == self.quantity)
        };
        let of_quantity = || quantity()?.measure();
        self.metric.map(Metric::measure).or_else(of_quantity)
    }

    /// Returns whether they are compared by ratio or in points.
    pub fn kind(&self) -> MetricKind {
        self.metric.map_or(MetricKind::Ratio, Metric::kind)
    }

    /// Converts them to an import's quantity: payload by its plain name, or datagrams a second. Other quantities
    /// leave them as they are.
    pub fn in_quantity(mut self, quantity: &str) -> ValueSet {
        let Some(packets) = self.packets.take() else {
            return self;
        };
        if quantity == MeasuredQuantity::PacketsPerSecond.name() {
            self.values = packets;
        } else if quantity != MeasuredQuantity::BitsPerSecond.name() {
            return self;
        }
        self.quantity = String::from(quantity);
        self
    }
}

/// Returns the values of a study's trials of one workload and setting, in order. Trials voided by an external event
/// are left out, as in the study's own comparisons.
fn values_of_study<'a>(trials: impl Iterator<Item = &'a Trial>, metric: Metric) -> ValueSet {
    let trials: Vec<&Trial> = trials.collect();
    let rate = |it: &&Trial| it.result()?.delivered_packets_per_second;
    ValueSet {
        quantity: metric.name().to_owned(),
        read_as: String::from("study"),
        trials: trials.len(),
        metric: Some(metric),
        values: trials.iter().filter_map(|it| value(it, metric)).collect(),
        packets: (metric == Metric::DeliveredBitsPerSecond)
            .then(|| trials.iter().filter_map(rate).collect()),
        unmeasured: what_happened(&trials, metric),
        ..ValueSet::default()
    }
}

/// Returns the rates of imported trials, in the order of the text.
pub(crate) fn values_of_trials(trials: &[&ImportedTrial]) -> ValueSet {
    let first = trials.first();
    let without = trials.iter().filter(|it| it.value.is_none()).count();
    ValueSet {
        quantity: first.map(|it| it.quantity.clone()).unwrap_or_default(),
        read_as: String::from("imported trials"),
        trials: trials.len(),
        values: trials.iter().filter_map(|it| it.value).collect(),
        is_sent: trials.iter().any(|it| it.is_sent),
        unmeasured: (without > 0).then(|| {
            let all = trials.len();
            format!("{without} of {all} trials have no rate of the whole trial")
        }),
        ..ValueSet::default()
    }
}
