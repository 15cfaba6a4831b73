//! The files of the journal: one for each interface, named by its device, and one for each FreeBSD host.
//!
//! - A file appears and changes as a whole: written under another name, synced, then linked or renamed, then the
//!   directory synced. A reader sees a whole record or none.
//! - Only the holder of a file's lock (flock(2)) acts on it; the lock ends with the process. Of two commands for one
//!   interface the second is refused.
//! - A file that is not exactly a record of this version is reported and left alone.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;

use super::files;
use super::record::{Attempt, Owner, Record};
use crate::error::SwitchError;
use crate::kernel::{Interface, Target};

/// The directory of the journal, unless the environment names another one.
pub const DEFAULT_DIRECTORY: &str = "/var/lib/nicpoll";
/// Names another directory for the journal.
pub const DIRECTORY_VARIABLE: &str = "NICPOLL_STATE_DIR";

/// Only root, or the user who runs nicpoll, reads and writes the journal.
const DIRECTORY_MODE: u32 = 0o700;
const RECORD_MODE: u32 = 0o600;
/// Longer files are not records: a change takes under 200 bytes, and an interface with a thousand NAPI instances a few
/// thousand changes.
const RECORD_BYTES_MAX: u64 = 4 << 20;
/// Tries to lock a file that is being replaced.
const LOCK_TRIES: u32 = 100;

/// Wraps an error of the journal's directory or of a file in it.
pub fn journal_error(path: &Path) -> impl Fn(io::Error) -> SwitchError {
    SwitchError::of_io(format!(
        "journal {}: it must be writable before anything is changed ({DIRECTORY_VARIABLE} names another folder)",
        path.display()
    ))
}

/// Wraps an error of a file that another user could have written.
fn unsafe_file(path: &Path) -> impl Fn(SwitchError) -> SwitchError {
    move |error| match error {
        SwitchError::System { source, .. } => journal_error(path)(source),
        other => SwitchError::Failed(format!(
            "the journal of changes is not safe: {other}. {DIRECTORY_VARIABLE} names another folder"
        )),
    }
}

/// The content of a file of the journal.
pub trait Content: Clone + Serialize {
    /// Parses the content. No input panics.
    fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error>;
    /// The name that the file must have.
    fn file_name(&self) -> String;
    /// The message while another process holds the lock.
    fn busy(&self) -> String;
}

impl Content for Record {
    fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        Record::parse(bytes)
    }

    fn file_name(&self) -> String {
        Journal::file_name(&self.target())
    }

    fn busy(&self) -> String {
        let owner = self.attempt.as_ref().map(|attempt| attempt.owner);
        let by = match owner {
            Some(owner) => format!("process {}", owner.pid),
            None => String::from("another nicpoll"),
        };
        let Interface { name, ifindex, .. } = &self.interface;
        format!(
            "interface {name} (ifindex {ifindex}) is being changed by {by}; wait until it ends, or end it: \
             its settings are put back then"
        )
    }
}

/// A file of the journal, and its record or the error of reading it.
pub type JournalFile = (PathBuf, Result<Record, SwitchError>);

/// The directory of records.
#[derive(Clone, Debug)]
pub struct Journal {
    directory: PathBuf,
}

impl Journal {
    /// Opens the journal of this machine: [`DIRECTORY_VARIABLE`], or `DEFAULT_DIRECTORY`.
    pub fn of_this_machine() -> Self {
        let directory = std::env::var_os(DIRECTORY_VARIABLE)
            .filter(|directory| !directory.is_empty())
            .map_or_else(|| PathBuf::from(DEFAULT_DIRECTORY), PathBuf::from);
        // The guard has another working directory than its client. Only an empty path cannot be made absolute.
        Journal::at(std::path::absolute(&directory).unwrap_or(directory))
    }

