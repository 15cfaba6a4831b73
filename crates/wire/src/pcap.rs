//! Classic pcap files: the recorded packets, and the UDP payloads in them.
//!
//! Any byte string may be parsed. Supports both byte orders and both resolutions (microseconds, and nanoseconds
//! with their own magic number); detects and refuses the newer format (pcapng). Times are nanoseconds since the
//! first packet, and never run backwards.
//!
//! Format: draft-ietf-opsawg-pcap, "PCAP Capture File Format"; link types are tcpdump's.

use etherparse::{LaxSlicedPacket, TransportSlice, UdpHeader};
use thiserror::Error;

const HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;
/// Microseconds, in the file's own byte order.
const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
/// The start of a pcapng file, in either byte order.
const PCAPNG_BLOCK: u32 = 0x0a0d_0d0a;
/// The longest packet accepted: libpcap's limit.
const CAPTURED_BYTES_MAX: u32 = 262_144;

const LINK_ETHERNET: u32 = 1;
const LINK_RAW_IP: u32 = 101;
const LINK_LINUX_COOKED: u32 = 113;

/// Length of Linux's cooked header; it ends with the packet type.
const COOKED_BYTES: usize = 16;

/// Why a file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PcapError {
    /// Not a capture.
    #[error("it is not a pcap file: it does not begin with the magic number")]
    NotPcap,
    /// The newer format.
    #[error(
        "it is a pcapng file; convert it to the classic format: editcap -F pcap NEW OLD, or tcpdump -r NEW -w OLD"
    )]
    Pcapng,
    /// The packets have an unsupported link type.
    #[error(
        "its packets are of link type {link_type}; Ethernet (1), raw IP (101) and Linux cooked (113) are supported"
    )]
    LinkType {
        /// tcpdump's number.
        link_type: u32,
    },
    /// A packet is impossibly long.
    #[error("packet {packet} claims {bytes} bytes; the file is damaged from there on")]
    TooLong {
        /// The packet's number, from 1.
        packet: u64,
        /// The length stated.
        bytes: u32,
    },
    /// The file ends within a packet.
    #[error("it ends within packet {packet}; the capture was cut off")]
    CutOff {
        /// The packet's number, from 1.
        packet: u64,
    },
}

/// The packets of a file.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Capture<'a> {
    records: &'a [u8],
    is_swapped: bool,
    fractions_a_second: u64,
    link_type: u32,
}

/// A recorded packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedPacket<'a> {
    /// Time since the first packet.
    pub time_ns: u64,
    /// The recorded bytes, starting with the link header.
    pub bytes: &'a [u8],
    /// Length on the wire.
    whole_bytes: u32,
    link_type: u32,
}

impl<'a> Capture<'a> {
    /// Parses the header of a file.
    ///
    /// # Errors
    /// When it is not a classic pcap file, or its link type is unsupported.
    /// ```
    /// use nicpoll_wire::pcap::Capture;
    ///
    /// let word = u32::to_le_bytes;
    /// // The magic, version 2.4, two unused words, 64 KiB a packet at most, Ethernet; then one packet.
    /// let file = [
    ///     word(0xa1b2_c3d4), word(0x0004_0002), word(0), word(0), word(65_536), word(1),
    ///     word(1_500), word(250), word(4), word(64), [1, 2, 3, 4],
    /// ]
    /// .concat();
    /// let packets = Capture::parse(&file)?.packets().collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(packets[0].bytes, [1, 2, 3, 4]);
    /// assert!(Capture::parse(b"no capture").is_err());
    /// # Ok::<(), nicpoll_wire::pcap::PcapError>(())
    /// ```
    pub fn parse(file: &'a [u8]) -> Result<Self, PcapError> {
        let magic = word(file, 0, false).ok_or(PcapError::NotPcap)?;
        if magic == PCAPNG_BLOCK {
            return Err(PcapError::Pcapng);
        }
        let orders = [(magic, false), (magic.swap_bytes(), true)];
        let kinds = [
            (MAGIC_MICROSECONDS, 1_000_000),
            (MAGIC_NANOSECONDS, 1_000_000_000),
        ];
        let found = orders.iter().find_map(|(magic, is_swapped)| {
            let kind = kinds.iter().find(|(known, _)| known == magic)?;
            Some((*is_swapped, kind.1))
        });
        let (is_swapped, fractions_a_second) = found.ok_or(PcapError::NotPcap)?;
        // The upper bits say whether frames include their FCS.
        let link_type = word(file, 20, is_swapped).ok_or(PcapError::NotPcap)? & 0x0fff_ffff;
        if ![LINK_ETHERNET, LINK_RAW_IP, LINK_LINUX_COOKED].contains(&link_type) {
            return Err(PcapError::LinkType { link_type });
        }
        Ok(Capture {
            records: &file[HEADER_BYTES..],
            is_swapped,
            fractions_a_second,
            link_type,
        })
    }

