//! A result by its name: a file of another tool's output, or a study of the store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fmt, fs};

use nicpoll_import::{Quantity, ResultFormat, ToolRun};
use nicpoll_lab::still_runs;
use nicpoll_model::{
    ComparedAlone, FileError, Imported, ImportedTrial, Metric, Study, StudyKind, StudyState, Trial,
    Warning, WarningName,
};
use nicpoll_store::{Kept, Store, StoreError, Which};
use thiserror::Error;

use crate::judge::comparisons::{metrics, value};
use crate::judge::conclude;
use crate::run::session::{StudyError, design_of};

/// A stored study as it is shown. Of one that is not finished, what follows from its trials so far, and that it
/// is not finished.
///
/// # Errors
/// When what is stored of it cannot be read.
pub fn shown(kept: Kept<Study>) -> Result<Study, StudyError> {
    let entry = &kept.entry;
    if entry.state == StudyState::Finished {
        return Ok(kept.document);
    }
    let id = entry.id;
    let design = design_of(&kept)?;
    let goes_on = match entry.state {
        StudyState::Running => String::from("it is running"),
        _ => format!("'nicpoll study run --resume {id}' goes on with it"),
    };
    let unfinished = Warning {
        name: WarningName::Interrupted,
        text: format!(
            "study {id} is not finished: {} of {} trials are stored; {goes_on}",
            entry.trials_done, entry.trials_planned
        ),
    };
    let mut study = kept.document;
    study.warnings.push(unfinished);
    Ok(conclude(&design, study)?)
}

/// Runs from which on they are the values, and the intervals of a single run are not.
const RUNS_MIN: usize = 3;

/// Larger files are no results: they would be read into memory whole.
const FILE_MAX_BYTES: u64 = 256 << 20;

/// A study, and which of its trials: `7`, `last`, `7:polling`, `7:polling:udp64`.
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
        let mut parts = text.split(':');
        let which = parts.next().unwrap_or_default().parse();
        let which: Which = which.map_err(|_| ResultError::NoSuch(String::from(text)))?;
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

    /// The setting that is named.
    pub(crate) fn setting_of(&self, held: &Held) -> Result<String, ResultError> {
        self.setting_among(&held.settings())
    }

    /// The setting that is named, which must be one of these.
    pub(crate) fn setting_among(&self, names: &[&str]) -> Result<String, ResultError> {
        let named = self
            .setting
            .clone()
            .filter(|it| names.contains(&it.as_str()));
        named.ok_or_else(|| ResultError::Setting {
            name: self.text.clone(),
            known: names.join(", "),
        })
    }
}

/// A result that was read.
#[derive(Clone, Debug)]
pub enum ResultSource {
    /// A study of the store.
    Study(Box<StudySource>),
    /// A file.
    File(FileSource),
}

/// A stored study.
#[derive(Clone, Debug)]
pub struct StudySource {
    pub(crate) id: i64,
    pub(crate) name: ResultName,
    pub(crate) held: Held,
}

/// What a stored study is.
#[derive(Clone, Debug)]
pub(crate) enum Held {
    Study(Box<Study>),
    Imported(Box<Imported>),
}

impl Held {
    fn is_imported(&self) -> bool {
        matches!(self, Held::Imported(_))
    }

    fn settings(&self) -> Vec<&str> {
        match self {
            Held::Study(study) => study
                .settings
                .iter()
                .map(|it| it.setting.as_str())
                .collect(),
            Held::Imported(imported) => imported.settings(),
        }
    }

    fn workloads(&self) -> Vec<&str> {
        match self {
            Held::Study(study) => study
                .workloads
                .iter()
                .map(|it| it.workload.as_str())
                .collect(),
            Held::Imported(imported) => imported.workloads(),
        }
    }

