//! The client header, which requests a test, and the server's acknowledgement of it. TCP streams begin with the
//! header; UDP datagrams have it at offset 16, or 12 up to 2.0.9.

use std::time::Duration;

use thiserror::Error;

/// Default port of both ends, TCP and UDP.
pub const DEFAULT_PORT: u16 = 5001;

/// Bits of the first word of a [`ClientHeader`].
pub mod flags {
    /// The client requests a stream in the other direction over a separate connection (-d, -r).
    pub const DUAL: u32 = 0x8000_0000;
    /// An [`Extension`](super::Extension) follows the first 24 bytes.
    pub const EXTEND: u32 = 0x4000_0000;
    /// The extension has more options for a UDP test.
    pub const UDP_TESTS: u32 = 0x2000_0000;
    /// Datagram ids have 64 bits.
    pub const IDS_64_BIT: u32 = 0x0800_0000;
    /// The client requests a stream in the other direction on the same socket, or an acknowledgement
    /// (`--reverse`, `--full-duplex`, -X).
    pub const VERSION2: u32 = 0x0400_0000;
    /// The client waits for an acknowledgement of the header (-X).
    pub const PEER_DETECT: u32 = 0x0200_0000;
    /// Bits 1 to 8 hold the header's length.
    pub const HAS_LENGTH: u32 = 0x0001_0000;
    /// The header's length, shifted left by one.
    pub const LENGTH_MASK: u32 = 0x0000_01FE;
    /// 2.0.8 and 2.0.9 only: the rate is in datagrams per second, not bits.
    pub const RATE_IN_PACKETS: u32 = 0x0000_0002;
    /// With [`DUAL`]: the other direction starts at once (-d), not after the first one (-r).
    pub const RUN_NOW: u32 = 0x0000_0001;
}

/// Bits of [`Extension::upper_flags`].
pub mod upper_flags {
    /// The receiver of a UDP stream does not answer its FIN.
    pub const NO_UDP_FIN: u16 = 0x0008;
    /// The rate is in datagrams per second, not bits.
    pub const RATE_IN_PACKETS: u16 = 0x0080;
    /// The server sends, the client receives (-R).
    pub const REVERSE: u16 = 0x0400;
    /// Both send on the one socket (`--full-duplex`).
    pub const FULL_DUPLEX: u16 = 0x0800;
}

/// Words of the part common to all versions since 2.0.2: flags, threads, port, write length, window or rate,
/// amount.
const BASE_WORDS: usize = 6;
/// Words that 2.1.x adds: kind, length, flags (upper and lower half), version (2), type of service, rate (2),
/// write prefetch. 2.0.10 to 2.0.13 have version and rate at the same offsets.
const EXTENSION_WORDS: usize = 9;
pub(super) const BASE_BYTES: usize = 4 * BASE_WORDS;

/// Kind of the extension in 2.0.10 to 2.0.13; 0 in 2.1.x.
const OLD_EXTENSION: u32 = 1;
/// Its flag for a rate in packets per second.
const OLD_RATE_IN_PACKETS: u32 = 0x0001;

/// Filler that 2.0.10 to 2.0.13 leave in place of the window,
const FILLER_AT_WINDOW: u32 = u32::from_be_bytes(*b"6789");
/// and in the lower word of their rate.
const FILLER_AT_RATE: u32 = u32::from_be_bytes(*b"8901");

/// The length that 2.1.8 announces over UDP: 16 bytes of datagram header and the client header.
const UDP_LENGTH: u32 = 16 + ClientHeader::BYTES as u32;
/// The longest header that the length field can announce.
pub const HEADER_BYTES_MAX: usize = 255;

/// The header's unit of time.
const TICK_NS: u128 = 10_000_000;

/// Reads the first words of a message; `None` when it is too short.
pub(super) fn read_words<const N: usize>(bytes: &[u8]) -> Option<[u32; N]> {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.get(..4 * N)?.chunks(4)) {
        *word = u32::from_be_bytes(*bytes.first_chunk()?);
    }
    Some(words)
}