    /// Opens a journal in `directory`, which the first record creates.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Journal {
            directory: directory.into(),
        }
    }

    /// The directory of the journal.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the name of an interface's file. It names the device, so it stays the same wherever the device is moved.
    pub fn file_name(target: &Target) -> String {
        match target.interface.device_id {
            Some(id) => format!("device-{id}.json"),
            // Never created: such an interface cannot be taken.
            None => String::from("no-device.json"),
        }
    }

    /// Takes an interface for a change: locks its record, or creates one that `begin` fills in. A record of an earlier
    /// boot is replaced: its values ended with that boot.
    ///
    /// # Errors
    /// [`SwitchError::Busy`] when another process has it; also when the device has no id to find it by after a move.
    pub fn take(&self, target: &Target, begin: impl Fn(&mut Record)) -> Result<Entry, SwitchError> {
        if target.interface.device_id.is_none() {
            return Err(SwitchError::Failed(format!(
                "{} is not shown under /sys, by which nicpoll would know it again; mount sysfs there \
                 (mount -t sysfs sysfs /sys)",
                target.interface.name
            )));
        }
        let is_current = |record: &Record| record.is_of_this_boot();
        let new = || {
            let mut record = Record::new(target)?;
            begin(&mut record);
            Ok(record)
        };
        let mut entry = self.take_as(&Self::file_name(target), is_current, new)?;
        if entry.record().target() != *target {
            entry.update(|record| record.move_to(target))?;
        }
        Ok(entry)
    }

    /// Takes a file with other content, as [`Journal::take`] does.
    pub(crate) fn take_as<R: Content>(
        &self,
        name: &str,
        is_current: impl Fn(&R) -> io::Result<bool>,
        new: impl Fn() -> io::Result<R>,
    ) -> Result<Entry<R>, SwitchError> {
        self.make_directory()?;
        let path = self.directory.join(name);
        for _ in 0..LOCK_TRIES {
            if let Some(entry) = self.lock_as(&path)? {
                if is_current(entry.record()).map_err(journal_error(&path))? {
                    return Ok(entry);
                }
                entry.close_keeping_directory()?;
            }
            let record = new().map_err(journal_error(&path))?;
            let (aside, file) = write_aside(&path, &record)?;
            // Unlike a rename, a link fails if the name is taken.
            let linked = fs::hard_link(&aside, &path);
            fs::remove_file(&aside).map_err(journal_error(&aside))?;
            match linked {
                Ok(()) => {
                    sync_directory(&self.directory)?;
                    fault_point();
                    return Ok(Entry {
                        path,
                        record,
                        lock: file,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(journal_error(&path)(error)),
            }
        }
        Err(journal_error(&path)(io::ErrorKind::WouldBlock.into()))
    }

    fn make_directory(&self) -> Result<(), SwitchError> {
        let directory = &self.directory;
        files::create_folder(directory, DIRECTORY_MODE).map_err(journal_error(directory))?;
        files::check_folder(directory).map_err(unsafe_file(directory))
    }

    /// Returns the path of an interface's file.
    pub(crate) fn path_of(&self, target: &Target) -> PathBuf {
        self.directory.join(Self::file_name(target))
    }

    /// Locks a record; `None` if there is none.
    pub fn lock(&self, path: &Path) -> Result<Option<Entry>, SwitchError> {
        self.lock_as(path)
    }

    /// Locks a file with other content.
    pub(crate) fn lock_as<R: Content>(&self, path: &Path) -> Result<Option<Entry<R>>, SwitchError> {
        for _ in 0..LOCK_TRIES {
            let file = match open(path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(SwitchError::Busy(read_record::<R>(path)?.busy()));
                }
                Err(error) => return Err(journal_error(path)(error.into())),
            }
            // The file may have been replaced between opening and locking.
            let locked = file.metadata().map_err(journal_error(path))?;
            if fs::metadata(path).is_ok_and(|now| now.ino() == locked.ino()) {
                return Ok(Some(Entry {
                    path: path.to_path_buf(),
                    record: read_file(&file, path)?,
                    lock: file,
                }));
            }
        }
        Err(journal_error(path)(io::ErrorKind::WouldBlock.into()))
    }

    /// Lists the files that should be records, by name.
    pub fn paths(&self) -> Result<Vec<PathBuf>, SwitchError> {
        self.paths_ending("json")
    }

    /// Lists the files with an extension, by name.
    pub(crate) fn paths_ending(&self, extension: &str) -> Result<Vec<PathBuf>, SwitchError> {
        let folder = &self.directory;
        let list = || {
            let listing = fs::read_dir(folder).map_err(journal_error(folder))?;
            files::check_folder(folder).map_err(unsafe_file(folder))?;
            let paths: io::Result<Vec<PathBuf>> = listing.map(|it| Ok(it?.path())).collect();
            paths.map_err(journal_error(folder))
        };
        let mut paths = match list() {
            // Who removes the last record removes the folder, perhaps just now.
            Err(SwitchError::System { source: it, .. }) if it.kind() == io::ErrorKind::NotFound => {
                Vec::new()
            }
            listed => listed?,
        };
        paths.retain(|path| path.extension().is_some_and(|end| end == extension));
        paths.sort();
        Ok(paths)
    }

    /// Reads every record without its lock; a file that is not a record yields an error.
    pub fn records(&self) -> Result<Vec<JournalFile>, SwitchError> {
        let read = |path: PathBuf| {
            let record = read_record(&path);
            (path, record)
        };
        Ok(self.paths()?.into_iter().map(read).collect())
    }

    /// Whether another interface of the same command is settled: then the last write was made, and all changes stand.
    pub(crate) fn is_settled_elsewhere(&self, attempt: &Attempt) -> Result<bool, SwitchError> {
        let mut records = self.records()?.into_iter();
        Ok(records.any(|(path, record)| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_other = attempt.group.iter().any(|member| *member == name);
            let is_settled =
                |record: Record| record.transaction.as_ref() == Some(&attempt.transaction);
            is_other && record.is_ok_and(is_settled)
        }))
    }

    /// Whether an ended process's changes stand: it left no attempt, or another interface of its command is settled.
    pub(crate) fn is_settled_by(&self, owner: Owner) -> Result<bool, SwitchError> {
        let attempts = self.records()?.into_iter();
        let mut attempts = attempts.filter_map(|(_, record)| record.ok()?.attempt);
        match attempts.find(|attempt| attempt.owner == owner) {
            Some(attempt) => self.is_settled_elsewhere(&attempt),
            None => Ok(true),
        }
    }

    /// Removes temporary files of writers that have ended.
    pub fn sweep(&self) -> Result<(), SwitchError> {
        let Ok(listing) = fs::read_dir(&self.directory) else {
            return Ok(());
        };
        for path in listing.flatten().map(|file| file.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let Some((_, pid)) = name
                .strip_suffix(".tmp")
                .and_then(|name| name.rsplit_once('.'))
            else {
                continue;
            };
            let pid = pid.split('-').next().unwrap_or_default();
            if pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists() {
                fs::remove_file(&path).map_err(journal_error(&path))?;
            }
        }
        remove_if_empty(&self.directory);
        Ok(())
    }
}

