//! The receiving end of a TCP stream.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use nicpoll_sys::socket;
use nicpoll_wire::iperf::tcp::{HEADER_BYTES_MAX, HeaderAck, header_length, is_acknowledged};
use nicpoll_wire::iperf::{ClientHeader, HeaderError, Version, flags, upper_flags};
use rustix::event::PollFlags;
use thiserror::Error;

use super::BUFFER_BYTES;
use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets::{self, SocketBuffer};

/// 2.1.8 gives a client this long for its header.
const HEADER_LIMIT: Duration = Duration::from_secs(4);

/// Where and how to listen.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// Address to listen on; port 0 lets the kernel choose.
    pub bind: SocketAddr,
    /// Receive buffer to ask for; `None` leaves it to the kernel, which grows it as needed.
    pub receive_buffer_bytes: Option<usize>,
    /// How long to wait for the client, and then for each further byte.
    pub idle_timeout: Duration,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The client closed its direction: everything it sent has been read.
    Closed,
    /// [`Signals::sender_done`] was set and nothing was queued.
    SenderDone,
}

/// What the server counted.
#[derive(Clone, Copy, Debug)]
pub struct ServerReport {
    /// The client.
    pub peer: SocketAddr,
    /// What the client asked for; `None` when it sent no header.
    pub header: Option<ClientHeader>,
    /// Every byte that was read, the header included.
    pub bytes_received: u64,
    /// From the acceptance of the connection to its end.
    pub seconds: f64,
    /// How the stream ended.
    pub end: End,
    /// The receive buffer.
    pub receive_buffer: SocketBuffer,
}

/// Why a stream could not be received.
#[derive(Debug, Error)]
pub enum ServerError {
    /// No listening socket.
    #[error(
        "cannot listen on {address} over TCP; see whether the address is local and the port free"
    )]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The connection could not be taken.
    #[error("cannot take a connection on {address}; see the kernel's limit on open files")]
    Accept {
        /// The address listened on.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// Nobody connected.
    #[error("no client connected to {address} within {seconds} s; start it sooner or wait longer")]
    NoClient {
        /// The address listened on.
        address: SocketAddr,
        /// How long was waited.
        seconds: f64,
    },
    /// The stream does not begin like one of iperf 2.
    #[error("the stream of {peer} has no good header")]
    Header {
        /// The client.
        peer: SocketAddr,
        /// What is wrong with it.
        source: HeaderError,
    },
    /// The client asks for a stream in the other direction.
    #[error("{peer} asks for traffic towards itself; run it without -d, -r, -R and --full-duplex")]
    OtherDirection {
        /// The client.
        peer: SocketAddr,
    },
    /// The connection broke.
    #[error(
        "the connection of {peer} broke after {bytes_received} bytes; see why the client ended"
    )]
    Receive {
        /// The client.
        peer: SocketAddr,
        /// Bytes received until then.
        bytes_received: u64,
        /// What the kernel said.
        source: io::Error,
    },
    /// The client fell silent.
    #[error("{peer} fell silent after {bytes_received} bytes; see whether the link is up")]
    Silent {
        /// The client.
        peer: SocketAddr,
        /// Bytes received until then.
        bytes_received: u64,
    },
    /// [`Signals::cancel`] was set.
    #[error("the TCP server was told to stop")]
    Cancelled,
}

/// A listening server, for one stream.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    config: ServerConfig,
}

impl Server {
    /// Begins to listen; clients may connect from now on.
    ///
    /// # Errors
    /// [`ServerError::Bind`].
    pub fn bind(config: &ServerConfig) -> Result<Self, ServerError> {
        let bind = || {
            let listener = TcpListener::bind(config.bind)?;
            // The accepted socket inherits it, and TCP has to know it before the first segment.
            sockets::receive_buffer(&listener, config.receive_buffer_bytes)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) = bind().map_err(|source| ServerError::Bind {
            address: config.bind,
            source,
        })?;
        Ok(Server {
            listener,
            address,
            config: *config,
        })
    }

    /// The address listened on, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Takes one connection and reads it to its end.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn run(self, signals: &Signals) -> Result<ServerReport, ServerError> {
        let (stream, peer) = self.accept(signals)?;
        let accepted = Instant::now();
        let mut connection = Connection {
            stream,
            peer,
            signals,
            bytes_received: 0,
        };
        let mut buffer = vec![0; BUFFER_BYTES];
        let header = connection.read_header()?;
        let end = loop {
            if let Progress::Ended(end) = connection.read(&mut buffer, self.config.idle_timeout)? {
                break end;
            }
        };
        let seconds = accepted.elapsed().as_secs_f64();
        let granted = socket::receive_buffer(&connection.stream)
            .map_err(|source| connection.broken(source))?;
        Ok(ServerReport {
            peer,
            header,
            bytes_received: connection.bytes_received,
            seconds,
            end,
            receive_buffer: sockets::described(self.config.receive_buffer_bytes, granted),
        })
    }

    fn accept(&self, signals: &Signals) -> Result<(TcpStream, SocketAddr), ServerError> {
        let failed = |source| ServerError::Accept {
            address: self.address,
            source,
        };
        let begun = Instant::now();
        loop {
            if signals.is_cancelled() {
                return Err(ServerError::Cancelled);
            }
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    stream
                        .set_nonblocking(false)
                        .and_then(|()| stream.set_read_timeout(Some(LOOK_EVERY)))
                        .and_then(|()| stream.set_write_timeout(Some(LOOK_EVERY)))
                        .map_err(failed)?;
                    return Ok((stream, peer));
                }
                Err(error) if sockets::is_no_progress(&error) => {}
                Err(source) => return Err(failed(source)),
            }
            if begun.elapsed() >= self.config.idle_timeout || signals.is_sender_done() {
                return Err(ServerError::NoClient {
                    address: self.address,
                    seconds: begun.elapsed().as_secs_f64(),
                });
            }
            sockets::poll_once(&self.listener, PollFlags::IN).map_err(failed)?;
        }
    }
}

enum Progress {
    Read(usize),
    Ended(End),
}

struct Connection<'a> {
    stream: TcpStream,
    peer: SocketAddr,
    signals: &'a Signals,
    bytes_received: u64,
}

impl Connection<'_> {
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
                    self.bytes_received += read as u64;
                    return Ok(Progress::Read(read));
                }
                Err(error) if sockets::is_no_progress(&error) => {}
                Err(source) => return Err(self.broken(source)),
            }
            if is_sender_done {
                return Ok(Progress::Ended(End::SenderDone));
            }
            let since = *silent_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= silence_max {
                return Err(ServerError::Silent {
                    peer: self.peer,
                    bytes_received: self.bytes_received,
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
            source,
        }
    }
}
