//! Prints stream events in the lines of iperf 2.0 or 2.1, as comma-separated values, or as JSON.
//!
//! `runs.rs` opens the output that the command line asks for; `text.rs` and `json.rs` print; `lines.rs` formats
//! each line of text; `sums.rs` adds streams up.

#[cfg(test)]
mod golden;
mod json;
mod lines;
mod runs;
mod sums;
mod text;

pub use lines::{bind_failed, connect_failed};
pub use runs::{RunTotal, Runs, open};
