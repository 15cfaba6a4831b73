//! Networks by address and prefix, to say whom a server may send datagrams to.

use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPrefix {
    address: IpAddr,
    prefix_bits: u8,
}

impl AddressPrefix {
    /// Whether an address lies in it. An IPv4 address that an IPv6 socket shows counts as the IPv4
    /// address it is.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let other_bits = network.to_bits() ^ address.to_bits();
                other_bits.leading_zeros() >= u32::from(self.prefix_bits)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let other_bits = network.to_bits() ^ address.to_bits();
                other_bits.leading_zeros() >= u32::from(self.prefix_bits)
            }
            _ => false,
        }
    }
}

impl FromStr for AddressPrefix {
    type Err = NetworkError;

    /// Reads `address` or `address/prefix`; an address alone is all of it.
    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let wrong = || NetworkError(text.to_owned());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let address = address.to_canonical();
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match prefix {
            None => bits,
            // Neither a sign nor an empty text is a number of bits.
            Some(prefix) if prefix.bytes().all(|byte| byte.is_ascii_digit()) => {
                prefix.parse().map_err(|_| wrong())?
            }
            Some(_) => return Err(wrong()),
        };
        if prefix_bits > bits {
            return Err(wrong());
        }
        Ok(AddressPrefix {
            address,
            prefix_bits,
        })
    }
}

/// Why a text is no network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "'{0}' is no network; write an address or address/prefix, such as 10.0.0.0/8 or 2001:db8::/32"
)]
pub struct NetworkError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_what_begins_with_its_prefix() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.1.2.3/31", "10.1.2.2", "10.1.2.4"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.2"),
            ("10.1.2.3", "::ffff:10.1.2.3", "::10.1.2.3"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::1", "::1", "::2"),
            ("::/0", "fe80::1", "10.0.0.1"),
        ] {
            let parsed: AddressPrefix = network.parse().unwrap();
            assert!(parsed.contains(inside.parse().unwrap()), "{network}");
            assert!(!parsed.contains(outside.parse().unwrap()), "{network}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in [
            "",
            "/",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "::/129",
            "10.0.0/8",
            "host",
            "10.0.0.0/8/8",
            "10.0.0.0/256",
        ] {
            let error = text.parse::<AddressPrefix>().unwrap_err();
            assert!(error.to_string().contains("such as 10.0.0.0/8"), "{text}");
        }
    }
}
