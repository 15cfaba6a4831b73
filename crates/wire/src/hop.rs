//! What a router reads of a packet, and what it changes when it sends it on.
//!
//! What must hold: a packet that is sent on differs in its TTL or hop limit, which is one less, in IPv4's checksum,
//! which is right again if it was before, and in the frame's addresses. Nothing else is touched, and what is no packet
//! to send on is left as it is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::frame::{ETHERNET_BYTES, Mac};

const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Bytes of the headers without options.
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
/// Where TTL and checksum are in IPv4's header, and the hop limit in IPv6's.
const TTL_AT: usize = ETHERNET_BYTES + 8;
const CHECKSUM_AT: usize = ETHERNET_BYTES + 10;
const HOP_LIMIT_AT: usize = ETHERNET_BYTES + 7;

/// What a router looks for a route by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// From whom.
    pub source: IpAddr,
    /// To whom.
    pub destination: IpAddr,
    /// Bytes of the packet, from its IP header on.
    pub packet_bytes: usize,
}

/// What a frame is to be routed by: an IPv4 packet without options or an IPv6 packet, whole, that may go further.
pub fn routed_by(frame: &[u8]) -> Option<Route> {
    let kind = frame.get(12..ETHERNET_BYTES)?;
    let packet = &frame[ETHERNET_BYTES..];
    if kind == IPV4 {
        let header: &[u8; IPV4_BYTES] = packet.first_chunk()?;
        let packet_bytes = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let is_right = header[0] == 0x45 && packet_bytes >= IPV4_BYTES && header[8] > 1;
        let [source, destination] = [12, 16].map(|at| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            IpAddr::V4(Ipv4Addr::from(bytes))
        });
        return (is_right && packet_bytes <= packet.len()).then_some(Route {
            source,
            destination,
            packet_bytes,
        });
    }
    if kind != IPV6 {
        return None;
    }
    let header: &[u8; IPV6_BYTES] = packet.first_chunk()?;
    let packet_bytes = IPV6_BYTES + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let is_right = header[0] >> 4 == 6 && header[7] > 1;
    let [source, destination] = [8, 24].map(|at| {
        let bytes: [u8; 16] = std::array::from_fn(|index| header[at + index]);
        IpAddr::V6(Ipv6Addr::from(bytes))
    });
    (is_right && packet_bytes <= packet.len()).then_some(Route {
        source,
        destination,
        packet_bytes,
    })
}

/// Sends a frame on that is [routed](routed_by): one hop less, and from one hardware address to the next. Returns
/// whether it was one.
pub fn send_on(frame: &mut [u8], from: Mac, to: Mac) -> bool {
    match routed_by(frame).map(|route| route.destination) {
        None => return false,
        Some(IpAddr::V4(_)) => {
            frame[TTL_AT] -= 1;
            // RFC 1624, equation 3: the TTL is the high byte of its word, so the word is 0x0100 less, and its
            // complement as much more.
            let checksum = u16::from_be_bytes([frame[CHECKSUM_AT], frame[CHECKSUM_AT + 1]]);
            let (sum, carry) = checksum.overflowing_add(0x0100);
            let sum = sum + u16::from(carry);
            // Of the two zeros of one's complement, a header's checksum never is this one: the sum is not zero.
            let checksum = if sum == 0xffff { 0 } else { sum };
            frame[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
        }
        Some(IpAddr::V6(_)) => frame[HOP_LIMIT_AT] -= 1,
    }
    frame[..6].copy_from_slice(&to.0);
    frame[6..12].copy_from_slice(&from.0);
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::Sum;

    const FROM: Mac = Mac([2, 0, 0, 0, 0, 3]);
    const TO: Mac = Mac([2, 0, 0, 0, 0, 4]);

    fn header_sum(frame: &[u8]) -> Sum {
        Sum::default().bytes(&frame[ETHERNET_BYTES..ETHERNET_BYTES + IPV4_BYTES])
    }

    fn ipv4(header: [u8; IPV4_BYTES], payload: &[u8]) -> Vec<u8> {
        let mut frame = [&[9; 12][..], &IPV4, &header, payload].concat();
        frame[ETHERNET_BYTES] = 0x45;
        let bytes = (IPV4_BYTES + payload.len()) as u16;
        frame[ETHERNET_BYTES + 2..ETHERNET_BYTES + 4].copy_from_slice(&bytes.to_be_bytes());
        frame[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
        let checksum = header_sum(&frame).checksum();
        frame[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
        frame
    }

    proptest! {
        #[test]
        fn a_packet_that_is_sent_on_has_the_checksum_that_a_full_sum_gives(
            header: [u8; IPV4_BYTES],
            payload in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let before = ipv4(header, &payload);
            let mut after = before.clone();
            let may_go_on = before[TTL_AT] > 1;
            prop_assert_eq!(send_on(&mut after, FROM, TO), may_go_on);
            if !may_go_on {
                prop_assert_eq!(before, after);
                return Ok(());
            }
            let mut expected = before.clone();
            expected[TTL_AT] -= 1;
            expected[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
            let checksum = header_sum(&expected).checksum();
            expected[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
            expected[..6].copy_from_slice(&TO.0);
            expected[6..12].copy_from_slice(&FROM.0);
            prop_assert_eq!(after, expected);
        }

        #[test]
        fn any_bytes_are_sent_on_or_left_as_they_are(
            mut bytes in prop::collection::vec(any::<u8>(), 0..120),
            kind in 0..3,
        ) {
            for (at, byte) in [IPV4, IPV6, [8, 6]][kind as usize].into_iter().enumerate() {
                if let Some(place) = bytes.get_mut(12 + at) {
                    *place = byte;
                }
            }
            let before = bytes.clone();
            if !send_on(&mut bytes, FROM, TO) {
                prop_assert_eq!(before, bytes);
            } else {
                let changed = before.iter().zip(&bytes).filter(|(a, b)| a != b);
                prop_assert!(changed.count() <= 15);
            }
        }
    }

    #[test]
    fn an_ipv6_packet_loses_one_hop_and_nothing_else() {
        let mut packet = [0; IPV6_BYTES];
        (packet[0], packet[5], packet[7]) = (0x60, 4, 2);
        packet[8..24].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
        let mut frame = [&[9; 12][..], &IPV6, &packet, &[1, 2, 3, 4], &[0; 2]].concat();
        let route = routed_by(&frame).unwrap();
        assert_eq!(route.packet_bytes, 44);
        assert_eq!(route.source, IpAddr::V6(Ipv6Addr::LOCALHOST));
        let before = frame.clone();
        assert!(send_on(&mut frame, FROM, TO));
        assert_eq!(frame[HOP_LIMIT_AT], 1);
        assert_eq!(frame[HOP_LIMIT_AT + 1..], before[HOP_LIMIT_AT + 1..]);
        // It has used up its hops now.
        assert!(!send_on(&mut frame, FROM, TO));
        // Cut off.
        assert_eq!(routed_by(&before[..57]), None);
    }
}
