//! What streams tell the thread that prints.

use std::sync::mpsc;

use nicpoll_traffic::iperf::{Connected, IntervalRecord, Observer};

use super::printer::Total;

/// Something that happened, to a stream by its number.
#[derive(Debug)]
pub enum Event {
    /// The server is up; its banner.
    Listening(String),
    /// It has a peer.
    Connected(u32, Connected),
    /// One of its intervals has ended.
    Interval(u32, IntervalRecord),
    /// It has ended, well or not.
    Finished(u32, Result<Total, Failed>),
}

/// Why a stream came to nothing.
#[derive(Debug)]
pub enum Failed {
    /// A signal asked to stop; whoever sent it knows.
    Cancelled,
    /// What to say.
    Because(String),
}

/// Passes on what a stream tells.
#[derive(Debug)]
pub struct Told {
    number: u32,
    events: mpsc::Sender<Event>,
}

impl Told {
    /// For stream `number`.
    pub fn new(number: u32, events: mpsc::Sender<Event>) -> Self {
        Told { number, events }
    }

    /// The stream's number.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Observer for Told {
    // Whoever printed may have ended on an error of its own; the stream goes on to its end.
    fn connected(&mut self, connected: &Connected) {
        let _ = self.events.send(Event::Connected(self.number, *connected));
    }

    fn interval(&mut self, record: &IntervalRecord) {
        let _ = self.events.send(Event::Interval(self.number, *record));
    }
}
