//! Why the engine cannot drive an interface, or send by it.

use std::error::Error as StdError;
use std::io;

use rustix::io::Errno;
use thiserror::Error;

use crate::knobs::KnobError;

/// The engine's thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the engine's thread has ended")]
pub struct EngineEnded;

/// What went wrong with the kernel's side of receiving.
pub type SetupError = Box<dyn StdError + Send + Sync>;

/// Why the engine cannot drive an interface, or send by it: what failed, why, and what to do.
#[derive(Debug, Error)]
pub enum EngineError {
    /// What was asked for is wrong: a setting is out of range, or a file to replay is missing or is no capture.
    #[error("{0}")]
    Usage(String),
    /// It cannot be.
    #[error("{0}")]
    Failed(String),
    /// The interface cannot be had by this device. Another device may have it.
    #[error("{0}")]
    Device(String),
    /// The driver of this interface runs no XDP program.
    #[error(
        "the driver of interface '{0}' runs no XDP programs, and one in the kernel's generic code would forward no \
         faster than the kernel does"
    )]
    NoDriverProgram(String),
    /// The privileges are not there.
    #[error("{doing} takes {capabilities}; run nicpoll as root")]
    Privileges {
        /// What was being done.
        doing: &'static str,
        /// What it takes.
        capabilities: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel's side of receiving could not be changed, or put back.
    #[error("{what}: {source}{remedy}")]
    Setup {
        /// What could not be.
        what: String,
        /// Why not.
        source: SetupError,
        /// What to do about it, after a semicolon; may be empty.
        remedy: &'static str,
    },
}

impl EngineError {
    /// Something failed with an error of the kernel's.
    pub(crate) fn io(doing: &str, source: &io::Error) -> Self {
        EngineError::Failed(format!("{doing}: {source}"))
    }

    /// A device was refused. `takes` says what was being done, and the capabilities for it; `remedies` are what to do
    /// about some errors, after a semicolon.
    pub(crate) fn device(
        device: String,
        (doing, capabilities): (&'static str, &'static str),
        remedies: &[(Errno, &str)],
        source: io::Error,
    ) -> Self {
        let errno = Errno::from_io_error(&source);
        if errno == Some(Errno::PERM) {
            return EngineError::Privileges {
                doing,
                capabilities,
                source,
            };
        }
        let remedy = remedies.iter().find(|(known, _)| Some(*known) == errno);
        let remedy = remedy.map_or("", |(_, remedy)| *remedy);
        EngineError::Device(format!("{device}: {source}{remedy}"))
    }

    /// Whether another device may have the interface all the same.
    pub(crate) fn is_of_device(&self) -> bool {
        matches!(
            self,
            EngineError::Device(_) | EngineError::Privileges { .. }
        )
    }
}

impl From<EngineEnded> for EngineError {
    fn from(ended: EngineEnded) -> Self {
        EngineError::Failed(format!("asking the engine: {ended}"))
    }
}

impl From<KnobError> for EngineError {
    fn from(error: KnobError) -> Self {
        EngineError::Usage(error.to_string())
    }
}
