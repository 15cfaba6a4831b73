//! A capture may come from anywhere. Reading it never panics, and the times of its packets
//! never run backwards.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_wire::pcap::Capture;

fuzz_target!(|file: &[u8]| {
    if let Ok(capture) = Capture::parse(file) {
        let mut earlier = 0;
        for packet in capture.packets().flatten() {
            let _ = packet.udp_payload_bytes();
            assert!(packet.time_ns >= earlier);
            earlier = packet.time_ns;
        }
    }
});
