//! Streams from a server to a client that asked for them: how much is sent, and the connection that
//! -d and -r make for it, at both ends.
//!
//! What must hold: whatever a header states, the time, the length of a write and the memory are
//! bounded; a server connects to the address that the client's own connection came from and to no
//! other, and a client takes connections from its server's address only.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::Rate;

use crate::wire::ClientHeader;

use nicpoll_traffic::Signals;
use nicpoll_traffic::sockets::SocketBuffer;

use nicpoll_model::iperf::Direction;

use super::client::Link;
use super::listener::Listener;
use super::sender::{Outgoing, Plan};
use super::{Error, Incoming};
use crate::config::{ClientConfig, ListenerConfig, StreamConfig};
use crate::reverse::{bounds, is_address_of_server};
use crate::slots::Ticket;

/// The longest that a server sends to a client, whatever that asks for.
pub const SEND_TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest write that a client can ask a server for.
const WRITE_BYTES_MAX: u32 = 1 << 20;

/// Waits between tries to connect back. 2.1.8 begins to listen beside its own stream, and on a busy host
/// after it; few tries, since a stranger can ask for them.
const LISTENER_WAITS_MS: [u64; 5] = [50, 100, 200, 400, 800];

/// What a server sends to a client that asks for it, within the bounds of the server.
pub(super) fn plan(asked: &ClientHeader, config: &ListenerConfig) -> Plan {
    let time_max = config.send_time_max.min(SEND_TIME_MAX);
    let (duration, bytes_max) = bounds(asked.amount, time_max);
    let stated = asked.extension.map_or(0, |extension| extension.rate_bps);
    Plan {
        duration,
        bytes_max,
        header: None,
        bytes_sent: 0,
        stream: StreamConfig {
            pacing_bytes_per_second: asked.pacing_bytes_per_second,
            rate: Rate::bits_per_second(stated),
            length_bytes: match asked.buffer_bytes {
                0 => config.stream.length_bytes,
                bytes => bytes.min(WRITE_BYTES_MAX) as usize,
            },
            ..config.stream.clone()
        },
        may_be_reset: false,
    }
}

/// How a server connects back: from the address that the client reached to the one that it came from.
pub(super) fn way_back(
    mut local: SocketAddr,
    mut peer: SocketAddr,
    port: u16,
    asked: &ClientHeader,
    config: &ListenerConfig,
) -> ClientConfig {
    local.set_port(0);
    peer.set_port(port);
    let mut stream = StreamConfig {
        has_header: false,
        pacing_bytes_per_second: asked.pacing_bytes_per_second,
        ..config.stream.clone()
    };
    if let Some(service) = asked.type_of_service() {
        stream.socket.type_of_service = Some(service);
    }
    ClientConfig {
        bind: Some(local),
        ..ClientConfig::new(peer, stream)
    }
}

/// A stream that waits to be sent to a client over a connection of its own (-d and -r).
#[derive(Debug)]
pub struct ConnectBack {
    pub(super) config: ClientConfig,
    pub(super) plan: Plan,
    pub(super) is_at_once: bool,
    pub(super) ticket: Ticket,
}

impl ConnectBack {
    /// Where to: the client's address, and the port that it asked for.
    pub fn peer(&self) -> SocketAddr {
        self.config.peer
    }

    /// Length of a write.
    pub fn write_bytes(&self) -> usize {
        self.plan.stream.length_bytes
    }

    /// Whether it is to begin at once rather than after the client's own stream.
    pub fn is_at_once(&self) -> bool {
        self.is_at_once
    }

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

/// A client's socket for the streams that its server connects back for.
#[derive(Debug)]
pub struct ReverseListener {
    listener: Listener,
    server: SocketAddr,
}

impl ReverseListener {
    /// Begins to listen for `server`.
    ///
    /// # Errors
    /// [`Error::Bind`], and [`Error::PortOfServer`] when the server is on this host and has the same
    /// port, so that the client would connect to itself should the server not run.
    pub fn bind(config: &ListenerConfig, server: SocketAddr) -> Result<Self, Error> {
        let bind = config.bind;
        if is_address_of_server(bind, server) {
            let port = bind.port();
            return Err(Error::PortOfServer { server, port });
        }
        Ok(ReverseListener {
            listener: Listener::bind(config)?,
            server,
        })
    }

    /// The address listened on, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// The receive buffer as granted to the listening socket.
    pub fn receive_buffer(&self) -> SocketBuffer {
        self.listener.receive_buffer()
    }

    /// Takes the next connection of the server and closes any other; `None` when none came for
    /// `patience`, or when none waits and [`Signals::sender_done`] is set.
    ///
    /// # Errors
    /// [`Error::Accept`], [`Error::Setup`] and [`Error::Cancelled`].
    pub fn accept(&self, signals: &Signals, patience: Duration) -> Result<Option<Incoming>, Error> {
        let begun = Instant::now();
        loop {
            let left = patience.saturating_sub(begun.elapsed());
            let Some(accepted) = self.listener.accept(signals, left)? else {
                return Ok(None);
            };
            if accepted.peer().ip().to_canonical() == self.server.ip().to_canonical() {
                return accepted.without_header().map(Some);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Amount;
    use crate::tcp::{BUFFER_BYTES, ServerConfig};

    #[test]
    fn a_client_cannot_ask_for_more_than_the_server_gives() {
        let mut config = ListenerConfig::tcp(ServerConfig {
            bind: ([127, 0, 0, 1], 0).into(),
            receive_buffer_bytes: None,
            idle_timeout: Duration::ZERO,
        });
        let mut asked = ClientHeader::for_tcp(1, Amount::Time(Duration::MAX));
        assert_eq!(plan(&asked, &config).duration, SEND_TIME_MAX);
        config.send_time_max = Duration::MAX;
        assert_eq!(plan(&asked, &config).duration, SEND_TIME_MAX);
        config.send_time_max = Duration::from_secs(1);
        assert_eq!(plan(&asked, &config).duration, config.send_time_max);
        for (buffer_bytes, write_bytes) in [
            (0, BUFFER_BYTES),
            (1, 1),
            (u32::MAX, WRITE_BYTES_MAX as usize),
        ] {
            asked.buffer_bytes = buffer_bytes;
            assert_eq!(plan(&asked, &config).stream.length_bytes, write_bytes);
        }
    }
}
