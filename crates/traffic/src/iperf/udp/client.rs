//! The sending end of a UDP stream.

mod closing;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use nicpoll_wire::iperf::datagram::{PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN};
use nicpoll_wire::iperf::{self, ClientHeader, Dialect, upper_flags};
use rustix::net::{SocketFlags, SocketType};
use thiserror::Error;

use closing::{Closing, FIN_EVERY};

use super::train::{Clock, Train};
use crate::iperf::observer::{Connected, Intervals, Observer, Totals};
use crate::iperf::pace::{self, Amount, Pace, Rate};
use crate::iperf::socket_options::SocketOptions;
use crate::iperf::text::Direction;
use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets::{self, SocketBuffer};

/// What to send where, and how.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The server.
    pub peer: SocketAddr,
    /// UDP payload of each datagram, 20 to 65507 bytes.
    pub payload_bytes: usize,
    /// How much to send. The last datagram carries what is left of a number of bytes, but never less
    /// than the least payload.
    pub amount: Amount,
    /// Rate to keep to; as fast as it goes when `None` or 0.
    pub rate: Option<Rate>,
    /// Datagrams that one system call may hand to the kernel; 64 at most are. More than one is a train
    /// (`UDP_SEGMENT`), which passes the sender's stack once. A stream with a rate sends one a call
    /// while that keeps up.
    pub datagrams_per_call: usize,
    /// Send buffer to ask for; `None` leaves it to the kernel.
    pub send_buffer_bytes: Option<usize>,
    /// Length of the intervals to record; none when `None`.
    pub interval: Option<Duration>,
    /// Local address; port 0 lets the kernel choose.
    pub bind: Option<SocketAddr>,
    /// Options of the socket.
    pub options: SocketOptions,
    /// Parallel streams that the header tells the server of.
    pub threads: u32,
    /// Whether datagrams carry the client header; without, zeros are at its place, which no server
    /// takes for one.
    pub has_header: bool,
    /// The version to speak as. Servers of 2.0.9 and older understand [`Dialect::V2_0_2`] only. Later
    /// ones understand [`Dialect::V2_1`], but those of 2.0.x count its first datagram as lost.
    pub dialect: Dialect,
}

impl ClientConfig {
    /// One stream, as fast as it goes with one datagram a system call.
    pub fn new(peer: SocketAddr, payload_bytes: usize, amount: Amount) -> Self {
        ClientConfig {
            peer,
            payload_bytes,
            amount,
            rate: None,
            datagrams_per_call: 1,
            send_buffer_bytes: None,
            interval: None,
            bind: None,
            options: SocketOptions::default(),
            threads: 1,
            has_header: true,
            dialect: Dialect::V2_1,
        }
    }

    fn header(&self) -> ClientHeader {
        let amount = match self.amount {
            Amount::Time(duration) => iperf::Amount::from_duration(duration),
            Amount::Bytes(bytes) => iperf::Amount::Bytes(bytes.try_into().unwrap_or(u32::MAX)),
        };
        let (rate, rate_flags) = match self.rate {
            Some(Rate::BitsPerSecond(rate)) => (rate, 0),
            // It knows of bits only.
            Some(Rate::PacketsPerSecond(rate)) if self.dialect == Dialect::V2_0_2 => {
                (rate.saturating_mul(8 * self.payload_bytes as u64), 0)
            }
            Some(Rate::PacketsPerSecond(rate)) => (rate, upper_flags::RATE_IN_PACKETS),
            None => (0, 0),
        };
        let mut header = match self.dialect {
            Dialect::V2_0_2 => ClientHeader::for_udp_v2_0_5(self.peer.port(), amount, rate),
            _ => ClientHeader::for_udp(self.peer.port(), amount, rate),
        };
        header.threads = self.threads;
        if let Some(extension) = &mut header.extension {
            extension.upper_flags |= rate_flags;
            extension.type_of_service = self.options.type_of_service.unwrap_or(0).into();
        }
        header
    }

    fn payload(&self) -> Vec<u8> {
        let mut payload = vec![0; self.payload_bytes];
        self.dialect.prepare_payload(&mut payload, &self.header());
        if !self.has_header {
            let offset = self.dialect.client_header_offset();
            let place = payload.iter_mut().skip(offset);
            place.take(ClientHeader::BYTES).for_each(|byte| *byte = 0);
        }
        payload
    }
}

