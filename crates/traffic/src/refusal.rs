//! Whom a server does not serve, and why.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use thiserror::Error;

/// Why a client is not served.
#[derive(Debug, Error)]
pub enum ClientRefusal {
    /// The server serves as many as it may.
    #[error("{in_use}: {peer} {rule}")]
    Full {
        /// Who came last; over TCP the kernel may not say.
        peer: Caller,
        /// What there is none left of.
        in_use: &'static str,
        /// What becomes of the client, and how there will be room.
        rule: &'static str,
    },
    /// One address has as many as it may have.
    #[error("{peer} is refused: it has {most} {what} already, and the rest is for others")]
    Share {
        /// Who came last.
        peer: Caller,
        /// As many as one address may have
        most: usize,
        /// of these.
        what: &'static str,
    },
    /// No descriptor.
    #[error("{peer} is refused: {source}; raise the limit on open files (ulimit -n)")]
    Descriptor {
        /// Who came last; over TCP the kernel does not say.
        peer: Caller,
        /// What the kernel said.
        source: io::Error,
    },
    /// No thread.
    #[error("{peer} is refused: no thread could be made ({source}); see the limit on processes")]
    Thread {
        /// Who came last.
        peer: Caller,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Who was refused, if that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller(pub Option<SocketAddr>);

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(peer) => peer.ip().to_canonical().fmt(f),
            None => f.write_str("a client"),
        }
    }
}

impl From<SocketAddr> for Caller {
    fn from(peer: SocketAddr) -> Self {
        Caller(Some(peer))
    }
}
