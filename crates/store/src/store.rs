//! A store of studies: lists, begins, records, resumes, reads and deletes them.
//!
//! A study's document is stored in two parts: its trials, one row each, and the rest. Each call of a [`Recording`] is
//! one transaction, on disk when it returns. After a failed call, committed data stays and further calls are allowed.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use nicpoll_model::Refused;
use nicpoll_model::ab::{AB_SCHEMA, AbPair, LiveAb};
use nicpoll_model::{
    IMPORTED_SCHEMA, Imported, ImportedTrial, SCHEMA, STUDIES_SCHEMA, Studies, StudiesAction,
    Study, StudyEntry, StudyKind, StudyState, Trial,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::database::{Database, SqlRow, Value as Cell, transact};
use crate::place::{Migration, Reason, StoreError, StorePlace};
#[cfg(feature = "postgres")]
use crate::postgres;
use crate::sqlite;

/// Selects a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one with this number.
    Id(i64),
    /// The newest; when one is to be resumed, the newest that is unfinished.
    Last,
}

impl FromStr for Which {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
        if text == "last" {
            return Ok(Which::Last);
        }
        let id = text.parse().ok().filter(|id| *id > 0).map(Which::Id);
        id.ok_or_else(|| {
            format!("'{text}' is no study: give its number, as in 7, or 'last'").into()
        })
    }
}

/// A study as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct StoredDocument<D: Stored> {
    /// Its line in the list.
    pub entry: StudyEntry,
    /// What resuming it needs, as JSON.
    pub design: String,
    /// The document with its trials. An unfinished study's has no results yet.
    pub document: D,
    /// Total duration of each trial.
    pub taken: Vec<Duration>,
}

/// A file of studies, or a server's.
pub struct Store {
    database: Box<dyn Database>,
    place: StorePlace,
    migration: Option<Migration>,
}

/// An open place whose content has not been read: reading it needs no right to open it.
pub struct OpenStore(OpenedDatabase);

enum OpenedDatabase {
    File(sqlite::OpenFile),
    #[cfg(feature = "postgres")]
    Server(postgres::OpenServer),
}

impl OpenStore {
    /// Opens a place. Reads no content, except of a file of this user's own that was left half written.
    ///
    /// # Errors
    /// When it is not there or cannot be opened.
    pub fn of(place: impl Into<StorePlace>) -> Result<Self, StoreError> {
        OpenStore::open(place.into(), false)
    }

    /// Opens a place for writing; creates it if needed.
    ///
    /// # Errors
    /// When it cannot be made or opened.
    pub fn to_write(place: impl Into<StorePlace>) -> Result<Self, StoreError> {
        OpenStore::open(place.into(), true)
    }

    fn open(place: StorePlace, is_written: bool) -> Result<Self, StoreError> {
        Ok(OpenStore(match place {
            StorePlace::File(path) if is_written => OpenedDatabase::File(sqlite::to_write(&path)?),
            StorePlace::File(path) => OpenedDatabase::File(sqlite::opened(&path)?),
            #[cfg(feature = "postgres")]
            StorePlace::Server(url) => OpenedDatabase::Server(postgres::opened(url, is_written)?),
            #[cfg(not(feature = "postgres"))]
            StorePlace::Server(_) => {
                return Err(StoreError::NoPlace(
                    "this nicpoll was built without PostgreSQL: build it with 'cargo build --release --features \
                     postgres', or name a file with --store FILE",
                ));
            }
        }))
    }

    /// Keeps others out of a file that is open for writing, and opens all that writing it takes.
    ///
    /// # Errors
    /// When another program holds a lock on it, or it cannot be written.
    pub fn alone(self) -> Result<Self, StoreError> {
        match self.0 {
            OpenedDatabase::File(file) => Ok(OpenStore(OpenedDatabase::File(file.alone()?))),
            #[cfg(feature = "postgres")]
            server @ OpenedDatabase::Server(_) => Ok(OpenStore(server)),
        }
    }