/// What the client counted. FINs are no data: they are in no other figure.
#[derive(Clone, Copy, Debug)]
pub struct ClientReport {
    /// Datagrams of data that the kernel took.
    pub datagrams_sent: u64,
    /// Their payload.
    pub bytes_sent: u64,
    /// From the first send to the return of the last.
    pub seconds: f64,
    /// Sends that the kernel refused: no buffers, or a closed port reported. Their datagrams were
    /// not sent.
    pub refused_sends: u64,
    /// FINs that the kernel took.
    pub fins_sent: u64,
    /// Answers to FINs that arrived; 0 when the server never answered.
    pub fin_acks_received: u64,
    /// What the server says it counted. `None` when it did not say.
    pub server_report: Option<iperf::ServerReport>,
    /// The send buffer.
    pub send_buffer: SocketBuffer,
}

/// Why a stream could not be sent.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The payload has no room for the headers, or does not fit a datagram.
    #[error(
        "a UDP payload of {payload_bytes} bytes cannot carry an iperf stream; choose {min} to {max}",
        min = PAYLOAD_BYTES_MIN,
        max = PAYLOAD_BYTES_MAX
    )]
    Payload {
        /// The length asked for.
        payload_bytes: usize,
    },
    /// No socket.
    #[error(
        "cannot set up a UDP socket to {peer}; see whether there is a route, and the local address, \
         device and options asked for"
    )]
    Setup {
        /// The server.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// A send failed for good.
    #[error("cannot send to {peer} after {datagrams_sent} datagrams; see the route and the MTU")]
    Send {
        /// The server.
        peer: SocketAddr,
        /// Datagrams sent until then.
        datagrams_sent: u64,
        /// Time since the first send.
        seconds: f64,
        /// What the kernel said.
        source: io::Error,
    },
    /// A receive failed for good.
    #[error(
        "cannot receive the server's answer from {peer}; see whether the interface is still up"
    )]
    Receive {
        /// The server.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// [`Signals::cancel`] was set.
    #[error("the UDP client was told to stop")]
    Cancelled,
}

/// Sends datagrams until the time is up or everything is sent, then ends the stream as 2.1.8 does:
/// a FIN, and another after each 10 ms without an answer, 201 at most. With a server that is known to
/// be of 2.0.x there are ten, 250 ms apart.
///
/// A datagram belongs to the interval in which its send began.
///
/// # Errors
/// See [`ClientError`]. A server that never answers is no error.
pub fn run_client(
    config: &ClientConfig,
    signals: &Signals,
    observer: &mut dyn Observer,
) -> Result<ClientReport, ClientError> {
    let (peer, payload_bytes) = (config.peer, config.payload_bytes);
    if !(PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&payload_bytes) {
        return Err(ClientError::Payload { payload_bytes });
    }
    let (socket, connected) =
        connect(config).map_err(|source| ClientError::Setup { peer, source })?;
    observer.connected(&connected);
    let mut client = Client {
        train: Train::new(&socket, &config.payload(), config.datagrams_per_call),
        socket,
        config,
        signals,
        intervals: Intervals::new(config.interval, observer),
        clock: Clock::start(),
        datagrams_sent: 0,
        bytes_sent: 0,
        refused_sends: 0,
        closing: Closing::default(),
    };
    client.train.dialect = config.dialect;
    let outcome = client.send_data();
    let elapsed = *outcome.as_ref().unwrap_or(&client.clock.begun.elapsed());
    let totals = client.totals();
    client.intervals.finish(elapsed, totals);
    outcome?;
    client.close()?;
    Ok(ClientReport {
        datagrams_sent: client.datagrams_sent,
        bytes_sent: client.bytes_sent,
        seconds: elapsed.as_secs_f64(),
        refused_sends: client.refused_sends,
        fins_sent: client.closing.fins_sent,
        fin_acks_received: client.closing.acks_received,
        server_report: client.closing.server_report,
        send_buffer: connected.buffer,
    })
}

fn connect(config: &ClientConfig) -> io::Result<(UdpSocket, Connected)> {
    let peer = config.peer;
    let fd = config
        .options
        .open(SocketType::DGRAM, SocketFlags::empty(), peer)?;
    let buffer = sockets::send_buffer(&fd, config.send_buffer_bytes)?;
    if let Some(local) = config.bind {
        rustix::net::bind(&fd, &local)?;
    }
    let socket = UdpSocket::from(fd);
    socket.set_write_timeout(Some(sockets::SEND_TIMEOUT))?;
    socket.set_read_timeout(Some(FIN_EVERY))?;
    socket.connect(peer)?;
    let connected = Connected {
        local: socket.local_addr()?,
        peer,
        direction: Direction::Forward,
        is_sender: true,
        buffer,
        tcp: None,
    };
    Ok((socket, connected))
}

