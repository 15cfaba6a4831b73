//! Sends a stream, at either end. A write belongs to the interval in which it began, and every wait checks the
//! signals.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::Pace;
use nicpoll_model::traffic::Direction;
use nicpoll_sys::socket;
use nicpoll_traffic::sockets::{self, SocketBuffer};
use nicpoll_traffic::{LOOK_EVERY, Signals};

use super::connection::Connection;
use crate::config::StreamConfig;
use crate::records::{Connected, IntervalRecord, Observer, Splitter, Total};
use crate::slots::CLOSE_LIMIT_MIN;
use crate::stream::{Error, ReadyStream};
use crate::wire::{ClientHeader, fill_payload};

/// A peer that takes no byte for this long is given up.
const STALL_LIMIT: Duration = Duration::from_secs(5);

/// A connected stream ready to be sent.
pub struct Outgoing {
    pub connection: Connection,
    pub connected: Connected,
    /// The first bytes of the stream; without it, filler from the first byte.
    pub header: Option<ClientHeader>,
    /// Whether a reset after some data counts as the receiver's normal end: clients of 2.0.9 to 2.0.13 end a
    /// stream requested with -d this way.
    pub may_be_reset: bool,
}

impl Outgoing {
    /// A stream of filler, as the connection's configuration says.
    pub fn of(connection: Connection, direction: Direction) -> Result<Self, Error> {
        Ok(Outgoing {
            connected: connection.connected(direction, true)?,
            connection,
            header: None,
            may_be_reset: false,
        })
    }
}

impl ReadyStream for Outgoing {
    /// Writes until the time is up or everything is sent; then closes this direction and, except in full
    /// duplex, waits for the receiver to close its own.
    fn run(self, signals: &Signals, observer: &mut dyn Observer) -> Result<Total, Error> {
        let connection = &self.connection;
        let stream = &connection.stream;
        let setup = Error::setup(connection.peer);
        observer.connected(&self.connected);
        let write_bytes = stream.length_bytes.max(ClientHeader::BYTES);
        // A client may request a longer write than the server has memory for.
        let (write_bytes, _grown) = match &connection.ticket {
            Some(ticket) => ticket.grant(write_bytes),
            None => (write_bytes, None),
        };
        let mut buffer = vec![0; write_bytes];
        fill_payload(&mut buffer);
        if let Some(header) = &self.header {
            header.write_to(&mut buffer);
        }
        let mut sender = TcpStreamSender {
            connection,
            signals,
            intervals: Splitter::new(stream.interval, observer),
            begun: Instant::now(),
            stalled_from: None,
            counted: IntervalRecord::default(),
        };
        pace_segments(&connection.socket, stream).map_err(setup)?;
        let header_bytes = self.header.map_or(0, |_| ClientHeader::BYTES);
        let outcome = sender.send(&buffer, header_bytes);
        let now = || sender.begun.elapsed();
        let elapsed = *outcome
            .as_ref()
            .unwrap_or(&sender.stalled_from.unwrap_or_else(now));
        let counted = sender.counted();
        sender.intervals.finish(elapsed, counted);
        let granted = socket::send_buffer(&connection.socket).map_err(setup)?;
        let is_awaited = self.connected.direction != Direction::FullDuplex;
        let total = Total::of(
            counted.until(elapsed),
            SocketBuffer {
                granted_bytes: granted as u64,
                ..self.connected.buffer
            },
        );
        let closed = outcome.and_then(|_| sender.close(&mut buffer, elapsed, is_awaited));
        let is_ended = self.may_be_reset && total.whole.bytes > 0;
        let is_closed = match closed {
            Err(error) if is_ended && is_reset(&error) => true,
            Err(error) => {
                sender.intervals.observer.broken(total);
                return Err(error);
            }
            Ok(is_closed) => is_closed,
        };
        let doubt = "the server did not close the connection in time; what arrived is not known";
        Ok(Total {
            whole: sender.counted().until(elapsed),
            close_seconds: is_closed.then(|| sender.begun.elapsed().as_secs_f64()),
            doubt: (is_awaited && !is_closed).then_some(doubt),
            ..total
        })
    }
}

/// Whether the receiver reset the connection, or closed it with data unread.
fn is_reset(error: &Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
    let Error::Io { source, .. } = error else {
        return false;
    };
    matches!(source.kind(), ConnectionReset | BrokenPipe | NotConnected)
}

