//! TCP streams in either direction.
//!
//! What must hold: one loop sends and one receives, whichever end they run at; a server sends nothing
//! but to an address that completed a handshake.

mod client;
mod error;
mod listener;
mod low_water;
mod place;
mod reader;
mod request;
mod reverse;
mod sender;
mod server;

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use nicpoll_sys::socket;
use rustix::io::Errno;
use rustix::net::sockopt;

pub use client::{connect, run_client};
pub use error::Error;
pub use listener::{Accepted, Listener};
pub use nicpoll_traffic::udp_server::ServerConfig;
pub use reader::{End, Incoming, ReceiveReport};
pub use reverse::{ConnectBack, ReverseListener, SEND_TIME_MAX};
pub(crate) use sender::CLOSE_LIMIT_MIN;
pub use sender::{Outgoing, SendReport};
pub use server::Server;

use nicpoll_traffic::sockets;

use nicpoll_model::iperf::Direction;

use crate::config::StreamConfig;
use crate::observer::{Connected, Remarks, TcpStart};

/// Length of a write and of a read, iperf's default.
pub const BUFFER_BYTES: usize = 131_072;

/// The streams of one connection, and the one that a server has to connect back for. Each may run on a
/// thread of its own.
#[derive(Debug, Default)]
pub struct Streams {
    /// What is to be received over the connection.
    pub incoming: Option<Incoming>,
    /// What is to be sent over it.
    pub outgoing: Option<Outgoing>,
    /// What is to be sent over a connection of its own; a server's only.
    pub back: Option<ConnectBack>,
}

/// Sets what was asked of TCP on a socket that is not connected yet.
fn set_options(fd: impl AsFd, stream: &StreamConfig) -> io::Result<()> {
    if stream.no_delay {
        socket::named("TCP_NODELAY", sockopt::set_tcp_nodelay(&fd, true))?;
    }
    if let Some(bytes) = stream.max_segment_bytes {
        socket::set_max_segment(&fd, bytes)?;
    }
    let Some(name) = &stream.congestion_control else {
        return Ok(());
    };
    match sockopt::set_tcp_congestion(&fd, name) {
        Err(Errno::NOENT) => Err(io::Error::other(format!(
            "this kernel has no congestion control '{name}'; 'sysctl net.ipv4.tcp_available_congestion_control' \
             lists those that it has"
        ))),
        set => socket::named("TCP_CONGESTION", set),
    }
}

/// How a stream looks from here.
struct View {
    direction: Direction,
    is_sender: bool,
    /// Socket buffer that was asked for.
    asked_bytes: Option<usize>,
    /// How long connecting took, for the end that did.
    connecting: Option<Duration>,
    remarks: Remarks,
}

impl View {
    fn of(&self, socket: &TcpStream, peer: SocketAddr) -> io::Result<Connected> {
        let info = socket::tcp_info(socket)?;
        let granted_bytes = if self.is_sender {
            socket::send_buffer(socket)?
        } else {
            socket::receive_buffer(socket)?
        };
        Ok(Connected {
            local: socket.local_addr()?,
            peer,
            direction: self.direction,
            is_sender: self.is_sender,
            buffer: sockets::described(self.asked_bytes, granted_bytes),
            tcp: Some(TcpStart {
                segment_bytes: info.send_segment_bytes,
                congestion_window_segments: info.congestion_window_segments,
                round_trip: info.round_trip,
                connecting: self.connecting,
            }),
            remarks: self.remarks,
        })
    }
}