    /// The workloads and settings that trials have.
    fn pairs(&self) -> BTreeSet<(String, String)> {
        let of = |workload: &String, setting: &String| (workload.clone(), setting.clone());
        match self {
            Held::Study(study) => study
                .trials
                .iter()
                .map(|it| of(&it.workload, &it.setting))
                .collect(),
            Held::Imported(imported) => imported
                .trials
                .iter()
                .map(|it| of(&it.workload, &it.setting))
                .collect(),
        }
    }

    /// The values under a workload and a setting, in the order of the trials.
    pub(crate) fn values(&self, workload: &str, setting: &str) -> Values {
        match self {
            Held::Study(study) => of_study(study, workload, setting),
            Held::Imported(document) => imported_values(&document.trials, workload, setting),
        }
    }

    /// The same in another quantity, where that is one that a study has as well.
    pub(crate) fn values_in(&self, quantity: &str, workload: &str, setting: &str) -> Values {
        let values = self.values(workload, setting);
        match self {
            Held::Study(study) => of_study_in(quantity, study, workload, setting, values),
            Held::Imported(_) => values,
        }
    }

    /// The name that traffic of this kind has in an import. A study's own name where it has none, or where two of
    /// its workloads would have it.
    fn kind<'a>(&'a self, workload: &'a str) -> &'a str {
        let Held::Study(study) = self else {
            return workload;
        };
        let kind_of = |name: &str| {
            let facts = study.workloads.iter().find(|it| it.workload == name);
            facts.and_then(|it| it.kind.as_deref())
        };
        let kind = kind_of(workload);
        let alike = study
            .workloads
            .iter()
            .filter(|it| it.kind.as_deref() == kind);
        kind.filter(|_| alike.count() == 1).unwrap_or(workload)
    }
}

/// The workloads and settings of a study that can be compared: by what both sides call the workload, what the study
/// itself calls it.
pub(crate) type Cells = BTreeMap<(String, String), String>;

impl StudySource {
    /// The workloads and settings that have trials, of those that the name takes.
    pub(crate) fn cells(&self, other: &StudySource) -> Cells {
        let is_named = |setting: &str| self.name.setting.as_ref().is_none_or(|it| it == setting);
        let is_mixed = self.held.is_imported() != other.held.is_imported();
        let cells = self.held.pairs().into_iter();
        cells
            .filter(|(workload, setting)| self.name.takes(workload) && is_named(setting))
            .map(|(workload, setting)| {
                let common = match is_mixed {
                    true => String::from(self.held.kind(&workload)),
                    false => workload.clone(),
                };
                ((common, setting), workload)
            })
            .collect()
    }

    /// A workload and a setting that the other study does not have.
    pub(crate) fn alone(&self, workload: String, setting: String) -> ComparedAlone {
        ComparedAlone {
            result: self.name.to_string(),
            workload,
            setting,
        }
    }
}

/// What a file holds.
#[derive(Clone, Debug)]
pub struct FileSource {
    path: PathBuf,
    values: Values,
}

/// Why results cannot be compared.
#[derive(Debug, Error)]
pub enum ResultError {
    /// Neither a file nor a study.
    #[error(
        "there is no file '{0}', and it names no study: give a file, or a study as in 7, 7:polling or last"
    )]
    NoSuch(String),
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what it looks like.
    #[error("{}, {source} (read as {format})", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What it was read as.
        format: &'static str,
        /// Where, and what was expected.
        source: FileError,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A study does not have the setting that is named, or none is named where one must be.
    #[error(
        "{name} names no setting of the study; name one as in 7:{{SETTING}}, where it is {known}"
    )]
    Setting {
        /// What was named.
        name: String,
        /// The settings that there are.
        known: String,
    },
    /// A study with several workloads is held against a file.
    #[error(
        "{name} has several workloads; name one as in 7:polling:{{WORKLOAD}}, where it is {known}"
    )]
    Workload {
        /// What was named.
        name: String,
        /// The workloads that there are.
        known: String,
    },
    /// One result twice.
    #[error("{0} is both results; name another to hold it against")]
    Same(String),
    /// No workload or setting is in both studies.
    #[error(
        "the two studies have no workload with a setting of one name; name settings, as in 7:polling 8:interrupt"
    )]
    NothingInCommon,
    /// Figures that are not of one kind.
    #[error("{reference}, and {judged}: only figures of one kind can be compared")]
    Quantities {
        /// What the reference has.
        reference: String,
        /// What the other has.
        judged: String,
    },
    /// Values that have no ratio.
    #[error("{0} has values below 0, which have no ratio; --ministat compares differences")]
    Negative(String),
    /// The statistics refuse.
    #[error("{0}")]
    Study(String),
}

