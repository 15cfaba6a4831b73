//! The UDP client: its sockets, the contents of its datagrams, and the socket by which a server sends back to a
//! client (-d and -r).

use std::io;
use std::net::{SocketAddr, UdpSocket};

use nicpoll_model::RateUnit;
use nicpoll_model::traffic::Direction;
use nicpoll_sys::socket;
use nicpoll_traffic::{Signals, sockets};
use rustix::net::{SocketFlags, SocketType};

use super::receiver::{Incoming, bound};
use super::sender::{Outgoing, check_payload};
use crate::config::{ClientConfig, SocketOptions, StreamConfig, UDP_LENGTH_BYTES};
use crate::records::{Connected, Observer, Total, type_of_service};
use crate::stream::{Error, ReadyStream, Streams, silence_max};
use crate::wire::{Amount, CLIENT_HEADER_OFFSET, ClientHeader, Dialect, Directions, upper_flags};

/// Sends datagrams until the time is up or everything is sent, then ends the stream as 2.1.8 does: a FIN,
/// repeated every 10 ms until answered, at most 201 in all. A server known to be 2.0.x gets ten, 250 ms apart.
/// To receive as well, call [`connect`].
///
/// # Errors
/// See [`Error`]. A server that never answers is no error.
pub fn run_client(
    config: &ClientConfig,
    signals: &Signals,
    observer: &mut dyn Observer,
) -> Result<Total, Error> {
    let socket = own_socket(config)?;
    outgoing(config, socket, Direction::Forward)?.run(signals, observer)
}

/// Makes the socket; returns the streams to run over it.
///
/// # Errors
/// When the socket or the payload is not possible.
pub fn connect(config: &ClientConfig) -> Result<Streams, Error> {
    let socket = own_socket(config)?;
    let mut streams = Streams::default();
    match config.stream.directions {
        Directions::Forward | Directions::Dual { .. } => {
            let outgoing = outgoing(config, socket, Direction::Forward)?;
            streams.outgoing = Some(outgoing.boxed());
        }
        Directions::Reverse => {
            let incoming = incoming(config, socket, Direction::Reverse)?;
            streams.incoming = Some(incoming.boxed());
        }
        Directions::FullDuplex => {
            let other = socket.try_clone().map_err(Error::setup(config.peer))?;
            let incoming = incoming(config, other, Direction::FullDuplex)?;
            let outgoing = outgoing(config, socket, Direction::FullDuplex)?;
            streams.incoming = Some(incoming.boxed());
            streams.outgoing = Some(outgoing.boxed());
        }
    }
    Ok(streams)
}

fn own_socket(config: &ClientConfig) -> Result<UdpSocket, Error> {
    let stream = &config.stream;
    check_payload(stream.length_bytes)?;
    socket_to(
        config.peer,
        config.bind,
        &stream.socket,
        stream.buffer_bytes,
    )
    .map_err(Error::setup(config.peer))
}

fn outgoing(
    config: &ClientConfig,
    socket: UdpSocket,
    direction: Direction,
) -> Result<Outgoing, Error> {
    let (peer, stream) = (config.peer, &config.stream);
    let service = type_of_service(stream, None);
    let connected = sending(&socket, peer, direction, stream.buffer_bytes, service)?;
    Ok(Outgoing {
        socket,
        connected,
        opening: opening(config),
        payload: payload(config, stream.length_bytes),
        stream: stream.clone(),
        is_answered: direction == Direction::Forward,
        ends_at_closed_port: false,
        _client: None,
        _ticket: None,
    })
}

fn incoming(
    config: &ClientConfig,
    socket: UdpSocket,
    direction: Direction,
) -> Result<Incoming, Error> {
    let (peer, stream) = (config.peer, &config.stream);
    let setup = Error::setup(peer);
    socket::enable_arrival_times(&socket).map_err(setup)?;
    if stream.is_batched {
        socket::enable_coalescing(&socket).map_err(setup)?;
    }
    let bound = bound(socket, peer, stream, silence_max(stream.amount)).map_err(setup)?;
    Ok(Incoming {
        direction,
        is_answered: false,
        expected: match stream.amount {
            Amount::Time(duration) => Some(duration),
            Amount::Bytes(_) => None,
        },
        // A client that also sends makes its request in every datagram.
        request: (direction == Direction::Reverse).then(|| (peer, opening(config))),
        ..Incoming::of(bound, stream.clone())
    })
}

/// A socket that sends to `peer`, with all requested options.
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

/// Describes a socket for sending.
pub fn sending(
    socket: &UdpSocket,
    peer: SocketAddr,
    direction: Direction,
    asked_bytes: Option<usize>,
    type_of_service: u8,
) -> Result<Connected, Error> {
    let setup = Error::setup(peer);
    let granted_bytes = socket::send_buffer(socket).map_err(setup)?;
    Ok(Connected {
        local: socket.local_addr().map_err(setup)?,
        peer,
        direction,
        is_sender: true,
        buffer: sockets::described(asked_bytes, granted_bytes),
        tcp: None,
        type_of_service,
    })
}

/// Length of a datagram header and a client header.
const OPENING_BYTES_MIN: usize = CLIENT_HEADER_OFFSET + ClientHeader::BYTES;

fn header(config: &ClientConfig) -> ClientHeader {
    let stream = &config.stream;
    let (rate, rate_flags) = header_rate(stream);
    let port = config.peer.port();
    let plain = match stream.dialect {
        Dialect::V2_0_2 => ClientHeader::for_udp_v2_0_5(port, stream.amount, rate),
        Dialect::V2_0_8 => ClientHeader::for_udp_v2_0_8(port, stream.amount, rate),
        _ => ClientHeader::for_udp(port, stream.amount, rate),
    };
    let mut header = stream.asked(plain, UDP_LENGTH_BYTES);
    if let Some(extension) = &mut header.extension {
        extension.upper_flags |= rate_flags;
    }
    header
}

/// The rate in the header: in packets if the dialect allows and the number is whole, otherwise in bits.
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

/// The payload of the first datagram. As in 2.1.8, it holds the whole client header, which shorter datagrams
/// cut off.
fn opening(config: &ClientConfig) -> Vec<u8> {
    let stream = &config.stream;
    let has_extension = stream.has_header && stream.dialect == Dialect::V2_1;
    let least_bytes = if has_extension { OPENING_BYTES_MIN } else { 0 };
    payload(config, stream.length_bytes.max(least_bytes))
}

/// The payload of a datagram of this length, except its datagram header.
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
    }
    payload
}
