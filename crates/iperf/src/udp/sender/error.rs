//! Why a stream of datagrams could not be sent.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;

use crate::wire::datagram::{PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, SHARED_CLOCK_BYTES_MIN};

/// Why a stream could not be sent.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The payload has no room for the headers, or does not fit a datagram.
    #[error(
        "a UDP payload of {payload_bytes} bytes cannot carry an iperf stream; choose {min} to {max}, \
         {clock_min} at least to tell of a clock that both ends have",
        min = PAYLOAD_BYTES_MIN,
        max = PAYLOAD_BYTES_MAX,
        clock_min = SHARED_CLOCK_BYTES_MIN
    )]
    Payload {
        /// The length asked for.
        payload_bytes: usize,
    },
    /// No socket.
    #[error(
        "cannot set up a UDP socket to {peer}; see whether there is a route, and the local address, \
         device and options asked for"
    )]
    Setup {
        /// The receiver.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The input could not be opened or read.
    #[error(
        "cannot read the payload to send to {peer}; see whether the file is there and readable"
    )]
    Input {
        /// The receiver.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// A send failed for good.
    #[error(
        "cannot send to {peer} after {datagrams_sent} datagrams; see the route, the MTU and what packet filters of this \
         host let out"
    )]
    Send {
        /// The receiver.
        peer: SocketAddr,
        /// Datagrams sent until then.
        datagrams_sent: u64,
        /// Time since the first send.
        seconds: f64,
        /// What the kernel said.
        source: io::Error,
    },
    /// The receiver has gone.
    #[error("{peer} closed its port after {datagrams_sent} datagrams; see why it ended")]
    Closed {
        /// The receiver.
        peer: SocketAddr,
        /// Datagrams sent until then.
        datagrams_sent: u64,
    },
    /// A receive failed for good.
    #[error("cannot receive the answer from {peer}; see whether the interface is still up")]
    Receive {
        /// The receiver.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// [`Signals::cancel`](nicpoll_traffic::Signals::cancel) was set.
    #[error("the UDP stream was told to stop")]
    Cancelled,
}