    /// Removes the empty journal that a process which was [`OpenStore::alone`] may not remove. One that stays does no
    /// harm.
    pub fn remove_journal(place: &StorePlace) {
        if let StorePlace::File(path) = place {
            let _ = sqlite::remove_journal(path);
        }
    }

    /// Returns its store. One of an older schema is converted if it is open for writing: see [`Store::migration`].
    ///
    /// # Errors
    /// When it is damaged, or is not one that this program knows.
    pub fn store(self) -> Result<Store, StoreError> {
        let (place, database, migration) = match self.0 {
            OpenedDatabase::File(file) => file.checked()?,
            #[cfg(feature = "postgres")]
            OpenedDatabase::Server(server) => server.checked()?,
        };
        Ok(Store {
            database,
            place,
            migration,
        })
    }
}

/// The documents of a live comparison and an import have no duration; their trials have. An import has no kernel: its
/// trials ran elsewhere.
const ENTRY: &str = "SELECT id, kind, state, reason, owner, started_at, \
     coalesce(elapsed_seconds, (SELECT sum(taken_seconds) FROM trial WHERE study = study.id), 0.0), \
     trials_planned, coalesce(kernel, ''), nicpoll_version, argv, \
     (SELECT count(*) FROM trial WHERE study = study.id), schema FROM study";

/// A study's line in the list, with its owner and layout.
struct ListedStudy {
    entry: StudyEntry,
    owner: Option<String>,
    schema: String,
}

impl Store {
    /// Opens a place for writing; creates it if needed. Copies and converts one of an older schema: see
    /// [`Store::migration`].
    ///
    /// # Errors
    /// When it cannot be written, is damaged, or is not one that this program knows.
    pub fn to_write(place: impl Into<StorePlace>) -> Result<Self, StoreError> {
        OpenStore::to_write(place)?.store()
    }

    /// Opens a place for reading, and leaves one of any schema as it is.
    ///
    /// # Errors
    /// When it is not there or cannot be read, is damaged, or is not one that this program knows.
    pub fn to_read(place: impl Into<StorePlace>) -> Result<Self, StoreError> {
        OpenStore::of(place)?.store()
    }

    /// Returns the conversion of its schema when it was opened, if any.
    pub fn migration(&self) -> Option<&Migration> {
        self.migration.as_ref()
    }

    /// Where it is.
    pub fn place(&self) -> &StorePlace {
        &self.place
    }

