//! What is built parses back, and damaged bytes never parse as something else.

use std::net::SocketAddr;

use proptest::prelude::*;

use super::*;

const SOURCE: Mac = Mac([2, 0, 0, 0, 0, 1]);
const DESTINATION: Mac = Mac([2, 0, 0, 0, 0, 2]);

fn path(source: &str, destination: &str) -> UdpPath {
    UdpPath {
        source_mac: SOURCE,
        destination_mac: DESTINATION,
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    }
}

fn paths() -> [UdpPath; 2] {
    [
        path("198.18.0.1:4000", "198.18.0.2:9"),
        path("[2001:2::1]:4000", "[2001:2::2]:9"),
    ]
}

#[test]
fn a_datagram_is_read_as_it_was_written() {
    for path in paths() {
        for payload in [&b""[..], b"odd", &[7; 1400]] {
            let mut memory = [0xaa; 1500];
            let length = path.write(payload, &mut memory).unwrap();
            assert_eq!(
                length,
                (path.header_bytes() + payload.len()).max(FRAME_BYTES_MIN)
            );
            let frame = Frame::parse(&memory[..length]).unwrap();
            assert_eq!((frame.source, frame.destination), (SOURCE, DESTINATION));
            assert_eq!(frame.vlan, None);
            let (ip, udp) = frame.udp().unwrap();
            assert_eq!(SocketAddr::new(ip.source, udp.source), path.source);
            assert_eq!(
                SocketAddr::new(ip.destination, udp.destination),
                path.destination
            );
            assert_eq!(udp.payload, payload);
            assert_eq!((ip.hop_limit, ip.protocol, ip.is_fragment), (64, 17, false));
            assert!(!ip.has_extensions && ip.checksums_hold());
            // Every byte of the packet is covered, except padding and the Ethernet header.
            let (flipped, end) = (14 + 8, path.header_bytes() + payload.len());
            for at in [flipped, end - 1] {
                memory[at] ^= 1;
                let damaged = Frame::parse(&memory[..length]).unwrap();
                assert!(
                    !damaged.udp().is_some_and(|(ip, _)| ip.checksums_hold()),
                    "{at}"
                );
                memory[at] ^= 1;
            }
        }
    }
}

#[test]
fn what_cannot_be_written_is_refused() {
    let [ipv4, ipv6] = paths();
    let mut memory = [0; 59];
    let no_room = FrameError::NoRoom {
        needed: 60,
        room: 59,
    };
    assert_eq!(ipv4.write(b"", &mut memory), Err(no_room));
    let mixed = UdpPath {
        destination: ipv6.destination,
        ..ipv4
    };
    assert_eq!(
        mixed.write(b"", &mut [0; 100]),
        Err(FrameError::MixedFamilies)
    );
    let short = UdpTemplate::new(&ipv6, &mut [0; 79]);
    assert_eq!(
        short,
        Err(FrameError::NoRoom {
            needed: 80,
            room: 79
        })
    );
    assert!(ipv4.write(&[0; 65_536], &mut [0; 70_000]).is_err());
    assert!(UdpTemplate::new(&ipv4, &mut [0; 70_000]).is_err());
}

#[test]
fn a_marked_template_is_a_datagram_of_its_port_with_a_checksum_that_holds() {
    let mark = Mark {
        sequence: 0x0123_4567_89ab_cdef,
        time_ns: u64::MAX - 5,
        flow: 0xfffe,
    };
    for path in paths() {
        for bytes in [path.header_bytes() + MARK_BYTES, 594, 1514] {
            let mut memory = [0; 1514];
            let template = UdpTemplate::new(&path, &mut memory[..bytes]).unwrap();
            for (port, mark) in [(0, Mark::default()), (65_535, mark), (1, mark)] {
                template.mark(port, mark, &mut memory[..bytes]);
                let frame = Frame::parse(&memory[..bytes]).unwrap();
                let (ip, udp) = frame.udp().unwrap();
                assert!(ip.checksums_hold(), "{bytes} {port}");
                assert_eq!((udp.source, udp.destination), (port, 9));
                assert_eq!(Mark::parse(udp.payload), Some(mark));
                assert_eq!(udp.payload.len(), bytes - path.header_bytes());
            }
        }
    }
    // The shortest Ethernet frame has room for a mark.
    assert_eq!(paths()[0].header_bytes() + MARK_BYTES, FRAME_BYTES_MIN);
}

#[test]
fn a_tag_is_read_and_other_packets_keep_their_type() {
    let mut memory = [0; 100];
    let length = paths()[0].write(b"tagged", &mut memory).unwrap();
    let tagged = [&memory[..12], &[0x81, 0, 0x20, 7], &memory[12..length]].concat();
    let frame = Frame::parse(&tagged).unwrap();
    assert_eq!(
        (frame.vlan, frame.udp().unwrap().1.payload),
        (Some(7), &b"tagged"[..])
    );
    memory[12..14].copy_from_slice(&[0x88, 0xcc]);
    assert_eq!(
        Frame::parse(&memory).unwrap().packet,
        FramePayload::Other(0x88cc)
    );
    assert_eq!(Frame::parse(&memory[..13]), Err(FrameError::Short));
    memory[12..14].copy_from_slice(&[0x08, 0]);
    assert_eq!(Frame::parse(&memory[..30]), Err(FrameError::Malformed));
}

#[test]
fn a_fragment_is_not_read_as_a_datagram() {
    let mut memory = [0; 100];
    let length = paths()[0].write(&[1; 40], &mut memory).unwrap();
    memory[20] = 0x20;
    let frame = Frame::parse(&memory[..length]).unwrap();
    let FramePayload::Ip(ip) = &frame.packet else {
        panic!("{frame:?}");
    };
    assert!(ip.is_fragment);
    assert_eq!(ip.transport, Transport::Other);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        tail in proptest::collection::vec(any::<u8>(), 0..120),
        ether_type in prop_oneof![Just(0x0800_u16), Just(0x86dd), Just(0x0806), Just(0x8100), any::<u16>()],
    ) {
        let bytes = [&[2; 12][..], &ether_type.to_be_bytes(), &tail].concat();
        if let Ok(frame) = Frame::parse(&bytes) {
            if let FramePayload::Ip(ip) = &frame.packet {
                ip.checksums_hold();
            }
            if let Some((_, udp)) = frame.udp() {
                prop_assert!(udp.payload.len() < bytes.len());
            }
        }
    }
}

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
}

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

const MARK: Mark = Mark {
    sequence: 0x0102_0304_0506_0708,
    time_ns: 0x1112_1314_1516_1718,
    flow: 0x2122,
};

#[test]
fn a_mark_begins_with_the_number_of_netblast() {
    let bytes = MARK.to_bytes();
    assert_eq!(bytes[..4], 0x0506_0708_u32.to_be_bytes());
    assert_eq!(Mark::parse(&bytes), Some(MARK));
    assert_eq!(Mark::parse(&bytes[..17]), None);
    assert_eq!(
        MARK.sum(Sum::default()).folded(),
        Sum::default().bytes(&bytes).folded()
    );
}

#[test]
fn a_time_that_cannot_be_is_none() {
    let sent = |time_ns| Mark { time_ns, ..MARK };
    assert_eq!(sent(1000).age_ns(1500), Some(500));
    assert_eq!(sent(1501).age_ns(1500), None);
    assert_eq!(sent(0).age_ns(1500), None);
    assert_eq!(sent(1).age_ns(AGE_NS_MAX + 2), None);
}
