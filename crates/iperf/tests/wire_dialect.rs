//! UDP bytes sent by versions other than 2.1.8, and how they parse here.

use std::time::Duration;

use nicpoll_iperf::Amount;
use nicpoll_iperf::wire::{
    ClientHeader, DatagramHeader, Dialect, RawDatagram, ServerReport, Version,
};
use nicpoll_iperf::wire::{Reply, classify};
use nicpoll_testkit::hex;

fn raw(digits: &str) -> RawDatagram {
    RawDatagram::parse(&hex(digits)).unwrap()
}

const DIALECTS: [Dialect; 7] = [
    Dialect::V2_0_2,
    Dialect::V2_0_10,
    Dialect::V2_0_13,
    Dialect::V2_1,
    Dialect::HeaderlessV2_0,
    Dialect::HeaderlessLater,
    Dialect::Unknown,
];

/// The lines of a file of captured datagrams: dialect, client, and the rest.
fn captured(text: &str) -> impl Iterator<Item = (Dialect, &str, Vec<&str>)> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut fields = line.split(" | ");
            let name = fields.next().unwrap();
            let of_name = |dialect: &&Dialect| format!("{dialect:?}") == name;
            let dialect = DIALECTS.iter().find(of_name).expect(name);
            (*dialect, fields.next().unwrap(), fields.collect())
        })
}

#[test]
fn clients_are_told_by_their_first_datagrams() {
    let first_datagrams = captured(include_str!("wire_dialect/first.txt"));
    let mut count = 0;
    for (dialect, client, first) in first_datagrams {
        assert_eq!(Dialect::of_client(&raw(first[0])), dialect, "{client}");
        count += 1;
    }
    assert_eq!(count, 26);
}

#[test]
fn a_v1_header_has_a_thread_and_a_port() {
    for words in [
        "00000000 00000000 00001389",
        "00000000 00010000 00001389",
        "00000000 00000001 00000000",
        "00000000 00000001 00010000",
        "80000004 00000001 00001389",
    ] {
        let first = raw(&format!("00000000 6b00bbde 0003522b {words}"));
        assert_eq!(Dialect::of_client(&first), Dialect::Unknown, "{words}");
    }
}

#[test]
fn fins_of_every_version_say_how_much_was_sent() {
    let fins = captured(include_str!("wire_dialect/fins.txt"));
    let mut count = 0;
    for (dialect, client, fields) in fins {
        let (fin, id): (&str, i64) = (fields[0], fields[1].parse().unwrap());
        assert_eq!(dialect.header(&raw(fin), 92).unwrap().id, id, "{client}");
        // Alone, it is still recognised as a FIN.
        assert!(DatagramHeader::parse(&hex(fin)).unwrap().id < 0, "{client}");
        count += 1;
    }
    assert_eq!(count, 14);
}

#[test]
fn versions_number_and_end_their_streams_as_the_originals_do() {
    let of = |dialect: Dialect| {
        let every_ms = dialect.fin_every().as_millis();
        (dialect.first_id(), every_ms, dialect.fin_id_step())
    };
    assert_eq!(of(Dialect::V2_0_2), (0, 250, 0));
    assert_eq!(of(Dialect::V2_0_8), (0, 250, 0));
    assert_eq!(of(Dialect::V2_0_10), (0, 250, -1));
    assert_eq!(of(Dialect::V2_0_13), (0, 250, 1));
    assert_eq!(of(Dialect::V2_1), (1, 10, 1));
    assert_eq!(of(Dialect::HeaderlessV2_0), (0, 250, 0));
    assert_eq!(of(Dialect::HeaderlessLater), (1, 250, 0));
    assert_eq!(of(Dialect::Unknown), (1, 250, 0));
}

#[test]
fn an_unclear_fin_is_the_one_nearer_to_the_highest_id() {
    let id = |low: &str, highest_id| {
        let fin = raw(&format!("{low} 6b00bc2a 00064be1 32333435 00000000"));
        Dialect::V2_0_10.header(&fin, highest_id).unwrap().id
    };
    assert_eq!(id("ffffffa6", 80), -90);
    assert_eq!(id("ffffffa6", 0x7fff_ff00), -0x7fff_ffa6);
    assert_eq!(id("8000005a", 0x7fff_ff00), -0x7fff_ffa6);
    assert_eq!(id("80000000", 0), -1);
}