    /// The packets, in file order. An error ends the iteration.
    pub fn packets(self) -> impl Iterator<Item = Result<RecordedPacket<'a>, PcapError>> {
        let mut rest = self.records;
        let mut number = 0;
        let mut first = None;
        let mut latest = 0;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            number += 1;
            match self.packet(rest, number) {
                Ok((at_ns, bytes, whole_bytes)) => {
                    rest = &rest[RECORD_HEADER_BYTES + bytes.len()..];
                    let since_first = at_ns.saturating_sub(*first.get_or_insert(at_ns));
                    latest = since_first.max(latest);
                    Some(Ok(RecordedPacket {
                        time_ns: latest,
                        bytes,
                        whole_bytes,
                        link_type: self.link_type,
                    }))
                }
                Err(error) => {
                    rest = &[];
                    Some(Err(error))
                }
            }
        })
    }

    /// The time, the recorded bytes and the wire length of the first packet in `rest`.
    fn packet(self, rest: &'a [u8], packet: u64) -> Result<(u64, &'a [u8], u32), PcapError> {
        let cut_off = PcapError::CutOff { packet };
        let field = |at| word(rest, at, self.is_swapped).ok_or(cut_off);
        let (seconds, fraction, bytes) = (field(0)?, field(4)?, field(8)?);
        let whole_bytes = field(12)?;
        if bytes > CAPTURED_BYTES_MAX {
            return Err(PcapError::TooLong { packet, bytes });
        }
        let end = RECORD_HEADER_BYTES + bytes as usize;
        let recorded = rest.get(RECORD_HEADER_BYTES..end).ok_or(cut_off)?;
        let fraction_ns = u64::from(fraction) * (1_000_000_000 / self.fractions_a_second);
        let at_ns = u64::from(seconds) * 1_000_000_000 + fraction_ns;
        Ok((at_ns, recorded, whole_bytes))
    }
}

impl RecordedPacket<'_> {
    /// Whether it begins with an Ethernet header.
    pub fn is_ethernet(&self) -> bool {
        self.link_type == LINK_ETHERNET
    }

    /// Whether only its start was recorded.
    pub fn is_cut_off(&self) -> bool {
        (self.bytes.len() as u64) < u64::from(self.whole_bytes)
    }

    /// UDP payload length by the UDP header; the recording may be shorter. `None` for other protocols and for
    /// fragments.
    pub fn udp_payload_bytes(&self) -> Option<u16> {
        let packet = match self.link_type {
            LINK_RAW_IP => LaxSlicedPacket::from_ip(self.bytes).ok()?,
            LINK_LINUX_COOKED => {
                let (head, packet) = self.bytes.split_at_checked(COOKED_BYTES)?;
                let (_, ether_type) = head.split_last_chunk()?;
                LaxSlicedPacket::from_ether_type(u16::from_be_bytes(*ether_type).into(), packet)
            }
            _ => LaxSlicedPacket::from_ethernet(self.bytes).ok()?,
        };
        match packet.transport? {
            TransportSlice::Udp(udp) => udp.length().checked_sub(UdpHeader::LEN_U16),
            _ => None,
        }
    }
}