impl fmt::Display for ResultSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResultSource::Study(study) => study.name.fmt(f),
            ResultSource::File(file) => file.path.display().fmt(f),
        }
    }
}

impl ResultSource {
    /// Reads a file, or else a study of the store. `column` is that of a table of numbers, from 1.
    ///
    /// # Errors
    /// [`ResultError`] when there is neither, or it cannot be read.
    pub fn read(
        name: &str,
        column: usize,
        store: impl FnOnce() -> Result<Store, StoreError>,
    ) -> Result<ResultSource, ResultError> {
        let path = Path::new(name);
        if path.is_file() {
            return Ok(ResultSource::File(FileSource::read(path, column)?));
        }
        ResultSource::stored(name.parse()?, &store()?)
    }

    /// Reads a study of the store, and no file.
    ///
    /// # Errors
    /// [`ResultError`] when there is none, or it cannot be read.
    pub fn stored(name: ResultName, store: &Store) -> Result<ResultSource, ResultError> {
        let entry = store.entry(name.which, still_runs)?;
        let which = Which::Id(entry.id);
        let held = match entry.kind {
            StudyKind::Imported => {
                Held::Imported(Box::new(store.read(which, still_runs)?.document))
            }
            _ => Held::Study(Box::new(store.read(which, still_runs)?.document)),
        };
        Ok(ResultSource::Study(Box::new(StudySource {
            id: entry.id,
            name,
            held,
        })))
    }

    /// The numbers alone, in their order: what ministat would read.
    ///
    /// # Errors
    /// [`ResultError`] when a study's setting or workload is not named.
    pub fn numbers(&self) -> Result<Vec<f64>, ResultError> {
        Ok(self.values()?.values)
    }

    /// The one set of values that it has.
    pub(crate) fn values(&self) -> Result<Values, ResultError> {
        let StudySource { name, held, .. } = match self {
            ResultSource::File(file) => return Ok(file.values.clone()),
            ResultSource::Study(study) => &**study,
        };
        let setting = name.setting_of(held)?;
        let names = held.workloads();
        let chosen: Vec<&&str> = names.iter().filter(|it| name.takes(it)).collect();
        let [workload] = chosen[..] else {
            return Err(ResultError::Workload {
                name: name.to_string(),
                known: names.join(", "),
            });
        };
        // What files call it.
        let quantity = Quantity::BitsPerSecond.name();
        Ok(held.values_in(quantity, workload, &setting))
    }
}

impl FileSource {
    fn read(path: &Path, column: usize) -> Result<Self, ResultError> {
        let unread = |source| ResultError::File {
            path: path.to_owned(),
            source,
        };
        if fs::metadata(path).map_err(unread)?.len() > FILE_MAX_BYTES {
            let why = "the file is larger than 256 MiB, which no tool's results are";
            return Err(unread(std::io::Error::other(why)));
        }
        let text = fs::read_to_string(path).map_err(unread)?;
        let format = ResultFormat::of(&text);
        let values = format
            .read(&text, column)
            .and_then(|runs| values_of(&runs, format));
        let values = values.map_err(|source| ResultError::Unreadable {
            path: path.to_owned(),
            format: format.name,
            source,
        })?;
        Ok(FileSource {
            path: path.to_owned(),
            values,
        })
    }
}