    /// Begins a study of `kind`. `head` is the document so far, `design` what resuming needs, and `owner` names this
    /// process.
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
        let values = [
            String::from(kind.name()).into(),
            String::from(owner).into(),
            trials_planned.into(),
            String::from(design).into(),
            text_of(head).into(),
        ];
        let id = transact(&*self.database, || {
            let sql = "INSERT INTO study (kind, state, owner, trials_planned, design, document) \
                       VALUES ($1, 'running', $2, $3, $4, $5) RETURNING id";
            let rows = self.database.run(sql, &values)?;
            let id = rows.first().ok_or_else(nothing_returned)?.integer(0)?;
            self.database.hold(id).map(|_| id)
        });
        let id = id.map_err(StoreError::at("storing the study in", &self.place))?;
        Ok(self.recording(id, 0))
    }

    /// Returns the unfinished study that is to be resumed.
    ///
    /// # Errors
    /// When there is none, it is finished or still runs, or the file cannot be read.
    pub fn unfinished<D: Stored>(
        &self,
        which: Which,
        is_running: impl Fn(&str) -> bool,
    ) -> Result<StoredDocument<D>, StoreError> {
        let line = match which {
            Which::Id(_) => self.line(which, &is_running)?,
            Which::Last => {
                let all = self.lines(&is_running)?.into_iter().rev();
                let mut unfinished = all.filter(|line| fit_to_resume(line, D::KINDS).is_ok());
                let newest = unfinished.next();
                newest.ok_or_else(|| StoreError::NoneUnfinished(self.place.clone()))?
            }
        };
        fit_to_resume(&line, D::KINDS)?;
        self.read(Which::Id(line.entry.id), is_running)
    }

    /// Resumes a study that [`Store::unfinished`] returned, for `owner`.
    ///
    /// # Errors
    /// When another process has resumed it since, or the file cannot be written.
    pub fn resume<D: Stored>(
        self,
        kept: &StoredDocument<D>,
        owner: &str,
        is_running: impl Fn(&str) -> bool,
    ) -> Result<Recording, StoreError> {
        let (id, trials) = (kept.entry.id, kept.taken.len() as u32);
        let mut is_fit = Ok(());
        let claim = transact(&*self.database, || {
            let held = self.database.held()?;
            let line = self.line_of(id)?.ok_or_else(nothing_returned)?;
            let line = line.with_state(held.as_deref(), &is_running);
            is_fit = fit_to_resume(&line, D::KINDS);
            if is_fit.is_ok() && (line.entry.trials_done != trials || !self.database.hold(id)?) {
                is_fit = Err(unfit(id, RUNNING));
            }
            if is_fit.is_err() {
                return Ok(());
            }
            let sql = "UPDATE study SET state = 'running', reason = NULL, owner = $1 WHERE id = $2";
            self.database
                .run(sql, &[String::from(owner).into(), id.into()])
                .map(drop)
        });
        claim.map_err(StoreError::at("resuming a study in", &self.place))?;
        is_fit.map(|()| self.recording(id, trials))
    }

    /// Continues study `id`, with this many stored trials.
    fn recording(self, id: i64, trials: u32) -> Recording {
        let Store {
            database, place, ..
        } = self;
        Recording {
            database,
            place: StoredPlace { place, id, trials },
        }
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
            store: self.place.to_string(),
            action,
            studies: studies.collect(),
            ready: Vec::new(),
        }
    }

    fn lines(&self, is_running: &impl Fn(&str) -> bool) -> Result<Vec<ListedStudy>, StoreError> {
        let read = || -> Result<Vec<ListedStudy>, Reason> {
            let held = self.database.held()?;
            let rows = self.database.run(&format!("{ENTRY} ORDER BY id"), &[])?;
            let lines = rows.iter().map(|row| {
                let line = line(row)?;
                Ok(line.with_state(held.as_deref(), is_running))
            });
            lines.collect()
        };
        read().map_err(StoreError::at("reading", &self.place))
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
        Ok(self.line(which, &is_running)?.entry)
    }

    /// A study with all its trials.
    ///
    /// # Errors
    /// When there is none, it is of another kind or layout, or the file cannot be read.
    pub fn read<D: Stored>(
        &self,
        which: Which,
        is_running: impl Fn(&str) -> bool,
    ) -> Result<StoredDocument<D>, StoreError> {
        let line = self.line(which, &is_running)?;
        let id = line.entry.id;
        if !D::KINDS.contains(&line.entry.kind) || line.schema != D::SCHEMA {
            return Err(StoreError::Layout(id, line.schema, D::SCHEMA));
        }
        let (design, head) = self.texts(id)?;
        let unreadable = |why| StoreError::Document(id, why);
        let mut document: D = serde_json::from_str(&head).map_err(unreadable)?;
        let mut taken = Vec::new();
        self.trials(id, |seconds, trial| {
            // A copy has no room to grow, which is a third of what was parsed.
            let parsed: D::Trial = serde_json::from_str(trial)?;
            document.trials().push(parsed.clone());
            taken.push(Duration::try_from_secs_f64(seconds).unwrap_or_default());
            Ok(())
        })?;
        Ok(StoredDocument {
            entry: line.entry,
            design,
            document,
            taken,
        })
    }

    /// Returns a study's document as stored, of any kind and layout: an object with its trials.
    ///
    /// # Errors
    /// When there is none, or the file cannot be read.
    pub fn document(&self, which: Which) -> Result<Value, StoreError> {
        let StudyEntry { id, kind, .. } = self.line(which, &|_| false)?.entry;
        let (_, head) = self.texts(id)?;
        let document = serde_json::from_str::<Value>(&head);
        let mut document = document.map_err(|why| StoreError::Document(id, why))?;
        let mut trials = Vec::new();
        self.trials(id, |_, trial| {
            trials.push(serde_json::from_str(trial)?);
            Ok(())
        })?;
        let field = match kind {
            StudyKind::Ab => "pairs",
            _ => "trials",
        };
        document[field] = Value::Array(trials);
        Ok(document)
    }

    /// Returns what [`Store::delete`] would delete; refuses if one of them runs.
    ///
    /// # Errors
    /// When one of them is not there or runs, or the file cannot be read.
    pub fn would_delete(
        &self,
        which: &[Which],
        is_running: impl Fn(&str) -> bool,
    ) -> Result<Studies, StoreError> {
        let mut entries: Vec<StudyEntry> = Vec::new();
        for which in which {
            let entry = self.line(*which, &is_running)?.entry;
            if entry.state == StudyState::Running {
                let is = "is running; stop it first";
                return Err(unfit(entry.id, is));
            }
            if entries.iter().all(|known| known.id != entry.id) {
                entries.push(entry);
            }
        }
        Ok(self.studies(StudiesAction::WouldDelete, entries.into_iter()))
    }

    /// Deletes studies with their trials: all or none.
    ///
    /// # Errors
    /// As [`Store::would_delete`], and when the file cannot be written.
    pub fn delete(
        &mut self,
        which: &[Which],
        is_running: impl Fn(&str) -> bool,
    ) -> Result<Studies, StoreError> {
        let entries = self.would_delete(which, is_running)?.studies;
        let deleted = transact(&*self.database, || {
            for entry in &entries {
                // Trials go with their study.
                let sql = "DELETE FROM study WHERE id = $1";
                self.database.run(sql, &[entry.id.into()])?;
            }
            Ok(())
        });
        deleted.map_err(StoreError::at("deleting from", &self.place))?;
        Ok(self.studies(StudiesAction::Deleted, entries.into_iter()))
    }

    fn line(
        &self,
        which: Which,
        is_running: &impl Fn(&str) -> bool,
    ) -> Result<ListedStudy, StoreError> {
        let found = || -> Result<Option<ListedStudy>, Reason> {
            let held = self.database.held()?;
            let found = match which {
                Which::Id(id) => self.line_of(id)?,
                Which::Last => self.first(&format!("{ENTRY} ORDER BY id DESC LIMIT 1"), &[])?,
            };
            Ok(found.map(|line| line.with_state(held.as_deref(), is_running)))
        };
        let found = found().map_err(StoreError::at("reading", &self.place))?;
        found.ok_or_else(|| no_study(which, &self.place))
    }

    fn line_of(&self, id: i64) -> Result<Option<ListedStudy>, Reason> {
        self.first(&format!("{ENTRY} WHERE id = $1"), &[id.into()])
    }

    fn first(&self, sql: &str, values: &[Cell]) -> Result<Option<ListedStudy>, Reason> {
        let rows = self.database.run(sql, values)?;
        rows.first().map(line).transpose()
    }

    /// Returns the design of a study, and its document without the trials.
    fn texts(&self, id: i64) -> Result<(String, String), StoreError> {
        let read = || -> Result<_, Reason> {
            let sql = "SELECT design, document FROM study WHERE id = $1";
            let rows = self.database.run(sql, &[id.into()])?;
            let study = rows.first().ok_or_else(nothing_returned)?;
            Ok((study.text(0)?, study.text(1)?))
        };
        read().map_err(StoreError::at("reading", &self.place))
    }

    /// Gives the seconds that each trial of a study took, and its document. Few of them are in memory at once.
    fn trials(
        &self,
        id: i64,
        mut read: impl FnMut(f64, &str) -> serde_json::Result<()>,
    ) -> Result<(), StoreError> {
        let sql = "SELECT sequence, taken_seconds, document FROM trial \
                   WHERE study = $1 AND sequence > $2 ORDER BY sequence LIMIT 64";
        let mut last = Some(0);
        while let Some(after) = last.take() {
            let rows = || -> Result<Vec<_>, Reason> {
                let rows = self.database.run(sql, &[id.into(), after.into()])?;
                let rows = rows.iter();
                rows.map(|row| Ok((row.integer(0)?, row.real(1)?, row.text(2)?)))
                    .collect()
            };
            for (sequence, seconds, trial) in
                rows().map_err(StoreError::at("reading", &self.place))?
            {
                read(seconds, &trial).map_err(|why| StoreError::Document(id, why))?;
                last = Some(sequence);
            }
        }
        Ok(())
    }
}

