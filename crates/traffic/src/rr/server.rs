//! The ends that answer: [`Server`] for the one requester of a trial, [`Service`] for anyone, over UDP and TCP.
//!
//! A datagram is answered with no more bytes than it had, so a forged address gets no more than was spent on it. Connections
//! are bounded in number, in memory, and in how long they may be silent or leave responses unread; while clients are refused
//! for want of a connection, idle ones are closed much sooner, and no address has all of them. Whatever is sent, the service
//! goes on.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::traffic::RrServed;
use nicpoll_sys::socket;
use nicpoll_wire::rr::{Decoder, Message, MessageKind};
use rustix::event::PollFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use thiserror::Error;

use crate::admission::{AddressShares, Caller, ClientRefusal, Spare, is_exhausted};
use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets::{self, RefusedSends, SocketBuffer};
use crate::udp_server::{BoundUdp, ServerConfig, ServerError};

/// The request that a datagram of a stranger is; `None` when it is none, or when its response would be
/// longer: an address that may be forged is never sent more than came from it.
fn datagram_request(datagram: &[u8]) -> Option<Message> {
    let message = Message::parse(datagram).ok()?;
    let is_answered =
        message.kind == MessageKind::Request && message.response_bytes <= message.bytes;
    is_answered.then_some(message)
}

/// The longest time to empty the socket after the requester is done.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// How the answering ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// [`Signals::sender_done`] was set and the socket is empty.
    SenderDone,
    /// No request came for the idle timeout.
    Idle,
}

/// What the responder counted.
#[derive(Clone, Copy, Debug)]
pub struct RrServerReport {
    /// The requester; `None` when nobody came.
    pub peer: Option<SocketAddr>,
    /// Requests that were read.
    pub requests_received: u64,
    /// Responses that the kernel took,
    pub responses_sent: u64,
    /// and those that it refused.
    pub refused_sends: RefusedSends,
    /// Datagrams of other peers, and those that are no requests.
    pub foreign_datagrams: u64,
    /// From the first request to the last.
    pub seconds: f64,
    /// How it ended.
    pub end: End,
    /// The receive buffer.
    pub receive_buffer: SocketBuffer,
}

/// A bound responder, for one requester unless it is for all.
#[derive(Debug)]
pub struct Server {
    bound: BoundUdp,
    is_for_all: bool,
}

impl Server {
    /// Binds the socket; requests are queued from now on.
    ///
    /// # Errors
    /// [`ServerError::Bind`] and [`ServerError::Setup`].
    pub fn bind(config: &ServerConfig) -> Result<Self, ServerError> {
        let bound = BoundUdp::bind(config)?;
        Ok(Server {
            bound,
            is_for_all: false,
        })
    }

    /// The responder, for every requester that comes.
    pub(crate) fn for_all(self) -> Self {
        Server {
            is_for_all: true,
            ..self
        }
    }

    /// The address bound to, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.bound.address
    }

    /// Answers requests until the requester is done. The first request decides whose, unless it is for all.
    ///
    /// # Errors
    /// See [`ServerError`]. A requester that never comes is no error: see [`RrServerReport::end`].
    pub fn run(self, signals: &Signals) -> Result<RrServerReport, ServerError> {
        let bound = &self.bound;
        let mut responder = Responder {
            bound,
            is_for_all: self.is_for_all,
            peer: None,
            requests_received: 0,
            responses_sent: 0,
            refused_sends: RefusedSends::default(),
            foreign_datagrams: 0,
        };
        let mut begun = None;
        let mut last = Instant::now();
        let mut draining_since = None;
        let end = loop {
            if signals.is_cancelled() {
                return Err(ServerError::Cancelled);
            }
            // Looked at before the receive, so that an empty socket afterwards is empty for good.
            let is_draining = signals.is_sender_done();
            if is_draining && draining_since.is_none() {
                bound
                    .socket
                    .set_nonblocking(true)
                    .map_err(|source| bound.receive_failed(source))?;
                draining_since = Some(Instant::now());
            }
            let received = responder.serve_one()?;
            let now = Instant::now();
            if received == Received::Request {
                begun.get_or_insert(now);
                last = now;
            }
            if let Some(since) = draining_since {
                if received == Received::Nothing || now.duration_since(since) >= DRAIN_LIMIT {
                    break End::SenderDone;
                }
            } else if now.duration_since(last) >= bound.idle_timeout {
                break End::Idle;
            }
        };
        Ok(RrServerReport {
            peer: responder.peer,
            requests_received: responder.requests_received,
            responses_sent: responder.responses_sent,
            refused_sends: responder.refused_sends,
            foreign_datagrams: responder.foreign_datagrams,
            seconds: begun.map_or(0.0, |begun| last.duration_since(begun).as_secs_f64()),
            end,
            receive_buffer: bound.receive_buffer,
        })
    }
}

#[derive(PartialEq, Eq)]
enum Received {
    Request,
    Other,
    Nothing,
}

