//! Stores studies in one SQLite file or on a team's PostgreSQL server: plan, machine, every trial as it ended, and
//! results.
//!
//! A trial is on disk before the next one begins. Rows hold `nicpoll_model`'s documents: a study is read back exactly
//! as `--json` printed it. A file that is damaged, of another program or of a newer nicpoll is never written to. Read
//! `store` first; `database` is the interface of `sqlite` and `postgres`.

mod database;
mod place;
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;
mod store;

pub use place::{BUSY_MAX, Migration, Reason, StoreError, StorePlace};
pub use store::{Ended, OpenStore, Recording, Store, Stored, StoredDocument, StoredPlace, Which};