fn nothing_returned() -> Reason {
    Reason::Damaged(String::from("a study that was there is gone"))
}

impl ListedStudy {
    /// Sets the state of a study whose owner may be gone. `held` are the running studies, if the database knows them.
    fn with_state(mut self, held: Option<&[i64]>, is_running: &impl Fn(&str) -> bool) -> Self {
        let runs = match held {
            Some(held) => held.contains(&self.entry.id),
            None => self.owner.as_deref().is_some_and(is_running),
        };
        if self.entry.state == StudyState::Running && !runs {
            self.entry.state = StudyState::Killed;
        }
        self
    }
}

/// One row of [`ENTRY`].
fn line(row: &SqlRow) -> Result<ListedStudy, Reason> {
    let kind = row.text(1)?;
    Ok(ListedStudy {
        entry: StudyEntry {
            id: row.integer(0)?,
            kind: StudyKind::from_name(&kind)
                .ok_or_else(|| Reason::Damaged(format!("no kind of study is called '{kind}'")))?,
            state: match row.text(2)?.as_str() {
                "finished" => StudyState::Finished,
                "ended_early" => StudyState::EndedEarly,
                _ => StudyState::Running,
            },
            reason: row.text_or_null(3),
            started_at: row.text(5)?,
            elapsed_seconds: row.real(6)?,
            trials_planned: row.count(7)?,
            kernel: row.text(8)?,
            nicpoll_version: row.text(9)?,
            argv: serde_json::from_str(&row.text(10)?).unwrap_or_default(),
            trials_done: row.count(11)?,
        },
        owner: row.text_or_null(4),
        schema: row.text(12)?,
    })
}

