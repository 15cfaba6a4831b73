//! PostgreSQL, for the studies of a team: the same tables in a schema of their own, `nicpoll`.
//!
//! A commit is on the server's disk before it returns. An advisory lock gives a study to one connection; the server
//! releases it when the connection ends, so it is known that a study's program was killed, on any machine. Nothing is
//! sent over a network unencrypted unless the URL asks for it.

use std::cell::RefCell;
use std::env;
use std::net::IpAddr;
use std::time::Duration;

use postgres::config::{Host, SslMode};
use postgres::error::SqlState;
use postgres::types::{ToSql, Type};
use postgres::{Client, Config, NoTls};

use crate::database::{Checked, Database, STEPS, SqlRow, Value, transact};
use crate::place::{BUSY_MAX, Migration, Reason, StoreError, StorePlace, has_password};
use crate::sqlite::{APPLICATION, Sqlite};

/// The version of the schema that this program writes.
const KNOWN: i64 = STEPS.len() as i64;

/// Timeout of a silent server.
const SILENT_MAX: Duration = Duration::from_secs(10);

/// Session settings, whatever the server's own are.
const SESSION: &str =
    "SET search_path TO nicpoll; SET synchronous_commit TO on; SET statement_timeout TO '30s'";

/// A connection to a server.
pub(crate) struct Postgres(RefCell<Client>);

/// A server's store whose content has not been read.
pub(crate) struct OpenServer {
    place: StorePlace,
    server: Postgres,
    is_written: bool,
}

/// Opens a server's store. Unless it `is_written`, the server itself refuses writes.
pub(crate) fn opened(url: String, is_written: bool) -> Result<OpenServer, StoreError> {
    let open = || -> Result<_, Reason> {
        let server = connect(&url)?;
        if !is_written {
            server.batch("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")?;
        }
        Ok(server)
    };
    let server = open();
    let place = StorePlace::Server(url);
    Ok(OpenServer {
        server: server.map_err(StoreError::at("opening", &place))?,
        place,
        is_written,
    })
}

impl OpenServer {
    /// Returns its store. One that is open for writing gets missing tables, and its older ones are copied and
    /// converted; another one of an older schema is copied into memory and converted there.
    pub fn checked(self) -> Checked {
        let OpenServer {
            place,
            server,
            is_written,
        } = self;
        if is_written {
            let migration = server
                .current()
                .map_err(StoreError::at("opening", &place))?;
            return Ok((place, Box::new(server), migration));
        }
        // No other program converts it in between.
        let older = transact(&server, || {
            server.batch("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
            let rows = |sql: &str| server.run(sql, &[]);
            Ok(match server.version()? {
                None => None,
                Some(KNOWN) => Some(None),
                Some(found) => Some(Some(Sqlite::in_memory(found, rows)?)),
            })
        });
        match older.map_err(StoreError::at("opening", &place))? {
            None => Err(StoreError::Nothing(place)),
            Some(None) => Ok((place, Box::new(server), None)),
            Some(Some(memory)) => Ok((place, Box::new(Older { memory, server }), None)),
        }
    }
}

/// A server's store of an older schema, read into memory.
struct Older {
    memory: Sqlite,
    server: Postgres,
}

impl Database for Older {
    fn run(&self, sql: &str, values: &[Value]) -> Result<Vec<SqlRow>, Reason> {
        self.memory.run(sql, values)
    }

    fn begin(&self) -> &'static str {
        self.memory.begin()
    }

    fn hold(&self, _: i64) -> Result<bool, Reason> {
        Err(Reason::ReadOnly)
    }

    fn held(&self) -> Result<Option<Vec<i64>>, Reason> {
        self.server.held()
    }
}

