//! A listening socket, and the connections that it yields.
//!
//! What must hold: each connection is read on the thread that runs it, and no more than
//! [`CLIENTS_MAX`] exist at a time; further clients wait in the kernel's queue.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_sys::socket;
use nicpoll_wire::iperf::tcp::{HEADER_BYTES_MAX, HeaderAck, header_length, is_acknowledged};
use nicpoll_wire::iperf::{ClientHeader, Version, flags, upper_flags};
use rustix::event::PollFlags;
use rustix::net::{SocketFlags, SocketType, sockopt};

use super::BUFFER_BYTES;
use super::low_water::LowWater;
use super::server::{End, ServerConfig, ServerError, ServerReport};
use crate::iperf::CLIENTS_MAX;
use crate::iperf::observer::{Intervals, Observer, Totals};
use crate::iperf::socket_options::SocketOptions;
use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets::{self, SocketBuffer};

/// 2.1.8 gives a client this long for its header.
const HEADER_LIMIT: Duration = Duration::from_secs(4);
/// Connections that wait to be accepted, the standard library's number.
const BACKLOG: i32 = 128;

/// Where and how to listen, and how to read.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// Where, with which buffer, and how patiently.
    pub server: ServerConfig,
    /// Length of a read, 1 at least.
    pub read_bytes: usize,
    /// Whether a read waits until it is full while the stream is fast, rather than be woken for every
    /// segment.
    pub waits_for_full_reads: bool,
    /// Length of the intervals to record; none when `None`.
    pub interval: Option<Duration>,
    /// Options of the socket, which the accepted ones inherit.
    pub options: SocketOptions,
    /// Largest segment to ask for (`TCP_MAXSEG`).
    pub max_segment_bytes: Option<u16>,
}

impl ListenerConfig {
    /// iperf's defaults: reads of 131072 bytes that return whatever is there.
    pub fn new(server: ServerConfig) -> Self {
        ListenerConfig {
            server,
            read_bytes: BUFFER_BYTES,
            waits_for_full_reads: false,
            interval: None,
            options: SocketOptions::default(),
            max_segment_bytes: None,
        }
    }
}

/// A listening server, for any number of streams.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    receive_buffer: SocketBuffer,
    config: ListenerConfig,
    /// Cloned for each connection, and so counts them.
    tickets: Arc<()>,
}

impl Listener {
    /// Begins to listen; clients may connect from now on.
    ///
    /// # Errors
    /// [`ServerError::Bind`].
    pub fn bind(config: &ListenerConfig) -> Result<Self, ServerError> {
        let bind = config.server.bind;
        let listen = || {
            let fd = config
                .options
                .open(SocketType::STREAM, SocketFlags::NONBLOCK, bind)?;
            // Connections of an earlier server may still be in TIME_WAIT.
            sockopt::set_socket_reuseaddr(&fd, true)?;
            // Accepted sockets inherit both, and TCP has to know them before the first segment.
            let buffer = sockets::receive_buffer(&fd, config.server.receive_buffer_bytes)?;
            if let Some(bytes) = config.max_segment_bytes {
                socket::set_max_segment(&fd, bytes)?;
            }
            rustix::net::bind(&fd, &bind)?;
            rustix::net::listen(&fd, BACKLOG)?;
            let listener = TcpListener::from(fd);
            let address = listener.local_addr()?;
            Ok((listener, address, buffer))
        };
        let (listener, address, receive_buffer) = listen().map_err(|source| ServerError::Bind {
            address: bind,
            source,
        })?;
        Ok(Listener {
            listener,
            address,
            receive_buffer,
            config: config.clone(),
            tickets: Arc::new(()),
        })
    }

    /// The address listened on, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The receive buffer as granted to the listening socket.
    pub fn receive_buffer(&self) -> SocketBuffer {
        self.receive_buffer
    }

