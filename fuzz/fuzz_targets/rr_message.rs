//! Any datagram may reach the request/response port. Reading it never panics, and a
//! message that was read is written back as one that reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_wire::rr::Message;

fuzz_target!(|datagram: &[u8]| {
    if let Ok(message) = Message::parse(datagram) {
        let mut again = datagram.to_vec();
        again[..Message::BYTES].copy_from_slice(&message.to_bytes());
        assert_eq!(Message::parse(&again), Ok(message));
        assert_eq!(message.response().bytes, message.response_bytes);
    }
});
