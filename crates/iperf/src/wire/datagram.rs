//! UDP datagrams: id and time of sending, then the client header, then filler.
//!
//! In 2.1.x ids of data count from 1. A FIN has the id -N, N being the id that the next datagram of
//! data would have had; each repetition subtracts one more, so that it is not taken for a datagram
//! out of order. What other versions do instead is in [`dialect`](super::dialect).

use std::time::Duration;

use thiserror::Error;
use zerocopy::byteorder::big_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

use super::dialect::Dialect;
use super::{ClientHeader, fill_payload, flags, upper_flags};

/// Offset of the client header.
pub const CLIENT_HEADER_OFFSET: usize = size_of::<DatagramWords>();
/// The least payload: the datagram header.
pub const PAYLOAD_BYTES_MIN: usize = CLIENT_HEADER_OFFSET;
/// The largest payload of a UDP datagram over IPv4.
pub const PAYLOAD_BYTES_MAX: usize = 65_507;
/// Ids beyond this are not believed: at ten million datagrams a second they come after 325 days.
pub const ID_MAX: i64 = 1 << 48;

/// 2.1.8 clears this much before it writes its headers; filler begins behind it.
const CLEARED_BYTES: usize = 160;
/// Offset of the extension's flags within the client header: behind the first part and two words.
const UPPER_FLAGS_OFFSET: usize = 32;
/// The header's length that 2.1.8 announces with `--trip-times`.
const SHARED_CLOCK_LENGTH: u32 = 108;
/// Offset in the datagram of when the stream began, in seconds and microseconds.
const BEGUN_OFFSET: usize = 112;
/// The least payload that can say that both ends have one clock.
pub const SHARED_CLOCK_BYTES_MIN: usize = 128;

#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct DatagramWords {
    id_low: U32,
    seconds: U32,
    microseconds: U32,
    id_high: U32,
}

/// Id and time of sending of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramHeader {
    /// Data: 1 and up (before 2.0.13: 0 and up). FIN: negative.
    pub id: i64,
    /// When it was sent by the sender's wall clock: seconds since 1970.
    pub sent_seconds: u32,
    /// And microseconds, 0 to 999999.
    pub sent_microseconds: u32,
}

impl DatagramHeader {
    /// Writes the header over the first 16 bytes of a payload that [`prepare_payload`] made.
    ///
    /// # Panics
    /// When the payload is shorter than 16 bytes.
    pub fn write_to(&self, payload: &mut [u8]) {
        payload[..CLIENT_HEADER_OFFSET].copy_from_slice(&self.to_bytes());
    }

    pub(super) fn to_bytes(self) -> [u8; CLIENT_HEADER_OFFSET] {
        let words = DatagramWords {
            id_low: (self.id as u32).into(),
            seconds: self.sent_seconds.into(),
            microseconds: self.sent_microseconds.into(),
            id_high: ((self.id >> 32) as u32).into(),
        };
        zerocopy::transmute!(words)
    }

    /// Reads the header of a datagram by what its own marks say.
    ///
    /// # Errors
    /// [`DatagramError::Truncated`] below 12 bytes, [`DatagramError::Id`] when the id cannot be
    /// true.
    /// ```
    /// use nicpoll_iperf::wire::DatagramHeader;
    ///
    /// // Datagram 1, sent half a second past second 7.
    /// let words = [1, 7, 500_000].map(u32::to_be_bytes).concat();
    /// let header = DatagramHeader::parse(&words)?;
    /// assert_eq!((header.id, header.sent_ns()), (1, 7_500_000_000));
    /// assert!(DatagramHeader::parse(b"short").is_err());
    /// # Ok::<(), nicpoll_iperf::wire::datagram::DatagramError>(())
    /// ```
    pub fn parse(payload: &[u8]) -> Result<Self, DatagramError> {
        let raw = RawDatagram::parse(payload)?;
        Dialect::of_client(&raw).header(&raw, 0)
    }

    /// When the datagram was sent, in nanoseconds since 1970. Fits an `i64` whatever the sender
    /// wrote.
    pub fn sent_ns(&self) -> i64 {
        i64::from(self.sent_seconds) * 1_000_000_000 + i64::from(self.sent_microseconds) * 1_000
    }
}

/// The words at the head of a datagram as they stand. What they mean depends on who sent them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawDatagram {
    pub(super) id_low: u32,
    pub(super) sent_seconds: u32,
    pub(super) sent_microseconds: u32,
    /// The words at 12, 16 and 20, which tell the dialects apart. `None` where the datagram ends
    /// before or within the word.
    pub(super) marks: [Option<u32>; 3],
}

