//! What goes over a socket, and what a server sends over one of its own: each way on a thread of its
//! own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::events::{Event, Failed, StreamKey, Told};
use crate::threads;
use crate::total::Total;

/// Runs one stream.
pub type Run<'a> = Box<dyn FnOnce(&mut Told) -> Result<Total, Failed> + Send + 'a>;

/// The streams of one test, each by its key.
#[derive(Default)]
pub struct Ways<'a> {
    /// What is received over the socket.
    pub incoming: Option<(StreamKey, Run<'a>)>,
    /// What is sent over it.
    pub outgoing: Option<(StreamKey, Run<'a>)>,
    /// What is sent over a socket of its own: at once, or later.
    pub back: Option<(StreamKey, Run<'a>)>,
}

impl Ways<'_> {
    /// Runs all of them to their ends, the last one on the caller's thread.
    pub fn run(self, events: &mpsc::Sender<Event>) {
        let (later, at_once) = match self.back {
            Some((key, run)) if key.is_later => (Some((key, run)), None),
            back => (None, back),
        };
        thread::scope(|scope| {
            let ways = [self.incoming, self.outgoing, at_once];
            let mut ways: Vec<_> = ways.into_iter().flatten().collect();
            let last = ways.pop();
            for (key, run) in ways {
                if let Err(error) = threads::start(scope, move || Told::run(key, events, run)) {
                    Told::run(key, events, |_| Err(error.into()));
                }
            }
            if let Some((key, run)) = last {
                Told::run(key, events, run);
            }
        });
        if let Some((key, run)) = later {
            Told::run(key, events, run);
        }
    }
}

/// Numbers sockets from 0.
#[derive(Clone, Default)]
pub struct Numbers(Arc<AtomicU32>);

impl Numbers {
    /// The key of the usual stream of the next socket.
    pub fn next(&self) -> StreamKey {
        StreamKey::new(self.0.fetch_add(1, Ordering::Relaxed))
    }

    /// The key of a stream that goes back over the next socket.
    pub fn next_back(&self, is_at_once: bool) -> StreamKey {
        StreamKey {
            is_later: !is_at_once,
            ..self.next().reversed()
        }
    }
}
