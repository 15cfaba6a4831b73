//! Any datagram may reach the UDP server. Reading it never panics, an id that was read
//! is written back as one that reads the same, and so is a client header; no stream is asked for to a
//! port that cannot be.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_iperf::wire::{ClientHeader, DatagramHeader, Dialect, Directions, RawDatagram};

fuzz_target!(|payload: &[u8]| {
    client_header(payload);
    let Some(raw) = RawDatagram::parse(payload) else {
        assert!(payload.len() < 12);
        return;
    };
    let dialect = Dialect::of_client(&raw);
    let read = dialect.header(&raw, 0);
    assert_eq!(DatagramHeader::parse(payload), read);
    let Some(header) = read else { return };
    let _ = header.sent_ns();
    if payload.len() >= 16 {
        let mut again = payload.to_vec();
        dialect.write_header(&header, &mut again);
        let raw = RawDatagram::parse(&again).expect("as long as before");
        // Where a FIN has two readings, the one that was written is the nearer to itself.
        assert_eq!(dialect.header(&raw, header.id.unsigned_abs()), Some(header));
    }
});

fn client_header(payload: &[u8]) {
    let Some(asked) = ClientHeader::parse_udp(payload) else {
        return;
    };
    if let Ok(Directions::Dual { port, .. }) = asked.directions() {
        assert_eq!(u32::from(port), asked.port);
        assert_ne!(port, 0);
    }
    let mut again = payload.to_vec();
    let raw = RawDatagram::parse(payload).expect("it has a client header");
    asked.write_to(&mut again[Dialect::of_client(&raw).client_header_offset()..]);
    assert_eq!(
        ClientHeader::parse_udp(&again).map(|read| read.directions()),
        Some(asked.directions())
    );
}
