//! The database interface of a store: values, rows, transactions and the steps of the schema.
//!
//! All SQL except the schema's is the same for every database: parameters are numbered `$1`, `$2` in the order of
//! their first use, and statements use what SQLite and PostgreSQL share.

/// A value of a row, or of a parameter, in every database.
pub(crate) use rusqlite::types::Value;

use crate::place::{Migration, Reason, StoreError, StorePlace};

/// A row of a statement's result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SqlRow(pub Vec<Value>);

impl SqlRow {
    /// A text that may be null.
    pub fn text_or_null(&self, column: usize) -> Option<String> {
        match self.0.get(column) {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => None,
        }
    }

    /// A text.
    pub fn text(&self, column: usize) -> Result<String, Reason> {
        self.text_or_null(column).ok_or_else(|| odd(column))
    }

    /// A whole number.
    pub fn integer(&self, column: usize) -> Result<i64, Reason> {
        match self.0.get(column) {
            Some(Value::Integer(number)) => Ok(*number),
            _ => Err(odd(column)),
        }
    }

    /// A count.
    pub fn count(&self, column: usize) -> Result<u32, Reason> {
        u32::try_from(self.integer(column)?).map_err(|_| odd(column))
    }

    /// A number.
    pub fn real(&self, column: usize) -> Result<f64, Reason> {
        match self.0.get(column) {
            Some(Value::Real(number)) => Ok(*number),
            _ => Err(odd(column)),
        }
    }
}

fn odd(column: usize) -> Reason {
    Reason::Damaged(format!(
        "column {} of a row holds no such value",
        column + 1
    ))
}

/// A database that holds studies.
pub(crate) trait Database: Send {
    /// Runs a statement.
    fn run(&self, sql: &str, values: &[Value]) -> Result<Vec<SqlRow>, Reason>;

    /// Returns the statement that begins a writing transaction.
    fn begin(&self) -> &'static str;

    /// Locks a study for this connection until it closes. Returns false if another connection has it.
    fn hold(&self, study: i64) -> Result<bool, Reason>;

    /// Returns the studies that connections have locked; `None` if the database does not know, and the study's
    /// process must be checked.
    fn held(&self) -> Result<Option<Vec<i64>>, Reason>;
}

/// A store that was opened: where it is, and the conversion of its schema, if any.
pub(crate) type Checked = Result<(StorePlace, Box<dyn Database>, Option<Migration>), StoreError>;

/// Does all of `work` or nothing.
pub(crate) fn transact<T>(
    database: &dyn Database,
    work: impl FnOnce() -> Result<T, Reason>,
) -> Result<T, Reason> {
    database.run(database.begin(), &[])?;
    let done = work().and_then(|done| {
        database.run("COMMIT", &[])?;
        Ok(done)
    });
    // Fails if the error has already ended the transaction.
    done.inspect_err(|_| drop(database.run("ROLLBACK", &[])))
}

/// One step of the schema, in each database's SQL. Both make the same tables and columns.
pub(crate) struct SchemaStep {
    pub sqlite: &'static str,
    #[cfg(feature = "postgres")]
    pub postgres: &'static str,
}

/// The steps from each version of the schema to the next. A store's version is the number of its steps; released
/// steps never change.
pub(crate) const STEPS: [SchemaStep; 2] = [
    SchemaStep {
        sqlite: include_str!("schema/1.sql"),
        #[cfg(feature = "postgres")]
        postgres: include_str!("schema/1.postgres.sql"),
    },
    SchemaStep {
        sqlite: include_str!("schema/2.sql"),
        #[cfg(feature = "postgres")]
        postgres: include_str!("schema/2.postgres.sql"),
    },
];
