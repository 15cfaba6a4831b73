//! Why a stream, or all of a test, came to nothing.

use std::io;
use std::net::SocketAddr;

use nicpoll_traffic::{Because, Cancelled};
use thiserror::Error;

/// How every message begins that is none of the original's.
pub const SPEAKER: &str = "nicpoll iperf: ";

/// Why a stream could not be sent or received.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// [`Signals::cancel`](nicpoll_traffic::Signals::cancel) was set, by somebody who needs no message.
    #[error("the stream was told to stop")]
    Cancelled,
    /// A port could not be had.
    #[error("{what}")]
    Bind {
        /// Which, and what to look at.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// No connection in time, or none possible.
    #[error("{what}")]
    Connect {
        /// To whom, and what to look at.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Something else that the kernel refused.
    #[error("{what}")]
    Io {
        /// What was tried, and what to look at.
        what: String,
        /// What the kernel said, and of which option.
        source: io::Error,
    },
    /// What the other end did or did not do, or what this end cannot do.
    #[error("{0}")]
    Because(String),
    /// The same in the original's words.
    #[error("{0}")]
    Told(String),
}

impl Error {
    /// The socket to or at `address` could not be made as it was asked for.
    pub(crate) fn setup(address: SocketAddr) -> impl Fn(io::Error) -> Error + Copy {
        move |source| Error::Io {
            what: format!(
                "cannot set up the socket for {address}; see whether there is a route, and the local address, \
                 device and options asked for are there and allowed"
            ),
            source,
        }
    }

    /// A thread that cannot be made.
    pub(crate) fn no_thread(error: io::Error) -> Self {
        Error::Because(format!(
            "no thread could be made for a stream ({error}); see the limit on processes"
        ))
    }

    /// The message to print; `None` where nobody needs one.
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
