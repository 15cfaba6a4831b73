//! The end that connects: a client, and a server that connects back to one (-d and -r).

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::traffic::Direction;
use nicpoll_traffic::{LOOK_EVERY, Signals, sockets};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, sockopt};

use super::reader::Incoming;
use super::sender::{Outgoing, Plan, SendReport};
use super::socket::{Error, View, set_options};
use crate::config::{ClientConfig, StreamConfig, TCP_LENGTH_BYTES};
use crate::records::{Connected, Observer, Remarks};
use crate::slots::Ticket;
use crate::stream::{self, Back, Source, Stream, Test, bounds, silence_max};
use crate::wire::{Amount, ClientHeader, Directions, HeaderAck, Version, flags};

/// The streams of one connection, and the one that a server has to connect back for.
pub type Streams = stream::Streams<Incoming, Outgoing, ConnectBack>;

impl From<Streams> for Test {
    fn from(streams: Streams) -> Self {
        Test {
            incoming: streams.incoming.map(Stream::boxed),
            outgoing: streams.outgoing.map(Stream::boxed),
            back: streams.back.map(|back| Back {
                is_at_once: back.is_at_once,
                length_bytes: back.plan.stream.length_bytes,
                rate: None,
                connect: Box::new(move |signals| {
                    let outgoing = back.connect(signals)?;
                    Ok((outgoing.connected, outgoing.boxed()))
                }),
            }),
        }
    }
}

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
    if stream.length_bytes != TCP_LENGTH_BYTES {
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
pub struct Link<'a> {
    config: &'a ClientConfig,
    socket: Arc<TcpStream>,
    begun: Instant,
    connecting: Duration,
}

impl<'a> Link<'a> {
    /// Connects without a wait that the signals could not end.
    pub fn connect(config: &'a ClientConfig, signals: &Signals) -> Result<Self, Error> {
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
        // Nothing else has been sent: the socket buffer has room for all of it.
        let mut socket = &*self.socket;
        socket.write_all(bytes).map_err(|source| Error::Send {
            peer: self.config.peer,
            bytes_sent: 0,
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
    pub fn outgoing(&self, direction: Direction, signals: &Signals) -> Result<Outgoing, Error> {
        let config = self.config;
        let (duration, bytes_max) = bounds(config.stream.amount, Duration::MAX);
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

/// Waits between attempts to connect back. 2.1.8 begins to listen while its own stream starts, and on a busy host
/// after it; few tries, since a stranger can ask for them.
const LISTENER_WAITS_MS: [u64; 5] = [50, 100, 200, 400, 800];

/// A stream that waits to be sent to a client over a connection of its own (-d and -r).
#[derive(Debug)]
pub struct ConnectBack {
    pub(super) config: ClientConfig,
    pub(super) plan: Plan,
    /// Whether it is to begin at once rather than after the client's own stream.
    pub is_at_once: bool,
    pub(super) ticket: Ticket,
}

impl ConnectBack {
    /// Connects, and tries again for a while when the client does not listen yet.
    ///
    /// # Errors
    /// [`Error::Connect`], [`Error::Setup`] and [`Error::Cancelled`].
    pub fn connect(self, signals: &Signals) -> Result<Outgoing, Error> {
        let mut waits = LISTENER_WAITS_MS.into_iter();
        let link = loop {
            let tried = Link::connect(&self.config, signals);
            let wait = match &tried {
                Err(Error::Connect { source, .. })
                    if source.kind() == ErrorKind::ConnectionRefused =>
                {
                    waits.next()
                }
                _ => None,
            };
            match wait {
                Some(wait_ms) => thread::sleep(Duration::from_millis(wait_ms)),
                None => break tried?,
            }
        };
        Ok(Outgoing {
            plan: Plan {
                may_be_reset: true,
                ..self.plan
            },
            _ticket: Some(self.ticket),
            ..link.outgoing(Direction::Reverse, signals)?
        })
    }
}
