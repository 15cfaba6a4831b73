//! The sending end of a UDP stream.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nicpoll_wire::iperf::datagram::{PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, prepare_payload};
use nicpoll_wire::iperf::reply::{self, Reply};
use nicpoll_wire::iperf::{self, Amount, ClientHeader, DatagramHeader};
use thiserror::Error;

use super::{FIN_EVERY, FIN_RETRIES};
use crate::signals::Signals;
use crate::sockets::{self, SocketBuffer};

/// After an answer, answers to the other FINs are awaited until this long a silence,
const LATE_ACK_SILENCE: Duration = Duration::from_millis(20);
/// and never longer than this.
const LATE_ACK_LIMIT: Duration = Duration::from_millis(250);

/// What to send where.
#[derive(Clone, Copy, Debug)]
pub struct ClientConfig {
    /// The server.
    pub peer: SocketAddr,
    /// UDP payload of each datagram, 20 to 65507 bytes.
    pub payload_bytes: usize,
    /// How long to send, as fast as it goes.
    pub duration: Duration,
    /// Send buffer to ask for; `None` leaves it to the kernel.
    pub send_buffer_bytes: Option<usize>,
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
        "cannot set up a UDP socket to {peer}; see that there is a route and the buffer is sane"
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

/// Sends datagrams until the time is up, as fast as the socket takes them, then ends the stream as
/// 2.1.8 does: a FIN, and another after each 10 ms without an answer, 201 at most.
///
/// # Errors
/// See [`ClientError`]. A server that never answers is no error.
pub fn run_client(config: &ClientConfig, signals: &Signals) -> Result<ClientReport, ClientError> {
    let ClientConfig {
        peer,
        payload_bytes,
        duration,
        send_buffer_bytes,
    } = *config;
    if !(PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&payload_bytes) {
        return Err(ClientError::Payload { payload_bytes });
    }
    let (socket, send_buffer) = sockets::connected_udp(peer, send_buffer_bytes, FIN_EVERY)
        .map_err(|source| ClientError::Setup { peer, source })?;
    let mut payload = vec![0; payload_bytes];
    let amount = Amount::from_duration(duration);
    prepare_payload(&mut payload, &ClientHeader::for_udp(peer.port(), amount, 0));
    let mut client = Client {
        socket,
        peer,
        signals,
        payload,
        clock: Clock::start(),
        datagrams_sent: 0,
        refused_sends: 0,
        closing: Closing::default(),
    };
    let seconds = client.send_data(duration)?;
    client.close()?;
    Ok(ClientReport {
        datagrams_sent: client.datagrams_sent,
        bytes_sent: client.datagrams_sent * payload_bytes as u64,
        seconds,
        refused_sends: client.refused_sends,
        fins_sent: client.closing.fins_sent,
        fin_acks_received: client.closing.acks_received,
        server_report: client.closing.server_report,
        send_buffer,
    })
}

/// Wall-clock time at the price of one reading of the monotonic clock, and without its steps.
struct Clock {
    begun: Instant,
    begun_wall: Duration,
}

impl Clock {
    fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        Clock {
            begun: Instant::now(),
            begun_wall: wall.unwrap_or_default(),
        }
    }

    fn header(&self, id: i64, elapsed: Duration) -> DatagramHeader {
        let now = self.begun_wall + elapsed;
        DatagramHeader {
            id,
            sent_seconds: now.as_secs() as u32,
            sent_microseconds: now.subsec_micros(),
        }
    }
}

#[derive(Default)]
struct Closing {
    fins_sent: u64,
    acks_received: u64,
    server_report: Option<iperf::ServerReport>,
}

struct Client<'a> {
    socket: UdpSocket,
    peer: SocketAddr,
    signals: &'a Signals,
    payload: Vec<u8>,
    clock: Clock,
    datagrams_sent: u64,
    refused_sends: u64,
    closing: Closing,
}

impl Client<'_> {
    /// Sends data until the time is up; returns how long it took in seconds.
    fn send_data(&mut self, duration: Duration) -> Result<f64, ClientError> {
        self.clock = Clock::start();
        loop {
            let elapsed = self.clock.begun.elapsed();
            if elapsed >= duration {
                return Ok(elapsed.as_secs_f64());
            }
            self.stop_if_cancelled()?;
            // A refused send does not use up its id.
            let id = self.datagrams_sent as i64 + 1;
            if self.send(self.clock.header(id, elapsed))? {
                self.datagrams_sent += 1;
            } else {
                self.refused_sends += 1;
            }
        }
    }

    /// `false` when the kernel refused the datagram for now.
    fn send(&mut self, header: DatagramHeader) -> Result<bool, ClientError> {
        header.write_to(&mut self.payload);
        match self.socket.send(&self.payload) {
            Ok(_) => Ok(true),
            Err(error) if sockets::is_refused_send(&error) => Ok(false),
            Err(source) => Err(ClientError::Send {
                peer: self.peer,
                datagrams_sent: self.datagrams_sent,
                source,
            }),
        }
    }

    fn close(&mut self) -> Result<(), ClientError> {
        self.discard_early_replies()?;
        let first_fin = self.datagrams_sent as i64 + 1;
        for retry in 0..=i64::from(FIN_RETRIES) {
            self.stop_if_cancelled()?;
            let elapsed = self.clock.begun.elapsed();
            let fin = self.clock.header(-(first_fin + retry), elapsed);
            if self.send(fin)? {
                self.closing.fins_sent += 1;
            }
            if self.await_ack(FIN_EVERY)? {
                return self.await_late_acks();
            }
        }
        Ok(())
    }

    /// Takes what came before the first FIN and therefore answers none: header acknowledgements of
    /// 2.0.10 to 2.0.13.
    fn discard_early_replies(&mut self) -> Result<(), ClientError> {
        let failed = |source| ClientError::Receive {
            peer: self.peer,
            source,
        };
        self.socket.set_nonblocking(true).map_err(failed)?;
        let deadline = Instant::now() + LATE_ACK_LIMIT;
        while Instant::now() < deadline && self.receive(&mut [0; 64])?.is_some() {}
        self.socket.set_nonblocking(false).map_err(failed)
    }

    /// Waits for the answers to the remaining FINs, which would otherwise find no socket and be
    /// missing from the account of what was sent and received.
    fn await_late_acks(&mut self) -> Result<(), ClientError> {
        let deadline = Instant::now() + LATE_ACK_LIMIT;
        while self.closing.acks_received < self.closing.fins_sent
            && Instant::now() < deadline
            && self.await_ack(LATE_ACK_SILENCE)?
        {}
        Ok(())
    }

    /// Waits for one answer to a FIN; `false` when none came in time.
    fn await_ack(&mut self, timeout: Duration) -> Result<bool, ClientError> {
        let deadline = Instant::now() + timeout;
        let mut buffer = [0; 2048];
        loop {
            self.stop_if_cancelled()?;
            if let Some(length) = self.receive(&mut buffer)? {
                let reply = reply::classify(&buffer[..length], &self.payload);
                match reply {
                    Reply::HeaderAck(_) => continue,
                    Reply::Report(report) => self.closing.server_report = Some(report),
                    Reply::Echo | Reply::BareAck => {}
                }
                self.closing.acks_received += 1;
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
        }
    }

    /// One receive; `None` when there was nothing in the socket's time.
    fn receive(&self, buffer: &mut [u8]) -> Result<Option<usize>, ClientError> {
        match self.socket.recv(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if sockets::is_no_datagram(&error) => Ok(None),
            Err(source) => Err(ClientError::Receive {
                peer: self.peer,
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