/// Makes the kernel spread a paced stream's segments over time, instead of sending each write as a burst. The
/// kernel's rate counts headers and must not slow a stream that catches up, so it is a quarter above the
/// stream's own rate, which the write schedule keeps.
fn pace_segments(socket: &TcpStream, stream: &StreamConfig) -> io::Result<()> {
    let with_room = stream.rate.map(|rate| (rate.bits_of(8) / 8 / 4 * 5).max(1));
    match with_room {
        Some(rate) => socket::set_max_pacing_rate(socket, rate),
        None => Ok(()),
    }
}

struct TcpStreamSender<'a> {
    connection: &'a Connection,
    signals: &'a Signals,
    intervals: Splitter<'a>,
    /// Just before the first write.
    begun: Instant,
    /// When the receiver last took data, if it was given up.
    stalled_from: Option<Duration>,
    /// Without TCP's own counters.
    counted: IntervalRecord,
}

impl TcpStreamSender<'_> {
    /// Sends the header at the start of the buffer, then the rest of the stream; returns how long it took.
    fn send(&mut self, buffer: &[u8], header_bytes: usize) -> Result<Duration, Error> {
        let stream = &self.connection.stream;
        let (duration, bytes_max) = stream.bounds();
        let pace = stream.rate.map(Pace::of_bytes);
        self.write_all(&buffer[..header_bytes])?;
        let write_bytes = stream.length_bytes.clamp(1, buffer.len());
        loop {
            let elapsed = self.begun.elapsed();
            self.close_intervals(elapsed);
            let bytes_sent = self.counted.bytes;
            let is_over = elapsed >= duration || bytes_sent >= bytes_max;
            if is_over || self.signals.is_finishing() {
                return Ok(elapsed);
            }
            let ahead = pace.map_or(Duration::ZERO, |pace| pace.ahead(bytes_sent, elapsed));
            if !ahead.is_zero() {
                self.signals.check()?;
                let left = (duration - elapsed).min(self.intervals.left(elapsed));
                thread::sleep(ahead.min(left).min(LOOK_EVERY));
                continue;
            }
            let left = (bytes_max - bytes_sent).min(write_bytes as u64);
            self.write(&buffer[..left as usize])?;
        }
    }

    /// The counts so far, with TCP's own counters; these are missing once the connection is broken.
    fn counted(&self) -> IntervalRecord {
        IntervalRecord {
            tcp: socket::tcp_info(&self.connection.socket).ok(),
            ..self.counted
        }
    }

    fn close_intervals(&mut self, elapsed: Duration) {
        if self.intervals.is_due(elapsed) {
            let counted = self.counted();
            self.intervals.close_due(elapsed, counted);
        }
    }

    /// Writes once; the kernel may take a part. Returns how much it took, or 0 when the stream is to end.
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let mut stalled_since = None;
        loop {
            self.signals.check()?;
            match (&*self.connection.socket).write(bytes) {
                Ok(written) => {
                    self.counted.bytes += written as u64;
                    self.counted.calls.done += 1;
                    return Ok(written);
                }
                Err(error) if sockets::is_no_progress(&error) => self.counted.calls.refused += 1,
                Err(source) => return Err(self.broken(source)),
            }
            if self.signals.is_finishing() {
                return Ok(0);
            }
            self.close_intervals(self.begun.elapsed());
            let since = *stalled_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= STALL_LIMIT {
                self.stalled_from = Some(since.duration_since(self.begun));
                return Err(Error::Because(format!(
                    "{} has not taken a byte for 5 s after {}; see whether the link is up",
                    self.connection.peer, self.counted.bytes
                )));
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

    /// Closes this direction. If `is_awaited`, waits for the receiver to close the other and discards what it
    /// sends (the header's acknowledgement). Returns whether it closed in time.
    fn close(
        &mut self,
        buffer: &mut [u8],
        sending: Duration,
        is_awaited: bool,
    ) -> Result<bool, Error> {
        let mut socket = &*self.connection.socket;
        let shut_down = socket.shutdown(Shutdown::Write);
        shut_down.map_err(|source| self.broken(source))?;
        let deadline = Instant::now() + sending.max(CLOSE_LIMIT_MIN);
        while is_awaited && Instant::now() < deadline {
            self.signals.check()?;
            match socket.read(buffer) {
                Ok(0) => return Ok(true),
                Ok(_) => {}
                Err(error) if sockets::is_no_progress(&error) => {}
                Err(source) => return Err(self.broken(source)),
            }
        }
        Ok(false)
    }

    fn broken(&self, source: io::Error) -> Error {
        let what = format!(
            "the connection to {} broke after {} bytes; see why the other end ended",
            self.connection.peer, self.counted.bytes
        );
        Error::Io { what, source }
    }
}
