//! Renders pages from what the store holds at that moment. Only reads the store. A study that cannot be shown gives a
//! sentence that says why.

use std::io;

use nicpoll_lab::still_runs;
use nicpoll_model::ab::LiveAb;
use nicpoll_model::{Imported, Origin, Study, StudyKind, StudyState};
use nicpoll_report::{Document, choice_page, put_html};
use nicpoll_store::{Store, StoreError, Which};
use nicpoll_study::{
    CompareOptions, ResultError, ResultName, ResultSource, StudyError, compare_results, shown,
};
use thiserror::Error;

use crate::connection::words;
use crate::request::{NamedStudy, ServedPage};

/// A page, and how it is to be taken.
pub struct Answer {
    /// The status of HTTP.
    pub status: &'static str,
    body: AnswerBody,
    /// Whether it will have changed soon.
    pub is_live: bool,
}

/// A page, or why there is none.
enum AnswerBody {
    Page(Box<dyn Document>),
    Words(String),
}

impl Answer {
    /// Gives the page to `put`, piece by piece.
    ///
    /// # Errors
    /// That of `put`.
    pub fn put(&self, mut put: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        match &self.body {
            AnswerBody::Page(page) => put_html(&page.page(), &mut put),
            AnswerBody::Words(why) => put(&words(why)),
        }
    }
}

/// The page that says why there is none.
pub fn failed(status: &'static str, why: &str) -> Answer {
    Answer {
        status,
        body: AnswerBody::Words(String::from(why)),
        is_live: false,
    }
}

/// Why a page cannot be shown.
#[derive(Debug, Error)]
enum PageError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Study(#[from] StudyError),
    #[error(transparent)]
    Compared(#[from] ResultError),
    #[error("study {id} has no setting of number {setting}")]
    Setting { id: i64, setting: usize },
    #[error("a store has no metrics: 'nicpoll watch --prometheus' has")]
    Metrics,
}

/// The page, or a sentence that says why there is none.
pub fn answer_to(page: &ServedPage, store: Result<Store, StoreError>) -> Answer {
    let made = store.map_err(PageError::Store);
    match made.and_then(|store| made_of(page, &store)) {
        Ok((page, is_live)) => Answer {
            status: "200 OK",
            body: AnswerBody::Page(page),
            is_live,
        },
        Err(error) => {
            let status = match error {
                PageError::Store(StoreError::Nothing { .. } | StoreError::NoStudy { .. })
                | PageError::Setting { .. }
                | PageError::Metrics => "404 Not Found",
                _ => "500 Internal Server Error",
            };
            failed(status, &error.to_string())
        }
    }
}

/// The page, and whether what it shows still runs.
fn made_of(page: &ServedPage, store: &Store) -> Result<(Box<dyn Document>, bool), PageError> {
    match page {
        ServedPage::Studies => {
            let studies = store.list(still_runs)?;
            let mut states = studies.studies.iter().map(|entry| entry.state);
            let is_live = states.any(|state| state == StudyState::Running);
            Ok((Box::new(studies), is_live))
        }
        ServedPage::Study(id) => of_study(store, *id),
        ServedPage::Choice(id) => {
            let settings = settings(store, *id)?;
            let names: Vec<&str> = settings.iter().map(String::as_str).collect();
            let page = choice_page(*id, &names, &store.list(still_runs)?);
            Ok((Box::new(page), false))
        }
        ServedPage::Metrics => Err(PageError::Metrics),
        ServedPage::Compared([reference, judged]) => {
            let sources = [*reference, *judged].map(|named| source(store, named));
            let [reference, judged] = sources;
            let origin = Origin {
                nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
                argv: Vec::new(),
                started_at: String::new(),
            };
            let compared =
                compare_results(&reference?, &judged?, CompareOptions::default(), &origin)?;
            Ok((Box::new(compared), false))
        }
    }
}

/// The report of a study, so far if it still runs.
fn of_study(store: &Store, id: i64) -> Result<(Box<dyn Document>, bool), PageError> {
    let which = Which::Id(id);
    let entry = store.entry(which, still_runs)?;
    let is_live = entry.state == StudyState::Running;
    let page: Box<dyn Document> = match entry.kind {
        StudyKind::Ab => Box::new(store.read::<LiveAb>(which, still_runs)?.document),
        StudyKind::Imported => Box::new(store.read::<Imported>(which, still_runs)?.document),
        _ => Box::new(shown(store.read::<Study>(which, still_runs)?)?),
    };
    Ok((page, is_live))
}

/// The settings of a study in their order.
fn settings(store: &Store, id: i64) -> Result<Vec<String>, PageError> {
    let which = Which::Id(id);
    if store.entry(which, still_runs)?.kind == StudyKind::Imported {
        let imported = store.read::<Imported>(which, still_runs)?.document;
        return Ok(imported.settings().into_iter().map(String::from).collect());
    }
    let study = store.read::<Study>(which, still_runs)?.document;
    Ok(study.settings.into_iter().map(|it| it.setting).collect())
}

/// A study, or a setting of it by its number.
fn source(
    store: &Store,
    NamedStudy { id, setting }: NamedStudy,
) -> Result<ResultSource, PageError> {
    let name = match setting {
        None => id.to_string(),
        Some(setting) => {
            let settings = settings(store, id)?;
            let named = settings.get(setting - 1);
            let named = named.ok_or(PageError::Setting { id, setting })?;
            format!("{id}:{named}")
        }
    };
    Ok(ResultSource::stored(name.parse::<ResultName>()?, store)?)
}