/// Writes as many words as fit, the last one possibly in part; returns the number of bytes.
pub(super) fn write_words(out: &mut [u8], words: impl IntoIterator<Item = u32>) -> usize {
    let bytes = words.into_iter().flat_map(u32::to_be_bytes);
    let written = out.iter_mut().zip(bytes);
    written.map(|(place, byte)| *place = byte).count()
}

pub(super) fn high(value: u64) -> u32 {
    (value >> 32) as u32
}

pub(super) fn wide(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Fills a payload as iperf does: the byte at offset k is the digit k mod 10.
pub fn fill_payload(payload: &mut [u8]) {
    for (byte, digit) in payload.iter_mut().zip((b'0'..=b'9').cycle()) {
        *byte = digit;
    }
}

/// How much to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// For this long.
    Time(Duration),
    /// This many bytes of payload.
    Bytes(u64),
}

impl Amount {
    /// Until interrupted (-t 0).
    pub(crate) const ENDLESS: Amount = Amount::Time(Duration::MAX);

    /// Decodes the field: bytes if positive, ticks if negative.
    fn of_word(word: u32) -> Self {
        let word = word as i32;
        match u64::try_from(word) {
            Ok(bytes) => Amount::Bytes(bytes),
            Err(_) => Amount::Time(Duration::from_millis(10 * u64::from(word.unsigned_abs()))),
        }
    }

    /// Encodes the field; rounds times up and saturates.
    fn word(self) -> u32 {
        match self {
            Amount::Time(time) => {
                let ticks = time.as_nanos().div_ceil(TICK_NS).clamp(1, i32::MAX as u128);
                (ticks as u32).wrapping_neg()
            }
            Amount::Bytes(bytes) => bytes.min(i32::MAX as u64) as u32,
        }
    }
}

/// An iperf version, as stated by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Major number in the upper half, minor in the lower: 2.1 is `0x0002_0001`.
    pub upper: u32,
    /// Patch number in the upper half; the lowest four bits are the kind of build, 3 for a release: 2.1.8 is
    /// `0x0008_0003`.
    pub lower: u32,
}

impl Version {
    /// The release whose protocol this crate speaks.
    pub const V2_1_8: Version = Version {
        upper: 0x0002_0001,
        lower: 0x0008_0003,
    };
}

impl std::fmt::Display for Version {
    /// As 2.1.8 prints it: `2.1.8`, followed by the kind of build unless it is a release.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const KINDS: [&str; 6] = ["-dev", "-rc", "-rc2", "", "-private", "-master"];
        let (major, minor) = (self.upper >> 16, self.upper & 0xffff);
        let kind = KINDS.get((self.lower & 0xf) as usize).unwrap_or(&"-unk");
        write!(f, "{major}.{minor}.{}{kind}", self.lower >> 16)
    }
}

/// Direction of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directions {
    /// From the client to the server.
    #[default]
    Forward,
    /// From the server to the client, over the client's socket (-R).
    Reverse,
    /// In both directions at once over the client's socket (`--full-duplex`).
    FullDuplex,
    /// In both directions, with a separate socket from server to client.
    Dual {
        /// The client's port for the server's stream (-L).
        port: u16,
        /// Whether it starts at once (-d) or after the client's stream (-r).
        is_at_once: bool,
    },
}

/// What a client states after the first 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    /// [`upper_flags`]. For 2.0.10 to 2.0.13, only the unit of the rate.
    pub upper_flags: u16,
    /// The client's version.
    pub version: Version,
    /// IP type of service that the client requests (-S).
    pub type_of_service: u16,
    /// Rate in bit/s (-b), 0 to 2^56 - 1; 0 if none was requested.
    pub rate_bps: u64,
}

