//! Any bytes may come over a connection to the request/response port. Reading them never
//! panics, takes no more than there is, and finds the same messages however the stream is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_wire::rr::{Decoder, Message, MessageError};

/// What a stream holds when it comes in pieces of so many bytes, and what ended the reading.
fn read(stream: &[u8], piece_bytes: usize) -> (Vec<Message>, Option<MessageError>) {
    let mut decoder = Decoder::default();
    let mut found = Vec::new();
    for mut piece in stream.chunks(piece_bytes) {
        loop {
            match decoder.next(&mut piece) {
                Ok(Some(message)) => found.push(message),
                Ok(None) => break,
                Err(error) => return (found, Some(error)),
            }
        }
        assert!(piece.is_empty());
    }
    (found, None)
}

fuzz_target!(|stream: &[u8]| {
    let whole = read(stream, stream.len().max(1));
    for piece_bytes in [1, 63, 64, 65] {
        assert_eq!(read(stream, piece_bytes), whole);
    }
});
