//! The end that connects: a client, and a server that connects back to one (-d and -r).

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
use crate::records::{Observer, Remarks, Total};
use crate::stream::Error;
use crate::stream::{Streams, silence_max};
use crate::wire::{Amount, ClientHeader, Directions};

/// The stream's first bytes. Less than a header is sent as filler, which no server takes for one, unless
/// the server has to know what to send itself.
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

/// Sends one stream: the header, then writes until the time is up or everything is sent; then closes
/// its direction and waits for the server to close the other. What flows in the other direction is
/// discarded: [`connect`] tells of it.
///
/// # Errors
/// See [`Error`].
pub fn run_client(
    config: &ClientConfig,
    signals: &Signals,
    observer: &mut dyn Observer,
) -> Result<Total, Error> {
    let link = Link::connect(config, signals)?;
    link.outgoing(Direction::Forward)?.run(signals, observer)
}

/// Connects; returns what is to be sent and received over the connection. A server that is to send
/// has been told when this returns, unless the client sends as well and so tells it first of all.
///
/// # Errors
/// When there is no connection.
pub fn connect(config: &ClientConfig, signals: &Signals) -> Result<Streams, Error> {
    let link = Link::connect(config, signals)?;
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
struct Link<'a> {
    config: &'a ClientConfig,
    connection: Connection,
}

impl<'a> Link<'a> {
    /// Connects without a wait that the signals could not end.
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
            remarks: Remarks::of(&config.stream, None),
            ticket: None,
        };
        Ok(Link { config, connection })
    }

    /// Tells a server that is to send what to send.
    fn ask(&self) -> Result<(), Error> {
        let Some(header) = header(self.config) else {
            return Ok(());
        };
        let mut bytes = [0; ClientHeader::BYTES];
        header.write_to(&mut bytes);
        // Nothing else has been sent: the socket buffer has room for all of it.
        let mut socket = &*self.connection.socket;
        let written = socket.write_all(&bytes);
        written.map_err(Error::setup(self.connection.peer))
    }

    /// What is to be sent.
    fn outgoing(&self, direction: Direction) -> Result<Outgoing, Error> {
        Ok(Outgoing {
            header: header(self.config),
            ..Outgoing::of(self.connection.clone(), direction)?
        })
    }

    /// What is to be received.
    fn incoming(&self, direction: Direction) -> Result<Incoming, Error> {
        let mut connection = self.connection.clone();
        // What limits a client is what it sends.
        connection.stream.rate = None;
        Ok(Incoming {
            connected: connection.connected(direction, false)?,
            connection,
            silence_max: silence_max(self.config.stream.amount),
            bytes_received: 0,
        })
    }
}

/// A socket with everything that was asked for, its send buffer and its receive buffer.
fn unconnected(config: &ClientConfig) -> io::Result<(OwnedFd, [SocketBuffer; 2])> {
    let StreamConfig {
        socket,
        directions,
        buffer_bytes,
        ..
    } = &config.stream;
    let fd = socket.open(SocketType::STREAM, SocketFlags::NONBLOCK, config.peer)?;
    // TCP has to know it before the first segment.
    let of = |sends: bool| buffer_bytes.filter(|_| sends);
    let is_sender = *directions != Directions::Reverse;
    let is_receiver = matches!(directions, Directions::Reverse | Directions::FullDuplex);
    let buffers = [
        sockets::send_buffer(&fd, of(is_sender))?,
        receive_window(&fd, of(is_receiver))?,
    ];
    set_options(&fd, &config.stream)?;
    if let Some(local) = config.bind {
        // A port that was asked for may still be in TIME_WAIT from the last test.
        sockopt::set_socket_reuseaddr(&fd, true)?;
        rustix::net::bind(&fd, &local)?;
    }
    Ok((fd, buffers))
}

/// Waits between attempts to connect back. 2.1.8 begins to listen while its own stream starts, and on a busy host
/// after it; few tries, since a stranger can ask for them.
const LISTENER_WAITS_MS: [u64; 5] = [50, 100, 200, 400, 800];

/// Connects back to a client, and tries again for a while when it does not listen yet.
pub fn connect_back(config: &ClientConfig, signals: &Signals) -> Result<Outgoing, Error> {
    let mut waits = LISTENER_WAITS_MS.into_iter();
    loop {
        let tried = Link::connect(config, signals);
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
