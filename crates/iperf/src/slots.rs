//! Limits the number of streams that a server runs at a time and the memory they use.
//!
//! A datagram's source address may be forged, and a connection costs a stranger little. So a client counts as a
//! stranger until it proves to exist: over UDP by a second datagram, over TCP by a complete header.
//!
//! Whatever strangers send, there are at most [`CLIENTS_MAX`] streams, at most [`CLIENTS_PER_ADDRESS`] for one
//! address; all streams together use at most [`ROOM_BYTES`] beyond [`STRANGER_BYTES`] each; and while a client
//! waits for a slot, streams that send almost nothing are ended.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nicpoll_traffic::{AddressShares, Caller, ClientRefusal};

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
/// The same while other clients wait.
const STRANGER_TIMEOUT_CROWDED: Duration = Duration::from_millis(500);
/// How long a refused client counts as waiting.
const WAIT_LASTS: Duration = Duration::from_secs(1);
/// While clients wait, a stream that receives fewer bytes than this
const LEAST_BYTES: u64 = 1_000;
/// within this time is ended. A waiting TCP client has sent a short test long before, and gives up when the
/// server has not closed after [`CLOSE_LIMIT_MIN`], so it must be served by then.
const LEAST_WINDOW: Duration = Duration::from_secs(1);

/// The refusal of a client when all streams are in use.
fn full(peer: Caller) -> ClientRefusal {
    const { assert!(CLIENTS_MAX == 256) };
    ClientRefusal::Full {
        peer,
        in_use: "all 256 streams are in use",
        rule: "has to wait; streams of less than 1 kB/s are ended meanwhile",
    }
}

/// The stream slots of one listener.
#[derive(Clone, Debug)]
pub(crate) struct Slots(Arc<SharedSlots>);

#[derive(Debug)]
struct SharedSlots {
    counts: Mutex<SlotCounts>,
    /// Unused part of [`ROOM_BYTES`].
    room_bytes: AtomicUsize,
    is_closing: AtomicBool,
}

#[derive(Debug)]
struct SlotCounts {
    of_address: AddressShares,
    /// When a client was last refused for lack of a slot.
    waited: Option<Instant>,
    refusal: Option<ClientRefusal>,
}

impl SharedSlots {
    fn counts(&self) -> MutexGuard<'_, SlotCounts> {
        // The counts stay valid when another thread panics.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    /// For a server; or for a client that accepts streams from one server, which may use all slots.
    pub(crate) fn new(is_for_one_server: bool) -> Self {
        let of_address_max = match is_for_one_server {
            true => CLIENTS_MAX,
            false => CLIENTS_PER_ADDRESS,
        };
        Slots(Arc::new(SharedSlots {
            counts: Mutex::new(SlotCounts {
                of_address: AddressShares::new(of_address_max),
                waited: None,
                refusal: None,
            }),
            room_bytes: AtomicUsize::new(ROOM_BYTES),
            is_closing: AtomicBool::new(false),
        }))
    }

    /// Whether all slots are in use.
    pub(crate) fn are_taken(&self) -> bool {
        self.0.counts().of_address.taken() >= CLIENTS_MAX
    }

    /// Takes a slot for a client that may ask for `streams` of them; records the refusal when there is no room.
    pub(crate) fn take(&self, peer: SocketAddr, streams: usize) -> Option<Ticket> {
        let address = peer.ip();
        let mut counts = self.0.counts();
        if counts.of_address.taken() + streams > CLIENTS_MAX {
            counts.waited = Some(Instant::now());
            counts.refusal = Some(full(peer.into()));
            return None;
        }
        if !counts.of_address.has_room(address, streams) {
            counts.refusal = Some(ClientRefusal::Share {
                peer: peer.into(),
                most: counts.of_address.most(),
                what: "streams",
            });
            return None;
        }
        counts.of_address.take(address);
        drop(counts);
        Some(Ticket {
            shared: Arc::clone(&self.0),
            address,
            proof: Proof::default(),
        })
    }

    /// Records that an unknown client waits for a slot.
    pub(crate) fn wait(&self) {
        let mut counts = self.0.counts();
        counts.waited = Some(Instant::now());
        counts.refusal = Some(full(Caller(None)));
    }

    /// Records the refusal of a client.
    pub(crate) fn refuse(&self, refusal: ClientRefusal) {
        self.0.counts().refusal = Some(refusal);
    }

