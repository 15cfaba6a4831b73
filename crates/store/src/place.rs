//! The place of a store, a file or a team's server, and the errors of using it.
//!
//! A place is printed and stored with the command line, so it never contains a password. Each error names its remedy.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use std::{env, fmt, io};

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_READONLY_ROLLBACK;
use thiserror::Error;

/// Where studies are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorePlace {
    /// An SQLite file.
    File(PathBuf),
    /// A PostgreSQL server, by its URL.
    Server(String),
}

/// A store's conversion to a newer schema, when it was opened for writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The old schema version.
    pub from: i64,
    /// The new schema version.
    pub to: i64,
    /// A copy of the old file or tables.
    pub copy: String,
}

impl fmt::Display for Migration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Migration { from, to, copy } = self;
        write!(
            f,
            "its schema was version {from} and is version {to}; what it was is kept in {copy}"
        )
    }
}

/// Prefixes of PostgreSQL URLs.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

impl StorePlace {
    /// Returns the default file, in the user's data folder (XDG Base Directory Specification).
    ///
    /// # Errors
    /// When the environment does not name it.
    pub fn of_user() -> Result<Self, StoreError> {
        let file = file_in(env::var_os("XDG_DATA_HOME"), env::var_os("HOME"));
        file.map(StorePlace::File).ok_or(StoreError::NoPlace(
            "neither XDG_DATA_HOME nor HOME is set, so the data folder is unknown: name a file with --store FILE",
        ))
    }
}

/// The specification says to ignore relative paths.
fn file_in(data: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let is_absolute = |path: &PathBuf| path.is_absolute();
    let data = data.map(PathBuf::from).filter(is_absolute);
    let home = home.map(PathBuf::from).filter(is_absolute);
    let folder = data.or_else(|| Some(home?.join(".local/share")))?;
    Some(folder.join("nicpoll").join("studies.db"))
}

impl FromStr for StorePlace {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let is_server = SCHEMES.iter().any(|scheme| text.starts_with(scheme));
        Ok(match is_server {
            true => StorePlace::Server(String::from(text)),
            false => StorePlace::File(PathBuf::from(text)),
        })
    }
}

impl From<&Path> for StorePlace {
    fn from(path: &Path) -> Self {
        StorePlace::File(path.to_owned())
    }
}

impl From<&PathBuf> for StorePlace {
    fn from(path: &PathBuf) -> Self {
        StorePlace::File(path.clone())
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorePlace::File(path) => write!(f, "{}", path.display()),
            StorePlace::Server(url) => f.write_str(&without_password(url)),
        }
    }
}

/// Removes the password from a refused URL, for messages.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return String::from(url);
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((user, _)) => {
            let name = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{name}{}", &rest[user.len()..])
        }
        None => String::from(url),
    }
}

/// Returns whether a URL contains a password.
#[cfg(feature = "postgres")]
pub(crate) fn has_password(url: &str) -> bool {
    without_password(url) != url || url.contains("password=")
}

