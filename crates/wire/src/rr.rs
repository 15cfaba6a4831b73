//! nicpoll's request and response messages.
//!
//! Each message is a head of 64 bytes and filler up to the length in the head. Over UDP a message is a datagram; over TCP
//! messages follow each other, and [`Decoder`] finds where they end. A response repeats the request's number and time,
//! which tell late answers from timely ones, and is as long as the request asks.

use thiserror::Error;
use zerocopy::byteorder::big_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// `npRR`.
const MAGIC: [u8; 4] = *b"npRR";
const REQUEST: u32 = 1;
const RESPONSE: u32 = 2;

/// The longest message: what a stranger may make a reader of a stream wait for.
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

/// Which way a message goes.
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
    /// Which way it goes.
    pub kind: MessageKind,
    /// Number of the request, from 1. A request is never asked again under the same number.
    pub sequence: u64,
    /// When the request was sent: nanoseconds by the requester's monotonic clock, from an origin of
    /// its own choice.
    pub sent_ns: u64,
    /// Length of the whole message, from [`Message::BYTES`] to [`MESSAGE_BYTES_MAX`].
    pub bytes: u32,
    /// Length of the whole response, within the same bounds.
    pub response_bytes: u32,
}

impl Message {
    /// Length of the head, which is the shortest message.
    pub const BYTES: usize = size_of::<HeadWords>();

    /// A request that is as long as its response: a head and nothing else.
    pub fn request(sequence: u64, sent_ns: u64) -> Self {
        Message {
            kind: MessageKind::Request,
            sequence,
            sent_ns,
            bytes: Self::BYTES as u32,
            response_bytes: Self::BYTES as u32,
        }
    }

    /// The head as sent; unused bytes are zero. Filler of any kind follows it, up to the length.
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

    /// Reads a whole datagram. The unused bytes and the filler may hold anything.
    ///
    /// # Errors
    /// [`MessageError`] when the length, the mark or the kind is not that of a message.
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

    /// Reads the head of a message.
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

/// Finds messages in a stream, however it is cut. Filler is passed over, never kept.
#[derive(Clone, Debug)]
pub struct Decoder {
    head: [u8; Message::BYTES],
    head_bytes: usize,
    /// The message whose head was read, and how much of its filler is still to come.
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
    /// Takes bytes from the front of `stream` up to the end of the next message, and returns that
    /// message; `None` when the stream has no more for now.
    ///
    /// # Errors
    /// [`MessageError`] when what comes is no message. The stream cannot be read on after that.
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

    /// Whether the stream stands within a message.
    pub fn is_within_message(&self) -> bool {
        self.head_bytes > 0
    }
}

/// Why bytes are neither request nor response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MessageError {
    /// Not as long as its head says, or too short for one.
    #[error(
        "a datagram of {found_bytes} bytes is no request or response, which tell their length and \
         have at least 64; ignore it"
    )]
    Length {
        /// Length of the payload.
        found_bytes: usize,
    },
    /// The message, or the response that it asks for, is too short or too long.
    #[error("a message tells a length of {told_bytes} bytes; it must be from 64 to 1048576")]
    ToldLength {
        /// The length as read.
        told_bytes: u32,
    },
    /// Does not begin with `npRR`.
    #[error("a message begins with {found:02x?} instead of npRR; another program uses the port")]
    Magic {
        /// What it begins with.
        found: [u8; 4],
    },
    /// The kind is neither 1 nor 2.
    #[error("a message has the kind {found}, neither request nor response; ignore it")]
    Kind {
        /// The kind as read.
        found: u32,
    },
}
