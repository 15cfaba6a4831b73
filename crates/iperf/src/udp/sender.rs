//! The loop that sends a stream of datagrams, at whichever end sends it.
//!
//! What must hold: a datagram belongs to the interval in which its send began, and no wait goes without
//! a look at the signals.

mod closing;
mod error;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::wire;
use crate::wire::datagram::{PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN};

use closing::Closing;
pub use error::SendError;

use nicpoll_model::Pace;
use nicpoll_traffic::sockets::{self, SocketBuffer};
use nicpoll_traffic::{LOOK_EVERY, Signals};

use super::batch::{Batch, Clock};
use crate::config::StreamConfig;
use crate::input::{Block, Source};
use crate::observer::{Broken, Calls, Connected, IntervalRecord, Intervals, Observer, Totals};
use crate::pace;
use crate::slots::Ticket;
use crate::times::{Distribution, Gaps};

/// How often a sender looks for room that the kernel does not make it wait for.
const ROOM_EVERY: Duration = Duration::from_micros(200);

/// What to send.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The stream ends after this time
    pub(super) duration: Duration,
    /// or after this many bytes, whichever comes first. The last datagram carries what is left of
    /// them, but never less than the least payload.
    pub(super) bytes_max: u64,
    /// What the first datagram carries, but for its own header; as long as `payload` or longer,
    pub(super) opening: Vec<u8>,
    /// and what the others carry.
    pub(super) payload: Vec<u8>,
    /// How. With an input neither time nor bytes count.
    pub(super) stream: StreamConfig,
    /// Whether FINs are answered: not where the other end sends over the same socket as well, or
    /// instead.
    pub(super) is_answered: bool,
    /// Whether a closed port at the other end ends the stream, as it must where a client can ask for
    /// it and go.
    pub(super) ends_at_closed_port: bool,
}

/// What the sender counted. FINs are no data: they are in no other figure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SendReport {
    /// Datagrams of data that the kernel took.
    pub datagrams_sent: u64,
    /// Their payload.
    pub bytes_sent: u64,
    /// From the first send to the return of the last.
    pub seconds: f64,
    /// Sends, of FINs too, that the kernel refused: no room in time, no buffers, or a closed port
    /// reported. Their datagrams were not sent.
    pub refused_sends: u64,
    /// When the kernel first told that the receiver's port is closed, in seconds from the first send;
    /// `None` when it did not.
    pub closed_port_after: Option<f64>,
    /// FINs that the kernel took.
    pub fins_sent: u64,
    /// Answers to FINs that arrived; 0 when none was.
    pub fin_acks_received: u64,
    /// What the receiver says it counted. `None` when it did not say.
    pub server_report: Option<wire::ServerReport>,
    /// The stream as one interval.
    pub whole: IntervalRecord,
    /// Gaps between the beginnings of the sends; datagrams that were sent with one system call have
    /// none between them. `None` when they are not recorded, and below two datagrams.
    pub gaps: Option<Box<Distribution>>,
    /// The send buffer.
    pub send_buffer: SocketBuffer,
}

/// A stream that waits to be sent.
#[derive(Debug)]
pub struct Outgoing {
    // The socket goes before the client's address does, as it does where a stream is received.
    pub(super) socket: UdpSocket,
    pub(super) connected: Connected,
    pub(super) plan: Plan,
    /// Has the listener know the client for as long as this lives.
    pub(super) _client: Option<Arc<SocketAddr>>,
    /// Counts the stream at a server.
    pub(super) _ticket: Option<Ticket>,
}

impl Outgoing {
    /// Both ends, and the send buffer.
    pub fn connected(&self) -> &Connected {
        &self.connected
    }

