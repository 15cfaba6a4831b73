//! A frame as the XDP program hands it to the engine: one hop on, with the hardware addresses of its way, and with the
//! place of its exit where its type was. The packet itself says which type that is.
//!
//! What must hold: what the program did can be undone, since a frame whose exit has gone meanwhile is the kernel's.

use nicpoll_wire::frame::{ETHERNET_BYTES, Mac};

/// Where the type is in a frame, and the exit's place in its stead.
const TYPE_AT: usize = 12;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Where TTL and checksum are in IPv4's header, and the hop limit in IPv6's.
const TTL_AT: usize = ETHERNET_BYTES + 8;
const CHECKSUM_AT: usize = ETHERNET_BYTES + 10;
const HOP_LIMIT_AT: usize = ETHERNET_BYTES + 7;
/// The bytes of a frame that are looked at.
const HEAD_BYTES: usize = CHECKSUM_AT + 2;

/// The place of the exit, as the program wrote it. `None` when the frame is none of the program's.
pub(super) fn place(frame: &[u8]) -> Option<usize> {
    let head: &[u8; HEAD_BYTES] = frame.first_chunk()?;
    kind(head)?;
    let place = u16::from_ne_bytes([head[TYPE_AT], head[TYPE_AT + 1]]);
    Some(usize::from(place))
}

/// Writes a copy of the frame to the start of `memory` as it is to be sent. Returns its length; `None` when it does not
/// fit.
pub(super) fn write_to_send(frame: &[u8], memory: &mut [u8]) -> Option<usize> {
    let copy = memory.get_mut(..frame.len())?;
    copy.copy_from_slice(frame);
    let head: &mut [u8; HEAD_BYTES] = copy.first_chunk_mut()?;
    let kind = kind(head)?;
    head[TYPE_AT..ETHERNET_BYTES].copy_from_slice(&kind);
    Some(frame.len())
}

/// Writes a copy of the frame to the start of `memory` as it came, but for its addresses: it is for `to`. Returns its
/// length; `None` when it does not fit.
pub(super) fn write_as_it_came(frame: &[u8], to: Mac, memory: &mut [u8]) -> Option<usize> {
    let length = write_to_send(frame, memory)?;
    let head: &mut [u8; HEAD_BYTES] = memory.first_chunk_mut()?;
    head[..6].copy_from_slice(&to.0);
    if kind(head)? == IPV4 {
        head[TTL_AT] += 1;
        // RFC 1624, equation 3: the TTL is the high byte of its word, so the word is 0x0100 more, and its complement as
        // much less.
        let checksum = u16::from_be_bytes([head[CHECKSUM_AT], head[CHECKSUM_AT + 1]]);
        let (sum, borrow) = checksum.overflowing_sub(0x0100);
        let sum = sum - u16::from(borrow);
        head[CHECKSUM_AT..].copy_from_slice(&sum.to_be_bytes());
    } else {
        head[HOP_LIMIT_AT] += 1;
    }
    Some(length)
}

/// The type of the packet in a frame that the program has sent one hop on.
fn kind(head: &[u8; HEAD_BYTES]) -> Option<[u8; 2]> {
    // One with more hops than a byte holds was never one hop on.
    match head[ETHERNET_BYTES] >> 4 {
        4 if head[TTL_AT] < u8::MAX => Some(IPV4),
        6 if head[HOP_LIMIT_AT] < u8::MAX => Some(IPV6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use nicpoll_wire::frame::{Frame, Packet, Sum};
    use proptest::prelude::*;

    use super::*;

    const TO: Mac = Mac([2, 0, 0, 0, 0, 9]);

    /// A frame with a right checksum, and the same after one hop as the program makes it, with a place.
    fn before_and_after(mut header: [u8; 20], place: u16) -> (Vec<u8>, Vec<u8>) {
        (header[0], header[2], header[3]) = (0x45, 0, 20);
        (header[6], header[7], header[9]) = (0, 0, 253);
        header[8] = header[8].max(2);
        let with_checksum = |mut header: [u8; 20]| {
            header[10..12].fill(0);
            let checksum = Sum::default().bytes(&header).checksum();
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            header
        };
        let frame = |kind: [u8; 2], header| [&[7; 12][..], &kind, &with_checksum(header)].concat();
        let before = frame(IPV4, header);
        header[8] -= 1;
        (before, frame(place.to_ne_bytes(), header))
    }

    proptest! {
        #[test]
        fn a_frame_is_sent_with_its_type_or_given_back_as_it_came(header: [u8; 20], at in 0..64u16) {
            let (before, handed) = before_and_after(header, at);
            prop_assert_eq!(place(&handed), Some(usize::from(at)));
            let mut memory = [0; 100];
            let length = write_to_send(&handed, &mut memory).unwrap();
            prop_assert_eq!(&memory[..12], &handed[..12]);
            prop_assert_eq!(memory[12..14].to_vec(), IPV4);
            prop_assert_eq!(&memory[14..length], &handed[14..]);
            let length = write_as_it_came(&handed, TO, &mut memory).unwrap();
            prop_assert_eq!(&memory[..6], &TO.0);
            // Of the two zeros of one's complement either is right.
            prop_assert_eq!(&memory[12..CHECKSUM_AT], &before[12..CHECKSUM_AT]);
            prop_assert_eq!(&memory[CHECKSUM_AT + 2..length], &before[CHECKSUM_AT + 2..]);
            let Packet::Ip(ip) = Frame::parse(&memory[..length]).unwrap().packet else {
                return Err(TestCaseError::fail("it is no IP"));
            };
            prop_assert!(ip.checksums_hold());
        }

        #[test]
        fn any_bytes_are_taken_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let mut memory = [0; 100];
            let sent = write_to_send(&bytes, &mut memory);
            prop_assert_eq!(sent.is_some(), place(&bytes).is_some() && bytes.len() <= 100);
            prop_assert_eq!(write_as_it_came(&bytes, TO, &mut memory), sent);
        }
    }

    #[test]
    fn an_ipv6_packet_gets_its_hop_back() {
        let mut packet = [0; 40];
        (packet[0], packet[7]) = (0x60, 1);
        let handed = [&[7; 12][..], &3u16.to_ne_bytes(), &packet].concat();
        assert_eq!(place(&handed), Some(3));
        let mut memory = [0; 54];
        assert_eq!(write_as_it_came(&handed, TO, &mut memory), Some(54));
        assert_eq!((&memory[12..14], memory[HOP_LIMIT_AT]), (&IPV6[..], 2));
        assert_eq!(place(&handed[..20]), None);
    }
}
