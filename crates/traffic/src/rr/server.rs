//! The end that answers: [`Service`] for anyone, over UDP and TCP, and [`Responder`] for the requesters of a trial, over
//! UDP.
//!
//! A datagram is answered with no more bytes than it had, so a forged address gets no more than was spent on it. Connections
//! are bounded in number, in memory, and in how long they may be silent or leave responses unread; while clients are refused
//! for want of a connection, idle ones are closed much sooner, and no address has all of them. Whatever is sent, the service
//! goes on.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::traffic::RrServed;
use nicpoll_sys::socket;
use nicpoll_wire::rr::{Decoder, Message, MessageKind};
use rustix::event::PollFlags;
use rustix::net::{SocketFlags, SocketType, sockopt};

use crate::admission::{AddressShares, Caller, ClientRefusal, Spare, is_exhausted};
use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets::{self, RefusedSends};
use crate::udp_server::BoundUdp;
use crate::workload::WorkloadError;

/// The longest time to empty the socket after the requesters are done.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// Answers datagrams, and counts.
struct Datagrams<'a> {
    socket: &'a UdpSocket,
    served: &'a Counters,
    /// Responses that the kernel refused for now.
    refused: RefusedSends,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Came {
    Request,
    Other,
    Nothing,
}

impl<'a> Datagrams<'a> {
    fn new(socket: &'a UdpSocket, served: &'a Counters) -> Self {
        Datagrams {
            socket,
            served,
            refused: RefusedSends::default(),
            buffer: vec![0; DATAGRAM_BYTES_MAX],
        }
    }

    /// One receive, and the response when it was a request.
    fn serve_one(&mut self) -> io::Result<Came> {
        let (length, source) = match self.socket.recv_from(&mut self.buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Came::Nothing),
            Err(error) if sockets::is_no_datagram(&error) => return Ok(Came::Other),
            Err(error) => return Err(error),
        };
        let served = self.served;
        add(&served.bytes_received, length);
        // An address that may be forged is never sent more than came from it.
        let request = Message::parse(&self.buffer[..length])
            .ok()
            .filter(|message| {
                message.kind == MessageKind::Request && message.response_bytes <= message.bytes
            });
        let Some(request) = request else {
            add(&served.foreign, 1);
            return Ok(Came::Other);
        };
        add(&served.requests, 1);
        // The request's own filler goes back behind the new head: no longer than it came.
        let response = &mut self.buffer[..request.response_bytes as usize];
        response[..Message::BYTES].copy_from_slice(&request.response().to_bytes());
        // What cannot be sent to one peer is no reason to stop answering the others.
        match self.socket.send_to(response, source) {
            Ok(sent) => {
                add(&served.responses, 1);
                add(&served.bytes_sent, sent);
            }
            Err(error) => {
                add(&served.refused, 1);
                self.refused.note(&error, 1);
            }
        }
        Ok(Came::Request)
    }
}

/// Answers the requesters of a trial over UDP.
pub(super) struct Responder(pub BoundUdp);

/// What a responder came to.
pub(super) struct Responded {
    pub served: RrServed,
    /// Responses that the kernel refused for now.
    pub refused: RefusedSends,
    /// From the first request to the last.
    pub seconds: f64,
    /// Whether no request came for so long that it gave up.
    pub is_idle: bool,
}

