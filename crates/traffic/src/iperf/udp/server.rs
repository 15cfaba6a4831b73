//! The receiving end of a UDP stream.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use nicpoll_sys::socket::{self, Datagram, ReceiveBatch, Wait};
use nicpoll_wire::iperf::DatagramHeader;
use nicpoll_wire::iperf::datagram::PAYLOAD_BYTES_MAX;
use thiserror::Error;

use super::session::Session;
use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets::{self, SocketBuffer};

/// Datagrams taken with one system call, at most.
const BATCH_DATAGRAMS: usize = 64;
/// Silence that ends the session after a FIN, as in 2.1.8.
const SILENCE_AFTER_FIN: Duration = Duration::from_millis(250);
/// A client's FINs take 2 s; whoever sends for longer is not listened to.
const CLOSING_LIMIT: Duration = Duration::from_secs(4);
/// The longest time to empty the socket after the sender is done.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// Where and how to receive.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// Address to receive at; port 0 lets the kernel choose.
    pub bind: SocketAddr,
    /// Receive buffer to ask for; `None` leaves it to the kernel.
    pub receive_buffer_bytes: Option<usize>,
    /// How long to wait for a datagram, the first and each further one.
    pub idle_timeout: Duration,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The client's FIN came, and silence after it.
    Fin,
    /// [`Signals::sender_done`] was set and the socket is empty.
    SenderDone,
    /// Nothing came for the idle timeout.
    Idle,
}

/// What the server counted. FINs are no data: they are in no other figure.
#[derive(Clone, Copy, Debug)]
pub struct ServerReport {
    /// The client; `None` when nobody came.
    pub peer: Option<SocketAddr>,
    /// Datagrams of data that were read, duplicates included.
    pub datagrams_received: u64,
    /// Their payload.
    pub bytes_received: u64,
    /// From the first datagram to the last one of data.
    pub seconds: f64,
    /// Ids up to the highest known that did not arrive. The first FIN tells of the last ones, and
    /// of one too many for each FIN that was lost before it.
    pub lost: u64,
    /// Datagrams that arrived after a later one.
    pub out_of_order: u64,
    /// Datagrams whose id had arrived before.
    pub duplicates: u64,
    /// Jitter after RFC 3550 section 6.4.1 from the kernel's times of arrival; `None` below two
    /// datagrams.
    pub jitter_seconds: Option<f64>,
    /// FINs that were read.
    pub fins_received: u64,
    /// Answers to them that the kernel took.
    pub fin_acks_sent: u64,
    /// Datagrams of other peers, and those that are none of iperf's.
    pub foreign_datagrams: u64,
    /// How the session ended.
    pub end: End,
    /// The receive buffer.
    pub receive_buffer: SocketBuffer,
}

