//! Bytes that iperf 2 sent: how they parse here, and that this crate writes the same. From iperf 2.1.8 unless
//! stated otherwise.

use std::fmt::Write as _;
use std::time::Duration;

use nicpoll_iperf::Amount;
use nicpoll_iperf::wire::{
    ClientHeader, DatagramHeader, Dialect, Directions, HeaderAck, PAYLOAD_BYTES_MIN, RawDatagram,
    Reply, ServerReport, Version, fill_payload, header_length, is_acknowledged, prepare_payload,
};
use nicpoll_testkit::{golden, hex};

/// The captures: kind and source, then the bytes and their meaning.
const CAPTURED: &str = include_str!("wire_golden/captured.txt");

/// All captures by name, without the meaning.
fn captures() -> impl Iterator<Item = (&'static str, &'static str)> {
    let parts = CAPTURED.split("$ ").skip(1);
    parts.map(|part| {
        let mut lines = part.lines();
        (lines.next().unwrap(), lines.next().unwrap())
    })
}

/// The bytes of a capture.
fn captured(name: &str) -> Vec<u8> {
    let found = captures().find(|(known, _)| *known == name);
    hex(found.expect(name).1)
}

fn meaning_of_header(header: &ClientHeader) -> String {
    let directions = header.directions();
    let service = header.type_of_service();
    let is_acknowledged = is_acknowledged(header);
    format!("{header:?}\n{directions:?}, service {service:?}, acknowledged {is_acknowledged}")
}

fn meaning(kind: &str, bytes: &[u8]) -> String {
    match kind {
        "tcp" => match ClientHeader::parse_tcp(bytes) {
            Ok(None) => String::from("no header"),
            Ok(Some(header)) => meaning_of_header(&header),
            Err(error) => error.to_string(),
        },
        "udp" => {
            let dialect = RawDatagram::parse(bytes).map(|raw| Dialect::of_client(&raw));
            let header = ClientHeader::parse_udp(bytes);
            let header =
                header.map_or_else(|| String::from("no header"), |it| meaning_of_header(&it));
            let id = DatagramHeader::parse(bytes);
            format!("{dialect:?}, {id:?}\n{header}")
        }
        _ => {
            let report = |server| ServerReport::parse(bytes, server);
            let [old, new] = [Dialect::V2_0_10, Dialect::V2_1].map(report);
            assert_eq!(old, new);
            format!("{new:?}, {:?}", HeaderAck::parse(bytes))
        }
    }
}

#[test]
fn what_was_captured_means_what_is_recorded() {
    let mut text = String::new();
    for (name, digits) in captures() {
        let (kind, _) = name.split_once(' ').unwrap();
        let meaning = meaning(kind, &hex(digits));
        writeln!(text, "$ {name}\n{digits}\n{meaning}").unwrap();
    }
    golden("tests/wire_golden/captured.txt", &text);
}

fn seconds(seconds: u64) -> Amount {
    Amount::Time(Duration::from_secs(seconds))
}

fn dual(port: u16, is_at_once: bool) -> Directions {
    Directions::Dual { port, is_at_once }
}

