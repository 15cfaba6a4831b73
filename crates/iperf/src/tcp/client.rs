//! The end that connects: a client, and a server that connects back to one.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nicpoll_model::Rate;
use nicpoll_sys::socket;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, sockopt};

use crate::wire::{self, ClientHeader, Directions};
use nicpoll_traffic::sockets;
use nicpoll_traffic::{LOOK_EVERY, Signals};

use super::sender::{Outgoing, Plan, SendReport};
use super::{BUFFER_BYTES, Error, Incoming, Streams, View};
use crate::input::{Input, Source};
use crate::observer::{Connected, Observer};
use crate::pace::Amount;
use crate::reverse::{own_bounds, silence_max};
use crate::socket_options::SocketOptions;
use crate::text::Direction;

/// How long connecting may take unless told otherwise.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// What to send where, and how.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The server.
    pub peer: SocketAddr,
    /// Which way data flow. What is said of sending here holds for the server as well when it sends.
    pub directions: Directions,
    /// How much to send, the header included. Does not count when there is an `input`.
    pub amount: Amount,
    /// Payload that follows the header, to its end; the pattern when `None`, and when the server sends.
    pub input: Option<Input>,
    /// Bits a second to keep to; as fast as it goes when `None`.
    pub rate: Option<Rate>,
    /// Length of a write and of a read, 1 at least.
    pub write_bytes: usize,
    /// Whether a read waits until it is full while the stream is fast.
    pub waits_for_full_reads: bool,
    /// Send buffer to ask for, or receive buffer where data are received; `None` leaves it to the
    /// kernel, which grows it as needed.
    pub send_buffer_bytes: Option<usize>,
    /// How long to try to connect.
    pub connect_timeout: Duration,
    /// Length of the intervals to record; none when `None`.
    pub interval: Option<Duration>,
    /// Local address; port 0 lets the kernel choose.
    pub bind: Option<SocketAddr>,
    /// Options of the socket.
    pub options: SocketOptions,
    /// Whether to send small segments without delay (`TCP_NODELAY`).
    pub no_delay: bool,
    /// Largest segment to ask for (`TCP_MAXSEG`).
    pub max_segment_bytes: Option<u16>,
    /// Congestion control to ask for by name.
    pub congestion_control: Option<String>,
    /// Parallel streams that the header tells the server of.
    pub threads: u32,
    /// Whether the stream begins with a header; without, it is filler from the first byte, and only
    /// [`Directions::Forward`] is possible.
    pub has_header: bool,
}

impl ClientConfig {
    /// iperf's defaults: one stream, unpaced, in writes of 131072 bytes.
    pub fn new(peer: SocketAddr, amount: Amount) -> Self {
        ClientConfig {
            peer,
            directions: Directions::Forward,
            amount,
            input: None,
            rate: None,
            write_bytes: BUFFER_BYTES,
            waits_for_full_reads: false,
            send_buffer_bytes: None,
            connect_timeout: CONNECT_LIMIT,
            interval: None,
            bind: None,
            options: SocketOptions::default(),
            no_delay: false,
            max_segment_bytes: None,
            congestion_control: None,
            threads: 1,
            has_header: true,
        }
    }

    /// The stream's first bytes. Less than a header is sent as filler, which no server takes for one,
    /// unless the server has to know what to send itself.
    fn header(&self) -> Option<ClientHeader> {
        let is_short =
            matches!(self.amount, Amount::Bytes(bytes) if bytes < ClientHeader::BYTES as u64);
        if !self.has_header || (is_short && self.directions == Directions::Forward) {
            return None;
        }
        let amount = match self.amount {
            Amount::Time(duration) => wire::Amount::from_duration(duration),
            Amount::Bytes(bytes) => wire::Amount::Bytes(bytes.try_into().unwrap_or(u32::MAX)),
        };
        let mut header = ClientHeader::for_tcp(self.peer.port(), amount);
        header.threads = self.threads;
        if self.write_bytes != BUFFER_BYTES {
            header.buffer_bytes = self.write_bytes.try_into().unwrap_or(u32::MAX);
        }
        header.ask_for(self.directions);
        if let Some(extension) = &mut header.extension {
            extension.rate_bps = self.rate.map_or(0, |rate| rate.bits_of(8));
            extension.type_of_service = self.options.type_of_service.unwrap_or(0).into();
        }
        Some(header)
    }

    /// Opens the input, which is to be there before anybody is connected to.
    fn open_input(&self) -> Result<Option<Source>, Error> {
        let input = self.input.as_ref();
        let input = input.map(|input| Source::open(input, self.write_bytes));
        input.transpose().map_err(|source| Error::Input {
            peer: self.peer,
            source,
        })
    }
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
    let input = config.open_input()?;
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
    let input = config.open_input()?;
    let link = Link::connect(config, signals)?;
    let mut streams = Streams::default();
    match config.directions {
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
        let Some(header) = self.config.header() else {
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
        let (duration, bytes_max) = own_bounds(config.amount);
        Ok(Outgoing {
            socket: Arc::clone(&self.socket),
            connected: self.connected(direction, true)?,
            plan: Plan {
                duration,
                bytes_max,
                rate: config.rate,
                write_bytes: config.write_bytes,
                header: config.header(),
                interval: config.interval,
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
            read_bytes: config.write_bytes,
            rate: None,
            waits_for_full_reads: config.waits_for_full_reads,
            interval: config.interval,
            silence_max: silence_max(config.amount),
            header: None,
            bytes_received: 0,
            _ticket: None,
        })
    }

    fn connected(&self, direction: Direction, is_sender: bool) -> Result<Connected, Error> {
        let peer = self.config.peer;
        let view = View {
            direction,
            is_sender,
            asked_bytes: self.config.send_buffer_bytes,
            connecting: Some(self.connecting),
        };
        view.of(&self.socket, peer)
            .map_err(|source| Error::Setup { peer, source })
    }
}

/// A socket with everything that was asked for.
fn unconnected(config: &ClientConfig) -> io::Result<OwnedFd> {
    let options = &config.options;
    let fd = options.open(SocketType::STREAM, SocketFlags::NONBLOCK, config.peer)?;
    if config.directions != Directions::Reverse {
        sockets::send_buffer(&fd, config.send_buffer_bytes)?;
    }
    if matches!(
        config.directions,
        Directions::Reverse | Directions::FullDuplex
    ) {
        // TCP has to know it before the first segment.
        sockets::receive_buffer(&fd, config.send_buffer_bytes)?;
    }
    if config.no_delay {
        sockopt::set_tcp_nodelay(&fd, true)?;
    }
    if let Some(bytes) = config.max_segment_bytes {
        socket::set_max_segment(&fd, bytes)?;
    }
    if let Some(name) = &config.congestion_control {
        sockopt::set_tcp_congestion(&fd, name)?;
    }
    if let Some(local) = config.bind {
        // A port that was asked for may still be in TIME_WAIT from the last test.
        sockopt::set_socket_reuseaddr(&fd, true)?;
        rustix::net::bind(&fd, &local)?;
    }
    Ok(fd)
}
