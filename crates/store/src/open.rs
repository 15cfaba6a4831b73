//! Opening a file: where it lies, whose it is, whether it holds together, and which schema it has.
//!
//! What must hold: nothing is written to a file before all of this is known to be well.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf, absolute};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::error::{Reason, StoreError};

/// How long another process may hold a lock before that is an error.
pub const BUSY_MAX: Duration = Duration::from_secs(3);

/// Marks a database as one of nicpoll's: `nicp` (SQLite's application id).
const APPLICATION: i64 = 0x6e69_6370;

/// What takes a file from each version of the schema to the next. A file's version is the number of steps that
/// it has seen; steps that were released never change.
const STEPS: [&str; 2] = [include_str!("schema/1.sql"), include_str!("schema/2.sql")];

/// The file without `--store`: in the user's data folder (XDG Base Directory Specification).
///
/// # Errors
/// When the environment does not say where that is.
pub fn default_file() -> Result<PathBuf, StoreError> {
    file_in(env::var_os("XDG_DATA_HOME"), env::var_os("HOME")).ok_or(StoreError::NoFolder)
}

/// The specification has relative paths ignored.
fn file_in(data: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let is_absolute = |path: &PathBuf| path.is_absolute();
    let data = data.map(PathBuf::from).filter(is_absolute);
    let home = home.map(PathBuf::from).filter(is_absolute);
    let folder = data.or_else(|| Some(home?.join(".local/share")))?;
    Some(folder.join("nicpoll").join("studies.db"))
}

/// Opens a file for writing, and makes it with its folder where there is none.
pub(crate) fn to_write(path: &Path) -> Result<(PathBuf, Connection), StoreError> {
    let path = absolute(path).map_err(StoreError::file("opening", path))?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(StoreError::file("making the folder of", &path))?;
    }
    let connection = checked(&path, OpenFlags::SQLITE_OPEN_CREATE)?;
    let is_read_only = connection.is_readonly("main");
    if is_read_only.map_err(StoreError::file("opening", &path))? {
        return Err(StoreError::file("opening", &path)(Reason::ReadOnly));
    }
    Ok((path, connection))
}

/// Opens a file that is there. It may be read-only.
pub(crate) fn to_read(path: &Path) -> Result<(PathBuf, Connection), StoreError> {
    let path = absolute(path).map_err(StoreError::file("opening", path))?;
    if !path.exists() {
        return Err(StoreError::NoFile { path });
    }
    let connection = checked(&path, OpenFlags::empty())?;
    Ok((path, connection))
}

/// Opens for writing where that is allowed: what a process that was killed in the middle of a commit left can
/// then be rolled back, also before reading.
fn checked(path: &Path, more: OpenFlags) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let opened = Connection::open_with_flags(path, flags);
    let mut connection = opened.map_err(StoreError::file("opening", path))?;
    prepare(&mut connection, &STEPS).map_err(StoreError::file("opening", path))?;
    Ok(connection)
}

fn prepare(connection: &mut Connection, steps: &[&str]) -> Result<(), Reason> {
    connection.busy_timeout(BUSY_MAX)?;
    let version = number(connection, "user_version")?;
    let known = steps.len() as i64;
    if version > known {
        return Err(Reason::Newer {
            found: version,
            known,
        });
    }
    let objects: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if objects > 0 && number(connection, "application_id")? != APPLICATION {
        return Err(Reason::Foreign);
    }
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(Reason::Damaged { what: verdict });
    }
    if version < known {
        migrate(connection, steps)?;
    }
    Ok(())
}

fn number(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}

fn migrate(connection: &mut Connection, steps: &[&str]) -> Result<(), Reason> {
    // Only a file without tables takes it: what is deleted then makes the file smaller.
    connection.pragma_update(None, "auto_vacuum", "FULL")?;
    let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it meanwhile.
    let version = number(&step, "user_version")?;
    for sql in steps.iter().skip(version as usize) {
        step.execute_batch(sql)?;
    }
    step.pragma_update(None, "application_id", APPLICATION)?;
    step.pragma_update(None, "user_version", steps.len() as i64)?;
    Ok(step.commit()?)
}

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
    fn each_step_is_done_once_and_what_was_there_stays() {
        let mut connection = Connection::open_in_memory().unwrap();
        let one = "CREATE TABLE t (a); INSERT INTO t VALUES (7)";
        let two = "ALTER TABLE t ADD COLUMN b DEFAULT 8";
        prepare(&mut connection, &[one]).unwrap();
        for _ in 0..2 {
            prepare(&mut connection, &[one, two]).unwrap();
        }
        let row = connection.query_row("SELECT a, b FROM t", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        });
        assert_eq!(row.unwrap(), (7, 8));
        assert_eq!(number(&connection, "user_version").unwrap(), 2);
        let older = prepare(&mut connection, &[one]).unwrap_err();
        assert!(
            matches!(older, Reason::Newer { found: 2, known: 1 }),
            "{older}"
        );
    }

    #[test]
    fn a_step_that_fails_leaves_the_version_that_was() {
        let mut connection = Connection::open_in_memory().unwrap();
        prepare(&mut connection, &["CREATE TABLE t (a)"]).unwrap();
        let steps = ["CREATE TABLE t (a)", "DROP TABLE t; no such words"];
        assert!(prepare(&mut connection, &steps).is_err());
        assert_eq!(number(&connection, "user_version").unwrap(), 1);
        connection.execute("INSERT INTO t VALUES (1)", []).unwrap();
    }
}
