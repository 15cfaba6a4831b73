//! Headers that iperf 2.1.8 sent for -d, -r, -R and --full-duplex, and what they mean here.

use nicpoll_iperf::Amount;
use nicpoll_iperf::wire::is_acknowledged;
use nicpoll_iperf::wire::prepare_payload;
use nicpoll_iperf::wire::{ClientHeader, Dialect, Directions, RawDatagram};
use nicpoll_testkit::hex;
use std::time::Duration;

const VERSION: &str = "00020001 00080003 0000 0000";

fn dual(port: u16, is_at_once: bool) -> Directions {
    Directions::Dual { port, is_at_once }
}

#[test]
fn tcp_requests_are_byte_for_byte_those_of_the_original() {
    let ten_megabit = format!("0000 0000 {VERSION} 00989680 00000000 00000000");
    for (threads, amount, rate_bps, directions, base, rest) in [
        (
            1,
            Amount::Time(Duration::from_secs(2)),
            10_000_000,
            dual(5001, true),
            "c0010079 00000001 00001389 00000000 00000000 ffffff38",
            ten_megabit.clone(),
        ),
        (
            1,
            Amount::Time(Duration::from_secs(1)),
            10_000_000,
            dual(5001, false),
            "c0010078 00000001 00001389 00000000 00000000 ffffff9c",
            ten_megabit.clone(),
        ),
        (
            2,
            Amount::Time(Duration::from_secs(1)),
            5_000_000,
            dual(6011, true),
            "c0010079 00000002 0000177b 00000000 00000000 ffffff9c",
            format!("0000 0000 {VERSION} 004c4b40 00000000 00000000"),
        ),
        (
            1,
            Amount::Bytes(262_144),
            0,
            Directions::Reverse,
            "44010078 00000001 00001389 00000000 00000000 00040000",
            format!("0400 0000 {VERSION} 00000000 00000000 00000000"),
        ),
        (
            1,
            Amount::Time(Duration::from_secs(1)),
            10_000_000,
            Directions::FullDuplex,
            "44010078 00000001 00001389 00000000 00000000 ffffff9c",
            format!("0800 0000 {VERSION} 00989680 00000000 00000000"),
        ),
    ] {
        let captured = hex(&format!("{base} 00000000 00000000 {rest}"));
        let mut header = ClientHeader::for_tcp(5001, amount);
        header.threads = threads;
        header.ask_for(directions);
        if let Some(extension) = &mut header.extension {
            extension.rate_bps = rate_bps;
        }
        let mut built = [0xff; ClientHeader::BYTES];
        header.write_to(&mut built);
        assert_eq!(built[..], captured, "{directions:?}");

        let parsed = ClientHeader::parse_tcp(&captured).unwrap().unwrap();
        assert_eq!(parsed, header);
        assert_eq!(parsed.directions(), Ok(directions));
        // What comes back on the client's socket would be taken for data.
        let has_own_socket = matches!(directions, Directions::Dual { .. });
        assert_eq!(is_acknowledged(&parsed), has_own_socket);
    }
}

#[test]
fn udp_requests_have_the_flags_of_the_original() {
    for (directions, flags, upper_flags, port) in [
        (Directions::Forward, "48010098", "0000", "00001389"),
        (dual(6001, true), "c8010099", "0000", "00001771"),
        (dual(5001, false), "c8010098", "0000", "00001389"),
        (Directions::Reverse, "6c010098", "0400", "00001389"),
        (Directions::FullDuplex, "6c010098", "0808", "00001389"),
    ] {
        let mut header = ClientHeader::for_udp(5001, Amount::Time(Duration::from_secs(1)), 1 << 20);
        header.ask_for(directions);
        let mut payload = [0xff; 1470];
        prepare_payload(&mut payload, &header);
        assert_eq!(payload[16..20], hex(flags), "{directions:?}");
        assert_eq!(payload[24..28], hex(port), "{directions:?}");
        assert_eq!(payload[48..50], hex(upper_flags), "{directions:?}");
        let parsed = ClientHeader::parse_udp(&payload).unwrap();
        assert_eq!(parsed, header);
        assert_eq!(parsed.directions(), Ok(directions));
    }
}

