//! Any datagram may answer a UDP client. What must hold: telling what it is never panics, whatever the
//! client had sent. The first 64 bytes of the input are what it sent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_wire::iperf::reply::classify;
use nicpoll_wire::iperf::{Reply, ServerReport};

fuzz_target!(|input: &[u8]| {
    let (sent, reply) = input.split_at(input.len().min(64));
    if let Reply::Report(report) = classify(reply, sent) {
        // An answer of ours is understood by any client, ours included.
        assert!(ServerReport::parse(&report.to_bytes()).is_ok());
    }
});