/// A record that this process has locked.
#[derive(Debug)]
pub struct Entry<R = Record> {
    path: PathBuf,
    record: R,
    /// The lock, which ends when the file is closed.
    lock: File,
}

impl<R: Content> Entry<R> {
    /// The record.
    pub fn record(&self) -> &R {
        &self.record
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Changes the record, which is on disk when this returns.
    pub(crate) fn update(&mut self, change: impl FnOnce(&mut R)) -> Result<(), SwitchError> {
        let mut record = self.record.clone();
        change(&mut record);
        let (aside, file) = write_aside(&self.path, &record)?;
        fs::rename(&aside, &self.path).map_err(journal_error(&self.path))?;
        sync_directory(directory_of(&self.path))?;
        fault_point();
        self.record = record;
        // Closing the replaced file ends its lock; the new file was locked before it got the name.
        self.lock = file;
        Ok(())
    }

    /// Removes the record: all its values are restored, or ended with their boot or interface.
    pub fn close(self) -> Result<(), SwitchError> {
        let directory = directory_of(&self.path).to_path_buf();
        self.close_keeping_directory()?;
        remove_if_empty(&directory);
        Ok(())
    }

    fn close_keeping_directory(self) -> Result<(), SwitchError> {
        fs::remove_file(&self.path).map_err(journal_error(&self.path))?;
        sync_directory(directory_of(&self.path))?;
        fault_point();
        Ok(())
    }
}

/// Removes the directory of a journal without records.
fn remove_if_empty(directory: &Path) {
    // Fails while other records exist, as intended.
    let _ = fs::remove_dir(directory);
}

fn directory_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Writes a record to a temporary file and locks it.
fn write_aside(path: &Path, record: &impl Serialize) -> Result<(PathBuf, File), SwitchError> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let count = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let aside = path.with_extension(format!("{}-{count}.tmp", std::process::id()));
    let write = || -> io::Result<File> {
        // A killed process with this pid may have left the file.
        let _ = fs::remove_file(&aside);
        let mut file = files::create(&aside, RECORD_MODE)?;
        file.write_all(&serde_json::to_vec_pretty(record)?)?;
        file.sync_all()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(file)
    };
    let file = write().map_err(|error| {
        // The disk may be full.
        let _ = fs::remove_file(&aside);
        remove_if_empty(directory_of(path));
        journal_error(&aside)(error)
    })?;
    fault_point();
    Ok((aside, file))
}

