//! Reads files that others may have made: stores, transcripts, results of other tools, study files.
//!
//! A process without rights does the reading, also for root. Only its answer comes back.

use nicpoll_sys::program::confined::{Confined, ConfinedError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// The answer of that process: a result, or the exit code and the text of a failure.
type ConfinedAnswer<T> = Result<T, (u8, String)>;

/// Opens something with the caller's rights, and reads it in a process without any.
pub fn confined<O, T: Serialize + DeserializeOwned>(
    open: impl FnOnce() -> Result<O, Failure>,
    read: impl FnOnce(O) -> Result<T, Failure>,
) -> Result<T, Failure> {
    confined_within(None, open, read)
}

/// As [`confined`], with a limit of CPU time.
pub fn confined_within<O, T: Serialize + DeserializeOwned>(
    cpu_seconds: Option<u64>,
    open: impl FnOnce() -> Result<O, Failure>,
    read: impl FnOnce(O) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let answered = |opened: Result<O, Failure>| {
        let answer: ConfinedAnswer<T> = opened
            .and_then(read)
            .map_err(|failure| (failure.code(), failure.to_string()));
        serde_json::to_vec(&answer).unwrap_or_default()
    };
    let bytes = Confined::start(cpu_seconds, open, answered)
        .map_err(ConfinedError::NotMade)
        .and_then(Confined::answer)?;
    let answer: ConfinedAnswer<T> = serde_json::from_slice(&bytes)?;
    answer.map_err(|(code, words)| Failure::of_code(code, words))
}