const RUNNING: &str = "is running in another process";

/// Refuses to resume a study in another state, which [`ListedStudy::with_state`] has set.
fn fit_to_resume(line: &ListedStudy, kinds: &[StudyKind]) -> Result<(), StoreError> {
    let (id, state, kind) = (line.entry.id, line.entry.state, line.entry.kind);
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
    match state {
        StudyState::Finished => {
            let is = format!("is finished; 'nicpoll study show {id}' shows it");
            Err(unfit(id, &is))
        }
        StudyState::Running => Err(unfit(id, RUNNING)),
        StudyState::EndedEarly | StudyState::Killed => Ok(()),
    }
}

fn unfit(id: i64, is: &str) -> StoreError {
    StoreError::Unfit(id, String::from(is))
}

fn no_study(which: Which, place: &StorePlace) -> StoreError {
    let which = match which {
        Which::Id(id) => id.to_string(),
        Which::Last => String::from("yet"),
    };
    StoreError::NoStudy(which, place.clone())
}

/// One study of a store that this process runs.
pub struct Recording {
    database: Box<dyn Database>,
    /// Where it is stored, and how much of it.
    pub place: StoredPlace,
}

impl Recording {
    /// Its number in the store.
    pub fn id(&self) -> i64 {
        self.place.id
    }

