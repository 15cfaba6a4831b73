//! What a server sends to a client that asks for it.
//!
//! What must hold: nothing is sent to an address that was not allowed, since whoever asks may have
//! written another's address into the datagram; and whatever a header states, the time, the rate and the
//! length of a datagram are bounded.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use nicpoll_model::Rate;
use nicpoll_sys::socket;

use crate::wire::datagram::{PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN};
use crate::wire::{ClientHeader, Dialect, Directions, fill_payload, flags, upper_flags};

use nicpoll_model::iperf::Direction;

use super::client::{sending, socket_to};
use super::sender::{Outgoing, Plan, SendError};
use crate::UDP_RATE;
use crate::config::{ListenerConfig, StreamConfig};
use crate::observer::Remarks;
use crate::reverse::bounds;
use crate::slots::Ticket;
use crate::socket_options::{self, SocketOptions};

/// The longest that a server sends to a client, whatever that asks for.
pub const SEND_TIME_MAX: Duration = Duration::from_secs(60 * 60);
/// IPv6 has that much less room for a datagram.
const IPV6_HEADER_SURPLUS: usize = 20;

/// What a client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// What it asks for.
    Granted(Directions),
    /// No data: only what it sends itself is received.
    Refused(Directions),
}

impl Answer {
    /// How many streams that makes.
    pub(super) fn streams(self) -> usize {
        match self {
            Answer::Refused(Directions::Reverse) => 0,
            Answer::Granted(Directions::FullDuplex | Directions::Dual { .. }) => 2,
            Answer::Granted(_) | Answer::Refused(_) => 1,
        }
    }
}

/// What the client at `source` gets for its first datagram's header.
pub(super) fn answer(
    asked: Option<&ClientHeader>,
    source: IpAddr,
    config: &ListenerConfig,
) -> Answer {
    // A port that cannot be is none to send to.
    let directions = asked.and_then(|asked| asked.directions().ok());
    let directions = directions.unwrap_or_default();
    let is_allowed = config.allow.iter().any(|network| network.contains(source));
    if directions == Directions::Forward || is_allowed {
        Answer::Granted(directions)
    } else {
        Answer::Refused(directions)
    }
}

/// What to send to a client that asks for it, within the bounds of the server, and as the client
/// understands it.
pub(super) fn plan(
    asked: &ClientHeader,
    client: Dialect,
    peer: IpAddr,
    config: &ListenerConfig,
) -> Plan {
    let time_max = config.send_time_max.min(SEND_TIME_MAX);
    let (duration, bytes_max) = bounds(asked.amount, time_max);
    let payload_max = match peer.to_canonical() {
        IpAddr::V4(_) => PAYLOAD_BYTES_MAX,
        IpAddr::V6(_) => PAYLOAD_BYTES_MAX - IPV6_HEADER_SURPLUS,
    };
    let payload_bytes = match asked.buffer_bytes {
        0 => config.stream.length_bytes,
        bytes => bytes as usize,
    };
    let mut payload = vec![0; payload_bytes.clamp(PAYLOAD_BYTES_MIN, payload_max)];
    fill_payload(&mut payload);
    Plan {
        duration,
        bytes_max,
        opening: payload.clone(),
        payload,
        stream: StreamConfig {
            input: None,
            rate: Some(rate(asked)),
            burst_datagrams: 1,
            dialect: match client {
                Dialect::V2_0_2 => client,
                // Later ones tell the other end's version by its datagrams.
                _ => Dialect::V2_1,
            },
            ..config.stream.clone()
        },
        is_answered: false,
        ends_at_closed_port: true,
    }
}

/// Sets what the client asks for of a socket that is sent to it over.
pub(super) fn make_as_asked(
    socket: &UdpSocket,
    peer: SocketAddr,
    asked: &ClientHeader,
) -> io::Result<()> {
    if let Some(service) = asked.type_of_service() {
        socket_options::set_type_of_service(socket, peer, service)?;
    }
    if let Some(rate) = asked.pacing_bytes_per_second {
        socket::set_max_pacing_rate(socket, rate)?;
    }
    Ok(())
}

/// What the header asks for; iperf's own default where it states none.
fn rate(asked: &ClientHeader) -> Rate {
    // Without an extension there is a word for it.
    let old = asked.old_rate.unwrap_or(asked.window_or_rate);
    let stated = asked
        .extension
        .map_or(old.into(), |extension| extension.rate_bps);
    let is_in_packets = asked.old_rate.is_some() && asked.flags & flags::RATE_IN_PACKETS != 0;
    let rate = if is_in_packets || asked.asks_for(upper_flags::RATE_IN_PACKETS) {
        Rate::packets_per_second(stated)
    } else {
        Rate::bits_per_second(stated)
    };
    rate.unwrap_or(UDP_RATE)
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
    pub(super) is_at_once: bool,
    pub(super) ticket: Ticket,
}

impl ConnectBack {
    /// Where to: the client's address, and the port that it asked for.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// UDP payload of each datagram.
    pub fn payload_bytes(&self) -> usize {
        self.plan.payload.len()
    }

    /// The rate to keep to.
    pub fn rate(&self) -> Option<Rate> {
        self.plan.stream.rate
    }

    /// Whether it is to begin at once rather than after the client's own stream.
    pub fn is_at_once(&self) -> bool {
        self.is_at_once
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
