//! What streams report to the thread that prints. Start with [`Event`]; a stream sends them through its
//! [`Reporter`], and an [`Output`] takes them.

use std::io;
use std::sync::mpsc;

use nicpoll_model::Rate;
use nicpoll_model::traffic::IperfRun;
use nicpoll_sys::tell;
use nicpoll_traffic::SocketBuffer;

use crate::records::{Connected, IntervalRecord, Observer, Total};
use crate::stream::Error;

/// Which stream of this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamKey {
    /// Its socket's number, from 0.
    pub number: u32,
    /// Whether it is marked as going the other way, which tells the two of one socket apart.
    pub is_reversed: bool,
    /// Whether it runs after the client's own streams rather than at the same time (-r).
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

    /// The stream that is marked as going the other way.
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
    /// There are settings to print.
    Settings(Settings),
    /// It has a peer.
    Connected(StreamKey, Connected),
    /// One of its intervals has ended.
    Interval(StreamKey, IntervalRecord),
    /// It has ended, well or not.
    Finished(StreamKey, Box<Result<Total, Error>>),
}

/// Whose settings are printed before a test.
#[derive(Clone, Copy, Debug)]
pub enum Settings {
    /// A listener's: its port and the receive buffer.
    Listener(u16, SocketBuffer),
    /// A client's.
    Client(Connected),
    /// Those of a server that connects back: in writes of so many bytes and, over UDP, at this rate.
    WayBack(Connected, usize, Option<Rate>),
}

/// Passes on what a stream reports.
#[derive(Debug)]
pub struct Reporter {
    key: StreamKey,
    events: mpsc::Sender<Event>,
    broken: Option<Total>,
}

impl Reporter {
    /// Runs a stream, and reports what it comes to at its end.
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
        let outcome = reporter.kept(outcome);
        reporter.send(Event::Finished(key, Box::new(outcome)));
    }

    /// Reports a stream that could not begin.
    pub fn fail(key: StreamKey, events: &mpsc::Sender<Event>, failed: Error) {
        Reporter::run(key, events, |_| Err(failed));
    }

    /// Keeps what a stream came to before it broke off: a result with a problem.
    pub fn kept(&mut self, outcome: Result<Total, Error>) -> Result<Total, Error> {
        let broken = self.broken.take().filter(|broken| broken.whole.bytes > 0);
        outcome.or_else(|error| match (broken, error.text()) {
            (Some(broken), Some(why)) => Ok(Total {
                problem: Some(why),
                ..broken
            }),
            _ => Err(error),
        })
    }

    /// Reports an event. Whoever printed may have ended on an error of its own; the stream goes on to its
    /// end.
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

/// The one JSON object of a run, to be made part of another (--repeat).
#[derive(Debug)]
pub struct Kept {
    pub run: IperfRun,
    /// What the runs behind it may hold.
    pub room: Room,
}

/// What one JSON object may hold, all runs of it together: 50 MB of memory.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Streams, each with its total and its error.
    pub streams: u32,
    /// Intervals of streams, and sums.
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

/// Prints what happens, as soon as it does.
pub trait Output: Send {
    /// By which number a stream's lines name it.
    fn number(&self, key: StreamKey) -> u32;
    /// The settings of an end that listens, connects or connects back.
    fn settings(&mut self, settings: &Settings) -> io::Result<()>;
    /// A stream has a peer.
    fn connected(&mut self, key: StreamKey, connected: &Connected) -> io::Result<()>;
    /// An interval of a stream has ended.
    fn interval(&mut self, key: StreamKey, record: &IntervalRecord) -> io::Result<()>;
    /// A stream has ended well.
    fn finished(&mut self, key: StreamKey, total: &Total) -> io::Result<()>;
    /// A stream has ended otherwise: for a reason that standard error knows already, or because it was
    /// told to.
    fn failed(&mut self, key: StreamKey, why: Option<&str>) -> io::Result<()>;
    /// There are no streams, for a reason that standard error knows already.
    fn gave_up(&mut self, why: &str) -> io::Result<()>;
    /// Everything has ended. What is not printed by itself but is to be part of something else.
    fn end(&mut self) -> io::Result<Option<Kept>>;

    /// Prints an event, and a failure to standard error. Whether it was one.
    fn tell(&mut self, event: Event) -> io::Result<bool> {
        match event {
            Event::Settings(settings) => self.settings(&settings)?,
            Event::Connected(key, connected) => self.connected(key, &connected)?,
            Event::Interval(key, record) => self.interval(key, &record)?,
            Event::Finished(key, outcome) => return self.ended(key, *outcome),
        }
        Ok(false)
    }

    /// Prints how a stream ended; whether it failed.
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
