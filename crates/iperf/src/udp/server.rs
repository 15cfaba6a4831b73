//! The UDP server. As in iperf, each client gets a socket: the one that received its first datagram is
//! connected to it, and another is bound for further clients.
//!
//! Every datagram that the kernel queued is counted once, in its sender's session. The new socket is bound
//! before the old one is connected, so one of them always receives. The kernel prefers the newest socket, so
//! the old queue stops growing and is read until empty. Then the old socket is connected, and any datagrams of
//! its client that reached the new socket meanwhile are read, too. The session thus sees its client's datagrams
//! in order.
//!
//! Two limits remain. If the kernel picks the new socket for a datagram just before the old one is connected,
//! but queues it after the new one was read, its session loses the datagram and [`Listener::stray_datagrams`]
//! counts it. And on a host with several addresses, a server bound to the unspecified address can serve only
//! clients that send to the address from which the host answers them.
//!
//! Data go only to allowed addresses, since the source address of a request may be forged. Time, rate and
//! datagram length are limited whatever a header states.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use nicpoll_model::Rate;
use nicpoll_model::traffic::Direction;
use nicpoll_sys::socket::{self, ReceiveBatch, Wait};
use nicpoll_traffic::sockets::{self, SocketBuffer};
use nicpoll_traffic::udp_server::BoundUdp;
use nicpoll_traffic::{ClientRefusal, Signals};
use rustix::net::{SocketFlags, SocketType, sockopt};

use super::client::{sending, socket_to};
use super::receiver::{BATCH_DATAGRAMS, Incoming, bound};
use super::sender::Outgoing;
use super::session::DatagramHead;
use crate::config::{ListenerConfig, StreamConfig, UDP_RATE, set_type_of_service};
use crate::records::type_of_service;
use crate::slots::{Slots, Ticket};
use crate::stream::{AcceptedTest, Back, Error, Listen, ReadyStream, Streams, check_port};
use crate::wire::{
    ClientHeader, Dialect, Directions, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, fill_payload, flags,
    upper_flags,
};

/// Limit on emptying a socket whose datagrams come as fast as they are read.
const READ_OUT_LIMIT: Duration = Duration::from_millis(100);
/// Most datagrams waiting to be processed while they come as fast as they are read.
const PENDING_MAX: usize = 4096;

/// A bound server for any number of streams.
pub struct Listener {
    bound: BoundUdp,
    config: ListenerConfig,
    batch: ReceiveBatch,
    /// Read, but not yet processed.
    pending: VecDeque<First>,
    /// Clients with a session; each session holds the strong reference.
    clients: Vec<Weak<SocketAddr>>,
    slots: Slots,
    refused: Option<SocketAddr>,
    stray_datagrams: u64,
}

/// A datagram that may open a session, and its client header.
#[derive(Clone, Copy)]
struct First {
    head: DatagramHead,
    asked: Option<ClientHeader>,
}

impl Listener {
    /// Binds the socket; the kernel queues datagrams from now on.
    ///
    /// # Errors
    /// Also when another listener has the port, or when a client's server is on this host with the same port.
    pub fn bind(config: &ListenerConfig) -> Result<Self, Error> {
        Self::with_slots(config, &Slots::new(config.of_server.is_some()))
    }

    /// Like [`Self::bind`], with a server's `slots`.
    pub(crate) fn with_slots(config: &ListenerConfig, slots: &Slots) -> Result<Self, Error> {
        check_port(config)?;
        let mut config = config.clone();
        let bound = bind(&config, Sharing::FromNowOn)?;
        config.bind = bound.address;
        let batch = ReceiveBatch::new(BATCH_DATAGRAMS, PAYLOAD_BYTES_MAX);
        let batch = batch.map_err(Error::setup(config.bind))?;
        Ok(Listener {
            bound,
            slots: slots.clone(),
            config,
            batch,
            pending: VecDeque::new(),
            clients: Vec::new(),
            refused: None,
            stray_datagrams: 0,
        })
    }

    /// Datagrams that no session counts: not iperf's, FINs of unknown clients, too late for their session, from
    /// clients beyond the limit, and refused requests for data only.
    pub fn stray_datagrams(&self) -> u64 {
        self.stray_datagrams
    }

