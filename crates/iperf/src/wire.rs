//! The formats of iperf 2, as version 2.1.8 speaks them, and what 2.0.2 to 2.0.13 do otherwise. It
//! must be possible to have any of them at the other end.
//!
//! Every field is big-endian. A TCP test begins with a [`ClientHeader`]; the server may answer with
//! a [`HeaderAck`](tcp::HeaderAck). A UDP test repeats the header in every datagram behind a
//! [`DatagramHeader`]; datagrams with a negative id end the test ("FIN"), and the server answers
//! them with its [`ServerReport`] ("AckFIN").
//!
//! Sizes, flag bits and words are those of iperf 2.1.8's `payloads.h`.

mod client_header;
pub mod datagram;
pub mod dialect;
mod directions;
pub mod reply;
mod report;
pub mod tcp;

pub use client_header::{ClientHeader, Extension, HeaderError, Version};
pub use datagram::{DatagramHeader, RawDatagram};
pub use dialect::Dialect;
pub use directions::Directions;
pub use reply::Reply;
pub use report::{ReportError, ServerReport};

/// The port that both ends use unless told otherwise, TCP and UDP.
pub const DEFAULT_PORT: u16 = 5001;

/// Bits of the first word of a [`ClientHeader`].
pub mod flags {
    /// The client asks for a stream in the other direction over a connection of its own (-d, -r).
    pub const DUAL: u32 = 0x8000_0000;
    /// An [`Extension`](super::Extension) follows the first 24 bytes.
    pub const EXTEND: u32 = 0x4000_0000;
    /// The extension says more of a UDP test.
    pub const UDP_TESTS: u32 = 0x2000_0000;
    /// Datagram ids have 64 bits.
    pub const IDS_64_BIT: u32 = 0x0800_0000;
    /// The client asks for a stream in the other direction on the same socket, or for an
    /// acknowledgement (`--reverse`, `--full-duplex`, -X).
    pub const VERSION2: u32 = 0x0400_0000;
    /// The client waits for the header's acknowledgement (-X).
    pub const PEER_DETECT: u32 = 0x0200_0000;
    /// The whole flag word of a datagram that is too short for the header and bears times that the
    /// receiver may compare with its own.
    pub const SHORT_TRIP_TIMES: u32 = 0x0002_0000;
    /// Bits 1 to 8 hold the header's length.
    pub const HAS_LENGTH: u32 = 0x0001_0000;
    /// The header's length, shifted left by one.
    pub const LENGTH_MASK: u32 = 0x0000_01FE;
    /// Only of 2.0.8 and 2.0.9: the rate counts datagrams a second, not bits.
    pub const RATE_IN_PACKETS: u32 = 0x0000_0002;
    /// With [`DUAL`]: the other direction begins at once (-d), not after the first one (-r).
    pub const RUN_NOW: u32 = 0x0000_0001;
}

/// Bits of [`Extension::upper_flags`].
pub mod upper_flags {
    /// The two ends' clocks are one (`--trip-times`).
    pub const TRIP_TIMES: u16 = 0x0010;
    /// The receiver of a UDP stream does not answer its FIN.
    pub const NO_UDP_FIN: u16 = 0x0008;
    /// The rate counts datagrams a second, not bits.
    pub const RATE_IN_PACKETS: u16 = 0x0080;
    /// The rate for the sender's socket is set (`--fq-rate`).
    pub const PACED: u16 = 0x0200;
    /// The server sends, the client receives (-R).
    pub const REVERSE: u16 = 0x0400;
    /// Both send on the one socket (`--full-duplex`).
    pub const FULL_DUPLEX: u16 = 0x0800;
}

/// Fills a payload as iperf does: the byte at offset k is the digit k mod 10.
pub fn fill_payload(payload: &mut [u8]) {
    for (byte, digit) in payload.iter_mut().zip((b'0'..=b'9').cycle()) {
        *byte = digit;
    }
}
