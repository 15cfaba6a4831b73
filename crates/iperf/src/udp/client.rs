//! The end that asks for a test.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use nicpoll_sys::socket;
use rustix::net::{SocketFlags, SocketType};

use nicpoll_traffic::Signals;
use nicpoll_traffic::sockets;
use nicpoll_traffic::udp_server::{BoundUdp, ServerConfig};

use crate::wire::datagram::PAYLOAD_BYTES_MAX;
use crate::wire::{Dialect, Directions};
use nicpoll_model::iperf::Direction;

use super::Streams;
use super::incoming::Incoming;
use super::receiver::Manner;
use super::request;
use super::sender::{Outgoing, Plan, SendError, SendReport};
use crate::config::ClientConfig;
use crate::observer::{Connected, Observer, Remarks};
use crate::reverse::{own_bounds, silence_max};
use crate::socket_options::SocketOptions;

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
    if !(request::least_payload_bytes(&config.stream)..=PAYLOAD_BYTES_MAX).contains(&payload_bytes)
    {
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
    let (duration, bytes_max) = own_bounds(config.stream.amount);
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
            opening: request::opening(config),
            payload: request::payload(config),
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
        manner: Manner {
            direction,
            is_answered: false,
            remarks: Remarks::of_client(&config.stream),
            expected: request::duration(&config.stream),
        },
        queued: Vec::new(),
        begun: None,
        // Who sends as well asks with every datagram.
        request: (direction == Direction::Reverse).then(|| (peer, request::opening(config))),
        _client: None,
        ticket: None,
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
    socket.set_read_timeout(Some(Dialect::V2_1.fin_every()))?;
    socket.connect(peer)?;
    Ok(socket)
}

/// How a socket looks that is sent over.
pub(super) fn sending(
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
