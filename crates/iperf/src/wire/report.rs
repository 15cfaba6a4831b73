//! The server's answer to a FIN ("AckFIN"), which carries what the server counted.

use std::time::Duration;

use thiserror::Error;
use zerocopy::byteorder::big_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Dialect, RawDatagram};

/// Marks a report.
const REPORT: u32 = 0x8000_0000;
/// The words on transit times are valid.
const TRANSIT_VALID: u32 = 0x4000_0000;
/// The upper halves of the counters are valid.
const COUNTERS_64_BIT: u32 = 0x0800_0000;

/// A least time of transit beyond a minute: 2.0.8 takes it for a difference of the clocks, and leaves
/// the times of transit out.
const TRANSIT_UNKNOWN_SECONDS: u32 = 3600;

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

/// What 2.0.8 and 2.0.9 send behind it, and read whatever the flags say.
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct V2_0_8Words {
    transit_min_seconds: U32,
    transit: [U32; 12],
    /// Datagrams a second. At 0 such a client prints what happens to stand in its memory instead of
    /// the loss in per cent.
    rate_datagrams: U32,
    /// It divides the rate by this.
    rate_seconds: U32,
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

/// What 2.0.10 to 2.0.12 send: the upper half of the datagrams stands in the middle.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct V2_0_10Words {
    flags: U32,
    bytes_high: U32,
    bytes_low: U32,
    stop_seconds: U32,
    stop_microseconds: U32,
    errors: U32,
    out_of_order: U32,
    datagrams_low: U32,
    datagrams_high: U32,
    jitter_seconds: U32,
    jitter_microseconds: U32,
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
    /// Length of 2.1.8's answer. No older client asks for more before it reads it.
    pub const BYTES: usize = BASE + size_of::<ReportWords>() + size_of::<LaterWords>();

    /// The answer to a FIN, at the place and in the layout that the client's version looks for.
    /// Transit times are not told. Before it, versions up to 2.0.12 find their FIN's header again,
    /// as their own servers leave it there.
    pub fn answer(&self, client: Dialect, fin: &RawDatagram) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        match client {
            Dialect::V2_0_2 | Dialect::V2_0_8 | Dialect::HeaderlessV2_0 => {
                bytes[..OLD_BASE].copy_from_slice(&fin.head()[..OLD_BASE]);
                let (words, rest) = bytes[OLD_BASE..].split_at_mut(size_of::<ReportWords>());
                put(words, &self.words(REPORT, saturated));
                put(rest, &self.v2_0_8_words());
            }
            Dialect::V2_0_10 => {
                bytes[..BASE].copy_from_slice(&fin.head());
                put(&mut bytes[BASE..], &self.v2_0_10_words());
            }
            Dialect::V2_0_13 | Dialect::V2_1 | Dialect::HeaderlessLater | Dialect::Unknown => {
                return self.to_bytes();
            }
        }
        bytes
    }

    /// The answer as 2.1.8 sends it, without transit times.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let words = self.words(REPORT | COUNTERS_64_BIT, low);
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

    /// What every version sends, its counters made 32 bits wide by `narrow`.
    fn words(&self, flags: u32, narrow: fn(u64) -> U32) -> ReportWords {
        let (stop_seconds, stop_microseconds) = time_words(self.elapsed);
        let (jitter_seconds, jitter_microseconds) = time_words(self.jitter);
        ReportWords {
            flags: flags.into(),
            bytes_high: high(self.bytes),
            bytes_low: low(self.bytes),
            stop_seconds,
            stop_microseconds,
            errors: narrow(self.lost),
            out_of_order: narrow(self.out_of_order),
            datagrams: narrow(self.datagrams),
            jitter_seconds,
            jitter_microseconds,
        }
    }

    fn v2_0_8_words(&self) -> V2_0_8Words {
        let rate = self.datagrams as f64 / self.elapsed.as_secs_f64();
        V2_0_8Words {
            transit_min_seconds: TRANSIT_UNKNOWN_SECONDS.into(),
            transit: [U32::ZERO; 12],
            rate_datagrams: (rate.min(f64::from(i32::MAX)) as u32).max(1).into(),
            rate_seconds: 1.into(),
        }
    }

    fn v2_0_10_words(&self) -> V2_0_10Words {
        let words = self.words(REPORT, saturated);
        V2_0_10Words {
            flags: words.flags,
            bytes_high: words.bytes_high,
            bytes_low: words.bytes_low,
            stop_seconds: words.stop_seconds,
            stop_microseconds: words.stop_microseconds,
            errors: words.errors,
            out_of_order: words.out_of_order,
            datagrams_low: low(self.datagrams),
            datagrams_high: high(self.datagrams),
            jitter_seconds: words.jitter_seconds,
            jitter_microseconds: words.jitter_microseconds,
        }
    }

    /// Reads a whole answer of any version. 2.0.10 to 2.0.12 set the same marks as an answer of 2.0.13
    /// with 32-bit counters would have; when nothing is known of the server, such an answer is theirs if
    /// what would be the jitter is 0.
    ///
    /// # Errors
    /// [`ReportError::NotAReport`] when the marks of a report are at neither place.
    pub fn parse(message: &[u8], server: Dialect) -> Result<Self, ReportError> {
        Self::parse_at(message, OLD_BASE)
            .or_else(|| Self::parse_v2_0_10(message, server))
            .or_else(|| Self::parse_at(message, BASE))
            .ok_or(ReportError::NotAReport {
                found_bytes: message.len(),
            })
    }

    fn parse_v2_0_10(message: &[u8], server: Dialect) -> Option<Self> {
        let (words, _) = V2_0_10Words::read_from_prefix(message.get(BASE..)?).ok()?;
        if words.flags.get() & !TRANSIT_VALID != REPORT {
            return None;
        }
        let is_plausible = words.datagrams_high == U32::ZERO && words.jitter_seconds == U32::ZERO;
        if server != Dialect::V2_0_10 && !is_plausible {
            return None;
        }
        Some(ServerReport {
            bytes: wide(words.bytes_high, words.bytes_low),
            elapsed: time(words.stop_seconds, words.stop_microseconds),
            lost: words.errors.get().into(),
            out_of_order: words.out_of_order.get().into(),
            datagrams: wide(words.datagrams_high, words.datagrams_low),
            jitter: time(words.jitter_seconds, words.jitter_microseconds),
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
        let upper = |of: fn(&LaterWords) -> U32| later.as_ref().map_or(U32::ZERO, of);
        Some(ServerReport {
            bytes: wide(words.bytes_high, words.bytes_low),
            elapsed: time(words.stop_seconds, words.stop_microseconds),
            lost: wide(upper(|later| later.errors_high), words.errors),
            out_of_order: wide(upper(|later| later.out_of_order_high), words.out_of_order),
            datagrams: wide(upper(|later| later.datagrams_high), words.datagrams),
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

/// A counter for a client that knows no upper half.
fn saturated(value: u64) -> U32 {
    U32::new(value.try_into().unwrap_or(u32::MAX))
}

fn wide(high: U32, low: U32) -> u64 {
    u64::from(high.get()) << 32 | u64::from(low.get())
}

/// Writes words to the beginning of a place that has room for them.
fn put(place: &mut [u8], words: &(impl IntoBytes + Immutable)) {
    let bytes = words.as_bytes();
    place[..bytes.len()].copy_from_slice(bytes);
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
#[non_exhaustive]
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
