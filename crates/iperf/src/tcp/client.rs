//! The end that connects: a client, and a server that connects back to one.

use std::io::{self, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nicpoll_sys::socket;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, sockopt};

use nicpoll_traffic::sockets;
use nicpoll_traffic::{LOOK_EVERY, Signals};

use crate::wire::{ClientHeader, Directions};
use nicpoll_model::iperf::Direction;

use super::sender::{Outgoing, Plan, SendReport};
use super::{BUFFER_BYTES, Error, Incoming, Streams, View};
use crate::config::{ClientConfig, StreamConfig};
use crate::input::Source;
use crate::observer::{Connected, Observer};
use crate::pace::Amount;
use crate::reverse::{own_bounds, silence_max};

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
        ..link.outgoing(Direction::Forward)?
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
                ..link.outgoing(Direction::Forward)?
            });
        }
        Directions::Reverse => {
            link.ask()?;
            streams.incoming = Some(link.incoming(Direction::Reverse)?);
        }
        Directions::FullDuplex => {
            streams.outgoing = Some(Outgoing {
                input,
                ..link.outgoing(Direction::FullDuplex)?
            });
            streams.incoming = Some(link.incoming(Direction::FullDuplex)?);
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

    /// Tells a server that is to send what is asked of it.
    fn ask(&self) -> Result<(), Error> {
        let Some(header) = header(self.config) else {
            return Ok(());
        };
        let mut bytes = [0; ClientHeader::BYTES];
        header.write_to(&mut bytes);
        // Nothing else has been sent, so that there is room for all of it.
        let mut socket = &*self.socket;
        socket.write_all(&bytes).map_err(|source| Error::Send {
            peer: self.config.peer,
            bytes_sent: 0,
            seconds: self.begun.elapsed().as_secs_f64(),
            source,
        })
    }

    /// What is to be sent.
    pub(super) fn outgoing(&self, direction: Direction) -> Result<Outgoing, Error> {
        let config = self.config;
        let (duration, bytes_max) = own_bounds(config.stream.amount);
        Ok(Outgoing {
            socket: Arc::clone(&self.socket),
            connected: self.connected(direction, true)?,
            plan: Plan {
                duration,
                bytes_max,
                header: header(config),
                stream: config.stream.clone(),
                may_be_reset: false,
            },
            input: None,
            is_read: direction == Direction::FullDuplex,
            _ticket: None,
        })
    }

    /// What is to be received.
    fn incoming(&self, direction: Direction) -> Result<Incoming, Error> {
        let config = self.config;
        Ok(Incoming {
            socket: Arc::clone(&self.socket),
            connected: self.connected(direction, false)?,
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

    fn connected(&self, direction: Direction, is_sender: bool) -> Result<Connected, Error> {
        let peer = self.config.peer;
        let view = View {
            direction,
            is_sender,
            asked_bytes: self.config.stream.buffer_bytes,
            connecting: Some(self.connecting),
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
    if config.stream.no_delay {
        sockopt::set_tcp_nodelay(&fd, true)?;
    }
    if let Some(bytes) = config.stream.max_segment_bytes {
        socket::set_max_segment(&fd, bytes)?;
    }
    if let Some(name) = &config.stream.congestion_control {
        sockopt::set_tcp_congestion(&fd, name)?;
    }
    if let Some(local) = config.bind {
        // A port that was asked for may still be in TIME_WAIT from the last test.
        sockopt::set_socket_reuseaddr(&fd, true)?;
        rustix::net::bind(&fd, &local)?;
    }
    Ok(fd)
}
