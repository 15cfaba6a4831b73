//! A frame may come from anybody on the link. Reading it never panics, and what is read of it lies
//! within it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_wire::frame::{Frame, FramePayload, Mark};

fuzz_target!(|bytes: &[u8]| {
    let Ok(frame) = Frame::parse(bytes) else {
        return;
    };
    if let FramePayload::Ip(ip) = &frame.packet {
        ip.checksums_hold();
    }
    if let Some((_, udp)) = frame.udp() {
        assert!(udp.payload.len() + 42 <= bytes.len());
        if let Some(mark) = Mark::parse(udp.payload) {
            assert_eq!(Mark::parse(&mark.to_bytes()), Some(mark));
        }
    }
});
