//! The end that asks for a test: its sockets, what each of its datagrams says, and a server's socket to a client
//! that it sends to (-d and -r).

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nicpoll_model::traffic::Direction;
use nicpoll_model::{Rate, RateUnit};
use nicpoll_sys::socket;
use nicpoll_traffic::udp_server::{BoundUdp, ServerConfig};
use nicpoll_traffic::{Signals, sockets};
use rustix::net::{SocketFlags, SocketType};

use super::receiver::{Incoming, Reception};
use super::sender::{Outgoing, Plan, SendError, SendReport};
use crate::config::{
    ClientConfig, SocketOptions, StreamConfig, UDP_LENGTH_BYTES, set_type_of_service,
};
use crate::records::{Connected, Observer, Remarks};
use crate::slots::Ticket;
use crate::stream::{self, Back, Stream, Test, bounds, silence_max};
use crate::wire::{
    Amount, CLIENT_HEADER_OFFSET, ClientHeader, Dialect, Directions, PAYLOAD_BYTES_MAX,
    PAYLOAD_BYTES_MIN, SHARED_CLOCK_BYTES_MIN, mark_shared_clock, upper_flags,
};

/// The streams of one pair of addresses, and the one that a server sends over a socket of its own.
pub type Streams = stream::Streams<Incoming, Outgoing, ConnectBack>;

