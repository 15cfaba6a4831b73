//! Reads a stream, at either end.
//!
//! Data belong to the interval in which the read returned, and every wait checks the signals. Waking the reader
//! for every segment costs the sender's core more than the copy, so on a fast stream a read waits for a full
//! buffer, up to a millisecond. A server's stream starts with a small buffer, which grows once it is filled.

use std::io::{self, Read};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::Pace;
use nicpoll_sys::socket;
use nicpoll_traffic::sockets::{self, SocketBuffer};
use nicpoll_traffic::{LOOK_EVERY, Signals};

use super::connection::Connection;
use crate::records::{Connected, End, IntervalRecord, Observer, Splitter, Total};
use crate::slots::{Grown, LeastRate, STRANGER_BYTES, Ticket};
use crate::stream::{Error, ReadyStream};

/// Limit on reading queued data after [`Signals::sender_done`], if more comes as fast as it is read.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// Shorter reads may mean a stream that sends almost nothing.
const FEW_BYTES: usize = 1024;

/// A connected stream ready to be read.
pub struct Incoming {
    pub connection: Connection,
    pub connected: Connected,
    /// How long to wait for each further byte.
    pub silence_max: Duration,
    /// Bytes already read for a header.
    pub bytes_received: u64,
}

impl ReadyStream for Incoming {
    /// Reads the stream to its end.
    fn run(self, signals: &Signals, observer: &mut dyn Observer) -> Result<Total, Error> {
        observer.connected(&self.connected);
        let connection = &self.connection;
        let stream = &connection.stream;
        let ticket = connection.ticket.as_ref();
        let intervals = Splitter::new(stream.interval, observer);
        let low_water = || LowWater::new(stream.length_bytes, connection.begun);
        let mut reader = TcpStreamReader {
            pace: stream.rate.map(Pace::of_bytes),
            read_bytes: stream.length_bytes.max(1),
            low_water: stream.is_batched.then(low_water),
            ..TcpStreamReader::new(connection, signals, intervals)
        };
        reader.counted.bytes = self.bytes_received;
        let mut place = ReadBuffer::new(stream.length_bytes, ticket);
        let outcome = reader.read_to_end(&mut place, self.silence_max);
        let now = || connection.begun.elapsed();
        let elapsed = reader.silent_from.unwrap_or_else(now);
        reader.intervals.finish(elapsed, reader.counted);
        let granted = socket::receive_buffer(&connection.socket);
        let granted = granted.map_err(|source| reader.broken(source))?;
        let buffer = SocketBuffer {
            granted_bytes: granted as u64,
            ..self.connected.buffer
        };
        let total = Total::of(reader.counted.until(elapsed), buffer);
        match outcome {
            Ok(end) => Ok(Total {
                end: Some(end),
                ..total
            }),
            Err(error) => {
                reader.intervals.observer.broken(total);
                Err(error)
            }
        }
    }
}

pub enum ReadProgress {
    Read(usize),
    Ended(End),
}

/// A connection being read.
pub struct TcpStreamReader<'a> {
    connection: &'a Connection,
    least_rate: LeastRate,
    signals: &'a Signals,
    intervals: Splitter<'a>,
    pub counted: IntervalRecord,
    pace: Option<Pace>,
    draining_since: Option<Instant>,
    /// When the sender last sent, if it was given up.
    silent_from: Option<Duration>,
    /// Full length of a read.
    read_bytes: usize,
    low_water: Option<LowWater>,
}

impl<'a> TcpStreamReader<'a> {
    /// A reader that returns whatever is available.
    pub fn new(connection: &'a Connection, signals: &'a Signals, intervals: Splitter<'a>) -> Self {
        TcpStreamReader {
            connection,
            least_rate: LeastRate::new(connection.begun),
            signals,
            intervals,
            counted: IntervalRecord::default(),
            pace: None,
            draining_since: None,
            silent_from: None,
            read_bytes: 1,
            low_water: None,
        }
    }

    fn elapsed(&self) -> Duration {
        self.connection.begun.elapsed()
    }

    /// Waits until the rate allows another read or the signals must be checked; returns whether it allows one.
    fn is_due(&self) -> bool {
        let Some(pace) = self.pace else { return true };
        let ahead = pace.ahead(self.counted.bytes, self.elapsed());
        thread::sleep(ahead.min(LOOK_EVERY));
        ahead <= LOOK_EVERY
    }