impl Extension {
    /// `None` for an unknown kind.
    fn read(words: [u32; EXTENSION_WORDS]) -> Option<Self> {
        let [
            kind,
            _,
            flags,
            upper,
            lower,
            service,
            rate_low,
            rate_high,
            _,
        ] = words;
        let version = Version { upper, lower };
        match kind {
            0 => Some(Extension {
                upper_flags: (flags >> 16) as u16,
                version,
                type_of_service: service as u16,
                rate_bps: wide(rate_high >> 8, rate_low),
            }),
            OLD_EXTENSION => Some(Extension {
                upper_flags: match flags & OLD_RATE_IN_PACKETS {
                    0 => 0,
                    _ => upper_flags::RATE_IN_PACKETS,
                },
                version,
                type_of_service: 0,
                rate_bps: match rate_low {
                    FILLER_AT_RATE => 0,
                    asked => asked.into(),
                },
            }),
            _ => None,
        }
    }

    fn words(&self) -> [u32; EXTENSION_WORDS] {
        let Version { upper, lower } = self.version;
        let flags = u32::from(self.upper_flags) << 16;
        // The upper half of the rate is sent shifted left by 8.
        let (rate_low, rate_high) = (self.rate_bps as u32, high(self.rate_bps) << 8);
        let service = self.type_of_service.into();
        [0, 0, flags, upper, lower, service, rate_low, rate_high, 0]
    }
}

/// A client's request for a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientHeader {
    /// [`flags`], including the announced length.
    pub flags: u32,
    /// Parallel streams (-P).
    pub threads: u32,
    /// The client's port for a stream in the other direction (-L).
    pub port: u32,
    /// Write length in bytes (-l); 0 leaves it to the server.
    pub buffer_bytes: u32,
    /// Up to 2.0.9, the requested window (TCP) or rate (UDP); 0 since 2.0.10.
    pub window_or_rate: u32,
    /// How much the client will send.
    pub amount: Amount,
    /// Rate of 2.0.8 and 2.0.9 over UDP, in bits or, with [`flags::RATE_IN_PACKETS`], datagrams per second.
    pub old_rate: Option<u32>,
    /// `None` if the client sent none. For 2.0.10 to 2.0.13, it holds version and rate.
    pub extension: Option<Extension>,
}

impl ClientHeader {
    /// Length including the extension.
    pub const BYTES: usize = BASE_BYTES + 4 * EXTENSION_WORDS;

    /// The header that 2.1.8 sends over TCP without further options.
    pub fn for_tcp(port: u16, amount: Amount) -> Self {
        let length = (Self::BYTES as u32) << 1;
        Self::plain(flags::EXTEND | flags::HAS_LENGTH | length, port, amount, 0)
    }

    /// The header that 2.1.8 sends over UDP; `rate_bps` is -b, which it always states.
    pub fn for_udp(port: u16, amount: Amount, rate_bps: u64) -> Self {
        let flags = flags::EXTEND | flags::IDS_64_BIT | flags::HAS_LENGTH | UDP_LENGTH << 1;
        Self::plain(flags, port, amount, rate_bps)
    }

    /// The header that 2.0.5 sends over UDP, without an extension. The rate saturates at 2^32 - 1.
    pub fn for_udp_v2_0_5(port: u16, amount: Amount, rate_bps: u64) -> Self {
        ClientHeader {
            window_or_rate: rate_bps.try_into().unwrap_or(u32::MAX),
            extension: None,
            ..Self::plain(0, port, amount, 0)
        }
    }

