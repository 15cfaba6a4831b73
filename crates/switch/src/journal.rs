//! The journal: the values before each change, on disk before the change is made.
//!
//! `record` is the content of a file, `store` the directory with its locks, `files` checks that only root could have
//! written the files.

pub(crate) mod files;
mod record;
mod store;

pub use record::{Attempt, Change, Owner, Record, boot_id, boottime_ns, check_version, merged};
pub use store::{
    Content, DEFAULT_DIRECTORY, DIRECTORY_VARIABLE, Entry, Journal, fault_point, journal_error,
};
