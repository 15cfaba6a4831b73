//! SQLite. A file is written only after it is known to be nicpoll's, undamaged and of a schema that this program knows.

use std::fs;
use std::path::{Path, absolute};

use rusqlite::{Connection, OpenFlags, TransactionBehavior, params_from_iter};

use crate::database::{Database, Row, STEPS, Value};
use crate::place::{BUSY_MAX, Place, Reason, StoreError};

/// Marks a database as one of nicpoll's: `nicp` (SQLite's application id).
pub(crate) const APPLICATION: i64 = 0x6e69_6370;

/// A file.
pub(crate) struct Sqlite(Connection);

impl Database for Sqlite {
    fn run(&self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Reason> {
        let mut statement = self.0.prepare(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(values))?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            let values = (0..columns).map(|column| row.get(column));
            all.push(Row(values.collect::<Result<_, _>>()?));
        }
        Ok(all)
    }

    fn begin(&self) -> &'static str {
        "BEGIN IMMEDIATE"
    }

    /// The transaction that takes a study keeps others out, and they find its owner.
    fn hold(&self, _: i64) -> Result<bool, Reason> {
        Ok(true)
    }

    fn held(&self) -> Result<Option<Vec<i64>>, Reason> {
        Ok(None)
    }
}

/// Opens a file for writing, and makes it with its folder where there is none.
pub(crate) fn to_write(path: &Path) -> Result<(Place, Sqlite), StoreError> {
    let path = absolute(path).map_err(StoreError::at("opening", &path.into()))?;
    let place = Place::from(&path);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(StoreError::at("making the folder of", &place))?;
    }
    let open = || {
        let connection = checked(&path, OpenFlags::SQLITE_OPEN_CREATE)?;
        match connection.is_readonly("main")? {
            true => Err(Reason::ReadOnly),
            false => Ok(Sqlite(connection)),
        }
    };
    let opened = open().map_err(StoreError::at("opening", &place))?;
    Ok((place, opened))
}

/// Opens a file that is there. It may be read-only.
pub(crate) fn to_read(path: &Path) -> Result<(Place, Sqlite), StoreError> {
    let path = absolute(path).map_err(StoreError::at("opening", &path.into()))?;
    let place = Place::from(&path);
    if !path.exists() {
        return Err(StoreError::Nothing(place));
    }
    let opened = checked(&path, OpenFlags::empty());
    let connection = opened.map_err(StoreError::at("opening", &place))?;
    Ok((place, Sqlite(connection)))
}

/// Opens for writing where that is allowed: what a process that was killed in the middle of a commit left can
/// then be rolled back, also before reading.
fn checked(path: &Path, more: OpenFlags) -> Result<Connection, Reason> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let mut connection = Connection::open_with_flags(path, flags)?;
    prepare(&mut connection, &STEPS.map(|step| step.sqlite))?;
    Ok(connection)
}

fn prepare(connection: &mut Connection, steps: &[&str]) -> Result<(), Reason> {
    connection.busy_timeout(BUSY_MAX)?;
    let version = number(connection, "user_version")?;
    let known = steps.len() as i64;
    if version > known {
        return Err(Reason::Newer(version, known));
    }
    let objects: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if objects > 0 && number(connection, "application_id")? != APPLICATION {
        return Err(Reason::Foreign);
    }
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(Reason::Damaged(verdict));
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
        assert!(matches!(older, Reason::Newer(2, 1)), "{older}");
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
