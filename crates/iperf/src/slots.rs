//! Limits the number of streams that a server runs at a time and the memory they use.
//!
//! A datagram's source address may be forged, and a connection costs a stranger little. So a client counts as a
//! stranger until it proves to exist: over UDP by a second datagram, over TCP by a complete header.
//!
//! Whatever strangers send, there are at most [`CLIENTS_MAX`] streams, at most [`CLIENTS_PER_ADDRESS`] for one
//! address; all streams together use at most [`ROOM_BYTES`] beyond [`STRANGER_BYTES`] each; and a client without a
//! slot replaces the oldest stream that sends almost nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nicpoll_traffic::{Admission, ServerSlot, SlotLimits};

/// Most streams that a listener serves at a time.
pub const CLIENTS_MAX: usize = 256;
/// Most streams for one address.
pub const CLIENTS_PER_ADDRESS: usize = CLIENTS_MAX / 8 * 7;

/// 2.1.8 waits for the peer to close at least this long, or as long as the test took if that is longer.
pub(crate) const CLOSE_LIMIT_MIN: Duration = Duration::from_secs(2);

/// Read buffer of a stream until its sender proves fast.
pub(crate) const STRANGER_BYTES: usize = 64 << 10;
/// What all streams together may hold beyond that.
const ROOM_BYTES: usize = 24 << 20;
/// How long a server keeps a stranger that has not proved to exist.
pub(crate) const STRANGER_TIMEOUT: Duration = Duration::from_secs(5);
/// After this one a newcomer may replace it.
const STRANGER_IDLE_AFTER: Duration = Duration::from_millis(500);
/// A newcomer may replace a stream that receives fewer bytes than this
const LEAST_BYTES: u64 = 1_000;
/// within this time. A waiting TCP client has sent a short test long before, and gives up when the
/// server has not closed after [`CLOSE_LIMIT_MIN`], so it must be served by then.
const LEAST_WINDOW: Duration = Duration::from_secs(1);

/// The stream slots of one listener.
#[derive(Clone, Debug)]
pub(crate) struct Slots(Arc<SharedSlots>);

#[derive(Debug)]
struct SharedSlots {
    admission: Admission,
    /// Unused part of [`ROOM_BYTES`].
    room_bytes: AtomicUsize,
    is_closing: AtomicBool,
}

impl Slots {
    /// For a server; or for a client that accepts streams from one server, which may use all slots.
    pub(crate) fn new(is_for_one_server: bool) -> Self {
        const { assert!(CLIENTS_MAX == 256) };
        let limits = SlotLimits {
            all: CLIENTS_MAX,
            of_address: match is_for_one_server {
                true => CLIENTS_MAX,
                false => CLIENTS_PER_ADDRESS,
            },
            in_use: "all 256 streams are in use",
            rule: "has to wait; it replaces the first stream of less than 1 kB/s",
            what: "streams",
        };
        Slots(Arc::new(SharedSlots {
            admission: Admission::new(limits),
            room_bytes: AtomicUsize::new(ROOM_BYTES),
            is_closing: AtomicBool::new(false),
        }))
    }

    /// Who gets a slot, and who does not.
    pub(crate) fn admission(&self) -> &Admission {
        &self.0.admission
    }

    /// Takes a slot for a client that may ask for `streams` of them; records the refusal when there is no room.
    pub(crate) fn take(&self, peer: SocketAddr, streams: usize) -> Option<Ticket> {
        Some(Ticket {
            slot: self.0.admission.admit(peer, streams)?,
            shared: Arc::clone(&self.0),
            proof: Proof::default(),
        })
    }

    /// Ends the streams of strangers: the server is closing.
    pub(crate) fn close(&self) {
        self.0.is_closing.store(true, Ordering::Relaxed);
    }
}

/// Whether a client has proved to exist. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Proof(Arc<AtomicBool>);

impl Proof {
    /// Whether the client has proved to exist.
    pub fn is_given(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A slot, held by each stream. A clone takes another slot for the same client.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    slot: ServerSlot,
    shared: Arc<SharedSlots>,
    proof: Proof,
}

impl Ticket {
    /// The state of the client's proof.
    pub(crate) fn proof(&self) -> &Proof {
        &self.proof
    }

    /// Marks the client as proved to exist.
    pub(crate) fn prove(&self) {
        self.proof.0.store(true, Ordering::Relaxed);
    }

    /// Whether the client may have one more stream.
    pub(crate) fn has_room_for_another(&self) -> bool {
        self.slot.has_room_for_another()
    }

    /// Takes `bytes` of room beyond a stranger's buffer; `None` when less is left.
    pub(crate) fn grow(&self, bytes: usize) -> Option<Grown> {
        let take = |left: usize| left.checked_sub(bytes);
        let room = &self.shared.room_bytes;
        let taken = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.ok().map(|_| Grown {
            shared: Arc::clone(&self.shared),
            bytes,
        })
    }

