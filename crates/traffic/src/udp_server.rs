//! What every UDP server is before it serves: a bound socket, and ways to fail.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use thiserror::Error;

use crate::signals::LOOK_EVERY;
use crate::sockets::{self, RefusedSends, SocketBuffer};
use crate::workload::WorkloadError;

/// Where and how to receive.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// Address to receive at; port 0 lets the kernel choose.
    pub bind: SocketAddr,
    /// Receive buffer to ask for; `None` leaves it to the kernel.
    pub receive_buffer_bytes: Option<usize>,
    /// How long to wait for a datagram, the first and each further one.
    pub idle_timeout: Duration,
}

/// Why a server gave up.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The address is not to be had.
    #[error("cannot receive at {address} over UDP; see whether it is local and the port free")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The socket could not be made, or lacks an option.
    #[error(
        "cannot set up the socket for {address}; see whether the device and options asked for are there and allowed"
    )]
    Setup {
        /// The address asked for.
        address: SocketAddr,
        /// What the kernel said, and of which option.
        source: io::Error,
    },
    /// A receive failed for good.
    #[error("cannot receive at {address}; see whether the interface is still there")]
    Receive {
        /// The server's address.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// An answer could not be sent.
    #[error("cannot answer {peer}; see whether there is a route back")]
    Answer {
        /// The client.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// [`Signals::cancel`](crate::signals::Signals::cancel) was set.
    #[error("the UDP server was told to stop")]
    Cancelled,
}

impl From<ServerError> for WorkloadError {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Cancelled => WorkloadError::Cancelled,
            error => WorkloadError::failed(error),
        }
    }
}

/// A socket that queues datagrams.
#[derive(Debug)]
pub struct BoundUdp {
    /// The socket itself.
    pub socket: UdpSocket,
    /// The address bound to, with the port that was chosen.
    pub address: SocketAddr,
    /// Its receive buffer.
    pub receive_buffer: SocketBuffer,
    /// How long to wait for a datagram, the first and each further one.
    pub idle_timeout: Duration,
}

impl BoundUdp {
    /// Binds a socket; datagrams are queued from now on.
    pub fn bind(config: &ServerConfig) -> Result<Self, ServerError> {
        let address = config.bind;
        let socket =
            UdpSocket::bind(address).map_err(|source| ServerError::Bind { address, source })?;
        Self::set_up(socket, config).map_err(|source| ServerError::Setup { address, source })
    }

    /// Makes a server's of a socket that is bound already.
    pub fn set_up(socket: UdpSocket, config: &ServerConfig) -> io::Result<Self> {
        let receive_buffer = sockets::receive_buffer(&socket, config.receive_buffer_bytes)?;
        socket.set_write_timeout(Some(sockets::SEND_TIMEOUT))?;
        socket.set_read_timeout(Some(LOOK_EVERY))?;
        Ok(BoundUdp {
            address: socket.local_addr()?,
            socket,
            receive_buffer,
            idle_timeout: config.idle_timeout,
        })
    }

    /// Serves one peer from now on, and no other.
    pub fn connect(&self, peer: SocketAddr) -> Result<(), ServerError> {
        self.socket
            .connect(peer)
            .map_err(|source| ServerError::Answer { peer, source })
    }

    /// Sends to the peer connected to; `false` when the kernel refused for now, which is counted.
    pub fn answer(
        &self,
        peer: SocketAddr,
        bytes: &[u8],
        refused: &mut RefusedSends,
    ) -> Result<bool, ServerError> {
        match self.socket.send(bytes) {
            Ok(_) => Ok(true),
            Err(error) if refused.note(&error, 1) => Ok(false),
            Err(source) => Err(ServerError::Answer { peer, source }),
        }
    }

    /// The error of a receive that failed for good.
    pub fn receive_failed(&self, source: io::Error) -> ServerError {
        ServerError::Receive {
            address: self.address,
            source,
        }
    }
}
