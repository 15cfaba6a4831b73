//! Records: the changes of one interface, the values before, and the process that owns the changes.
//!
//! Bytes that are not exactly a record of this version are refused. Only recorded values are ever restored.

use std::fs;
use std::io;

use rustix::time::{ClockId, clock_gettime};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use crate::kernel::{Interface, Target};
use crate::knob::{ScopedKnob, Value};

const VERSION: u32 = 3;

/// One changed knob with its earlier value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Change {
    /// The knob.
    pub knob: ScopedKnob,
    /// The value before.
    pub before: Value,
    /// The value written.
    pub written: Value,
}

impl Change {
    /// Whether the change has an effect: the written value differs from the one before.
    pub(crate) fn is_any(&self) -> bool {
        self.before != self.written
    }
}

/// Changes that last as long as their owner, or until they are confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// The process that owns the changes; they are undone when it ends.
    pub owner: Owner,
    /// The transaction's id, the same on all interfaces that one command changes.
    pub transaction: String,
    /// The record files of all these interfaces.
    pub group: Vec<String>,
    /// When the changes are undone unless confirmed, in ns of CLOCK_BOOTTIME; null: only when the owner ends.
    pub until_boottime_ns: Option<u64>,
    /// The changes, in order.
    pub changes: Vec<Change>,
}

/// Everything needed to restore one interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    version: u32,
    boot_id: String,
    /// Inode number of the interface's network namespace at the last change.
    pub netns_inode: u64,
    /// The interface at the last change.
    pub interface: Interface,
    /// The record file of the only interface that needed this one changed, such as the other end of a pair.
    pub companion_of: Option<String>,
    /// The last transaction that was confirmed.
    pub transaction: Option<String>,
    /// Changes that stay until they are undone.
    pub standing: Vec<Change>,
    /// Changes that are not confirmed.
    pub attempt: Option<Attempt>,
}

impl Record {
    /// Creates a record of an interface without changes.
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

    /// Parses a record.
    ///
    /// # Errors
    /// When the bytes are not exactly a record of this version. No input panics.
    pub fn parse(bytes: &[u8]) -> Result<Record, serde_json::Error> {
        let record: Record = serde_json::from_slice(bytes)?;
        check_version(record.version, VERSION)?;
        Ok(record)
    }

    /// Whether the record was made during this boot.
    pub(crate) fn is_of_this_boot(&self) -> io::Result<bool> {
        Ok(self.boot_id == boot_id()?)
    }

    /// Updates the device's namespace and name.
    pub(super) fn move_to(&mut self, target: &Target) {
        self.netns_inode = target.netns_inode;
        self.interface = target.interface.clone();
    }

    /// Returns the interface with its namespace, as of the last change.
    pub fn target(&self) -> Target {
        Target::new(self.netns_inode, self.interface.clone())
    }

    /// Makes the attempt stand until it is undone.
    pub fn settle(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            self.transaction = Some(attempt.transaction.clone());
            self.standing = merged(&self.standing, &attempt.changes);
        }
    }

    /// Returns every change in force, unconfirmed ones included.
    pub fn all_changes(&self) -> Vec<Change> {
        let attempt = self.attempt.as_ref();
        let attempted = attempt.map_or(&[][..], |attempt| &attempt.changes);
        merged(&self.standing, attempted)
    }
}

/// Refuses a record of another version.
pub fn check_version(found: u32, written: u32) -> Result<(), serde_json::Error> {
    match found == written {
        true => Ok(()),
        false => Err(serde_json::Error::custom(format!(
            "version {found} where this nicpoll writes {written}"
        ))),
    }
}

/// Merges `earlier` and `later`: each knob keeps its first value before and its last value written.
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

/// A process, identified by pid and start time: pids are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// Start of the process in clock ticks since boot: field 22 of `/proc/PID/stat` (proc_pid_stat(5)).
    pub start_time_ticks: u64,
}

impl Owner {
    /// The calling process.
    pub fn this_process() -> io::Result<Self> {
        Self::of_process(std::process::id())
    }

    /// Identifies a running process.
    ///
    /// # Errors
    /// When it does not run, or `/proc` does not show it.
    pub(crate) fn of_process(pid: u32) -> io::Result<Self> {
        let start_time_ticks = start_time_of(pid)?.ok_or_else(|| {
            io::Error::other(format!("/proc does not show process {pid}; is it mounted?"))
        })?;
        Ok(Owner {
            pid,
            start_time_ticks,
        })
    }

    /// Whether this very process still runs. A zombie does not: it can undo nothing.
    pub fn is_alive(&self) -> io::Result<bool> {
        Ok(start_time_of(self.pid)? == Some(self.start_time_ticks))
    }
}

/// Returns this boot's id.
pub fn boot_id() -> io::Result<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(String::from(id.trim()))
}

/// Returns CLOCK_BOOTTIME in ns: the time since boot, suspend included.
pub fn boottime_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn start_time_of(pid: u32) -> io::Result<Option<u64>> {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => Ok(parse_start_time(&stat)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // The process ended between opening and reading.
        Err(error) if error.raw_os_error() == Some(3) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Parses field 22. Fields are counted from the last parenthesis: the command's name is in parentheses and may itself
/// contain spaces and parentheses.
fn parse_start_time(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    // The state is field 3, the start time field 22.
    fields.nth(22 - 3 - 1)?.parse().ok()
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

    #[test]
    fn a_hostile_command_name_does_not_shift_the_fields() {
        let stat =
            "7 (a) S 1 2) R 1 1 1 0 -1 4194304 100 0 0 0 1 1 0 0 20 0 1 0 4242 1000 10 1 2 3\n";
        assert_eq!(parse_start_time(stat), Some(4242));
        assert_eq!(parse_start_time(&stat.replace(") R", ") Z")), None);
        assert_eq!(parse_start_time("7 (a"), None);
        assert_eq!(parse_start_time("7 (a) R 1"), None);
    }

    #[test]
    fn this_process_is_alive_and_its_successor_is_not() {
        let owner = Owner::this_process().unwrap();
        assert!(owner.is_alive().unwrap());
        let successor = Owner {
            start_time_ticks: owner.start_time_ticks + 1,
            ..owner
        };
        assert!(!successor.is_alive().unwrap());
    }

    #[test]
    fn a_process_that_ended_is_not_alive() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let start_time_ticks = start_time_of(child.id()).unwrap();
        let pid = child.id();
        child.wait().unwrap();
        let owner = Owner {
            pid,
            start_time_ticks: start_time_ticks.unwrap_or(1),
        };
        assert!(!owner.is_alive().unwrap());
    }
}
