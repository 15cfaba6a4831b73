//! The checksum of the Internet protocols (RFC 1071), part by part.
//!
//! What must hold: the order of the parts does not matter, as long as each begins at an even offset of what is summed.
//! So what never changes of a frame is summed once, and what changes is added for each frame.

use std::net::IpAddr;

/// A sum of 16-bit words in one's complement, not yet folded. It has room for 2^48 words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// The pseudo header of UDP and ICMPv6 (RFC 768, RFC 8200 section 8.1). The addresses are of one family.
    pub fn of_pseudo_header(
        source: IpAddr,
        destination: IpAddr,
        protocol: u8,
        payload_bytes: u32,
    ) -> Self {
        [source, destination]
            .into_iter()
            .fold(Sum::default(), |sum, address| match address {
                IpAddr::V4(address) => sum.bytes(&address.octets()),
                IpAddr::V6(address) => sum.bytes(&address.octets()),
            })
            .word(u32::from(protocol))
            .word(payload_bytes)
    }

    /// Adds bytes; an odd last one is padded with a zero.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        let (pairs, last) = bytes.as_chunks::<2>();
        for pair in pairs {
            self.0 += u64::from(u16::from_be_bytes(*pair));
        }
        for byte in last {
            self.0 += u64::from(*byte) << 8;
        }
        self
    }

    /// Adds a number of 32 bits, as it stands in a packet.
    #[must_use]
    pub fn word(self, word: u32) -> Self {
        Sum(self.0 + u64::from(word >> 16) + u64::from(word & 0xffff))
    }

    /// Adds a number of 64 bits.
    #[must_use]
    pub fn long(self, long: u64) -> Self {
        self.word((long >> 32) as u32).word(long as u32)
    }

    /// The checksum over all that was added.
    pub fn checksum(self) -> u16 {
        !self.folded()
    }

    /// The same for UDP, where 0 says that there is none.
    pub fn udp_checksum(self) -> u16 {
        match self.checksum() {
            0 => 0xffff,
            checksum => checksum,
        }
    }

    /// Whether what was added contains its own checksum, and that holds.
    pub fn is_whole(self) -> bool {
        self.folded() == 0xffff
    }

    /// The sum in 16 bits.
    pub fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071, section 3.
    #[test]
    fn the_example_of_the_standard_is_summed() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::default().bytes(&bytes).folded(), 0xddf2);
        assert_eq!(Sum::default().long(0x0001_f203_f4f5_f6f7).folded(), 0xddf2);
        assert_eq!(Sum::default().bytes(&bytes).checksum(), !0xddf2);
        let odd = Sum::default().bytes(&[1, 2, 3]);
        assert_eq!(odd, Sum::default().bytes(&[1, 2, 3, 0]));
    }

    #[test]
    fn no_udp_checksum_is_zero() {
        let all = Sum::default().word(0xffff);
        assert_eq!((all.checksum(), all.udp_checksum()), (0, 0xffff));
        assert!(all.is_whole());
    }
}
