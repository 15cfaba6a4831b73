//! Why a stream or a whole test failed.

use std::io;
use std::net::SocketAddr;

use nicpoll_traffic::{Because, Cancelled};
use thiserror::Error;

/// Prefix of every message that is not the original's.
pub const SPEAKER: &str = "nicpoll iperf: ";

/// Why a stream could not be sent or received.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// [`Signals::cancel`](nicpoll_traffic::Signals::cancel) was set; needs no message.
    #[error("the stream was told to stop")]
    Cancelled,
    /// Cannot bind the port.
    #[error("{what}")]
    Bind {
        /// Which port, and what to check.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// No connection was possible, or none in time.
    #[error("{what}")]
    Connect {
        /// To which address, and what to check.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// Another refusal by the kernel.
    #[error("{what}")]
    Io {
        /// What was tried, and what to check.
        what: String,
        /// The kernel's error, with the option it concerns.
        source: io::Error,
    },
    /// The other end's behaviour, or something this end cannot do.
    #[error("{0}")]
    Because(String),
    /// The same, in the original's words.
    #[error("{0}")]
    Told(String),
}

impl Error {
    /// Failure to set up a socket to or at `address`.
    pub(crate) fn setup(address: SocketAddr) -> impl Fn(io::Error) -> Error + Copy {
        move |source| Error::Io {
            what: format!(
                "cannot set up the socket for {address}; see whether there is a route, and whether the local \
                 address, device and options exist and are permitted"
            ),
            source,
        }
    }

    /// Failure to create a thread.
    pub(crate) fn no_thread(error: io::Error) -> Self {
        Error::Because(format!(
            "no thread could be made for a stream ({error}); see the limit on processes"
        ))
    }

    /// The message to print; `None` if cancelled.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Error::Cancelled => None,
            Error::Told(text) => Some(text.clone()),
            Error::Because(text) => Some(format!("{SPEAKER}{text}")),
            Error::Bind { what, source }
            | Error::Connect { what, source }
            | Error::Io { what, source } => Some(format!("{SPEAKER}{what} ({source})")),
        }
    }
}

impl From<Because> for Error {
    fn from(Because { what, source }: Because) -> Self {
        Error::Io { what, source }
    }
}

impl From<Cancelled> for Error {
    fn from(_: Cancelled) -> Self {
        Error::Cancelled
    }
}