    /// The header that 2.0.8 sends over UDP. The rate saturates at 2^32 - 1.
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
            extension: Some(Extension {
                upper_flags: 0,
                version: Version::V2_1_8,
                type_of_service: 0,
                rate_bps,
            }),
        }
    }

    /// The requested type of service, if any.
    pub fn type_of_service(&self) -> Option<u8> {
        let service = self.extension?.type_of_service as u8;
        (service != 0).then_some(service)
    }

    fn is_of_datagrams(&self) -> bool {
        self.flags & flags::IDS_64_BIT != 0
    }

    fn set_upper_flags(&mut self, upper_flags: u16) {
        if let Some(extension) = &mut self.extension {
            extension.upper_flags |= upper_flags;
        }
    }

    /// Writes as much of the header as fits; returns the number of bytes. Short UDP payloads carry only its
    /// start.
    pub fn write_to(&self, out: &mut [u8]) -> usize {
        let base: [u32; BASE_WORDS] = [
            self.flags,
            self.threads,
            self.port,
            self.buffer_bytes,
            self.window_or_rate,
            self.amount.word(),
        ];
        let extension = self.extension.map(|extension| extension.words());
        let words = base
            .into_iter()
            .chain(self.old_rate)
            .chain(extension.into_iter().flatten());
        write_words(out, words)
    }

    /// Parses the header at the start of a TCP stream; `None` when the stream starts with data. Ignores bytes
    /// after the header.
    ///
    /// # Errors
    /// When `bytes` ends within the header, or the header states an impossible length.
    pub fn parse_tcp(bytes: &[u8]) -> Result<Option<Self>, HeaderError> {
        let truncated = |needed_bytes| {
            let found_bytes = bytes.len();
            HeaderError(format!(
                "the client's header needs {needed_bytes} bytes and {found_bytes} are there; \
                 read more before parsing it"
            ))
        };
        let length = header_length(*bytes.first_chunk().ok_or_else(|| truncated(4))?)?;
        if length == 0 {
            return Ok(None);
        }
        let header = bytes.get(..length).ok_or_else(|| truncated(length))?;
        let header = Self::from_prefix(header).ok_or_else(|| truncated(BASE_BYTES))?;
        Ok(Some(header))
    }

    /// Reads as much of a header as is there; ignores bytes after it.
    pub(super) fn from_prefix(bytes: &[u8]) -> Option<Self> {
        let [flags, threads, port, buffer_bytes, window_or_rate, amount] = read_words(bytes)?;
        let extension = read_words(&bytes[BASE_BYTES..]).and_then(Extension::read);
        let header = ClientHeader {
            flags,
            threads,
            port,
            buffer_bytes,
            window_or_rate: match window_or_rate {
                FILLER_AT_WINDOW => 0,
                asked => asked,
            },
            amount: Amount::of_word(amount),
            old_rate: None,
            extension,
        };
        Some(header)
    }

    /// Reads the word after the first part: the rate of 2.0.8 and 2.0.9 over UDP; `None` if it is filler, as up
    /// to 2.0.5.
    pub(super) fn read_old_rate(&mut self, behind: &[u8]) {
        let rate = read_words(behind).map(|[rate]| rate);
        self.old_rate = rate.filter(|rate| *rate != FILLER_AT_WINDOW);
    }

    /// Whether any of these upper flags is set.
    pub(crate) fn asks_for(&self, upper_flags: u16) -> bool {
        self.extension
            .is_some_and(|extension| extension.upper_flags & upper_flags != 0)
    }

    /// The direction that the client requests.
    ///
    /// # Errors
    /// When it requests a stream to an impossible port.
    pub fn directions(&self) -> Result<Directions, HeaderError> {
        let has = |flag| self.flags & flag != 0;
        if has(flags::VERSION2) {
            if self.asks_for(upper_flags::FULL_DUPLEX) {
                return Ok(Directions::FullDuplex);
            }
            if self.asks_for(upper_flags::REVERSE) {
                return Ok(Directions::Reverse);
            }
            // A client that requests the version (-X) may also request -d or -r.
        }
        if !has(flags::DUAL) {
            return Ok(Directions::Forward);
        }
        match u16::try_from(self.port) {
            Ok(port) if port > 0 => Ok(Directions::Dual {
                port,
                is_at_once: has(flags::RUN_NOW),
            }),
            _ => Err(HeaderError(format!(
                "the client asks for a stream to its port {}, 1 to 65535 are possible; \
                 see that it is an iperf 2 client",
                self.port
            ))),
        }
    }

    /// Requests `directions` as 2.1.8 does; the header must not request any yet.
    pub fn ask_for(&mut self, directions: Directions) {
        let over_udp = self.is_of_datagrams();
        let (added, upper) = match directions {
            Directions::Forward => (0, 0),
            Directions::Reverse => (flags::VERSION2, upper_flags::REVERSE),
            Directions::FullDuplex if over_udp => (
                flags::VERSION2,
                upper_flags::FULL_DUPLEX | upper_flags::NO_UDP_FIN,
            ),
            Directions::FullDuplex => (flags::VERSION2, upper_flags::FULL_DUPLEX),
            Directions::Dual { port, is_at_once } => {
                self.port = u32::from(port);
                let now = if is_at_once { flags::RUN_NOW } else { 0 };
                (flags::DUAL | now, 0)
            }
        };
        self.flags |= added;
        if over_udp && added == flags::VERSION2 {
            self.flags |= flags::UDP_TESTS;
        }
        self.set_upper_flags(upper);
    }
}

