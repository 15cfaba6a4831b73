//! Studies in one SQLite file, or on a team's PostgreSQL server: what was planned and on what, every trial as it
//! ended, and the results.
//!
//! A trial is on disk before the next one begins. A study is read back as the very document that `--json` printed: rows
//! hold the documents of `nicpoll_model` themselves. A file that is damaged, of another program or of a newer nicpoll is
//! never written to. Read `store` first; `database` says what it needs of `sqlite` and `postgres`.

mod database;
mod place;
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;
mod store;

pub use place::{BUSY_MAX, Migration, Place, Reason, StoreError};
pub use store::{Ended, Kept, OpenStore, Recording, Store, Stored, StoredPlace, Which};
