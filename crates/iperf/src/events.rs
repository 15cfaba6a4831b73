//! What streams report to the thread that prints: events, and what each stream came to. Start with
//! [`Event`]; a stream sends them through its [`Reporter`], and an [`Output`] takes them.

use std::io;
use std::sync::mpsc;

use nicpoll_model::Rate;
use nicpoll_sys::tell;
use nicpoll_traffic::SocketBuffer;
use nicpoll_traffic::udp_server::ServerError;

use crate::options::Style;
use crate::records::{Broken, Connected, Distribution, IntervalRecord, Observer, Receipt};
use crate::wire::ServerReport;

/// How every message begins that is none of the original's.
pub const SPEAKER: &str = "nicpoll iperf: ";

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
    Finished(StreamKey, Box<Result<Total, Failed>>),
}

/// Whose settings are printed before a test.
#[derive(Clone, Copy, Debug)]
pub enum Settings {
    /// A listener's: its port, the last port of a range, and the receive buffer.
    Listener(u16, Option<u16>, SocketBuffer),
    /// A client's.
    Client(Connected),
    /// Those of a server that connects back: in writes of so many bytes and, over UDP, at this rate.
    WayBack(Connected, usize, Option<Rate>),
}

/// Why a stream came to nothing.
#[derive(Debug)]
pub enum Failed {
    /// A signal asked to stop; its sender needs no message.
    Cancelled,
    /// The message to print.
    Because(String),
}

impl Failed {
    /// An error in full.
    pub fn because(error: &dyn std::error::Error) -> Self {
        Failed::Because(match error.source() {
            Some(source) => format!("{SPEAKER}{error} ({source})"),
            None => format!("{SPEAKER}{error}"),
        })
    }

    /// A thread that cannot be made.
    pub fn no_thread(error: io::Error) -> Self {
        Failed::Because(format!(
            "{SPEAKER}no thread could be made for a stream ({error}); see the limit on processes"
        ))
    }
}

impl From<ServerError> for Failed {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Cancelled => Failed::Cancelled,
            error => Failed::because(&error),
        }
    }
}

/// What one end of a stream came to.
#[derive(Clone, Debug)]
pub struct Total {
    /// The stream as one interval.
    pub whole: IntervalRecord,
    /// The socket buffer at the end.
    pub buffer: SocketBuffer,
    /// From the first write until the receiver had read everything; of a TCP sender.
    pub close_seconds: Option<f64>,
    /// Gaps between datagrams.
    pub gaps: Option<Box<Distribution>>,
    /// From the sending of a datagram to its arrival.
    pub one_way_delays: Option<Box<Distribution>>,
    /// What the server said it received.
    pub server_report: Option<ServerReport>,
    /// FINs that a UDP sender sent, where one should have been answered and none was.
    pub unanswered_fins: Option<u64>,
    /// When data flowed last, if that was before the end of the interval.
    pub flowed_seconds: Option<f64>,
    /// How the other end left a stream that it had not finished, if that is known.
    pub left: Option<&'static str>,
    /// Why a sender does not know how much arrived; `None` when it does.
    pub doubt: Option<&'static str>,
    /// What is wrong with the result, in words for people; `None` when nothing is.
    pub problem: Option<String>,
}

impl Total {
    /// What every stream has.
    pub fn of(whole: IntervalRecord, buffer: SocketBuffer) -> Self {
        Total {
            whole,
            buffer,
            close_seconds: None,
            gaps: None,
            one_way_delays: None,
            server_report: None,
            unanswered_fins: None,
            flowed_seconds: None,
            left: None,
            doubt: None,
            problem: None,
        }
    }

    /// What a receiver came to.
    pub fn received(whole: IntervalRecord, buffer: SocketBuffer, is_ended: bool) -> Self {
        Total {
            left: is_ended.then_some("the server ended the stream"),
            ..Total::of(whole, buffer)
        }
    }

    /// The stream as text has it: of a TCP sender, 2.1 states the time until the receiver had read
    /// everything, 2.0 that of the writing.
    pub fn told(&self, style: Style) -> IntervalRecord {
        let close = self.close_seconds.filter(|_| style == Style::V2_1);
        IntervalRecord {
            end: close.unwrap_or(self.whole.end),
            ..self.whole
        }
    }

    /// Until when data flowed, in seconds from the beginning.
    pub fn obtained_seconds(&self) -> f64 {
        self.flowed_seconds.unwrap_or(self.whole.end)
    }

    /// What the server said: when, and how many of the datagrams came.
    pub fn relayed(&self) -> Option<IntervalRecord> {
        let report = self.server_report?;
        Some(IntervalRecord {
            receipt: Some(Receipt {
                expected: report.datagrams,
                lost: report.lost as i64,
                out_of_order: report.out_of_order,
                duplicates: 0,
                jitter_seconds: Some(report.jitter.as_secs_f64()),
                transit: None,
            }),
            ..IntervalRecord::of_bytes(report.bytes, report.elapsed.as_secs_f64())
        })
    }
}

/// Passes on what a stream reports.
#[derive(Debug)]
pub struct Reporter {
    key: StreamKey,
    events: mpsc::Sender<Event>,
    broken: Option<Broken>,
}

impl Reporter {
    /// Runs a stream, and reports what it comes to at its end.
    pub fn run(
        key: StreamKey,
        events: &mpsc::Sender<Event>,
        run: impl FnOnce(&mut Reporter) -> Result<Total, Failed>,
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
    pub fn fail(key: StreamKey, events: &mpsc::Sender<Event>, failed: Failed) {
        Reporter::run(key, events, |_| Err(failed));
    }

    /// Keeps what a stream came to before it broke off: a result with a problem.
    pub fn kept(&mut self, outcome: Result<Total, Failed>) -> Result<Total, Failed> {
        match (outcome, self.broken.take()) {
            (Err(Failed::Because(why)), Some(broken)) if broken.whole.bytes > 0 => Ok(Total {
                problem: Some(why),
                ..Total::of(broken.whole, broken.buffer)
            }),
            (outcome, _) => outcome,
        }
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

    fn broken(&mut self, broken: &Broken) {
        self.broken = Some(*broken);
    }
}

/// Prints what happens, as soon as it does.
pub trait Output: Send {
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
    /// Everything has ended.
    fn end(&mut self) -> io::Result<()>;

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
    fn ended(&mut self, key: StreamKey, outcome: Result<Total, Failed>) -> io::Result<bool> {
        match outcome {
            Ok(total) => {
                if let Some(fins) = total.unanswered_fins {
                    tell!(
                        "[{:>3}] WARNING: did not receive ack of last datagram after {fins} tries.",
                        key.number + 1
                    );
                }
                self.finished(key, &total)?;
                if let Some(problem) = &total.problem {
                    tell!("{problem}");
                    return Ok(true);
                }
            }
            Err(Failed::Cancelled) => self.failed(key, None)?,
            Err(Failed::Because(text)) => {
                tell!("{text}");
                self.failed(key, Some(&text))?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}
