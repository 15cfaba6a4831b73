//! What a command that runs until it is ended says of its whole run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunDocument<S, I, E> {
    /// Name and version of this layout.
    pub schema: String,
    /// What was asked for and how it is carried out.
    pub start: S,
    /// One for each interval.
    pub intervals: Vec<I>,
    /// What it came to.
    pub end: E,
}
