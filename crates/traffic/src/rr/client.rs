//! The end that asks.

use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use nicpoll_model::RoundTrip;
use nicpoll_wire::rr::{Kind, Message};
use thiserror::Error;

use super::RESPONSE_TIMEOUT;
use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets::{self, SocketBuffer};

/// Round trips are recorded up to this; longer ones count as this long.
const ROUND_TRIP_MAX_NS: u64 = 10_000_000_000;
/// Significant digits of a recorded round trip.
const ROUND_TRIP_DIGITS: u8 = 3;

/// Whom to ask, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct ClientConfig {
    /// The server.
    pub peer: SocketAddr,
    /// How long to ask. The transaction that is running then is finished; there is one at least.
    pub duration: Duration,
    /// Send buffer to ask for; `None` leaves it to the kernel.
    pub send_buffer_bytes: Option<usize>,
}

/// What the requester counted.
#[derive(Clone, Copy, Debug)]
pub struct ClientReport {
    /// Requests that the kernel took.
    pub requests_sent: u64,
    /// Responses that were read, late ones included.
    pub responses_received: u64,
    /// Responses that came after their request had been given up.
    pub late_responses: u64,
    /// Requests that were not answered within [`RESPONSE_TIMEOUT`].
    pub timeouts: u64,
    /// Sends that the kernel refused. Their requests were not sent.
    pub refused_sends: u64,
    /// Datagrams that answer no open request.
    pub foreign_datagrams: u64,
    /// From the first request to the end of the last transaction.
    pub seconds: f64,
    /// Round trips of the requests that were answered in time; `None` when there were none.
    pub round_trip: Option<RoundTrip>,
    /// The send buffer.
    pub send_buffer: SocketBuffer,
}

/// Why requests could not be made.
#[derive(Debug, Error)]
pub enum ClientError {
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
    #[error("cannot send requests to {peer}; see the route and whether the interface is up")]
    Send {
        /// The server.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// A receive failed for good.
    #[error("cannot receive responses from {peer}; see whether the interface is still up")]
    Receive {
        /// The server.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// [`Signals::cancel`] was set.
    #[error("the requester was told to stop")]
    Cancelled,
}

/// Sends a request, waits for its response, and so on until the time is up; then waits a little for
/// responses that are still on their way.
///
/// # Errors
/// See [`ClientError`]. A server that never answers is no error.
pub fn run_client(config: &ClientConfig, signals: &Signals) -> Result<ClientReport, ClientError> {
    let peer = config.peer;
    let (socket, send_buffer) = sockets::connected_udp(peer, config.send_buffer_bytes, LOOK_EVERY)
        .map_err(|source| ClientError::Setup { peer, source })?;
    let begun = Instant::now();
    let mut client = Client {
        socket,
        peer,
        signals,
        begun,
        requests_sent: 0,
        timeouts: 0,
        late_responses: 0,
        refused_sends: 0,
        foreign_datagrams: 0,
        given_up: BTreeSet::new(),
        round_trips: histogram(),
    };
    loop {
        client.transact()?;
        if begun.elapsed() >= config.duration {
            break;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    client.await_late_responses()?;
    Ok(ClientReport {
        requests_sent: client.requests_sent,
        responses_received: client.round_trips.len() + client.late_responses,
        late_responses: client.late_responses,
        timeouts: client.timeouts,
        refused_sends: client.refused_sends,
        foreign_datagrams: client.foreign_datagrams,
        seconds,
        round_trip: client.summary(seconds),
        send_buffer,
    })
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, ROUND_TRIP_MAX_NS, ROUND_TRIP_DIGITS)
        .expect("constant bounds that the histogram accepts")
}

struct Client<'a> {
    socket: UdpSocket,
    peer: SocketAddr,
    signals: &'a Signals,
    begun: Instant,
    requests_sent: u64,
    timeouts: u64,
    late_responses: u64,
    refused_sends: u64,
    foreign_datagrams: u64,
    /// Requests without a response, of which ten a second can come at most.
    given_up: BTreeSet<u64>,
    round_trips: Histogram<u64>,
}

impl Client<'_> {
    /// One request, and its response or the end of the wait for it.
    fn transact(&mut self) -> Result<(), ClientError> {
        let sequence = self.requests_sent + 1;
        let asked = Instant::now();
        let request = Message {
            kind: Kind::Request,
            sequence,
            sent_ns: asked.duration_since(self.begun).as_nanos() as u64,
        };
        match self.socket.send(&request.to_bytes()) {
            Ok(_) => self.requests_sent = sequence,
            Err(error) if sockets::is_refused_send(&error) => {
                self.refused_sends += 1;
                return self.stop_if_cancelled();
            }
            Err(source) => {
                return Err(ClientError::Send {
                    peer: self.peer,
                    source,
                });
            }
        }
        loop {
            self.stop_if_cancelled()?;
            let answered = self.receive()?;
            let round_trip = asked.elapsed();
            if answered == Some(sequence) {
                let round_trip_ns = round_trip.as_nanos().try_into().unwrap_or(u64::MAX);
                self.round_trips.saturating_record(round_trip_ns);
                return Ok(());
            }
            self.take_late(answered);
            if round_trip >= RESPONSE_TIMEOUT {
                self.timeouts += 1;
                self.given_up.insert(sequence);
                return Ok(());
            }
        }
    }

    fn await_late_responses(&mut self) -> Result<(), ClientError> {
        let deadline = Instant::now() + RESPONSE_TIMEOUT;
        while !self.given_up.is_empty() && Instant::now() < deadline {
            self.stop_if_cancelled()?;
            let answered = self.receive()?;
            self.take_late(answered);
        }
        Ok(())
    }

    /// One receive: the number of the request that it answers. `None` when nothing came, or nothing
    /// that is a response.
    fn receive(&mut self) -> Result<Option<u64>, ClientError> {
        // One byte more than a message, so that a longer datagram is not taken for one.
        let mut buffer = [0; Message::BYTES + 1];
        match self.socket.recv(&mut buffer) {
            Ok(length) => match Message::parse(&buffer[..length]) {
                Ok(message) if message.kind == Kind::Response => Ok(Some(message.sequence)),
                _ => {
                    self.foreign_datagrams += 1;
                    Ok(None)
                }
            },
            Err(error) if sockets::is_no_datagram(&error) => Ok(None),
            Err(source) => Err(ClientError::Receive {
                peer: self.peer,
                source,
            }),
        }
    }

    fn take_late(&mut self, answered: Option<u64>) {
        let Some(sequence) = answered else { return };
        if self.given_up.remove(&sequence) {
            self.late_responses += 1;
        } else {
            self.foreign_datagrams += 1;
        }
    }

    fn stop_if_cancelled(&self) -> Result<(), ClientError> {
        if self.signals.is_cancelled() {
            return Err(ClientError::Cancelled);
        }
        Ok(())
    }

    fn summary(&self, seconds: f64) -> Option<RoundTrip> {
        let recorded = &self.round_trips;
        (!recorded.is_empty()).then(|| RoundTrip {
            transactions: recorded.len(),
            transactions_per_second: recorded.len() as f64 / seconds,
            timeouts: self.timeouts,
            min_ns: recorded.min(),
            p50_ns: recorded.value_at_quantile(0.5),
            p99_ns: recorded.value_at_quantile(0.99),
            p999_ns: recorded.value_at_quantile(0.999),
            max_ns: recorded.max(),
            mean_ns: recorded.mean(),
        })
    }
}
