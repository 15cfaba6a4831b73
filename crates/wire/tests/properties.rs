//! What holds for all values: what is built parses back, and no bytes make a parser panic.

use std::time::Duration;

use nicpoll_wire::iperf::datagram::{self, prepare_payload};
use nicpoll_wire::iperf::reply;
use nicpoll_wire::iperf::tcp::{HeaderAck, header_length};
use nicpoll_wire::iperf::{
    Amount, ClientHeader, DatagramHeader, Dialect, Extension, ServerReport, Version, flags,
};
use nicpoll_wire::rr::{Decoder, Kind, MESSAGE_BYTES_MAX, Message};
use proptest::collection::vec;
use proptest::prelude::*;

fn amount() -> impl Strategy<Value = Amount> {
    prop_oneof![
        (1..=1u32 << 31).prop_map(Amount::Ticks),
        (0..=i32::MAX as u32).prop_map(Amount::Bytes),
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

prop_compose! {
    fn message()(
        is_request in any::<bool>(),
        sequence in any::<u64>(),
        sent_ns in any::<u64>(),
        bytes in 64..2000u32,
        response_bytes in 64..2000u32,
    ) -> Message {
        let kind = if is_request { Kind::Request } else { Kind::Response };
        Message { kind, sequence, sent_ns, bytes, response_bytes }
    }
}

/// A message with its filler.
fn whole(message: Message) -> Vec<u8> {
    let mut bytes = message.to_bytes().to_vec();
    bytes.resize(message.bytes as usize, 0xa5);
    bytes
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
        prepare_payload(&mut payload, &ClientHeader::for_udp(1, Amount::Ticks(1), 0));
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
    fn a_message_reads_back_and_its_response_is_as_long_as_it_asks(message in message()) {
        let datagram = whole(message);
        prop_assert_eq!(Message::parse(&datagram), Ok(message));
        let response = Message::parse(&whole(message.response())).unwrap();
        prop_assert_eq!(response.bytes, message.response_bytes);
        prop_assert_eq!((response.kind, response.sequence), (Kind::Response, message.sequence));
        prop_assert!(Message::parse(&datagram[..datagram.len() - 1]).is_err());
        prop_assert!(Message::parse(&[&datagram[..], &[0]].concat()).is_err());
    }

    #[test]
    fn messages_of_a_stream_are_found_however_it_is_cut(
        messages in vec(message(), 0..8),
        cuts in vec(1..200usize, 1..50),
    ) {
        let stream: Vec<u8> = messages.iter().flat_map(|message| whole(*message)).collect();
        let mut decoder = Decoder::default();
        let mut found = Vec::new();
        let mut rest = &stream[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (mut piece, after) = rest.split_at((*cut).min(rest.len()));
            rest = after;
            while let Some(message) = decoder.next(&mut piece).unwrap() {
                found.push(message);
            }
            prop_assert!(piece.is_empty());
        }
        prop_assert_eq!(found, messages);
        prop_assert!(!decoder.is_within_message());
    }

    #[test]
    fn lengths_beyond_the_bounds_are_refused(bytes in any::<u32>(), response_bytes in any::<u32>()) {
        let bounds = Message::BYTES as u32..=MESSAGE_BYTES_MAX;
        let message = Message { bytes, response_bytes, ..Message::request(1, 2) };
        let mut stream = &message.to_bytes()[..];
        let is_within = bounds.contains(&bytes) && bounds.contains(&response_bytes);
        prop_assert_eq!(Decoder::default().next(&mut stream).is_ok(), is_within);
    }

    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..300), sent in vec(any::<u8>(), 0..50)) {
        let _ = ClientHeader::parse_tcp(&bytes);
        let _ = DatagramHeader::parse(&bytes).map(|header| header.sent_ns());
        let _ = ServerReport::parse(&bytes, Dialect::V2_0_10);
        let _ = HeaderAck::parse(&bytes);
        let _ = reply::classify(&bytes, &sent, Dialect::V2_1);
        let _ = Message::parse(&bytes);
        let mut stream = &bytes[..];
        let mut decoder = Decoder::default();
        while let Ok(Some(_)) = decoder.next(&mut stream) {}
    }

    #[test]
    fn only_what_begins_with_the_mark_is_a_message(mut bytes in vec(any::<u8>(), 0..130)) {
        if bytes.len() < Message::BYTES {
            prop_assert!(Message::parse(&bytes).is_err());
        }
        bytes.resize(Message::BYTES, 0);
        bytes[0] = b'x';
        prop_assert!(Message::parse(&bytes).is_err());
    }
}
