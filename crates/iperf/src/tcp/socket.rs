//! A TCP socket: its options, how a stream over it looks, and why one came to nothing.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use nicpoll_model::traffic::Direction;
use nicpoll_sys::socket;
use nicpoll_traffic::sockets;
use rustix::io::Errno;
use rustix::net::sockopt;
use thiserror::Error;

use crate::config::StreamConfig;
use crate::events::Failed;
use crate::records::{Connected, Remarks, TcpStart};
use crate::wire::HeaderError;

/// Sets what was asked of TCP on a socket that is not connected yet.
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

/// How a stream looks from here.
pub struct View {
    pub direction: Direction,
    pub is_sender: bool,
    /// Socket buffer that was asked for.
    pub asked_bytes: Option<usize>,
    /// How long connecting took, for the end that did.
    pub connecting: Option<Duration>,
    pub remarks: Remarks,
}

impl View {
    pub fn of(&self, socket: &TcpStream, peer: SocketAddr) -> io::Result<Connected> {
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

/// Why a stream could not be sent or received.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
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
    /// Client and server are on one host and would listen on one port.
    #[error(
        "the server at {server} is on this host and has port {port} itself; choose another port for \
         the way back with -L"
    )]
    PortOfServer {
        /// The server.
        server: SocketAddr,
        /// The port that both would have.
        port: u16,
    },
    /// A connection could not be taken.
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
    /// The client asks a server that only receives for a stream in the other direction.
    #[error("{peer} asks for traffic towards itself; run it without -d, -r, -R and --full-duplex")]
    OtherDirection {
        /// The client.
        peer: SocketAddr,
    },
    /// The client asks for one more stream than the server runs at a time.
    #[error("{peer} asks for a stream while the most are running; try again later")]
    Crowded {
        /// The client.
        peer: SocketAddr,
    },
    /// No connection in time, or none possible.
    #[error("cannot connect to {peer} over TCP; see that it listens and the address is right")]
    Connect {
        /// The other end.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// A socket option was refused.
    #[error(
        "cannot set up the socket for {peer}; see whether the local address, device and options \
         asked for are there and allowed"
    )]
    Setup {
        /// The other end, or the address to listen on.
        peer: SocketAddr,
        /// The kernel's error, with the option that it refused.
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
    /// The connection broke while it was sent to.
    #[error("the connection to {peer} broke after {bytes_sent} bytes; see why the other end ended")]
    Send {
        /// The receiver.
        peer: SocketAddr,
        /// Bytes sent until then.
        bytes_sent: u64,
        /// What the kernel said.
        source: io::Error,
    },
    /// The receiver stopped reading.
    #[error("{peer} has not taken a byte for 5 s after {bytes_sent}; see whether the link is up")]
    Stalled {
        /// The receiver.
        peer: SocketAddr,
        /// Bytes sent until then.
        bytes_sent: u64,
    },
    /// The connection broke while it was read.
    #[error(
        "the connection of {peer} broke after {bytes_received} bytes; see why the other end ended"
    )]
    Receive {
        /// The sender.
        peer: SocketAddr,
        /// Bytes received until then.
        bytes_received: u64,
        /// What the kernel said.
        source: io::Error,
    },
    /// The sender fell silent.
    #[error("{peer} fell silent after {bytes_received} bytes; see whether the link is up")]
    Silent {
        /// The sender.
        peer: SocketAddr,
        /// Bytes received until then.
        bytes_received: u64,
    },
    /// The sender brings next to nothing, and others wait for a stream.
    #[error(
        "{peer} sent {bytes_received} bytes in {seconds:.1} s while others waited for a stream; send 1 kB/s \
         at least"
    )]
    InTheWay {
        /// The sender.
        peer: SocketAddr,
        /// Bytes received until then.
        bytes_received: u64,
        /// Time since the stream began.
        seconds: f64,
    },
    /// [`Signals::cancel`](nicpoll_traffic::Signals::cancel) was set.
    #[error("the TCP stream was told to stop")]
    Cancelled,
}

impl Error {
    /// Whether the receiver of a stream reset the connection, or closed it with data unread, after some
    /// had been sent.
    pub(crate) fn is_reset(&self) -> bool {
        match self {
            Error::Send {
                bytes_sent, source, ..
            } => {
                let is_reset = matches!(
                    source.kind(),
                    io::ErrorKind::ConnectionReset
                        | io::ErrorKind::BrokenPipe
                        | io::ErrorKind::NotConnected
                );
                is_reset && *bytes_sent > 0
            }
            _ => false,
        }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        match error {
            Error::Cancelled => Failed::Cancelled,
            error => Failed::because(&error),
        }
    }
}