#[test]
fn the_largest_id_is_read_and_the_next_one_refused() {
    let id_max = nicpoll_iperf::wire::ID_MAX;
    for sign in [1, -1] {
        let mut payload = [0; 64];
        let mut read = |id| {
            let header = DatagramHeader::at(id, Duration::ZERO);
            Dialect::V2_1.write_header(&header, &mut payload);
            let raw = RawDatagram::parse(&payload).unwrap();
            Dialect::V2_1.header(&raw, 0).map(|header| header.id)
        };
        assert_eq!(read(sign * id_max), Some(sign * id_max));
        let beyond = sign * (id_max + 1);
        assert_eq!(read(beyond), None);
    }
}

#[test]
fn ids_out_of_all_proportion_are_refused() {
    let far = raw("00000000 6b00bc2a 00064be1 00010001 08000000");
    assert_eq!(Dialect::V2_0_13.header(&far, 0), None);
    assert!(Dialect::V2_0_2.header(&far, 0).is_some());
}

/// A client's first datagram, and its FIN after `sent` more.
fn written(dialect: Dialect, ids: [i64; 2], times: [(u64, u32); 2]) -> [Vec<u8>; 2] {
    let mut payload = vec![0xff; 64];
    let amount = Amount::Time(Duration::from_secs(1));
    let client = match dialect {
        Dialect::V2_0_2 => ClientHeader::for_udp_v2_0_5(5001, amount, 1 << 20),
        _ => ClientHeader::for_udp(5001, amount, 1 << 20),
    };
    dialect.prepare_payload(&mut payload, &client);
    [0, 1].map(|index| {
        let (seconds, micros) = times[index];
        let header = DatagramHeader::at(ids[index], Duration::new(seconds, 1000 * micros));
        dialect.write_header(&header, &mut payload);
        payload.clone()
    })
}

#[test]
fn datagrams_are_byte_for_byte_those_of_the_version_asked_for() {
    let [first, fin] = written(Dialect::V2_0_2, [0, -91], [(0x6b00_bbde, 0x0003_522b); 2]);
    let head =
        hex("00000000 6b00bbde 0003522b 00000000 00000001 00001389 00000000 00100000 ffffff9c");
    assert_eq!(first[..36], head);
    assert_eq!(&first[36..], b"6789012345678901234567890123");
    assert_eq!(fin[..12], hex("ffffffa5 6b00bbde 0003522b"));
    assert_eq!(fin[12..], first[12..]);

    let [first, fin] = written(Dialect::V2_0_10, [0, -90], [(0x6b00_bc2a, 0x0006_4be1); 2]);
    assert_eq!(
        first[..24],
        hex("00000000 6b00bc2a 00064be1 32333435 00000000 30313233")
    );
    assert_eq!(
        fin[..24],
        hex("8000005a 6b00bc2a 00064be1 32333435 00000000 30313233")
    );

    let [first, fin] = written(Dialect::V2_0_13, [0, -90], [(0x6b00_bc2a, 0x0006_4be1); 2]);
    assert_eq!(
        first[..24],
        hex("00000000 6b00bc2a 00064be1 00000000 08000000 30313233")
    );
    assert_eq!(
        fin[..24],
        hex("ffffffa6 6b00bc2a 00064be1 ffffffff 08000000 30313233")
    );
}

#[test]
fn short_payloads_hold_the_beginning_of_the_headers() {
    let client = ClientHeader::for_udp_v2_0_5(5001, Amount::Time(Duration::from_secs(1)), 1 << 20);
    for dialect in [Dialect::V2_0_2, Dialect::V2_0_10, Dialect::V2_0_13] {
        for length in 0..40 {
            dialect.prepare_payload(&mut vec![0; length], &client);
        }
    }
}

fn report() -> ServerReport {
    ServerReport {
        bytes: 135_240,
        elapsed: Duration::from_micros(1_016_340),
        lost: 1,
        out_of_order: 2,
        datagrams: 93,
        jitter: Duration::from_micros(6),
    }
}

