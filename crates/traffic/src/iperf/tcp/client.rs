//! The sending end of a TCP stream.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use nicpoll_sys::socket;
use nicpoll_wire::iperf::{self, Amount, ClientHeader};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use thiserror::Error;

use super::BUFFER_BYTES;
use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets::{self, SocketBuffer};

/// A peer that takes no byte for this long is given up.
const STALL_LIMIT: Duration = Duration::from_secs(5);
/// 2.1.8 waits at least this long for the peer to close, and as long as the test took when that is
/// more.
const CLOSE_LIMIT_MIN: Duration = Duration::from_secs(2);

/// What to send where.
#[derive(Clone, Copy, Debug)]
pub struct ClientConfig {
    /// The server.
    pub peer: SocketAddr,
    /// How long to send.
    pub duration: Duration,
    /// Send buffer to ask for; `None` leaves it to the kernel, which grows it as needed.
    pub send_buffer_bytes: Option<usize>,
    /// How long to try to connect.
    pub connect_timeout: Duration,
}

/// What the client counted.
#[derive(Clone, Copy, Debug)]
pub struct ClientReport {
    /// Bytes handed to the socket, the header included as in 2.1.8.
    pub bytes_sent: u64,
    /// From the first write to the return of the last.
    pub seconds: f64,
    /// From the first write until the server closed, which is when it had read everything: what
    /// 2.1.8 divides by. `None` when the server did not close in time.
    pub seconds_to_close: Option<f64>,
    /// Segments that TCP sent again.
    pub retransmitted_segments: u64,
    /// The send buffer.
    pub send_buffer: SocketBuffer,
}

/// Why a stream could not be sent.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No connection in time, or none possible.
    #[error("cannot connect to {peer} over TCP; see that the server runs and the address is right")]
    Connect {
        /// The server.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// A socket option was refused.
    #[error(
        "cannot set up the socket to {peer}; ask for a smaller buffer or let the kernel choose"
    )]
    Setup {
        /// The server.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The connection broke.
    #[error("the connection to {peer} broke after {bytes_sent} bytes; see why the server ended")]
    Send {
        /// The server.
        peer: SocketAddr,
        /// Bytes sent until then.
        bytes_sent: u64,
        /// What the kernel said.
        source: io::Error,
    },
    /// The server stopped reading.
    #[error("{peer} has not taken a byte for 5 s after {bytes_sent}; see whether the link is up")]
    Stalled {
        /// The server.
        peer: SocketAddr,
        /// Bytes sent until then.
        bytes_sent: u64,
    },
    /// [`Signals::cancel`] was set.
    #[error("the TCP client was told to stop")]
    Cancelled,
}

/// Sends one stream: the header, then writes of 131072 bytes until the time is up; then closes its
/// direction and waits for the server to close the other.
///
/// # Errors
/// See [`ClientError`].
pub fn run_client(config: &ClientConfig, signals: &Signals) -> Result<ClientReport, ClientError> {
    let peer = config.peer;
    let setup = |source| ClientError::Setup { peer, source };
    let stream = connect(config, signals)?;
    let mut client = Client {
        stream,
        config,
        signals,
        bytes_sent: 0,
    };

    let mut buffer = vec![0; BUFFER_BYTES];
    iperf::fill_payload(&mut buffer);
    let header = ClientHeader::for_tcp(peer.port(), Amount::from_duration(config.duration));
    let header_bytes = header.write_to(&mut buffer);

    let begun = Instant::now();
    client.write_all(&buffer[..header_bytes])?;
    while begun.elapsed() < config.duration {
        client.write(&buffer)?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let granted = socket::send_buffer(&client.stream).map_err(setup)?;
    client
        .stream
        .shutdown(Shutdown::Write)
        .map_err(|source| client.broken(source))?;
    let is_closed = client.await_close(&mut buffer)?;
    Ok(ClientReport {
        bytes_sent: client.bytes_sent,
        seconds,
        seconds_to_close: is_closed.then(|| begun.elapsed().as_secs_f64()),
        retransmitted_segments: socket::retransmitted_segments(&client.stream).map_err(setup)?,
        send_buffer: sockets::described(config.send_buffer_bytes, granted),
    })
}

/// Connects without a wait that the signals could not end.
fn connect(config: &ClientConfig, signals: &Signals) -> Result<TcpStream, ClientError> {
    let peer = config.peer;
    let refused = |source: io::Error| ClientError::Connect { peer, source };
    let setup = |source: io::Error| ClientError::Setup { peer, source };
    let family = match peer {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)
        .map_err(|errno| setup(errno.into()))?;
    sockets::send_buffer(&fd, config.send_buffer_bytes).map_err(setup)?;

    let deadline = Instant::now() + config.connect_timeout;
    match rustix::net::connect(&fd, &peer) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(errno) => return Err(refused(errno.into())),
    }
    while !sockets::poll_once(&fd, PollFlags::OUT).map_err(refused)? {
        if signals.is_cancelled() {
            return Err(ClientError::Cancelled);
        }
        if Instant::now() >= deadline {
            return Err(refused(Errno::TIMEDOUT.into()));
        }
    }
    sockopt::socket_error(&fd)
        .and_then(|outcome| outcome)
        .map_err(|errno| refused(errno.into()))?;

    let stream = TcpStream::from(fd);
    stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_write_timeout(Some(LOOK_EVERY)))
        .and_then(|()| stream.set_read_timeout(Some(LOOK_EVERY)))
        .map_err(setup)?;
    Ok(stream)
}

struct Client<'a> {
    stream: TcpStream,
    config: &'a ClientConfig,
    signals: &'a Signals,
    bytes_sent: u64,
}

impl Client<'_> {
    /// One write, of which the kernel may take a part. Returns when it took something.
    fn write(&mut self, bytes: &[u8]) -> Result<usize, ClientError> {
        let mut stalled_since = None;
        loop {
            if self.signals.is_cancelled() {
                return Err(ClientError::Cancelled);
            }
            match self.stream.write(bytes) {
                Ok(written) => {
                    self.bytes_sent += written as u64;
                    return Ok(written);
                }
                Err(error) if sockets::is_no_progress(&error) => {}
                Err(source) => return Err(self.broken(source)),
            }
            let since = *stalled_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= STALL_LIMIT {
                return Err(ClientError::Stalled {
                    peer: self.config.peer,
                    bytes_sent: self.bytes_sent,
                });
            }
        }
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), ClientError> {
        while !bytes.is_empty() {
            let written = self.write(bytes)?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Waits for the server to close, discarding what it sends (the header's acknowledgement).
    /// `false` when it did not in time.
    fn await_close(&mut self, buffer: &mut [u8]) -> Result<bool, ClientError> {
        let deadline = Instant::now() + self.config.duration.max(CLOSE_LIMIT_MIN);
        while Instant::now() < deadline {
            if self.signals.is_cancelled() {
                return Err(ClientError::Cancelled);
            }
            match self.stream.read(buffer) {
                Ok(0) => return Ok(true),
                Ok(_) => {}
                Err(error) if sockets::is_no_progress(&error) => {}
                Err(source) => return Err(self.broken(source)),
            }
        }
        Ok(false)
    }

    fn broken(&self, source: io::Error) -> ClientError {
        ClientError::Send {
            peer: self.config.peer,
            bytes_sent: self.bytes_sent,
            source,
        }
    }
}