    /// Takes the last refusal that was not yet reported.
    pub(crate) fn refusal(&self) -> Option<ClientRefusal> {
        self.0.counts().refusal.take()
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
#[derive(Debug)]
pub(crate) struct Ticket {
    shared: Arc<SharedSlots>,
    address: IpAddr,
    proof: Proof,
}

impl Clone for Ticket {
    fn clone(&self) -> Self {
        self.shared.counts().of_address.take(self.address);
        Ticket {
            shared: Arc::clone(&self.shared),
            address: self.address,
            proof: self.proof.clone(),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut counts = self.shared.counts();
        counts.of_address.give_back(self.address);
    }
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
        let counts = self.shared.counts();
        counts.of_address.taken() < CLIENTS_MAX && counts.of_address.has_room(self.address, 1)
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

    fn is_waited_for(&self) -> bool {
        let waited = self.shared.counts().waited;
        waited.is_some_and(|waited| waited.elapsed() < WAIT_LASTS)
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

/// Decides whether a stream receives enough to be kept while others wait.
#[derive(Debug)]
pub(crate) struct LeastRate {
    begun: Instant,
    window_begun: Instant,
    bytes_at_window: u64,
}

impl LeastRate {
    /// For a stream that begins at `now`.
    pub(crate) fn new(now: Instant) -> Self {
        LeastRate {
            begun: now,
            window_begun: now,
            bytes_at_window: 0,
        }
    }

    /// Whether a stream that has received `bytes` by `now` must make room.
    pub(crate) fn is_missed(&mut self, ticket: &Ticket, bytes: u64, now: Instant) -> bool {
        // Half of the client's patience is left for a busy host.
        const { assert!(2 * LEAST_WINDOW.as_millis() <= CLOSE_LIMIT_MIN.as_millis()) };
        if !ticket.proof.is_given() {
            let age = now.duration_since(self.begun);
            return age >= STRANGER_TIMEOUT_CROWDED
                && (ticket.is_waited_for() || ticket.shared.is_closing.load(Ordering::Relaxed));
        }
        if now.duration_since(self.window_begun) < LEAST_WINDOW {
            return false;
        }
        let moved = bytes - self.bytes_at_window;
        (self.window_begun, self.bytes_at_window) = (now, bytes);
        moved < LEAST_BYTES && ticket.is_waited_for()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(host: u8, port: u16) -> SocketAddr {
        ([192, 0, 2, host], port).into()
    }

    #[test]
    fn one_address_leaves_room_for_others() {
        let slots = Slots::new(false);
        let own: Vec<_> = (0..CLIENTS_PER_ADDRESS)
            .map(|_| slots.take(peer(1, 1), 1).unwrap())
            .collect();
        assert!(slots.take(peer(1, 2), 1).is_none());
        assert!(matches!(slots.refusal(), Some(ClientRefusal::Share { .. })));
        assert!(!own[0].has_room_for_another());
        let others: Vec<_> = (CLIENTS_PER_ADDRESS..CLIENTS_MAX)
            .map(|_| slots.take(peer(2, 1), 1).unwrap())
            .collect();
        assert!(slots.are_taken());
        assert!(slots.take(peer(3, 1), 1).is_none());
        assert!(matches!(slots.refusal(), Some(ClientRefusal::Full { .. })));
        assert!(slots.refusal().is_none());
        drop((own, others));
        assert_eq!(slots.0.counts().of_address.taken(), 0);
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
    fn who_sends_next_to_nothing_goes_when_somebody_waits() {
        let slots = Slots::new(false);
        let ticket = slots.take(peer(1, 1), 1).unwrap();
        let begun = Instant::now();
        let mut rate = LeastRate::new(begun);
        let at = |ms| begun + Duration::from_millis(ms);
        // Nobody waits.
        assert!(!rate.is_missed(&ticket, 1, at(600)));
        slots.wait();
        assert!(!rate.is_missed(&ticket, 1, at(499)));
        assert!(rate.is_missed(&ticket, 1, at(500)));
        ticket.prove();
        assert!(!rate.is_missed(&ticket, 1, at(999)));
        assert!(rate.is_missed(&ticket, 999, at(1_000)));
        assert!(!rate.is_missed(&ticket, 1_998, at(1_999)));
        assert!(rate.is_missed(&ticket, 1_998, at(2_000)));
        assert!(!rate.is_missed(&ticket, 2_998, at(3_000)));
    }

    #[test]
    fn a_server_that_ends_lets_go_of_strangers_only() {
        let slots = Slots::new(false);
        let [stranger, client] = [1, 2].map(|host| slots.take(peer(host, 1), 1).unwrap());
        client.prove();
        let begun = Instant::now();
        slots.close();
        let later = begun + LEAST_WINDOW;
        assert!(LeastRate::new(begun).is_missed(&stranger, 0, later));
        assert!(!LeastRate::new(begun).is_missed(&client, 0, later));
    }
}