fn connect(url: &str) -> Result<Postgres, Reason> {
    if has_password(url) {
        return Err(Reason::Refused(
            "a password in a URL can be read in the list of processes, and would be stored with each study: \
             set PGPASSWORD instead",
        ));
    }
    let mut config: Config = url.parse()?;
    require_no_tls(&config)?;
    config.application_name("nicpoll");
    config.connect_timeout(SILENT_MAX);
    config.tcp_user_timeout(SILENT_MAX);
    if let Ok(password) = env::var("PGPASSWORD") {
        config.password(password);
    }
    let mut client = config.connect(NoTls)?;
    client.batch_execute(SESSION)?;
    client.batch_execute(&format!("SET lock_timeout TO {}", BUSY_MAX.as_millis()))?;
    Ok(Postgres(RefCell::new(client)))
}

/// This program has no TLS: a connection to another machine must be asked for unencrypted.
fn require_no_tls(config: &Config) -> Result<(), Reason> {
    let is_local = |host: &Host| match host {
        Host::Tcp(name) => {
            let address = name.parse::<IpAddr>();
            name == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
        Host::Unix(_) => true,
    };
    let is_all_local = config.get_hosts().iter().all(is_local)
        && config.get_hostaddrs().iter().all(IpAddr::is_loopback);
    match config.get_ssl_mode() {
        SslMode::Disable => Ok(()),
        SslMode::Prefer if is_all_local => Ok(()),
        SslMode::Prefer => Err(Reason::Refused(
            "nicpoll speaks no TLS, and this server is on another machine: reach it through 'ssh -L' on \
             localhost, or add sslmode=disable to the URL, and everybody on the way can read what is stored",
        )),
        _ => Err(Reason::Refused(
            "the URL asks for TLS, which nicpoll does not speak: reach the server through 'ssh -L' on \
             localhost, without sslmode in the URL",
        )),
    }
}

impl Postgres {
    /// Returns the version of the tables, which this program knows; `None` without tables.
    fn version(&self) -> Result<Option<i64>, Reason> {
        let sql = "SELECT count(*) FROM information_schema.tables \
                   WHERE table_schema = 'nicpoll' AND table_name IN ('version', 'study')";
        let found = match self.run(sql, &[])?[0].integer(0)? {
            0 => return Ok(None),
            2 => self.run("SELECT version FROM version", &[])?,
            _ => return Err(Reason::Foreign),
        };
        match found.first().ok_or(Reason::Foreign)?.integer(0)? {
            found if (1..=KNOWN).contains(&found) => Ok(Some(found)),
            found => Err(Reason::Newer(found, KNOWN)),
        }
    }

    /// Makes the tables, or copies and converts older ones.
    fn current(&self) -> Result<Option<Migration>, Reason> {
        if self.version()? == Some(KNOWN) {
            return Ok(None);
        }
        transact(self, || {
            // Two programs that start at once make one set of tables.
            self.run(
                "SELECT 1 FROM pg_advisory_xact_lock($1)",
                &[APPLICATION.into()],
            )?;
            let found = self.version()?;
            let migration = match found {
                None => {
                    self.batch("CREATE SCHEMA nicpoll")?;
                    self.batch("CREATE TABLE version (version BIGINT NOT NULL); INSERT INTO version VALUES (0)")?;
                    None
                }
                Some(KNOWN) => None,
                Some(from) => Some(self.copy(from)?),
            };
            for step in STEPS.iter().skip(found.unwrap_or(0) as usize) {
                self.batch(step.postgres)?;
            }
            self.run("UPDATE version SET version = $1", &[KNOWN.into()])?;
            Ok(migration)
        })
    }

    /// Copies the tables within the schema.
    fn copy(&self, from: i64) -> Result<Migration, Reason> {
        let copies = ["study", "trial"].map(|table| (table, format!("{table}_schema_{from}")));
        for (table, copy) in &copies {
            self.batch(&format!("CREATE TABLE {copy} AS TABLE {table}"))?;
        }
        let names = copies.map(|(_, copy)| format!("nicpoll.{copy}"));
        Ok(Migration {
            from,
            to: KNOWN,
            copy: names.join(" and "),
        })
    }

    fn batch(&self, sql: &str) -> Result<(), Reason> {
        Ok(self.0.borrow_mut().batch_execute(sql)?)
    }

    /// Returns the key of a study's lock; a server's locks are shared by all programs.
    fn key(study: i64) -> i64 {
        (APPLICATION << 32) | study
    }
}

impl Database for Postgres {
    fn run(&self, sql: &str, values: &[Value]) -> Result<Vec<SqlRow>, Reason> {
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(parameter).collect();
        let rows = self.0.borrow_mut().query(sql, &values)?;
        rows.iter().map(row).collect()
    }

    fn begin(&self) -> &'static str {
        "BEGIN"
    }

    fn hold(&self, study: i64) -> Result<bool, Reason> {
        let sql = "SELECT CAST(pg_try_advisory_lock($1) AS TEXT)";
        let rows = self.run(sql, &[Self::key(study).into()])?;
        Ok(rows[0].text(0)? == "true")
    }

    fn held(&self) -> Result<Option<Vec<i64>>, Reason> {
        let sql = "SELECT CAST(objid AS BIGINT) FROM pg_locks JOIN pg_database ON pg_database.oid = database \
                   WHERE locktype = 'advisory' AND objsubid = 1 AND datname = current_database() \
                   AND CAST(classid AS BIGINT) = $1";
        let rows = self.run(sql, &[APPLICATION.into()])?;
        let held: Result<_, Reason> = rows.iter().map(|row| row.integer(0)).collect();
        held.map(Some)
    }
}

