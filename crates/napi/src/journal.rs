//! The journal: what was there before each change, on disk before the change is made.
//!
//! One file an interface, named by network namespace and ifindex. What must hold:
//! - a file appears and changes as a whole (written aside, synced, then linked or renamed, then the
//!   directory synced), so a reader sees a record or none;
//! - an interface has one owner at a time: making a record where there is one fails;
//! - a file that is not exactly a record of this version is left alone and named: nothing is ever
//!   written to an interface that a record does not say.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::control::Interface;
use crate::owner::{Owner, boot_id};

/// Where the journal lies unless the environment says otherwise.
pub const DEFAULT_DIRECTORY: &str = "/var/lib/nicpoll";
/// Names another directory for the journal.
pub const DIRECTORY_VARIABLE: &str = "NICPOLL_STATE_DIR";

const VERSION: u32 = 1;
/// A record is well under a kilobyte an interface; more than this is not a record.
const RECORD_BYTES_MAX: u64 = 65_536;

/// One value that was changed, with what was there before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// Offload features.
    Features {
        /// By name, as `ethtool -k` shows it: whether it was asked for before.
        before: BTreeMap<String, bool>,
    },
    /// The deferral of one NAPI instance.
    Deferral {
        /// Id of the instance.
        napi_id: u32,
        /// `napi_defer_hard_irqs` before.
        defer_hard_irqs_before: u32,
        /// `gro_flush_timeout` before, in ns.
        gro_flush_timeout_before_ns: u64,
        /// The longest timeout that was written since, in ns: undoing waits for one that may be
        /// running.
        gro_flush_timeout_max_ns: u64,
    },
}

/// Everything needed to put one interface back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    version: u32,
    boot_id: String,
    /// Whose change it is; it is put back when this process ends.
    pub owner: Owner,
    /// Inode number of the interface's network namespace.
    pub netns_inode: u64,
    /// The interface.
    pub interface: Interface,
    /// What was changed, in order.
    pub changes: Vec<Change>,
}

impl Record {
    /// Reads a record.
    ///
    /// # Errors
    /// What is wrong with the bytes, in words. Any bytes are survived.
    pub fn parse(bytes: &[u8]) -> Result<Record, String> {
        let record: Record = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if record.version != VERSION {
            return Err(format!(
                "version {} where this nicpoll writes {VERSION}",
                record.version
            ));
        }
        Ok(record)
    }

    /// Whether the record was made since the machine was last started.
    pub fn is_of_this_boot(&self) -> io::Result<bool> {
        Ok(self.boot_id == boot_id()?)
    }
}

/// Why the journal could not be written or read.
#[derive(Debug, Error)]
pub enum JournalError {
    /// Somebody else's change is in force.
    #[error(
        "interface {interface} (ifindex {ifindex}) is already changed by process {pid}; wait until it \
         ends, or end it: its settings are put back then"
    )]
    Busy {
        /// The interface.
        interface: String,
        /// Its index.
        ifindex: u32,
        /// The owner.
        pid: u32,
    },
    /// A file in the journal is not a record.
    #[error(
        "{} is not a record of this nicpoll ({reason}); it was left alone. If it is not wanted, remove it",
        path.display()
    )]
    NotARecord {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file system refused.
    #[error("journal {}: it must be writable before anything is changed", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl JournalError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> JournalError {
        let path = path.to_path_buf();
        move |source| JournalError::Io { path, source }
    }
}

/// The directory of records.
#[derive(Clone, Debug)]
pub struct Journal {
    directory: PathBuf,
}

impl Journal {
    /// The journal of this machine: [`DIRECTORY_VARIABLE`], or [`DEFAULT_DIRECTORY`].
    pub fn of_this_machine() -> Self {
        let directory = std::env::var_os(DIRECTORY_VARIABLE)
            .filter(|directory| !directory.is_empty())
            .unwrap_or_else(|| DEFAULT_DIRECTORY.into());
        Journal::at(directory)
    }

    /// A journal in `directory`, which is made with the first record.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Journal {
            directory: directory.into(),
        }
    }

    /// Starts the record of an interface that nobody else has changed.
    pub fn begin(
        &self,
        netns_inode: u64,
        interface: Interface,
        first: Change,
    ) -> Result<Entry, JournalError> {
        fs::create_dir_all(&self.directory).map_err(JournalError::io(&self.directory))?;
        let path = self
            .directory
            .join(format!("{netns_inode}-{}.json", interface.ifindex));
        let record = Record {
            version: VERSION,
            boot_id: boot_id().map_err(JournalError::io(&path))?,
            owner: Owner::this_process().map_err(JournalError::io(&path))?,
            netns_inode,
            interface,
            changes: vec![first],
        };
        let aside = write_aside(&path, &record)?;
        // Unlike a rename, a link fails when the name is taken.
        let linked = fs::hard_link(&aside, &path);
        fs::remove_file(&aside).map_err(JournalError::io(&aside))?;
        match linked {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let holder = read_record(&path)?;
                return Err(JournalError::Busy {
                    interface: holder.interface.name,
                    ifindex: holder.interface.ifindex,
                    pid: holder.owner.pid,
                });
            }
            Err(error) => return Err(JournalError::io(&path)(error)),
        }
        sync_directory(&self.directory)?;
        Ok(Entry { path, record })
    }

    /// Every record, and every file that should be one and is not.
    pub fn entries(&self) -> Result<Vec<Result<Entry, JournalError>>, JournalError> {
        let listing = match fs::read_dir(&self.directory) {
            Ok(listing) => listing,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(JournalError::io(&self.directory)(error)),
        };
        let mut paths: Vec<PathBuf> = listing
            .map(|file| file.map(|file| file.path()))
            .collect::<io::Result<_>>()
            .map_err(JournalError::io(&self.directory))?;
        paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
        paths.sort();
        Ok(paths
            .into_iter()
            .map(|path| {
                let record = read_record(&path)?;
                Ok(Entry { path, record })
            })
            .collect())
    }
}

