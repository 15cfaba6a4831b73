//! The packet formats of iperf 2.1.8, and where 2.0.2 to 2.0.13 differ. Every field is big-endian; names, sizes
//! and flags follow 2.1.8's `payloads.h`.
//!
//! A TCP test begins with a [`ClientHeader`], which the server may acknowledge ([`HeaderAck`]). A UDP test
//! repeats that header in each datagram, after a [`DatagramHeader`]. Datagrams with a negative id end the test
//! ("FIN"); the server answers them with its [`ServerReport`] ("AckFIN").
//!
//! Parsing never panics: any bytes from a peer are either understood or refused. Start with `header.rs`.

mod datagram;
mod header;
mod report;

pub use datagram::{
    CLIENT_HEADER_OFFSET, DatagramHeader, Dialect, ID_MAX, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN,
    RawDatagram, prepare_payload,
};
pub use header::{
    Amount, ClientHeader, Directions, Extension, HeaderAck, HeaderError, Version, fill_payload,
    flags, header_length, is_acknowledged, upper_flags,
};
pub use report::{Reply, ServerReport, classify};

pub(crate) use header::{DEFAULT_PORT, HEADER_BYTES_MAX};