/// Why a stream could not be received.
#[derive(Debug, Error)]
pub enum ServerError {
    /// No socket.
    #[error("cannot receive at {address} over UDP; see whether it is local and the port free")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// A receive failed for good.
    #[error("cannot receive at {address}; see whether the interface is still there")]
    Receive {
        /// The server's address.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The answer to a FIN could not be sent.
    #[error("cannot answer {peer}; see whether there is a route back")]
    Answer {
        /// The client.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// [`Signals::cancel`] was set.
    #[error("the UDP server was told to stop")]
    Cancelled,
}

/// A bound server, for one stream.
#[derive(Debug)]
pub struct Server {
    socket: UdpSocket,
    address: SocketAddr,
    receive_buffer: SocketBuffer,
    idle_timeout: Duration,
}

impl Server {
    /// Binds the socket; datagrams are queued from now on.
    ///
    /// # Errors
    /// [`ServerError::Bind`].
    pub fn bind(config: &ServerConfig) -> Result<Self, ServerError> {
        let bind = || {
            let (udp, buffer) =
                sockets::bound_udp(config.bind, config.receive_buffer_bytes, LOOK_EVERY)?;
            socket::enable_arrival_times(&udp)?;
            let address = udp.local_addr()?;
            Ok((udp, buffer, address))
        };
        let (socket, receive_buffer, address) = bind().map_err(|source| ServerError::Bind {
            address: config.bind,
            source,
        })?;
        Ok(Server {
            socket,
            address,
            receive_buffer,
            idle_timeout: config.idle_timeout,
        })
    }

    /// The address bound to, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Receives one stream to its end. The first good datagram decides whose.
    ///
    /// # Errors
    /// See [`ServerError`]. A client that never comes is no error: see [`ServerReport::end`].
    pub fn run(self, signals: &Signals) -> Result<ServerReport, ServerError> {
        let mut batch = ReceiveBatch::new(BATCH_DATAGRAMS, PAYLOAD_BYTES_MAX);
        let begun = Instant::now();
        let mut receiver = Receiver {
            server: &self,
            session: None,
            foreign_datagrams: 0,
            last_good: begun,
            draining_since: None,
        };
        let end = loop {
            if signals.is_cancelled() {
                return Err(ServerError::Cancelled);
            }
            // Looked at before the receive, so that an empty socket afterwards is empty for good.
            let is_draining = signals.is_sender_done();
            let wait = if is_draining {
                Wait::Never
            } else {
                Wait::ForFirst
            };
            let received = batch.receive(&self.socket, wait);
            let now = Instant::now();
            let is_empty = match received {
                Ok(mut datagrams) => {
                    datagrams.try_for_each(|datagram| receiver.take(&datagram, now))?;
                    false
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
                Err(error) if sockets::is_no_datagram(&error) => false,
                Err(source) => {
                    return Err(ServerError::Receive {
                        address: self.address,
                        source,
                    });
                }
            };
            if let Some(end) = receiver.end(is_draining, is_empty, now) {
                break end;
            }
        };
        Ok(receiver.report(end))
    }
}

struct Receiver<'a> {
    server: &'a Server,
    session: Option<Session>,
    foreign_datagrams: u64,
    /// When the last datagram of the session came, or the wait for it began.
    last_good: Instant,
    draining_since: Option<Instant>,
}

impl Receiver<'_> {
    fn take(&mut self, datagram: &Datagram<'_>, now: Instant) -> Result<(), ServerError> {
        let (Some(source), Ok(header)) = (datagram.source, DatagramHeader::parse(datagram.payload))
        else {
            self.foreign_datagrams += 1;
            return Ok(());
        };
        let session = match &mut self.session {
            Some(session) if session.peer == source => session,
            // A FIN of nobody's session is left over from an earlier one.
            None if header.id >= 0 => {
                self.server
                    .socket
                    .connect(source)
                    .map_err(|error| ServerError::Answer {
                        peer: source,
                        source: error,
                    })?;
                self.session.insert(Session::open(source, now))
            }
            _ => {
                self.foreign_datagrams += 1;
                return Ok(());
            }
        };
        self.last_good = now;
        let length = datagram.payload.len();
        if header.id >= 0 {
            session.data(&header, length, datagram.arrival_ns, now);
        } else if let Some(answer) = session.fin(&header, length, now) {
            match self.server.socket.send(&answer) {
                Ok(_) => session.acks_sent += 1,
                Err(error) if sockets::is_refused_send(&error) => {}
                Err(error) => {
                    return Err(ServerError::Answer {
                        peer: source,
                        source: error,
                    });
                }
            }
        }
        Ok(())
    }

    /// Whether the session has ended, and how.
    fn end(&mut self, is_draining: bool, is_empty: bool, now: Instant) -> Option<End> {
        if is_draining && is_empty {
            return Some(End::SenderDone);
        }
        if is_draining {
            let since = *self.draining_since.get_or_insert(now);
            return (now.duration_since(since) >= DRAIN_LIMIT).then_some(End::SenderDone);
        }
        let silence = now.duration_since(self.last_good);
        let closing_for = self
            .session
            .as_ref()
            .and_then(|session| session.closing_for(now));
        match closing_for {
            Some(time) if silence >= SILENCE_AFTER_FIN || time >= CLOSING_LIMIT => Some(End::Fin),
            _ if silence >= self.server.idle_timeout => Some(End::Idle),
            _ => None,
        }
    }

    fn report(self, end: End) -> ServerReport {
        let session = self.session.as_ref();
        let count = |of: fn(&Session) -> u64| session.map_or(0, of);
        ServerReport {
            peer: session.map(|session| session.peer),
            datagrams_received: count(|session| session.datagrams),
            bytes_received: count(|session| session.bytes),
            seconds: session.map_or(0.0, Session::seconds),
            lost: count(|session| session.sequence.lost()),
            out_of_order: count(|session| session.sequence.out_of_order()),
            duplicates: count(|session| session.sequence.duplicates()),
            jitter_seconds: session.and_then(|session| Some(session.jitter.ns()? / 1e9)),
            fins_received: count(|session| session.fins_received),
            fin_acks_sent: count(|session| session.acks_sent),
            foreign_datagrams: self.foreign_datagrams,
            end,
            receive_buffer: self.server.receive_buffer,
        }
    }
}
