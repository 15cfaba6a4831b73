//! Any datagram may answer a UDP client. Telling what it is never panics, whatever the
//! client had sent and whatever it knows of the server. The first 64 bytes of the input are what it
//! sent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_iperf::wire::classify;
use nicpoll_iperf::wire::{Dialect, RawDatagram, Reply, ServerReport};

const DIALECTS: [Dialect; 4] = [
    Dialect::V2_0_2,
    Dialect::V2_0_10,
    Dialect::V2_0_13,
    Dialect::V2_1,
];

fuzz_target!(|input: &[u8]| {
    let (sent, reply) = input.split_at(input.len().min(64));
    for server in DIALECTS {
        let Reply::Report(report) = classify(reply, sent, server) else {
            continue;
        };
        // An answer of ours is understood by any client, ours included.
        let Some(fin) = RawDatagram::parse(sent) else {
            continue;
        };
        for client in DIALECTS {
            assert!(ServerReport::parse(&report.answer(client, &fin), client).is_some());
        }
    }
});
