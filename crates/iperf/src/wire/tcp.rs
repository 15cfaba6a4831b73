//! What a TCP server needs besides the client header: how long the header is, and the answer to it.

use zerocopy::byteorder::big_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

use super::client_header::{self, HeaderError};
use super::{ClientHeader, Version, flags};

/// The longest header that the length field can announce.
pub const HEADER_BYTES_MAX: usize = 255;

/// Length in bytes of the header of a stream whose first four bytes are `first_word`, those four
/// included; 0 when the stream has no header.
///
/// # Errors
/// [`HeaderError::Length`] when the stated length is below 24.
pub fn header_length(first_word: [u8; 4]) -> Result<usize, HeaderError> {
    client_header::tcp_length(u32::from_be_bytes(first_word))
}

/// Whether a 2.1.8 server acknowledges this header. It does not when data in the other direction
/// follows on the same connection, where the acknowledgement would be taken for data.
pub fn is_acknowledged(header: &ClientHeader) -> bool {
    let has = |flag| header.flags & flag != 0;
    has(flags::PEER_DETECT) || (has(flags::EXTEND) && !has(flags::VERSION2))
}

const ACK_KIND: u32 = 2;
const ACK_BYTES: u32 = HeaderAck::BYTES as u32;
/// Without the last reserved word: what one way of building 2.0.10 to 2.0.12 comes to.
const SHORT_ACK_BYTES: u32 = 24;
/// With the times of `--trip-times`.
const ACK_WITH_TIMES_BYTES: u32 = 52;

#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct AckWords {
    kind: U32,
    length: U32,
    flags: U32,
    version_upper: U32,
    version_lower: U32,
    reserved: [U32; 2],
}

/// A server's acknowledgement of the client header. 2.0.10 to 2.0.13 send it over UDP too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderAck {
    /// The server's version.
    pub version: Version,
}

impl HeaderAck {
    /// Length without the times that `--trip-times` adds.
    pub const BYTES: usize = size_of::<AckWords>();

    /// The acknowledgement as 2.1.8 sends it.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let words = AckWords {
            kind: ACK_KIND.into(),
            length: ACK_BYTES.into(),
            flags: U32::ZERO,
            version_upper: self.version.upper.into(),
            version_lower: self.version.lower.into(),
            reserved: [U32::ZERO; 2],
        };
        zerocopy::transmute!(words)
    }

    /// Reads a whole message, of 24, 28 or 52 bytes; `None` when it is something else.
    pub fn parse(message: &[u8]) -> Option<Self> {
        let (words, _) = <[U32; 5]>::read_from_prefix(message).ok()?;
        let [kind, length, _, upper, lower] = words.map(U32::get);
        let is_ack = kind == ACK_KIND
            && matches!(length, SHORT_ACK_BYTES | ACK_BYTES | ACK_WITH_TIMES_BYTES)
            && message.len() == length as usize;
        is_ack.then_some(HeaderAck {
            version: Version { upper, lower },
        })
    }
}
