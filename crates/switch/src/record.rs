//! What one file of the journal says: an interface, what was changed on it, and what is being tried.
//!
//! What must hold: bytes that are not exactly a record of this version are refused; what a record says
//! is all that is ever put back from it.

use std::io;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::control::Interface;
use crate::kernel::Target;
use crate::knob::{Knob, Value};
use crate::owner::{Owner, boot_id};

const VERSION: u32 = 3;

/// Why the bytes of a file are not a record.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// They have another form.
    #[error("{0}")]
    Form(#[from] serde_json::Error),
    /// Another version of nicpoll wrote them.
    #[error("version {found} where this nicpoll writes {written}")]
    Version {
        /// Theirs.
        found: u32,
        /// Ours.
        written: u32,
    },
    /// There are more than a record has.
    #[error("longer than {0} bytes")]
    TooLong(u64),
    /// Names in it could not have been written.
    #[error("it has names that nicpoll does not write")]
    Names,
    /// The file has another record's name.
    #[error("it says that it is of something else than its name")]
    OtherName,
}

/// One knob that was changed, with what was there before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Change {
    /// Which.
    pub knob: Knob,
    /// What it held before.
    pub before: Value,
    /// What it was given.
    pub written: Value,
}

/// Changes that last as long as their owner, or until they are confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// Whose change it is; it is put back when this process ends.
    pub owner: Owner,
    /// The same for all interfaces that one command changes.
    pub transaction: String,
    /// The files of all of them.
    pub group: Vec<String>,
    /// When it is put back unless it is confirmed, in ns of CLOCK_BOOTTIME; null: not while the owner
    /// runs.
    pub until_boottime_ns: Option<u64>,
    /// What was changed, in order.
    pub changes: Vec<Change>,
}

/// Everything needed to put one interface back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    version: u32,
    boot_id: String,
    /// Inode number of the network namespace in which the interface was when it was last changed.
    pub netns_inode: u64,
    /// The interface as it was then.
    pub interface: Interface,
    /// The file of the interface for whose sake alone this one was changed.
    pub companion_of: Option<String>,
    /// The last transaction that was made to stand.
    pub transaction: Option<String>,
    /// Changes that stand until they are undone.
    pub standing: Vec<Change>,
    /// Changes that do not stand yet.
    pub attempt: Option<Attempt>,
}

impl Record {
    /// A record of an interface on which nothing is changed yet.
    pub fn new(target: &Target) -> io::Result<Self> {
        Ok(Record {
            version: VERSION,
            boot_id: boot_id()?,
            netns_inode: target.netns_inode,
            interface: target.interface.clone(),
            companion_of: None,
            transaction: None,
            standing: Vec::new(),
            attempt: None,
        })
    }

    /// Reads a record.
    ///
    /// # Errors
    /// What is wrong with the bytes. Any bytes are survived.
    pub fn parse(bytes: &[u8]) -> Result<Record, RecordError> {
        let record: Record = serde_json::from_slice(bytes)?;
        if record.version != VERSION {
            return Err(RecordError::Version {
                found: record.version,
                written: VERSION,
            });
        }
        Ok(record)
    }

    /// Whether the record was made since the machine was last started.
    pub fn is_of_this_boot(&self) -> io::Result<bool> {
        Ok(self.boot_id == boot_id()?)
    }

    /// Says where the device is by now, and under which name.
    pub fn move_to(&mut self, target: &Target) {
        self.netns_inode = target.netns_inode;
        self.interface = target.interface.clone();
    }

    /// The interface with its namespace, as of its last change.
    pub fn target(&self) -> Target {
        Target {
            netns_inode: self.netns_inode,
            interface: self.interface.clone(),
        }
    }

    /// Lets the attempt stand.
    pub fn settle(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            self.transaction = Some(attempt.transaction.clone());
            self.standing = merged(&self.standing, &attempt.changes);
        }
    }

    /// Every change that is in force, those that do not stand yet included.
    pub fn all_changes(&self) -> Vec<Change> {
        let attempt = self.attempt.as_ref();
        let attempted = attempt.map_or(&[][..], |attempt| &attempt.changes);
        merged(&self.standing, attempted)
    }
}

/// `earlier` and `later` as one list: what a knob held at first and what it was given last.
pub fn merged(earlier: &[Change], later: &[Change]) -> Vec<Change> {
    let mut all: Vec<Change> = Vec::new();
    for change in earlier.iter().chain(later) {
        match all.iter_mut().find(|known| known.knob == change.knob) {
            Some(known) => known.written = change.written.clone(),
            None => all.push(change.clone()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// nicpoll writes no such record, but one that was edited may be there.
    #[test]
    fn a_knob_that_a_record_names_twice_goes_back_to_its_oldest_value() {
        let change = |before: u64, written: u64| {
            format!(
                r#"{{"knob":{{"feature":"rx-gro"}},"before":{{"number":{before}}},"written":{{"number":{written}}}}}"#
            )
        };
        let text = format!(
            r#"{{"version":{VERSION},"boot_id":"b","netns_inode":1,"interface":{{"ifindex":2,"name":"em0","driver":
            "veth","address":"02:00:00:00:00:02","netns_cookie":null}},"companion_of":null,"transaction":"t",
            "standing":[{},{}],"attempt":null}}"#,
            change(1, 0),
            change(0, 1)
        );
        let all = Record::parse(text.as_bytes()).unwrap().all_changes();
        let [one] = all.as_slice() else {
            panic!("{all:?}");
        };
        assert_eq!(serde_json::to_string(one).unwrap(), change(1, 1));
    }
}
