//! Hardware addresses.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A hardware address of Ethernet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mac(pub [u8; 6]);

/// Text is no hardware address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("six bytes in hexadecimal were expected, such as 02:00:00:00:00:01")]
pub struct MacError;

impl Mac {
    /// To everybody on the link.
    pub const BROADCAST: Mac = Mac([0xff; 6]);

    /// Whether it names a group of receivers.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for Mac {
    type Err = MacError;

    fn from_str(text: &str) -> Result<Self, MacError> {
        let mut parts = text.split([':', '-']);
        let mut address = [0; 6];
        for byte in &mut address {
            let part = parts.next().ok_or(MacError)?;
            let is_hexadecimal = part.bytes().all(|digit| digit.is_ascii_hexdigit());
            let fits = (1..=2).contains(&part.len());
            *byte = u8::from_str_radix(part, 16)
                .ok()
                .filter(|_| is_hexadecimal && fits)
                .ok_or(MacError)?;
        }
        parts
            .next()
            .is_none()
            .then_some(Mac(address))
            .ok_or(MacError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_address_are_the_same() {
        let mac = Mac([2, 0x6e, 0x70, 0, 0xff, 1]);
        assert_eq!(mac.to_string(), "02:6e:70:00:ff:01");
        for text in ["02:6e:70:00:ff:01", "2:6E:70:0:FF:1", "02-6e-70-00-ff-01"] {
            assert_eq!(text.parse(), Ok(mac), "{text}");
        }
        for text in [
            "",
            "02:6e:70:00:ff",
            "02:6e:70:00:ff:01:02",
            "02:6e:70:00:ff:+1",
            "002:6e:70:00:ff:1",
        ] {
            assert_eq!(text.parse::<Mac>(), Err(MacError), "{text}");
        }
        assert!(Mac::BROADCAST.is_multicast() && !mac.is_multicast());
    }
}