struct Client<'a> {
    socket: UdpSocket,
    config: &'a ClientConfig,
    signals: &'a Signals,
    train: Train,
    intervals: Intervals<'a>,
    clock: Clock,
    datagrams_sent: u64,
    bytes_sent: u64,
    refused_sends: u64,
    closing: Closing,
}

impl Client<'_> {
    /// Sends the data; returns how long it took.
    fn send_data(&mut self) -> Result<Duration, ClientError> {
        let (duration, bytes_max) = match self.config.amount {
            Amount::Time(duration) => (duration, u64::MAX),
            Amount::Bytes(bytes) => (Duration::MAX, bytes),
        };
        let pace = self.pace();
        self.clock = Clock::start();
        loop {
            let elapsed = self.clock.begun.elapsed();
            if self.intervals.is_due(elapsed) {
                let totals = self.totals();
                self.intervals.close_due(elapsed, totals);
            }
            let is_over = elapsed >= duration || self.bytes_sent >= bytes_max;
            if is_over || self.signals.is_finishing() {
                return Ok(elapsed);
            }
            self.stop_if_cancelled()?;
            let due = match pace {
                None => u64::MAX,
                Some(pace) => {
                    let ahead = pace.ahead(self.datagrams_sent, elapsed);
                    if !ahead.is_zero() {
                        let left = (duration - elapsed).min(self.intervals.left(elapsed));
                        thread::sleep(ahead.min(left).min(LOOK_EVERY));
                        continue;
                    }
                    pace.due_together(self.datagrams_sent, elapsed)
                }
            };
            self.send_next(due, bytes_max - self.bytes_sent)?;
        }
    }

    /// The schedule. Sleeps are as exact as the kernel's timers from then on.
    fn pace(&self) -> Option<Pace> {
        let rate = self.config.rate?;
        pace::make_sleeps_exact();
        Pace::of_datagrams(rate, self.config.payload_bytes)
    }

    /// Sends `due` datagrams, or as many as one call takes and `bytes_left` fill.
    fn send_next(&mut self, due: u64, bytes_left: u64) -> Result<(), ClientError> {
        let payload_bytes = self.config.payload_bytes as u64;
        let datagrams = due.min(self.train.datagrams_max() as u64);
        let length = (datagrams * payload_bytes).min(bytes_left);
        let rest = length % payload_bytes;
        let length = match length - rest {
            _ if rest == 0 || rest >= PAYLOAD_BYTES_MIN as u64 => length,
            // The last datagram is as long as it must be, and goes alone.
            0 => PAYLOAD_BYTES_MIN as u64,
            whole => whole,
        };
        // A refused send does not use up its ids.
        if self.send(self.next_id(), length as usize)? {
            self.datagrams_sent += length.div_ceil(payload_bytes);
            self.bytes_sent += length;
        } else {
            self.refused_sends += 1;
        }
        Ok(())
    }

    fn next_id(&self) -> i64 {
        (self.datagrams_sent + self.config.dialect.first_id()) as i64
    }

    fn totals(&self) -> Totals {
        Totals {
            bytes: self.bytes_sent,
            datagrams: self.datagrams_sent,
            receipt: None,
        }
    }

    /// Sends `length` bytes of datagrams; `false` when the kernel refused for now.
    fn send(&mut self, first_id: i64, length: usize) -> Result<bool, ClientError> {
        match self.train.send(&self.socket, &self.clock, first_id, length) {
            Ok(()) => Ok(true),
            Err(error) if sockets::is_refused_send(&error) => Ok(false),
            Err(source) => Err(ClientError::Send {
                peer: self.config.peer,
                datagrams_sent: self.datagrams_sent,
                seconds: self.clock.begun.elapsed().as_secs_f64(),
                source,
            }),
        }
    }

    /// One receive; `None` when there was nothing in the socket's time.
    fn receive(&self, buffer: &mut [u8]) -> Result<Option<usize>, ClientError> {
        match self.socket.recv(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if sockets::is_no_datagram(&error) => Ok(None),
            Err(source) => Err(ClientError::Receive {
                peer: self.config.peer,
                source,
            }),
        }
    }

    fn stop_if_cancelled(&self) -> Result<(), ClientError> {
        if self.signals.is_cancelled() {
            return Err(ClientError::Cancelled);
        }
        Ok(())
    }
}