    /// Stores the document without its trials, `head`.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn head<D: Stored>(&mut self, head: &D) -> Result<(), StoreError> {
        let outcome = self.set_head(head);
        outcome.map_err(self.failed("storing the study in"))
    }

    /// Stores a trial that has ended, and the document so far.
    ///
    /// # Errors
    /// When the store cannot be written. Then neither is stored.
    pub fn trial<D: Stored>(
        &mut self,
        head: &D,
        trial: &D::Trial,
        taken: Duration,
    ) -> Result<(), StoreError> {
        self.trials(head, [(trial, taken)])
    }

    /// Stores several trials at once, each with its duration.
    ///
    /// # Errors
    /// When the store cannot be written. Then nothing of it is stored.
    pub fn trials<'a, D: Stored>(
        &mut self,
        head: &D,
        trials: impl IntoIterator<Item = (&'a D::Trial, Duration)>,
    ) -> Result<(), StoreError>
    where
        D::Trial: 'a,
    {
        let mut stored = self.place.trials;
        let outcome = transact(&*self.database, || {
            for (trial, taken) in trials {
                stored += 1;
                self.database.run(
                    "INSERT INTO trial (study, sequence, taken_seconds, document) VALUES ($1, $2, $3, $4)",
                    &[
                        self.place.id.into(),
                        stored.into(),
                        taken.as_secs_f64().into(),
                        text_of(trial).into(),
                    ],
                )?;
            }
            self.set_head(head)
        });
        outcome.map_err(self.failed("storing a trial in"))?;
        self.place.trials = stored;
        Ok(())
    }

    /// Stores the results of a finished study. `head` is the document without its trials.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn finish<D: Stored>(&mut self, head: &D) -> Result<(), StoreError> {
        self.close("finished", None, || self.set_head(head))
    }

    /// Stores that the study ended before its time, and why. It can be resumed.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn end_early(&mut self, reason: &str) -> Result<(), StoreError> {
        self.close("ended_early", Some(reason), || Ok(()))
    }

    fn close(
        &self,
        state: &str,
        reason: Option<&str>,
        last: impl FnOnce() -> Result<(), Reason>,
    ) -> Result<(), StoreError> {
        let outcome = transact(&*self.database, || {
            last()?;
            let sql = "UPDATE study SET state = $1, reason = $2, owner = NULL WHERE id = $3";
            let [state, reason] = [Some(state), reason].map(|text| text.map(String::from).into());
            let values = [state, reason, self.place.id.into()];
            self.database.run(sql, &values).map(drop)
        });
        outcome.map_err(self.failed("storing the end of the study in"))
    }

    fn failed(&self, doing: &'static str) -> impl FnOnce(Reason) -> StoreError {
        StoreError::at(doing, &self.place.place)
    }

    fn set_head<D: Stored>(&self, head: &D) -> Result<(), Reason> {
        let sql = "UPDATE study SET document = $1 WHERE id = $2";
        let values = [text_of(head).into(), self.place.id.into()];
        self.database.run(sql, &values).map(drop)
    }
}

/// Serialises a document for a row.
fn text_of<T: serde::Serialize>(document: &T) -> String {
    serde_json::to_string(document).expect("a document has string keys and serialises")
}

/// The end of a run.
pub struct Ended<D, E> {
    /// Its document, or why there is none.
    pub outcome: Result<D, E>,
    /// Where it is stored, if it is.
    pub place: Option<StoredPlace>,
    /// Why an existing document could not be stored.
    pub unstored: Option<StoreError>,
}

/// Where a study is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPlace {
    /// The file, or the server.
    pub place: StorePlace,
    /// Its number there.
    pub id: i64,
    /// Trials that are stored.
    pub trials: u32,
}

impl<D: Stored, E: Display> Ended<D, E> {
    /// Stores the end, too, if the run is stored.
    pub fn of(mut outcome: Result<D, E>, recording: Option<Recording>) -> Self {
        let Some(mut recording) = recording else {
            return Ended {
                outcome,
                place: None,
                unstored: None,
            };
        };
        let stored = match &mut outcome {
            Ok(study) => {
                // Each has a row of its own.
                let trials = std::mem::take(study.trials());
                let stored = recording.finish(study);
                *study.trials() = trials;
                stored
            }
            Err(error) => recording.end_early(&error.to_string()),
        };
        Ended {
            place: Some(recording.place),
            // A failed study reports its own error instead.
            unstored: stored.err().filter(|_| outcome.is_ok()),
            outcome,
        }
    }
}

