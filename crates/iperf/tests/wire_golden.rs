//! Bytes that iperf 2 sent, and what they mean here. Captured from iperf 2.1.8 unless said otherwise.

use std::time::Duration;

use nicpoll_iperf::Amount;
use nicpoll_iperf::wire::{
    ClientHeader, DatagramHeader, Dialect, Directions, ServerReport, Version, fill_payload,
};
use nicpoll_iperf::wire::{HeaderAck, header_length, is_acknowledged};
use nicpoll_iperf::wire::{PAYLOAD_BYTES_MIN, Reply};
use nicpoll_iperf::wire::{has_shared_clock, mark_shared_clock, prepare_payload};
use nicpoll_testkit::hex;

const TCP_256K: &str = "40010078 00000001 00001389 00000000 00000000 00040000 \
     00000000 00000000 0000 0000 00020001 00080003 0000 0000 00000000 00000000 00000000";

fn tcp_header(digits: &str) -> ClientHeader {
    ClientHeader::parse_tcp(&hex(digits)).unwrap().unwrap()
}

#[test]
fn tcp_header_is_byte_for_byte_that_of_the_original() {
    let mut built = [0xff; 64];
    let header = ClientHeader::for_tcp(5001, Amount::Bytes(262_144));
    assert_eq!(header.write_to(&mut built), 60);
    assert_eq!(built[..60], hex(TCP_256K));
    assert_eq!(built[60..], [0xff; 4]);
    assert_eq!(tcp_header(TCP_256K), header);
}

#[test]
fn tcp_dual_header_tells_port_time_and_rate() {
    let header = tcp_header(
        "c0010079 00000001 00001771 00000000 00000000 ffffff38 \
         00000000 00000000 0000 0000 00020001 00080003 0000 0000 00989680 00000000 00000000",
    );
    assert_eq!(
        (header.port, header.amount),
        (6001, Amount::Time(Duration::from_secs(2)))
    );
    assert_eq!(header.extension.unwrap().rate_bps, 10_000_000);
    assert!(is_acknowledged(&header));
}

#[test]
fn peer_detection_is_acknowledged() {
    let peer_detect = tcp_header(&TCP_256K.replacen("40010078", "46010078", 1));
    assert!(is_acknowledged(&peer_detect));
}

#[test]
fn the_rate_for_the_socket_stands_behind_the_extension() {
    let fields = |flag_word: &str, upper: &str| {
        format!(
            "{flag_word} 00000001 00001389 00000000 00000000 ffffff9c 00000000 00000000 {upper}0000 \
             00020001 00080003 00000000"
        )
    };
    let amount = Amount::Time(Duration::from_secs(1));
    // As 2.1.8 sends with --fq-rate 100m -R, but for the time at which it began.
    let tcp = fields("440100a0", "0600")
        + "00000000 00000000 00000000 00000000 00000000 00000000 00bebc20 00000000";
    let mut header = ClientHeader::for_tcp(5001, amount);
    header.ask_for(Directions::Reverse);
    header.pace(12_500_000);
    let mut written = [0; ClientHeader::BYTES_MAX];
    header.write_to(&mut written);
    assert_eq!(header.tcp_bytes(), 80);
    assert_eq!(written[..80], hex(&tcp));
    assert_eq!(tcp_header(&tcp), header);

    let udp = String::from("00000001 6b02ed62 00007135 00000000")
        + &fields("6c0100d8", "0600")
        + "00100000 00000000 00000000"
        + &"00000000 ".repeat(8 + 3)
        + "00bebc20 00000000";
    let read = ClientHeader::parse_udp(&hex(&udp)).unwrap();
    assert_eq!(read.pacing_bytes_per_second, Some(12_500_000));
    assert_eq!(read.directions(), Ok(Directions::Reverse));
    let mut header = ClientHeader::for_udp(5001, amount, 1 << 20);
    header.ask_for(Directions::Reverse);
    header.pace(12_500_000);
    header.write_to(&mut written);
    assert_eq!(written, hex(&udp)[16..]);
    // What is cut off is not there.
    let short = ClientHeader::parse_udp(&hex(&udp)[..100]).unwrap();
    assert_eq!(short.pacing_bytes_per_second, None);
}

