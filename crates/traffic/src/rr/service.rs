//! The end that answers anyone, over UDP and TCP at one port, until it is told to stop.
//!
//! What must hold: a datagram is answered with no more bytes than it had, so that a forged address gets
//! no more than was spent on it. Connections are bounded in number, in what is kept for each, and in
//! how long they may be silent or leave their responses unread. Whatever is sent, the service goes on.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::rr::RrServed;
use nicpoll_sys::socket;
use nicpoll_wire::rr::{Decoder, Kind, Message};
use rustix::event::PollFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use thiserror::Error;

use super::datagram_request;
use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets;

/// Connections served at a time.
const CONNECTIONS_MAX: usize = 128;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// Silence, or unread responses, after which a connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest datagram there is.
const DATAGRAM_BYTES_MAX: usize = 65_535;
/// Read from a connection at a time.
const READ_BYTES: usize = 65_536;
/// Enough that a burst of requests is not lost while the thread is not running.
const UDP_RECEIVE_BUFFER_BYTES: usize = 4 << 20;
/// Head and filler that are written at once, so that a short response is one segment.
const FIRST_WRITE_BYTES: usize = 2_048;
/// What responses are filled with, piece by piece.
static FILLER: [u8; READ_BYTES] = [0; READ_BYTES];

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
#[derive(Debug, Default)]
pub struct Served {
    udp: Counters,
    tcp: Counters,
    connections: AtomicU64,
    refused_connections: AtomicU64,
    open: AtomicUsize,
}

#[derive(Debug, Default)]
struct Counters {
    requests: AtomicU64,
    responses: AtomicU64,
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
            foreign_messages: read(&self.foreign),
            bytes_received: read(&self.bytes_received),
            bytes_sent: read(&self.bytes_sent),
        }
    }
}

fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Ordering::Relaxed);
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

    /// Connections closed at once, there being too many.
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
        let has_failed = std::sync::atomic::AtomicBool::new(false);
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
        while !is_over() {
            if !sockets::poll_once(&self.tcp, PollFlags::IN)? {
                continue;
            }
            let stream = match self.tcp.accept() {
                Ok((stream, _)) => stream,
                // Aborted meanwhile, or no descriptors for now: neither is the end of the service.
                Err(_) => {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                }
            };
            if served.open.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
                add(&served.refused_connections, 1);
                continue;
            }
            served.open.fetch_add(1, Ordering::Relaxed);
            let serve = move || {
                add(&served.connections, 1);
                // A connection that fails has ended; its client is told by the kernel.
                let _ = serve_connection(stream, &served.tcp, is_over);
                served.open.fetch_sub(1, Ordering::Relaxed);
            };
            let named = thread::Builder::new().name(String::from("nicpoll-rr-tcp"));
            if named.spawn_scoped(scope, serve).is_err() {
                served.open.fetch_sub(1, Ordering::Relaxed);
                add(&served.refused_connections, 1);
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
        if let Ok(sent) = socket.send_to(response, source) {
            add(&served.responses, 1);
            add(&served.bytes_sent, sent);
        }
    }
    Ok(())
}

fn serve_connection(
    mut stream: TcpStream,
    served: &Counters,
    is_over: &dyn Fn() -> bool,
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    stream.set_write_timeout(Some(LOOK_EVERY))?;
    let mut buffer = vec![0; READ_BYTES];
    let mut decoder = Decoder::default();
    let mut last_request = Instant::now();
    while !is_over() && last_request.elapsed() < IDLE_TIMEOUT {
        let length = match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if sockets::is_no_progress(&error) => continue,
            Err(error) => return Err(error),
        };
        add(&served.bytes_received, length);
        let mut received = &buffer[..length];
        loop {
            let message = match decoder.next(&mut received) {
                Ok(Some(message)) if message.kind == Kind::Request => message,
                Ok(None) => break,
                // Where the next message would begin is not known any more.
                Ok(Some(_)) | Err(_) => {
                    add(&served.foreign, 1);
                    return Ok(());
                }
            };
            last_request = Instant::now();
            add(&served.requests, 1);
            respond(&mut stream, message.response(), is_over)?;
            add(&served.responses, 1);
            add(&served.bytes_sent, message.response_bytes as usize);
        }
    }
    Ok(())
}

/// Writes a response, as long as its reader takes some of it from time to time.
fn respond(
    stream: &mut TcpStream,
    response: Message,
    is_over: &dyn Fn() -> bool,
) -> io::Result<()> {
    let filler = response.bytes as usize - Message::BYTES;
    let mut head = [0; FIRST_WRITE_BYTES];
    let joined = filler.min(head.len() - Message::BYTES);
    head[..Message::BYTES].copy_from_slice(&response.to_bytes());
    write_all(stream, &head[..Message::BYTES + joined], is_over)?;
    let mut left = filler - joined;
    while left > 0 {
        let piece = left.min(FILLER.len());
        write_all(stream, &FILLER[..piece], is_over)?;
        left -= piece;
    }
    Ok(())
}

fn write_all(
    stream: &mut TcpStream,
    mut bytes: &[u8],
    is_over: &dyn Fn() -> bool,
) -> io::Result<()> {
    let mut last_taken = Instant::now();
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(written) => {
                bytes = &bytes[written..];
                last_taken = Instant::now();
            }
            Err(error) if sockets::is_no_progress(&error) => {
                if is_over() || last_taken.elapsed() >= IDLE_TIMEOUT {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
