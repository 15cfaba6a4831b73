//! The sending end of a TCP stream.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_sys::socket;
use nicpoll_wire::iperf::{self, ClientHeader};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, sockopt};
use thiserror::Error;

use super::BUFFER_BYTES;
use crate::iperf::observer::{Intervals, Observer, Totals};
use crate::iperf::pace::{Amount, Pace};
use crate::iperf::socket_options::SocketOptions;
use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets::{self, SocketBuffer};

/// A peer that takes no byte for this long is given up.
const STALL_LIMIT: Duration = Duration::from_secs(5);
/// 2.1.8 waits at least this long for the peer to close, and as long as the test took when that is
/// more.
const CLOSE_LIMIT_MIN: Duration = Duration::from_secs(2);
/// How long connecting may take unless told otherwise.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// What to send where, and how.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The server.
    pub peer: SocketAddr,
    /// How much to send, the header included.
    pub amount: Amount,
    /// Bits a second to keep to; as fast as it goes when `None` or 0.
    pub rate_bps: Option<u64>,
    /// Length of a write, 1 at least.
    pub write_bytes: usize,
    /// Send buffer to ask for; `None` leaves it to the kernel, which grows it as needed.
    pub send_buffer_bytes: Option<usize>,
    /// How long to try to connect.
    pub connect_timeout: Duration,
    /// Length of the intervals to record; none when `None`.
    pub interval: Option<Duration>,
    /// Local address; port 0 lets the kernel choose.
    pub bind: Option<SocketAddr>,
    /// Options of the socket.
    pub options: SocketOptions,
    /// Whether to send small segments without delay (`TCP_NODELAY`).
    pub no_delay: bool,
    /// Largest segment to ask for (`TCP_MAXSEG`).
    pub max_segment_bytes: Option<u16>,
    /// Congestion control to ask for by name.
    pub congestion_control: Option<String>,
    /// Parallel streams that the header tells the server of.
    pub threads: u32,
    /// Whether the stream begins with a header; without, it is filler from the first byte.
    pub has_header: bool,
}

impl ClientConfig {
    /// iperf's defaults: one stream, unpaced, in writes of 131072 bytes.
    pub fn new(peer: SocketAddr, amount: Amount) -> Self {
        ClientConfig {
            peer,
            amount,
            rate_bps: None,
            write_bytes: BUFFER_BYTES,
            send_buffer_bytes: None,
            connect_timeout: CONNECT_LIMIT,
            interval: None,
            bind: None,
            options: SocketOptions::default(),
            no_delay: false,
            max_segment_bytes: None,
            congestion_control: None,
            threads: 1,
            has_header: true,
        }
    }

    /// Less than a header is sent as filler, which no server takes for one.
    fn has_room_for_header(&self) -> bool {
        !matches!(self.amount, Amount::Bytes(bytes) if bytes < ClientHeader::BYTES as u64)
    }

    fn header(&self) -> ClientHeader {
        let amount = match self.amount {
            Amount::Time(duration) => iperf::Amount::from_duration(duration),
            Amount::Bytes(bytes) => iperf::Amount::Bytes(bytes.try_into().unwrap_or(u32::MAX)),
        };
        let mut header = ClientHeader::for_tcp(self.peer.port(), amount);
        header.threads = self.threads;
        if self.write_bytes != BUFFER_BYTES {
            header.buffer_bytes = self.write_bytes.try_into().unwrap_or(u32::MAX);
        }
        if let Some(extension) = &mut header.extension {
            extension.rate_bps = self.rate_bps.unwrap_or(0);
            extension.type_of_service = self.options.type_of_service.unwrap_or(0).into();
        }
        header
    }
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
        "cannot set up the socket to {peer}; see whether the local address, device and options \
         asked for are there and allowed"
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
        /// Time since the first write.
        seconds: f64,
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
        /// Time since the first write.
        seconds: f64,
    },
    /// [`Signals::cancel`] was set.
    #[error("the TCP client was told to stop")]
    Cancelled,
}

