//! The client header: what test a client asks for. TCP streams begin with it, every UDP datagram
//! has it at offset 16, or 12 up to 2.0.9.

use std::time::Duration;

use thiserror::Error;
use zerocopy::byteorder::big_endian::{I32, U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Dialect, RawDatagram, flags, upper_flags};
use crate::pace::Amount;

/// The part that every version since 2.0.2 has.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct BaseWords {
    flags: U32,
    threads: U32,
    port: U32,
    buffer_bytes: U32,
    window_or_rate: U32,
    amount: I32,
}

/// The part that 2.1.x adds. 2.0.10 to 2.0.13 put other things in as many bytes: the version and the
/// rate stand at the same places, the flags in one word for the upper and lower ones.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ExtensionWords {
    kind: U32,
    length: U32,
    upper_flags: U16,
    lower_flags: U16,
    version_upper: U32,
    version_lower: U32,
    reserved: U16,
    type_of_service: U16,
    rate_low: U32,
    rate_high: U32,
    write_prefetch: U32,
}

/// What 2.1.x adds behind that where the client states a start or a rate for the socket.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct StartWords {
    reserved: U32,
    start_seconds: U32,
    start_micros: U32,
    pacing_low: U32,
    pacing_high: U32,
}

/// What stands between over UDP: the words of frames, which are not sent here.
type FrameWords = [U32; 8];

/// What 2.0.8 and 2.0.9 add to the first part over UDP: the rate, before two words that are not written.
type OldRateWord = U32;

const BASE_BYTES: usize = size_of::<BaseWords>();
const EXTENSION_BYTES: usize = size_of::<ExtensionWords>();

const FRAME_BYTES: usize = size_of::<FrameWords>();
const START_BYTES: usize = size_of::<StartWords>();

/// Kind of the extension of 2.0.10 to 2.0.13; that of 2.1.x is 0.
const OLD_EXTENSION: u32 = 1;
/// Its flag for a rate in packets a second, in the lower half of the word.
const OLD_RATE_IN_PACKETS: u16 = 0x0001;

/// What stands where 2.0.10 to 2.0.13 write nothing into [`BaseWords::window_or_rate`],
const FILLER_AT_WINDOW: u32 = u32::from_be_bytes(*b"6789");
/// and behind the header up to 2.0.5, where 2.0.8 has an [`OldRateWord`],
const FILLER_AT_OLD_RATE: u32 = FILLER_AT_WINDOW;
/// and into [`ExtensionWords::rate_low`].
const FILLER_AT_RATE: u64 = u32::from_be_bytes(*b"8901") as u64;

/// The length that 2.1.8 announces over UDP: 16 bytes of datagram header, then the client header.
const UDP_LENGTH: u32 = 16 + ClientHeader::BYTES as u32;

/// iperf's version, as the peer states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Major number in the upper half, minor in the lower: 2.1 is `0x0002_0001`.
    pub upper: u32,
    /// Patch number in the upper half; the lowest four bits tell the kind of build, 3 being a
    /// release: 2.1.8 is `0x0008_0003`.
    pub lower: u32,
}

impl Version {
    /// The release whose dialect is spoken here.
    pub const V2_1_8: Version = Version {
        upper: 0x0002_0001,
        lower: 0x0008_0003,
    };
}

impl std::fmt::Display for Version {
    /// As 2.1.8 prints it: `2.1.8`, with the kind of build behind it unless it is a release.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (major, minor) = (self.upper >> 16, self.upper & 0xffff);
        let kind = match self.lower & 0xf {
            0 => "-dev",
            1 => "-rc",
            2 => "-rc2",
            3 => "",
            4 => "-private",
            5 => "-master",
            _ => "-unk",
        };
        write!(f, "{major}.{minor}.{}{kind}", self.lower >> 16)
    }
}

/// Times are told in these.
const TICK_NS: u128 = 10_000_000;

/// A number of bytes, or a number of ticks below 0.
fn amount_of_word(word: i32) -> Amount {
    match u64::try_from(word) {
        Ok(bytes) => Amount::Bytes(bytes),
        Err(_) => {
            let ticks = u64::from(word.unsigned_abs());
            Amount::Time(Duration::from_millis(10 * ticks))
        }
    }
}

/// As much of it as the field can hold, times rounded up.
fn word_of_amount(amount: Amount) -> i32 {
    match amount {
        Amount::Time(time) => {
            let ticks = time.as_nanos().div_ceil(TICK_NS).clamp(1, i32::MAX as u128);
            0i32.wrapping_sub_unsigned(ticks as u32)
        }
        Amount::Bytes(bytes) => i32::try_from(bytes).unwrap_or(i32::MAX),
    }
}

