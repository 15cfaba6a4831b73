//! What streams tell the thread that prints.

use std::sync::mpsc;

use crate::{Broken, Connected, IntervalRecord, Observer, tcp, udp};

use crate::total::Total;

/// Which stream of this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamKey {
    /// Its socket's number, from 0.
    pub number: u32,
    /// Whether it is marked as going the other way, which tells the two of one socket apart.
    pub is_reversed: bool,
    /// Whether it runs after the client's own streams rather than beside them (-r).
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

/// Something that happened, to a stream.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// There are settings to tell: of a server that is up, or of a connection to be made.
    Settings(String),
    /// It has a peer.
    Connected(StreamKey, Connected),
    /// One of its intervals has ended.
    Interval(StreamKey, IntervalRecord),
    /// It has ended, well or not.
    Finished(StreamKey, Box<Result<Total, Failed>>),
}

/// Why a stream came to nothing.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failed {
    /// A signal asked to stop; whoever sent it knows.
    Cancelled,
    /// What to say.
    Because(String),
}

impl Failed {
    /// An error in full.
    fn because(error: &dyn std::error::Error) -> Self {
        Failed::Because(Self::words(error))
    }

    /// What to say of an error.
    pub(crate) fn words(error: &dyn std::error::Error) -> String {
        match error.source() {
            Some(source) => format!("nicpoll iperf: {error} ({source})"),
            None => format!("nicpoll iperf: {error}"),
        }
    }
}

impl From<std::io::Error> for Failed {
    /// A thread that cannot be made.
    fn from(error: std::io::Error) -> Self {
        Failed::Because(format!(
            "nicpoll iperf: no thread could be made for a stream ({error}); see the limit on processes"
        ))
    }
}

impl From<tcp::Error> for Failed {
    fn from(error: tcp::Error) -> Self {
        match error {
            tcp::Error::Cancelled => Failed::Cancelled,
            error => Failed::because(&error),
        }
    }
}

impl From<udp::SendError> for Failed {
    fn from(error: udp::SendError) -> Self {
        match error {
            udp::SendError::Cancelled => Failed::Cancelled,
            error => Failed::because(&error),
        }
    }
}

impl From<udp::ServerError> for Failed {
    fn from(error: udp::ServerError) -> Self {
        match error {
            udp::ServerError::Cancelled => Failed::Cancelled,
            error => Failed::because(&error),
        }
    }
}

/// Passes on what a stream tells.
#[derive(Debug)]
#[non_exhaustive]
pub struct Told {
    key: StreamKey,
    events: mpsc::Sender<Event>,
    is_datagrams: bool,
    broken: Option<Broken>,
}

impl Told {
    /// Runs a stream, and tells what it comes to at its end.
    pub fn run(
        key: StreamKey,
        events: &mpsc::Sender<Event>,
        run: impl FnOnce(&mut Told) -> Result<Total, Failed>,
    ) {
        let events = events.clone();
        let mut told = Told {
            key,
            events,
            is_datagrams: false,
            broken: None,
        };
        let outcome = run(&mut told);
        let outcome = told.kept(outcome);
        // Whoever printed may have ended on an error of its own.
        let _ = told.events.send(Event::Finished(key, Box::new(outcome)));
    }

    /// Keeps what a stream came to before it broke off: a result with a problem.
    pub fn kept(&mut self, outcome: Result<Total, Failed>) -> Result<Total, Failed> {
        match (outcome, self.broken.take()) {
            (Err(Failed::Because(why)), Some(broken)) if broken.whole.bytes > 0 => {
                Ok(Total::broken(&broken, self.is_datagrams, why))
            }
            (outcome, _) => outcome,
        }
    }

    /// The number of the stream's socket.
    pub fn number(&self) -> u32 {
        self.key.number
    }

    /// Tells of settings.
    pub fn settings(&self, settings: String) {
        let _ = self.events.send(Event::Settings(settings));
    }
}

impl Observer for Told {
    // Whoever printed may have ended on an error of its own; the stream goes on to its end.
    fn connected(&mut self, connected: &Connected) {
        self.is_datagrams = connected.tcp.is_none();
        let _ = self.events.send(Event::Connected(self.key, *connected));
    }

    fn interval(&mut self, record: &IntervalRecord) {
        let _ = self.events.send(Event::Interval(self.key, *record));
    }

    fn broken(&mut self, broken: &Broken) {
        self.broken = Some(*broken);
    }
}
