//! Properties for all values: what is written parses back, and no input makes a parser panic.

use std::time::Duration;

use nicpoll_iperf::Amount;
use nicpoll_iperf::wire::{
    CLIENT_HEADER_OFFSET, ID_MAX, PAYLOAD_BYTES_MIN, classify, prepare_payload,
};
use nicpoll_iperf::wire::{
    ClientHeader, DatagramHeader, Dialect, Extension, RawDatagram, ServerReport, Version, flags,
};
use nicpoll_iperf::wire::{HeaderAck, header_length};
use proptest::collection::vec;
use proptest::prelude::*;

fn amount() -> impl Strategy<Value = Amount> {
    prop_oneof![
        (1..=1u64 << 31).prop_map(|ticks| Amount::Time(Duration::from_millis(10 * ticks))),
        (0..=i32::MAX as u64).prop_map(Amount::Bytes),
    ]
}

fn version() -> impl Strategy<Value = Version> {
    any::<(u32, u32)>().prop_map(|(upper, lower)| Version { upper, lower })
}

prop_compose! {
    fn extension()(
        upper_flags in any::<u16>(),
        version in version(),
        type_of_service in any::<u16>(),
        rate_bps in 0..1u64 << 56,
    ) -> Extension {
        Extension { upper_flags, version, type_of_service, rate_bps }
    }
}

prop_compose! {
    fn client_header()(
        threads in any::<u32>(),
        port in any::<u32>(),
        buffer_bytes in any::<u32>(),
        window_or_rate in any::<u32>(),
        amount in amount(),
        extension in proptest::option::of(extension()),
    ) -> ClientHeader {
        let (kind, length) = match extension {
            Some(_) => (flags::EXTEND, 60),
            None => (flags::DUAL, 24),
        };
        let flags = kind | flags::HAS_LENGTH | length << 1;
        ClientHeader { flags, threads, port, buffer_bytes, window_or_rate, amount, old_rate: None, extension }
    }
}

prop_compose! {
    fn server_report()(
        bytes in any::<u64>(),
        elapsed_us in 0..1u64 << 50,
        lost in any::<u64>(),
        out_of_order in any::<u64>(),
        datagrams in any::<u64>(),
        jitter_us in 0..1u64 << 50,
    ) -> ServerReport {
        ServerReport {
            bytes,
            elapsed: Duration::from_micros(elapsed_us),
            lost,
            out_of_order,
            datagrams,
            jitter: Duration::from_micros(jitter_us),
        }
    }
}

/// Shortest datagram that identifies its version.
const MARKED_BYTES_MIN: usize = CLIENT_HEADER_OFFSET + 4;

/// A datagram of 2.1 with this header.
fn datagram_of(length: usize, header: DatagramHeader) -> Vec<u8> {
    let mut payload = vec![0; length];
    let amount = Amount::Time(Duration::from_millis(10));
    prepare_payload(&mut payload, &ClientHeader::for_udp(1, amount, 0));
    header.write_to(&mut payload);
    payload
}

