//! Any bytes may begin a stream to the TCP server. Reading a header never panics, and
//! one that was read asked for no more bytes than its first word states.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_iperf::wire::ClientHeader;
use nicpoll_iperf::wire::{header_length, is_acknowledged};

fuzz_target!(|stream: &[u8]| {
    let Some(first_word) = stream.first_chunk() else {
        assert!(ClientHeader::parse_tcp(stream).is_err());
        return;
    };
    match (header_length(*first_word), ClientHeader::parse_tcp(stream)) {
        (Ok(0), Ok(None)) | (Err(_), Err(_)) => {}
        (Ok(length), Ok(Some(header))) => {
            assert!(length <= stream.len());
            let _ = (is_acknowledged(&header), header.directions());
            // What follows the header does not change what it says.
            assert_eq!(ClientHeader::parse_tcp(&stream[..length]), Ok(Some(header)));
        }
        (Ok(length), Err(_)) => assert!(length > stream.len()),
        other => panic!("{other:?}"),
    }
});