impl Responder {
    /// Answers until the requesters are done and the socket is empty.
    pub fn run(&self, signals: &Signals) -> Result<Responded, WorkloadError> {
        let failed = |source| WorkloadError::failed(self.0.receive_failed(source));
        let served = Counters::default();
        let mut datagrams = Datagrams::new(&self.0.socket, &served);
        let (mut first, mut last) = (None, Instant::now());
        let mut drained_by = None;
        let is_idle = loop {
            signals.check()?;
            // Looked at before the receive, so that an empty socket afterwards is empty for good.
            if signals.is_sender_done() && drained_by.is_none() {
                self.0.socket.set_nonblocking(true).map_err(failed)?;
                drained_by = Some(Instant::now() + DRAIN_LIMIT);
            }
            let came = datagrams.serve_one().map_err(failed)?;
            let now = Instant::now();
            if came == Came::Request {
                first.get_or_insert(now);
                last = now;
            }
            match drained_by {
                Some(end) if came == Came::Nothing || now >= end => break false,
                None if now.duration_since(last) >= self.0.idle_timeout => break true,
                _ => {}
            }
        };
        Ok(Responded {
            served: served.look(),
            refused: datagrams.refused,
            seconds: first.map_or(0.0, |first| last.duration_since(first).as_secs_f64()),
            is_idle,
        })
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

/// What was done so far. It may be read while it grows.
#[derive(Debug)]
pub struct Served {
    udp: Counters,
    tcp: Counters,
    connections: AtomicU64,
    refused_connections: AtomicU64,
    places: Mutex<Places>,
}

/// Who has connections, and who has none.
#[derive(Debug)]
struct Places {
    open: AddressShares,
    /// Clients that were refused for want of a connection, and for each of whom one is to make room.
    waiting: usize,
    refusal: Option<ClientRefusal>,
}

/// What was done over one protocol.
#[derive(Debug, Default)]
struct Counters {
    requests: AtomicU64,
    responses: AtomicU64,
    refused: AtomicU64,
    foreign: AtomicU64,
    bytes_received: AtomicU64,
    bytes_sent: AtomicU64,
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

fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Ordering::Relaxed);
}

impl Default for Served {
    fn default() -> Self {
        Served {
            udp: Counters::default(),
            tcp: Counters::default(),
            connections: AtomicU64::default(),
            refused_connections: AtomicU64::default(),
            places: Mutex::new(Places {
                open: AddressShares::new(CONNECTIONS_PER_ADDRESS),
                waiting: 0,
                refusal: None,
            }),
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
        self.places().refusal.take()
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        // A panic elsewhere leaves what is locked as it is.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a connection, or says why there is none.
    fn take(&self, address: SocketAddr) -> Result<(), ClientRefusal> {
        let (mut places, peer) = (self.places(), Caller::from(address));
        if places.open.taken() >= CONNECTIONS_MAX {
            // Room for more than there are connections cannot be made.
            places.waiting = CONNECTIONS_MAX.min(places.waiting + 1);
            let (in_use, rule) = (IN_USE, RULE);
            return Err(ClientRefusal::Full { peer, in_use, rule });
        }
        if !places.open.has_room(address.ip(), 1) {
            let (most, what) = (CONNECTIONS_PER_ADDRESS, "connections");
            return Err(ClientRefusal::Share { peer, most, what });
        }
        // Perhaps it is one that was refused before.
        places.waiting = places.waiting.saturating_sub(1);
        places.open.take(address.ip());
        Ok(())
    }

    /// Whether a connection that does next to nothing is to end, so that another client has its place. Of
    /// several that ask, as many are told so as clients were refused.
    fn wants_room(&self) -> bool {
        let mut places = self.places();
        let wants = places.open.taken() >= CONNECTIONS_MAX && places.waiting > 0;
        places.waiting -= usize::from(wants);
        wants
    }

    fn refuse(&self, refusal: ClientRefusal) {
        add(&self.refused_connections, 1);
        self.places().refusal = Some(refusal);
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
    /// When the address or the port cannot be had.
    pub fn bind(config: &ServiceConfig) -> Result<Self, WorkloadError> {
        let bound = || {
            let tcp = listen(config.bind)?;
            let address = tcp.local_addr()?;
            let udp = UdpSocket::bind(address)?;
            socket::set_receive_buffer(&udp, UDP_RECEIVE_BUFFER_BYTES)?;
            udp.set_read_timeout(Some(LOOK_EVERY))?;
            udp.set_write_timeout(Some(sockets::SEND_TIMEOUT))?;
            Ok((udp, tcp, address))
        };
        let (udp, tcp, address) = bound().map_err(WorkloadError::because(format!(
            "cannot answer at {}; see whether it is local and the port free",
            config.bind
        )))?;
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

    /// Answers until the time is up or one of the `signals` is set. Returns how long that was. Counts as it goes in
    /// `served`.
    ///
    /// # Errors
    /// When its sockets or threads fail for good.
    pub fn run(&self, signals: &Signals, served: &Served) -> Result<Duration, WorkloadError> {
        let begun = Instant::now();
        let has_failed = AtomicBool::new(false);
        let is_over = || {
            let is_late = self.duration.is_some_and(|end| begun.elapsed() >= end);
            let is_ended = signals.is_finishing() || signals.is_sender_done();
            is_late || is_ended || signals.is_cancelled() || has_failed.load(Ordering::Relaxed)
        };
        let guarded = |outcome: io::Result<()>| {
            // The other half must not go on alone.
            has_failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
            outcome
        };
        let outcome = thread::scope(|scope| {
            let answering = thread::Builder::new()
                .name(String::from("nicpoll-rr-udp"))
                .spawn_scoped(scope, || {
                    let mut datagrams = Datagrams::new(&self.udp, &served.udp);
                    while !is_over() {
                        guarded(datagrams.serve_one().map(|_| ()))?;
                    }
                    Ok(())
                })?;
            let accepted = guarded(self.accept(scope, served, &is_over));
            let answered = answering.join().map_err(|_| io::Error::other("a panic"))?;
            accepted.and(answered)
        });
        outcome.map_err(|source| self.failed(source))?;
        Ok(begun.elapsed())
    }

    pub(super) fn failed(&self, source: io::Error) -> WorkloadError {
        WorkloadError::because(format!(
            "cannot go on answering at {}; see whether the interface is still there",
            self.address
        ))(source)
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
            if let Err(refusal) = served.take(peer) {
                served.refuse(refusal);
                continue;
            }
            let serve = move || {
                add(&served.connections, 1);
                // A connection that fails has ended; its client is told by the kernel.
                let _ = serve_connection(stream, served, is_over);
                served.places().open.give_back(peer.ip());
            };
            let named = thread::Builder::new().name(String::from("nicpoll-rr-tcp"));
            if let Err(source) = named.spawn_scoped(scope, serve) {
                served.places().open.give_back(peer.ip());
                let peer = Caller::from(peer);
                served.refuse(ClientRefusal::Thread { peer, source });
            }
        }
        Ok(())
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let fd = sockets::open(address, SocketType::STREAM, SocketFlags::NONBLOCK)?;
    // Connections of an earlier server may still be in TIME_WAIT.
    sockopt::set_socket_reuseaddr(&fd, true)?;
    rustix::net::bind(&fd, &address)?;
    rustix::net::listen(&fd, BACKLOG)?;
    Ok(TcpListener::from(fd))
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
fn serve_connection(
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
    sockets::make_blocking(&stream)?;
    stream.set_nodelay(true)?;
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