proptest! {
    #[test]
    fn client_header_reads_back(header in client_header(), rest in any::<Vec<u8>>()) {
        let mut stream = [0; 60];
        let length = header.write_to(&mut stream);
        let stream = [&stream[..length], &rest].concat();
        prop_assert_eq!(header_length(*stream.first_chunk().unwrap()), Ok(length));
        prop_assert_eq!(ClientHeader::parse_tcp(&stream), Ok(Some(header)));
    }

    #[test]
    fn datagram_header_reads_back(
        id in -ID_MAX..=ID_MAX,
        sent_seconds in any::<u32>(),
        sent_microseconds in any::<u32>(),
        length in MARKED_BYTES_MIN..2000,
    ) {
        let header = DatagramHeader { id, sent_seconds, sent_microseconds };
        prop_assert_eq!(DatagramHeader::parse(&datagram_of(length, header)), Some(header));
    }

    /// A shorter datagram does not identify its version; the earlier ids tell how to read its id.
    #[test]
    fn header_of_a_datagram_without_marks_reads_back(
        id in prop_oneof![1..1i64 << 32, Just(1 << 31)],
        fin in prop_oneof![1..1i64 << 31, Just((1 << 31) - 1)],
        sent_seconds in any::<u32>(),
        sent_microseconds in any::<u32>(),
        length in PAYLOAD_BYTES_MIN..MARKED_BYTES_MIN,
    ) {
        for (id, highest_id) in [(id, id - 1), (-fin, fin - 1)] {
            let header = DatagramHeader { id, sent_seconds, sent_microseconds };
            let raw = RawDatagram::parse(&datagram_of(length, header)).unwrap();
            let read = Dialect::of_client(&raw).header(&raw, highest_id.unsigned_abs());
            prop_assert_eq!(read, Some(header));
        }
    }

    #[test]
    fn server_report_reads_back(report in server_report()) {
        prop_assert_eq!(ServerReport::parse(&report.to_bytes(), Dialect::V2_1), Some(report));
    }

    #[test]
    fn header_ack_reads_back(version in version()) {
        let ack = HeaderAck { version };
        prop_assert_eq!(HeaderAck::parse(&ack.to_bytes()), Some(ack));
    }

    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..300), sent in vec(any::<u8>(), 0..50)) {
        let _ = ClientHeader::parse_tcp(&bytes);
        let _ = DatagramHeader::parse(&bytes).map(|header| header.sent_ns());
        let _ = ServerReport::parse(&bytes, Dialect::V2_0_10);
        let _ = HeaderAck::parse(&bytes);
        let _ = classify(&bytes, &sent, Dialect::V2_1);
    }
}

const ALL: [Dialect; 8] = [
    Dialect::V2_0_2,
    Dialect::V2_0_10,
    Dialect::V2_0_13,
    Dialect::V2_1,
    Dialect::V2_0_8,
    Dialect::HeaderlessV2_0,
    Dialect::HeaderlessLater,
    Dialect::Unknown,
];

proptest! {
    #[test]
    fn what_a_version_writes_is_known_for_its_own(
        which in 0..4usize,
        id in 0..1i64 << 31,
        fin in 1..1i64 << 31,
        length in 24..100usize,
        threads in 1..65_536u32,
        port in 1..=u16::MAX,
        rate_bps in any::<u32>(),
    ) {
        let dialect = ALL[which];
        let amount = Amount::Time(Duration::from_secs(1));
        let mut client = match dialect {
            Dialect::V2_0_2 => ClientHeader::for_udp_v2_0_5(port, amount, rate_bps.into()),
            _ => ClientHeader::for_udp(port, amount, rate_bps.into()),
        };
        client.threads = threads;
        let mut payload = vec![0; length];
        dialect.prepare_payload(&mut payload, &client);
        for id in [id, -fin] {
            let header = DatagramHeader { id, sent_seconds: 1, sent_microseconds: 2 };
            dialect.write_header(&header, &mut payload);
            let raw = RawDatagram::parse(&payload).unwrap();
            if id >= 0 {
                prop_assert_eq!(Dialect::of_client(&raw), dialect);
            }
            prop_assert_eq!(dialect.header(&raw, id.unsigned_abs()), Some(header));
        }
    }

    #[test]
    fn answers_read_back_in_every_layout(report in server_report(), head in any::<[u8; 12]>()) {
        // Old versions have 32-bit counters and tell their answers from later ones by a jitter below a second.
        let narrow = |count: u64| u64::from(count as u32);
        let report = ServerReport {
            lost: narrow(report.lost),
            out_of_order: narrow(report.out_of_order),
            datagrams: narrow(report.datagrams),
            jitter: Duration::from_micros(report.jitter.subsec_micros().into()),
            ..report
        };
        let fin = RawDatagram::parse(&head).unwrap();
        for dialect in ALL {
            let answer = report.answer(dialect, &fin);
            prop_assert_eq!(ServerReport::parse(&answer, Dialect::V2_1), Some(report));
            prop_assert_eq!(ServerReport::parse(&answer, dialect), Some(report));
        }
    }

    #[test]
    fn any_head_is_survived_by_every_dialect(head in proptest::collection::vec(any::<u8>(), 0..40), highest in any::<u64>()) {
        if let Some(raw) = RawDatagram::parse(&head) {
            let _ = Dialect::of_client(&raw);
            for dialect in ALL {
                let _ = dialect.header(&raw, highest);
            }
        } else {
            prop_assert!(head.len() < 12);
        }
    }
}
