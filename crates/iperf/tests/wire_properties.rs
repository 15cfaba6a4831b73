//! What holds for all values: what is built parses back, and no bytes make a parser panic.

use std::time::Duration;

use nicpoll_iperf::Amount;
use nicpoll_iperf::wire::datagram::{self, prepare_payload};
use nicpoll_iperf::wire::reply;
use nicpoll_iperf::wire::tcp::{HeaderAck, header_length};
use nicpoll_iperf::wire::{
    ClientHeader, DatagramHeader, Dialect, Extension, ServerReport, Version, flags,
};
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
        ClientHeader { flags, threads, port, buffer_bytes, window_or_rate, amount, extension }
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
        id in -datagram::ID_MAX..=datagram::ID_MAX,
        sent_seconds in any::<u32>(),
        sent_microseconds in any::<u32>(),
        length in datagram::PAYLOAD_BYTES_MIN..2000,
    ) {
        let header = DatagramHeader { id, sent_seconds, sent_microseconds };
        let mut payload = vec![0; length];
        prepare_payload(&mut payload, &ClientHeader::for_udp(1, Amount::Time(Duration::from_millis(10)), 0));
        header.write_to(&mut payload);
        prop_assert_eq!(DatagramHeader::parse(&payload), Ok(header));
    }

    #[test]
    fn server_report_reads_back(report in server_report()) {
        prop_assert_eq!(ServerReport::parse(&report.to_bytes(), Dialect::V2_1), Ok(report));
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
        let _ = reply::classify(&bytes, &sent, Dialect::V2_1);
    }
}
