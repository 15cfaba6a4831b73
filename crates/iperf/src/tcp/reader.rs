//! The loop that reads a stream, at whichever end receives it.
//!
//! What must hold: what is read belongs to the interval in which the read returned, and no wait goes
//! without a look at the signals.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_sys::socket;

use nicpoll_traffic::sockets::{self, SocketBuffer};
use nicpoll_traffic::{LOOK_EVERY, Signals};

use super::Error;
use super::low_water::LowWater;
use super::place::Place;
use crate::config::StreamConfig;
use crate::observer::{Broken, Calls, Connected, IntervalRecord, Intervals, Observer, Totals};
use crate::slots::{LeastRate, Ticket};
use crate::wire::ClientHeader;
use nicpoll_model::Pace;

/// The longest time to read what is queued after [`Signals::sender_done`], should more come as fast as
/// it is read.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// A read of fewer may be one of a stream that brings next to nothing.
const FEW_BYTES: usize = 1024;

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The sender closed its direction: everything it sent has been read.
    Closed,
    /// [`Signals::sender_done`] was set, and nothing was queued or more came without end.
    SenderDone,
}

/// What the receiver of a stream counted.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReceiveReport {
    /// The sender.
    pub peer: SocketAddr,
    /// What the client asked for, at a server; `None` when it sent no header.
    pub header: Option<ClientHeader>,
    /// Every byte that was read, the header included.
    pub bytes_received: u64,
    /// From the acceptance of the connection, at a client from the request, to the end.
    pub seconds: f64,
    /// How the stream ended.
    pub end: End,
    /// The stream as one interval. Reads of the header are no calls.
    pub whole: IntervalRecord,
    /// The receive buffer.
    pub receive_buffer: SocketBuffer,
}

/// A connected stream that waits to be read.
#[derive(Debug)]
pub struct Incoming {
    pub(super) socket: Arc<TcpStream>,
    pub(super) connected: Connected,
    pub(super) begun: Instant,
    /// How to read it.
    pub(super) stream: StreamConfig,
    /// How long to wait for each further byte.
    pub(super) silence_max: Duration,
    /// The header that was read, and how many bytes came with it.
    pub(super) header: Option<ClientHeader>,
    pub(super) bytes_received: u64,
    /// Counts the stream at a server.
    pub(super) ticket: Option<Ticket>,
}

impl Incoming {
    /// Reads the stream to its end.
    ///
    /// # Errors
    /// [`Error::Receive`], [`Error::Silent`] and [`Error::Cancelled`].
    pub fn run(
        self,
        signals: &Signals,
        observer: &mut dyn Observer,
    ) -> Result<ReceiveReport, Error> {
        observer.connected(&self.connected);
        let stream = &self.stream;
        let mut reader = Reader {
            socket: &self.socket,
            peer: self.connected.peer,
            ticket: self.ticket.as_ref(),
            least_rate: LeastRate::new(self.begun),
            signals,
            intervals: Intervals::new(stream.interval, observer),
            begun: self.begun,
            bytes_received: self.bytes_received,
            calls: Calls::default(),
            pace: stream.rate.map(Pace::of_bytes),
            draining_since: None,
            silent_from: None,
            read_bytes: stream.length_bytes.max(1),
            low_water: stream
                .is_batched
                .then(|| LowWater::new(stream.length_bytes, self.begun)),
        };
        let mut place = Place::new(stream.length_bytes, self.ticket.as_ref());
        let outcome = reader.read_to_end(&mut place, self.silence_max);
        let elapsed = reader.silent_from.unwrap_or_else(|| self.begun.elapsed());
        let totals = reader.totals();
        reader.intervals.finish(elapsed, totals);
        let end = match outcome {
            Ok(end) => end,
            Err(error) => {
                reader.intervals.observer.broken(&Broken {
                    whole: totals.whole(elapsed),
                    buffer: self.connected.buffer,
                });
                return Err(error);
            }
        };
        let granted =
            socket::receive_buffer(&self.socket).map_err(|source| reader.broken(source))?;
        Ok(ReceiveReport {
            peer: reader.peer,
            header: self.header,
            bytes_received: reader.bytes_received,
            seconds: elapsed.as_secs_f64(),
            end,
            whole: totals.whole(elapsed),
            receive_buffer: SocketBuffer {
                granted_bytes: granted as u64,
                ..self.connected.buffer
            },
        })
    }
}

pub(super) enum Progress {
    Read(usize),
    Ended(End),
}

/// A connection being read.
pub(super) struct Reader<'a> {
    socket: &'a TcpStream,
    peer: SocketAddr,
    /// A server's.
    ticket: Option<&'a Ticket>,
    least_rate: LeastRate,
    signals: &'a Signals,
    intervals: Intervals<'a>,
    begun: Instant,
    bytes_received: u64,
    calls: Calls,
    pace: Option<Pace>,
    draining_since: Option<Instant>,
    /// When a sender that was given up had sent last.
    silent_from: Option<Duration>,
    /// What reads are to be as long as.
    read_bytes: usize,
    low_water: Option<LowWater>,
}

