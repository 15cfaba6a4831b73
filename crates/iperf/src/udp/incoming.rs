//! A stream that waits to be received, at a server or at a client that asked for it.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nicpoll_traffic::sockets;
use nicpoll_traffic::udp_server::{BoundUdp, ServerError};
use nicpoll_traffic::{LOOK_EVERY, RefusedSends, Signals};

use super::ReceiveReport;
use super::batch::Clock;
use super::receiver::{Manner, Receiver, Taken};
use crate::config::StreamConfig;
use crate::observer::Observer;
use crate::slots::Ticket;

/// A 2.1.8 client asks again after a random silence up to this long,
const ASK_EVERY_MAX: Duration = Duration::from_millis(20);
/// and this often at most.
const REQUESTS_MAX: u32 = 100;

/// A stream that waits to be received.
#[derive(Debug)]
pub struct Incoming {
    // The socket goes before the client's address does, so that the listener knows the client for as
    // long as datagrams of it can come here.
    pub(super) bound: BoundUdp,
    pub(super) stream: StreamConfig,
    pub(super) manner: Manner,
    /// What came before the socket was the sender's alone.
    pub(super) queued: Vec<Taken>,
    /// When the first datagram was looked at; `None` when none has come.
    pub(super) begun: Option<Instant>,
    /// Whom to ask for the stream, and with which payload.
    pub(super) request: Option<(SocketAddr, Vec<u8>)>,
    /// The sender, at a listener.
    pub(super) _client: Option<Arc<SocketAddr>>,
    /// Counts the stream at a server.
    pub(super) ticket: Option<Ticket>,
}

impl Incoming {
    /// Receives the stream to its end.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn run(
        self,
        signals: &Signals,
        observer: &mut dyn Observer,
    ) -> Result<ReceiveReport, ServerError> {
        if let Some((server, payload)) = &self.request {
            self.ask(*server, payload.clone(), signals)?;
        }
        let mut receiver =
            Receiver::new(&self.bound, self.stream.interval, observer).in_manner(self.manner);
        receiver = receiver.counted_by(self.ticket.as_ref());
        if self.stream.is_batched {
            receiver = receiver.napping();
        }
        if self.stream.records_times {
            receiver = receiver.recording_times();
        }
        if let (Some(first), Some(begun)) = (self.queued.first(), self.begun) {
            receiver.open(first, begun)?;
            for taken in &self.queued {
                receiver.take(taken, begun)?;
            }
        }
        receiver.run(signals)
    }

    /// Repeats the first datagram until the server sends.
    fn ask(
        &self,
        server: SocketAddr,
        mut payload: Vec<u8>,
        signals: &Signals,
    ) -> Result<(), ServerError> {
        let failed = |source| self.bound.receive_failed(source);
        let socket = &self.bound.socket;
        let clock = Clock::start();
        let random = RandomState::new();
        for request in 0..REQUESTS_MAX {
            if signals.is_cancelled() || signals.is_sender_done() {
                return Err(ServerError::Cancelled);
            }
            clock.header(1).write_to(&mut payload);
            let mut refused = RefusedSends::default();
            self.bound.answer(server, &payload, &mut refused)?;
            let share = random.hash_one(request) as u32;
            let silence = ASK_EVERY_MAX.mul_f64(f64::from(share) / f64::from(u32::MAX));
            // None at all would wait for ever.
            let silence = silence.max(Duration::from_micros(1));
            socket.set_read_timeout(Some(silence)).map_err(failed)?;
            match socket.peek(&mut [0; 1]) {
                Ok(_) => {
                    return socket.set_read_timeout(Some(LOOK_EVERY)).map_err(failed);
                }
                Err(error) if sockets::is_no_datagram(&error) => {}
                Err(source) => return Err(failed(source)),
            }
        }
        Err(ServerError::NoData { peer: server })
    }
}
