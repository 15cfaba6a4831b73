//! The server: [`Service`] for anyone, over UDP and TCP, and [`Responder`] for the clients of a trial, over
//! UDP.
//!
//! A datagram gets no longer answer than itself, so a request with a forged address cannot amplify traffic.
//! Connections are limited in number, in memory, and in how long they may be silent or leave responses unread.
//! When all are in use, a newcomer replaces the oldest idle one; and no address may use all of them. Whatever
//! arrives, the service goes on.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::traffic::RrServed;
use nicpoll_sys::socket;
use nicpoll_wire::rr::{Decoder, Message, MessageKind};
use rustix::event::PollFlags;
use rustix::net::{SocketFlags, SocketType, sockopt};

use crate::admission::{
    Admission, Caller, ClientRefusal, ServerSlot, SlotLimits, Spare, is_exhausted,
};
use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets::{self, RefusedSends};
use crate::udp_server::BoundUdp;
use crate::workload::WorkloadError;

/// Limit on emptying the socket after the clients are done.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// Answers datagrams, and counts them.
struct AnsweredDatagrams<'a> {
    socket: &'a UdpSocket,
    served: &'a ProtocolCounts,
    /// Responses that the kernel refused for the moment.
    refused: RefusedSends,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Came {
    Request,
    Other,
    Nothing,
}

impl<'a> AnsweredDatagrams<'a> {
    fn new(socket: &'a UdpSocket, served: &'a ProtocolCounts) -> Self {
        AnsweredDatagrams {
            socket,
            served,
            refused: RefusedSends::default(),
            buffer: vec![0; DATAGRAM_BYTES_MAX],
        }
    }

    /// Receives once; answers a request.
    fn serve_one(&mut self) -> io::Result<Came> {
        let (length, source) = match self.socket.recv_from(&mut self.buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Came::Nothing),
            Err(error) if sockets::is_no_datagram(&error) => return Ok(Came::Other),
            Err(error) => return Err(error),
        };
        let served = self.served;
        add(&served.bytes_received, length);
        // A response longer than its request could amplify traffic to a forged address.
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
        // The response keeps the request's filler after a new head.
        let response = &mut self.buffer[..request.response_bytes as usize];
        response[..Message::BYTES].copy_from_slice(&request.response().to_bytes());
        // A failure to send to one peer must not stop the answers to others.
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

/// Answers the clients of a trial over UDP.
pub(super) struct Responder(pub BoundUdp);

/// The result of a responder.
pub(super) struct Responded {
    pub served: RrServed,
    /// Responses that the kernel refused for the moment.
    pub refused: RefusedSends,
    /// From the first request to the last.
    pub seconds: f64,
    /// Whether it gave up after a long silence.
    pub is_idle: bool,
}

impl Responder {
    /// Answers until the clients are done and the socket is empty.
    pub fn run(&self, signals: &Signals) -> Result<Responded, WorkloadError> {
        let failed = |source| WorkloadError::failed(self.0.receive_failed(source));
        let served = ProtocolCounts::default();
        let mut datagrams = AnsweredDatagrams::new(&self.0.socket, &served);
        let (mut first, mut last) = (None, Instant::now());
        let mut drained_by = None;
        let is_idle = loop {
            signals.check()?;
            // Checked before the receive: if the socket is then empty, it stays empty.
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

/// Connections at a time.
const CONNECTIONS: SlotLimits = SlotLimits {
    all: 128,
    of_address: 128 / 8 * 7,
    in_use: "all 128 connections are in use",
    rule: "is refused; a connection that asks nothing for 1 s makes room for the next one",
    what: "connections",
};
/// Connections waiting to be accepted.
const BACKLOG: i32 = 128;
/// The longest datagram.
const DATAGRAM_BYTES_MAX: usize = 65_535;
/// Holds a burst of requests while the thread does not run.
const UDP_RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// Where to serve.
#[derive(Clone, Copy, Debug)]
pub struct ServiceConfig {
    /// Address and port, for both protocols. IPv6's unspecified address takes IPv4, too.
    pub bind: SocketAddr,
    /// How long to serve; `None` until the signals end it.
    pub duration: Option<Duration>,
}

/// Counts of the service; may be read while they grow.
#[derive(Debug)]
pub struct Served {
    udp: ProtocolCounts,
    tcp: ProtocolCounts,
    connections: AtomicU64,
    refused_connections: AtomicU64,
    admission: Admission,
}

/// The counts of one protocol.
#[derive(Debug, Default)]
struct ProtocolCounts {
    requests: AtomicU64,
    responses: AtomicU64,
    refused: AtomicU64,
    foreign: AtomicU64,
    bytes_received: AtomicU64,
    bytes_sent: AtomicU64,
}

impl ProtocolCounts {
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
            udp: ProtocolCounts::default(),
            tcp: ProtocolCounts::default(),
            connections: AtomicU64::default(),
            refused_connections: AtomicU64::default(),
            admission: Admission::new(CONNECTIONS),
        }
    }
}

impl Served {
    /// Counts of UDP.
    pub fn udp(&self) -> RrServed {
        self.udp.look()
    }