/// A record on disk.
#[derive(Debug)]
pub struct Entry {
    path: PathBuf,
    record: Record,
}

impl Entry {
    /// What is recorded.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a change. When this returns the change may be made.
    pub fn add(&mut self, change: Change) -> Result<(), JournalError> {
        let mut record = self.record.clone();
        record.changes.push(change);
        let aside = write_aside(&self.path, &record)?;
        fs::rename(&aside, &self.path).map_err(JournalError::io(&self.path))?;
        sync_directory(directory_of(&self.path))?;
        self.record = record;
        Ok(())
    }

    /// Takes the record away: everything in it has been put back, or went with its boot or namespace.
    pub fn close(self) -> Result<(), JournalError> {
        fs::remove_file(&self.path).map_err(JournalError::io(&self.path))?;
        let directory = directory_of(&self.path);
        sync_directory(directory)?;
        // Fails while other records are there, which is as it should be.
        let _ = fs::remove_dir(directory);
        Ok(())
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

fn write_aside(path: &Path, record: &Record) -> Result<PathBuf, JournalError> {
    let aside = path.with_extension(format!("{}.tmp", std::process::id()));
    let write = || -> io::Result<()> {
        let mut file = File::create(&aside)?;
        file.write_all(&serde_json::to_vec_pretty(record)?)?;
        file.sync_all()
    };
    write().map_err(JournalError::io(&aside))?;
    Ok(aside)
}

fn sync_directory(directory: &Path) -> Result<(), JournalError> {
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(JournalError::io(directory))
}

fn read_record(path: &Path) -> Result<Record, JournalError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(RECORD_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(JournalError::io(path))?;
    let refuse = |reason| JournalError::NotARecord {
        path: path.to_path_buf(),
        reason,
    };
    if bytes.len() as u64 > RECORD_BYTES_MAX {
        return Err(refuse(format!("longer than {RECORD_BYTES_MAX} bytes")));
    }
    Record::parse(&bytes).map_err(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interface() -> Interface {
        Interface {
            ifindex: 2,
            name: String::from("em0"),
            driver: String::from("veth"),
        }
    }

    fn feature(name: &str) -> Change {
        Change::Features {
            before: BTreeMap::from([(String::from(name), true)]),
        }
    }

    #[test]
    fn a_record_is_on_disk_until_it_is_closed() {
        let home = tempfile::tempdir().unwrap();
        let journal = Journal::at(home.path().join("state"));
        assert!(journal.entries().unwrap().is_empty());
        let mut entry = journal.begin(7, interface(), feature("a")).unwrap();
        entry.add(feature("b")).unwrap();
        let mut found = journal.entries().unwrap();
        assert_eq!(found.len(), 1);
        let found = found.remove(0).unwrap();
        assert_eq!(found.record(), entry.record());
        assert_eq!(found.record().changes, [feature("a"), feature("b")]);
        assert!(found.record().is_of_this_boot().unwrap());
        entry.close().unwrap();
        assert!(!home.path().join("state").exists());
    }

    #[test]
    fn a_second_owner_is_refused_and_told_of_the_first() {
        let home = tempfile::tempdir().unwrap();
        let journal = Journal::at(home.path());
        let _first = journal.begin(7, interface(), feature("a")).unwrap();
        let error = journal.begin(7, interface(), feature("b")).unwrap_err();
        assert!(matches!(error, JournalError::Busy { pid, .. } if pid == std::process::id()));
        // Another namespace's interface of the same index is another interface.
        journal.begin(8, interface(), feature("b")).unwrap();
    }

    #[test]
    fn what_is_not_a_record_is_named_and_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let journal = Journal::at(home.path());
        let entry = journal.begin(7, interface(), feature("a")).unwrap();
        let whole = fs::read(entry.path()).unwrap();
        for torn in [&whole[..whole.len() / 2], b"", b"{}", b"[1]"] {
            fs::write(entry.path(), torn).unwrap();
            let error = journal.entries().unwrap().remove(0).unwrap_err();
            assert!(matches!(error, JournalError::NotARecord { .. }), "{error}");
            assert_eq!(fs::read(entry.path()).unwrap(), torn);
        }
        fs::write(entry.path(), vec![b' '; RECORD_BYTES_MAX as usize + 1]).unwrap();
        assert!(journal.entries().unwrap().remove(0).is_err());
    }

    #[test]
    fn another_version_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let entry = Journal::at(home.path())
            .begin(7, interface(), feature("a"))
            .unwrap();
        let text = fs::read_to_string(entry.path()).unwrap();
        let newer = text.replace("\"version\": 1", "\"version\": 2");
        assert_ne!(text, newer);
        assert!(Record::parse(newer.as_bytes()).unwrap_err().contains("2"));
        let unknown = text.replacen('{', "{\"extra\": 1,", 1);
        assert!(Record::parse(unknown.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = Record::parse(&bytes);
        }
    }
}
