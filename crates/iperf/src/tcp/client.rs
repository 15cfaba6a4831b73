//! The end that connects: a client, and a server that connects back to one.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, sockopt};

use nicpoll_traffic::sockets;
use nicpoll_traffic::{LOOK_EVERY, Signals};

use crate::wire::tcp::HeaderAck;
use crate::wire::{ClientHeader, Directions, Version, flags};
use nicpoll_model::iperf::Direction;

use super::sender::{Outgoing, Plan, SendReport};
use super::{BUFFER_BYTES, Error, Incoming, Streams, View, set_options};
use crate::config::{ClientConfig, StreamConfig};
use crate::input::Source;
use crate::observer::{Connected, Observer, Remarks};
use crate::pace::Amount;
use crate::reverse::{own_bounds, silence_max};

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
    let mut header = ClientHeader::for_tcp(config.peer.port(), stream.amount);
    header.threads = stream.streams;
    if stream.length_bytes != BUFFER_BYTES {
        header.buffer_bytes = stream.length_bytes.try_into().unwrap_or(u32::MAX);
    }
    header.ask_for(stream.directions);
    if stream.asks_for_version {
        header.flags |= flags::PEER_DETECT | flags::VERSION2;
    }
    if let Some(rate) = stream.pacing_bytes_per_second {
        header.pace(rate);
    }
    if let Some(extension) = &mut header.extension {
        extension.rate_bps = stream.rate.map_or(0, |rate| rate.bits_of(8));
        extension.type_of_service = stream.socket.type_of_service.unwrap_or(0).into();
    }
    Some(header)
}

/// Opens the input, which is to be there before anybody is connected to.
fn open_input(config: &ClientConfig) -> Result<Option<Source>, Error> {
    let input = config.stream.input.as_ref();
    let input = input.map(|input| Source::open(input, config.stream.length_bytes));
    input.transpose().map_err(|source| Error::Input {
        peer: config.peer,
        source,
    })
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
) -> Result<SendReport, Error> {
    let input = open_input(config)?;
    let link = Link::connect(config, signals)?;
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
/// [`Error::Input`], [`Error::Connect`], [`Error::Setup`], [`Error::Send`] and [`Error::Cancelled`].
pub fn connect(config: &ClientConfig, signals: &Signals) -> Result<Streams, Error> {
    let input = open_input(config)?;
    let link = Link::connect(config, signals)?;
    let mut streams = Streams::default();
    match config.stream.directions {
        Directions::Forward | Directions::Dual { .. } => {
            streams.outgoing = Some(Outgoing {
                input,
                ..link.outgoing(Direction::Forward, signals)?
            });
        }
        Directions::Reverse => {
            let (_, version) = link.ask(signals)?;
            let incoming = link.incoming(Direction::Reverse, version)?;
            streams.incoming = Some(incoming);
        }
        Directions::FullDuplex => {
            streams.outgoing = Some(Outgoing {
                input,
                ..link.outgoing(Direction::FullDuplex, signals)?
            });
            streams.incoming = Some(link.incoming(Direction::FullDuplex, None)?);
        }
    }
    Ok(streams)
}

/// A connection that was made.
pub(super) struct Link<'a> {
    config: &'a ClientConfig,
    socket: Arc<TcpStream>,
    begun: Instant,
    connecting: Duration,
}

impl<'a> Link<'a> {
    /// Connects without a wait that the signals could not end.
    pub(super) fn connect(config: &'a ClientConfig, signals: &Signals) -> Result<Self, Error> {
        let peer = config.peer;
        let refused = |source: io::Error| Error::Connect { peer, source };
        let setup = |source: io::Error| Error::Setup { peer, source };
        let fd = unconnected(config).map_err(setup)?;

        let begun = Instant::now();
        match rustix::net::connect(&fd, &peer) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(errno) => return Err(refused(errno.into())),
        }
        while !sockets::poll_once(&fd, PollFlags::OUT).map_err(refused)? {
            if signals.is_cancelled() || signals.is_finishing() {
                return Err(Error::Cancelled);
            }
            if begun.elapsed() >= config.connect_timeout {
                return Err(refused(Errno::TIMEDOUT.into()));
            }
        }
        sockopt::socket_error(&fd)
            .and_then(|outcome| outcome)
            .map_err(|errno| refused(errno.into()))?;