/// Length in bytes of the header of a TCP stream, given its first four bytes, which count; 0 without a header.
///
/// # Errors
/// When the stated length is below 24, the length of the first part.
pub fn header_length(first_word: [u8; 4]) -> Result<usize, HeaderError> {
    let word = u32::from_be_bytes(first_word);
    if word & (flags::DUAL | flags::VERSION2 | flags::EXTEND) == 0 {
        return Ok(0);
    }
    if word & flags::HAS_LENGTH != 0 {
        let announced_bytes = ((word & flags::LENGTH_MASK) >> 1) as usize;
        return match announced_bytes {
            ..BASE_BYTES => Err(HeaderError(format!(
                "the client's header states a length of {announced_bytes} bytes, 24 is the least; \
                 the peer is not an iperf 2 client"
            ))),
            _ => Ok(announced_bytes),
        };
    }
    match word & (flags::VERSION2 | flags::EXTEND) {
        0 => Ok(BASE_BYTES),
        _ => Ok(ClientHeader::BYTES),
    }
}

/// Why a client header could not be parsed, for people to read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct HeaderError(String);

/// Whether a 2.1.8 server acknowledges this header. It does not if its own data follow on the same connection,
/// since the client would take the acknowledgement for data.
pub fn is_acknowledged(header: &ClientHeader) -> bool {
    let has = |flag| header.flags & flag != 0;
    has(flags::PEER_DETECT) || (has(flags::EXTEND) && !has(flags::VERSION2))
}

const ACK_KIND: u32 = 2;
const ACK_BYTES: u32 = HeaderAck::BYTES as u32;
/// Without the last reserved word, as some builds of 2.0.10 to 2.0.12 send it.
const SHORT_ACK_BYTES: u32 = 24;
/// With the timestamps of `--trip-times`.
const ACK_WITH_TIMES_BYTES: u32 = 52;

/// A server's acknowledgement of the client header. 2.0.10 to 2.0.13 send it over UDP, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderAck {
    /// The server's version.
    pub version: Version,
}

impl HeaderAck {
    /// Length without the timestamps of `--trip-times`: kind, length, flags, version (2), reserved (2).
    pub const BYTES: usize = 28;

    /// The acknowledgement as 2.1.8 sends it.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let Version { upper, lower } = self.version;
        let mut bytes = [0; Self::BYTES];
        write_words(&mut bytes, [ACK_KIND, ACK_BYTES, 0, upper, lower]);
        bytes
    }

    /// Parses a whole message of 24, 28 or 52 bytes; `None` when it is something else.
    pub fn parse(message: &[u8]) -> Option<Self> {
        let [kind, length, _, upper, lower] = read_words(message)?;
        let is_ack = kind == ACK_KIND
            && matches!(length, SHORT_ACK_BYTES | ACK_BYTES | ACK_WITH_TIMES_BYTES)
            && message.len() == length as usize;
        is_ack.then_some(HeaderAck {
            version: Version { upper, lower },
        })
    }
}
