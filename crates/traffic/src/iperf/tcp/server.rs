//! The receiving end of a TCP stream.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use nicpoll_wire::iperf::{ClientHeader, HeaderError};
use thiserror::Error;

use super::listener::{Listener, ListenerConfig};
use crate::signals::Signals;
use crate::sockets::SocketBuffer;

/// Where and how to listen.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// Address to listen on; port 0 lets the kernel choose.
    pub bind: SocketAddr,
    /// Receive buffer to ask for; `None` leaves it to the kernel, which grows it as needed.
    pub receive_buffer_bytes: Option<usize>,
    /// How long to wait for the client, and then for each further byte.
    pub idle_timeout: Duration,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The client closed its direction: everything it sent has been read.
    Closed,
    /// [`Signals::sender_done`] was set and nothing was queued.
    SenderDone,
}

/// What the server counted.
#[derive(Clone, Copy, Debug)]
pub struct ServerReport {
    /// The client.
    pub peer: SocketAddr,
    /// What the client asked for; `None` when it sent no header.
    pub header: Option<ClientHeader>,
    /// Every byte that was read, the header included.
    pub bytes_received: u64,
    /// From the acceptance of the connection to its end.
    pub seconds: f64,
    /// How the stream ended.
    pub end: End,
    /// The receive buffer.
    pub receive_buffer: SocketBuffer,
}

/// Why a stream could not be received.
#[derive(Debug, Error)]
pub enum ServerError {
    /// No listening socket.
    #[error(
        "cannot listen on {address} over TCP; see whether the address is local and the port free"
    )]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The connection could not be taken.
    #[error("cannot take a connection on {address}; see the kernel's limit on open files")]
    Accept {
        /// The address listened on.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// Nobody connected.
    #[error("no client connected to {address} within {seconds} s; start it sooner or wait longer")]
    NoClient {
        /// The address listened on.
        address: SocketAddr,
        /// How long was waited.
        seconds: f64,
    },
    /// The stream does not begin like one of iperf 2.
    #[error("the stream of {peer} has no good header")]
    Header {
        /// The client.
        peer: SocketAddr,
        /// What is wrong with it.
        source: HeaderError,
    },
    /// The client asks for a stream in the other direction.
    #[error("{peer} asks for traffic towards itself; run it without -d, -r, -R and --full-duplex")]
    OtherDirection {
        /// The client.
        peer: SocketAddr,
    },
    /// The connection broke.
    #[error(
        "the connection of {peer} broke after {bytes_received} bytes; see why the client ended"
    )]
    Receive {
        /// The client.
        peer: SocketAddr,
        /// Bytes received until then.
        bytes_received: u64,
        /// Time since the connection was accepted.
        seconds: f64,
        /// What the kernel said.
        source: io::Error,
    },
    /// The client fell silent.
    #[error("{peer} fell silent after {bytes_received} bytes; see whether the link is up")]
    Silent {
        /// The client.
        peer: SocketAddr,
        /// Bytes received until then.
        bytes_received: u64,
        /// Time since the connection was accepted.
        seconds: f64,
    },
    /// [`Signals::cancel`] was set.
    #[error("the TCP server was told to stop")]
    Cancelled,
}

/// A listening server, for one stream.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    idle_timeout: Duration,
}

impl Server {
    /// Begins to listen; clients may connect from now on.
    ///
    /// # Errors
    /// [`ServerError::Bind`].
    pub fn bind(config: &ServerConfig) -> Result<Self, ServerError> {
        Ok(Server {
            listener: Listener::bind(&ListenerConfig::new(*config))?,
            idle_timeout: config.idle_timeout,
        })
    }

    /// The address listened on, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// Takes one connection and reads it to its end.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn run(self, signals: &Signals) -> Result<ServerReport, ServerError> {
        let begun = Instant::now();
        match self.listener.accept(signals, self.idle_timeout)? {
            Some(accepted) => accepted.run(signals, &mut ()),
            None => Err(ServerError::NoClient {
                address: self.local_addr(),
                seconds: begun.elapsed().as_secs_f64(),
            }),
        }
    }
}
