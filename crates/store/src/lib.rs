//! Studies in one SQLite file, or on a team's PostgreSQL server: what was planned and on what, every trial as it
//! ended, and what followed.
//!
//! What must hold: a trial is on disk before the next one begins; what is read back is the very document
//! that `--json` printed; a file that is damaged, of another program or of a newer nicpoll is never
//! written to. Rows hold the documents of `nicpoll_model` themselves; there are no other types for them.
#![forbid(unsafe_code)]

mod database;
mod document;
mod ended;
mod error;
mod place;
#[cfg(feature = "postgres")]
mod postgres;
mod recording;
mod schema;
mod sqlite;
mod store;

pub use document::Stored;
pub use ended::{Ended, StoredPlace};
pub use error::{Reason, StoreError};
pub use place::Place;
pub use recording::Recording;
pub use sqlite::BUSY_MAX;
pub use store::{Kept, NoSuchWord, Store, Which};
