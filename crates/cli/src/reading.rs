//! Reading what others may have made: stores, transcripts, results of other tools, study files.
//!
//! It is read by a process that has no rights, whoever calls. Only its answer comes back.

use nicpoll_sys::program::confined::{Confined, ConfinedError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// What the process answers: a result, or the exit code and the words of a failure.
type Answer<T> = Result<T, (u8, String)>;

/// Opens something with all rights, and makes a result of it without any.
pub fn confined<O, T: Serialize + DeserializeOwned>(
    open: impl FnOnce() -> Result<O, Failure>,
    read: impl FnOnce(O) -> Result<T, Failure>,
) -> Result<T, Failure> {
    confined_within(None, open, read)
}

/// As [`confined`], within so much CPU time.
pub fn confined_within<O, T: Serialize + DeserializeOwned>(
    cpu_seconds: Option<u64>,
    open: impl FnOnce() -> Result<O, Failure>,
    read: impl FnOnce(O) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let answered = |opened: Result<O, Failure>| {
        let answer: Answer<T> = opened
            .and_then(read)
            .map_err(|failure| (failure.code(), failure.to_string()));
        serde_json::to_vec(&answer).unwrap_or_default()
    };
    let bytes = Confined::start(cpu_seconds, open, answered)
        .map_err(ConfinedError::NotMade)
        .and_then(Confined::answer)?;
    let answer: Answer<T> = serde_json::from_slice(&bytes)?;
    answer.map_err(|(code, words)| Failure::told(code, words))
}
