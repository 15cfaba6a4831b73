//! The end that answers anyone, over UDP and TCP at one port, until it is told to stop.
//!
//! What must hold: a datagram is answered with no more bytes than it had, so that a forged address gets
//! no more than was spent on it. Connections are bounded in number, in what is kept for each, and in
//! how long they may be silent or leave their responses unread; while clients are refused for want of a
//! connection, nobody keeps one who asks next to nothing, and no address has all of them. Whatever is sent, the service goes on.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::rr::RrServed;
use nicpoll_sys::socket;
use nicpoll_wire::rr::Message;
use rustix::event::PollFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use thiserror::Error;

use super::connection::serve_connection;
use super::datagram_request;
use crate::signals::{LOOK_EVERY, Signals};
use crate::{AddressShares, Caller, ClientRefusal, Spare, is_exhausted, sockets};

/// Connections served at a time.
const CONNECTIONS_MAX: usize = 128;
/// Those of one address, at most.
const CONNECTIONS_PER_ADDRESS: usize = CONNECTIONS_MAX / 8 * 7;
/// All of them in words, and what becomes of the next one.
const IN_USE: &str = "all 128 connections are in use";
const RULE: &str = "is refused; a connection that asks nothing for 1 s makes room for the next one";
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// The longest datagram there is.
const DATAGRAM_BYTES_MAX: usize = 65_535;
/// Enough that a burst of requests is not lost while the thread is not running.
const UDP_RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// Where to answer.
#[derive(Clone, Copy, Debug)]
pub struct ServiceConfig {
    /// Address and port, for both protocols. The unspecified address of IPv6 takes IPv4 as well.
    pub bind: SocketAddr,
    /// How long to serve; `None` until the signals say so.
    pub duration: Option<Duration>,
}

/// Why a service could not be, or ended.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// No sockets.
    #[error("cannot answer at {address}; see whether it is local and the port free")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// Its sockets or threads failed for good.
    #[error("cannot go on answering at {address}; see whether the interface is still there")]
    Serve {
        /// The service's address.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
}

/// What was done so far. It may be read while it grows.
#[derive(Debug)]
pub struct Served {
    udp: Counters,
    pub(super) tcp: Counters,
    connections: AtomicU64,
    refused_connections: AtomicU64,
    open: Mutex<AddressShares>,
    /// Clients that were refused for want of a connection, and for each of whom one is to make room.
    waiting: AtomicUsize,
    refusal: Mutex<Option<ClientRefusal>>,
}

/// What was done over one protocol.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) requests: AtomicU64,
    pub(super) responses: AtomicU64,
    refused: AtomicU64,
    pub(super) foreign: AtomicU64,
    pub(super) bytes_received: AtomicU64,
    pub(super) bytes_sent: AtomicU64,
}

impl Counters {
    fn look(&self) -> RrServed {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RrServed {
            requests_received: read(&self.requests),
            responses_sent: read(&self.responses),
            refused_sends: read(&self.refused),
            foreign_messages: read(&self.foreign),
            bytes_received: read(&self.bytes_received),
            bytes_sent: read(&self.bytes_sent),
        }
    }
}

pub(super) fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Ordering::Relaxed);
}

impl Default for Served {
    fn default() -> Self {
        Served {
            udp: Counters::default(),
            tcp: Counters::default(),
            connections: AtomicU64::default(),
            refused_connections: AtomicU64::default(),
            open: Mutex::new(AddressShares::new(CONNECTIONS_PER_ADDRESS)),
            waiting: AtomicUsize::default(),
            refusal: Mutex::default(),
        }
    }
}

impl Served {
    /// Over UDP.
    pub fn udp(&self) -> RrServed {
        self.udp.look()
    }

    /// Over TCP.
    pub fn tcp(&self) -> RrServed {
        self.tcp.look()
    }

    /// Connections served.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Why a connection was refused last, unless that was asked before.
    pub fn refusal(&self) -> Option<ClientRefusal> {
        self.last_refusal().take()
    }

    /// Refuses a client for want of a connection.
    fn refuse_for_want(&self, peer: Caller) {
        let more = |waiting: usize| (waiting < CONNECTIONS_MAX).then_some(waiting + 1);
        // Room for more than there are connections cannot be made.
        let _ = self
            .waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        let (in_use, rule) = (IN_USE, RULE);
        self.refuse(ClientRefusal::Full { peer, in_use, rule });
    }

    /// Takes back that one connection is to make room: whether one was.
    fn take_waiting(&self) -> bool {
        let less = |waiting: usize| waiting.checked_sub(1);
        let taken = self
            .waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.is_ok()
    }

    /// Whether a connection that does next to nothing is to end, so that another client has its place. Of
    /// several that ask, as many are told so as clients were refused.
    pub(super) fn wants_room(&self) -> bool {
        self.is_full() && self.take_waiting()
    }

    fn is_full(&self) -> bool {
        self.open().taken() >= CONNECTIONS_MAX
    }

    fn open(&self) -> MutexGuard<'_, AddressShares> {
        // A panic elsewhere leaves counts as they are.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses a client whose address has its share of the connections.
    fn refuse_for_share(&self, peer: Caller) {
        self.refuse(ClientRefusal::Share {
            peer,
            most: self.open().most(),
            what: "connections",
        });
    }

    fn refuse(&self, refusal: ClientRefusal) {
        add(&self.refused_connections, 1);
        *self.last_refusal() = Some(refusal);
    }

    fn last_refusal(&self) -> MutexGuard<'_, Option<ClientRefusal>> {
        // A panic elsewhere leaves a refusal what it is.
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connections closed at once: there were too many, or no descriptor or thread for them.
    pub fn refused_connections(&self) -> u64 {
        self.refused_connections.load(Ordering::Relaxed)
    }
}

