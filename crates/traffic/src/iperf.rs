//! Streams that speak iperf 2 as version 2.1.8 does, so that the original may be at either end.

pub mod tcp;
pub mod udp;
