//! A connection at either end: its options and its description.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nicpoll_model::traffic::{Direction, IperfTcpStart};
use nicpoll_sys::socket;
use nicpoll_traffic::{SocketBuffer, sockets};
use rustix::io::Errno;
use rustix::net::sockopt;

use crate::config::StreamConfig;
use crate::records::{Connected, window_bytes};
use crate::slots::Ticket;
use crate::stream::Error;

/// Sets the requested TCP options on an unconnected socket.
pub fn set_options(fd: impl AsFd, stream: &StreamConfig) -> io::Result<()> {
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

/// An open connection. A clone serves another of its streams.
#[derive(Clone, Debug)]
pub struct Connection {
    pub socket: Arc<TcpStream>,
    pub peer: SocketAddr,
    /// When it was opened or accepted.
    pub begun: Instant,
    /// How long connecting took, at the end that connects.
    pub connecting: Option<Duration>,
    /// Send and receive buffer before connecting, at the end that connects. These are the sizes to print: the
    /// kernel may let the buffers grow afterwards.
    pub buffers: Option<[SocketBuffer; 2]>,
    pub stream: StreamConfig,
    pub type_of_service: u8,
    /// Keeps the stream's slot at a server.
    pub ticket: Option<Ticket>,
}

impl Connection {
    /// Describes a stream of this connection.
    pub fn connected(&self, direction: Direction, is_sender: bool) -> Result<Connected, Error> {
        let look = || -> io::Result<Connected> {
            let info = socket::tcp_info(&self.socket)?;
            let asked = self.stream.buffer_bytes;
            let buffer = match self.buffers {
                Some([send, _]) if is_sender => send,
                Some([_, receive]) => receive,
                None if is_sender => sockets::described(asked, socket::send_buffer(&self.socket)?),
                None => sockets::described(asked, socket::receive_buffer(&self.socket)?),
            };
            Ok(Connected {
                local: self.socket.local_addr()?,
                peer: self.peer,
                direction,
                is_sender,
                buffer,
                tcp: Some(IperfTcpStart {
                    mss_bytes: info.send_segment_bytes,
                    congestion_window_bytes: window_bytes(&info),
                    round_trip_seconds: info.round_trip.as_secs_f64(),
                    connect_seconds: self.connecting.map(|time| time.as_secs_f64()),
                }),
                type_of_service: self.type_of_service,
            })
        };
        look().map_err(Error::setup(self.peer))
    }
}