#[test]
fn captured_report_of_2_0_5_begins_four_bytes_sooner() {
    let fin = "ffffffa3 6b00ba6f 000637e7 00000000 00000001 00001389";
    let captured = hex("ffffffa3 6b00ba6f 000637e7 \
         80000000 00000000 00021048 00000001 00003fd4 00000001 00000000 0000005d 00000000 00000006");
    let expected = ServerReport {
        out_of_order: 0,
        ..report()
    };
    let answer = expected.answer(Dialect::V2_0_2, &raw(fin));
    assert_eq!(answer[..captured.len()], captured);
    // 2.0.8 and 2.0.9 read on: an invalid transit time, and the rate, 93 datagrams in 1.016 s.
    let (transit, rest) = answer[captured.len()..].split_at(52);
    assert_eq!(transit[..4], 3600u32.to_be_bytes());
    assert_eq!(transit[4..], [0; 48]);
    assert_eq!(rest[..8], hex("0000005b 00000001"));
    assert_eq!(rest[8..], [0; 16]);
    for server in [Dialect::V2_0_2, Dialect::V2_1] {
        let mut reply = captured.clone();
        assert_eq!(ServerReport::parse(&reply, server), Some(expected));
        reply.resize(1470, b'0');
        assert_eq!(ServerReport::parse(&reply, server), Some(expected));
    }
}

#[test]
fn report_of_2_0_12_has_the_upper_half_of_the_datagrams_before_the_jitter() {
    let fin = "8000005d 6b00bc2a 00064be1 32333435 00000000 30313233";
    let expected = hex("8000005d 6b00bc2a 00064be1 32333435 \
         80000000 00000000 00021048 00000001 00003fd4 00000001 00000002 \
         0000005d 00000000 00000000 00000006");
    let answer = report().answer(Dialect::V2_0_10, &raw(fin));
    assert_eq!(answer[..expected.len()], expected);
    assert_eq!(answer[expected.len()..], [0; 68]);
    // It parses the same whether the server's version is known or not.
    for server in [Dialect::V2_0_10, Dialect::V2_1] {
        assert_eq!(ServerReport::parse(&answer, server), Some(report()));
    }
}

#[test]
fn a_report_with_narrow_counters_of_nobody_known_keeps_its_jitter() {
    let mut answer = report().to_bytes();
    answer[16] = 0x80;
    assert_eq!(ServerReport::parse(&answer, Dialect::V2_1), Some(report()));
    answer[19] = 0x01;
    assert!(ServerReport::parse(&answer, Dialect::V2_1).is_none());
}

#[test]
fn counters_beyond_32_bits_are_not_cut_for_old_clients() {
    let report = ServerReport {
        lost: 1 << 40,
        ..report()
    };
    let fin = raw("8000005d 6b00bc2a 00064be1 32333435 00000000");
    for dialect in [Dialect::V2_0_2, Dialect::V2_0_10] {
        let read = ServerReport::parse(&report.answer(dialect, &fin), dialect).unwrap();
        assert_eq!(read.lost, u64::from(u32::MAX));
    }
}

#[test]
fn a_server_is_known_by_the_version_it_acknowledges_the_header_with() {
    let of = |upper, lower| Dialect::of_server(Version { upper, lower });
    assert_eq!(of(0x0002_0000, 0x000a_0003), Dialect::V2_0_10);
    assert_eq!(of(0x0002_0000, 0x000c_0003), Dialect::V2_0_10);
    assert_eq!(of(0x0002_0000, 0x000d_0003), Dialect::V2_0_13);
    assert_eq!(of(0x0002_0001, 0x0008_0003), Dialect::V2_1);
    assert_eq!(of(0x0002_0002, 0x0001_0003), Dialect::V2_1);
}

#[test]
fn an_echo_to_a_client_that_speaks_as_2_0_5_is_no_report() {
    let [_, fin] = written(Dialect::V2_0_2, [0, -91], [(0, 0); 2]);
    assert_eq!(classify(&fin, &fin, Dialect::V2_0_2), Reply::Echo);
}

#[test]
fn a_version_reads_as_iperf_prints_it() {
    let endings = ["-dev", "-rc", "-rc2", "", "-private", "-master", "-unk"];
    for (kind, ending) in (0..).zip(endings) {
        let version = Version {
            upper: 0x0002_0001,
            lower: 0x0008_0000 | kind,
        };
        assert_eq!(version.to_string(), format!("2.1.8{ending}"));
    }
}
