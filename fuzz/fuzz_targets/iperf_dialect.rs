//! A client's dialect is told by its first datagram, and whatever comes after it is read as that. No sequence of datagrams makes a reading panic or yield an id beyond belief, and the
//! answer to each FIN is a report to a client of any version. Each 24 bytes of the input are the head of
//! a datagram.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_iperf::wire::ID_MAX;
use nicpoll_iperf::wire::{Dialect, RawDatagram, ServerReport};

fuzz_target!(|input: &[u8]| {
    let mut datagrams = input.chunks(24).filter_map(|head| RawDatagram::parse(head));
    let Some(first) = datagrams.next() else {
        return;
    };
    let dialect = Dialect::of_client(&first);
    let mut highest_id = 0;
    for raw in std::iter::once(first).chain(datagrams) {
        let Some(header) = dialect.header(&raw, highest_id) else {
            continue;
        };
        assert!(header.id.unsigned_abs() <= ID_MAX.unsigned_abs());
        if header.id >= 0 {
            highest_id = highest_id.max(header.id.unsigned_abs());
            continue;
        }
        let report = ServerReport {
            datagrams: header.id.unsigned_abs(),
            ..ServerReport::default()
        };
        let answer = report.answer(dialect, &raw);
        let stated = ServerReport::parse(&answer, dialect).expect("an answer is a report");
        assert_eq!(stated.datagrams, report.datagrams.min(stated.datagrams));
    }
});
