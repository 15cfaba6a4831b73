//! Results: stored studies and other tools' files.
//!
//! `read` finds one by its name, `compare` compares two, `hosts` one study on several hosts, `import` makes a study of transcripts, and `gate` turns verdicts
//! into the exit code of a command.

pub mod compare;
pub mod gate;
pub mod hosts;
pub mod import;
pub mod read;

#[cfg(test)]
mod verdict_tests;