    /// Sends datagrams until the time is up or everything is sent, then ends the stream as 2.1.8 does:
    /// a FIN, and another after each 10 ms without an answer, 201 at most. With a server that is known to
    /// be of 2.0.x there are ten, 250 ms apart; where none is answered, three.
    ///
    /// # Errors
    /// See [`SendError`]. A receiver that never answers is no error.
    pub fn run(
        self,
        signals: &Signals,
        observer: &mut dyn Observer,
    ) -> Result<SendReport, SendError> {
        let plan = &self.plan;
        let payload_bytes = plan.payload.len();
        if !(PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&payload_bytes) {
            return Err(SendError::Payload { payload_bytes });
        }
        let input = self.open_input()?;
        // Payload from elsewhere is read for one datagram at a time.
        let is_batched = plan.stream.is_batched && input.is_none();
        let datagrams_per_call = if is_batched { usize::MAX } else { 1 };
        observer.connected(&self.connected);
        let mut sender = Sender {
            batch: Batch::new(&self.socket, &plan.payload, datagrams_per_call),
            socket: &self.socket,
            peer: self.connected.peer,
            plan,
            signals,
            intervals: Intervals::new(plan.stream.interval, observer),
            clock: Clock::start(),
            datagrams_sent: 0,
            bytes_sent: 0,
            calls: Calls::default(),
            input,
            loaded: None,
            gaps: plan.stream.records_times.then(Gaps::new),
            closed_port_after: None,
            closing: Closing::default(),
        };
        sender.batch.dialect = plan.stream.dialect;
        let outcome = sender.send_data();
        let elapsed = *outcome.as_ref().unwrap_or(&sender.clock.begun.elapsed());
        let totals = sender.totals();
        sender.intervals.finish(elapsed, totals);
        if outcome.is_err() {
            sender.intervals.observer.broken(&Broken {
                whole: totals.whole(elapsed),
                buffer: self.connected.buffer,
            });
        }
        outcome?;
        if plan.is_answered {
            sender.close()?;
        } else {
            sender.close_unanswered()?;
        }
        Ok(SendReport {
            datagrams_sent: sender.datagrams_sent,
            bytes_sent: sender.bytes_sent,
            seconds: elapsed.as_secs_f64(),
            refused_sends: sender.calls.refused + sender.closing.fins_refused,
            closed_port_after: sender.closed_port_after.map(|after| after.as_secs_f64()),
            fins_sent: sender.closing.fins_sent,
            fin_acks_received: sender.closing.acks_received,
            server_report: sender.closing.server_report,
            whole: totals.whole(elapsed),
            gaps: sender
                .gaps
                .as_ref()
                .and_then(Gaps::distribution)
                .map(Box::new),
            send_buffer: self.connected.buffer,
        })
    }

    fn open_input(&self) -> Result<Option<Source>, SendError> {
        let Plan {
            payload, stream, ..
        } = &self.plan;
        let block_bytes = payload.len() - stream.dialect.client_header_offset();
        let source = stream
            .input
            .as_ref()
            .map(|input| Source::open(input, block_bytes));
        source.transpose().map_err(|source| SendError::Input {
            peer: self.connected.peer,
            source,
        })
    }
}

/// What the next datagram carries.
enum Load {
    /// The pattern.
    Pattern,
    /// So many bytes, the datagram's header included, of another payload.
    Input(usize),
    /// It is not there yet.
    NotYet,
    /// There is no more.
    End,
}

struct Sender<'a> {
    socket: &'a UdpSocket,
    peer: SocketAddr,
    plan: &'a Plan,
    signals: &'a Signals,
    batch: Batch,
    intervals: Intervals<'a>,
    clock: Clock,
    datagrams_sent: u64,
    bytes_sent: u64,
    calls: Calls,
    input: Option<Source>,
    /// Length of the next datagram, when it holds payload from elsewhere that was not sent yet.
    loaded: Option<usize>,
    gaps: Option<Gaps>,
    closed_port_after: Option<Duration>,
    closing: Closing,
}

