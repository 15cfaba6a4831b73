//! What `nicpoll set` and `nicpoll restore` did: each value that they wrote, and what shows that it is in force.
//!
//! What must hold: a write says what was there before it and what is there after it; what was set is told apart
//! from what was seen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::show::{Finding, Unseen};

/// Name and version of the JSON that [`SwitchRun`] becomes.
pub const SET_SCHEMA: &str = "nicpoll.set/1";

/// One run of `nicpoll set` or `nicpoll restore`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchRun {
    /// [`SET_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
    /// When the command began (RFC 3339, UTC).
    pub started_at: String,
    /// The namespace as it was named; null: the program's own.
    pub netns: Option<String>,
    /// Whether nothing was written, and the rest says what would have been.
    pub is_dry_run: bool,
    /// Values: set ones in the order in which they were written, then those that were put back.
    pub writes: Vec<SwitchWrite>,
    /// Whether NAPI instances or threads come only with these writes, so that theirs are not listed.
    pub is_open_ended: bool,
    /// Files that bring the settings back at boot, and what became of them.
    pub files: Vec<SwitchFile>,
    /// When the change undoes itself unless it is confirmed; null: it stays.
    pub undone_after_seconds: Option<f64>,
    /// Interfaces that were put back.
    pub restored: Vec<SwitchRestored>,
    /// What was seen of the interfaces after they were set.
    pub proofs: Vec<SwitchProof>,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchWrite {
    /// The interface.
    pub interface: String,
    /// Inode number of its network namespace.
    pub netns_inode: u64,
    /// The NAPI instance whose value it is; null: the interface's own.
    pub napi_id: Option<u32>,
    /// Which value, as the kernel names it.
    pub name: String,
    /// What it held before.
    pub before: SwitchValue,
    /// What it holds after.
    pub after: SwitchValue,
    /// Whether the kernel changed it along with another value, or it stayed.
    pub is_implied: bool,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SwitchValue {
    /// A number, in the kernel's unit of that value (`gro_flush_timeout`: ns), or 0 and 1 for off and on.
    Number(u64),
    /// CPUs.
    Cpus(Vec<u32>),
    /// A scheduling class with its numbers, in words; or what a sysctl holds.
    Words(String),
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchFile {
    /// Where.
    pub path: String,
    /// Its text before, or the target of a link; null: there was none.
    pub before: Option<String>,
    /// Its text after; null: it is gone.
    pub after: Option<String>,
}

/// An interface that was put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchRestored {
    /// The interface, with its host when that is another one.
    pub interface: String,
    /// Whether every value was read again and is as it was.
    pub is_as_before: bool,
    /// What somebody else had changed meanwhile, or why it could not be put back, in words.
    pub notes: Vec<String>,
}

/// What shows how an interface learns of packets now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchProof {
    /// The interface.
    pub interface: String,
    /// How long its polls were watched; null when they were not.
    pub look_seconds: Option<f64>,
    /// What its values mean; null when they cannot be read.
    pub setting: Option<Finding>,
    /// What its polls say; null when they were not watched.
    pub evidence: Option<Finding>,
    /// Whether the polls say what the values mean; null when nothing happened that would tell.
    pub is_proven: Option<bool>,
    /// What could not be seen.
    pub unseen: Vec<Unseen>,
}