        let socket = TcpStream::from(fd);
        socket
            .set_nonblocking(false)
            .and_then(|()| socket.set_write_timeout(Some(LOOK_EVERY)))
            .and_then(|()| socket.set_read_timeout(Some(LOOK_EVERY)))
            .map_err(setup)?;
        Ok(Link {
            config,
            socket: Arc::new(socket),
            begun: Instant::now(),
            connecting: begun.elapsed(),
        })
    }

    /// Tells the server what is asked of it; returns how many bytes that took, and the server's version
    /// where that was asked for (-X).
    fn ask(&self, signals: &Signals) -> Result<(u64, Option<Version>), Error> {
        let Some(header) = header(self.config) else {
            return Ok((0, None));
        };
        let mut bytes = [0; ClientHeader::BYTES_MAX];
        header.write_to(&mut bytes);
        let bytes = &bytes[..header.tcp_bytes()];
        // Nothing else has been sent, so that there is room for all of it.
        let mut socket = &*self.socket;
        socket.write_all(bytes).map_err(|source| Error::Send {
            peer: self.config.peer,
            bytes_sent: 0,
            seconds: self.begun.elapsed().as_secs_f64(),
            source,
        })?;
        let version = match self.config.stream.asks_for_version {
            true => self.version(signals)?,
            false => None,
        };
        Ok((bytes.len() as u64, version))
    }

    /// Waits for the server's version; `None` when it tells none, as those up to 2.0.9 do.
    fn version(&self, signals: &Signals) -> Result<Option<Version>, Error> {
        let broken = |source| Error::Setup {
            peer: self.config.peer,
            source,
        };
        let begun = Instant::now();
        let mut bytes = [0; HeaderAck::BYTES];
        while begun.elapsed() < VERSION_LIMIT {
            if signals.is_cancelled() || signals.is_finishing() {
                return Err(Error::Cancelled);
            }
            match self.socket.peek(&mut bytes) {
                Ok(0) => return Ok(None),
                Ok(there) => {
                    if let Some(ack) = HeaderAck::parse(&bytes[..there]) {
                        let mut socket = &*self.socket;
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
    pub(super) fn outgoing(
        &self,
        direction: Direction,
        signals: &Signals,
    ) -> Result<Outgoing, Error> {
        let config = self.config;
        let (duration, bytes_max) = own_bounds(config.stream.amount);
        let (bytes_sent, version) = match config.stream.asks_for_version {
            true => self.ask(signals)?,
            false => (0, None),
        };
        Ok(Outgoing {
            socket: Arc::clone(&self.socket),
            connected: self.connected(direction, true, version)?,
            plan: Plan {
                duration,
                bytes_max,
                header: header(config).filter(|_| bytes_sent == 0),
                bytes_sent,
                stream: config.stream.clone(),
                may_be_reset: false,
            },
            input: None,
            is_read: direction == Direction::FullDuplex,
            _ticket: None,
        })
    }

    /// What is to be received.
    fn incoming(&self, direction: Direction, version: Option<Version>) -> Result<Incoming, Error> {
        let config = self.config;
        Ok(Incoming {
            socket: Arc::clone(&self.socket),
            connected: self.connected(direction, false, version)?,
            begun: self.begun,
            // What limits a client is what it sends.
            stream: StreamConfig {
                rate: None,
                ..config.stream.clone()
            },
            silence_max: silence_max(config.stream.amount),
            header: None,
            bytes_received: 0,
            ticket: None,
        })
    }

    fn connected(
        &self,
        direction: Direction,
        is_sender: bool,
        peer_version: Option<Version>,
    ) -> Result<Connected, Error> {
        let peer = self.config.peer;
        let view = View {
            direction,
            is_sender,
            asked_bytes: self.config.stream.buffer_bytes,
            connecting: Some(self.connecting),
            remarks: Remarks {
                peer_version,
                ..Remarks::of_client(&self.config.stream)
            },
        };
        view.of(&self.socket, peer)
            .map_err(|source| Error::Setup { peer, source })
    }
}

/// A socket with everything that was asked for.
fn unconnected(config: &ClientConfig) -> io::Result<OwnedFd> {
    let options = &config.stream.socket;
    let fd = options.open(SocketType::STREAM, SocketFlags::NONBLOCK, config.peer)?;
    if config.stream.directions != Directions::Reverse {
        sockets::send_buffer(&fd, config.stream.buffer_bytes)?;
    }
    if matches!(
        config.stream.directions,
        Directions::Reverse | Directions::FullDuplex
    ) {
        // TCP has to know it before the first segment.
        sockets::receive_buffer(&fd, config.stream.buffer_bytes)?;
    }
    set_options(&fd, &config.stream)?;
    if let Some(local) = config.bind {
        // A port that was asked for may still be in TIME_WAIT from the last test.
        sockopt::set_socket_reuseaddr(&fd, true)?;
        rustix::net::bind(&fd, &local)?;
    }
    Ok(fd)
}
