//! The formats of iperf 2: those of version 2.1.8, and what 2.0.2 to 2.0.13 do differently. Every field
//! is big-endian; sizes, bits and words are those of 2.1.8's `payloads.h`.
//!
//! A TCP test begins with a [`ClientHeader`], which the server may acknowledge ([`HeaderAck`]). A UDP
//! test repeats that header in each datagram behind a [`DatagramHeader`]. Datagrams with a negative id
//! end the test ("FIN"), and the server answers them with its [`ServerReport`] ("AckFIN").
//!
//! Reading is total: any bytes of a peer are understood or refused, without a panic. Start with
//! `header.rs`.

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
