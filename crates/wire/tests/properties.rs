//! Properties for all values: what is built parses back, and no input makes a parser panic.

use nicpoll_wire::rr::{Decoder, MESSAGE_BYTES_MAX, Message, MessageKind};
use proptest::collection::vec;
use proptest::prelude::*;

prop_compose! {
    fn message()(
        is_request in any::<bool>(),
        sequence in any::<u64>(),
        sent_ns in any::<u64>(),
        bytes in 64..2000u32,
        response_bytes in 64..2000u32,
    ) -> Message {
        let kind = if is_request { MessageKind::Request } else { MessageKind::Response };
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
    fn a_message_reads_back_and_its_response_is_as_long_as_it_asks(message in message()) {
        let datagram = whole(message);
        prop_assert_eq!(Message::parse(&datagram), Ok(message));
        let response = Message::parse(&whole(message.response())).unwrap();
        prop_assert_eq!(response.bytes, message.response_bytes);
        prop_assert_eq!((response.kind, response.sequence), (MessageKind::Response, message.sequence));
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
            let read = stream.len() - rest.len();
            let whole_bytes: usize = found.iter().map(|message| whole(*message).len()).sum();
            prop_assert_eq!(decoder.is_within_message(), read > whole_bytes);
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
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..300)) {
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
