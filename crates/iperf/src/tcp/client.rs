//! TCP connections that this end opens: those of a client, and those of a server that connects back to one (-d
//! and -r).

use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::traffic::Direction;
use nicpoll_traffic::{Signals, SocketBuffer, sockets};
use rustix::net::{SocketFlags, SocketType, sockopt};

use super::connection::{Connection, set_options};
use super::reader::Incoming;
use super::sender::Outgoing;
use crate::config::{ClientConfig, StreamConfig, TCP_LENGTH_BYTES, receive_window};
use crate::records::{Observer, Total, type_of_service};
use crate::stream::{Error, ReadyStream, Streams, silence_max};
use crate::wire::{Amount, ClientHeader, Directions};

/// The stream's first bytes. A stream shorter than a header is sent as filler, which no server takes for a
/// header, unless the server must be told what to send.
fn header(config: &ClientConfig) -> Option<ClientHeader> {
    let stream = &config.stream;
    let is_short =
        matches!(stream.amount, Amount::Bytes(bytes) if bytes < ClientHeader::BYTES as u64);
    if !stream.has_header || (is_short && stream.directions == Directions::Forward) {
        return None;
    }
    let plain = ClientHeader::for_tcp(config.peer.port(), stream.amount);
    let mut header = stream.asked(plain, TCP_LENGTH_BYTES);
    if let Some(extension) = &mut header.extension {
        extension.rate_bps = stream.rate.map_or(0, |rate| rate.bits_of(8));
    }
    Some(header)
}

/// Sends one stream: the header, then writes until the time is up or everything is sent; then closes its
/// direction and waits for the server to close the other. Discards incoming data; to receive it, call
/// [`connect`].
///
/// # Errors
/// See [`Error`].
pub fn run_client(
    config: &ClientConfig,
    signals: &Signals,
    observer: &mut dyn Observer,
) -> Result<Total, Error> {
    let link = ServerConnection::connect(config, signals)?;
    link.outgoing(Direction::Forward)?.run(signals, observer)
}

/// Connects; returns the streams to run over the connection. A server asked to send only has the request when
/// this returns; in full duplex, the outgoing stream carries it.
///
/// # Errors
/// When the connection fails.
pub fn connect(config: &ClientConfig, signals: &Signals) -> Result<Streams, Error> {
    let link = ServerConnection::connect(config, signals)?;
    let mut streams = Streams::default();
    let direction = match config.stream.directions {
        Directions::Forward | Directions::Dual { .. } => Direction::Forward,
        Directions::Reverse => Direction::Reverse,
        Directions::FullDuplex => Direction::FullDuplex,
    };
    if direction == Direction::Reverse {
        link.ask()?;
    } else {
        streams.outgoing = Some(link.outgoing(direction)?.boxed());
    }
    if direction != Direction::Forward {
        streams.incoming = Some(link.incoming(direction)?.boxed());
    }
    Ok(streams)
}

/// A connection to a server.
struct ServerConnection<'a> {
    config: &'a ClientConfig,
    connection: Connection,
}

impl<'a> ServerConnection<'a> {
    /// Connects; the signals can end every wait.
    fn connect(config: &'a ClientConfig, signals: &Signals) -> Result<Self, Error> {
        let peer = config.peer;
        let refused = |source: io::Error| Error::Connect {
            what: format!(
                "cannot connect to {peer} over TCP; see that it listens and the address is right"
            ),
            source,
        };
        let (fd, buffers) = unconnected(config).map_err(Error::setup(peer))?;
        let begun = Instant::now();
        let socket = sockets::connect(fd, peer, config.connect_timeout, signals);
        let socket = socket.map_err(refused)?.ok_or(Error::Cancelled)?;
        let connection = Connection {
            socket: Arc::new(socket),
            peer,
            begun: Instant::now(),
            connecting: Some(begun.elapsed()),
            buffers: Some(buffers),
            stream: config.stream.clone(),
            type_of_service: type_of_service(&config.stream, None),
            ticket: None,
        };
        Ok(ServerConnection { config, connection })
    }

    /// Sends the request to a server that is to send.
    fn ask(&self) -> Result<(), Error> {
        let Some(header) = header(self.config) else {
            return Ok(());
        };
        let mut bytes = [0; ClientHeader::BYTES];
        header.write_to(&mut bytes);
        // The first bytes sent always fit the socket buffer.
        let mut socket = &*self.connection.socket;
        let written = socket.write_all(&bytes);
        written.map_err(Error::setup(self.connection.peer))
    }

    /// The stream to send.
    fn outgoing(&self, direction: Direction) -> Result<Outgoing, Error> {
        Ok(Outgoing {
            header: header(self.config),
            ..Outgoing::of(self.connection.clone(), direction)?
        })
    }

    /// The stream to receive.
    fn incoming(&self, direction: Direction) -> Result<Incoming, Error> {
        let mut connection = self.connection.clone();
        // A client's rate limits only what it sends.
        connection.stream.rate = None;
        Ok(Incoming {
            connected: connection.connected(direction, false)?,
            connection,
            silence_max: silence_max(self.config.stream.amount),
            bytes_received: 0,
        })
    }
}

/// A socket with all requested options; returns its send and receive buffers, too.
fn unconnected(config: &ClientConfig) -> io::Result<(OwnedFd, [SocketBuffer; 2])> {
    let StreamConfig {
        socket,
        directions,
        buffer_bytes,
        ..
    } = &config.stream;
    let fd = socket.open(SocketType::STREAM, SocketFlags::NONBLOCK, config.peer)?;
    // Before connecting: the buffers decide the window scale.
    let of = |sends: bool| buffer_bytes.filter(|_| sends);
    let is_sender = *directions != Directions::Reverse;
    let is_receiver = matches!(directions, Directions::Reverse | Directions::FullDuplex);
    let buffers = [
        sockets::send_buffer(&fd, of(is_sender))?,
        receive_window(&fd, of(is_receiver))?,
    ];
    set_options(&fd, &config.stream)?;
    if let Some(local) = config.bind {
        // The port may still be in TIME_WAIT from the last test.
        sockopt::set_socket_reuseaddr(&fd, true)?;
        rustix::net::bind(&fd, &local)?;
    }
    Ok((fd, buffers))
}

/// Waits between attempts to connect back. 2.1.8 starts to listen while its own stream starts, on a busy host
/// later. Few attempts, since a stranger can request them.
const LISTENER_WAITS_MS: [u64; 5] = [50, 100, 200, 400, 800];

/// Connects back to a client; retries for a while if it does not listen yet.
pub fn connect_back(config: &ClientConfig, signals: &Signals) -> Result<Outgoing, Error> {
    let mut waits = LISTENER_WAITS_MS.into_iter();
    loop {
        let tried = ServerConnection::connect(config, signals);
        let wait = match &tried {
            Err(Error::Connect { source, .. }) if source.kind() == ErrorKind::ConnectionRefused => {
                waits.next()
            }
            _ => None,
        };
        match wait {
            Some(wait_ms) => thread::sleep(Duration::from_millis(wait_ms)),
            None => return tried?.outgoing(Direction::Reverse),
        }
    }
}