/// Sends one stream: the header, then writes until the time is up or everything is sent; then closes
/// its direction and waits for the server to close the other.
///
/// A write belongs to the interval in which it began.
///
/// # Errors
/// See [`ClientError`].
pub fn run_client(
    config: &ClientConfig,
    signals: &Signals,
    observer: &mut dyn Observer,
) -> Result<ClientReport, ClientError> {
    let peer = config.peer;
    let setup = |source| ClientError::Setup { peer, source };
    let stream = connect(config, signals, observer)?;
    let mut buffer = vec![0; config.write_bytes.max(ClientHeader::BYTES)];
    iperf::fill_payload(&mut buffer);
    let has_header = config.has_header && config.has_room_for_header();
    if has_header {
        config.header().write_to(&mut buffer);
    }

    let mut client = Client {
        stream,
        config,
        signals,
        intervals: Intervals::new(config.interval, observer),
        begun: Instant::now(),
        bytes_sent: 0,
    };
    let outcome = client.send(&buffer, has_header);
    let elapsed = *outcome.as_ref().unwrap_or(&client.begun.elapsed());
    let totals = Totals::of_bytes(client.bytes_sent);
    client.intervals.finish(elapsed, totals);
    outcome?;

    let granted = socket::send_buffer(&client.stream).map_err(setup)?;
    client
        .stream
        .shutdown(Shutdown::Write)
        .map_err(|source| client.broken(source))?;
    let is_closed = client.await_close(&mut buffer, elapsed)?;
    let info = socket::tcp_info(&client.stream).map_err(setup)?;
    Ok(ClientReport {
        bytes_sent: client.bytes_sent,
        seconds: elapsed.as_secs_f64(),
        seconds_to_close: is_closed.then(|| client.begun.elapsed().as_secs_f64()),
        retransmitted_segments: info.retransmitted_segments,
        send_buffer: sockets::described(config.send_buffer_bytes, granted),
    })
}

/// Connects without a wait that the signals could not end.
fn connect(
    config: &ClientConfig,
    signals: &Signals,
    observer: &mut dyn Observer,
) -> Result<TcpStream, ClientError> {
    let peer = config.peer;
    let refused = |source: io::Error| ClientError::Connect { peer, source };
    let setup = |source: io::Error| ClientError::Setup { peer, source };
    let (fd, buffer) = unconnected(config).map_err(setup)?;

    let begun = Instant::now();
    match rustix::net::connect(&fd, &peer) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(errno) => return Err(refused(errno.into())),
    }
    while !sockets::poll_once(&fd, PollFlags::OUT).map_err(refused)? {
        if signals.is_cancelled() || signals.is_finishing() {
            return Err(ClientError::Cancelled);
        }
        if begun.elapsed() >= config.connect_timeout {
            return Err(refused(Errno::TIMEDOUT.into()));
        }
    }
    sockopt::socket_error(&fd)
        .and_then(|outcome| outcome)
        .map_err(|errno| refused(errno.into()))?;
    let connecting = begun.elapsed();

    let stream = TcpStream::from(fd);
    stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_write_timeout(Some(LOOK_EVERY)))
        .and_then(|()| stream.set_read_timeout(Some(LOOK_EVERY)))
        .map_err(setup)?;
    let connected = super::connected(&stream, peer, buffer, Some(connecting)).map_err(setup)?;
    observer.connected(&connected);
    Ok(stream)
}

/// A socket with everything that was asked for.
fn unconnected(config: &ClientConfig) -> io::Result<(OwnedFd, SocketBuffer)> {
    let options = &config.options;
    let fd = options.open(SocketType::STREAM, SocketFlags::NONBLOCK, config.peer)?;
    let buffer = sockets::send_buffer(&fd, config.send_buffer_bytes)?;
    if config.no_delay {
        sockopt::set_tcp_nodelay(&fd, true)?;
    }
    if let Some(bytes) = config.max_segment_bytes {
        socket::set_max_segment(&fd, bytes)?;
    }
    if let Some(name) = &config.congestion_control {
        sockopt::set_tcp_congestion(&fd, name)?;
    }
    if let Some(local) = config.bind {
        // A port that was asked for may still be in TIME_WAIT from the last test.
        sockopt::set_socket_reuseaddr(&fd, true)?;
        rustix::net::bind(&fd, &local)?;
    }
    Ok((fd, buffer))
}