impl ExtensionWords {
    /// `None` when it is of no known kind.
    fn read(&self) -> Option<Extension> {
        let version = Version {
            upper: self.version_upper.get(),
            lower: self.version_lower.get(),
        };
        let rate_low = u64::from(self.rate_low.get());
        match self.kind.get() {
            0 => Some(Extension {
                upper_flags: self.upper_flags.get(),
                version,
                type_of_service: self.type_of_service.get(),
                rate_bps: u64::from(self.rate_high.get() >> 8) << 32 | rate_low,
            }),
            OLD_EXTENSION => {
                let in_packets = self.lower_flags.get() & OLD_RATE_IN_PACKETS != 0;
                Some(Extension {
                    upper_flags: if in_packets {
                        upper_flags::RATE_IN_PACKETS
                    } else {
                        0
                    },
                    version,
                    type_of_service: 0,
                    rate_bps: match rate_low {
                        FILLER_AT_RATE => 0,
                        asked => asked,
                    },
                })
            }
            _ => None,
        }
    }
}

/// What a client says beyond the first 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    /// [`upper_flags`](super::upper_flags). Of 2.0.10 to 2.0.13 only the rate's unit.
    pub upper_flags: u16,
    /// The client's version.
    pub version: Version,
    /// IP type of service that the client asks for (-S).
    pub type_of_service: u16,
    /// Rate in bits a second (-b), 0 to 2^56 - 1; 0 when none was asked for.
    pub rate_bps: u64,
}

/// What test a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientHeader {
    /// [`flags`](super::flags), the announced length included.
    pub flags: u32,
    /// Parallel streams (-P).
    pub threads: u32,
    /// The port that a stream in the other direction is to be sent to (-L).
    pub port: u32,
    /// Write length in bytes (-l); 0 when left to the server.
    pub buffer_bytes: u32,
    /// Up to 2.0.9 the window (TCP) or the rate (UDP) that was asked for; 0 from 2.0.10 on.
    pub window_or_rate: u32,
    /// How much the client means to send.
    pub amount: Amount,
    /// The rate that 2.0.8 and 2.0.9 state over UDP, in bits or, with
    /// [`flags::RATE_IN_PACKETS`](super::flags::RATE_IN_PACKETS), datagrams a second.
    pub old_rate: Option<u32>,
    /// `None` when the client did not send one. Of 2.0.10 to 2.0.13 it holds version and rate.
    pub extension: Option<Extension>,
    /// Bytes a second that the kernel is to pace the sender's socket to (`--fq-rate`).
    pub pacing_bytes_per_second: Option<u64>,
}

impl ClientHeader {
    /// Length with the extension.
    pub const BYTES: usize = BASE_BYTES + EXTENSION_BYTES;
    /// The longest there is here: over UDP, with the rate for the socket.
    pub const BYTES_MAX: usize = Self::BYTES + FRAME_BYTES + START_BYTES;

    /// The header that 2.1.8 sends over TCP without further options.
    pub fn for_tcp(port: u16, amount: Amount) -> Self {
        let length = (Self::BYTES as u32) << 1;
        Self::plain(flags::EXTEND | flags::HAS_LENGTH | length, port, amount, 0)
    }

    /// The header that 2.1.8 sends over UDP; `rate_bps` is its -b, which it always states there.
    pub fn for_udp(port: u16, amount: Amount, rate_bps: u64) -> Self {
        let flags = flags::EXTEND | flags::IDS_64_BIT | flags::HAS_LENGTH | UDP_LENGTH << 1;
        Self::plain(flags, port, amount, rate_bps)
    }

    /// The header that 2.0.5 sends over UDP, which has no extension. A rate beyond 2^32 - 1 counts as
    /// that.
    pub fn for_udp_v2_0_5(port: u16, amount: Amount, rate_bps: u64) -> Self {
        ClientHeader {
            window_or_rate: rate_bps.try_into().unwrap_or(u32::MAX),
            extension: None,
            ..Self::plain(0, port, amount, 0)
        }
    }

    /// The header that 2.0.8 sends over UDP. A rate beyond 2^32 - 1 counts as that.
    pub fn for_udp_v2_0_8(port: u16, amount: Amount, rate_bps: u64) -> Self {
        ClientHeader {
            old_rate: Some(rate_bps.try_into().unwrap_or(u32::MAX)),
            extension: None,
            ..Self::plain(0, port, amount, 0)
        }
    }

