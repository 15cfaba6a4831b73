//! What a running sender or receiver is told from outside.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The longest that any wait goes without a look at the signals.
pub const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Shared by reference between the two ends of a stream and whoever runs them.
#[derive(Debug, Default)]
pub struct Signals {
    /// Give up: every loop returns its `Cancelled` error within 100 ms.
    pub cancel: AtomicBool,
    /// End well: a sender ends its stream as if its time were up. A receiver has [`sender_done`]
    /// for that.
    ///
    /// [`sender_done`]: Self::sender_done
    pub finish: AtomicBool,
    /// The sender has ended and nothing is on its way any more: receivers take what is queued in
    /// their sockets and end without waiting for silence.
    pub sender_done: AtomicBool,
}

impl Signals {
    /// Whether to give up.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Whether to end well.
    pub fn is_finishing(&self) -> bool {
        self.finish.load(Ordering::Relaxed)
    }

    /// Whether nothing is on its way any more.
    pub fn is_sender_done(&self) -> bool {
        // What the sender sent before it was declared done must be seen in the socket after.
        self.sender_done.load(Ordering::Acquire)
    }
}