fn word(bytes: &[u8], at: usize, is_swapped: bool) -> Option<u32> {
    let four: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    let number = u32::from_le_bytes(four);
    Some(match is_swapped {
        true => number.swap_bytes(),
        false => number,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame with a UDP datagram over IPv4, optionally with a VLAN tag.
    fn frame(payload_bytes: u16, is_tagged: bool) -> Vec<u8> {
        let mut frame = vec![2; 12];
        if is_tagged {
            frame.extend([0x81, 0, 0, 7]);
        }
        frame.extend([0x08, 0, 0x45, 0]);
        frame.extend((28 + payload_bytes).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
        frame.extend([0, 9, 0, 9]);
        frame.extend((8 + payload_bytes).to_be_bytes());
        frame.extend([0, 0]);
        frame
    }

    fn file(magic: u32, is_big_endian: bool, packets: &[(u32, u32, Vec<u8>)]) -> Vec<u8> {
        let bytes = |number: u32| match is_big_endian {
            true => number.to_be_bytes(),
            false => number.to_le_bytes(),
        };
        let mut file: Vec<u8> = [magic, 0x0004_0002, 0, 0, 65_535, 1]
            .into_iter()
            .flat_map(bytes)
            .collect();
        for (seconds, fraction, frame) in packets {
            let length = frame.len() as u32;
            file.extend(
                [*seconds, *fraction, length, length]
                    .into_iter()
                    .flat_map(bytes),
            );
            file.extend(frame);
        }
        file
    }

    #[test]
    fn both_orders_and_both_resolutions_are_read() {
        for (magic, fraction_ns) in [(MAGIC_MICROSECONDS, 1000), (MAGIC_NANOSECONDS, 1)] {
            for is_big_endian in [false, true] {
                let packets = [(7, 5, frame(64, false)), (8, 6, frame(200, true))];
                let file = file(magic, is_big_endian, &packets);
                let read: Vec<_> = Capture::parse(&file).unwrap().packets().collect();
                let [Ok(first), Ok(second)] = read[..] else {
                    panic!("{read:?}");
                };
                assert_eq!((first.time_ns, first.udp_payload_bytes()), (0, Some(64)));
                assert_eq!(second.time_ns, 1_000_000_000 + fraction_ns);
                assert_eq!(second.udp_payload_bytes(), Some(200));
                assert!(first.is_ethernet() && !first.is_cut_off());
            }
        }
    }

    #[test]
    fn what_is_no_classic_capture_says_what_it_is() {
        let refused = |file: &[u8]| Capture::parse(file).map(|_| ()).unwrap_err();
        assert_eq!(refused(b""), PcapError::NotPcap);
        assert_eq!(refused(&[0x0a, 0x0d, 0x0d, 0x0a, 0]), PcapError::Pcapng);
        let mut wireless = file(MAGIC_MICROSECONDS, false, &[]);
        wireless[20] = 105;
        assert_eq!(refused(&wireless), PcapError::LinkType { link_type: 105 });
        let whole = file(MAGIC_MICROSECONDS, false, &[(0, 0, frame(9, false))]);
        let cut = Capture::parse(&whole[..whole.len() - 1]).unwrap();
        let last = cut.packets().last().unwrap();
        assert_eq!(last.unwrap_err(), PcapError::CutOff { packet: 1 });
        let mut long = whole;
        long[34] = 0xff;
        let last = Capture::parse(&long).unwrap().packets().last().unwrap();
        assert!(
            matches!(last, Err(PcapError::TooLong { packet: 1, .. })),
            "{last:?}"
        );
    }

    #[test]
    fn a_packet_that_was_longer_on_the_wire_is_cut_off() {
        let mut file = file(MAGIC_MICROSECONDS, false, &[(0, 0, frame(9, false))]);
        // The low byte of the wire length.
        file[24 + 12] += 1;
        let packet = Capture::parse(&file).unwrap().packets().next().unwrap();
        assert!(packet.unwrap().is_cut_off());
    }

    #[test]
    fn what_is_not_a_whole_datagram_has_no_payload() {
        let mut fragment = frame(64, false);
        fragment[20] = 0x20;
        let mut tcp = frame(64, false);
        tcp[23] = 6;
        let file = file(MAGIC_NANOSECONDS, false, &[(0, 9, fragment), (0, 1, tcp)]);
        let packets: Vec<_> = Capture::parse(&file).unwrap().packets().collect();
        assert_eq!(packets.len(), 2);
        for packet in packets {
            // The second one's time is before the first one's.
            assert_eq!(packet.unwrap().time_ns, 0);
            assert_eq!(packet.unwrap().udp_payload_bytes(), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            tail in proptest::collection::vec(any::<u8>(), 0..200),
            magic in prop_oneof![Just(MAGIC_MICROSECONDS), Just(MAGIC_NANOSECONDS), any::<u32>()],
        ) {
            let bytes = [&magic.to_le_bytes()[..], &tail].concat();
            if let Ok(capture) = Capture::parse(&bytes) {
                let mut earlier = 0;
                for packet in capture.packets().flatten() {
                    packet.udp_payload_bytes();
                    prop_assert!(packet.time_ns >= earlier);
                    earlier = packet.time_ns;
                }
            }
        }
    }
}
