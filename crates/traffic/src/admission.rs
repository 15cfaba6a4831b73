//! Admission of clients to a server: slots per address, refusals, and how often refusals are reported.
//!
//! However many slots one address asks for, some remain for others; the addresses that one IPv6 host may choose
//! from share one limit. A client for whom there is no slot replaces the oldest idle one: of its own address where
//! that has its share, otherwise of any. A connection for which no descriptor is left is closed at once with the help of a
//! spare one, so its client learns of it. Refused clients cannot flood a log.

use std::fmt;
use std::fs::File;
use std::io;
use std::mem::{Discriminant, discriminant};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use thiserror::Error;

use crate::signals::LOOK_EVERY;

/// Why a client is not served.
#[derive(Debug, Error)]
pub enum ClientRefusal {
    /// All slots are in use.
    #[error("{in_use}: {peer} {rule}")]
    Full {
        /// The last client; TCP may not reveal it.
        peer: Caller,
        /// What is used up.
        in_use: &'static str,
        /// What happens to the client, and when slots become free.
        rule: &'static str,
    },
    /// The address has its full share.
    #[error("{peer} is refused: it has {most} {what} already, and the rest is for others")]
    Share {
        /// The last client.
        peer: Caller,
        /// The limit per address,
        most: usize,
        /// and what it limits.
        what: &'static str,
    },
    /// No descriptor is left.
    #[error("{peer} is refused: {source}; raise the limit on open files (ulimit -n)")]
    Descriptor {
        /// The last client; TCP does not reveal it.
        peer: Caller,
        /// The kernel's error.
        source: io::Error,
    },
    /// No thread could be created.
    #[error("{peer} is refused: no thread could be made ({source}); see the limit on processes")]
    Thread {
        /// The last client.
        peer: Caller,
        /// The kernel's error.
        source: io::Error,
    },
}

/// A refused client, if known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller(pub Option<SocketAddr>);

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(peer) => peer.ip().to_canonical().fmt(f),
            None => f.write_str("a client"),
        }
    }
}

impl From<SocketAddr> for Caller {
    fn from(peer: SocketAddr) -> Self {
        Caller(Some(peer))
    }
}

/// Bits of an IPv6 address that one host may choose freely.
const HOST_BITS_IPV6: u32 = 64;

/// How many slots a server has, and its words for them.
#[derive(Clone, Copy, Debug)]
pub struct SlotLimits {
    /// Most at a time,
    pub all: usize,
    /// and for one address.
    pub of_address: usize,
    /// All of them in words.
    pub in_use: &'static str,
    /// What happens to a client for whom there is none.
    pub rule: &'static str,
    /// What they are for.
    pub what: &'static str,
}

/// The slots of a server. Clones share them.
#[derive(Clone, Debug)]
pub struct Admission {
    limits: SlotLimits,
    state: Arc<Mutex<SlotHolders>>,
}

#[derive(Debug, Default)]
struct SlotHolders {
    /// The holders, the oldest first.
    held: Vec<Arc<SlotHolder>>,
    refusal: Option<ClientRefusal>,
}

#[derive(Debug)]
struct SlotHolder {
    address: IpAddr,
    is_idle: AtomicBool,
    is_replaced: AtomicBool,
}

impl SlotHolders {
    fn of_address(&self, address: IpAddr) -> usize {
        let own = self.held.iter().filter(|it| it.address == address);
        own.count()
    }

    /// Takes its slot from the oldest idle holder, who learns of it. Returns whether there was one.
    fn replace_idle(&mut self, may_go: impl Fn(&SlotHolder) -> bool) -> bool {
        let may_go = |it: &Arc<SlotHolder>| it.is_idle.load(Ordering::Relaxed) && may_go(it);
        let oldest = self.held.iter().position(may_go);
        if let Some(oldest) = oldest {
            let holder = self.held.remove(oldest);
            holder.is_replaced.store(true, Ordering::Relaxed);
        }
        oldest.is_some()
    }
}

impl Admission {
    /// Without any slot in use.
    pub fn new(limits: SlotLimits) -> Self {
        let state = Arc::default();
        Admission { limits, state }
    }