#[test]
fn udp_headers_that_are_none_or_of_older_versions_are_left_alone() {
    // -C: filler; 2.0.12: no 64-bit ids; too short.
    for rest in [
        "36373839 30313233 34353637 38393031 32333435 36373839",
        "00000000",
        "48010098",
    ] {
        let payload = hex(&format!("00000001 6b00ba6e 0005e70d 00000000 {rest}"));
        assert_eq!(ClientHeader::parse_udp(&payload), None, "{rest}");
    }
    // 2.0.13: no extension of 2.1.
    let dual = "88000001 00000001 00001771 00000000 36373839 ffffff9c 00000000 00000000 \
                00000000 00000000 00000000 00000000 00000000 00000000 00000000";
    let payload = hex(&format!("00000001 6b00ba6e 0005e70d 00000000 {dual}"));
    let header = ClientHeader::parse_udp(&payload).unwrap();
    assert_eq!(header.extension, None);
    assert_eq!(header.directions(), Ok(self::dual(6001, true)));
}

/// As 2.0.5 and 2.0.8 were seen to ask for it: -u -d -b 2m, the second one in packets as well.
#[test]
fn clients_up_to_2_0_9_ask_for_a_stream_back_too() {
    for (rest, old_rate, window_or_rate) in [
        (
            "80000001 00000001 00001771 00000000 001e8480 ffffff9c 36373839",
            None,
            2_000_000,
        ),
        (
            "80000001 00000001 00001771 00000000 00000000 ffffff9c 001e8480",
            Some(2_000_000),
            0,
        ),
        (
            "80000003 00000001 00001771 00000000 00000000 ffffff9c 00000064",
            Some(100),
            0,
        ),
    ] {
        let payload = hex(&format!("00000000 6b00ba6e 0005e70d {rest}"));
        let header = ClientHeader::parse_udp(&payload).unwrap();
        assert_eq!(header.directions(), Ok(dual(6001, true)), "{rest}");
        let rates = (header.old_rate, header.window_or_rate);
        assert_eq!(rates, (old_rate, window_or_rate), "{rest}");
        assert_eq!(header.extension, None);
    }
}

/// What a 2.1.8 server sends with -R, --full-duplex and -d: filler where a client has its header.
#[test]
fn datagrams_of_a_server_have_wide_ids_and_no_header() {
    for (id, digits) in [
        (1, "00000001 6b00ba6e 0005e70d 00000000 36373839 30313233"),
        (-54, "ffffffca 6b00ba6e 0005e70d ffffffff 36373839 30313233"),
        (1 << 31, "80000000 6b00ba6e 0005e70d 00000000 36373839"),
    ] {
        let payload = hex(digits);
        let raw = RawDatagram::parse(&payload).unwrap();
        let dialect = Dialect::HeaderlessLater;
        assert_eq!(dialect.header(&raw, 0).unwrap().id, id);
        assert_eq!(ClientHeader::parse_udp(&payload), None);
        if id > 0 {
            assert_eq!(Dialect::of_client(&raw), dialect);
        }
    }
}

#[test]
fn requests_of_2_0_are_understood() {
    for (flags, is_at_once) in [("80000001", true), ("80000000", false), ("88000001", true)] {
        let header = hex(&format!(
            "{flags} 00000001 00001389 00000000 36373839 ffffff9c"
        ));
        let header = ClientHeader::parse_tcp(&header).unwrap().unwrap();
        assert_eq!(header.directions(), Ok(dual(5001, is_at_once)));
        assert_eq!(header.amount, Amount::Time(Duration::from_secs(1)));
    }
}

#[test]
fn a_port_that_cannot_be_is_refused() {
    for port in [0, 65_536, u32::MAX] {
        let mut header = ClientHeader::for_tcp(5001, Amount::Time(Duration::from_millis(10)));
        header.ask_for(dual(1, true));
        header.port = port;
        let refusal = header.directions().unwrap_err().to_string();
        assert!(refusal.contains(&format!("port {port},")), "{refusal}");
    }
}
