//! The transmit queues of all interfaces that are forwarded between, for the engines of all CPUs.
//!
//! What must hold: each frame that is given to an exit is handed to its driver, stays in its ring until the next call, or
//! is counted as lost. Frames of one receive queue leave an exit by one transmit queue, so none overtakes another. A
//! transmit queue is one CPU's at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nicpoll_sys::xdp::XdpSendHalf;

/// An interface that frames leave by.
struct Exit {
    queues: Vec<Mutex<XdpSendHalf>>,
    frame_bytes_max: usize,
    is_up: AtomicBool,
}

/// The exits, by their places.
pub(super) struct Exits(Vec<Exit>);

/// What became of frames that were given to an exit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// Taken by its driver, or in its ring.
    pub(super) taken: u64,
    /// Its ring or its driver had no room.
    pub(super) full: u64,
}

impl Exits {
    /// Exits with these queues.
    pub(super) fn new(queues: Vec<Vec<XdpSendHalf>>) -> Self {
        let exits = queues.into_iter().map(|queues| Exit {
            frame_bytes_max: queues
                .iter()
                .map(XdpSendHalf::frame_bytes_max)
                .min()
                .unwrap_or(0),
            queues: queues.into_iter().map(Mutex::new).collect(),
            is_up: AtomicBool::new(true),
        });
        Exits(exits.collect())
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether a frame of so many bytes can leave by an exit.
    pub(super) fn takes(&self, place: usize, frame_bytes: usize) -> bool {
        self.0.get(place).is_some_and(|exit| {
            exit.is_up.load(Ordering::Relaxed) && frame_bytes <= exit.frame_bytes_max
        })
    }

    /// Takes note of whether an exit is up.
    pub(super) fn note_link(&self, place: usize, is_up: bool) {
        self.0[place].is_up.store(is_up, Ordering::Relaxed);
    }

    /// Hands the driver what it did not take before.
    pub(super) fn flush(&self, place: usize, queue: usize) {
        if let Some(mut queue) = self.queue(place, queue) {
            let _ = queue.transmit(0, |_| None);
        }
    }

    /// Sends so many frames, which `fill` writes, for the receive queue of that number.
    pub(super) fn send(
        &self,
        place: usize,
        queue: usize,
        frames: u64,
        mut fill: impl FnMut(&mut [u8]) -> Option<usize>,
    ) -> Sent {
        let (mut written, mut refused) = (0, 0);
        if let Some(mut queue) = self.queue(place, queue) {
            let refused_before = queue.sent().refused;
            // When the exit is down, what was written waits in its ring.
            let outcome = queue.transmit(frames as u32, |memory| {
                let length = fill(memory);
                written += u64::from(length.is_some());
                length
            });
            if outcome.is_err() {
                // Until its port finds it up again.
                self.note_link(place, false);
            }
            refused = (queue.sent().refused - refused_before).min(written);
        }
        Sent {
            taken: written - refused,
            full: frames - written + refused,
        }
    }

    /// The transmit queue for frames of the receive queue of that number, as far as the exit has as many.
    fn queue(&self, place: usize, queue: usize) -> Option<MutexGuard<'_, XdpSendHalf>> {
        let queues = &self.0.get(place)?.queues;
        let queue = queues.get(queue % queues.len().max(1))?;
        Some(queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