fn sync_directory(directory: &Path) -> Result<(), SwitchError> {
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(journal_error(directory))
}

/// Opens a record, and refuses one that another user could have written.
fn open(path: &Path) -> Result<File, SwitchError> {
    let is_safe = files::check_folder(directory_of(path));
    is_safe
        .and_then(|()| files::open(path))
        .map_err(unsafe_file(path))
}

fn read_record<R: Content>(path: &Path) -> Result<R, SwitchError> {
    read_file(&open(path)?, path)
}

fn read_file<R: Content>(file: &File, path: &Path) -> Result<R, SwitchError> {
    let mut bytes = Vec::new();
    file.take(RECORD_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(journal_error(path))?;
    let refuse = |reason: String| {
        SwitchError::Failed(format!(
            "{} is not a record of this nicpoll ({reason}); it was left alone. If it is not wanted, remove it",
            path.display()
        ))
    };
    if bytes.len() as u64 > RECORD_BYTES_MAX {
        return Err(refuse(format!("longer than {RECORD_BYTES_MAX} bytes")));
    }
    let record = R::parse(&bytes).map_err(|reason| refuse(reason.to_string()))?;
    let is_own = path
        .file_name()
        .is_some_and(|name| *name == *record.file_name());
    if !is_own {
        let reason = "its content and its name disagree";
        return Err(refuse(String::from(reason)));
    }
    Ok(record)
}

/// Names the number of the point, from 1, at which the process kills itself.
#[cfg(debug_assertions)]
const KILL_VARIABLE: &str = "NICPOLL_TEST_KILL_AT_POINT";

/// A point where a test may kill the process: after each step of the journal and before each write. If the variable
/// names this point, the process ends as by `kill -9`: nothing is unwound, flushed or restored. A release build has no
/// such points.
#[cfg(debug_assertions)]
pub fn fault_point() {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static LEFT: LazyLock<Option<AtomicU64>> = LazyLock::new(|| {
        let point = std::env::var(KILL_VARIABLE).ok()?.parse().ok()?;
        Some(AtomicU64::new(point))
    });
    let Some(left) = &*LEFT else { return };
    if left.fetch_sub(1, Ordering::Relaxed) == 1 {
        let own = rustix::process::getpid();
        let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
    }
}

/// Does nothing in a release build.
#[cfg(not(debug_assertions))]
pub fn fault_point() {}

#[cfg(test)]
mod tests;