    /// Takes the next connection; `None` when none came for `patience`, or when none waits and
    /// [`Signals::sender_done`] is set.
    ///
    /// # Errors
    /// [`ServerError::Accept`] and [`ServerError::Cancelled`].
    pub fn accept(
        &self,
        signals: &Signals,
        patience: Duration,
    ) -> Result<Option<Accepted>, ServerError> {
        let failed = |source| ServerError::Accept {
            address: self.address,
            source,
        };
        let begun = Instant::now();
        loop {
            if signals.is_cancelled() {
                return Err(ServerError::Cancelled);
            }
            let is_full = Arc::strong_count(&self.tickets) > CLIENTS_MAX;
            if !is_full && let Some((stream, peer)) = self.accept_one().map_err(failed)? {
                return Ok(Some(Accepted {
                    stream,
                    peer,
                    accepted: Instant::now(),
                    config: self.config.clone(),
                    _ticket: Arc::clone(&self.tickets),
                }));
            }
            if begun.elapsed() >= patience || signals.is_sender_done() {
                return Ok(None);
            }
            if is_full {
                // The socket is readable then, and a poll would not wait.
                thread::sleep(LOOK_EVERY);
            } else {
                sockets::poll_once(&self.listener, PollFlags::IN).map_err(failed)?;
            }
        }
    }

    fn accept_one(&self) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        let (stream, peer) = match self.listener.accept() {
            Ok(accepted) => accepted,
            // A client that was gone before it was accepted is none.
            Err(error) if is_passing(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(LOOK_EVERY))?;
        stream.set_write_timeout(Some(LOOK_EVERY))?;
        Ok(Some((stream, peer)))
    }
}

fn is_passing(error: &io::Error) -> bool {
    sockets::is_no_progress(error) || error.kind() == io::ErrorKind::ConnectionAborted
}

/// A connection that was taken and waits to be read.
#[derive(Debug)]
pub struct Accepted {
    stream: TcpStream,
    peer: SocketAddr,
    accepted: Instant,
    config: ListenerConfig,
    _ticket: Arc<()>,
}

impl Accepted {
    /// The client.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Reads the stream to its end. What is read belongs to the interval in which the read
    /// returned.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn run(
        self,
        signals: &Signals,
        observer: &mut dyn Observer,
    ) -> Result<ServerReport, ServerError> {
        let asked = self.config.server.receive_buffer_bytes;
        let buffer = || {
            let granted = socket::receive_buffer(&self.stream)?;
            Ok(sockets::described(asked, granted))
        };
        buffer()
            .and_then(|buffer| super::connected(&self.stream, self.peer, buffer, None))
            .map(|connected| observer.connected(&connected))
            .map_err(|source| ServerError::Receive {
                peer: self.peer,
                bytes_received: 0,
                seconds: 0.0,
                source,
            })?;
        let mut connection = Connection {
            stream: &self.stream,
            peer: self.peer,
            signals,
            intervals: Intervals::new(self.config.interval, observer),
            accepted: self.accepted,
            bytes_received: 0,
            low_water: self
                .config
                .waits_for_full_reads
                .then(|| LowWater::new(self.config.read_bytes, self.accepted)),
        };
        let mut place = vec![0; self.config.read_bytes.max(1)];
        let outcome = connection.read_to_end(&mut place, self.config.server.idle_timeout);
        let elapsed = self.accepted.elapsed();
        let totals = Totals::of_bytes(connection.bytes_received);
        connection.intervals.finish(elapsed, totals);
        let (header, end) = outcome?;
        Ok(ServerReport {
            peer: self.peer,
            header,
            bytes_received: connection.bytes_received,
            seconds: elapsed.as_secs_f64(),
            end,
            receive_buffer: buffer().map_err(|source| connection.broken(source))?,
        })
    }
}

enum Progress {
    Read(usize),
    Ended(End),
}

/// A connection being read.
struct Connection<'a> {
    stream: &'a TcpStream,
    peer: SocketAddr,
    signals: &'a Signals,
    intervals: Intervals<'a>,
    accepted: Instant,
    bytes_received: u64,
    low_water: Option<LowWater>,
}