    /// Counts of TCP.
    pub fn tcp(&self) -> RrServed {
        self.tcp.look()
    }

    /// Connections served.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Takes the reason of the last refusal that was not yet reported.
    pub fn refusal(&self) -> Option<ClientRefusal> {
        self.admission.refusal()
    }

    fn refuse(&self, refusal: ClientRefusal) {
        add(&self.refused_connections, 1);
        self.admission.refuse(refusal);
    }

    /// Connections closed at once, because of the limit or for lack of a descriptor or thread.
    pub fn refused_connections(&self) -> u64 {
        self.refused_connections.load(Ordering::Relaxed)
    }
}

/// Bound sockets: the kernel queues datagrams and connections from now on.
#[derive(Debug)]
pub struct Service {
    udp: UdpSocket,
    tcp: TcpListener,
    address: SocketAddr,
    duration: Option<Duration>,
}

impl Service {
    /// Binds both sockets to one port; with port 0 the kernel chooses it.
    ///
    /// # Errors
    /// When the address or the port is not available.
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

    /// The address bound to, with the actual port.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the time is up or one of the `signals` is set; returns how long that was. Keeps `served` up
    /// to date.
    ///
    /// # Errors
    /// When its sockets or threads fail permanently.
    pub fn run(&self, signals: &Signals, served: &Served) -> Result<Duration, WorkloadError> {
        let begun = Instant::now();
        let has_failed = AtomicBool::new(false);
        let is_over = || {
            let is_late = self.duration.is_some_and(|end| begun.elapsed() >= end);
            let is_ended = signals.is_finishing() || signals.is_sender_done();
            is_late || is_ended || signals.is_cancelled() || has_failed.load(Ordering::Relaxed)
        };
        let guarded = |outcome: io::Result<()>| {
            // One protocol must not continue without the other.
            has_failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
            outcome
        };
        let outcome = thread::scope(|scope| {
            let answering = thread::Builder::new()
                .name(String::from("nicpoll-rr-udp"))
                .spawn_scoped(scope, || {
                    let mut datagrams = AnsweredDatagrams::new(&self.udp, &served.udp);
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
                // The client left before it was accepted: the service goes on.
                Err(_) => {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                }
            };
            let Some(slot) = served.admission.admit(peer, 1) else {
                add(&served.refused_connections, 1);
                continue;
            };
            let serve = move || {
                add(&served.connections, 1);
                // A failed connection has ended; the kernel tells its client.
                let _ = serve_connection(stream, &slot, served, is_over);
            };
            let named = thread::Builder::new().name(String::from("nicpoll-rr-tcp"));
            if let Err(source) = named.spawn_scoped(scope, serve) {
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

/// How long a connection may be silent, or leave responses unread.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// After this a newcomer may replace it: at least one request per second keeps a connection.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// Most bytes per read of a connection.
const READ_BYTES: usize = 65_536;
/// Head and filler written at once, so a short response is one segment.
const FIRST_WRITE_BYTES: usize = 2_048;
/// Filler of responses, written in pieces.
static FILLER: [u8; READ_BYTES] = [0; READ_BYTES];

/// Answers a client's requests until it closes, sends something else, or goes silent.
fn serve_connection(
    mut stream: TcpStream,
    slot: &ServerSlot,
    served: &Served,
    is_over: &dyn Fn() -> bool,
) -> io::Result<()> {
    // Whether the connection has made no progress for too long.
    let is_idle = |since: Instant| {
        let silence = since.elapsed();
        slot.set_idle(silence >= IDLE_AFTER);
        silence >= IDLE_TIMEOUT || slot.is_replaced()
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
                // The start of the next message is unknown.
                Ok(Some(_)) | Err(_) => {
                    add(&counters.foreign, 1);
                    return Ok(());
                }
            };
            last_request = Instant::now();
            add(&counters.requests, 1);
            // A client that leaves responses unread is as idle as one that requests nothing.
            let is_given_up = |since| is_over() || is_idle(since);
            respond(&mut stream, message.response(), &is_given_up)?;
            add(&counters.responses, 1);
            add(&counters.bytes_sent, message.response_bytes as usize);
        }
    }
    Ok(())
}

/// Writes a response as long as the client keeps reading.
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
