//! The end that connects: a client, and a server that connects back to one (-d and -r).

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::traffic::Direction;
use nicpoll_traffic::{Signals, sockets};
use rustix::net::{SocketFlags, SocketType, sockopt};

use super::connection::{Connection, set_options};
use super::reader::Incoming;
use super::sender::Outgoing;
use crate::config::{ClientConfig, StreamConfig, TCP_LENGTH_BYTES};
use crate::records::{Observer, Remarks, Total};
use crate::stream::Error;
use crate::stream::{Source, Streams, silence_max};
use crate::wire::{Amount, ClientHeader, Directions, HeaderAck, Version, flags};

/// How long to wait for the server's version: what 2.0.10 to 2.0.13 wait at most.
const VERSION_LIMIT: Duration = Duration::from_millis(2500);

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
    if stream.asks_for_version {
        header.flags |= flags::PEER_DETECT | flags::VERSION2;
    }
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
    let input = Source::of(&config.stream, config.stream.length_bytes, config.peer)?;
    let mut link = Link::connect(config, signals)?;
    let outgoing = Outgoing {
        input,
        ..link.outgoing(Direction::Forward, signals)?
    };
    outgoing.run(signals, observer)
}

/// Connects; returns what is to be sent and received over the connection. A server that is to send
/// has been told when this returns, unless the client sends as well and so tells it first of all.
///
/// # Errors
/// When there is no connection, or no input.
pub fn connect(config: &ClientConfig, signals: &Signals) -> Result<Streams, Error> {
    let input = Source::of(&config.stream, config.stream.length_bytes, config.peer)?;
    let mut link = Link::connect(config, signals)?;
    let mut streams = Streams::default();
    let direction = match config.stream.directions {
        Directions::Forward | Directions::Dual { .. } => Direction::Forward,
        Directions::Reverse => Direction::Reverse,
        Directions::FullDuplex => Direction::FullDuplex,
    };
    if direction == Direction::Reverse {
        link.ask(signals)?;
    } else {
        let outgoing = Outgoing {
            input,
            ..link.outgoing(direction, signals)?
        };
        streams.outgoing = Some(outgoing.boxed());
    }
    if direction != Direction::Forward {
        streams.incoming = Some(link.incoming(direction)?.boxed());
    }
    Ok(streams)
}

/// A connection to a server, that may have to be asked for something before anything is sent.
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
        let fd = unconnected(config).map_err(Error::setup(peer))?;
        let begun = Instant::now();
        let socket = sockets::connect(fd, peer, config.connect_timeout, signals);
        let socket = socket.map_err(refused)?.ok_or(Error::Cancelled)?;
        let connection = Connection {
            socket: Arc::new(socket),
            peer,
            begun: Instant::now(),
            connecting: Some(begun.elapsed()),
            stream: config.stream.clone(),
            remarks: Remarks::of(&config.stream, None),
            ticket: None,
        };
        Ok(Link { config, connection })
    }

    /// Tells the server what is asked of it, and waits for its version where that is asked for (-X); returns how
    /// many bytes that took.
    fn ask(&mut self, signals: &Signals) -> Result<u64, Error> {
        let Some(header) = header(self.config) else {
            return Ok(0);
        };
        let mut bytes = [0; ClientHeader::BYTES_MAX];
        header.write_to(&mut bytes);
        let bytes = &bytes[..header.tcp_bytes()];
        // Nothing else has been sent: the socket buffer has room for all of it.
        let mut socket = &*self.connection.socket;
        socket
            .write_all(bytes)
            .map_err(Error::setup(self.connection.peer))?;
        if self.config.stream.asks_for_version {
            let version = self.version(signals)?;
            self.connection.remarks.peer_version = version;
        }
        Ok(bytes.len() as u64)
    }

    /// Waits for the server's version; `None` when it tells none, as those up to 2.0.9 do.
    fn version(&self, signals: &Signals) -> Result<Option<Version>, Error> {
        let broken = Error::setup(self.connection.peer);
        let mut socket = &*self.connection.socket;
        let begun = Instant::now();
        let mut bytes = [0; HeaderAck::BYTES];
        while begun.elapsed() < VERSION_LIMIT {
            if signals.is_cancelled() || signals.is_finishing() {
                return Err(Error::Cancelled);
            }
            match socket.peek(&mut bytes) {
                Ok(0) => return Ok(None),
                Ok(there) => {
                    if let Some(ack) = HeaderAck::parse(&bytes[..there]) {
                        socket.read_exact(&mut bytes[..there]).map_err(broken)?;
                        return Ok(Some(ack.version));
                    }
                    if there == bytes.len() {
                        // The server's data.
                        return Ok(None);
                    }
                }
                Err(error) if sockets::is_no_progress(&error) => {}
                Err(source) => return Err(broken(source)),
            }
        }
        Ok(None)
    }

    /// What is to be sent.
    fn outgoing(&mut self, direction: Direction, signals: &Signals) -> Result<Outgoing, Error> {
        let bytes_sent = match self.config.stream.asks_for_version {
            true => self.ask(signals)?,
            false => 0,
        };
        Ok(Outgoing {
            header: header(self.config).filter(|_| bytes_sent == 0),
            bytes_sent,
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

/// A socket with everything that was asked for.
fn unconnected(config: &ClientConfig) -> io::Result<OwnedFd> {
    let StreamConfig {
        socket,
        directions,
        buffer_bytes,
        ..
    } = &config.stream;
    let fd = socket.open(SocketType::STREAM, SocketFlags::NONBLOCK, config.peer)?;
    if *directions != Directions::Reverse {
        sockets::send_buffer(&fd, *buffer_bytes)?;
    }
    if matches!(directions, Directions::Reverse | Directions::FullDuplex) {
        // TCP has to know it before the first segment.
        sockets::receive_buffer(&fd, *buffer_bytes)?;
    }
    set_options(&fd, &config.stream)?;
    if let Some(local) = config.bind {
        // A port that was asked for may still be in TIME_WAIT from the last test.
        sockopt::set_socket_reuseaddr(&fd, true)?;
        rustix::net::bind(&fd, &local)?;
    }
    Ok(fd)
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
            None => return tried?.outgoing(Direction::Reverse, signals),
        }
    }
}
