//! The server's answer to a FIN ("AckFIN"), which carries what the server counted.

use std::time::Duration;

use thiserror::Error;
use zerocopy::byteorder::big_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Marks a report.
const REPORT: u32 = 0x8000_0000;
/// The words on transit times are valid.
const TRANSIT_VALID: u32 = 0x4000_0000;
/// The upper halves of the counters are valid.
const COUNTERS_64_BIT: u32 = 0x0800_0000;

/// Where the report begins from 2.0.10 on: behind the datagram header.
const BASE: usize = 16;
/// Where it begins up to 2.0.9, whose datagram header is 12 bytes long.
const OLD_BASE: usize = 12;

/// What every version sends.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ReportWords {
    flags: U32,
    bytes_high: U32,
    bytes_low: U32,
    stop_seconds: U32,
    stop_microseconds: U32,
    errors: U32,
    out_of_order: U32,
    datagrams: U32,
    jitter_seconds: U32,
    jitter_microseconds: U32,
}

/// What 2.0.13 and later send behind it.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct LaterWords {
    transit: [U32; 15],
    errors_high: U32,
    out_of_order_high: U32,
    datagrams_high: U32,
}

/// What a UDP server counted, by its own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// Payload received, the FIN included.
    pub bytes: u64,
    /// From the first datagram to the FIN; whole microseconds below 2^32 seconds are sent.
    pub elapsed: Duration,
    /// Datagrams that did not arrive.
    pub lost: u64,
    /// Datagrams that arrived after a later one.
    pub out_of_order: u64,
    /// The highest id, that of the FIN included: one more than the client's datagrams of data.
    pub datagrams: u64,
    /// Jitter after RFC 3550 section 6.4.1; whole microseconds below 2^32 seconds are sent.
    pub jitter: Duration,
}

impl ServerReport {
    /// Length of 2.1.8's answer, and the least that every older client reads.
    pub const BYTES: usize = BASE + size_of::<ReportWords>() + size_of::<LaterWords>();

    /// The answer as 2.1.8 sends it, without transit times.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let (elapsed_seconds, elapsed_microseconds) = time_words(self.elapsed);
        let (jitter_seconds, jitter_microseconds) = time_words(self.jitter);
        let words = ReportWords {
            flags: (REPORT | COUNTERS_64_BIT).into(),
            bytes_high: high(self.bytes),
            bytes_low: low(self.bytes),
            stop_seconds: elapsed_seconds,
            stop_microseconds: elapsed_microseconds,
            errors: low(self.lost),
            out_of_order: low(self.out_of_order),
            datagrams: low(self.datagrams),
            jitter_seconds,
            jitter_microseconds,
        };
        let later = LaterWords {
            transit: [U32::ZERO; 15],
            errors_high: high(self.lost),
            out_of_order_high: high(self.out_of_order),
            datagrams_high: high(self.datagrams),
        };
        let mut bytes = [0; Self::BYTES];
        let (base, rest) = bytes[BASE..].split_at_mut(size_of::<ReportWords>());
        base.copy_from_slice(words.as_bytes());
        rest.copy_from_slice(later.as_bytes());
        bytes
    }

    /// Reads a whole answer, of 2.0.2 to 2.0.9 or of 2.0.13 and later. The answer of 2.0.10 to 2.0.12
    /// has the same marks as the latter and is read like it, which makes its jitter wrong.
    ///
    /// # Errors
    /// [`ReportError::NotAReport`] when the marks of a report are at neither place.
    pub fn parse(message: &[u8]) -> Result<Self, ReportError> {
        Self::parse_at(message, OLD_BASE)
            .or_else(|| Self::parse_at(message, BASE))
            .ok_or(ReportError::NotAReport {
                found_bytes: message.len(),
            })
    }

    fn parse_at(message: &[u8], base: usize) -> Option<Self> {
        let (words, rest) = ReportWords::read_from_prefix(message.get(base..)?).ok()?;
        let flags = words.flags.get();
        let known = REPORT | TRANSIT_VALID | COUNTERS_64_BIT;
        if flags & REPORT == 0 || flags & !known != 0 {
            return None;
        }
        let later = (flags & COUNTERS_64_BIT != 0)
            .then(|| LaterWords::read_from_prefix(rest).ok())
            .flatten()
            .map(|(later, _)| later);
        let wide = |low: U32, high: fn(&LaterWords) -> U32| {
            let high = later.as_ref().map_or(0, |later| high(later).get());
            u64::from(high) << 32 | u64::from(low.get())
        };
        Some(ServerReport {
            bytes: u64::from(words.bytes_high.get()) << 32 | u64::from(words.bytes_low.get()),
            elapsed: time(words.stop_seconds, words.stop_microseconds),
            lost: wide(words.errors, |later| later.errors_high),
            out_of_order: wide(words.out_of_order, |later| later.out_of_order_high),
            datagrams: wide(words.datagrams, |later| later.datagrams_high),
            jitter: time(words.jitter_seconds, words.jitter_microseconds),
        })
    }
}

fn high(value: u64) -> U32 {
    U32::new((value >> 32) as u32)
}

fn low(value: u64) -> U32 {
    U32::new(value as u32)
}

fn time_words(time: Duration) -> (U32, U32) {
    (low(time.as_secs()), U32::new(time.subsec_micros()))
}

fn time(seconds: U32, microseconds: U32) -> Duration {
    Duration::from_secs(u64::from(seconds.get()))
        + Duration::from_micros(u64::from(microseconds.get()))
}

/// Why a message is not a server's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReportError {
    /// Too short, or without the marks of a report.
    #[error(
        "a message of {found_bytes} bytes is not an iperf 2 server report; \
         take it for an acknowledgement without one"
    )]
    NotAReport {
        /// Length of the message.
        found_bytes: usize,
    },
}
