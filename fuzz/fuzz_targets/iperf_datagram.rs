//! Any datagram may reach the UDP server. What must hold: reading it never panics, and an id that was
//! read is written back as one that reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_wire::iperf::DatagramHeader;

fuzz_target!(|payload: &[u8]| {
    if let Ok(header) = DatagramHeader::parse(payload) {
        let _ = header.sent_ns();
        let mut again = payload.to_vec();
        header.write_to(&mut again);
        assert_eq!(DatagramHeader::parse(&again), Ok(header));
    }
});
