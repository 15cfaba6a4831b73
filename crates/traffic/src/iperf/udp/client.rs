//! The end that asks for a test.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use nicpoll_sys::socket;
use nicpoll_wire::iperf::datagram::{PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN};
use nicpoll_wire::iperf::{self, ClientHeader, Dialect, Directions, upper_flags};
use rustix::net::{SocketFlags, SocketType};

use super::incoming::Incoming;
use super::receiver::Manner;
use super::sender::{FIN_EVERY, Outgoing, Plan, SendError, SendReport};
use super::{PAYLOAD_BYTES_DEFAULT, Streams};
use crate::iperf::observer::{Connected, Observer};
use crate::iperf::pace::{Amount, Rate};
use crate::iperf::reverse::own_bounds;
use crate::iperf::socket_options::SocketOptions;
use crate::iperf::text::Direction;
use crate::signals::Signals;
use crate::sockets;
use crate::udp_server::{BoundUdp, ServerConfig};

/// What 2.1.8 grants a server that sends for a time beyond that time,
const REVERSE_GRACE: Duration = Duration::from_secs(2);
/// and the longest silence in any case.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// What to send where, and how.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The server.
    pub peer: SocketAddr,
    /// Which way data flow. What is said of sending here holds for the server as well when it sends.
    pub directions: Directions,
    /// UDP payload of each datagram, 20 to 65507 bytes.
    pub payload_bytes: usize,
    /// How much to send. The last datagram carries what is left of a number of bytes, but never less
    /// than the least payload.
    pub amount: Amount,
    /// Rate to keep to; as fast as it goes when `None` or 0.
    pub rate: Option<Rate>,
    /// Datagrams that one system call may hand to the kernel; 64 at most are. More than one is a train
    /// (`UDP_SEGMENT`), which passes the sender's stack once. A stream with a rate sends one a call
    /// while that keeps up.
    pub datagrams_per_call: usize,
    /// Send buffer to ask for, and receive buffer where data are received; `None` leaves it to the
    /// kernel.
    pub send_buffer_bytes: Option<usize>,
    /// Length of the intervals to record; none when `None`.
    pub interval: Option<Duration>,
    /// Local address; port 0 lets the kernel choose.
    pub bind: Option<SocketAddr>,
    /// Options of the socket.
    pub options: SocketOptions,
    /// Parallel streams that the header tells the server of.
    pub threads: u32,
    /// Whether datagrams carry the client header; without, zeros are at its place, which no server
    /// takes for one.
    pub has_header: bool,
    /// The version to speak as. Servers of 2.0.9 and older understand [`Dialect::V2_0_2`] only. Later
    /// ones understand [`Dialect::V2_1`], but those of 2.0.x count its first datagram as lost. Only
    /// [`Directions::Forward`] is possible with another than that.
    pub dialect: Dialect,
}

impl ClientConfig {
    /// One stream, as fast as it goes with one datagram a system call.
    pub fn new(peer: SocketAddr, payload_bytes: usize, amount: Amount) -> Self {
        ClientConfig {
            peer,
            directions: Directions::Forward,
            payload_bytes,
            amount,
            rate: None,
            datagrams_per_call: 1,
            send_buffer_bytes: None,
            interval: None,
            bind: None,
            options: SocketOptions::default(),
            threads: 1,
            has_header: true,
            dialect: Dialect::V2_1,
        }
    }

    fn header(&self) -> ClientHeader {
        let amount = match self.amount {
            Amount::Time(duration) => iperf::Amount::from_duration(duration),
            Amount::Bytes(bytes) => iperf::Amount::Bytes(bytes.try_into().unwrap_or(u32::MAX)),
        };
        let (rate, rate_flags) = match self.rate {
            Some(Rate::BitsPerSecond(rate)) => (rate, 0),
            // It knows of bits only.
            Some(Rate::PacketsPerSecond(rate)) if self.dialect == Dialect::V2_0_2 => {
                (rate.saturating_mul(8 * self.payload_bytes as u64), 0)
            }
            Some(Rate::PacketsPerSecond(rate)) => (rate, upper_flags::RATE_IN_PACKETS),
            None => (0, 0),
        };
        let mut header = match self.dialect {
            Dialect::V2_0_2 => ClientHeader::for_udp_v2_0_5(self.peer.port(), amount, rate),
            _ => ClientHeader::for_udp(self.peer.port(), amount, rate),
        };
        header.threads = self.threads;
        if self.payload_bytes != PAYLOAD_BYTES_DEFAULT {
            header.buffer_bytes = self.payload_bytes.try_into().unwrap_or(u32::MAX);
        }
        header.ask_for(self.directions);
        if let Some(extension) = &mut header.extension {
            extension.upper_flags |= rate_flags;
            extension.type_of_service = self.options.type_of_service.unwrap_or(0).into();
        }
        header
    }

    /// How long the test takes, if that was asked for.
    fn duration(&self) -> Option<Duration> {
        match self.amount {
            Amount::Time(duration) => Some(duration),
            Amount::Bytes(_) => None,
        }
    }

    /// How long a server that was asked to send may be silent.
    fn silence_max(&self) -> Duration {
        let granted = self.duration().unwrap_or(SILENCE_MAX);
        granted.saturating_add(REVERSE_GRACE).min(SILENCE_MAX)
    }

