//! The loop that sends a stream, at whichever end sends it. A write belongs to the interval in which it began,
//! and no wait goes without a look at the signals.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::Pace;
use nicpoll_sys::socket;
use nicpoll_traffic::sockets::{self, SocketBuffer};
use nicpoll_traffic::{LOOK_EVERY, Signals};

use super::socket::Error;
use crate::config::StreamConfig;
use crate::events::{Failed, Total};
use crate::records::{Broken, Calls, Connected, IntervalRecord, Intervals, Observer, Totals};
use crate::slots::{CLOSE_LIMIT_MIN, Ticket};
use crate::stream::{Block, Source, Stream};
use crate::wire::{ClientHeader, fill_payload};

/// A peer that takes no byte for this long is given up.
const STALL_LIMIT: Duration = Duration::from_secs(5);
/// What to send.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The stream ends after this time
    pub duration: Duration,
    /// or after this many bytes, whichever comes first.
    pub bytes_max: u64,
    /// The first bytes of the stream; without, it is filler from the first byte.
    pub header: Option<ClientHeader>,
    /// Bytes of a header that went ahead (-X).
    pub bytes_sent: u64,
    /// How.
    pub stream: StreamConfig,
    /// Whether a receiver that resets the connection once data has come to it has ended the stream, not
    /// broken it: clients of 2.0.9 to 2.0.13 end in that way what they asked for with -d.
    pub may_be_reset: bool,
}

/// What the sender of a stream counted.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SendReport {
    /// Bytes handed to the socket, the header included as in 2.1.8.
    pub bytes_sent: u64,
    /// From the first write to the return of the last.
    pub seconds: f64,
    /// From the first write until the receiver closed, which is when it had read everything: what
    /// 2.1.8 divides by. `None` when it did not close in time, and when the other direction goes on
    /// over the same connection.
    pub seconds_to_close: Option<f64>,
    /// Segments that TCP sent again.
    pub retransmitted_segments: u64,
    /// The stream as one interval that ends with the last write.
    pub whole: IntervalRecord,
    /// The send buffer.
    pub send_buffer: SocketBuffer,
}

/// A connected stream that waits to be sent.
#[derive(Debug)]
pub struct Outgoing {
    pub(super) socket: Arc<TcpStream>,
    pub(super) connected: Connected,
    pub(super) plan: Plan,
    /// Payload that follows the header, whose end is that of the stream; the pattern when `None`.
    pub(super) input: Option<Source>,
    /// Whether the other direction of the connection is read by somebody else.
    pub(super) is_read: bool,
    /// Counts the stream at a server.
    pub(super) _ticket: Option<Ticket>,
}

impl Stream for Outgoing {
    fn total(self, signals: &Signals, observer: &mut dyn Observer) -> Result<Total, Failed> {
        let is_awaited = !self.is_read;
        let report = self.run(signals, observer)?;
        let is_unknown = is_awaited && report.seconds_to_close.is_none();
        let doubt = "the server did not close the connection in time; what arrived is not known";
        Ok(Total {
            close_seconds: report.seconds_to_close,
            doubt: is_unknown.then_some(doubt),
            ..Total::of(report.whole, report.send_buffer)
        })
    }
}

impl Outgoing {
    /// Both ends, and the send buffer.
    pub fn connected(&self) -> &Connected {
        &self.connected
    }