impl Connection<'_> {
    /// Reads the stream to its end; returns its header with it.
    fn read_to_end(
        &mut self,
        buffer: &mut [u8],
        silence_max: Duration,
    ) -> Result<(Option<ClientHeader>, End), ServerError> {
        let header = self.read_header()?;
        loop {
            if let Progress::Ended(end) = self.read(buffer, silence_max)? {
                return Ok((header, end));
            }
        }
    }

    /// Closes the intervals that have ended. The clock is not even read when there are none.
    fn close_intervals(&mut self) {
        if !self.intervals.are_asked_for() {
            return;
        }
        let elapsed = self.accepted.elapsed();
        if self.intervals.is_due(elapsed) {
            let totals = Totals::of_bytes(self.bytes_received);
            self.intervals.close_due(elapsed, totals);
        }
    }

    /// One read. Returns when something came or the stream has ended.
    fn read(&mut self, buffer: &mut [u8], silence_max: Duration) -> Result<Progress, ServerError> {
        let mut silent_since = None;
        loop {
            if self.signals.is_cancelled() {
                return Err(ServerError::Cancelled);
            }
            let is_sender_done = self.signals.is_sender_done();
            match self.stream.read(buffer) {
                Ok(0) => return Ok(Progress::Ended(End::Closed)),
                Ok(read) => {
                    self.close_intervals();
                    self.bytes_received += read as u64;
                    if let Some(mark) = &mut self.low_water
                        && let Err(source) = mark.after(self.stream, read, Instant::now())
                    {
                        return Err(self.broken(source));
                    }
                    return Ok(Progress::Read(read));
                }
                Err(error) if sockets::is_no_progress(&error) => {}
                Err(source) => return Err(self.broken(source)),
            }
            if is_sender_done {
                return Ok(Progress::Ended(End::SenderDone));
            }
            self.close_intervals();
            let since = *silent_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= silence_max {
                return Err(ServerError::Silent {
                    peer: self.peer,
                    bytes_received: self.bytes_received,
                    seconds: self.accepted.elapsed().as_secs_f64(),
                });
            }
        }
    }

    /// Reads the header, if the stream begins with one, and not a byte more; answers it when 2.1.8
    /// would. A stream that ends within its header is left for the next read to report.
    fn read_header(&mut self) -> Result<Option<ClientHeader>, ServerError> {
        let peer = self.peer;
        let bad = |source| ServerError::Header { peer, source };
        let mut bytes = [0; HEADER_BYTES_MAX];
        let (first_word, rest) = bytes.split_at_mut(4);
        if !self.read_whole(first_word)? {
            return Ok(None);
        }
        let mut flag_word = [0; 4];
        flag_word.copy_from_slice(first_word);
        let length = header_length(flag_word).map_err(bad)?;
        if length > 4 && !self.read_whole(&mut rest[..length - 4])? {
            return Ok(None);
        }
        let Some(header) = ClientHeader::parse_tcp(&bytes).map_err(bad)? else {
            return Ok(None);
        };
        if header.flags & flags::DUAL != 0
            || header.asks_for(upper_flags::REVERSE | upper_flags::FULL_DUPLEX)
        {
            return Err(ServerError::OtherDirection { peer });
        }
        if is_acknowledged(&header) {
            let ack = HeaderAck {
                version: Version::V2_1_8,
            };
            self.stream
                .write_all(&ack.to_bytes())
                .map_err(|source| self.broken(source))?;
        }
        Ok(Some(header))
    }

    /// `false` when the stream ended first.
    fn read_whole(&mut self, mut buffer: &mut [u8]) -> Result<bool, ServerError> {
        while !buffer.is_empty() {
            match self.read(buffer, HEADER_LIMIT)? {
                Progress::Read(read) => buffer = &mut buffer[read..],
                Progress::Ended(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    fn broken(&self, source: io::Error) -> ServerError {
        ServerError::Receive {
            peer: self.peer,
            bytes_received: self.bytes_received,
            seconds: self.accepted.elapsed().as_secs_f64(),
            source,
        }
    }
}
