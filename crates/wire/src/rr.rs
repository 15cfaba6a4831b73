//! nicpoll's request and response: 64 bytes each, one transaction at a time.
//!
//! A response is the request with another kind, so that it is exactly as long and repeats the
//! sequence number and the time, by which the requester knows late answers from timely ones.

use thiserror::Error;
use zerocopy::byteorder::big_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// `npRR`.
const MAGIC: [u8; 4] = *b"npRR";
const REQUEST: u32 = 1;
const RESPONSE: u32 = 2;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct MessageWords {
    magic: [u8; 4],
    kind: U32,
    sequence: U64,
    sent_ns: U64,
    filler: [u8; 40],
}

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Asks for exactly one response.
    Request,
    /// Answers one request.
    Response,
}

/// One request or response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Which way it goes.
    pub kind: Kind,
    /// Number of the request, from 1. A request is never asked again under the same number.
    pub sequence: u64,
    /// When the request was sent: nanoseconds by the requester's monotonic clock, from an origin of
    /// its own choice.
    pub sent_ns: u64,
}

impl Message {
    /// Length of every message.
    pub const BYTES: usize = size_of::<MessageWords>();

    /// The message as sent; unused bytes are zero.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let words = MessageWords {
            magic: MAGIC,
            kind: U32::new(match self.kind {
                Kind::Request => REQUEST,
                Kind::Response => RESPONSE,
            }),
            sequence: self.sequence.into(),
            sent_ns: self.sent_ns.into(),
            filler: [0; 40],
        };
        zerocopy::transmute!(words)
    }

    /// Reads a whole datagram. The unused bytes may hold anything.
    ///
    /// # Errors
    /// [`MessageError`] when the length, the mark or the kind is not that of a message.
    pub fn parse(datagram: &[u8]) -> Result<Self, MessageError> {
        let words = MessageWords::read_from_bytes(datagram).map_err(|_| MessageError::Length {
            found_bytes: datagram.len(),
        })?;
        if words.magic != MAGIC {
            return Err(MessageError::Magic { found: words.magic });
        }
        let kind = match words.kind.get() {
            REQUEST => Kind::Request,
            RESPONSE => Kind::Response,
            found => return Err(MessageError::Kind { found }),
        };
        Ok(Message {
            kind,
            sequence: words.sequence.get(),
            sent_ns: words.sent_ns.get(),
        })
    }

    /// The response to this request.
    pub fn response(self) -> Self {
        Message {
            kind: Kind::Response,
            ..self
        }
    }
}

/// Why a datagram is neither request nor response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MessageError {
    /// Not 64 bytes.
    #[error(
        "a datagram of {found_bytes} bytes is no request or response, which have 64; ignore it"
    )]
    Length {
        /// Length of the payload.
        found_bytes: usize,
    },
    /// Does not begin with `npRR`.
    #[error("a datagram begins with {found:02x?} instead of npRR; another program uses the port")]
    Magic {
        /// What it begins with.
        found: [u8; 4],
    },
    /// The kind is neither 1 nor 2.
    #[error("a datagram has the kind {found}, neither request nor response; ignore it")]
    Kind {
        /// The kind as read.
        found: u32,
    },
}
