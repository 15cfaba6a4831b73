//! A file of studies.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use nicpoll_model::{STUDIES_SCHEMA, Studies, StudiesAction, StudyEntry, StudyKind, StudyState};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use serde_json::Value;
use thiserror::Error;

use crate::document::{Stored, field_of_trials};
use crate::error::{Reason, StoreError};
use crate::open;
use crate::recording::{Recording, text_of};

/// Which study is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one with this number.
    Id(i64),
    /// The newest; when one is to be resumed, the newest that is unfinished.
    Last,
}

/// A word that names no study.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{0}' is no study: give its number, as in 7, or 'last'")]
pub struct NoSuchWord(String);

impl FromStr for Which {
    type Err = NoSuchWord;

    fn from_str(text: &str) -> Result<Self, NoSuchWord> {
        if text == "last" {
            return Ok(Which::Last);
        }
        let id = text.parse().ok().filter(|id| *id > 0).map(Which::Id);
        id.ok_or_else(|| NoSuchWord(String::from(text)))
    }
}

/// A study as it is stored.
#[derive(Clone, Debug)]
pub struct Kept<D: Stored> {
    /// Its line in the list.
    pub entry: StudyEntry,
    /// What whoever began it needs to go on with it, as JSON.
    pub design: String,
    /// The document with its trials. Of an unfinished study, what follows from the trials is missing in it.
    pub document: D,
    /// How long each trial took with all that belongs to it.
    pub taken: Vec<Duration>,
}

/// A file of studies.
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

/// A live comparison does not say how long it took: its pairs do.
const ENTRY: &str = "SELECT id, kind, state, reason, owner, started_at, \
     coalesce(elapsed_seconds, (SELECT sum(taken_seconds) FROM trial WHERE study = study.id), 0.0), \
     trials_planned, kernel, nicpoll_version, argv, \
     (SELECT count(*) FROM trial WHERE study = study.id), schema FROM study";

/// What the list has of a study, with its owner and layout.
struct Line {
    entry: StudyEntry,
    owner: Option<String>,
    schema: String,
}

impl Store {
    /// Opens a file to store studies in, and makes it where there is none.
    ///
    /// # Errors
    /// When it cannot be written, is damaged, or is not one that this program knows.
    pub fn to_write(path: &Path) -> Result<Self, StoreError> {
        let (path, connection) = open::to_write(path)?;
        Ok(Store { connection, path })
    }

    /// Opens a file to read what it holds.
    ///
    /// # Errors
    /// When it is not there or cannot be read, is damaged, or is not one that this program knows.
    pub fn to_read(path: &Path) -> Result<Self, StoreError> {
        let (path, connection) = open::to_read(path)?;
        Ok(Store { connection, path })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins a study of a `kind` that has this document. `head` is the document as far as it is known, `design`
    /// what it takes to resume it, and `owner` names this process.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin<D: Stored>(
        self,
        kind: StudyKind,
        head: &D,
        trials_planned: u32,
        design: &str,
        owner: &str,
    ) -> Result<Recording, StoreError> {
        debug_assert!(D::KINDS.contains(&kind));
        let inserted = self.connection.execute(
            "INSERT INTO study (kind, state, owner, trials_planned, design, document)
             VALUES (?1, 'running', ?2, ?3, ?4, ?5)",
            params![kind.name(), owner, trials_planned, design, text_of(head)],
        );
        inserted.map_err(StoreError::file("storing the study in", &self.path))?;
        let id = self.connection.last_insert_rowid();
        Ok(Recording::of(self.connection, &self.path, id, 0))
    }

    /// Goes on with a study that nobody runs: from now on `owner` does.
    ///
    /// # Errors
    /// When there is none, it is finished or still runs, or the file cannot be read or written.
    pub fn resume<D: Stored>(
        mut self,
        which: Which,
        owner: &str,
        is_running: impl Fn(&str) -> bool,
    ) -> Result<(Recording, Kept<D>), StoreError> {
        let id = self.unfinished(which, D::KINDS, &is_running)?;
        let doing = || StoreError::file("resuming a study in", &self.path);
        let behavior = TransactionBehavior::Immediate;
        let claim = self.connection.transaction_with_behavior(behavior);
        let claim = claim.map_err(doing())?;
        let line = line_of(&claim, id).map_err(doing())?;
        let line = line.ok_or_else(|| no_study(Which::Id(id), &self.path))?;
        fit_to_resume(&line, D::KINDS, &is_running)?;
        claim
            .execute(
                "UPDATE study SET state = 'running', reason = NULL, owner = ?1 WHERE id = ?2",
                params![owner, id],
            )
            .map_err(doing())?;
        claim.commit().map_err(doing())?;
        let kept: Kept<D> = self.read(Which::Id(id), is_running)?;
        let stored = kept.taken.len() as u32;
        let recording = Recording::of(self.connection, &self.path, id, stored);
        Ok((recording, kept))
    }