#[test]
fn rates_beyond_32_bits_are_written_and_read_whole() {
    let amount = Amount::Time(Duration::from_secs(1));
    let mut header = ClientHeader::for_tcp(5001, amount);
    header.extension.as_mut().unwrap().rate_bps = 0x12_3456_789a_bcde;
    header.pace(0x9_8765_4321);
    let mut written = [0; ClientHeader::BYTES_MAX];
    header.write_to(&mut written);
    assert_eq!(written[48..56], hex("789abcde 12345600"));
    assert_eq!(written[72..80], hex("87654321 00000009"));
    assert_eq!(ClientHeader::parse_tcp(&written), Ok(Some(header)));
    // No rate is stated, and a rate of 0 is none.
    header.pacing_bytes_per_second = Some(0);
    header.write_to(&mut written);
    let read = ClientHeader::parse_tcp(&written).unwrap().unwrap();
    assert_eq!(read.pacing_bytes_per_second, None);
    // What stands behind a header that asks for no pacing is payload.
    let read = ClientHeader::parse_udp(&first_datagram()).unwrap();
    assert_eq!(read.pacing_bytes_per_second, None);
    let mut behind = first_datagram();
    behind[76..160].fill(1);
    let read = ClientHeader::parse_udp(&behind).unwrap();
    assert_eq!(read.pacing_bytes_per_second, None);
}

#[test]
fn the_header_of_2_0_8_has_its_rate_behind_the_first_part() {
    let amount = Amount::Time(Duration::from_secs(1));
    let mut written = [0xff; 64];
    let bytes = ClientHeader::for_udp_v2_0_8(5001, amount, 1 << 20).write_to(&mut written);
    let expected = "00000000 00000001 00001389 00000000 00000000 ffffff9c 00100000";
    assert_eq!(written[..bytes], hex(expected));
    ClientHeader::for_udp_v2_0_8(5001, amount, 1 << 40).write_to(&mut written);
    assert_eq!(written[24..28], [0xff; 4]);
}

#[test]
fn a_type_of_service_is_asked_for_by_its_word() {
    let mut header = ClientHeader::for_tcp(5001, Amount::Bytes(1));
    assert_eq!(header.type_of_service(), None);
    header.extension.as_mut().unwrap().type_of_service = 0xb8;
    assert_eq!(header.type_of_service(), Some(0xb8));
    header.extension = None;
    assert_eq!(header.type_of_service(), None);
}

#[test]
fn who_asks_for_the_version_may_ask_for_both_ways_besides() {
    let header = tcp_header(
        "c6010079 00000001 00001771 00000000 00000000 ffffff9c 00000000 00000000 00000000 00020001 \
         00080003 00000000 00000000 00000000 00000000",
    );
    let both_ways = Directions::Dual {
        port: 6001,
        is_at_once: true,
    };
    assert_eq!(header.directions(), Ok(both_ways));
    assert_eq!(Version::V2_1_8.to_string(), "2.1.8");
}

#[test]
fn tcp_streams_of_2_0_13_and_of_compatibility_mode_have_no_header() {
    for first_bytes in [
        "08000000 34353637 38393031",
        "30313233 34353637",
        "00000000",
        // 2.0.5, whose first 24 bytes are a header that asks for nothing.
        "00000000 00000001 00001389 00000000 00000000 ffffff9c",
    ] {
        assert_eq!(ClientHeader::parse_tcp(&hex(first_bytes)), Ok(None));
    }
}

#[test]
fn tcp_header_of_2_0_5_has_24_bytes_and_no_extension() {
    let header = tcp_header("80000001 00000001 00001389 00000000 00000000 ffffff9c");
    assert_eq!(header.amount, Amount::Time(Duration::from_secs(1)));
    assert_eq!(header.extension, None);
    assert!(!is_acknowledged(&header));
}

#[test]
fn tcp_header_of_2_0_13_tells_version_and_rate_in_its_different_extension() {
    let header = tcp_header(
        "48000000 30313233 34353637 38393031 32333435 36373839 \
         00000001 0000001c 00000000 00020000 000d0003 00000000 00989680 34353637 38393031",
    );
    let extension = header.extension.unwrap();
    assert_eq!(extension.version.upper, 0x0002_0000);
    assert_eq!(extension.version.lower, 0x000d_0003);
    assert_eq!(extension.rate_bps, 10_000_000);
    assert_eq!((extension.upper_flags, extension.type_of_service), (0, 0));
    assert!(is_acknowledged(&header));
}

#[test]
fn tcp_headers_of_old_dual_tests_ask_for_a_stream_but_for_no_window() {
    for (flag_word, word_4, window) in [
        ("80000001", "00008000", 32_768),
        ("80000000", "00000000", 0),
        // 2.0.12 and 2.0.13 leave filler there.
        ("80000001", "36373839", 0),
        ("88000001", "36373839", 0),
    ] {
        let header = tcp_header(&format!(
            "{flag_word} 00000001 00001389 00000000 {word_4} ffffff9c"
        ));
        assert_eq!(
            (header.port, header.amount),
            (5001, Amount::Time(Duration::from_secs(1)))
        );
        assert_eq!(header.window_or_rate, window, "{flag_word} {word_4}");
        assert_eq!(header.extension, None);
        assert!(!is_acknowledged(&header));
    }
}