    fn read_to_end(&mut self, place: &mut ReadBuffer, silence_max: Duration) -> Result<End, Error> {
        loop {
            match self.read(place.bytes(), silence_max)? {
                ReadProgress::Read(read) => place.after(read),
                ReadProgress::Ended(end) => return Ok(end),
            }
        }
    }

    /// Fills the buffer before `time` has passed since the connection; returns `false` when the stream ended
    /// first.
    pub fn read_whole(&mut self, mut buffer: &mut [u8], time: Duration) -> Result<bool, Error> {
        while !buffer.is_empty() {
            let left = time.saturating_sub(self.elapsed());
            match self.read(buffer, left)? {
                ReadProgress::Read(read) => buffer = &mut buffer[read..],
                ReadProgress::Ended(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Closes the intervals that have ended. Does not read the clock if none are recorded.
    fn close_intervals(&mut self) {
        if !self.intervals.are_asked_for() {
            return;
        }
        let elapsed = self.elapsed();
        if self.intervals.is_due(elapsed) {
            self.intervals.close_due(elapsed, self.counted);
        }
    }

    /// Reads once; returns when data came or the stream ended.
    fn read(&mut self, buffer: &mut [u8], silence_max: Duration) -> Result<ReadProgress, Error> {
        let mut silent_since = None;
        loop {
            self.signals.check()?;
            let is_sender_done = self.signals.is_sender_done();
            if is_sender_done && self.has_drained() {
                return Ok(ReadProgress::Ended(End::SenderDone));
            }
            if !self.is_due() {
                self.close_intervals();
                continue;
            }
            match (&*self.connection.socket).read(buffer) {
                Ok(0) => return Ok(ReadProgress::Ended(End::Closed)),
                Ok(read) => {
                    self.close_intervals();
                    self.counted.bytes += read as u64;
                    self.counted.calls.record_read(read, self.read_bytes);
                    if let Some(mark) = &mut self.low_water
                        && let Err(source) =
                            mark.after(&self.connection.socket, read, Instant::now())
                    {
                        return Err(self.broken(source));
                    }
                    if read < FEW_BYTES || self.least_rate.is_missed() {
                        self.stop_if_in_the_way()?;
                    }
                    return Ok(ReadProgress::Read(read));
                }
                Err(error) if sockets::is_no_progress(&error) => {}
                Err(source) => return Err(self.broken(source)),
            }
            if is_sender_done {
                return Ok(ReadProgress::Ended(End::SenderDone));
            }
            self.close_intervals();
            self.stop_if_in_the_way()?;
            let since = *silent_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= silence_max {
                self.silent_from = Some(since.duration_since(self.connection.begun));
                return Err(Error::Because(format!(
                    "{} fell silent after {} bytes; see whether the link is up",
                    self.connection.peer, self.counted.bytes
                )));
            }
        }
    }

    /// Ends a stream that sends almost nothing and whose slot another client has.
    fn stop_if_in_the_way(&mut self) -> Result<(), Error> {
        let Some(ticket) = &self.connection.ticket else {
            return Ok(());
        };
        let (peer, bytes) = (self.connection.peer, self.counted.bytes);
        if self.least_rate.look(ticket, bytes, Instant::now()) {
            let seconds = self.elapsed().as_secs_f64();
            return Err(Error::Because(format!(
                "{peer} sent {bytes} bytes in {seconds:.1} s and makes room for another client; send at least 1 kB/s"
            )));
        }
        Ok(())
    }

    /// Whether the time limit on reading queued data has passed.
    fn has_drained(&mut self) -> bool {
        let since = *self.draining_since.get_or_insert_with(Instant::now);
        since.elapsed() >= DRAIN_LIMIT
    }

    pub fn broken(&self, source: io::Error) -> Error {
        let what = format!(
            "the connection of {} broke after {} bytes; see why the other end ended",
            self.connection.peer, self.counted.bytes
        );
        Error::Io { what, source }
    }
}

/// How often to measure the rate.
const WINDOW: Duration = Duration::from_millis(10);
/// A stream is fast if a full read takes less than this.
const FAST: Duration = Duration::from_millis(1);

/// A reader's low-water mark (`SO_RCVLOWAT`), raised while its stream is fast.
#[derive(Debug)]
struct LowWater {
    read_bytes: usize,
    is_raised: bool,
    window_begun: Instant,
    window_bytes: u64,
}

impl LowWater {
    /// For full reads of `read_bytes`; not raised.
    fn new(read_bytes: usize, now: Instant) -> Self {
        LowWater {
            read_bytes,
            is_raised: false,
            window_begun: now,
            window_bytes: 0,
        }
    }

    /// Records a read of `read` bytes.
    ///
    /// # Errors
    /// When the mark cannot be set.
    fn after(&mut self, stream: &TcpStream, read: usize, now: Instant) -> io::Result<()> {
        if let Some(is_raised) = self.change(read, now) {
            let bytes = if is_raised { self.read_bytes } else { 1 };
            socket::set_receive_low_water(stream, bytes)?;
        }
        Ok(())
    }

    /// Whether to raise (`true`) or lower the mark; `None` to leave it.
    fn change(&mut self, read: usize, now: Instant) -> Option<bool> {
        self.window_bytes += read as u64;
        let elapsed = now.duration_since(self.window_begun);
        if elapsed < WINDOW {
            return None;
        }
        let read_takes =
            elapsed.as_nanos() * self.read_bytes as u128 / u128::from(self.window_bytes.max(1));
        self.window_begun = now;
        self.window_bytes = 0;
        let is_fast = read_takes < FAST.as_nanos();
        let is_change = is_fast != self.is_raised;
        self.is_raised = is_fast;
        is_change.then_some(is_fast)
    }
}

/// The read buffer of one stream.
struct ReadBuffer<'a> {
    bytes: Vec<u8>,
    /// Full length of a read.
    read_bytes: usize,
    /// Accounts for the buffer of a server's stream; `None` elsewhere.
    ticket: Option<&'a Ticket>,
    _grown: Option<Grown>,
}

impl<'a> ReadBuffer<'a> {
    /// A buffer that grows to `read_bytes` once the stream fills it.
    fn new(read_bytes: usize, ticket: Option<&'a Ticket>) -> Self {
        let read_bytes = read_bytes.max(1);
        let first_bytes = match ticket {
            Some(_) => read_bytes.min(STRANGER_BYTES),
            None => read_bytes,
        };
        ReadBuffer {
            bytes: vec![0; first_bytes],
            read_bytes,
            ticket,
            _grown: None,
        }
    }

    /// The buffer for the next read.
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Records a read of `read` bytes: a full buffer shows that more was queued.
    fn after(&mut self, read: usize) {
        let missing = self.read_bytes - self.bytes.len();
        if missing > 0
            && read == self.bytes.len()
            && let Some(grown) = self.ticket.and_then(|ticket| ticket.grow(missing))
        {
            self.bytes = vec![0; self.read_bytes];
            self._grown = Some(grown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::slots::Slots;

    #[test]
    fn a_place_grows_when_it_is_filled_and_nobody_counts_it_at_a_client() {
        let slots = Slots::new(false);
        let ticket = slots.take(([192, 0, 2, 1], 1).into(), 1).unwrap();
        let mut place = ReadBuffer::new(131_072, Some(&ticket));
        assert_eq!(place.bytes().len(), STRANGER_BYTES);
        place.after(STRANGER_BYTES - 1);
        assert_eq!(place.bytes().len(), STRANGER_BYTES);
        place.after(STRANGER_BYTES);
        assert_eq!(place.bytes().len(), 131_072);
        assert_eq!(ReadBuffer::new(131_072, None).bytes().len(), 131_072);
    }

    #[test]
    fn what_no_server_gives_stays_as_it_is() {
        let slots = Slots::new(false);
        let ticket = slots.take(([192, 0, 2, 1], 1).into(), 1).unwrap();
        let mut place = ReadBuffer::new(1 << 30, Some(&ticket));
        place.after(STRANGER_BYTES);
        assert_eq!(place.bytes().len(), STRANGER_BYTES);
    }

    #[test]
    fn the_mark_is_raised_while_a_read_fills_within_a_millisecond() {
        let begun = Instant::now();
        let mut mark = LowWater::new(1000, begun);
        let ms = |ms| begun + Duration::from_millis(ms);
        assert_eq!(mark.change(1_000_000, ms(5)), None);
        assert_eq!(mark.change(1, ms(10)), Some(true));
        assert_eq!(mark.change(11_000, ms(20)), None);
        // Slower: 1 ms per read, then a long silence.
        assert_eq!(mark.change(10_000, ms(30)), Some(false));
        assert_eq!(mark.change(1, ms(90)), None);
        assert_eq!(mark.change(10_001, ms(100)), Some(true));
    }
}
