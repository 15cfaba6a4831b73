//! Why a study, or a part of one, could not be carried out.

use std::io;

use nicpoll_observe::BpfError;
use nicpoll_stats::InvalidMargin;
use nicpoll_store::StoreError;
use nicpoll_switch::{ControlError, GuardError, JournalError, ResolveError, SetError, SwitchError};
use nicpoll_sys::netns::ThreadGone;
use thiserror::Error;

use crate::existing::ExistingError;
use crate::host::{HostFailure, ReceiveError};

/// Why something of a study failed.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The user or a signal asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The time that was given is over.
    #[error("the study's time is over")]
    OutOfTime,
    /// A privilege or a kernel feature is missing.
    #[error("{0}")]
    Missing(String),
    /// The machine has too few CPUs.
    #[error("two CPUs are needed, one for each end of the link; this process may use one")]
    OneCpu,
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
        source: Box<StudyError>,
    },
    /// A study that was begun elsewhere, or otherwise.
    #[error(
        "the study cannot go on here: {0}. Its trials and new ones could not be compared; begin a new study"
    )]
    Elsewhere(String),
    /// What is to be stored cannot be.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A host failed at what it was told to do.
    #[error(transparent)]
    Host(#[from] HostFailure),
    /// The kernel refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The kernel refused a netlink request.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A setting could not be changed or put back.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// A setting was refused or could not be made.
    #[error(transparent)]
    Set(#[from] SetError),
    /// A namespace cannot be entered.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// Interfaces of this machine cannot be a study's link.
    #[error(transparent)]
    Existing(#[from] ExistingError),
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The engine cannot receive at an interface.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// The kernel does not count.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// Nobody would put back what a killed process leaves.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// A thread inside a namespace is gone.
    #[error(transparent)]
    Thread(#[from] ThreadGone),
    /// The plan's margin does not fit a metric.
    #[error(transparent)]
    Margin(#[from] InvalidMargin),
}

impl StudyError {
    /// What an end of the traffic failed with, if that is what happened: a trial's failure, not the study's.
    pub fn of_traffic(&self) -> Option<&str> {
        match self {
            StudyError::Traffic(reason) => Some(reason),
            StudyError::Doing { source, .. } => source.of_traffic(),
            _ => None,
        }
    }

    /// Whether nothing failed but that time ran out.
    pub fn is_out_of_time(&self) -> bool {
        match self {
            StudyError::OutOfTime => true,
            StudyError::Doing { source, .. } => source.is_out_of_time(),
            _ => false,
        }
    }
}

/// Adds to an error what was being done.
pub trait Doing<T> {
    /// Says what, if it failed.
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T, StudyError>;
}

impl<T, E: Into<StudyError>> Doing<T> for Result<T, E> {
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T, StudyError> {
        self.map_err(|error| StudyError::Doing {
            doing: what().into(),
            source: Box::new(error.into()),
        })
    }
}
