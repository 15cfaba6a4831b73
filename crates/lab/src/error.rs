//! Errors of hosts, links and the traffic between them, with the step in which one occurred.

pub use nicpoll_model::Refused;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// The study's time is over.
    #[error("the study's time is over")]
    OutOfTime,
    /// A privilege or a kernel feature is missing.
    #[error("{0}")]
    Missing(String),
    /// Exact CPU time is required and not available.
    #[error("CPU time cannot be accounted for exactly here: {0}")]
    NoExactCpu(String),
    /// A thread of this program panicked.
    #[error("the {0} thread panicked")]
    Panicked(&'static str),
    /// An end of the traffic failed.
    #[error("{0}")]
    Traffic(String),
    /// The machine does not behave as the measurement assumes.
    #[error("{0}")]
    Unexpected(String),
    /// A step failed.
    #[error("{doing}")]
    Doing {
        /// The step.
        doing: String,
        /// Its error.
        source: Box<LabError>,
    },
    /// A host could not fulfil a request.
    #[error(transparent)]
    Host(#[from] HostFailure),
    /// The kernel refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A setting could not be read, changed or restored.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// The engine cannot receive at an interface.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A file asks for something impossible.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The BPF programs that count could not be used.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// A thread inside a namespace is gone.
    #[error(transparent)]
    Thread(#[from] ThreadGone),
}

impl LabError {
    /// Fails once the user asked to stop.
    ///
    /// # Errors
    /// [`LabError::Cancelled`].
    pub fn unless(cancel: &AtomicBool) -> Result<(), LabError> {
        match cancel.load(Ordering::Relaxed) {
            true => Err(LabError::Cancelled),
            false => Ok(()),
        }
    }

    /// Returns the error with its causes.
    pub fn with_causes(&self) -> String {
        HostFailure::by(self).message
    }

    /// Returns the message if an end of the traffic failed: then the trial has failed, not the study.
    pub fn of_traffic(&self) -> Option<&str> {
        match self {
            LabError::Traffic(reason) => Some(reason),
            LabError::Doing { source, .. } => source.of_traffic(),
            _ => None,
        }
    }

    /// Returns why a host is lost, if that is the failure.
    pub fn of_lost_host(&self) -> Option<&str> {
        match self {
            LabError::Host(failure) if failure.is_lost => Some(&failure.message),
            LabError::Doing { source, .. } => source.of_lost_host(),
            _ => None,
        }
    }

    /// Makes it a failure of the traffic, unless a host is lost.
    pub(crate) fn into_traffic(self, doing: impl Into<String>) -> LabError {
        match self.of_lost_host() {
            Some(_) => self,
            None => LabError::Traffic(format!("{}: {}", doing.into(), HostFailure::of(self))),
        }
    }

    /// Returns whether a privilege or a kernel feature is missing.
    pub fn is_missing(&self) -> bool {
        match self {
            LabError::Missing(_) | LabError::NoExactCpu(_) | LabError::Bpf(_) => true,
            LabError::Engine(error) => matches!(error, EngineError::Privileges { .. }),
            LabError::Switch(error) => error.is_missing(),
            LabError::Host(failure) => failure.is_missing,
            LabError::Doing { source, .. } => source.is_missing(),
            _ => false,
        }
    }

    /// Returns whether the only failure is that time ran out.
    pub fn is_out_of_time(&self) -> bool {
        match self {
            LabError::OutOfTime => true,
            LabError::Doing { source, .. } => source.is_out_of_time(),
            _ => false,
        }
    }
}

/// Adds the step to an error.
pub trait Doing<T> {
    /// Names the step, if it failed.
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

/// A request that a host could not fulfil.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[error("{message}")]
pub struct HostFailure {
    /// What failed, and why.
    pub message: String,
    /// Whether the host itself is lost: its agent no longer answers.
    #[serde(skip)]
    pub is_lost: bool,
    /// Whether it lacks a privilege or a kernel feature.
    #[serde(default)]
    pub is_missing: bool,
}

impl HostFailure {
    /// Makes a failure of a message.
    pub fn new(message: impl Into<String>) -> Self {
        HostFailure {
            message: message.into(),
            is_lost: false,
            is_missing: false,
        }
    }

    /// Makes a failure of an error and its causes.
    pub fn of(error: impl std::error::Error + 'static) -> Self {
        Self::by(&error)
    }

    fn by(error: &(dyn std::error::Error + 'static)) -> Self {
        let causes = std::iter::successors(Some(error), |error| error.source());
        let causes: Vec<String> = causes.map(ToString::to_string).collect();
        HostFailure {
            is_missing: error.downcast_ref().is_some_and(LabError::is_missing),
            ..HostFailure::new(causes.join(": "))
        }
    }
}