    fn state(&self) -> MutexGuard<'_, SlotHolders> {
        // The state stays valid when another thread panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all slots are in use, none of them by an idle holder.
    pub fn is_full(&self) -> bool {
        let held = &self.state().held;
        held.len() >= self.limits.all && !held.iter().any(|it| it.is_idle.load(Ordering::Relaxed))
    }

    /// Takes a slot for a client that may ask for `places` of them; records the refusal when there is no room.
    pub fn admit(&self, peer: SocketAddr, places: usize) -> Option<ServerSlot> {
        let address = holder(peer.ip());
        let limits = self.limits;
        let mut state = self.state();
        loop {
            let is_full = state.held.len() + places > limits.all;
            let has_share = state.of_address(address) + places > limits.of_address;
            if !is_full && !has_share {
                break;
            }
            if !state.replace_idle(|it| !has_share || it.address == address) {
                state.refusal = Some(if is_full {
                    limits.full(peer.into())
                } else {
                    ClientRefusal::Share {
                        peer: peer.into(),
                        most: limits.of_address,
                        what: limits.what,
                    }
                });
                return None;
            }
        }
        Some(ServerSlot::take(self, &mut state, address))
    }

    /// Records that an unknown client waits for a slot.
    pub fn wait(&self) {
        self.refuse(self.limits.full(Caller(None)));
    }

    /// Records the refusal of a client.
    pub fn refuse(&self, refusal: ClientRefusal) {
        self.state().refusal = Some(refusal);
    }

    /// Takes the last refusal that was not yet reported.
    pub fn refusal(&self) -> Option<ClientRefusal> {
        self.state().refusal.take()
    }
}

impl SlotLimits {
    fn full(&self, peer: Caller) -> ClientRefusal {
        let (in_use, rule) = (self.in_use, self.rule);
        ClientRefusal::Full { peer, in_use, rule }
    }
}

/// A slot in use, until it is dropped. A clone takes another one for the same client.
#[derive(Debug)]
pub struct ServerSlot {
    admission: Admission,
    holder: Arc<SlotHolder>,
}

impl ServerSlot {
    fn take(admission: &Admission, state: &mut SlotHolders, address: IpAddr) -> Self {
        let holder = Arc::new(SlotHolder {
            address,
            is_idle: AtomicBool::new(false),
            is_replaced: AtomicBool::new(false),
        });
        state.held.push(Arc::clone(&holder));
        let admission = admission.clone();
        ServerSlot { admission, holder }
    }

    /// Whether the client may have one more.
    pub fn has_room_for_another(&self) -> bool {
        let (limits, state) = (self.admission.limits, self.admission.state());
        state.held.len() < limits.all && state.of_address(self.holder.address) < limits.of_address
    }

    /// Says whether its client makes room for another one if need be.
    pub fn set_idle(&self, is_idle: bool) {
        self.holder.is_idle.store(is_idle, Ordering::Relaxed);
    }

    /// Whether another client has the slot: the holder ends.
    pub fn is_replaced(&self) -> bool {
        self.holder.is_replaced.load(Ordering::Relaxed)
    }
}

impl Clone for ServerSlot {
    fn clone(&self) -> Self {
        let mut state = self.admission.state();
        ServerSlot::take(&self.admission, &mut state, self.holder.address)
    }
}

impl Drop for ServerSlot {
    fn drop(&mut self) {
        let held = &mut self.admission.state().held;
        held.retain(|it| !Arc::ptr_eq(it, &self.holder));
    }
}

/// The address whose share this one uses.
fn holder(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> HOST_BITS_IPV6 << HOST_BITS_IPV6;
            Ipv6Addr::from(network).into()
        }
        address => address,
    }
}

/// Each kind of refusal is reported at most once in this time.
const EVERY: Duration = Duration::from_secs(60);

/// Limits the reports of refusals.
#[derive(Debug, Default)]
pub struct Notices {
    told: Vec<(Discriminant<ClientRefusal>, Instant)>,
}

impl Notices {
    /// Returns the refusal unless one of its kind was reported lately.
    pub fn due(&mut self, refusal: Option<ClientRefusal>) -> Option<ClientRefusal> {
        refusal.filter(|refusal| self.is_due(refusal, Instant::now()))
    }