    /// Returns how much of `bytes` the stream may hold from its start, and the guard that reserves it.
    pub(crate) fn grant(&self, bytes: usize) -> (usize, Option<Grown>) {
        let more = bytes.saturating_sub(STRANGER_BYTES);
        match self.grow(more) {
            Some(grown) => (bytes, Some(grown)),
            None => (STRANGER_BYTES, None),
        }
    }
}

/// Room given to a fast stream; returned when dropped.
#[derive(Debug)]
pub(crate) struct Grown {
    shared: Arc<SharedSlots>,
    bytes: usize,
}

impl Drop for Grown {
    fn drop(&mut self) {
        let room = &self.shared.room_bytes;
        room.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// Decides whether a stream receives enough to be kept when others need its slot.
#[derive(Debug)]
pub(crate) struct LeastRate {
    begun: Instant,
    window_begun: Instant,
    bytes_at_window: u64,
    is_missed: bool,
}

impl LeastRate {
    /// For a stream that begins at `now`.
    pub(crate) fn new(now: Instant) -> Self {
        LeastRate {
            begun: now,
            window_begun: now,
            bytes_at_window: 0,
            is_missed: false,
        }
    }

    /// Whether it received too little when it was looked at last.
    pub(crate) fn is_missed(&self) -> bool {
        self.is_missed
    }

    /// Looks at a stream that has received `bytes` by `now`; returns whether it must end.
    pub(crate) fn look(&mut self, ticket: &Ticket, bytes: u64, now: Instant) -> bool {
        // Half of the client's patience is left for a busy host.
        const { assert!(2 * LEAST_WINDOW.as_millis() <= CLOSE_LIMIT_MIN.as_millis()) };
        let is_stranger = !ticket.proof.is_given();
        if is_stranger {
            self.is_missed = now.duration_since(self.begun) >= STRANGER_IDLE_AFTER;
        } else if now.duration_since(self.window_begun) >= LEAST_WINDOW {
            self.is_missed = bytes - self.bytes_at_window < LEAST_BYTES;
            (self.window_begun, self.bytes_at_window) = (now, bytes);
        }
        ticket.slot.set_idle(self.is_missed);
        let is_closing = is_stranger && ticket.shared.is_closing.load(Ordering::Relaxed);
        ticket.slot.is_replaced() || self.is_missed && is_closing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(host: u8, port: u16) -> SocketAddr {
        ([192, 0, 2, host], port).into()
    }

    #[test]
    fn room_beyond_a_strangers_share_is_bounded_and_comes_back() {
        let slots = Slots::new(false);
        let ticket = slots.take(peer(1, 1), 1).unwrap();
        let half = ticket.grow(ROOM_BYTES / 2).unwrap();
        let rest = ticket.grow(ROOM_BYTES / 2).unwrap();
        assert!(ticket.grow(1).is_none());
        drop(half);
        assert!(ticket.grow(ROOM_BYTES / 2 + 1).is_none());
        let half = ticket.grow(ROOM_BYTES / 2).unwrap();
        assert_eq!(ticket.grant(1 << 20).0, STRANGER_BYTES);
        assert_eq!(ticket.grant(1).0, 1);
        drop((half, rest));
        assert_eq!(ticket.grant(1 << 20).0, 1 << 20);
        assert!(ticket.grow(ROOM_BYTES).is_some());
    }

    #[test]
    fn who_sends_next_to_nothing_makes_room() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        // Whether a newcomer replaces a stream that has received the last of these bytes by then.
        let is_replaced = |is_proved, looks: &[(u64, u64)]| {
            let slots = Slots::new(false);
            let ticket = slots.take(peer(1, 1), CLIENTS_PER_ADDRESS).unwrap();
            if is_proved {
                ticket.prove();
            }
            let mut rate = LeastRate::new(begun);
            for (ms, bytes) in looks {
                assert!(!rate.look(&ticket, *bytes, at(*ms)));
            }
            let newcomer = slots.take(peer(1, 2), CLIENTS_PER_ADDRESS);
            let (ms, bytes) = looks[looks.len() - 1];
            assert_eq!(newcomer.is_some(), rate.look(&ticket, bytes, at(ms)));
            newcomer.is_some()
        };
        assert!(!is_replaced(false, &[(499, 1)]));
        assert!(is_replaced(false, &[(500, 1)]));
        assert!(!is_replaced(true, &[(999, 0)]));
        assert!(is_replaced(true, &[(1_000, 999)]));
        assert!(!is_replaced(true, &[(1_000, 1_000)]));
        assert!(is_replaced(true, &[(1_000, 1_998), (2_000, 1_998)]));
        assert!(!is_replaced(true, &[(1_000, 999), (2_000, 1_999)]));
    }

    #[test]
    fn a_server_that_ends_lets_go_of_strangers_only() {
        let slots = Slots::new(false);
        let [stranger, client] = [1, 2].map(|host| slots.take(peer(host, 1), 1).unwrap());
        client.prove();
        let begun = Instant::now();
        slots.close();
        let later = begun + LEAST_WINDOW;
        assert!(LeastRate::new(begun).look(&stranger, 0, later));
        assert!(!LeastRate::new(begun).look(&client, 0, later));
    }
}