    fn unfinished(
        &self,
        which: Which,
        kinds: &[StudyKind],
        is_running: &impl Fn(&str) -> bool,
    ) -> Result<i64, StoreError> {
        if let Which::Id(id) = which {
            return Ok(id);
        }
        let all = self.lines(is_running)?.into_iter().rev();
        let mut unfinished = all.filter(|line| fit_to_resume(line, kinds, is_running).is_ok());
        let newest = unfinished.next().map(|line| line.entry.id);
        newest.ok_or_else(|| StoreError::NoneUnfinished {
            path: self.path.clone(),
        })
    }

    /// All studies, the oldest first. `is_running` tells whether an owner still runs.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn list(&self, is_running: impl Fn(&str) -> bool) -> Result<Studies, StoreError> {
        let lines = self.lines(&is_running)?.into_iter();
        Ok(self.studies(StudiesAction::Listed, lines.map(|line| line.entry)))
    }

    fn studies(&self, action: StudiesAction, studies: impl Iterator<Item = StudyEntry>) -> Studies {
        Studies {
            schema: String::from(STUDIES_SCHEMA),
            store: self.path.display().to_string(),
            action,
            studies: studies.collect(),
            ready: Vec::new(),
        }
    }

    fn lines(&self, is_running: &impl Fn(&str) -> bool) -> Result<Vec<Line>, StoreError> {
        let read = || -> rusqlite::Result<Vec<Line>> {
            let mut statement = self.connection.prepare(&format!("{ENTRY} ORDER BY id"))?;
            let lines = statement.query_map([], line)?;
            lines.collect()
        };
        let lines = read().map_err(StoreError::file("reading", &self.path))?;
        let lines = lines.into_iter();
        Ok(lines.map(|line| line.with_owner(is_running)).collect())
    }

    /// A study's line in the list.
    ///
    /// # Errors
    /// When there is none, or the file cannot be read.
    pub fn entry(
        &self,
        which: Which,
        is_running: impl Fn(&str) -> bool,
    ) -> Result<StudyEntry, StoreError> {
        Ok(self.line(which)?.with_owner(&is_running).entry)
    }

    /// A study with all its trials.
    ///
    /// # Errors
    /// When there is none, it is of another kind or layout, or the file cannot be read.
    pub fn read<D: Stored>(
        &self,
        which: Which,
        is_running: impl Fn(&str) -> bool,
    ) -> Result<Kept<D>, StoreError> {
        let line = self.line(which)?.with_owner(&is_running);
        let id = line.entry.id;
        if !D::KINDS.contains(&line.entry.kind) || line.schema != D::SCHEMA {
            return Err(StoreError::Layout {
                id,
                found: line.schema,
                known: D::SCHEMA,
            });
        }
        let texts = self.texts(id);
        let texts = texts.map_err(StoreError::file("reading", &self.path))?;
        let unreadable = |source| StoreError::Document { id, source };
        let mut document: D = serde_json::from_str(&texts.head).map_err(unreadable)?;
        let mut taken = Vec::new();
        for (seconds, trial) in texts.trials {
            let trial = serde_json::from_str(&trial).map_err(unreadable)?;
            document.trials().push(trial);
            taken.push(Duration::try_from_secs_f64(seconds).unwrap_or_default());
        }
        Ok(Kept {
            entry: line.entry,
            design: texts.design,
            document,
            taken,
        })
    }

    /// A study's document as it is stored, whatever its kind and layout: an object with its trials.
    ///
    /// # Errors
    /// When there is none, or the file cannot be read.
    pub fn document(&self, which: Which) -> Result<Value, StoreError> {
        let StudyEntry { id, kind, .. } = self.line(which)?.entry;
        let texts = self.texts(id);
        let texts = texts.map_err(StoreError::file("reading", &self.path))?;
        let read = |text: &str| {
            let value = serde_json::from_str::<Value>(text);
            value.map_err(|source| StoreError::Document { id, source })
        };
        let mut document = read(&texts.head)?;
        let trials = texts.trials.iter().map(|(_, trial)| read(trial));
        document[field_of_trials(kind)] = Value::Array(trials.collect::<Result<_, _>>()?);
        Ok(document)
    }

    /// Deletes studies with their trials, or tells what it would delete. None of them may run. All of them go,
    /// or none.
    ///
    /// # Errors
    /// When one of them is not there or runs, or the file cannot be written.
    pub fn delete(
        &mut self,
        which: &[Which],
        is_dry_run: bool,
        is_running: impl Fn(&str) -> bool,
    ) -> Result<Studies, StoreError> {
        let mut entries: Vec<StudyEntry> = Vec::new();
        for which in which {
            let entry = self.line(*which)?.with_owner(&is_running).entry;
            if entry.state == StudyState::Running {
                let is = "is running; stop it first";
                return Err(unfit(entry.id, is));
            }
            if entries.iter().all(|known| known.id != entry.id) {
                entries.push(entry);
            }
        }
        let action = if is_dry_run {
            StudiesAction::WouldDelete
        } else {
            let ids: Vec<i64> = entries.iter().map(|entry| entry.id).collect();
            let deleted = self.delete_all(&ids);
            deleted.map_err(StoreError::file("deleting from", &self.path))?;
            StudiesAction::Deleted
        };
        Ok(self.studies(action, entries.into_iter()))
    }

    fn delete_all(&mut self, ids: &[i64]) -> Result<(), Reason> {
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        for id in ids {
            // Trials go with their study.
            transaction.execute("DELETE FROM study WHERE id = ?1", [id])?;
        }
        Ok(transaction.commit()?)
    }

    fn line(&self, which: Which) -> Result<Line, StoreError> {
        let found = match which {
            Which::Id(id) => line_of(&self.connection, id),
            Which::Last => newest(&self.connection),
        };
        let found = found.map_err(StoreError::file("reading", &self.path))?;
        found.ok_or_else(|| no_study(which, &self.path))
    }

    fn texts(&self, id: i64) -> rusqlite::Result<Texts> {
        let sql = "SELECT design, document FROM study WHERE id = ?1";
        let (design, head) = self
            .connection
            .query_row(sql, [id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let sql = "SELECT taken_seconds, document FROM trial WHERE study = ?1 ORDER BY sequence";
        let mut statement = self.connection.prepare(sql)?;
        let trials = statement.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Texts {
            design,
            head,
            trials: trials.collect::<rusqlite::Result<_>>()?,
        })
    }
}

