//! A socket that opens a session for each client, as iperf does: the socket that the first datagram
//! came to is connected to its sender, and another is bound for further clients.
//!
//! What must hold: every datagram that the kernel queued is counted once, by the session of its
//! sender. The new socket is bound before the old one is connected, so that at every moment one of
//! them takes what comes; the kernel prefers the newest socket, and so the old one's queue grows no
//! more and is read out. Then the old one is connected, and what the new one got of its client in
//! between is read out too. So everything of the client is known in the order in which it came.
//!
//! What cannot be avoided: a datagram for which the kernel had chosen the new socket just before the
//! connection, but which it queued only after the new socket was read out, comes too late for its
//! session and is lost to it; [`Listener::stray_datagrams`] counts it. And a server at the
//! unspecified address of a host with several addresses can serve only clients that send to the one
//! from which the host answers them.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use nicpoll_sys::socket::{self, ReceiveBatch, Wait};
use rustix::net::{SocketFlags, SocketType, sockopt};

use nicpoll_traffic::sockets::{self, SocketBuffer};
use nicpoll_traffic::udp_server::{BoundUdp, ServerError};
use nicpoll_traffic::{ClientRefusal, Signals};

use super::accepted::Accepted;
use super::receiver::Taken;
use super::reverse::{self, Answer};
use super::room::BATCH_DATAGRAMS;
use crate::config::ListenerConfig;
use crate::reverse::is_address_of_server;
use crate::slots::Slots;
use crate::wire::ClientHeader;
use crate::wire::datagram::PAYLOAD_BYTES_MAX;

/// The longest that reading out a socket may take, should datagrams come as fast as they are read.
const READ_OUT_LIMIT: Duration = Duration::from_millis(100);
/// The most datagrams that wait to be looked at, should they be strangers' and come as fast as they are
/// read.
const PENDING_MAX: usize = 4096;

/// A bound server, for any number of streams.
pub struct Listener {
    bound: BoundUdp,
    config: ListenerConfig,
    batch: ReceiveBatch,
    /// Read, but not yet looked at.
    pending: VecDeque<First>,
    /// Clients whose sessions exist; each session holds the other end.
    clients: Vec<Weak<SocketAddr>>,
    slots: Slots,
    refused: Option<SocketAddr>,
    stray_datagrams: u64,
}

/// A datagram that may open a session, and what it asks for.
#[derive(Clone, Copy)]
struct First {
    taken: Taken,
    asked: Option<ClientHeader>,
}

impl Listener {
    /// Binds the socket; datagrams are queued from now on.
    ///
    /// # Errors
    /// [`ServerError::Bind`], also when the port is taken by another listener, [`ServerError::Setup`], and
    /// [`ServerError::PortOfServer`] at a client whose server is on this host and has the same port.
    pub fn bind(config: &ListenerConfig) -> Result<Self, ServerError> {
        let slots = match config.of_server {
            Some(_) => Slots::for_one_server(),
            None => Slots::new(),
        };
        Self::with_slots(config, slots)
    }

    /// Binds one more port of the same server: its clients count as those of this one do.
    ///
    /// # Errors
    /// [`ServerError::Bind`] and [`ServerError::Setup`].
    pub fn beside(&self, config: &ListenerConfig) -> Result<Self, ServerError> {
        Self::with_slots(config, self.slots.clone())
    }

    fn with_slots(config: &ListenerConfig, slots: Slots) -> Result<Self, ServerError> {
        if let Some(server) = config.of_server
            && is_address_of_server(config.bind, server)
        {
            return Err(ServerError::PortOfServer { server });
        }
        let mut config = config.clone();
        let bound = bind(&config, Sharing::FromNowOn)?;
        config.bind = bound.address;
        let batch = ReceiveBatch::new(BATCH_DATAGRAMS, PAYLOAD_BYTES_MAX);
        let address = config.bind;
        Ok(Listener {
            bound,
            slots,
            config,
            batch: batch.map_err(|source| ServerError::Setup { address, source })?,
            pending: VecDeque::new(),
            clients: Vec::new(),
            refused: None,
            stray_datagrams: 0,
        })
    }