#[test]
fn tcp_header_lengths_follow_the_flags() {
    let length = |flags: u32| header_length(flags.to_be_bytes());
    assert_eq!(length(0), Ok(0));
    assert_eq!(length(0x4001_0078), Ok(60));
    assert_eq!(length(0x8000_0001), Ok(24));
    assert_eq!(length(0x4000_0000), Ok(60));
    assert_eq!(length(0x0400_0000), Ok(60));
    assert_eq!(length(0x4001_01fe), Ok(255));
    let too_short = length(0x4001_002e).unwrap_err().to_string();
    assert!(too_short.contains("a length of 23 bytes"), "{too_short}");
}

#[test]
fn torn_tcp_header_says_how_much_is_missing() {
    let header = hex(TCP_256K);
    for (needed, found) in [(4, 3), (60, 59)] {
        let torn = ClientHeader::parse_tcp(&header[..found])
            .unwrap_err()
            .to_string();
        let words = format!("needs {needed} bytes and {found} are there");
        assert!(torn.contains(&words), "{torn}");
    }
}

#[test]
fn header_acknowledgement_is_that_of_the_original() {
    let captured = hex("00000002 0000001c 00000000 00020001 00080003 00000000 00000000");
    let ack = HeaderAck {
        version: Version::V2_1_8,
    };
    assert_eq!(ack.to_bytes()[..], captured);
    assert_eq!(HeaderAck::parse(&captured), Some(ack));
    assert_eq!(HeaderAck::parse(&captured[..27]), None);
    let mut short = captured[..24].to_vec();
    short[7] = 24;
    assert_eq!(HeaderAck::parse(&short), Some(ack));
    let mut with_times = captured;
    with_times[7] = 52;
    assert_eq!(HeaderAck::parse(&with_times), None);
    with_times.resize(52, 1);
    assert_eq!(HeaderAck::parse(&with_times), Some(ack));
}

const DATAGRAM_HEADER: &str = "00000001 6b00ba6e 0005e70d 00000000";
const UDP_CLIENT_HEADER: &str = "48010098 00000001 00001389 00000000 00000000 ffffff9c \
     00000000 00000000 0000 0000 00020001 00080003 0000 0000 00100000 00000000 00000000";

/// The first datagram of `-u -t 1`, 1470 bytes of payload.
fn first_datagram() -> Vec<u8> {
    let mut captured = hex(DATAGRAM_HEADER);
    captured.extend(hex(UDP_CLIENT_HEADER));
    captured.resize(160, 0);
    captured.extend((160..1470).map(|offset| b'0' + (offset % 10) as u8));
    captured
}

fn prepared(length: usize) -> Vec<u8> {
    let mut payload = vec![0xff; length];
    let amount = Amount::Time(Duration::from_secs(1));
    prepare_payload(&mut payload, &ClientHeader::for_udp(5001, amount, 1 << 20));
    payload
}

#[test]
fn first_datagram_is_byte_for_byte_that_of_the_original() {
    let header = DatagramHeader::at(1, Duration::new(0x6b00_ba6e, 0x0005_e70d * 1000));
    let mut built = prepared(1470);
    header.write_to(&mut built);
    assert_eq!(built, first_datagram());
    assert_eq!(DatagramHeader::parse(&built), Some(header));
    // 0x6b00ba6e seconds and 0x5e70d microseconds.
    assert_eq!(header.sent_ns(), 1_795_209_838_386_829_000);
}

#[test]
fn short_datagrams_carry_the_beginning_of_the_headers() {
    for length in [PAYLOAD_BYTES_MIN, 64, 75, 159, 160, 161] {
        let mut built = prepared(length);
        DatagramHeader::parse(&first_datagram())
            .unwrap()
            .write_to(&mut built);
        assert_eq!(built, first_datagram()[..length], "{length} bytes");
    }
}

#[test]
fn fin_has_a_negative_id() {
    let mut fin = hex("ffffffa3 6b00ba6f 000637e7 ffffffff 48010098");
    assert_eq!(DatagramHeader::parse(&fin).unwrap().id, -93);
    // A client of 2.0.5: no upper half, and other flags.
    fin[12..20].copy_from_slice(&hex("00000000 00000001"));
    assert_eq!(DatagramHeader::parse(&fin).unwrap().id, -93);
}

#[test]
fn datagrams_that_cannot_be_iperf_are_refused() {
    let mut huge = first_datagram();
    huge[12..16].copy_from_slice(b"1234");
    assert_eq!(DatagramHeader::parse(&huge), None);
    assert_eq!(DatagramHeader::parse(&huge[..11]), None);
}

