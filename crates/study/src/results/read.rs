//! A result by its name: a file, or a study of the store.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use nicpoll_import::{Quantity, ResultFormat, ToolRun};
use nicpoll_model::{ComparedAlone, FileError, Imported, Study, StudyKind};
use nicpoll_store::{Store, StoreError, Which};
use thiserror::Error;

use super::{Values, imported, of_study, of_study_in};
use crate::keep::still_runs;

/// Runs from which on they are the values, and the intervals of a single run are not.
const RUNS_MIN: usize = 3;
/// Larger files are no results: they would be read into memory whole.
const FILE_MAX_BYTES: u64 = 256 << 20;

/// A study, and which of its trials: `7`, `last`, `7:polling`, `7:polling:udp64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultName {
    text: String,
    which: Which,
    pub(super) setting: Option<String>,
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
    pub(super) fn takes(&self, workload: &str) -> bool {
        self.workload.as_ref().is_none_or(|it| it == workload)
    }

    /// The setting that is named.
    pub(super) fn setting_of(&self, held: &Held) -> Result<String, ResultError> {
        self.setting_among(&held.settings())
    }

    /// The setting that is named, which must be one of these.
    pub(super) fn setting_among(&self, names: &[&str]) -> Result<String, ResultError> {
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
    pub(super) id: i64,
    pub(super) name: ResultName,
    pub(super) held: Held,
}

/// What a stored study is.
#[derive(Clone, Debug)]
pub(super) enum Held {
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
    pub(super) fn values(&self, workload: &str, setting: &str) -> Values {
        match self {
            Held::Study(study) => of_study(study, workload, setting),
            Held::Imported(document) => imported::values(&document.trials, workload, setting),
        }
    }

    /// The same in another quantity, where that is one that a study has as well.
    pub(super) fn values_in(&self, quantity: &str, workload: &str, setting: &str) -> Values {
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
pub(super) type Cells = BTreeMap<(String, String), String>;

impl StudySource {
    /// The workloads and settings that have trials, of those that the name takes.
    pub(super) fn cells(&self, other: &StudySource) -> Cells {
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
    pub(super) fn alone(&self, workload: String, setting: String) -> ComparedAlone {
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
    pub(super) fn values(&self) -> Result<Values, ResultError> {
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