impl RawDatagram {
    /// Reads the head of a received datagram.
    ///
    /// # Errors
    /// [`DatagramError::Truncated`] below 12 bytes.
    pub fn parse(payload: &[u8]) -> Result<Self, DatagramError> {
        let ([id_low, sent_seconds, sent_microseconds], rest) =
            <[U32; 3]>::read_from_prefix(payload).map_err(|_| DatagramError::Truncated {
                found_bytes: payload.len(),
            })?;
        let mark = |index: usize| {
            let bytes = rest.get(4 * index..)?.first_chunk()?;
            Some(u32::from_be_bytes(*bytes))
        };
        Ok(RawDatagram {
            id_low: id_low.get(),
            sent_seconds: sent_seconds.get(),
            sent_microseconds: sent_microseconds.get(),
            marks: [mark(0), mark(1), mark(2)],
        })
    }

    /// The first 16 bytes.
    pub(super) fn head(&self) -> [u8; CLIENT_HEADER_OFFSET] {
        let words = DatagramWords {
            id_low: self.id_low.into(),
            seconds: self.sent_seconds.into(),
            microseconds: self.sent_microseconds.into(),
            id_high: self.marks[0].unwrap_or(0).into(),
        };
        zerocopy::transmute!(words)
    }
}

/// Whether the sender of a datagram says that its clock and the receiver's are one, so that the time
/// of transit means something (`--trip-times`). A payload too short for the header says it by a flag
/// word of its own; anything else is a no.
pub fn has_shared_clock(payload: &[u8]) -> bool {
    let header = payload.get(CLIENT_HEADER_OFFSET..).unwrap_or_default();
    let Some(word) = header.first_chunk().copied().map(u32::from_be_bytes) else {
        return false;
    };
    let upper = header
        .get(UPPER_FLAGS_OFFSET..)
        .and_then(<[u8]>::first_chunk);
    let upper = upper.copied().map_or(0, u16::from_be_bytes);
    let has_header =
        word & (flags::EXTEND | flags::HAS_LENGTH) == flags::EXTEND | flags::HAS_LENGTH;
    word == flags::SHORT_TRIP_TIMES || has_header && upper & upper_flags::TRIP_TIMES != 0
}

/// Has a payload that [`prepare_payload`] made say that both ends have one clock, as 2.1.8 says it with
/// `--trip-times`: the header is longer by when the stream began, as a time since 1970.
///
/// # Panics
/// When the payload is shorter than [`SHARED_CLOCK_BYTES_MIN`].
pub fn mark_shared_clock(payload: &mut [u8], begun: Duration) {
    let mut change = |offset: usize, change: &dyn Fn(u32) -> u32| {
        if let Some(word) = payload[offset..].first_chunk_mut() {
            *word = change(u32::from_be_bytes(*word)).to_be_bytes();
        }
    };
    change(CLIENT_HEADER_OFFSET, &|word| {
        word & !flags::LENGTH_MASK | flags::UDP_TESTS | SHARED_CLOCK_LENGTH << 1
    });
    let upper = u32::from(upper_flags::TRIP_TIMES) << u16::BITS;
    change(CLIENT_HEADER_OFFSET + UPPER_FLAGS_OFFSET, &|word| {
        word | upper
    });
    change(BEGUN_OFFSET, &|_| begun.as_secs() as u32);
    change(BEGUN_OFFSET + 4, &|_| begun.subsec_micros());
}

/// Makes a payload ready for sending over and over: filler, and the client header at its place, or
/// as much of it as there is room for.
pub fn prepare_payload(payload: &mut [u8], client: &ClientHeader) {
    fill_payload(payload);
    let cleared = payload.len().min(CLEARED_BYTES);
    payload[..cleared].fill(0);
    if let Some(place) = payload.get_mut(CLIENT_HEADER_OFFSET..) {
        client.write_to(place);
    }
}

/// Why a datagram was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DatagramError {
    /// Too short for id and time.
    #[error(
        "a datagram of {found_bytes} bytes has no room for iperf's id and time, 12 bytes; \
         the peer does not speak iperf 2"
    )]
    Truncated {
        /// Length of the payload.
        found_bytes: usize,
    },
    /// The id is out of all proportion.
    #[error(
        "a datagram has the id {id}, beyond 2^48; the peer does not speak iperf 2 with 64-bit ids"
    )]
    Id {
        /// The id as read.
        id: i64,
    },
}
