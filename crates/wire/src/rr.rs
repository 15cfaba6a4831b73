//! nicpoll's request and response messages.
//!
//! Each message is a head of 64 bytes and filler up to the length stated in the head. Over UDP a message is a
//! datagram; over TCP messages follow each other, and [`Decoder`] finds where they end. A response repeats the
//! request's number and time, which distinguish late answers from timely ones, and has the length that the
//! request asks for.

use thiserror::Error;
use zerocopy::byteorder::big_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// `npRR`.
const MAGIC: [u8; 4] = *b"npRR";
const REQUEST: u32 = 1;
const RESPONSE: u32 = 2;

/// The longest message: limits how long a stranger can keep a stream's reader waiting.
pub const MESSAGE_BYTES_MAX: u32 = 1 << 20;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct HeadWords {
    magic: [u8; 4],
    kind: U32,
    sequence: U64,
    sent_ns: U64,
    bytes: U32,
    response_bytes: U32,
    filler: [u8; 32],
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// Asks for exactly one response.
    Request,
    /// Answers one request.
    Response,
}

/// One request or response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Request or response.
    pub kind: MessageKind,
    /// Number of the request, from 1. No request is repeated under the same number.
    pub sequence: u64,
    /// When the request was sent: nanoseconds by the client's monotonic clock, from an arbitrary origin.
    pub sent_ns: u64,
    /// Length of the whole message, from [`Message::BYTES`] to [`MESSAGE_BYTES_MAX`].
    pub bytes: u32,
    /// Length of the whole response, within the same limits.
    pub response_bytes: u32,
}

impl Message {
    /// Length of the head: the shortest message.
    pub const BYTES: usize = size_of::<HeadWords>();

    /// A request and response of the shortest length, a head only.
    pub fn request(sequence: u64, sent_ns: u64) -> Self {
        Message {
            kind: MessageKind::Request,
            sequence,
            sent_ns,
            bytes: Self::BYTES as u32,
            response_bytes: Self::BYTES as u32,
        }
    }

    /// The head as sent; unused bytes are zero. Any filler follows, up to the stated length.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let words = HeadWords {
            magic: MAGIC,
            kind: U32::new(match self.kind {
                MessageKind::Request => REQUEST,
                MessageKind::Response => RESPONSE,
            }),
            sequence: self.sequence.into(),
            sent_ns: self.sent_ns.into(),
            bytes: self.bytes.into(),
            response_bytes: self.response_bytes.into(),
            filler: [0; 32],
        };
        zerocopy::transmute!(words)
    }

    /// Parses a whole datagram. Unused bytes and filler may have any value.
    ///
    /// # Errors
    /// [`MessageError`] when length, magic or kind is wrong.
    pub fn parse(datagram: &[u8]) -> Result<Self, MessageError> {
        let length = || MessageError::Length {
            found_bytes: datagram.len(),
        };
        let head = datagram.first_chunk().ok_or_else(length)?;
        let message = Self::parse_head(head)?;
        if message.bytes as usize != datagram.len() {
            return Err(length());
        }
        Ok(message)
    }

    /// Parses the head of a message.
    fn parse_head(head: &[u8; Self::BYTES]) -> Result<Self, MessageError> {
        let words: HeadWords = zerocopy::transmute!(*head);
        if words.magic != MAGIC {
            return Err(MessageError::Magic { found: words.magic });
        }
        let kind = match words.kind.get() {
            REQUEST => MessageKind::Request,
            RESPONSE => MessageKind::Response,
            found => return Err(MessageError::Kind { found }),
        };
        let [bytes, response_bytes] = [words.bytes.get(), words.response_bytes.get()];
        for told_bytes in [bytes, response_bytes] {
            if !(Self::BYTES as u32..=MESSAGE_BYTES_MAX).contains(&told_bytes) {
                return Err(MessageError::ToldLength { told_bytes });
            }
        }
        Ok(Message {
            kind,
            sequence: words.sequence.get(),
            sent_ns: words.sent_ns.get(),
            bytes,
            response_bytes,
        })
    }

    /// The response to this request.
    pub fn response(self) -> Self {
        Message {
            kind: MessageKind::Response,
            bytes: self.response_bytes,
            ..self
        }
    }
}

/// Finds messages in a stream, however it is cut. Skips filler without storing it.
#[derive(Clone, Debug)]
pub struct Decoder {
    head: [u8; Message::BYTES],
    head_bytes: usize,
    /// The message whose head was read, and the bytes of filler still to come.
    open: Option<(Message, usize)>,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder {
            head: [0; Message::BYTES],
            head_bytes: 0,
            open: None,
        }
    }
}

impl Decoder {
    /// Consumes bytes of `stream` up to the end of the next message and returns it; `None` when the stream has
    /// no more for now.
    ///
    /// # Errors
    /// [`MessageError`] when the bytes are not a message. The stream cannot be read further.
    /// ```
    /// use nicpoll_wire::rr::{Decoder, Message};
    ///
    /// let bytes = Message::request(1, 0).to_bytes();
    /// let mut decoder = Decoder::default();
    /// // A stream is cut anywhere.
    /// let (mut head, mut tail) = bytes.split_at(5);
    /// assert_eq!(decoder.next(&mut head)?, None);
    /// assert!(decoder.is_within_message());
    /// assert_eq!(decoder.next(&mut tail)?, Some(Message::request(1, 0)));
    /// # Ok::<(), nicpoll_wire::rr::MessageError>(())
    /// ```
    pub fn next(&mut self, stream: &mut &[u8]) -> Result<Option<Message>, MessageError> {
        if self.open.is_none() {
            let missing = Message::BYTES - self.head_bytes;
            let (now, rest) = stream.split_at(missing.min(stream.len()));
            self.head[self.head_bytes..][..now.len()].copy_from_slice(now);
            self.head_bytes += now.len();
            *stream = rest;
            if self.head_bytes < Message::BYTES {
                return Ok(None);
            }
            let message = Message::parse_head(&self.head)?;
            self.open = Some((message, message.bytes as usize - Message::BYTES));
        }
        let Some((message, filler)) = &mut self.open else {
            return Ok(None);
        };
        let now = (*filler).min(stream.len());
        *stream = &stream[now..];
        *filler -= now;
        if *filler > 0 {
            return Ok(None);
        }
        let message = *message;
        *self = Decoder::default();
        Ok(Some(message))
    }

    /// Whether the stream is within a message.
    pub fn is_within_message(&self) -> bool {
        self.head_bytes > 0
    }
}

/// Why bytes are neither request nor response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MessageError {
    /// Too short for a head, or not as long as the head states.
    #[error(
        "a datagram of {found_bytes} bytes is not a request or response: they state their length, \
         64 or more; ignore it"
    )]
    Length {
        /// Length of the payload.
        found_bytes: usize,
    },
    /// The stated length of the message or its response is out of range.
    #[error("a message states a length of {told_bytes} bytes; it must be from 64 to 1048576")]
    ToldLength {
        /// The length stated.
        told_bytes: u32,
    },
    /// Does not begin with `npRR`.
    #[error("a message begins with {found:02x?} instead of npRR; another program uses the port")]
    Magic {
        /// The first four bytes.
        found: [u8; 4],
    },
    /// The kind is neither 1 nor 2.
    #[error("a message has the kind {found}, neither request nor response; ignore it")]
    Kind {
        /// The kind stated.
        found: u32,
    },
}