/// The values of a file's runs.
fn values_of(runs: &[ToolRun], format: &ResultFormat) -> Result<Values, FileError> {
    let fails = |line, message: &str| FileError {
        line,
        message: String::from(message),
    };
    let quantity = runs.first().map_or(Quantity::Number, |run| run.quantity);
    let intervals = match runs {
        [one] if one.series.len() >= RUNS_MIN => Some(one.series.clone()),
        _ => None,
    };
    let are_intervals = intervals.is_some();
    let values = match intervals {
        Some(series) => series,
        None => {
            let whole = |run: &ToolRun| {
                let cut =
                    "the run that begins here was cut off: there is no figure of the whole run";
                run.value.ok_or_else(|| fails(run.line, cut))
            };
            runs.iter().map(whole).collect::<Result<_, _>>()?
        }
    };
    Ok(Values {
        quantity: String::from(quantity.name()),
        read_as: String::from(format.name),
        values,
        are_intervals,
        is_sent: runs.iter().any(|run| run.is_sent),
    })
}

/// A set of values with what the text around it says of them.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    /// What the values are.
    pub quantity: String,
    /// How they were read.
    pub read_as: String,
    pub values: Vec<f64>,
    pub are_intervals: bool,
    pub is_sent: bool,
}

/// What a study's streams and datagrams are compared by.
const DELIVERED_BITS: Metric = Metric::DeliveredBitsPerSecond;

/// The values of a study's trials under a workload and a setting, in their order. What an event from outside voids
/// is left out, as in the study's own comparisons.
pub(crate) fn of_study(study: &Study, workload: &str, setting: &str) -> Values {
    let facts = study.workloads.iter().find(|it| it.workload == workload);
    let metric = facts.map(|it| metrics(it.unit)[0]);
    let trials = study.trials.iter();
    let trials = trials.filter(|it| it.workload == workload && it.setting == setting);
    Values {
        quantity: metric.map_or("", |it| it.name()).to_owned(),
        read_as: String::from("study"),
        values: trials.filter_map(|it| value(it, metric?)).collect(),
        are_intervals: false,
        is_sent: false,
    }
}

/// The same values as an import has them: payload by its plain name, and datagrams a second where those are counted.
/// Any other quantity leaves them as they are.
pub(crate) fn of_study_in(
    quantity: &str,
    study: &Study,
    workload: &str,
    setting: &str,
    values: Values,
) -> Values {
    let quantity = Quantity::ALL.into_iter().find(|it| it.name() == quantity);
    match quantity {
        Some(Quantity::BitsPerSecond) if values.quantity == DELIVERED_BITS.name() => Values {
            quantity: String::from(Quantity::BitsPerSecond.name()),
            ..values
        },
        Some(Quantity::PacketsPerSecond) if values.quantity == DELIVERED_BITS.name() => {
            let trials = study.trials.iter();
            let trials = trials.filter(|it| it.workload == workload && it.setting == setting);
            // A trial without a result delivered nothing; what was disturbed from outside is left out.
            let rate = |trial: &Trial| match trial.result() {
                Some(figures) => figures.delivered_packets_per_second,
                None => trial.conduct.is_kept().then_some(0.0),
            };
            Values {
                quantity: String::from(Quantity::PacketsPerSecond.name()),
                values: trials.filter_map(rate).collect(),
                ..values
            }
        }
        _ => values,
    }
}

/// The rates of the trials of a workload under a setting, in the order of the text.
pub(crate) fn imported_values(trials: &[ImportedTrial], workload: &str, setting: &str) -> Values {
    let of = trials
        .iter()
        .filter(|it| it.workload == workload && it.setting == setting);
    values_of_trials(&of.collect::<Vec<_>>())
}

pub fn values_of_trials(trials: &[&ImportedTrial]) -> Values {
    Values {
        quantity: trials
            .first()
            .map(|it| it.quantity.clone())
            .unwrap_or_default(),
        read_as: String::from("imported trials"),
        values: trials.iter().filter_map(|it| it.value).collect(),
        are_intervals: false,
        is_sent: trials.iter().any(|it| it.is_sent),
    }
}
