//! UDP streams in either direction.
//!
//! What must hold: one loop sends and one receives, whichever end they run at; a server sends no data
//! but to addresses that it was told of, and to others no more bytes than came from them.

mod accepted;
mod batch;
mod client;
mod datagram_server;
mod ids;
mod incoming;
mod listener;
mod nap;
mod receiver;
mod request;
mod reverse;
mod room;
mod sender;
mod server;
mod session;

pub use accepted::Accepted;
pub use client::{connect, run_client};
pub use datagram_server::DatagramServer;
pub use ids::ClientIds;
pub use incoming::Incoming;
pub use listener::Listener;
pub use reverse::{ConnectBack, SEND_TIME_MAX};
pub use sender::{Outgoing, SendError, SendReport};
pub use server::{End, ReceiveReport, Server};

pub use nicpoll_traffic::udp_server::{ServerConfig, ServerError};

/// Payload of a datagram, iperf's default over IPv4.
pub const PAYLOAD_BYTES_DEFAULT: usize = 1470;

/// The streams of one pair of addresses, and the one that a server sends over a socket of its own. Each
/// may run on a thread of its own.
#[derive(Debug, Default)]
pub struct Streams {
    /// What is to be received.
    pub incoming: Option<Incoming>,
    /// What is to be sent over the same socket.
    pub outgoing: Option<Outgoing>,
    /// What is to be sent over a socket of its own; a server's only.
    pub back: Option<ConnectBack>,
}