impl Sender<'_> {
    /// Sends the data; returns how long it took.
    fn send_data(&mut self) -> Result<Duration, SendError> {
        let (duration, bytes_max) = match self.input {
            Some(_) => (Duration::MAX, u64::MAX),
            None => (self.plan.duration, self.plan.bytes_max),
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
            match self.load()? {
                Load::Pattern if self.opens() => self.send_opening(elapsed)?,
                Load::Pattern => {
                    self.send_next(due, bytes_max - self.bytes_sent, elapsed)?;
                }
                Load::Input(length) => {
                    if self.send_counted(1, length, elapsed)? {
                        self.loaded = None;
                    }
                }
                Load::NotYet => {}
                Load::End => return Ok(elapsed),
            }
        }
    }

    /// Puts payload into the next datagram. As in 2.1.8 the first one has the header and the pattern,
    /// and what comes from elsewhere follows in the place of both.
    fn load(&mut self) -> Result<Load, SendError> {
        let Some(input) = self.input.as_mut().filter(|_| self.datagrams_sent > 0) else {
            return Ok(Load::Pattern);
        };
        if let Some(length) = self.loaded {
            return Ok(Load::Input(length));
        }
        match input.next_block() {
            Ok(Block::Ready(block)) => {
                let length = self.batch.load(block);
                self.loaded = Some(length);
                Ok(Load::Input(length))
            }
            Ok(Block::NotYet) => Ok(Load::NotYet),
            Ok(Block::End) => Ok(Load::End),
            Err(source) => Err(SendError::Input {
                peer: self.peer,
                source,
            }),
        }
    }

    /// The schedule. Sleeps are as exact as the kernel's timers from then on.
    fn pace(&self) -> Option<Pace> {
        let rate = self.plan.stream.rate?;
        pace::make_sleeps_exact();
        let pace = Pace::of_datagrams(rate, self.plan.payload.len());
        Some(pace.in_bursts(self.plan.stream.burst_datagrams))
    }

    /// Whether the next datagram is longer than those behind it.
    fn opens(&self) -> bool {
        self.datagrams_sent == 0 && self.plan.opening.len() > self.plan.payload.len()
    }

    /// Sends the first datagram, alone.
    fn send_opening(&mut self, elapsed: Duration) -> Result<(), SendError> {
        let opening = &self.plan.opening;
        let outcome = self
            .batch
            .send_alone(self.socket, &self.clock, self.next_id(), opening);
        let is_sent = self.judge(outcome)?;
        self.count(is_sent, 1, opening.len(), elapsed);
        Ok(())
    }

    /// Sends `due` datagrams, or as many as one call takes and `bytes_left` fill.
    fn send_next(
        &mut self,
        due: u64,
        bytes_left: u64,
        elapsed: Duration,
    ) -> Result<bool, SendError> {
        let payload_bytes = self.plan.payload.len() as u64;
        let datagrams = self.batch.together(self.socket, due) as u64;
        if datagrams == 0 {
            thread::sleep(ROOM_EVERY);
            return Ok(false);
        }
        let length = (datagrams * payload_bytes).min(bytes_left);
        let rest = length % payload_bytes;
        let length = match length - rest {
            _ if rest == 0 || rest >= PAYLOAD_BYTES_MIN as u64 => length,
            // The last datagram is as long as it must be, and goes alone.
            0 => PAYLOAD_BYTES_MIN as u64,
            whole => whole,
        };
        self.send_counted(length.div_ceil(payload_bytes), length as usize, elapsed)
    }

    /// Sends `length` bytes of `datagrams` datagrams; `false` when the kernel refused for now, which does
    /// not use up their ids.
    fn send_counted(
        &mut self,
        datagrams: u64,
        length: usize,
        elapsed: Duration,
    ) -> Result<bool, SendError> {
        let is_sent = self.send(self.next_id(), length)?;
        self.count(is_sent, datagrams, length, elapsed);
        Ok(is_sent)
    }

    fn count(&mut self, is_sent: bool, datagrams: u64, length: usize, elapsed: Duration) {
        if is_sent {
            self.datagrams_sent += datagrams;
            self.bytes_sent += length as u64;
            self.calls.done += 1;
            if let Some(gaps) = &mut self.gaps {
                gaps.record_together(elapsed.as_nanos() as i64, datagrams);
            }
        } else {
            self.calls.refused += 1;
        }
    }

    fn next_id(&self) -> i64 {
        (self.datagrams_sent + self.plan.stream.dialect.first_id()) as i64
    }

    fn totals(&self) -> Totals {
        Totals {
            bytes: self.bytes_sent,
            datagrams: self.datagrams_sent,
            calls: self.calls,
            ..Totals::default()
        }
    }

    /// Sends `length` bytes of datagrams; `false` when the kernel refused for now.
    fn send(&mut self, first_id: i64, length: usize) -> Result<bool, SendError> {
        let outcome = self.batch.send(self.socket, &self.clock, first_id, length);
        self.judge(outcome)
    }

    /// What came of a send; `false` when the kernel refused for now.
    fn judge(&mut self, outcome: io::Result<()>) -> Result<bool, SendError> {
        match outcome {
            Ok(()) => Ok(true),
            Err(error) if self.is_gone(&error) => Err(SendError::Closed {
                peer: self.peer,
                datagrams_sent: self.datagrams_sent,
            }),
            Err(error) if sockets::is_refused_send(&error) => {
                if error.kind() == io::ErrorKind::ConnectionRefused {
                    let elapsed = self.clock.begun.elapsed();
                    self.closed_port_after.get_or_insert(elapsed);
                }
                Ok(false)
            }
            Err(source) => Err(SendError::Send {
                peer: self.peer,
                datagrams_sent: self.datagrams_sent,
                seconds: self.clock.begun.elapsed().as_secs_f64(),
                source,
            }),
        }
    }

    /// Whether the receiver has gone before the end and that matters.
    fn is_gone(&self, error: &io::Error) -> bool {
        let is_closed = error.kind() == io::ErrorKind::ConnectionRefused;
        is_closed && self.plan.ends_at_closed_port && !self.closing.has_begun
    }

    /// One receive; `None` when there was nothing in the socket's time.
    fn receive(&self, buffer: &mut [u8]) -> Result<Option<usize>, SendError> {
        match self.socket.recv(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if sockets::is_no_datagram(&error) => Ok(None),
            Err(source) => Err(SendError::Receive {
                peer: self.peer,
                source,
            }),
        }
    }

    fn stop_if_cancelled(&self) -> Result<(), SendError> {
        if self.signals.is_cancelled() {
            return Err(SendError::Cancelled);
        }
        Ok(())
    }
}
