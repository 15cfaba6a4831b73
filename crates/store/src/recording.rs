//! A study on its way into a store.
//!
//! What must hold: each call is one transaction, on disk when it returns. Whoever fails at one may call the
//! next: what was committed stays.

use std::time::Duration;

use crate::database::{Database, transact};
use crate::document::Stored;
use crate::error::{Reason, StoreError};
use crate::place::Place;

/// One study of a store that this process runs.
pub struct Recording {
    database: Box<dyn Database>,
    place: Place,
    id: i64,
    stored: u32,
}

impl Recording {
    /// Goes on with study `id` of an open store, of which `stored` trials are there.
    pub(crate) fn of(database: Box<dyn Database>, place: Place, id: i64, stored: u32) -> Self {
        Recording {
            database,
            place,
            id,
            stored,
        }
    }

    /// Its number in the store.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// Where it is stored.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Trials that are stored.
    pub fn stored(&self) -> u32 {
        self.stored
    }

    /// Stores what is known beside the trials. `head` is the document without them.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn head<D: Stored>(&mut self, head: &D) -> Result<(), StoreError> {
        let outcome = self.set_head(head);
        outcome.map_err(StoreError::at("storing the study in", &self.place))
    }

    /// Stores a trial that has ended, and what is known beside the trials by now.
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

    /// Stores trials that are known at the same time, each with how long it took.
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
        let mut stored = self.stored;
        let outcome = transact(&*self.database, || {
            for (trial, taken) in trials {
                stored += 1;
                self.database.run(
                    "INSERT INTO trial (study, sequence, taken_seconds, document) VALUES ($1, $2, $3, $4)",
                    &[
                        self.id.into(),
                        stored.into(),
                        taken.as_secs_f64().into(),
                        text_of(trial).into(),
                    ],
                )?;
            }
            self.set_head(head)
        });
        outcome.map_err(StoreError::at("storing a trial in", &self.place))?;
        self.stored = stored;
        Ok(())
    }

    /// Stores what follows from the study: it is finished. `head` is the document without its trials.
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
            let values = [state.into(), reason.into(), self.id.into()];
            self.database.run(sql, &values).map(drop)
        });
        outcome.map_err(StoreError::at(
            "storing the end of the study in",
            &self.place,
        ))
    }

    fn set_head<D: Stored>(&self, head: &D) -> Result<(), Reason> {
        let sql = "UPDATE study SET document = $1 WHERE id = $2";
        let values = [text_of(head).into(), self.id.into()];
        self.database.run(sql, &values).map(drop)
    }
}

/// A document as it stands in a row.
pub(crate) fn text_of<T: serde::Serialize>(document: &T) -> String {
    serde_json::to_string(document).expect("a document has string keys and serialises")
}

#[cfg(test)]
mod tests {
    use nicpoll_model::{Study, StudyKind, StudyState, Trial};

    use super::*;
    use crate::{Store, Which};

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
        // A file that may not grow fails as one on a full disk does.
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
        // Not even the reason fits: whoever looks finds a study that nobody runs any more.
        assert!(recording.end_early("the disk is full").is_err());
        let kept = Store::to_read(&file).unwrap();
        let kept = kept.read::<Study>(Which::Last, |_| false).unwrap();
        assert_eq!(kept.document.trials, trials[..stored]);
        assert_eq!(kept.entry.state, StudyState::Killed);
    }
}
