//! Files that a command changes along with settings: all of both or none, even if the command is killed.
//!
//! The record of the files is on disk before the first of them is changed. It is removed once the settings are settled.
//! A later command that finds the record of a killed one restores the files, unless the settings were settled.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::file::{FileChange, apply, aside_of, read, remove_own_folder};
use crate::error::SwitchError;
use crate::journal::{Content, Entry, Journal, Owner, check_version, fault_point};

const VERSION: u32 = 1;
/// The file of the record. Only one command at a time writes files.
const FILE_NAME: &str = "boot.files";
const EXTENSION: &str = "files";

/// The files that a command changes, and the command's process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FilesRecord {
    version: u32,
    owner: Owner,
    /// Whether settings, which are settled first, are changed along with the files.
    has_settings: bool,
    changes: Vec<FileChange>,
}

impl Content for FilesRecord {
    fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let record: FilesRecord = serde_json::from_slice(bytes)?;
        check_version(record.version, VERSION)?;
        Ok(record)
    }

    fn file_name(&self) -> String {
        String::from(FILE_NAME)
    }

    fn busy(&self) -> String {
        let pid = self.owner.pid;
        format!("process {pid} writes what is set at boot; wait until it ends")
    }
}

/// Changed files that can still be restored.
#[derive(Debug)]
pub struct HeldFiles {
    entry: Option<Entry<FilesRecord>>,
}

impl HeldFiles {
    /// Writes and removes files: all of them, or none. With `has_settings`, a killed command's files stay only if its
    /// settings were settled.
    ///
    /// # Errors
    /// [`SwitchError::Busy`] while another command writes files.
    pub fn write(
        journal: &Journal,
        changes: &[FileChange],
        has_settings: bool,
    ) -> Result<Self, SwitchError> {
        if changes.is_empty() {
            return Ok(HeldFiles { entry: None });
        }
        restore_files(journal)?;
        let new = || {
            Ok(FilesRecord {
                version: VERSION,
                owner: Owner::this_process()?,
                has_settings,
                changes: changes.to_vec(),
            })
        };
        let entry = journal.take_as(FILE_NAME, |_| Ok(false), new)?;
        let held = HeldFiles { entry: Some(entry) };
        match changes.iter().try_for_each(apply) {
            Ok(()) => Ok(held),
            Err(error) => {
                // The first error is reported; restoring is a best effort.
                let _ = held.restore();
                Err(error)
            }
        }
    }

    /// Keeps the files as they are now.
    pub fn keep(self) -> Result<(), SwitchError> {
        self.entry.map_or(Ok(()), Entry::close)
    }

    /// Restores the files.
    pub fn restore(self) -> Result<(), SwitchError> {
        let Some(entry) = self.entry else {
            return Ok(());
        };
        let mut outcome = Ok(());
        for change in entry.record().changes.iter().rev() {
            // One failure does not keep the other files from being restored.
            outcome = outcome.and(restore_file(change));
        }
        outcome?;
        entry.close()
    }
}

/// Restores the files of a killed command and returns their names; none if there is no such command.
///
/// # Errors
/// [`SwitchError::Busy`] while that command runs.
pub fn restore_files(journal: &Journal) -> Result<Vec<PathBuf>, SwitchError> {
    let mut names = Vec::new();
    for path in journal.paths_ending(EXTENSION)? {
        let Some(entry) = journal.lock_as::<FilesRecord>(&path)? else {
            continue;
        };
        let FilesRecord {
            owner,
            has_settings,
            changes,
            ..
        } = entry.record();
        if *has_settings && journal.is_settled_by(*owner)? {
            entry.close()?;
            continue;
        }
        names.extend(changes.iter().map(|change| change.path.clone()));
        HeldFiles { entry: Some(entry) }.restore()?;
    }
    Ok(names)
}

/// Lists the files that a killed command was changing; those of a running command are left out.
///
/// # Errors
/// When the journal cannot be read.
pub fn files_left(journal: &Journal) -> Result<Vec<PathBuf>, SwitchError> {
    let mut left = Vec::new();
    for path in journal.paths_ending(EXTENSION)? {
        match journal.lock_as::<FilesRecord>(&path) {
            Ok(Some(entry)) => {
                left.extend(entry.record().changes.iter().map(|one| one.path.clone()))
            }
            Ok(None) | Err(SwitchError::Busy(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(left)
}

/// Restores one file if it was changed already. A file that somebody else has changed meanwhile stays.
fn restore_file(change: &FileChange) -> Result<(), SwitchError> {
    let path: &Path = &change.path;
    let _ = fs::remove_file(aside_of(path));
    if read(path, change.is_link)? == change.after {
        fault_point();
        apply(&change.reversed())?;
    }
    remove_own_folder(path);
    Ok(())
}