    fn is_due(&mut self, refusal: &ClientRefusal, now: Instant) -> bool {
        let kind = discriminant(refusal);
        self.told.retain(|(_, at)| now.duration_since(*at) < EVERY);
        let is_due = self.told.iter().all(|(told, _)| *told != kind);
        if is_due {
            self.told.push((kind, now));
        }
        is_due
    }
}

/// A file for the spare descriptor.
const NOTHING: &str = "/dev/null";

/// A spare descriptor, if one is left. A server creates it before it accepts anyone.
#[derive(Debug)]
pub struct Spare(Mutex<Option<File>>);

impl Default for Spare {
    fn default() -> Self {
        Spare(Mutex::new(File::open(NOTHING).ok()))
    }
}

impl Spare {
    /// Closes the next connection in the queue. If even that fails, sleeps before the caller tries again.
    pub fn turn_away(&self, listener: &TcpListener) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(spare.take());
        if listener.accept().is_err() {
            thread::sleep(LOOK_EVERY);
        }
        *spare = File::open(NOTHING).ok();
    }
}

/// Whether an error means that descriptors or memory are used up, which may pass.
pub fn is_exhausted(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_of_one_ipv6_network_have_one_share() {
        let address = |text: &str| holder(text.parse().unwrap());
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:1"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
        assert_ne!(address("192.0.2.1"), address("192.0.2.2"));
    }

    const LIMITS: SlotLimits = SlotLimits {
        all: 4,
        of_address: 3,
        in_use: "all 4 streams are in use",
        rule: "has to wait",
        what: "streams",
    };

    fn peer(host: u8) -> SocketAddr {
        ([192, 0, 2, host], 1).into()
    }

    #[test]
    fn an_address_has_its_share_and_no_more_until_it_gives_some_back() {
        let slots = Admission::new(LIMITS);
        let first = slots.admit(peer(1), 1).unwrap();
        assert!(slots.admit(peer(1), 4).is_none());
        let own = [first.clone(), first.clone()];
        assert!(!first.has_room_for_another());
        assert!(slots.admit(peer(1), 1).is_none());
        assert!(matches!(slots.refusal(), Some(ClientRefusal::Share { .. })));
        let other = slots.admit(peer(2), 1).unwrap();
        assert!(slots.is_full() && slots.admit(peer(3), 1).is_none());
        assert!(matches!(slots.refusal(), Some(ClientRefusal::Full { .. })));
        assert!(slots.refusal().is_none());
        drop(own);
        assert!(!slots.is_full() && first.has_room_for_another());
        drop((first, other));
        assert!(slots.state().held.is_empty());
    }

    #[test]
    fn a_newcomer_replaces_the_oldest_idle_one() {
        let slots = Admission::new(LIMITS);
        let held = [2, 1, 1, 1].map(|host| slots.admit(peer(host), 1).unwrap());
        assert!(slots.is_full());
        held.iter().skip(2).for_each(|slot| slot.set_idle(true));
        held[0].set_idle(true);
        assert!(!slots.is_full());
        // An address with its share replaces one of its own, others the oldest of all.
        let replaced = || held.each_ref().map(ServerSlot::is_replaced);
        let own = slots.admit(peer(1), 1).unwrap();
        assert_eq!(replaced(), [false, false, true, false]);
        let other = slots.admit(peer(3), 1).unwrap();
        assert_eq!(replaced(), [true, false, true, false]);
        held[3].set_idle(false);
        assert!(slots.admit(peer(3), 1).is_none());
        // Who was replaced holds nothing that could come back.
        drop(held);
        assert_eq!(slots.state().held.len(), 2);
        drop((own, other));
    }

    #[test]
    fn each_kind_is_told_once_a_minute() {
        let mut notices = Notices::default();
        let begun = Instant::now();
        let peer = Caller(None);
        let full = ClientRefusal::Full {
            peer,
            in_use: "all streams are in use",
            rule: "has to wait",
        };
        let share = ClientRefusal::Share {
            peer,
            most: 1,
            what: "streams",
        };
        let second = |second| begun + Duration::from_secs(second);
        assert!(notices.is_due(&full, begun));
        assert!(notices.is_due(&share, second(30)));
        assert!(!notices.is_due(&full, second(59)));
        assert!(notices.is_due(&full, second(60)));
        assert!(!notices.is_due(&share, second(60)));
    }
}