    /// Writes until the time is up or everything is sent; then closes this direction and waits for
    /// the receiver to close the other.
    ///
    /// # Errors
    /// [`Error::Input`], [`Error::Send`], [`Error::Stalled`], [`Error::Setup`] and
    /// [`Error::Cancelled`].
    pub fn run(
        mut self,
        signals: &Signals,
        observer: &mut dyn Observer,
    ) -> Result<SendReport, Error> {
        let peer = self.connected.peer;
        let setup = |source| Error::Setup { peer, source };
        observer.connected(&self.connected);
        let write_bytes = self.plan.stream.length_bytes.max(ClientHeader::BYTES_MAX);
        // A client may have asked its server for more than the server has to give.
        let (write_bytes, _grown) = match &self._ticket {
            Some(ticket) => ticket.grant(write_bytes),
            None => (write_bytes, None),
        };
        let mut buffer = vec![0; write_bytes];
        fill_payload(&mut buffer);
        if let Some(header) = &self.plan.header {
            header.write_to(&mut buffer);
        }
        let mut sender = Sender {
            socket: &self.socket,
            peer,
            signals,
            intervals: Intervals::new(self.plan.stream.interval, observer),
            begun: Instant::now(),
            bytes_sent: self.plan.bytes_sent,
            calls: Calls::default(),
        };
        pace_segments(&self.socket, &self.plan.stream).map_err(setup)?;
        let outcome = sender.send(&self.plan, &buffer, &mut self.input);
        let elapsed = sender.flowed(&outcome);
        let totals = sender.totals();
        sender.intervals.finish(elapsed, totals);
        let granted = socket::send_buffer(&self.socket).map_err(setup)?;
        let closed = outcome.and_then(|_| sender.close(&mut buffer, elapsed, !self.is_read));
        let is_closed = match closed {
            Err(error) if self.plan.may_be_reset && error.is_reset() => true,
            closed => closed.inspect_err(|_| {
                sender.intervals.observer.broken(&Broken {
                    whole: totals.whole(elapsed),
                    buffer: self.connected.buffer,
                });
            })?,
        };
        let info = socket::tcp_info(&self.socket).map_err(setup)?;
        Ok(SendReport {
            bytes_sent: sender.bytes_sent,
            seconds: elapsed.as_secs_f64(),
            seconds_to_close: is_closed.then(|| sender.begun.elapsed().as_secs_f64()),
            retransmitted_segments: info.retransmitted_segments,
            whole: sender.totals().whole(elapsed),
            send_buffer: SocketBuffer {
                granted_bytes: granted as u64,
                ..self.connected.buffer
            },
        })
    }
}

/// Has a paced stream's writes leave as segments that are spread over time, rather than as a burst of one
/// write each. The kernel's rate counts headers, and must not hold back a stream that catches up: it is
/// a quarter above the stream's own, which the schedule of the writes keeps. A rate that was asked for
/// (--fq-rate) is the kernel's own.
fn pace_segments(socket: &TcpStream, stream: &StreamConfig) -> io::Result<()> {
    let with_room = stream.rate.map(|rate| (rate.bits_of(8) / 8 / 4 * 5).max(1));
    match stream.pacing_bytes_per_second.or(with_room) {
        Some(rate) => socket::set_max_pacing_rate(socket, rate),
        None => Ok(()),
    }
}

struct Sender<'a> {
    socket: &'a TcpStream,
    peer: SocketAddr,
    signals: &'a Signals,
    intervals: Intervals<'a>,
    /// Just before the first write.
    begun: Instant,
    bytes_sent: u64,
    calls: Calls,
}