    /// The address bound to, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.bound.address
    }

    /// The receive buffer of each socket.
    pub fn receive_buffer(&self) -> SocketBuffer {
        self.bound.receive_buffer
    }

    /// The first client that asked for data and was not allowed to have them.
    pub fn refused(&self) -> Option<SocketAddr> {
        self.refused
    }

    /// Why a client was refused last, unless that was asked before.
    pub fn refusal(&self) -> Option<ClientRefusal> {
        self.slots.refusal()
    }

    /// Takes note of a client that could not be served.
    pub fn refuse(&self, refusal: ClientRefusal) {
        self.slots.refuse(refusal);
    }

    /// Has sessions end whose client has sent one datagram and no more.
    pub fn let_go_of_strangers(&self) {
        self.slots.close();
    }

    /// Datagrams that no session counts: those that are none of iperf's, FINs of unknown clients,
    /// those that came too late for their session, those of clients beyond the limit, and those that
    /// ask for nothing but data and are refused.
    pub fn stray_datagrams(&self) -> u64 {
        self.stray_datagrams
    }

    /// Waits for the first datagram of an unknown client; `None` when none came for `patience`, or
    /// when none waits and [`Signals::sender_done`] is set.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn accept(
        &mut self,
        signals: &Signals,
        patience: Duration,
    ) -> Result<Option<Accepted>, ServerError> {
        let begun = Instant::now();
        loop {
            if signals.is_cancelled() {
                return Err(ServerError::Cancelled);
            }
            let is_last_look = begun.elapsed() >= patience || signals.is_sender_done();
            while let Some(first) = self.pending.pop_front() {
                if let Some(answer) = self.answer(&first)
                    && let Some(accepted) = self.open(first, answer)?
                {
                    return Ok(Some(accepted));
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

    /// What the sender of a datagram gets; `None` when no session.
    fn answer(&mut self, First { taken, asked }: &First) -> Option<Answer> {
        self.clients.retain(|client| client.strong_count() > 0);
        let is_known = self
            .clients
            .iter()
            .any(|client| client.upgrade().is_some_and(|peer| *peer == taken.source));
        let source = taken.source.ip().to_canonical();
        let is_expected = match self.config.of_server {
            Some(server) => server.ip().to_canonical() == source,
            None => true,
        };
        if !taken.opens_session() || is_known || !is_expected {
            return None;
        }
        let answer = reverse::answer(asked.as_ref(), source, &self.config);
        if let Answer::Refused(_) = answer {
            self.refused.get_or_insert(taken.source);
        }
        (answer.streams() > 0).then_some(answer)
    }

    /// Makes a session of the socket, and a new socket for further clients. `None` when the client is
    /// refused, or when there is no way back to it: neither must end the server.
    fn open(&mut self, first: First, answer: Answer) -> Result<Option<Accepted>, ServerError> {
        let begun = Instant::now();
        let peer = first.taken.source;
        let Some(ticket) = self.slots.take(peer, answer.streams()) else {
            return Ok(None);
        };
        let next = match bind(&self.config, Sharing::Already) {
            Ok(next) => next,
            Err(ServerError::Bind { source, .. } | ServerError::Setup { source, .. }) => {
                let peer = peer.into();
                self.slots
                    .refuse(ClientRefusal::Descriptor { peer, source });
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        self.read_out()?;
        // Everything that the old socket got has been read, so that it may go.
        let bound = std::mem::replace(&mut self.bound, next);
        if bound.connect(peer).is_err() {
            return Ok(None);
        }
        self.read_out()?;
        let mut queued = vec![first.taken];
        self.pending.retain(|First { taken, .. }| {
            let is_of_client = taken.source == peer;
            if is_of_client {
                queued.push(*taken);
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

    /// Reads what is queued.
    fn read_out(&mut self) -> Result<(), ServerError> {
        let begun = Instant::now();
        while begun.elapsed() < READ_OUT_LIMIT
            && self.pending.len() < PENDING_MAX
            && !self.receive(Wait::Never)?
        {}
        Ok(())
    }

    /// Reads a batch into `pending`; whether there was none.
    fn receive(&mut self, wait: Wait) -> Result<bool, ServerError> {
        match self.batch.receive(&self.bound.socket, wait) {
            Ok(datagrams) => {
                for datagram in datagrams {
                    match Taken::of(&datagram) {
                        Some(taken) => self.pending.push_back(First {
                            taken,
                            // A server's datagrams have none.
                            asked: ClientHeader::parse_udp(datagram.payload),
                        }),
                        None => self.stray_datagrams += 1,
                    }
                }
                Ok(false)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Err(error) if sockets::is_no_datagram(&error) => Ok(false),
            Err(source) => Err(self.bound.receive_failed(source)),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bound.socket.as_fd()
    }
}

/// Whether a port may be shared with the listener's other sockets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// The first socket: no other may have the port, but later ones may join.
    FromNowOn,
    /// A later one.
    Already,
}

fn bind(config: &ListenerConfig, sharing: Sharing) -> Result<BoundUdp, ServerError> {
    let address = config.bind;
    let prepare = || {
        let fd = config
            .stream
            .socket
            .open(SocketType::DGRAM, SocketFlags::empty(), address)?;
        if sharing == Sharing::Already {
            reuse_address(&fd)?;
        }
        // Before the address: datagrams are queued, and have to bear their times, from then on.
        socket::enable_arrival_times(&fd)?;
        if config.stream.is_batched {
            socket::enable_coalescing(&fd)?;
        }
        Ok(fd)
    };
    let setup = |source| ServerError::Setup { address, source };
    let fd = prepare().map_err(setup)?;
    rustix::net::bind(&fd, &address).map_err(|error| ServerError::Bind {
        address,
        source: error.into(),
    })?;
    reuse_address(&fd).map_err(setup)?;
    BoundUdp::set_up(UdpSocket::from(fd), &config.server()).map_err(setup)
}

fn reuse_address(socket: impl AsFd) -> io::Result<()> {
    socket::named("SO_REUSEADDR", sockopt::set_socket_reuseaddr(socket, true))
}