/// Errors of a store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The place cannot exist here: why, and the remedy.
    #[error("{0}")]
    NoPlace(&'static str),
    /// It cannot be read or written.
    #[error("{doing} {place}: {reason}")]
    At {
        /// The step, such as `opening`.
        doing: &'static str,
        /// Where.
        place: StorePlace,
        /// Why it failed.
        reason: Reason,
    },
    /// The store does not exist yet.
    #[error("nothing is stored in {0} yet: 'nicpoll demo' begins it; --store names another place")]
    Nothing(StorePlace),
    /// There is no such study: its name, and the place.
    #[error("there is no study {0} in {1}; 'nicpoll study list' shows those that there are")]
    NoStudy(String, StorePlace),
    /// No study is unfinished.
    #[error("{0} holds no study that could be resumed: none is unfinished")]
    NoneUnfinished(StorePlace),
    /// The study's state does not allow the request: its number, its state, and the remedy.
    #[error("study {0} {1}")]
    Unfit(i64, String),
    /// A document of another layout: the study's number, its layout, and the expected one.
    #[error(
        "study {0} is a document '{1}', and this program reads '{2}': 'nicpoll study export {0}' prints it as it is"
    )]
    Layout(i64, String, &'static str),
    /// A row of a study holds no valid document.
    #[error("study {0} cannot be read from the store: {1}")]
    Document(i64, #[source] serde_json::Error),
}

/// Reasons for which a store fails.
#[derive(Debug, Error)]
pub enum Reason {
    /// The disk is full.
    #[error("the disk is full")]
    Full,
    /// A write failed.
    #[error(
        "it cannot be written further: its disk fails, or files may not be longer here (ulimit -f)"
    )]
    Unwritten,
    /// The file is read-only.
    #[error(
        "it is read-only; name another file with --store FILE, or store nothing with --no-store"
    )]
    ReadOnly,
    /// SQLite can neither open nor create it.
    #[error(
        "it can be neither opened nor made; look at the rights of its folder, or name another file with --store FILE"
    )]
    Unopened,
    /// Another process holds a lock on it.
    #[error("another program holds a lock on it, and did not let go within {} s", BUSY_MAX.as_secs())]
    Locked,
    /// A process was killed during a commit, and this one may not complete or undo it.
    #[error(
        "a program was killed while it wrote it, or writes it all the time; its owner's 'nicpoll study list' puts it right"
    )]
    HalfWritten,
    /// A newer program made it: its version, and the newest that this program knows.
    #[error(
        "its schema is version {0}, and this program knows {1}: use the newer nicpoll that wrote it, \
         or name another file with --store FILE"
    )]
    Newer(i64, i64),
    /// It is a database of something else.
    #[error("it is a database of another program; name another file with --store FILE")]
    Foreign,
    /// It is no database of studies.
    #[error("it is no database of studies; name another file with --store FILE")]
    NoDatabase,
    /// It is damaged.
    #[error(
        "it is damaged ({0}); move it away, and try 'sqlite3 FILE .recover' for what can be saved of it"
    )]
    Damaged(String),
    /// The kernel refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The URL asks for something unsupported.
    #[error("{0}")]
    Refused(&'static str),
    /// Any other error of the database.
    #[error("{0}")]
    Database(String),
}

impl From<rusqlite::Error> for Reason {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error().map(|it| it.extended_code);
        if code == Some(SQLITE_READONLY_ROLLBACK) {
            return Reason::HalfWritten;
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Reason::Full,
            Some(ErrorCode::SystemIoFailure) => Reason::Unwritten,
            Some(ErrorCode::ReadOnly) => Reason::ReadOnly,
            Some(ErrorCode::CannotOpen) => Reason::Unopened,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Reason::Locked,
            Some(ErrorCode::NotADatabase) => Reason::NoDatabase,
            Some(ErrorCode::DatabaseCorrupt) => Reason::Damaged(error.to_string()),
            _ => Reason::Database(error.to_string()),
        }
    }
}

impl StoreError {
    /// Adds step and place to a failure.
    pub(crate) fn at<E: Into<Reason>>(
        doing: &'static str,
        place: &StorePlace,
    ) -> impl FnOnce(E) -> StoreError {
        move |reason| StoreError::At {
            doing,
            place: place.clone(),
            reason: reason.into(),
        }
    }
}

/// Time to wait for another process's lock.
pub const BUSY_MAX: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_lies_in_the_users_data_folder() {
        let file = |data: Option<&str>, home: Option<&str>| {
            let file = file_in(data.map(OsString::from), home.map(OsString::from));
            file.map(|path| path.display().to_string())
        };
        assert_eq!(
            file(Some("/d"), Some("/h")).unwrap(),
            "/d/nicpoll/studies.db"
        );
        let in_home = "/h/.local/share/nicpoll/studies.db";
        assert_eq!(file(None, Some("/h")).unwrap(), in_home);
        assert_eq!(file(Some("relative"), Some("/h")).unwrap(), in_home);
        assert_eq!(file(Some(""), Some("")), None);
        assert_eq!(file(None, None), None);
    }

    #[test]
    fn a_server_is_told_from_a_file_and_printed_without_its_password() {
        let place = |text: &str| text.parse::<StorePlace>().unwrap();
        assert_eq!(
            place("a/postgres.db"),
            StorePlace::from(Path::new("a/postgres.db"))
        );
        for (url, printed) in [
            ("postgres://ann@db/net", "postgres://ann@db/net"),
            (
                "postgresql://ann:s:e@cret@db:1/n",
                "postgresql://ann@db:1/n",
            ),
            (
                "postgres:///net?host=/run/a@b",
                "postgres:///net?host=/run/a@b",
            ),
        ] {
            assert!(matches!(place(url), StorePlace::Server(_)), "{url}");
            assert_eq!(place(url).to_string(), printed);
        }
    }
}