struct Responder<'a> {
    bound: &'a BoundUdp,
    is_for_all: bool,
    peer: Option<SocketAddr>,
    requests_received: u64,
    responses_sent: u64,
    refused_sends: RefusedSends,
    foreign_datagrams: u64,
}

impl Responder<'_> {
    /// One receive, and the response when it was a request.
    fn serve_one(&mut self) -> Result<Received, ServerError> {
        // One byte more than a message, so that a longer datagram is not taken for one.
        let mut buffer = [0; Message::BYTES + 1];
        let (length, source) = match self.bound.socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(Received::Nothing);
            }
            Err(error) if sockets::is_no_datagram(&error) => return Ok(Received::Other),
            Err(source) => return Err(self.bound.receive_failed(source)),
        };
        let request = datagram_request(&buffer[..length])
            .filter(|_| self.is_for_all || self.peer.is_none_or(|peer| peer == source));
        let Some(request) = request else {
            self.foreign_datagrams += 1;
            return Ok(Received::Other);
        };
        self.requests_received += 1;
        self.answer(source, request)?;
        Ok(Received::Request)
    }

    fn answer(&mut self, peer: SocketAddr, request: Message) -> Result<(), ServerError> {
        if self.peer.is_none() {
            if !self.is_for_all {
                self.bound.connect(peer)?;
            }
            self.peer = Some(peer);
        }
        let response = request.response().to_bytes();
        let refused = &mut self.refused_sends;
        let is_sent = match self.is_for_all {
            true => self.bound.answer_one(peer, &response, refused)?,
            false => self.bound.answer(peer, &response, refused)?,
        };
        if is_sent {
            self.responses_sent += 1;
        }
        Ok(())
    }
}

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

/// Silence, or unread responses, after which a connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The same while others are refused: the least rate of a connection in a full service is a request a second.
const IDLE_TIMEOUT_CROWDED: Duration = Duration::from_secs(1);
/// Read from a connection at a time.
const READ_BYTES: usize = 65_536;
/// Head and filler that are written at once, so that a short response is one segment.
const FIRST_WRITE_BYTES: usize = 2_048;
/// What responses are filled with, piece by piece.
static FILLER: [u8; READ_BYTES] = [0; READ_BYTES];

/// Answers a client's requests until it has no more, says what is none, or keeps silent.
pub(super) fn serve_connection(
    mut stream: TcpStream,
    served: &Served,
    is_over: &dyn Fn() -> bool,
) -> io::Result<()> {
    // Whether nothing has come of it for too long since then.
    let is_idle = |since: Instant| {
        let silence = since.elapsed();
        silence >= IDLE_TIMEOUT || silence >= IDLE_TIMEOUT_CROWDED && served.wants_room()
    };
    let counters = &served.tcp;
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    stream.set_write_timeout(Some(LOOK_EVERY))?;
    let mut buffer = vec![0; READ_BYTES];
    let mut decoder = Decoder::default();
    let mut last_request = Instant::now();
    while !is_over() && !is_idle(last_request) {
        let length = match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if sockets::is_no_progress(&error) => continue,
            Err(error) => return Err(error),
        };
        add(&counters.bytes_received, length);
        let mut received = &buffer[..length];
        loop {
            let message = match decoder.next(&mut received) {
                Ok(Some(message)) if message.kind == MessageKind::Request => message,
                Ok(None) => break,
                // Where the next message would begin is not known any more.
                Ok(Some(_)) | Err(_) => {
                    add(&counters.foreign, 1);
                    return Ok(());
                }
            };
            last_request = Instant::now();
            add(&counters.requests, 1);
            // A reader that takes nothing for a while is as idle as one that asks nothing.
            let is_given_up = |since| is_over() || is_idle(since);
            respond(&mut stream, message.response(), &is_given_up)?;
            add(&counters.responses, 1);
            add(&counters.bytes_sent, message.response_bytes as usize);
        }
    }
    Ok(())
}

/// Writes a response, as long as its reader takes some of it from time to time.
fn respond(
    stream: &mut TcpStream,
    response: Message,
    is_given_up: &dyn Fn(Instant) -> bool,
) -> io::Result<()> {
    let filler = response.bytes as usize - Message::BYTES;
    let mut head = [0; FIRST_WRITE_BYTES];
    let joined = filler.min(head.len() - Message::BYTES);
    head[..Message::BYTES].copy_from_slice(&response.to_bytes());
    write_all(stream, &head[..Message::BYTES + joined], is_given_up)?;
    let mut left = filler - joined;
    while left > 0 {
        let piece = left.min(FILLER.len());
        write_all(stream, &FILLER[..piece], is_given_up)?;
        left -= piece;
    }
    Ok(())
}

fn write_all(
    stream: &mut TcpStream,
    mut bytes: &[u8],
    is_given_up: &dyn Fn(Instant) -> bool,
) -> io::Result<()> {
    let mut last_taken = Instant::now();
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(written) => {
                bytes = &bytes[written..];
                last_taken = Instant::now();
            }
            Err(error) if sockets::is_no_progress(&error) => {
                if is_given_up(last_taken) {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
