//! Any datagram may reach the request/response port. What must hold: reading it never panics, and a
//! message that was read is written back as one that reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_wire::rr::Message;

fuzz_target!(|datagram: &[u8]| {
    if let Ok(message) = Message::parse(datagram) {
        assert_eq!(Message::parse(&message.to_bytes()), Ok(message));
        assert!(Message::parse(&message.response().to_bytes()).is_ok());
    }
});
