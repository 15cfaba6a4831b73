//! SQLite. A file is written only after it is known to be nicpoll's, undamaged and of a schema that this program knows.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf, absolute};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::backup::Backup;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params_from_iter};

use crate::database::{Checked, Database, STEPS, SqlRow, Value};
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

/// An open file whose content has not been read.
pub(crate) struct OpenFile {
    place: StorePlace,
    connection: Connection,
    /// Whether it is open for writing.
    is_written: bool,
    /// Where one of an older schema is copied before it is converted, if it is open for writing.
    copy: Option<(PathBuf, Connection)>,
}

/// Opens a file for writing; creates it and its folder if needed.
pub(crate) fn to_write(path: &Path) -> Result<OpenFile, StoreError> {
    let path = absolute(path).map_err(StoreError::at("opening", &path.into()))?;
    let place = StorePlace::from(&path);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(StoreError::at("making the folder of", &place))?;
    }
    let open = || -> Result<_, Reason> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        wait_for_commit(&path)?;
        let connection = connected(&path, flags)?;
        let version = number(&connection, "user_version")?;
        let is_own = number(&connection, "application_id")? == APPLICATION;
        let is_older = is_own && (1..STEPS.len() as i64).contains(&version);
        let copy = is_older.then(|| empty_copy(&path, version)).transpose()?;
        Ok((connection, copy))
    };
    let (connection, copy) = open().map_err(StoreError::at("opening", &place))?;
    Ok(OpenFile {
        place,
        connection,
        is_written: true,
        copy,
    })
}

/// Makes the file for a copy next to the file, readable for its owner alone like the original.
fn empty_copy(path: &Path, version: i64) -> Result<(PathBuf, Connection), Reason> {
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
    let connection = Connection::open(&copy)?;
    fs::set_permissions(&copy, fs::metadata(path)?.permissions())?;
    // It is whole or worthless, and the process that writes it may be allowed to open no journal.
    connection.pragma_update(None, "journal_mode", "OFF")?;
    Ok((copy, connection))
}

/// Makes and undoes a change, which opens the file's journal. Only the first page of the file is read.
fn touch(connection: &Connection) -> Result<(), Reason> {
    let version = number(connection, "user_version")?;
    let nothing = format!("BEGIN IMMEDIATE; PRAGMA user_version = {version}; ROLLBACK");
    Ok(connection.execute_batch(&nothing)?)
}

/// Removes the empty journal that [`OpenFile::alone`] leaves. One that is not empty is somebody else's.
pub(crate) fn remove_journal(path: &Path) -> Result<(), Reason> {
    match journal(path) {
        None => touch(&connected(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?),
        Some(_) => Ok(()),
    }
}

/// Opens an existing file for reading, without writing to it.
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
        wait_for_commit(&path)?;
        if journal(&path).is_some() {
            // A reader who may not open the journal would read half a commit.
            let connection = connected(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            number(&connection, "schema_version")?;
        }
        connected(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)
    };
    let connection = open().map_err(StoreError::at("opening", &place))?;
    Ok(OpenFile {
        place,
        connection,
        is_written: false,
        copy: None,
    })
}

/// Waits until the file has no journal that is to be applied, unless both are this user's own: a journal that a
/// stranger has written can name any file, which SQLite then deletes.
fn wait_for_commit(path: &Path) -> Result<(), Reason> {
    let is_own = |facts: &Metadata| facts.uid() == rustix::process::geteuid().as_raw();
    let start = Instant::now();
    while journal(path)
        .is_some_and(|it| !is_own(&it) || !fs::metadata(path).is_ok_and(|it| is_own(&it)))
    {
        if start.elapsed() > BUSY_MAX {
            return Err(Reason::HalfWritten);
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Returns what is known of the journal of a commit that is in progress or was left unfinished.
fn journal(path: &Path) -> Option<Metadata> {
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    fs::symlink_metadata(journal).ok().filter(|it| it.len() > 0)
}

impl OpenFile {
    /// Keeps others out and opens the journal: from here on nothing is to be opened for writing it.
    pub fn alone(self) -> Result<Self, StoreError> {
        let take = || {
            self.connection
                .pragma_update(None, "locking_mode", "EXCLUSIVE")?;
            self.connection
                .pragma_update(None, "journal_mode", "TRUNCATE")?;
            touch(&self.connection)
        };
        take().map_err(StoreError::at("opening", &self.place))?;
        Ok(self)
    }

    /// Returns its store. An older schema is converted: in memory, or after a copy in a file that is written.
    pub fn checked(self) -> Checked {
        let failed = StoreError::at("opening", &self.place);
        let (connection, migration) =
            converted(self.connection, self.is_written, self.copy).map_err(failed)?;
        Ok((self.place, Box::new(Sqlite(connection)), migration))
    }
}

fn converted(
    mut connection: Connection,
    is_written: bool,
    copy: Option<(PathBuf, Connection)>,
) -> Result<(Connection, Option<Migration>), Reason> {
    let steps = STEPS.map(|step| step.sqlite);
    let known = steps.len() as i64;
    // The process may not be allowed to create temporary files.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    let version = verified(&connection, &steps)?;
    if is_written && connection.is_readonly("main")? {
        return Err(Reason::ReadOnly);
    }
    if version == known {
        return Ok((connection, None));
    }
    let copied = |copy: &mut Connection| {
        Backup::new(&connection, copy)?.run_to_completion(i32::MAX, Duration::ZERO, None)
    };
    let migration = match copy {
        Some((path, mut copy)) => {
            copied(&mut copy)?;
            Some(Migration {
                from: version,
                to: known,
                copy: path.display().to_string(),
            })
        }
        None if is_written => None,
        None => {
            let mut memory = Connection::open_in_memory()?;
            copied(&mut memory)?;
            connection = memory;
            None
        }
    };
    migrate(&mut connection, &steps)?;
    Ok((connection, migration))
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
    // A store has neither triggers nor views: those that somebody else put into a file do nothing.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
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
