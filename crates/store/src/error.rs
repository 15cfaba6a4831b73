//! Why a store cannot be used: each reason with its remedy.

use std::io;

use rusqlite::ErrorCode;
use thiserror::Error;

use crate::place::Place;

/// A store that cannot be used as was asked.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Nothing says where the user's data is.
    #[error(
        "neither XDG_DATA_HOME nor HOME is set, so the data folder is unknown: name a file with --store FILE"
    )]
    NoFolder,
    /// It cannot be read or written.
    #[error("{doing} {place}: {reason}")]
    At {
        /// What was being done, as in `opening`.
        doing: &'static str,
        /// Where.
        place: Place,
        /// Why it failed.
        reason: Reason,
    },
    /// Nothing was ever stored there.
    #[error(
        "nothing is stored in {place} yet: 'nicpoll demo' begins it; --store names another place"
    )]
    Nothing {
        /// Where.
        place: Place,
    },
    /// This program was built without the part that speaks to a server.
    #[error(
        "this nicpoll was built without PostgreSQL: build it with 'cargo build --release --features postgres', \
         or name a file with --store FILE"
    )]
    NoServers,
    /// There is no such study.
    #[error(
        "there is no study {which} in {place}; 'nicpoll study list' shows those that there are"
    )]
    NoStudy {
        /// What was asked for.
        which: String,
        /// Where.
        place: Place,
    },
    /// There is nothing to go on with.
    #[error("{place} holds no study that could be resumed: none is unfinished")]
    NoneUnfinished {
        /// Where.
        place: Place,
    },
    /// A study that is what was asked for, but not in the state for it.
    #[error("study {id} {is}")]
    Unfit {
        /// Its number.
        id: i64,
        /// What it is, and the remedy.
        is: String,
    },
    /// A document of another layout.
    #[error(
        "study {id} is a document '{found}', and this program reads '{known}': 'nicpoll study export {id}' \
         prints it as it is"
    )]
    Layout {
        /// Number of the study.
        id: i64,
        /// Its layout.
        found: String,
        /// The layout that is read.
        known: &'static str,
    },
    /// What a row holds is no such document.
    #[error("what is stored of study {id} cannot be read: {source}")]
    Document {
        /// Number of the study.
        id: i64,
        /// Why.
        source: serde_json::Error,
    },
}

/// Why a store failed.
#[derive(Debug, Error)]
pub enum Reason {
    /// Nothing more fits.
    #[error("the disk is full")]
    Full,
    /// A write failed.
    #[error(
        "it cannot be written further: its disk fails, or files may not be longer here (ulimit -f)"
    )]
    Unwritten,
    /// Nothing may be written.
    #[error(
        "it is read-only; name another file with --store FILE, or store nothing with --no-store"
    )]
    ReadOnly,
    /// SQLite can neither open nor make it.
    #[error(
        "it can be neither opened nor made; look at the rights of its folder, or name another file with --store FILE"
    )]
    Unopened,
    /// Another process does not let go of it.
    #[error("another program holds a lock on it, and did not let go within {} s", crate::BUSY_MAX.as_secs())]
    Locked,
    /// A newer program has made it.
    #[error(
        "its schema is version {found}, and this program knows {known}: use the newer nicpoll that wrote it, \
         or name another file with --store FILE"
    )]
    Newer {
        /// Its version.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// It is a database of something else.
    #[error("it is a database of another program; name another file with --store FILE")]
    Foreign,
    /// It does not hold together, or is no database.
    #[error(
        "it is damaged ({what}); move it away, and try 'sqlite3 FILE .recover' for what can be saved of it"
    )]
    Damaged {
        /// What is wrong.
        what: String,
    },
    /// The kernel refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The URL asks for what this program does not do.
    #[error("{0}")]
    Refused(&'static str),
    /// The server cannot be reached, or refused.
    #[error("{0}")]
    Server(String),
    /// Anything else that SQLite says.
    #[error("{0}")]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Reason {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Reason::Full,
            Some(ErrorCode::SystemIoFailure) => Reason::Unwritten,
            Some(ErrorCode::ReadOnly) => Reason::ReadOnly,
            Some(ErrorCode::CannotOpen) => Reason::Unopened,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Reason::Locked,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Reason::Damaged {
                what: error.to_string(),
            },
            _ => Reason::Sqlite(error),
        }
    }
}

impl StoreError {
    /// Says of a failure what was being done, and where.
    pub(crate) fn at<E: Into<Reason>>(
        doing: &'static str,
        place: &Place,
    ) -> impl FnOnce(E) -> StoreError {
        move |reason| StoreError::At {
            doing,
            place: place.clone(),
            reason: reason.into(),
        }
    }
}
