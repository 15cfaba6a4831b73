//! Whom a server serves: shares of its places by address, refusals, and how often refusals are told.
//!
//! However many places one address asks for, some are left to others; the addresses that one IPv6 host may choose share one
//! part. A connection for which there is no descriptor is closed at once by a spare one, so its client learns of it. A client
//! that is refused cannot fill a log.

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
    /// The server serves as many as it may.
    #[error("{in_use}: {peer} {rule}")]
    Full {
        /// Who came last; over TCP the kernel may not say.
        peer: Caller,
        /// What there is none left of.
        in_use: &'static str,
        /// What becomes of the client, and how there will be room.
        rule: &'static str,
    },
    /// One address has as many as it may have.
    #[error("{peer} is refused: it has {most} {what} already, and the rest is for others")]
    Share {
        /// Who came last.
        peer: Caller,
        /// As many as one address may have
        most: usize,
        /// of these.
        what: &'static str,
    },
    /// No descriptor.
    #[error("{peer} is refused: {source}; raise the limit on open files (ulimit -n)")]
    Descriptor {
        /// Who came last; over TCP the kernel does not say.
        peer: Caller,
        /// What the kernel said.
        source: io::Error,
    },
    /// No thread.
    #[error("{peer} is refused: no thread could be made ({source}); see the limit on processes")]
    Thread {
        /// Who came last.
        peer: Caller,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Who was refused, if that is known.
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

/// Bits of an IPv6 address that one host may choose as it likes.
const HOST_BITS_IPV6: u32 = 64;

/// The places that are taken, by address.
#[derive(Debug)]
pub struct AddressShares {
    most: usize,
    taken: BTreeMap<IpAddr, usize>,
}

impl AddressShares {
    /// No place is taken yet, and an address may have `most`.
    pub fn new(most: usize) -> Self {
        AddressShares {
            most,
            taken: BTreeMap::new(),
        }
    }

    /// As many as an address may have.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Whether an address may have so many places more.
    pub fn has_room(&self, address: IpAddr, places: usize) -> bool {
        let own = self.taken.get(&holder(address)).copied().unwrap_or(0);
        own + places <= self.most
    }

    /// An address takes a place.
    pub fn take(&mut self, address: IpAddr) {
        *self.taken.entry(holder(address)).or_default() += 1;
    }

    /// It gives one back.
    pub fn give_back(&mut self, address: IpAddr) {
        let address = holder(address);
        if let Some(own) = self.taken.get_mut(&address) {
            *own -= 1;
            if *own == 0 {
                self.taken.remove(&address);
            }
        }
    }

    /// How many places are taken, over all addresses.
    pub fn taken(&self) -> usize {
        self.taken.values().sum()
    }
}

/// Whose share an address belongs to.
fn holder(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> HOST_BITS_IPV6 << HOST_BITS_IPV6;
            Ipv6Addr::from(network).into()
        }
        address => address,
    }
}

/// Of each kind of refusal there is one line in this time.
const EVERY: Duration = Duration::from_secs(60);

/// The refusals that were told of.
#[derive(Debug, Default)]
pub struct Notices {
    told: Vec<(Discriminant<ClientRefusal>, Instant)>,
}

impl Notices {
    /// The refusal, unless one like it was told of lately.
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

/// Opened for no other reason than to be closed.
const NOTHING: &str = "/dev/null";

/// One descriptor, when there is one. A server makes it before it takes anyone.
#[derive(Debug)]
pub struct Spare(Mutex<Option<File>>);

impl Default for Spare {
    fn default() -> Self {
        Spare(Mutex::new(File::open(NOTHING).ok()))
    }
}

impl Spare {
    /// Closes the connection that is next in the queue. Takes some time when that is not possible either,
    /// so that its caller does not try again at once.
    pub fn turn_away(&self, listener: &TcpListener) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(spare.take());
        if listener.accept().is_err() {
            thread::sleep(LOOK_EVERY);
        }
        *spare = File::open(NOTHING).ok();
    }
}

/// Whether a descriptor or the memory behind it could not be had, which passes.
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