impl Sender<'_> {
    /// Sends the header and everything behind it; returns how long it took. With an input neither time nor
    /// bytes end the stream.
    fn send(
        &mut self,
        plan: &Plan,
        buffer: &[u8],
        input: &mut Option<Source>,
    ) -> Result<Duration, Error> {
        let (duration, bytes_max) = match input {
            Some(_) => (Duration::MAX, u64::MAX),
            None => (plan.duration, plan.bytes_max),
        };
        let pace = plan.stream.rate.map(Pace::of_bytes);
        if let Some(header) = &plan.header {
            self.write_all(&buffer[..header.tcp_bytes()])?;
        }
        let write_bytes = plan.stream.length_bytes.clamp(1, buffer.len());
        loop {
            let elapsed = self.begun.elapsed();
            self.close_intervals(elapsed);
            let is_over = elapsed >= duration || self.bytes_sent >= bytes_max;
            if is_over || self.signals.is_finishing() {
                return Ok(elapsed);
            }
            let ahead = pace.map_or(Duration::ZERO, |pace| pace.ahead(self.bytes_sent, elapsed));
            if !ahead.is_zero() {
                self.stop_if_cancelled()?;
                let left = (duration - elapsed).min(self.intervals.left(elapsed));
                thread::sleep(ahead.min(left).min(LOOK_EVERY));
                continue;
            }
            let Some(input) = input else {
                let left = (bytes_max - self.bytes_sent).min(write_bytes as u64);
                self.write(&buffer[..left as usize])?;
                continue;
            };
            let peer = self.peer;
            match input.next_block() {
                Ok(Block::Ready(block)) => self.write_all(block)?,
                Ok(Block::NotYet) => self.stop_if_cancelled()?,
                Ok(Block::End) => return Ok(elapsed),
                Err(source) => return Err(Error::Input { peer, source }),
            }
        }
    }

    /// What was sent until now, and TCP's own figures. Those cannot be read any more once the connection
    /// is broken, and are then missing.
    fn totals(&self) -> Totals {
        Totals {
            bytes: self.bytes_sent,
            calls: self.calls,
            tcp: socket::tcp_info(self.socket).ok(),
            ..Totals::default()
        }
    }

    fn close_intervals(&mut self, elapsed: Duration) {
        if self.intervals.is_due(elapsed) {
            let totals = self.totals();
            self.intervals.close_due(elapsed, totals);
        }
    }

    /// One write; the kernel may take a part of it. Returns how much it took, or 0 when it took
    /// nothing and the stream is to end.
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let mut stalled_since = None;
        loop {
            self.stop_if_cancelled()?;
            match self.socket.write(bytes) {
                Ok(written) => {
                    self.bytes_sent += written as u64;
                    self.calls.done += 1;
                    return Ok(written);
                }
                Err(error) if sockets::is_no_progress(&error) => self.calls.refused += 1,
                Err(source) => return Err(self.broken(source)),
            }
            if self.signals.is_finishing() {
                return Ok(0);
            }
            self.close_intervals(self.begun.elapsed());
            let since = *stalled_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= STALL_LIMIT {
                return Err(Error::Stalled {
                    peer: self.peer,
                    bytes_sent: self.bytes_sent,
                });
            }
        }
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            match self.write(bytes)? {
                0 => break,
                written => bytes = &bytes[written..],
            }
        }
        Ok(())
    }

    /// How long data flowed: not while the receiver took none.
    fn flowed(&self, outcome: &Result<Duration, Error>) -> Duration {
        let elapsed = self.begun.elapsed();
        match outcome {
            Ok(elapsed) => *elapsed,
            Err(Error::Stalled { .. }) => elapsed.saturating_sub(STALL_LIMIT),
            Err(_) => elapsed,
        }
    }

    /// Closes this direction; where `is_awaited`, waits for the receiver to close the other, discarding what
    /// it sends (the header's acknowledgement). Whether it did in time.
    fn close(
        &mut self,
        buffer: &mut [u8],
        sending: Duration,
        is_awaited: bool,
    ) -> Result<bool, Error> {
        self.socket
            .shutdown(Shutdown::Write)
            .map_err(|source| self.broken(source))?;
        let deadline = Instant::now() + sending.max(CLOSE_LIMIT_MIN);
        while is_awaited && Instant::now() < deadline {
            self.stop_if_cancelled()?;
            match self.socket.read(buffer) {
                Ok(0) => return Ok(true),
                Ok(_) => {}
                Err(error) if sockets::is_no_progress(&error) => {}
                Err(source) => return Err(self.broken(source)),
            }
        }
        Ok(false)
    }

    fn stop_if_cancelled(&self) -> Result<(), Error> {
        if self.signals.is_cancelled() {
            return Err(Error::Cancelled);
        }
        Ok(())
    }

    fn broken(&self, source: io::Error) -> Error {
        Error::Send {
            peer: self.peer,
            bytes_sent: self.bytes_sent,
            source,
        }
    }
}