/// The answer to a FIN after 92 datagrams of 1470 bytes.
const ACK_FIN: &str = "00000000 00000000 00000000 00000000 \
     88000000 00000000 00021606 00000001 00005092 00000000 00000000 0000005d 00000000 00000001 \
     00000000 00000002 00000000 0000004f 00000000 0000022a 00000000 00000005 \
     0000167c 000dc839 00000000 00000001 0000005d 0000005b 00000001 00000000 00000000 00000000";

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
fn captured_report_reads_as_the_original_printed_it() {
    let captured = hex(ACK_FIN);
    assert_eq!(captured.len(), ServerReport::BYTES);
    let read = ServerReport::parse(&captured, Dialect::V2_1);
    assert_eq!(read, Some(report_of_ack_fin()));
}

#[test]
fn report_is_that_of_the_original_but_for_the_transit_times() {
    let mut captured = hex(ACK_FIN);
    captured[56..116].fill(0);
    assert_eq!(report_of_ack_fin().to_bytes()[..], captured);
}

#[test]
fn replies_are_told_apart() {
    let mut sent = prepared(1470);
    sent[..16].copy_from_slice(&hex("ffffffa3 6b00ba6f 000637e7 ffffffff"));
    let classify = |reply: &[u8]| nicpoll_iperf::wire::classify(reply, &sent, Dialect::V2_1);

    assert_eq!(classify(&hex(ACK_FIN)), Reply::Report(report_of_ack_fin()));
    assert_eq!(classify(&sent[..128]), Reply::Echo);
    let header_ack = hex("00000002 0000001c 00000000 00020000 000d0003 00000000 00000000");
    let version = Version {
        upper: 0x0002_0000,
        lower: 0x000d_0003,
    };
    assert_eq!(classify(&header_ack), Reply::HeaderAck(version));
    assert_eq!(classify(&[]), Reply::BareAck);
    assert_eq!(classify(&[0; 128]), Reply::BareAck);
    // 2.0.13 leaves the FIN's header, id2 = ffffffff, before its report.
    let mut later = hex(ACK_FIN);
    later[..16].copy_from_slice(&sent[..16]);
    assert_eq!(classify(&later), Reply::Report(report_of_ack_fin()));
}

#[test]
fn a_message_without_marks_is_no_report() {
    assert_eq!(ServerReport::parse(&[0; 128], Dialect::V2_1), None);
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
    for (milliseconds, ticks) in [(0, 1), (1, 1), (10, 1), (11, 2), (10_000, 1000)] {
        let amount = told(Duration::from_millis(milliseconds));
        let rounded = Amount::Time(Duration::from_millis(10 * ticks));
        assert_eq!(amount, rounded, "{milliseconds} ms");
    }
    // The word of one tick more could not be negated by whoever reads it.
    let longest = Duration::from_millis(10 * i32::MAX as u64);
    assert_eq!(told(Duration::MAX), Amount::Time(longest));
}

/// `--trip-times -t 0.05`: the header is longer, and ends with when the stream began.
const UDP_TRIP_TIMES: &str = "00000001 6b0189ad 0000d24c 00000000 \
     680100d8 00000001 00003e1f 00000000 00000000 fffffffb \
     00000000 00000000 00100000 00020001 00080003 00000000 00100000 00000000 00000000 \
     00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 \
     00000000 6b0189ad 0000d24c 00000000 00000000 \
     00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 30313233";

#[test]
fn a_shared_clock_is_told_byte_for_byte_as_the_original_tells_it() {
    let amount = Amount::Time(Duration::from_millis(50));
    let mut built = [0; 164];
    prepare_payload(&mut built, &ClientHeader::for_udp(15_903, amount, 1 << 20));
    assert!(!has_shared_clock(&built));
    let begun = Duration::new(0x6b01_89ad, 0xd24c * 1000);
    mark_shared_clock(&mut built, begun);
    let header = DatagramHeader::at(1, Duration::new(0x6b01_89ad, 0xd24c * 1000));
    header.write_to(&mut built);
    assert_eq!(built[..], hex(UDP_TRIP_TIMES));
    assert!(has_shared_clock(&built));
}

#[test]
fn short_datagrams_tell_of_a_shared_clock_by_a_word_of_their_own() {
    let short = hex("00000001 6b0189ae 00055b66 00000000 00020000 30313233 34353637");
    assert!(has_shared_clock(&short));
    // The pattern, which -C leaves there, has the same bit among others.
    let pattern = hex("00000001 6b0189ae 00055b66 00000000 36373839 30313233 34353637");
    for payload in [&pattern[..], &short[..19], &[]] {
        assert!(!has_shared_clock(payload));
    }
}