impl<'a> Reader<'a> {
    /// Reads what precedes a stream, without intervals.
    pub(super) fn before(
        socket: &'a TcpStream,
        peer: SocketAddr,
        ticket: Option<&'a Ticket>,
        signals: &'a Signals,
        nobody: &'a mut (),
    ) -> Self {
        Reader {
            socket,
            peer,
            ticket,
            least_rate: LeastRate::new(Instant::now()),
            signals,
            intervals: Intervals::new(None, nobody),
            begun: Instant::now(),
            bytes_received: 0,
            calls: Calls::default(),
            pace: None,
            draining_since: None,
            silent_from: None,
            read_bytes: 1,
            low_water: None,
        }
    }

    /// How many bytes were read.
    pub(super) fn bytes_received(&self) -> u64 {
        self.bytes_received
    }

    fn totals(&self) -> Totals {
        Totals {
            bytes: self.bytes_received,
            calls: self.calls,
            ..Totals::default()
        }
    }

    /// Waits until the rate asked for allows another read, or the signals have to be looked at.
    /// Whether it does.
    fn is_due(&self) -> bool {
        let Some(pace) = self.pace else { return true };
        let ahead = pace.ahead(self.bytes_received, self.begun.elapsed());
        thread::sleep(ahead.min(LOOK_EVERY));
        ahead <= LOOK_EVERY
    }

    fn read_to_end(&mut self, place: &mut Place, silence_max: Duration) -> Result<End, Error> {
        loop {
            match self.read(place.bytes(), silence_max)? {
                Progress::Read(read) => place.after(read),
                Progress::Ended(end) => return Ok(end),
            }
        }
    }

    /// Fills the buffer, which all of `time` is given for; `false` when the stream ended first.
    pub(super) fn read_whole(
        &mut self,
        mut buffer: &mut [u8],
        time: Duration,
    ) -> Result<bool, Error> {
        while !buffer.is_empty() {
            let left = time.saturating_sub(self.begun.elapsed());
            match self.read(buffer, left)? {
                Progress::Read(read) => buffer = &mut buffer[read..],
                Progress::Ended(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Closes the intervals that have ended. The clock is not even read when there are none.
    fn close_intervals(&mut self) {
        if !self.intervals.are_asked_for() {
            return;
        }
        let elapsed = self.begun.elapsed();
        if self.intervals.is_due(elapsed) {
            let totals = self.totals();
            self.intervals.close_due(elapsed, totals);
        }
    }

    /// One read. Returns when something came or the stream has ended.
    fn read(&mut self, buffer: &mut [u8], silence_max: Duration) -> Result<Progress, Error> {
        let mut silent_since = None;
        loop {
            if self.signals.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let is_sender_done = self.signals.is_sender_done();
            if is_sender_done && self.has_drained() {
                return Ok(Progress::Ended(End::SenderDone));
            }
            if !self.is_due() {
                self.close_intervals();
                continue;
            }
            match self.socket.read(buffer) {
                Ok(0) => return Ok(Progress::Ended(End::Closed)),
                Ok(read) => {
                    self.close_intervals();
                    self.bytes_received += read as u64;
                    self.calls.record_read(read, self.read_bytes);
                    if let Some(mark) = &mut self.low_water
                        && let Err(source) = mark.after(self.socket, read, Instant::now())
                    {
                        return Err(self.broken(source));
                    }
                    if read < FEW_BYTES {
                        self.stop_if_in_the_way()?;
                    }
                    return Ok(Progress::Read(read));
                }
                Err(error) if sockets::is_no_progress(&error) => {}
                Err(source) => return Err(self.broken(source)),
            }
            if is_sender_done {
                return Ok(Progress::Ended(End::SenderDone));
            }
            self.close_intervals();
            self.stop_if_in_the_way()?;
            let since = *silent_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= silence_max {
                self.silent_from = Some(since.duration_since(self.begun));
                return Err(Error::Silent {
                    peer: self.peer,
                    bytes_received: self.bytes_received,
                    seconds: self.begun.elapsed().as_secs_f64(),
                });
            }
        }
    }

    /// Ends a stream that brings next to nothing while others wait for one.
    fn stop_if_in_the_way(&mut self) -> Result<(), Error> {
        let Some(ticket) = self.ticket else {
            return Ok(());
        };
        let now = Instant::now();
        if self.least_rate.is_missed(ticket, self.bytes_received, now) {
            return Err(Error::InTheWay {
                peer: self.peer,
                bytes_received: self.bytes_received,
                seconds: self.begun.elapsed().as_secs_f64(),
            });
        }
        Ok(())
    }

    /// Whether reading what was queued has taken as long as it may.
    fn has_drained(&mut self) -> bool {
        let since = *self.draining_since.get_or_insert_with(Instant::now);
        since.elapsed() >= DRAIN_LIMIT
    }

    pub(super) fn broken(&self, source: io::Error) -> Error {
        Error::Receive {
            peer: self.peer,
            bytes_received: self.bytes_received,
            seconds: self.begun.elapsed().as_secs_f64(),
            source,
        }
    }
}
