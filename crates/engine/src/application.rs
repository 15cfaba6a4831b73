//! What runs on the engine until it is ended: whoever starts, shows and ends one application can do so with any.
//!
//! What must hold: nobody who shows what an application does asks which one it is.

use crate::engine::EngineEnded;
use crate::error::EngineError;

/// An application that runs.
pub trait EngineApplication {
    /// What was asked for and how it is carried out.
    type Start;
    /// What happened in an interval.
    type Interval;
    /// What it came to.
    type End;

    /// What was asked for and how it is carried out.
    fn facts(&self) -> &Self::Start;

    /// Whether it has done all that it was to do.
    fn is_over(&self) -> bool {
        false
    }

    /// What happened since the last call, or the start.
    ///
    /// # Errors
    /// When the counters cannot be had: the engine has ended by itself.
    fn interval(&mut self) -> Result<Self::Interval, EngineError>;

    /// Ends it, leaves the interfaces as they were, and says what it came to. `signal` is the one that asked for the end;
    /// `None` when none did.
    ///
    /// # Errors
    /// When the engine has ended by itself before, or something could not be put back.
    fn end(self, signal: Option<i32>) -> Result<Self::End, EngineError>;
}

impl From<EngineEnded> for EngineError {
    fn from(ended: EngineEnded) -> Self {
        EngineError::Thread {
            doing: String::from("asking the engine"),
            source: std::io::Error::other(ended),
        }
    }
}