    fn plain(flags: u32, port: u16, amount: Amount, rate_bps: u64) -> Self {
        ClientHeader {
            flags,
            threads: 1,
            port: u32::from(port),
            buffer_bytes: 0,
            window_or_rate: 0,
            amount,
            old_rate: None,
            pacing_bytes_per_second: None,
            extension: Some(Extension {
                upper_flags: 0,
                version: Version::V2_1_8,
                type_of_service: 0,
                rate_bps,
            }),
        }
    }

    /// Asks the sender to have its socket paced (`--fq-rate`). The header must have an extension.
    pub fn pace(&mut self, bytes_per_second: u64) {
        let over_udp = self.is_of_datagrams();
        // 2.1.8 counts the words of frames in, but not those of the start.
        let more_bytes = if over_udp { FRAME_BYTES } else { START_BYTES };
        self.flags += (more_bytes as u32) << 1;
        if over_udp {
            self.flags |= flags::UDP_TESTS;
        }
        if let Some(extension) = &mut self.extension {
            extension.upper_flags |= upper_flags::PACED;
        }
        self.pacing_bytes_per_second = Some(bytes_per_second);
    }

    /// Length over TCP of what [`write_to`](Self::write_to) writes.
    pub fn tcp_bytes(&self) -> usize {
        let start = self.pacing_bytes_per_second.map_or(0, |_| START_BYTES);
        Self::BYTES + start
    }

    /// The type of service that is asked for, if one is.
    pub fn type_of_service(&self) -> Option<u8> {
        let service = self.extension?.type_of_service as u8;
        (service != 0).then_some(service)
    }

    fn is_of_datagrams(&self) -> bool {
        self.flags & flags::IDS_64_BIT != 0
    }

    /// Writes as much of the header as fits and returns how many bytes that was. Short UDP payloads
    /// carry the beginning only.
    pub fn write_to(&self, out: &mut [u8]) -> usize {
        let base = BaseWords {
            flags: self.flags.into(),
            threads: self.threads.into(),
            port: self.port.into(),
            buffer_bytes: self.buffer_bytes.into(),
            window_or_rate: self.window_or_rate.into(),
            amount: word_of_amount(self.amount).into(),
        };
        let extension = self.extension.map(|extension| ExtensionWords {
            kind: U32::ZERO,
            length: U32::ZERO,
            upper_flags: extension.upper_flags.into(),
            lower_flags: U16::ZERO,
            version_upper: extension.version.upper.into(),
            version_lower: extension.version.lower.into(),
            reserved: U16::ZERO,
            type_of_service: extension.type_of_service.into(),
            rate_low: (extension.rate_bps as u32).into(),
            // The upper half is sent shifted left by 8.
            rate_high: (((extension.rate_bps >> 32) as u32) << 8).into(),
            write_prefetch: U32::ZERO,
        });
        let old_rate = self.old_rate.map(OldRateWord::new);
        let start = self.pacing_bytes_per_second.map(|pacing| StartWords {
            reserved: U32::ZERO,
            start_seconds: U32::ZERO,
            start_micros: U32::ZERO,
            pacing_low: (pacing as u32).into(),
            pacing_high: ((pacing >> 32) as u32).into(),
        });
        let frames = start.as_ref().filter(|_| self.is_of_datagrams());
        let frames = frames.map(|_| FrameWords::default());
        let words = [
            Some(base.as_bytes()),
            old_rate.as_ref().map(IntoBytes::as_bytes),
            extension.as_ref().map(IntoBytes::as_bytes),
            frames.as_ref().map(IntoBytes::as_bytes),
            start.as_ref().map(IntoBytes::as_bytes),
        ];
        let bytes = words.into_iter().flatten().flatten();
        out.iter_mut()
            .zip(bytes)
            .map(|(place, byte)| *place = *byte)
            .count()
    }

    /// Reads the header at the head of a TCP stream; `None` when the stream has none and the bytes
    /// are data already. Bytes behind the header are not looked at.
    ///
    /// # Errors
    /// [`HeaderError::Truncated`] when `bytes` ends before the header does, [`HeaderError::Length`]
    /// when the header states a length that cannot be.
    pub fn parse_tcp(bytes: &[u8]) -> Result<Option<Self>, HeaderError> {
        let truncated = |needed_bytes| HeaderError::Truncated {
            needed_bytes,
            found_bytes: bytes.len(),
        };
        let flags = bytes.first_chunk().ok_or(truncated(4))?;
        let length = tcp_length(u32::from_be_bytes(*flags))?;
        if length == 0 {
            return Ok(None);
        }
        let header = bytes.get(..length).ok_or(truncated(length))?;
        let header = Self::from_prefix(header).ok_or(truncated(BASE_BYTES))?;
        Ok(Some(header))
    }