/// Name, amount, directions, and rate in bits.
type Asked = (&'static str, Amount, Directions, u64);

#[test]
fn tcp_headers_are_byte_for_byte_those_of_the_original() {
    let asked: [Asked; 5] = [
        ("-n 256K", Amount::Bytes(262_144), Directions::Forward, 0),
        ("-d -t 2 -b 10m", seconds(2), dual(5001, true), 10_000_000),
        ("-r -b 10m", seconds(1), dual(5001, false), 10_000_000),
        ("-R -n 256K", Amount::Bytes(262_144), Directions::Reverse, 0),
        (
            "--full-duplex -b 10m",
            seconds(1),
            Directions::FullDuplex,
            10_000_000,
        ),
    ];
    for (args, amount, directions, rate_bps) in asked {
        let captured = captured(&format!("tcp {args}"));
        let mut header = ClientHeader::for_tcp(5001, amount);
        header.ask_for(directions);
        header.extension.as_mut().unwrap().rate_bps = rate_bps;
        let mut built = [0xff; ClientHeader::BYTES + 1];
        let length = header.write_to(&mut built);
        assert_eq!(built[..length], captured, "{args}");
        assert!(built[length..].iter().all(|byte| *byte == 0xff), "{args}");
        assert_eq!(ClientHeader::parse_tcp(&captured), Ok(Some(header)));
        let cut = ClientHeader::parse_tcp(&captured[..length - 1]).unwrap_err();
        let words = format!("needs {length} bytes and {} are there", length - 1);
        assert!(cut.to_string().contains(&words), "{cut}");
    }
}

#[test]
fn udp_headers_are_those_of_the_original() {
    for (directions, flags, upper_flags, port) in [
        (Directions::Forward, "48010098", "0000", "00001389"),
        (dual(6001, true), "c8010099", "0000", "00001771"),
        (dual(5001, false), "c8010098", "0000", "00001389"),
        (Directions::Reverse, "6c010098", "0400", "00001389"),
        (Directions::FullDuplex, "6c010098", "0808", "00001389"),
    ] {
        let mut header = ClientHeader::for_udp(5001, seconds(1), 1 << 20);
        header.ask_for(directions);
        let mut payload = [0xff; 1470];
        prepare_payload(&mut payload, &header);
        for (at, digits) in [(16, flags), (24, port), (48, upper_flags)] {
            let bytes = hex(digits);
            assert_eq!(payload[at..at + bytes.len()], bytes, "{directions:?}");
        }
        let parsed = ClientHeader::parse_udp(&payload).unwrap();
        assert_eq!((parsed, parsed.directions()), (header, Ok(directions)));
    }
    // 2.0.8 has its rate after the first part.
    let mut written = [0xff; 64];
    let header = ClientHeader::for_udp_v2_0_8(5001, seconds(1), 1 << 20);
    let bytes = header.write_to(&mut written);
    let expected = "00000000 00000001 00001389 00000000 00000000 ffffff9c 00100000";
    assert_eq!(written[..bytes], hex(expected));
    ClientHeader::for_udp_v2_0_8(5001, seconds(1), 1 << 40).write_to(&mut written);
    assert_eq!(written[24..28], [0xff; 4]);
}

#[test]
fn rates_beyond_32_bits_are_written_and_read_whole() {
    let mut header = ClientHeader::for_tcp(5001, seconds(1));
    header.extension.as_mut().unwrap().rate_bps = 0x12_3456_789a_bcde;
    let mut written = [0; ClientHeader::BYTES];
    header.write_to(&mut written);
    assert_eq!(written[48..56], hex("789abcde 12345600"));
    assert_eq!(ClientHeader::parse_tcp(&written), Ok(Some(header)));
}

#[test]
fn tcp_header_lengths_follow_the_flags() {
    for (flags, length) in [
        (0u32, 0),
        (0x4001_0078, 60),
        (0x8000_0001, 24),
        (0x4000_0000, 60),
        (0x0400_0000, 60),
        (0x4001_01fe, 255),
    ] {
        assert_eq!(header_length(flags.to_be_bytes()), Ok(length), "{flags:x}");
    }
    let too_short = header_length(0x4001_002e_u32.to_be_bytes()).unwrap_err();
    assert!(too_short.to_string().contains("a length of 23 bytes"));
}

#[test]
fn header_acknowledgement_is_that_of_the_original() {
    let captured = captured("reply to a header");
    let ack = HeaderAck {
        version: Version::V2_1_8,
    };
    assert_eq!(ack.to_bytes()[..], captured);
    for (length, stated, is_whole) in [(28, 28, true), (27, 28, false), (24, 24, true)] {
        let mut message = captured[..length].to_vec();
        message[7] = stated;
        assert_eq!(HeaderAck::parse(&message).is_some(), is_whole, "{length}");
    }
    let mut with_times = captured;
    with_times[7] = 52;
    assert_eq!(HeaderAck::parse(&with_times), None);
    with_times.resize(52, 1);
    assert_eq!(HeaderAck::parse(&with_times), Some(ack));
}

/// The first datagram of `-u -t 1`, 1470 bytes of payload.
fn first_datagram() -> Vec<u8> {
    let mut captured = captured("udp -t 1");
    captured.resize(160, 0);
    captured.extend((160..1470).map(|offset| b'0' + (offset % 10) as u8));
    captured
}

fn prepared(length: usize) -> Vec<u8> {
    let mut payload = vec![0xff; length];
    prepare_payload(
        &mut payload,
        &ClientHeader::for_udp(5001, seconds(1), 1 << 20),
    );
    payload
}

#[test]
fn datagrams_are_byte_for_byte_those_of_the_original() {
    let header = DatagramHeader::at(1, Duration::new(0x6b00_ba6e, 0x0005_e70d * 1000));
    // Short ones carry the start of the headers.
    for length in [1470, PAYLOAD_BYTES_MIN, 64, 75, 159, 160, 161] {
        let mut built = prepared(length);
        header.write_to(&mut built);
        assert_eq!(built, first_datagram()[..length], "{length} bytes");
    }
    // 0x6b00ba6e seconds and 0x5e70d microseconds.
    assert_eq!(header.sent_ns(), 1_795_209_838_386_829_000);

    let mut huge = first_datagram();
    huge[12..16].copy_from_slice(b"1234");
    assert_eq!(DatagramHeader::parse(&huge), None);
    assert_eq!(DatagramHeader::parse(&huge[..11]), None);
}

fn report_of_ack_fin() -> ServerReport {
    ServerReport {
        bytes: 136_710,
        elapsed: Duration::from_micros(1_020_626),
        lost: 0,
        out_of_order: 0,
        datagrams: 93,
        jitter: Duration::from_micros(1),
    }
}

#[test]
fn report_is_that_of_the_original_but_for_the_transit_times() {
    let mut captured = captured("reply to a FIN");
    assert_eq!(captured.len(), ServerReport::BYTES);
    captured[56..116].fill(0);
    assert_eq!(report_of_ack_fin().to_bytes()[..], captured);
}

#[test]
fn replies_are_told_apart() {
    let mut sent = prepared(1470);
    sent[..16].copy_from_slice(&hex("ffffffa3 6b00ba6f 000637e7 ffffffff"));
    let report = Reply::Report(report_of_ack_fin());
    let ack_fin = captured("reply to a FIN");
    // 2.0.13 leaves the FIN's header, id2 = ffffffff, before its report.
    let later = [&sent[..16], &ack_fin[16..]].concat();
    let header_ack = captured("reply to a header, of 2.0.13");
    let version = HeaderAck::parse(&header_ack).unwrap().version;
    for (reply, told) in [
        (&ack_fin[..], report),
        (&later, report),
        (&sent[..128], Reply::Echo),
        (&header_ack, Reply::HeaderAck(version)),
        (&[], Reply::BareAck),
        (&[0; 128], Reply::BareAck),
    ] {
        let classified = nicpoll_iperf::wire::classify(reply, &sent, Dialect::V2_1);
        assert_eq!(classified, told);
    }
}

#[test]
fn filler_counts_digits_from_the_beginning_of_the_buffer() {
    let mut payload = [0; 23];
    fill_payload(&mut payload);
    assert_eq!(&payload, b"01234567890123456789012");
}

#[test]
fn durations_become_ticks_of_ten_milliseconds() {
    let told = |time| {
        let mut bytes = [0; ClientHeader::BYTES];
        let length = ClientHeader::for_tcp(1, Amount::Time(time)).write_to(&mut bytes);
        let header = ClientHeader::parse_tcp(&bytes[..length]).unwrap().unwrap();
        header.amount
    };
    let ms = Duration::from_millis;
    // The word of one more tick could not be negated by its reader.
    let longest = i32::MAX as u64;
    for (time, ticks) in [
        (ms(0), 1),
        (ms(1), 1),
        (ms(10), 1),
        (ms(11), 2),
        (ms(10_000), 1000),
        (Duration::MAX, longest),
    ] {
        assert_eq!(told(time), Amount::Time(ms(10 * ticks)), "{time:?}");
    }
}
