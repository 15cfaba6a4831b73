//! Any datagram may reach the UDP server. What must hold: reading it never panics, and an id that was
//! read is written back as one that reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_wire::iperf::datagram::has_shared_clock;
use nicpoll_wire::iperf::{DatagramHeader, Dialect, RawDatagram};

fuzz_target!(|payload: &[u8]| {
    let _ = has_shared_clock(payload);
    let Ok(raw) = RawDatagram::parse(payload) else {
        assert!(payload.len() < 12);
        return;
    };
    let dialect = Dialect::of_client(&raw);
    let read = dialect.header(&raw, 0);
    assert_eq!(DatagramHeader::parse(payload), read);
    let Ok(header) = read else { return };
    let _ = header.sent_ns();
    if payload.len() >= 16 {
        let mut again = payload.to_vec();
        dialect.write_header(&header, &mut again);
        let raw = RawDatagram::parse(&again).expect("as long as before");
        // Where a FIN has two readings, the one that was written is the nearer to itself.
        assert_eq!(dialect.header(&raw, header.id.unsigned_abs()), Ok(header));
    }
});