    /// Reads the header of a UDP datagram, which lies behind the datagram's own; `None` when there is
    /// none. Of 2.0.10 to 2.0.12, whose -d and -r do not work between themselves, none is read.
    pub fn parse_udp(payload: &[u8]) -> Option<Self> {
        let dialect = Dialect::of_client(&RawDatagram::parse(payload).ok()?);
        let mut header = Self::from_prefix(payload.get(dialect.client_header_offset()..)?)?;
        let is_v1 = dialect == Dialect::V2_0_2;
        if is_v1 {
            let behind = payload.get(dialect.client_header_offset() + BASE_BYTES..)?;
            let rate = behind.first_chunk().copied().map(u32::from_be_bytes);
            header.old_rate = rate.filter(|rate| *rate != FILLER_AT_OLD_RATE);
        }
        if !is_v1 && header.flags & flags::IDS_64_BIT == 0 {
            return None;
        }
        if is_v1 || header.flags & flags::EXTEND == 0 {
            header.extension = None;
        }
        Some(header)
    }

    /// Reads what there is of a header; bytes behind it are not looked at.
    fn from_prefix(bytes: &[u8]) -> Option<Self> {
        let (base, rest) = BaseWords::read_from_prefix(bytes).ok()?;
        let extension = ExtensionWords::read_from_prefix(rest).ok();
        let behind = extension.as_ref().map(|(_, behind)| *behind);
        let extension = extension.and_then(|(words, _)| words.read());
        let flags = base.flags.get();
        Some(ClientHeader {
            flags,
            threads: base.threads.get(),
            port: base.port.get(),
            buffer_bytes: base.buffer_bytes.get(),
            window_or_rate: match base.window_or_rate.get() {
                FILLER_AT_WINDOW => 0,
                asked => asked,
            },
            amount: amount_of_word(base.amount.get()),
            old_rate: None,
            pacing_bytes_per_second: extension
                .filter(|extension| extension.upper_flags & upper_flags::PACED != 0)
                .and_then(|_| pacing(behind?, flags)),
            extension,
        })
    }

    /// Whether any of the extension's `upper_flags` is set.
    pub fn asks_for(&self, upper_flags: u16) -> bool {
        self.extension
            .is_some_and(|extension| extension.upper_flags & upper_flags != 0)
    }
}

/// The rate for the socket, in what follows the extension.
fn pacing(behind: &[u8], flag_word: u32) -> Option<u64> {
    let frames = match flag_word & flags::IDS_64_BIT {
        0 => 0,
        _ => FRAME_BYTES,
    };
    let (start, _) = StartWords::read_from_prefix(behind.get(frames..)?).ok()?;
    let (high, low) = (start.pacing_high.get(), start.pacing_low.get());
    Some(u64::from(high) << 32 | u64::from(low)).filter(|rate| *rate > 0)
}

/// Length of the header of a TCP stream whose first word is `flag_word`, that word included; 0 when
/// there is no header.
///
/// # Errors
/// [`HeaderError::Length`] for a length below 24 bytes.
pub(super) fn tcp_length(flag_word: u32) -> Result<usize, HeaderError> {
    if flag_word & (flags::DUAL | flags::VERSION2 | flags::EXTEND) == 0 {
        return Ok(0);
    }
    if flag_word & flags::HAS_LENGTH != 0 {
        let announced_bytes = ((flag_word & flags::LENGTH_MASK) >> 1) as usize;
        return if announced_bytes < BASE_BYTES {
            Err(HeaderError::Length { announced_bytes })
        } else {
            Ok(announced_bytes)
        };
    }
    let has_extension = flag_word & (flags::VERSION2 | flags::EXTEND) != 0;
    Ok(BASE_BYTES + if has_extension { EXTENSION_BYTES } else { 0 })
}

/// Why a client header could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The bytes end before the header does.
    #[error(
        "the client's header needs {needed_bytes} bytes and {found_bytes} are there; \
         read more before parsing it"
    )]
    Truncated {
        /// Length that the header has.
        needed_bytes: usize,
        /// Bytes that were given.
        found_bytes: usize,
    },
    /// The header states a length that cannot hold its own first part.
    #[error(
        "the client's header states a length of {announced_bytes} bytes, 24 is the least; \
         the peer is not an iperf 2 client"
    )]
    Length {
        /// What it states.
        announced_bytes: usize,
    },
    /// The client wants a stream to a port that no socket can have.
    #[error(
        "the client asks for a stream to its port {port}, 1 to 65535 are possible; \
         see that it is an iperf 2 client"
    )]
    Port {
        /// What it states.
        port: u32,
    },
}