impl From<Streams> for Test {
    fn from(streams: Streams) -> Self {
        Test {
            incoming: streams.incoming.map(Stream::boxed),
            outgoing: streams.outgoing.map(Stream::boxed),
            back: streams.back.map(|back| Back {
                is_at_once: back.is_at_once,
                length_bytes: back.plan.payload.len(),
                rate: back.rate(),
                connect: Box::new(move |_| {
                    let outgoing = back.connect()?;
                    Ok((outgoing.connected, outgoing.boxed()))
                }),
            }),
        }
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
    match config.stream.directions {
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
    let payload_bytes = config.stream.length_bytes;
    if !(least_payload_bytes(&config.stream)..=PAYLOAD_BYTES_MAX).contains(&payload_bytes) {
        return Err(SendError::Payload { payload_bytes });
    }
    let buffer_bytes = config.stream.buffer_bytes;
    let (peer, bind) = (config.peer, config.bind);
    socket_to(peer, bind, &config.stream.socket, buffer_bytes)
        .map_err(|source| SendError::Setup { peer, source })
}

fn outgoing(
    config: &ClientConfig,
    socket: UdpSocket,
    direction: Direction,
) -> Result<Outgoing, SendError> {
    let peer = config.peer;
    let stream = &config.stream;
    let remarks = Remarks::of_client(stream);
    let connected = sending(&socket, peer, direction, stream.buffer_bytes, remarks)
        .map_err(|source| SendError::Setup { peer, source })?;
    let (duration, bytes_max) = bounds(config.stream.amount, Duration::MAX);
    if let Some(rate) = config.stream.pacing_bytes_per_second {
        socket::set_max_pacing_rate(&socket, rate)
            .map_err(|source| SendError::Setup { peer, source })?;
    }
    Ok(Outgoing {
        socket,
        connected,
        plan: Plan {
            duration,
            bytes_max,
            opening: opening(config),
            payload: payload(config, stream.length_bytes),
            stream: config.stream.clone(),
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
    if config.stream.is_batched {
        socket::enable_coalescing(&socket).map_err(setup)?;
    }
    let server = ServerConfig {
        bind: peer,
        receive_buffer_bytes: config.stream.buffer_bytes,
        idle_timeout: silence_max(config.stream.amount),
    };
    let bound = BoundUdp::set_up(socket, &server).map_err(setup)?;
    Ok(Incoming {
        bound,
        stream: config.stream.clone(),
        reception: Reception {
            direction,
            is_answered: false,
            remarks: Remarks::of_client(&config.stream),
            expected: match config.stream.amount {
                Amount::Time(duration) => Some(duration),
                Amount::Bytes(_) => None,
            },
        },
        queued: Vec::new(),
        begun: None,
        // Who sends as well asks with every datagram.
        request: (direction == Direction::Reverse).then(|| (peer, opening(config))),
        _client: None,
        ticket: None,
    })
}

/// A socket that sends to `peer`, with everything that was asked for.
pub fn socket_to(
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
    socket.set_read_timeout(Some(Dialect::V2_1.fin_every()))?;
    socket.connect(peer)?;
    Ok(socket)
}

/// How a socket looks that is sent over.
pub fn sending(
    socket: &UdpSocket,
    peer: SocketAddr,
    direction: Direction,
    asked_bytes: Option<usize>,
    remarks: Remarks,
) -> io::Result<Connected> {
    Ok(Connected {
        local: socket.local_addr()?,
        peer,
        direction,
        is_sender: true,
        buffer: sockets::described(asked_bytes, socket::send_buffer(socket)?),
        tcp: None,
        remarks,
    })
}

/// A datagram header and a client header.
const OPENING_BYTES_MIN: usize = CLIENT_HEADER_OFFSET + ClientHeader::BYTES;

fn header(config: &ClientConfig) -> ClientHeader {
    let stream = &config.stream;
    let (rate, rate_flags) = header_rate(stream);
    let port = config.peer.port();
    let mut header = match stream.dialect {
        Dialect::V2_0_2 => ClientHeader::for_udp_v2_0_5(port, stream.amount, rate),
        Dialect::V2_0_8 => ClientHeader::for_udp_v2_0_8(port, stream.amount, rate),
        _ => ClientHeader::for_udp(port, stream.amount, rate),
    };
    header.threads = stream.streams;
    if stream.length_bytes != UDP_LENGTH_BYTES {
        header.buffer_bytes = stream.length_bytes.try_into().unwrap_or(u32::MAX);
    }
    header.ask_for(stream.directions);
    if let Some(rate) = stream.pacing_bytes_per_second
        && header.extension.is_some()
    {
        header.pace(rate);
    }
    if let Some(extension) = &mut header.extension {
        extension.upper_flags |= rate_flags;
        extension.type_of_service = stream.socket.type_of_service.unwrap_or(0).into();
    }
    header
}

/// The rate as the header states it: in bits where the dialect knows no others, and where there is no
/// whole number of packets.
fn header_rate(stream: &StreamConfig) -> (u64, u16) {
    let Some(rate) = stream.rate else {
        return (0, 0);
    };
    let whole = rate.whole_per_second();
    match whole.filter(|_| rate.unit() == RateUnit::PacketsPerSecond) {
        Some(packets) if !matches!(stream.dialect, Dialect::V2_0_2 | Dialect::V2_0_8) => {
            (packets, upper_flags::RATE_IN_PACKETS)
        }
        _ => (rate.bits_of(8 * stream.length_bytes as u64), 0),
    }
}

/// The least payload that holds the headers, and a byte of what comes from elsewhere.
fn least_payload_bytes(stream: &StreamConfig) -> usize {
    match stream.has_shared_clock {
        true => SHARED_CLOCK_BYTES_MIN,
        false => PAYLOAD_BYTES_MIN + usize::from(stream.input.is_some()),
    }
}

/// The payload of the first datagram. Like that of 2.1.8 it is long enough for the whole client header; shorter
/// datagrams have only its beginning.
fn opening(config: &ClientConfig) -> Vec<u8> {
    let stream = &config.stream;
    let has_extension = stream.has_header && stream.dialect == Dialect::V2_1;
    let least_bytes = match (has_extension, stream.pacing_bytes_per_second) {
        (false, _) => 0,
        (true, None) => OPENING_BYTES_MIN,
        (true, Some(_)) => CLIENT_HEADER_OFFSET + ClientHeader::BYTES_MAX,
    };
    payload(config, stream.length_bytes.max(least_bytes))
}

/// What a datagram of this length carries, but for its own header.
fn payload(config: &ClientConfig, length_bytes: usize) -> Vec<u8> {
    let stream = &config.stream;
    let mut payload = vec![0; length_bytes];
    stream
        .dialect
        .prepare_payload(&mut payload, &header(config));
    if !stream.has_header {
        let offset = stream.dialect.client_header_offset();
        let place = payload.iter_mut().skip(offset);
        place.take(ClientHeader::BYTES).for_each(|byte| *byte = 0);
    } else if stream.has_shared_clock {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        mark_shared_clock(&mut payload, now.unwrap_or_default());
    }
    payload
}

/// Sets what the client asks for of a socket that is sent to it over.
pub fn make_as_asked(socket: &UdpSocket, peer: SocketAddr, asked: &ClientHeader) -> io::Result<()> {
    if let Some(service) = asked.type_of_service() {
        set_type_of_service(socket, peer, service)?;
    }
    if let Some(rate) = asked.pacing_bytes_per_second {
        socket::set_max_pacing_rate(socket, rate)?;
    }
    Ok(())
}

/// A stream that waits to be sent to a client over a socket of its own (-d and -r).
#[derive(Debug)]
pub struct ConnectBack {
    pub(super) peer: SocketAddr,
    pub(super) local: SocketAddr,
    pub(super) options: SocketOptions,
    pub(super) asked: ClientHeader,
    pub(super) remarks: Remarks,
    pub(super) plan: Plan,
    /// Whether it is to begin at once rather than after the client's own stream.
    pub is_at_once: bool,
    pub(super) ticket: Ticket,
}

impl ConnectBack {
    /// The rate to keep to.
    pub fn rate(&self) -> Option<Rate> {
        self.plan.stream.rate
    }

    /// Makes the socket.
    ///
    /// # Errors
    /// [`SendError::Setup`].
    pub fn connect(self) -> Result<Outgoing, SendError> {
        let peer = self.peer;
        let setup = |source| SendError::Setup { peer, source };
        let socket = socket_to(peer, Some(self.local), &self.options, None).map_err(setup)?;
        make_as_asked(&socket, peer, &self.asked).map_err(setup)?;
        let connected =
            sending(&socket, peer, Direction::Reverse, None, self.remarks).map_err(setup)?;
        Ok(Outgoing {
            socket,
            connected,
            plan: Plan {
                is_answered: true,
                ..self.plan
            },
            _client: None,
            _ticket: Some(self.ticket),
        })
    }
}
