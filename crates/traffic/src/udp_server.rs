//! The bound socket of a UDP server.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use crate::signals::LOOK_EVERY;
use crate::sockets::{self, RefusedSends, SocketBuffer};
use crate::workload::Because;

/// Where and how to receive.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// Address to receive at; port 0 lets the kernel choose.
    pub bind: SocketAddr,
    /// Receive buffer to ask for; `None` for the kernel's choice.
    pub receive_buffer_bytes: Option<usize>,
    /// How long to wait for the first datagram, and for each further one.
    pub idle_timeout: Duration,
}

/// A socket that queues datagrams.
#[derive(Debug)]
pub struct BoundUdp {
    /// The socket itself.
    pub socket: UdpSocket,
    /// The address bound to, with the actual port.
    pub address: SocketAddr,
    /// Its receive buffer.
    pub receive_buffer: SocketBuffer,
    /// How long to wait for the first datagram, and for each further one.
    pub idle_timeout: Duration,
}

impl BoundUdp {
    /// Binds a socket; the kernel queues datagrams from now on.
    pub fn bind(config: &ServerConfig) -> Result<Self, Because> {
        let bound = UdpSocket::bind(config.bind);
        let bound = bound.and_then(|socket| Self::set_up(socket, config));
        bound.map_err(|source| Because {
            what: format!(
                "cannot receive at {} over UDP; see whether it is local and the port free",
                config.bind
            ),
            source,
        })
    }

    /// Sets up a socket that is already bound.
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

    /// Serves only this peer from now on.
    pub fn connect(&self, peer: SocketAddr) -> Result<(), Because> {
        let connected = self.socket.connect(peer);
        connected.map_err(|source| no_answer(peer, source))
    }

    /// Sends to the connected peer; returns `false` when the kernel refused for the moment, which is counted.
    pub fn answer(
        &self,
        peer: SocketAddr,
        bytes: &[u8],
        refused: &mut RefusedSends,
    ) -> Result<bool, Because> {
        match self.socket.send(bytes) {
            Ok(_) => Ok(true),
            Err(error) if refused.note(&error, 1) => Ok(false),
            Err(source) => Err(no_answer(peer, source)),
        }
    }

    /// The error of a permanently failed receive.
    pub fn receive_failed(&self, source: io::Error) -> Because {
        let address = self.address;
        let what = format!("cannot receive at {address}; see whether the interface is still there");
        Because { what, source }
    }
}

fn no_answer(peer: SocketAddr, source: io::Error) -> Because {
    let what = format!("cannot answer {peer}; see whether there is a route back");
    Because { what, source }
}