    fn payload(&self) -> Vec<u8> {
        let mut payload = vec![0; self.payload_bytes];
        self.dialect.prepare_payload(&mut payload, &self.header());
        if !self.has_header {
            let offset = self.dialect.client_header_offset();
            let place = payload.iter_mut().skip(offset);
            place.take(ClientHeader::BYTES).for_each(|byte| *byte = 0);
        }
        payload
    }
}

/// Sends datagrams until the time is up or everything is sent, then ends the stream as 2.1.8 does:
/// a FIN, and another after each 10 ms without an answer, 201 at most. With a server that is known to
/// be of 2.0.x there are ten, 250 ms apart. What flows in the other direction is left to [`connect`].
///
/// # Errors
/// See [`SendError`]. A server that never answers is no error.
pub fn run_client(
    config: &ClientConfig,
    signals: &Signals,
    observer: &mut dyn Observer,
) -> Result<SendReport, SendError> {
    let socket = own_socket(config)?;
    outgoing(config, socket, Direction::Forward)?.run(signals, observer)
}

/// Makes the socket; returns what is to be sent and received over it.
///
/// # Errors
/// [`SendError::Payload`] and [`SendError::Setup`].
pub fn connect(config: &ClientConfig) -> Result<Streams, SendError> {
    let peer = config.peer;
    let setup = |source| SendError::Setup { peer, source };
    let socket = own_socket(config)?;
    let mut streams = Streams::default();
    match config.directions {
        Directions::Forward | Directions::Dual { .. } => {
            streams.outgoing = Some(outgoing(config, socket, Direction::Forward)?);
        }
        Directions::Reverse => {
            streams.incoming = Some(incoming(config, socket, Direction::Reverse)?);
        }
        Directions::FullDuplex => {
            let other = socket.try_clone().map_err(setup)?;
            streams.incoming = Some(incoming(config, other, Direction::FullDuplex)?);
            streams.outgoing = Some(outgoing(config, socket, Direction::FullDuplex)?);
        }
    }
    Ok(streams)
}

fn own_socket(config: &ClientConfig) -> Result<UdpSocket, SendError> {
    let payload_bytes = config.payload_bytes;
    if !(PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&payload_bytes) {
        return Err(SendError::Payload { payload_bytes });
    }
    let buffer_bytes = config.send_buffer_bytes;
    let (peer, bind) = (config.peer, config.bind);
    socket_to(peer, bind, &config.options, buffer_bytes)
        .map_err(|source| SendError::Setup { peer, source })
}

fn outgoing(
    config: &ClientConfig,
    socket: UdpSocket,
    direction: Direction,
) -> Result<Outgoing, SendError> {
    let peer = config.peer;
    let connected = sending(&socket, peer, direction, config.send_buffer_bytes)
        .map_err(|source| SendError::Setup { peer, source })?;
    let (duration, bytes_max) = own_bounds(config.amount);
    Ok(Outgoing {
        socket,
        connected,
        plan: Plan {
            duration,
            bytes_max,
            rate: config.rate,
            payload: config.payload(),
            datagrams_per_call: config.datagrams_per_call,
            interval: config.interval,
            dialect: config.dialect,
            is_answered: direction == Direction::Forward,
            ends_at_closed_port: false,
        },
        _client: None,
        _ticket: None,
    })
}

fn incoming(
    config: &ClientConfig,
    socket: UdpSocket,
    direction: Direction,
) -> Result<Incoming, SendError> {
    let peer = config.peer;
    let setup = |source| SendError::Setup { peer, source };
    socket::enable_arrival_times(&socket).map_err(setup)?;
    if config.datagrams_per_call > 1 {
        socket::enable_coalescing(&socket).map_err(setup)?;
    }
    let server = ServerConfig {
        bind: peer,
        receive_buffer_bytes: config.send_buffer_bytes,
        idle_timeout: config.silence_max(),
    };
    let bound = BoundUdp::set_up(socket, &server).map_err(setup)?;
    Ok(Incoming {
        bound,
        interval: config.interval,
        naps: config.datagrams_per_call > 1,
        manner: Manner {
            direction,
            is_answered: false,
            expected: config.duration(),
        },
        queued: Vec::new(),
        begun: None,
        // Who sends as well asks with every datagram.
        request: (direction == Direction::Reverse).then(|| (peer, config.payload())),
        _client: None,
        _ticket: None,
    })
}

/// A socket that sends to `peer`, with everything that was asked for.
pub(super) fn socket_to(
    peer: SocketAddr,
    bind: Option<SocketAddr>,
    options: &SocketOptions,
    send_buffer_bytes: Option<usize>,
) -> io::Result<UdpSocket> {
    let fd = options.open(SocketType::DGRAM, SocketFlags::empty(), peer)?;
    sockets::send_buffer(&fd, send_buffer_bytes)?;
    if let Some(local) = bind {
        rustix::net::bind(&fd, &local)?;
    }
    let socket = UdpSocket::from(fd);
    socket.set_write_timeout(Some(sockets::SEND_TIMEOUT))?;
    socket.set_read_timeout(Some(FIN_EVERY))?;
    socket.connect(peer)?;
    Ok(socket)
}

/// How a socket looks that is sent over.
pub(super) fn sending(
    socket: &UdpSocket,
    peer: SocketAddr,
    direction: Direction,
    asked_bytes: Option<usize>,
) -> io::Result<Connected> {
    Ok(Connected {
        local: socket.local_addr()?,
        peer,
        direction,
        is_sender: true,
        buffer: sockets::described(asked_bytes, socket::send_buffer(socket)?),
        tcp: None,
    })
}
