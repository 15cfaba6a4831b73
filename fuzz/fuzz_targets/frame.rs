//! A frame may come from anybody on the link. What must hold: reading it never panics, and what is read of it lies
//! within it. A router that sends it on takes one hop off it and leaves its checksums as right or wrong as they were.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_wire::frame::{Frame, Mac, Mark, Packet};
use nicpoll_wire::hop::send_on;

fn check_hop(bytes: &[u8]) {
    let mut after = bytes.to_vec();
    if !send_on(&mut after, Mac([2; 6]), Mac([4; 6])) {
        assert_eq!(after, bytes);
        return;
    }
    let [before, after] = [bytes, &after].map(Frame::parse);
    if let (Ok(before), Ok(after)) = (before, after)
        && let (Packet::Ip(before), Packet::Ip(after)) = (before.packet, after.packet)
    {
        assert_eq!(after.hop_limit + 1, before.hop_limit);
        assert!(after.checksums_hold() || !before.checksums_hold());
    }
}

fuzz_target!(|bytes: &[u8]| {
    check_hop(bytes);
    let Ok(frame) = Frame::parse(bytes) else {
        return;
    };
    if let Packet::Ip(ip) = &frame.packet {
        ip.checksums_hold();
    }
    if let Some((_, udp)) = frame.udp() {
        assert!(udp.payload.len() + 42 <= bytes.len());
        if let Some(mark) = Mark::parse(udp.payload) {
            assert_eq!(Mark::parse(&mark.to_bytes()), Some(mark));
        }
    }
});