fn row(row: &postgres::Row) -> Result<SqlRow, Reason> {
    let values = (0..row.len()).map(|column| {
        Ok(match *row.columns()[column].type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(column)?.into(),
            Type::INT4 => row.try_get::<_, Option<i32>>(column)?.into(),
            Type::FLOAT8 => row.try_get::<_, Option<f64>>(column)?.into(),
            Type::TEXT => row.try_get::<_, Option<String>>(column)?.into(),
            _ => Value::Null,
        })
    });
    Ok(SqlRow(values.collect::<Result<_, Reason>>()?))
}

fn parameter(value: &Value) -> &(dyn ToSql + Sync) {
    match value {
        // Only texts may be null, and there are no blobs.
        Value::Null | Value::Blob(_) => &None::<&str>,
        Value::Integer(number) => number,
        Value::Real(number) => number,
        Value::Text(text) => text,
    }
}

impl From<postgres::Error> for Reason {
    fn from(error: postgres::Error) -> Self {
        let Some(said) = error.as_db_error() else {
            let source = std::error::Error::source(&error);
            let source = source.map_or(String::new(), |source| format!(": {source}"));
            return Reason::Database(format!("{error}{source}"));
        };
        match *said.code() {
            SqlState::DISK_FULL => Reason::Full,
            SqlState::READ_ONLY_SQL_TRANSACTION => Reason::ReadOnly,
            SqlState::LOCK_NOT_AVAILABLE => Reason::Locked,
            _ => Reason::Database(format!("the server says: {}", said.message())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_goes_to_another_machine_in_the_clear_unasked() {
        let refused = |url: &str| {
            let config: Config = url.parse().unwrap();
            require_no_tls(&config)
                .err()
                .map(|reason| reason.to_string())
        };
        for url in [
            "postgres://ann@%2Frun%2Fpostgresql/net",
            "postgres:///net?host=/run/postgresql",
            "postgres://localhost/net",
            "postgres://127.0.0.1:5433/net",
            "postgres://[::1]/net",
            "postgres://db.example/net?sslmode=disable",
        ] {
            assert_eq!(refused(url), None, "{url}");
        }
        let words = |url: &str| refused(url).unwrap_or_default();
        assert!(words("postgres://db.example/net").contains("add sslmode=disable"));
        for url in [
            "postgres://db.example/net?sslmode=require",
            "postgres://localhost/net?sslmode=require",
        ] {
            assert!(words(url).starts_with("the URL asks for TLS"), "{url}");
        }
    }
}
