//! Admission of clients to a server: slots per address, refusals, and how often refusals are reported.
//!
//! However many slots one address asks for, some remain for others; the addresses that one IPv6 host may choose
//! from share one limit. A connection for which no descriptor is left is closed at once with the help of a
//! spare one, so its client learns of it. Refused clients cannot flood a log.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::mem::{Discriminant, discriminant};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};
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

/// Slots in use, by address.
#[derive(Debug)]
pub struct AddressShares {
    most: usize,
    taken: BTreeMap<IpAddr, usize>,
}

impl AddressShares {
    /// No slots in use; an address may have `most`.
    pub fn new(most: usize) -> Self {
        AddressShares {
            most,
            taken: BTreeMap::new(),
        }
    }

    /// The limit per address.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Whether an address may have this many more slots.
    pub fn has_room(&self, address: IpAddr, places: usize) -> bool {
        let own = self.taken.get(&holder(address)).copied().unwrap_or(0);
        own + places <= self.most
    }

    /// Takes a slot for an address.
    pub fn take(&mut self, address: IpAddr) {
        *self.taken.entry(holder(address)).or_default() += 1;
    }

    /// Returns a slot.
    pub fn give_back(&mut self, address: IpAddr) {
        let address = holder(address);
        if let Some(own) = self.taken.get_mut(&address) {
            *own -= 1;
            if *own == 0 {
                self.taken.remove(&address);
            }
        }
    }

    /// Slots in use, over all addresses.
    pub fn taken(&self) -> usize {
        self.taken.values().sum()
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

    #[test]
    fn an_address_has_its_share_and_no_more_until_it_gives_some_back() {
        let [own, other] = [1, 2].map(|host| IpAddr::from([192, 0, 2, host]));
        let mut shares = AddressShares::new(14);
        assert_eq!(shares.most(), 14);
        for _ in 0..13 {
            shares.take(own);
        }
        assert!(shares.has_room(own, 1) && !shares.has_room(own, 2));
        shares.take(own);
        assert!(!shares.has_room(own, 1) && shares.has_room(other, 14));
        shares.take(other);
        shares.give_back(own);
        assert!(shares.has_room(own, 1));
        assert_eq!(shares.taken(), 14);
        (0..13).for_each(|_| shares.give_back(own));
        shares.give_back(other);
        assert!(shares.taken.is_empty());
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
