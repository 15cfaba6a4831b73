//! A study on its way into a store.
//!
//! What must hold: each call is one transaction, on disk when it returns. Whoever fails at one may call the
//! next: what was committed stays.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior, named_params, params};

use crate::document::Stored;
use crate::error::{Reason, StoreError};

/// One study of a store that this process runs.
pub struct Recording {
    connection: Connection,
    path: std::path::PathBuf,
    id: i64,
    stored: u32,
}

impl Recording {
    /// Goes on with study `id` of an open file, of which `stored` trials are there.
    pub(crate) fn of(connection: Connection, path: &Path, id: i64, stored: u32) -> Self {
        Recording {
            connection,
            path: path.to_owned(),
            id,
            stored,
        }
    }

    /// Its number in the store.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Trials that are stored.
    pub fn stored(&self) -> u32 {
        self.stored
    }

    /// Stores what is known beside the trials. `head` is the document without them.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn head<D: Stored>(&mut self, head: &D) -> Result<(), StoreError> {
        let outcome = head_of(&self.connection, self.id, head);
        outcome.map_err(StoreError::file("storing the study in", &self.path))
    }

    /// Stores a trial that has ended, and what is known beside the trials by now.
    ///
    /// # Errors
    /// When the file cannot be written. Then neither is stored.
    pub fn trial<D: Stored>(
        &mut self,
        head: &D,
        trial: &D::Trial,
        taken: Duration,
    ) -> Result<(), StoreError> {
        let outcome = self.append(head, trial, taken);
        outcome.map_err(StoreError::file("storing a trial in", &self.path))?;
        self.stored += 1;
        Ok(())
    }

    fn append<D: Stored>(
        &mut self,
        head: &D,
        trial: &D::Trial,
        taken: Duration,
    ) -> Result<(), Reason> {
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        transaction.execute(
            "INSERT INTO trial (study, sequence, taken_seconds, document) VALUES (?1, ?2, ?3, ?4)",
            params![
                self.id,
                self.stored + 1,
                taken.as_secs_f64(),
                text_of(trial)
            ],
        )?;
        head_of(&transaction, self.id, head)?;
        Ok(transaction.commit()?)
    }

    /// Stores what follows from the study: it is finished. `head` is the document without its trials.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish<D: Stored>(&mut self, head: &D) -> Result<(), StoreError> {
        self.close("finished", None, |transaction, id| {
            head_of(transaction, id, head)
        })
    }

    /// Stores that the study ended before its time, and why. It can be resumed.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn end_early(&mut self, reason: &str) -> Result<(), StoreError> {
        self.close("ended_early", Some(reason), |_, _| Ok(()))
    }

    fn close(
        &mut self,
        state: &str,
        reason: Option<&str>,
        last: impl FnOnce(&Connection, i64) -> Result<(), Reason>,
    ) -> Result<(), StoreError> {
        let id = self.id;
        let doing = StoreError::file("storing the end of the study in", &self.path);
        let close = || -> Result<(), Reason> {
            let behavior = TransactionBehavior::Immediate;
            let transaction = self.connection.transaction_with_behavior(behavior)?;
            last(&transaction, id)?;
            transaction.execute(
                "UPDATE study SET state = :state, reason = :reason, owner = NULL WHERE id = :id",
                named_params! {":state": state, ":reason": reason, ":id": id},
            )?;
            Ok(transaction.commit()?)
        };
        close().map_err(doing)
    }
}

fn head_of<D: Stored>(connection: &Connection, id: i64, head: &D) -> Result<(), Reason> {
    connection.execute(
        "UPDATE study SET document = ?1 WHERE id = ?2",
        params![text_of(head), id],
    )?;
    Ok(())
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
        let connection = &recording.connection;
        let number = |pragma: &str| -> i64 {
            let sql = format!("PRAGMA {pragma}");
            connection.query_row(&sql, [], |row| row.get(0)).unwrap()
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