impl StoredPlace {
    /// Returns a sentence with the place and the next command.
    pub fn sentence(&self, is_finished: bool) -> String {
        let StoredPlace { place, id, trials } = self;
        if is_finished {
            return format!(
                "Stored as study {id} in {place}; 'nicpoll study show {id}' shows it again."
            );
        }
        let what = match trials {
            1 => String::from("1 trial is"),
            trials => format!("{trials} trials are"),
        };
        format!(
            "{what} stored as study {id} in {place}; 'nicpoll study run --resume {id}' goes on."
        )
    }
}

/// A document that grows trial by trial. It is stored in two parts: each trial by itself, and the rest.
pub trait Stored: Serialize + DeserializeOwned {
    /// The kinds of study that have this document.
    const KINDS: &'static [StudyKind];
    /// Name and version of the layout.
    const SCHEMA: &'static str;
    /// One trial.
    type Trial: Clone + Serialize + DeserializeOwned;

    /// Returns the trials, which have rows of their own.
    fn trials(&mut self) -> &mut Vec<Self::Trial>;
}

impl Stored for Study {
    const KINDS: &'static [StudyKind] = &[StudyKind::Demo, StudyKind::Study];
    const SCHEMA: &'static str = SCHEMA;
    type Trial = Trial;

    fn trials(&mut self) -> &mut Vec<Trial> {
        &mut self.trials
    }
}

/// Its trials are its pairs of blocks, because a single block shows no difference.
impl Stored for LiveAb {
    const KINDS: &'static [StudyKind] = &[StudyKind::Ab];
    const SCHEMA: &'static str = AB_SCHEMA;
    type Trial = AbPair;

    fn trials(&mut self) -> &mut Vec<AbPair> {
        &mut self.pairs
    }
}

/// Its trials did not alternate: none has a block.
impl Stored for Imported {
    const KINDS: &'static [StudyKind] = &[StudyKind::Imported];
    const SCHEMA: &'static str = IMPORTED_SCHEMA;
    type Trial = ImportedTrial;

    fn trials(&mut self) -> &mut Vec<ImportedTrial> {
        &mut self.trials
    }
}

#[cfg(test)]
mod tests {
    use nicpoll_model::{Study, StudyKind, StudyState, Trial};

    use super::*;

    #[test]
    fn a_full_disk_is_said_and_what_was_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("studies.db");
        let text = include_str!("../../report/tests/golden/demo.json");
        let mut head: Study = serde_json::from_str(text).unwrap();
        let trials: Vec<Trial> = std::mem::take(&mut head.trials);
        let store = Store::to_write(&file).unwrap();
        let mut recording = store
            .begin(StudyKind::Demo, &head, 192, "{}", "owner")
            .unwrap();
        // A file that may not grow fails like one on a full disk.
        let number = |pragma: &str| -> i64 {
            let rows = recording.database.run(&format!("PRAGMA {pragma}"), &[]);
            rows.unwrap()[0].integer(0).unwrap()
        };
        let most = number("page_count") + 2;
        assert_eq!(number(&format!("max_page_count = {most}")), most);
        let mut append = |trial| recording.trial(&head, trial, Duration::ZERO);
        let (stored, error) = (0..)
            .zip(&trials)
            .find_map(|(index, trial)| Some((index, append(trial).err()?)))
            .expect("two pages do not hold all trials");
        assert!(error.to_string().ends_with("the disk is full"), "{error}");
        assert!(stored > 0);
        // Not even the reason fits: the list shows a study that no process runs.
        assert!(recording.end_early("the disk is full").is_err());
        let kept = Store::to_read(&file).unwrap();
        let kept = kept.read::<Study>(Which::Last, |_| false).unwrap();
        assert_eq!(kept.document.trials, trials[..stored]);
        assert_eq!(kept.entry.state, StudyState::Killed);
    }
}
