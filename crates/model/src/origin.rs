//! Which program made a document, and when: the head that documents share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which program made a document, by which command line, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
    /// When it began (RFC 3339, UTC).
    pub started_at: String,
}