/// Bound sockets: datagrams and connections are queued from now on.
#[derive(Debug)]
pub struct Service {
    udp: UdpSocket,
    tcp: TcpListener,
    address: SocketAddr,
    duration: Option<Duration>,
}

impl Service {
    /// Binds both sockets to one port; the kernel chooses it when it is 0.
    ///
    /// # Errors
    /// [`ServiceError::Bind`].
    pub fn bind(config: &ServiceConfig) -> Result<Self, ServiceError> {
        let bound = || {
            let tcp = listen(config.bind)?;
            let address = tcp.local_addr()?;
            let udp = UdpSocket::bind(address)?;
            socket::set_receive_buffer(&udp, UDP_RECEIVE_BUFFER_BYTES)?;
            udp.set_read_timeout(Some(LOOK_EVERY))?;
            udp.set_write_timeout(Some(sockets::SEND_TIMEOUT))?;
            Ok((udp, tcp, address))
        };
        let (udp, tcp, address) = bound().map_err(|source| ServiceError::Bind {
            address: config.bind,
            source,
        })?;
        Ok(Service {
            udp,
            tcp,
            address,
            duration: config.duration,
        })
    }

    /// The address bound to, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Answers until the time is up or [`Signals::cancel`] or [`Signals::finish`] is set. Returns how
    /// long that was. Counts as it goes in `served`.
    ///
    /// # Errors
    /// [`ServiceError::Serve`].
    pub fn run(&self, signals: &Signals, served: &Served) -> Result<Duration, ServiceError> {
        let begun = Instant::now();
        let is_over = || {
            let is_late = self.duration.is_some_and(|end| begun.elapsed() >= end);
            is_late || signals.is_cancelled() || signals.is_finishing()
        };
        let has_failed = AtomicBool::new(false);
        let is_over = || is_over() || has_failed.load(Ordering::Relaxed);
        let guarded = |outcome: io::Result<()>| {
            // The other half must not go on alone.
            has_failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
            outcome
        };
        let outcome = thread::scope(|scope| {
            let answering = thread::Builder::new()
                .name(String::from("nicpoll-rr-udp"))
                .spawn_scoped(scope, || {
                    guarded(serve_udp(&self.udp, &served.udp, &is_over))
                })?;
            let accepted = guarded(self.accept(scope, served, &is_over));
            let answered = answering.join().map_err(|_| io::Error::other("a panic"))?;
            accepted.and(answered)
        });
        outcome.map_err(|source| ServiceError::Serve {
            address: self.address,
            source,
        })?;
        Ok(begun.elapsed())
    }

    fn accept<'scope, 'env: 'scope, F>(
        &'env self,
        scope: &'scope thread::Scope<'scope, 'env>,
        served: &'env Served,
        is_over: &'scope F,
    ) -> io::Result<()>
    where
        F: Fn() -> bool + Sync,
    {
        let spare = Spare::default();
        while !is_over() {
            if !sockets::poll_once(&self.tcp, PollFlags::IN)? {
                continue;
            }
            let (stream, peer) = match self.tcp.accept() {
                Ok(accepted) => accepted,
                Err(source) if is_exhausted(&source) => {
                    spare.turn_away(&self.tcp);
                    let peer = Caller(None);
                    served.refuse(ClientRefusal::Descriptor { peer, source });
                    continue;
                }
                // Gone before it was accepted: not the end of the service.
                Err(_) => {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                }
            };
            let (peer, address) = (Caller::from(peer), peer.ip());
            if served.is_full() {
                served.refuse_for_want(peer);
                continue;
            }
            if !served.open().has_room(address, 1) {
                served.refuse_for_share(peer);
                continue;
            }
            // Perhaps it is one that was refused before.
            served.take_waiting();
            served.open().take(address);
            let serve = move || {
                add(&served.connections, 1);
                // A connection that fails has ended; its client is told by the kernel.
                let _ = serve_connection(stream, served, is_over);
                served.open().give_back(address);
            };
            let named = thread::Builder::new().name(String::from("nicpoll-rr-tcp"));
            if let Err(source) = named.spawn_scoped(scope, serve) {
                served.open().give_back(address);
                served.refuse(ClientRefusal::Thread { peer, source });
            }
        }
        Ok(())
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    // Connections of an earlier server may still be in TIME_WAIT.
    sockopt::set_socket_reuseaddr(&fd, true)?;
    rustix::net::bind(&fd, &address)?;
    rustix::net::listen(&fd, BACKLOG)?;
    Ok(TcpListener::from(fd))
}

fn serve_udp(socket: &UdpSocket, served: &Counters, is_over: &dyn Fn() -> bool) -> io::Result<()> {
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    while !is_over() {
        let (length, source) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(error) if sockets::is_no_datagram(&error) => continue,
            Err(error) => return Err(error),
        };
        add(&served.bytes_received, length);
        let Some(request) = datagram_request(&buffer[..length]) else {
            add(&served.foreign, 1);
            continue;
        };
        add(&served.requests, 1);
        // The request's own filler goes back behind the new head: no longer than it came.
        let response = &mut buffer[..request.response_bytes as usize];
        response[..Message::BYTES].copy_from_slice(&request.response().to_bytes());
        // What cannot be sent to one peer is no reason to stop answering the others.
        match socket.send_to(response, source) {
            Ok(sent) => {
                add(&served.responses, 1);
                add(&served.bytes_sent, sent);
            }
            Err(_) => add(&served.refused, 1),
        }
    }
    Ok(())
}
