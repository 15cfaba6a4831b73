//! How many of a server's places each address has.
//!
//! What must hold: however many one address asks for, it leaves some to others. The addresses that one host of IPv6
//! may choose as it likes have one share together.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

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

    /// All places that are taken.
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
}
