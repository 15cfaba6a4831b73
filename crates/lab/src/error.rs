//! Errors of hosts, links and the traffic between them, and the note of what was being done when one occurred.

pub use nicpoll_model::Refused;
use std::io;

use nicpoll_engine::EngineError;
use nicpoll_observe::BpfError;
use nicpoll_switch::SwitchError;
use nicpoll_sys::netns::ThreadGone;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why something in a lab failed.
#[derive(Debug, Error)]
pub enum LabError {
    /// The user or a signal asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The time that was given is over.
    #[error("the study's time is over")]
    OutOfTime,
    /// A privilege or a kernel feature is missing.
    #[error("{0}")]
    Missing(String),
    /// CPU time is not accounted for exactly, where nothing else will do.
    #[error("CPU time cannot be accounted for exactly here: {0}")]
    NoExactCpu(String),
    /// A thread of this program panicked.
    #[error("the {0} thread panicked")]
    Panicked(&'static str),
    /// An end of the traffic failed.
    #[error("{0}")]
    Traffic(String),
    /// The machine does not do what the measurement rests on.
    #[error("{0}")]
    Unexpected(String),
    /// What was being done when something failed.
    #[error("{doing}")]
    Doing {
        /// What was being done.
        doing: String,
        /// What failed.
        source: Box<LabError>,
    },
    /// A host failed at what it was told to do.
    #[error(transparent)]
    Host(#[from] HostFailure),
    /// The kernel refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A setting could not be read, changed or put back.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// The engine cannot receive at an interface.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// What a file asks for cannot be made.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The kernel does not count.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// A thread inside a namespace is gone.
    #[error(transparent)]
    Thread(#[from] ThreadGone),
}

impl LabError {
    /// The error with what caused it.
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }

    /// What an end of the traffic failed with, if that is what happened: a trial's failure, not the study's.
    pub fn of_traffic(&self) -> Option<&str> {
        match self {
            LabError::Traffic(reason) => Some(reason),
            LabError::Doing { source, .. } => source.of_traffic(),
            _ => None,
        }
    }

    /// Whether nothing failed but that time ran out.
    pub fn is_out_of_time(&self) -> bool {
        match self {
            LabError::OutOfTime => true,
            LabError::Doing { source, .. } => source.is_out_of_time(),
            _ => false,
        }
    }
}

/// Adds to an error what was being done.
pub trait Doing<T> {
    /// Says what, if it failed.
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T, LabError>;
}

impl<T, E: Into<LabError>> Doing<T> for Result<T, E> {
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T, LabError> {
        self.map_err(|error| LabError::Doing {
            doing: what().into(),
            source: Box::new(error.into()),
        })
    }
}

/// What a host could not do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[error("{message}")]
pub struct HostFailure {
    /// What failed, and why.
    pub message: String,
}

impl HostFailure {
    /// A failure in words.
    pub fn new(message: impl Into<String>) -> Self {
        HostFailure {
            message: message.into(),
        }
    }

    /// An error with its causes.
    pub fn of(error: &dyn std::error::Error) -> Self {
        let causes = std::iter::successors(Some(error), |error| error.source());
        let causes: Vec<String> = causes.map(ToString::to_string).collect();
        HostFailure::new(causes.join(": "))
    }
}
