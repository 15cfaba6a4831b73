//! Events that streams send to the printing thread. Start with [`Event`]; a stream sends events through its
//! [`Reporter`], and an [`Output`] prints them.

use std::io;
use std::sync::mpsc;

use nicpoll_model::Rate;
use nicpoll_model::traffic::IperfRun;
use nicpoll_sys::tell;
use nicpoll_traffic::SocketBuffer;

use crate::records::{Connected, IntervalRecord, Observer, Total};
use crate::stream::Error;

/// Identifies a stream of this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamKey {
    /// Number of its socket, from 0.
    pub number: u32,
    /// Whether it is marked as reversed, which tells apart the two streams of a socket.
    pub is_reversed: bool,
    /// Whether it runs after the client's own streams (-r).
    pub is_later: bool,
}

impl StreamKey {
    /// The usual stream of a socket.
    pub fn new(number: u32) -> Self {
        StreamKey {
            number,
            is_reversed: false,
            is_later: false,
        }
    }

    /// The stream of the same socket marked as reversed.
    pub fn reversed(self) -> Self {
        StreamKey {
            is_reversed: true,
            ..self
        }
    }
}

/// Something that happened to a stream.
#[derive(Debug)]
pub enum Event {
    /// Settings to print.
    Settings(Settings),
    /// The stream has a peer.
    Connected(StreamKey, Connected),
    /// An interval of the stream has ended.
    Interval(StreamKey, IntervalRecord),
    /// The stream has ended or failed.
    Finished(StreamKey, Box<Result<Total, Error>>),
}

/// The settings printed before a test.
#[derive(Clone, Copy, Debug)]
pub enum Settings {
    /// A listener's port and receive buffer.
    Listener(u16, SocketBuffer),
    /// A client's connection.
    Client(Connected),
    /// A server that connects back: its connection, write length in bytes and, over UDP, rate.
    WayBack(Connected, usize, Option<Rate>),
}

/// Sends a stream's events.
#[derive(Debug)]
pub struct Reporter {
    key: StreamKey,
    events: mpsc::Sender<Event>,
    broken: Option<Total>,
}

impl Reporter {
    /// Runs a stream and reports its outcome.
    pub fn run(
        key: StreamKey,
        events: &mpsc::Sender<Event>,
        run: impl FnOnce(&mut Reporter) -> Result<Total, Error>,
    ) {
        let mut reporter = Reporter {
            key,
            events: events.clone(),
            broken: None,
        };
        let outcome = run(&mut reporter);
        let outcome = reporter.salvaged(outcome);
        reporter.send(Event::Finished(key, Box::new(outcome)));
    }

    /// Reports a stream that could not start.
    pub fn fail(key: StreamKey, events: &mpsc::Sender<Event>, failed: Error) {
        Reporter::run(key, events, |_| Err(failed));
    }

    /// Turns the failure of a stream that moved data into a total with a problem.
    pub fn salvaged(&mut self, outcome: Result<Total, Error>) -> Result<Total, Error> {
        let broken = self.broken.take().filter(|broken| broken.whole.bytes > 0);
        outcome.or_else(|error| match (broken, error.text()) {
            (Some(broken), Some(why)) => Ok(Total {
                problem: Some(why),
                ..broken
            }),
            _ => Err(error),
        })
    }

    /// Sends an event. If the printer has failed, the stream still runs to its end.
    pub fn send(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

impl Observer for Reporter {
    fn connected(&mut self, connected: &Connected) {
        self.send(Event::Connected(self.key, *connected));
    }

    fn interval(&mut self, record: &IntervalRecord) {
        self.send(Event::Interval(self.key, *record));
    }

    fn broken(&mut self, total: Total) {
        self.broken = Some(total);
    }
}

/// The one JSON object of a run, kept for the object of several runs (--repeat).
#[derive(Debug)]
pub struct RunObject {
    pub run: IperfRun,
    /// What the remaining runs may hold.
    pub room: Room,
}

/// Limits of one JSON object, all runs of it together: 50 MB of memory.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Streams, each with its total and its error.
    pub streams: u32,
    /// Interval records and sums.
    pub others: u32,
}

impl Default for Room {
    fn default() -> Self {
        Room {
            streams: 1 << 13,
            others: 1 << 15,
        }
    }
}

/// Prints events as they happen.
pub trait Output: Send {
    /// The number by which a stream's lines name it.
    fn number(&self, key: StreamKey) -> u32;
    /// Settings of an end that listens, connects or connects back.
    fn settings(&mut self, settings: &Settings) -> io::Result<()>;
    /// The stream has a peer.
    fn connected(&mut self, key: StreamKey, connected: &Connected) -> io::Result<()>;
    /// An interval of the stream has ended.
    fn interval(&mut self, key: StreamKey, record: &IntervalRecord) -> io::Result<()>;
    /// The stream has ended.
    fn finished(&mut self, key: StreamKey, total: &Total) -> io::Result<()>;
    /// The stream has failed, for a reason already on standard error (`why`), or was cancelled.
    fn failed(&mut self, key: StreamKey, why: Option<&str>) -> io::Result<()>;
    /// No stream could run, for a reason already on standard error.
    fn gave_up(&mut self, why: &str) -> io::Result<()>;
    /// The run is over. Returns what is to be printed as part of something else.
    fn end(&mut self) -> io::Result<Option<RunObject>>;

    /// Prints an event, and a failure to standard error; returns whether it was a failure.
    fn tell(&mut self, event: Event) -> io::Result<bool> {
        match event {
            Event::Settings(settings) => self.settings(&settings)?,
            Event::Connected(key, connected) => self.connected(key, &connected)?,
            Event::Interval(key, record) => self.interval(key, &record)?,
            Event::Finished(key, outcome) => return self.ended(key, *outcome),
        }
        Ok(false)
    }

    /// Prints how a stream ended; returns whether it failed.
    fn ended(&mut self, key: StreamKey, outcome: Result<Total, Error>) -> io::Result<bool> {
        let total = match outcome {
            Ok(total) => total,
            Err(error) => {
                let why = error.text();
                if let Some(why) = &why {
                    tell!("{why}");
                }
                self.failed(key, why.as_deref())?;
                return Ok(why.is_some());
            }
        };
        if total.is_unanswered {
            tell!(
                "[{:>3}] WARNING: did not receive ack of last datagram after {} tries.",
                self.number(key),
                total.fins
            );
        }
        self.finished(key, &total)?;
        if let Some(problem) = &total.problem {
            tell!("{problem}");
        }
        Ok(total.problem.is_some())
    }
}
