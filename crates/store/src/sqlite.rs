//! SQLite. A file is written only after it is known to be nicpoll's, undamaged and of a schema that this program knows.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf, absolute};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params_from_iter};

use crate::database::{Database, STEPS, SqlRow, Value};
use crate::place::{BUSY_MAX, Migration, Reason, StoreError, StorePlace};

/// SQLite's application id of nicpoll's databases: `nicp`.
pub(crate) const APPLICATION: i64 = 0x6e69_6370;

/// A file.
pub(crate) struct Sqlite(Connection);

impl Database for Sqlite {
    fn run(&self, sql: &str, values: &[Value]) -> Result<Vec<SqlRow>, Reason> {
        let mut statement = self.0.prepare(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(values))?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            let values = (0..columns).map(|column| row.get(column));
            all.push(SqlRow(values.collect::<Result<_, _>>()?));
        }
        Ok(all)
    }

    fn begin(&self) -> &'static str {
        "BEGIN IMMEDIATE"
    }

    /// The transaction that takes a study keeps others out; they then find its owner.
    fn hold(&self, _: i64) -> Result<bool, Reason> {
        Ok(true)
    }

    fn held(&self) -> Result<Option<Vec<i64>>, Reason> {
        Ok(None)
    }
}

/// Opens a file for writing; creates it and its folder if needed. A file of an older schema is copied, then
/// converted.
pub(crate) fn to_write(path: &Path) -> Result<(StorePlace, Sqlite, Option<Migration>), StoreError> {
    let path = absolute(path).map_err(StoreError::at("opening", &path.into()))?;
    let place = StorePlace::from(&path);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(StoreError::at("making the folder of", &place))?;
    }
    let open = || -> Result<_, Reason> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut connection = connected(&path, flags)?;
        let steps = STEPS.map(|step| step.sqlite);
        let known = steps.len() as i64;
        let version = verified(&connection, &steps)?;
        if connection.is_readonly("main")? {
            return Err(Reason::ReadOnly);
        }
        let copy = match (1..known).contains(&version) {
            true => Some(copy(&connection, &path, version)?),
            false => None,
        };
        if version < known {
            migrate(&mut connection, &steps)?;
        }
        let migration = copy.map(|copy| Migration {
            from: version,
            to: known,
            copy: copy.display().to_string(),
        });
        Ok((Sqlite(connection), migration))
    };
    let (opened, migration) = open().map_err(StoreError::at("opening", &place))?;
    Ok((place, opened, migration))
}

/// Copies the file next to itself, readable for its owner alone like the original.
fn copy(connection: &Connection, path: &Path, version: i64) -> Result<PathBuf, Reason> {
    let named = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".schema-{version}"));
        if number > 0 {
            name.push(format!(".{number}"));
        }
        PathBuf::from(name)
    };
    let free = (0..).map(named).find(|copy| !copy.exists());
    let copy = free.unwrap_or_else(|| named(0));
    connection.execute("VACUUM INTO ?1", [copy.to_string_lossy()])?;
    fs::set_permissions(&copy, fs::metadata(path)?.permissions())?;
    Ok(copy)
}

/// An open file whose content has not been read.
pub(crate) struct OpenFile {
    place: StorePlace,
    connection: Connection,
}

/// Opens an existing file for reading, without writing to it.
///
/// A process killed during a commit leaves a journal. It is applied here only to a file of this user's own: a reader
/// who may not open the journal would read half a commit.
pub(crate) fn opened(path: &Path) -> Result<OpenFile, StoreError> {
    let path = absolute(path).map_err(StoreError::at("opening", &path.into()))?;
    let place = StorePlace::from(&path);
    let Ok(facts) = fs::metadata(&path) else {
        return Err(StoreError::Nothing(place));
    };
    let open = || {
        if !facts.is_file() {
            return Err(Reason::NoDatabase);
        }
        let is_own = facts.uid() == rustix::process::geteuid().as_raw();
        let start = Instant::now();
        while has_journal(&path) {
            if is_own {
                let connection = connected(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
                number(&connection, "schema_version")?;
                break;
            }
            if start.elapsed() > BUSY_MAX {
                return Err(Reason::HalfWritten);
            }
            thread::sleep(Duration::from_millis(20));
        }
        connected(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)
    };
    let connection = open().map_err(StoreError::at("opening", &place))?;
    Ok(OpenFile { place, connection })
}

/// Returns whether a commit is in progress or was left unfinished.
fn has_journal(path: &Path) -> bool {
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    fs::metadata(journal).is_ok_and(|facts| facts.len() > 0)
}

impl OpenFile {
    /// Returns its store. An older schema is converted in memory.
    pub fn checked(mut self) -> Result<(StorePlace, Sqlite), StoreError> {
        let steps = STEPS.map(|step| step.sqlite);
        let read = |connection: &mut Connection| -> Result<(), Reason> {
            // The reader may not be allowed to create temporary files.
            connection.pragma_update(None, "temp_store", "MEMORY")?;
            if verified(connection, &steps)? < steps.len() as i64 {
                let mut copy = Connection::open_in_memory()?;
                let whole = Backup::new(connection, &mut copy)?;
                whole.run_to_completion(i32::MAX, Duration::ZERO, None)?;
                drop(whole);
                migrate(&mut copy, &steps)?;
                *connection = copy;
            }
            Ok(())
        };
        let place = self.place;
        read(&mut self.connection).map_err(StoreError::at("opening", &place))?;
        Ok((place, Sqlite(self.connection)))
    }
}

#[cfg(feature = "postgres")]
impl Sqlite {
    /// Builds a store in memory from tables of an older schema, which `rows` queries, and converts it.
    pub fn in_memory(
        version: i64,
        rows: impl Fn(&str) -> Result<Vec<SqlRow>, Reason>,
    ) -> Result<Self, Reason> {
        let steps = STEPS.map(|step| step.sqlite);
        let mut store = Sqlite(Connection::open_in_memory()?);
        migrate(&mut store.0, &steps[..version as usize])?;
        for table in ["study", "trial"] {
            // Computed columns are not among them.
            let sql = "SELECT name FROM pragma_table_info($1)";
            let names = store.run(sql, &[String::from(table).into()])?;
            let names: Vec<String> = names
                .iter()
                .map(|it| it.text(0))
                .collect::<Result<_, _>>()?;
            let numbers: Vec<String> = (1..=names.len()).map(|it| format!("${it}")).collect();
            let (names, numbers) = (names.join(", "), numbers.join(", "));
            let insert = format!("INSERT INTO {table} ({names}) VALUES ({numbers})");
            for row in rows(&format!("SELECT {names} FROM {table}"))? {
                store.run(&insert, &row.0)?;
            }
        }
        migrate(&mut store.0, &steps)?;
        Ok(store)
    }
}

fn connected(path: &Path, flags: OpenFlags) -> Result<Connection, Reason> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_MAX)?;
    Ok(connection)
}

/// Returns the schema version of a database that is nicpoll's and undamaged.
fn verified(connection: &Connection, steps: &[&str]) -> Result<i64, Reason> {
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
    Ok(version)
}

fn number(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}

fn migrate(connection: &mut Connection, steps: &[&str]) -> Result<(), Reason> {
    // Possible only without tables: deleting then shrinks the file.
    connection.pragma_update(None, "auto_vacuum", "FULL")?;
    let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have converted it meanwhile.
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

    fn prepare(connection: &mut Connection, steps: &[&str]) -> Result<(), Reason> {
        if verified(connection, steps)? < steps.len() as i64 {
            migrate(connection, steps)?;
        }
        Ok(())
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