struct Client<'a> {
    stream: TcpStream,
    config: &'a ClientConfig,
    signals: &'a Signals,
    intervals: Intervals<'a>,
    /// Just before the first write.
    begun: Instant,
    bytes_sent: u64,
}

impl Client<'_> {
    /// Sends everything; returns how long it took.
    fn send(&mut self, buffer: &[u8], has_header: bool) -> Result<Duration, ClientError> {
        let (duration, bytes_max) = match self.config.amount {
            Amount::Time(duration) => (duration, u64::MAX),
            Amount::Bytes(bytes) => (Duration::MAX, bytes),
        };
        let pace = self.config.rate_bps.and_then(Pace::of_bytes);
        if has_header {
            self.write_all(&buffer[..ClientHeader::BYTES])?;
        }
        let write_bytes = self.config.write_bytes.clamp(1, buffer.len());
        loop {
            let elapsed = self.begun.elapsed();
            self.close_intervals(elapsed);
            if elapsed >= duration || self.bytes_sent >= bytes_max || self.signals.is_finishing() {
                return Ok(elapsed);
            }
            let ahead = pace.map_or(Duration::ZERO, |pace| pace.ahead(self.bytes_sent, elapsed));
            if !ahead.is_zero() {
                self.stop_if_cancelled()?;
                let left = (duration - elapsed).min(self.intervals.left(elapsed));
                thread::sleep(ahead.min(left).min(LOOK_EVERY));
                continue;
            }
            let left = (bytes_max - self.bytes_sent).min(write_bytes as u64);
            self.write(&buffer[..left as usize])?;
        }
    }

    fn close_intervals(&mut self, elapsed: Duration) {
        if self.intervals.is_due(elapsed) {
            let totals = Totals::of_bytes(self.bytes_sent);
            self.intervals.close_due(elapsed, totals);
        }
    }

    /// One write, of which the kernel may take a part. Returns when it took something, or 0 when
    /// nothing and the stream is to end.
    fn write(&mut self, bytes: &[u8]) -> Result<usize, ClientError> {
        let mut stalled_since = None;
        loop {
            self.stop_if_cancelled()?;
            match self.stream.write(bytes) {
                Ok(written) => {
                    self.bytes_sent += written as u64;
                    return Ok(written);
                }
                Err(error) if sockets::is_no_progress(&error) => {}
                Err(source) => return Err(self.broken(source)),
            }
            if self.signals.is_finishing() {
                return Ok(0);
            }
            self.close_intervals(self.begun.elapsed());
            let since = *stalled_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= STALL_LIMIT {
                return Err(ClientError::Stalled {
                    peer: self.config.peer,
                    bytes_sent: self.bytes_sent,
                    seconds: self.begun.elapsed().as_secs_f64(),
                });
            }
        }
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), ClientError> {
        while !bytes.is_empty() {
            match self.write(bytes)? {
                0 => break,
                written => bytes = &bytes[written..],
            }
        }
        Ok(())
    }

    /// Waits for the server to close, discarding what it sends (the header's acknowledgement).
    /// `false` when it did not in time.
    fn await_close(&mut self, buffer: &mut [u8], sending: Duration) -> Result<bool, ClientError> {
        let deadline = Instant::now() + sending.max(CLOSE_LIMIT_MIN);
        while Instant::now() < deadline {
            self.stop_if_cancelled()?;
            match self.stream.read(buffer) {
                Ok(0) => return Ok(true),
                Ok(_) => {}
                Err(error) if sockets::is_no_progress(&error) => {}
                Err(source) => return Err(self.broken(source)),
            }
        }
        Ok(false)
    }

    fn stop_if_cancelled(&self) -> Result<(), ClientError> {
        if self.signals.is_cancelled() {
            return Err(ClientError::Cancelled);
        }
        Ok(())
    }

    fn broken(&self, source: io::Error) -> ClientError {
        ClientError::Send {
            peer: self.config.peer,
            bytes_sent: self.bytes_sent,
            seconds: self.begun.elapsed().as_secs_f64(),
            source,
        }
    }
}