    /// What to do for the sender of a datagram; `None` opens no session.
    fn answer(&mut self, First { head, asked }: &First) -> Option<RequestDecision> {
        self.clients.retain(|client| client.strong_count() > 0);
        let is_known = self
            .clients
            .iter()
            .any(|client| client.upgrade().is_some_and(|peer| *peer == head.source));
        let source = head.source.ip().to_canonical();
        let is_expected = self.config.is_for(source);
        if !head.opens_session() || is_known || !is_expected {
            return None;
        }
        let answer = answer(asked.as_ref(), source, &self.config);
        if let RequestDecision::Refused(_) = answer {
            self.refused.get_or_insert(head.source);
        }
        (answer.streams() > 0).then_some(answer)
    }

    /// Turns the socket into a session and binds a new one for further clients. `None` when the client is
    /// refused or cannot be reached: neither may end the server.
    fn open(&mut self, first: First, answer: RequestDecision) -> Result<Option<Accepted>, Error> {
        let begun = Instant::now();
        let peer = first.head.source;
        let Some(ticket) = self.slots.take(peer, answer.streams()) else {
            return Ok(None);
        };
        let next = match bind(&self.config, Sharing::Already) {
            Ok(next) => next,
            Err(Error::Bind { source, .. } | Error::Io { source, .. }) => {
                let peer = peer.into();
                self.slots
                    .admission()
                    .refuse(ClientRefusal::Descriptor { peer, source });
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        self.read_out()?;
        // The old socket is empty and can be connected.
        let bound = std::mem::replace(&mut self.bound, next);
        if bound.connect(peer).is_err() {
            return Ok(None);
        }
        self.read_out()?;
        let mut queued = vec![first.head];
        self.pending.retain(|First { head, .. }| {
            let is_of_client = head.source == peer;
            if is_of_client {
                queued.push(*head);
            }
            !is_of_client
        });
        let client = Arc::new(peer);
        self.clients.push(Arc::downgrade(&client));
        Ok(Some(Accepted {
            bound,
            config: self.config.clone(),
            queued,
            begun,
            answer,
            asked: first.asked,
            client,
            ticket,
        }))
    }

    /// Reads the socket until it is empty.
    fn read_out(&mut self) -> Result<(), Error> {
        let begun = Instant::now();
        while begun.elapsed() < READ_OUT_LIMIT
            && self.pending.len() < PENDING_MAX
            && !self.receive(Wait::Never)?
        {}
        Ok(())
    }

    /// Reads a batch into `pending`; returns whether the socket was empty.
    fn receive(&mut self, wait: Wait) -> Result<bool, Error> {
        match self.batch.receive(&self.bound.socket, wait) {
            Ok(datagrams) => {
                for datagram in datagrams {
                    match DatagramHead::of(&datagram) {
                        Some(head) => self.pending.push_back(First {
                            head,
                            // A server's datagrams have no client header.
                            asked: ClientHeader::parse_udp(datagram.payload),
                        }),
                        None => self.stray_datagrams += 1,
                    }
                }
                Ok(false)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Err(error) if sockets::is_no_datagram(&error) => Ok(false),
            Err(source) => Err(self.bound.receive_failed(source).into()),
        }
    }

    /// Takes the reason of the last refusal that was not yet reported.
    pub fn refusal(&self) -> Option<ClientRefusal> {
        self.slots.admission().refusal()
    }
}

impl Listen for Listener {
    fn accept(
        &mut self,
        signals: &Signals,
        patience: Duration,
    ) -> Result<Option<AcceptedTest>, Error> {
        let begun = Instant::now();
        loop {
            signals.check()?;
            let is_last_look = begun.elapsed() >= patience || signals.is_sender_done();
            while let Some(first) = self.pending.pop_front() {
                if let Some(answer) = self.answer(&first)
                    && let Some(accepted) = self.open(first, answer)?
                {
                    return Ok(Some(AcceptedTest {
                        peer: *accepted.client,
                        proof: accepted.ticket.proof().clone(),
                        open: Box::new(move |_| accepted.open()),
                    }));
                }
                self.stray_datagrams += 1;
            }
            let wait = if is_last_look {
                Wait::Never
            } else {
                Wait::ForFirst
            };
            let is_empty = self.receive(wait)?;
            if is_last_look && is_empty {
                return Ok(None);
            }
        }
    }

    fn local_addr(&self) -> SocketAddr {
        self.bound.address
    }

    fn buffer(&self) -> SocketBuffer {
        self.bound.receive_buffer
    }

    fn not_allowed(&self) -> Option<SocketAddr> {
        self.refused
    }
}

/// Whether a socket shares the port with the listener's other sockets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// The first socket: takes the port exclusively, then lets later ones join.
    FromNowOn,
    /// A later one.
    Already,
}

fn bind(config: &ListenerConfig, sharing: Sharing) -> Result<BoundUdp, Error> {
    let address = config.bind;
    let prepare = || -> io::Result<OwnedFd> {
        let fd = config
            .stream
            .socket
            .open(SocketType::DGRAM, SocketFlags::empty(), address)?;
        if sharing == Sharing::Already {
            reuse_address(&fd)?;
        }
        // Before the bind: datagrams are queued from then on and need their timestamps.
        socket::enable_arrival_times(&fd)?;
        if config.stream.is_batched {
            socket::enable_coalescing(&fd)?;
        }
        Ok(fd)
    };
    let setup = Error::setup(address);
    let fd = prepare().map_err(setup)?;
    rustix::net::bind(&fd, &address).map_err(|error| Error::Bind {
        what: format!(
            "cannot receive at {address} over UDP; see whether it is local and the port free"
        ),
        source: error.into(),
    })?;
    reuse_address(&fd).map_err(setup)?;
    bound(
        UdpSocket::from(fd),
        address,
        &config.stream,
        config.idle_timeout,
    )
    .map_err(setup)
}

fn reuse_address(socket: impl AsFd) -> io::Result<()> {
    socket::named("SO_REUSEADDR", sockopt::set_socket_reuseaddr(socket, true))
}

/// A client accepted for a session.
struct Accepted {
    // Drop the socket before the client's address: the listener must know the client while its datagrams can
    // arrive here.
    bound: BoundUdp,
    config: ListenerConfig,
    /// Datagrams that arrived before the socket was connected to the client; not empty.
    queued: Vec<DatagramHead>,
    /// When the first datagram was processed.
    begun: Instant,
    answer: RequestDecision,
    asked: Option<ClientHeader>,
    client: Arc<SocketAddr>,
    ticket: Ticket,
}

impl Accepted {
    /// Returns the streams to run.
    fn open(self) -> Result<Streams, Error> {
        let mut streams = Streams::default();
        let (direction, is_answered) = match (self.answer, &self.asked) {
            (RequestDecision::Granted(Directions::Reverse), Some(asked)) => {
                let outgoing = self.outgoing(Direction::Reverse, asked)?;
                streams.outgoing = Some(outgoing.boxed());
                return Ok(streams);
            }
            (RequestDecision::Granted(Directions::FullDuplex), Some(asked)) => {
                let outgoing = self.outgoing(Direction::FullDuplex, asked)?;
                streams.outgoing = Some(outgoing.boxed());
                (Direction::FullDuplex, false)
            }
            (RequestDecision::Granted(Directions::Dual { port, is_at_once }), Some(asked)) => {
                streams.back = Some(self.back(port, is_at_once, asked)?);
                (Direction::Forward, true)
            }
            // A full-duplex client takes any answer for data.
            (RequestDecision::Refused(Directions::FullDuplex), _) => (Direction::Forward, false),
            _ => (Direction::Forward, true),
        };
        let incoming = Incoming {
            direction,
            is_answered,
            type_of_service: type_of_service(&self.config.stream, self.asked.as_ref()),
            queued: self.queued,
            begun: Some(self.begun),
            _client: Some(self.client),
            ticket: Some(self.ticket),
            ..Incoming::of(self.bound, self.config.stream)
        };
        streams.incoming = Some(incoming.boxed());
        Ok(streams)
    }

    fn outgoing(&self, direction: Direction, asked: &ClientHeader) -> Result<Outgoing, Error> {
        let socket = self.bound.socket.try_clone();
        let socket = socket.map_err(Error::setup(*self.client))?;
        // A client that sends nothing cannot prove more; its address is an allowed one.
        self.ticket.prove();
        Ok(Outgoing {
            _client: Some(Arc::clone(&self.client)),
            ..self.reply().over(socket, *self.client, direction, asked)?
        })
    }

    fn reply(&self) -> Reply {
        let first = self.queued.first();
        Reply {
            dialect: first.map_or(Dialect::V2_1, |first| Dialect::of_client(&first.raw)),
            stream: self.config.stream.clone(),
            ticket: self.ticket.clone(),
        }
    }

    fn back(&self, port: u16, is_at_once: bool, asked: &ClientHeader) -> Result<Back, Error> {
        let (mut peer, asked) = (*self.client, *asked);
        peer.set_port(port);
        let local = self.bound.socket.local_addr();
        let mut local = local.map_err(Error::setup(peer))?;
        local.set_port(0);
        let reply = self.reply();
        let stream = as_asked(&asked, reply.dialect, peer.ip(), &reply.stream);
        Ok(Back {
            is_at_once,
            length_bytes: stream.length_bytes,
            rate: stream.rate,
            connect: Box::new(move |_| {
                let socket = socket_to(peer, Some(local), &reply.stream.socket, None);
                let socket = socket.map_err(Error::setup(peer))?;
                let outgoing = Outgoing {
                    is_answered: true,
                    ..reply.over(socket, peer, Direction::Reverse, &asked)?
                };
                Ok((outgoing.connected, outgoing.boxed()))
            }),
        })
    }
}

/// How to send to a client on request.
struct Reply {
    /// The client's dialect.
    dialect: Dialect,
    /// The server's configuration.
    stream: StreamConfig,
    ticket: Ticket,
}

impl Reply {
    fn over(
        self,
        socket: UdpSocket,
        peer: SocketAddr,
        direction: Direction,
        asked: &ClientHeader,
    ) -> Result<Outgoing, Error> {
        let setup = Error::setup(peer);
        if let Some(service) = asked.type_of_service() {
            set_type_of_service(&socket, peer, service).map_err(setup)?;
        }
        let service = type_of_service(&self.stream, Some(asked));
        let stream = as_asked(asked, self.dialect, peer.ip(), &self.stream);
        let mut payload = vec![0; stream.length_bytes];
        fill_payload(&mut payload);
        Ok(Outgoing {
            connected: sending(&socket, peer, direction, None, service)?,
            socket,
            opening: payload.clone(),
            payload,
            stream,
            is_answered: false,
            ends_at_closed_port: true,
            _client: None,
            _ticket: Some(self.ticket),
        })
    }
}

/// Limit on the time a server sends, whatever the client requests.
const SEND_TIME_MAX: Duration = Duration::from_secs(60 * 60);
/// How much less payload fits a datagram over IPv6 than over IPv4.
const IPV6_HEADER_SURPLUS: usize = 20;

/// The decision on a client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestDecision {
    /// The client gets what it requests.
    Granted(Directions),
    /// The client gets no data; the server only receives.
    Refused(Directions),
}

impl RequestDecision {
    /// How many streams the client gets.
    fn streams(self) -> usize {
        match self {
            RequestDecision::Refused(Directions::Reverse) => 0,
            RequestDecision::Granted(Directions::FullDuplex | Directions::Dual { .. }) => 2,
            RequestDecision::Granted(_) | RequestDecision::Refused(_) => 1,
        }
    }
}

/// Decides on the request in the first datagram from `source`.
fn answer(
    asked: Option<&ClientHeader>,
    source: IpAddr,
    config: &ListenerConfig,
) -> RequestDecision {
    // An invalid port requests nothing.
    let directions = asked.and_then(|asked| asked.directions().ok());
    let directions = directions.unwrap_or_default();
    let is_allowed = config.allow.iter().any(|network| network.contains(source));
    if directions == Directions::Forward || is_allowed {
        RequestDecision::Granted(directions)
    } else {
        RequestDecision::Refused(directions)
    }
}

/// How to send to a client: as requested, within the server's limits, in a dialect that the client understands.
fn as_asked(
    asked: &ClientHeader,
    client: Dialect,
    peer: IpAddr,
    own: &StreamConfig,
) -> StreamConfig {
    let payload_max = match peer.to_canonical() {
        IpAddr::V4(_) => PAYLOAD_BYTES_MAX,
        IpAddr::V6(_) => PAYLOAD_BYTES_MAX - IPV6_HEADER_SURPLUS,
    };
    let payload_bytes = match asked.buffer_bytes {
        0 => own.length_bytes,
        bytes => bytes as usize,
    };
    StreamConfig {
        amount: asked.amount,
        time_max: own.time_max.min(SEND_TIME_MAX),
        length_bytes: payload_bytes.clamp(PAYLOAD_BYTES_MIN, payload_max),
        rate: Some(rate(asked)),
        burst_datagrams: 1,
        dialect: match client {
            Dialect::V2_0_2 => client,
            // Later clients detect the server's dialect from its datagrams.
            _ => Dialect::V2_1,
        },
        ..own.clone()
    }
}

/// The requested rate; iperf's default if none is stated.
fn rate(asked: &ClientHeader) -> Rate {
    // A header without an extension has an older field for the rate.
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