/// The rows of a study.
struct Texts {
    design: String,
    head: String,
    /// Seconds that each trial took, and its document.
    trials: Vec<(f64, String)>,
}

impl Line {
    /// Whoever is said to run it may be gone.
    fn with_owner(mut self, is_running: &impl Fn(&str) -> bool) -> Self {
        let runs = self.owner.as_deref().is_some_and(is_running);
        if self.entry.state == StudyState::Running && !runs {
            self.entry.state = StudyState::Killed;
        }
        self
    }
}

fn line_of(connection: &Connection, id: i64) -> rusqlite::Result<Option<Line>> {
    let sql = format!("{ENTRY} WHERE id = ?1");
    connection.query_row(&sql, [id], line).optional()
}

fn newest(connection: &Connection) -> rusqlite::Result<Option<Line>> {
    let sql = format!("{ENTRY} ORDER BY id DESC LIMIT 1");
    connection.query_row(&sql, [], line).optional()
}

/// One row of [`ENTRY`].
fn line(row: &Row<'_>) -> rusqlite::Result<Line> {
    let state: String = row.get(2)?;
    let argv: Option<String> = row.get(10)?;
    let kind: String = row.get(1)?;
    Ok(Line {
        entry: StudyEntry {
            id: row.get(0)?,
            kind: StudyKind::from_name(&kind).ok_or(rusqlite::Error::InvalidQuery)?,
            state: match state.as_str() {
                "finished" => StudyState::Finished,
                "ended_early" => StudyState::EndedEarly,
                _ => StudyState::Running,
            },
            reason: row.get(3)?,
            started_at: row.get(5)?,
            elapsed_seconds: row.get(6)?,
            trials_planned: row.get(7)?,
            kernel: row.get(8)?,
            nicpoll_version: row.get(9)?,
            argv: serde_json::from_str(&argv.unwrap_or_default()).unwrap_or_default(),
            trials_done: row.get(11)?,
        },
        owner: row.get(4)?,
        schema: row.get(12)?,
    })
}

fn fit_to_resume(
    line: &Line,
    kinds: &[StudyKind],
    is_running: &impl Fn(&str) -> bool,
) -> Result<(), StoreError> {
    let StudyEntry {
        id, state, kind, ..
    } = line.entry;
    if !kinds.contains(&kind) || kind == StudyKind::Imported {
        let is = match kind {
            StudyKind::Imported => {
                "was measured by another program: there is nothing to go on with"
            }
            StudyKind::Ab => "is a live comparison, which 'nicpoll ab' alone can go on with",
            _ => "is no live comparison: 'nicpoll study run --resume' goes on with it",
        };
        return Err(unfit(id, is));
    }
    if state == StudyState::Finished {
        let is = format!("is finished; 'nicpoll study show {id}' shows it");
        return Err(unfit(id, &is));
    }
    if line.owner.as_deref().is_some_and(is_running) {
        return Err(unfit(id, "is running in another process"));
    }
    Ok(())
}

fn unfit(id: i64, is: &str) -> StoreError {
    StoreError::Unfit {
        id,
        is: String::from(is),
    }
}

fn no_study(which: Which, path: &Path) -> StoreError {
    StoreError::NoStudy {
        which: match which {
            Which::Id(id) => id.to_string(),
            Which::Last => String::from("yet"),
        },
        path: path.to_owned(),
    }
}
