//! UDP datagrams: id and send time, then the client header, then filler; and the dialects, which differ in how
//! they write ids and FINs.
//!
//! In 2.1.x, ids of data count from 1. A FIN has the id -N, where N is the id that the next datagram of data
//! would have had; each repetition subtracts one more. There is no handshake: a server detects a client's
//! dialect from its first datagram, a client detects a server's from the version it states, if any. Ids are
//! read as each version since 2.0.2 writes them. Parsing stops where a short datagram ends.

use std::time::Duration;

use super::header::{
    BASE_BYTES, ClientHeader, Version, fill_payload, flags, read_words, wide, write_words,
};

/// Offset of the client header.
pub const CLIENT_HEADER_OFFSET: usize = 16;
/// Minimum payload: the datagram header.
pub const PAYLOAD_BYTES_MIN: usize = CLIENT_HEADER_OFFSET;
/// The largest payload of a UDP datagram over IPv4.
pub const PAYLOAD_BYTES_MAX: usize = 65_507;
/// Higher ids are refused: at ten million datagrams per second they would take 325 days.
pub const ID_MAX: i64 = 1 << 48;

/// 2.1.8 clears this many bytes before it writes its headers; filler follows.
const CLEARED_BYTES: usize = 160;
/// Id and send time of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramHeader {
    /// Data: 1 and up (before 2.0.13: 0 and up). FIN: negative.
    pub id: i64,
    /// Send time by the sender's wall clock, in seconds since 1970.
    pub sent_seconds: u32,
    /// Its fraction in microseconds, 0 to 999999.
    pub sent_microseconds: u32,
}

impl DatagramHeader {
    /// The header of a datagram sent at `sent` since 1970.
    pub fn at(id: i64, sent: Duration) -> Self {
        DatagramHeader {
            id,
            sent_seconds: sent.as_secs() as u32,
            sent_microseconds: sent.subsec_micros(),
        }
    }

    /// Writes the header over the first 16 bytes of a payload from [`prepare_payload`].
    ///
    /// # Panics
    /// When the payload is shorter than 16 bytes.
    pub fn write_to(&self, payload: &mut [u8]) {
        payload[..CLIENT_HEADER_OFFSET].copy_from_slice(&self.to_bytes());
    }

    fn to_bytes(self) -> [u8; CLIENT_HEADER_OFFSET] {
        let (low, high) = (self.id as u32, (self.id >> 32) as u32);
        head([low, self.sent_seconds, self.sent_microseconds, high])
    }

    /// Parses the header of a datagram in the dialect it shows; `None` below 12 bytes or when the id exceeds
    /// [`ID_MAX`].
    /// ```
    /// use nicpoll_iperf::wire::DatagramHeader;
    ///
    /// // Datagram 1, sent half a second past second 7.
    /// let words = [1, 7, 500_000].map(u32::to_be_bytes).concat();
    /// let header = DatagramHeader::parse(&words).expect("a header");
    /// assert_eq!((header.id, header.sent_ns()), (1, 7_500_000_000));
    /// assert!(DatagramHeader::parse(b"short").is_none());
    /// ```
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let raw = RawDatagram::parse(payload)?;
        Dialect::of_client(&raw).header(&raw, 0)
    }

    /// Send time in nanoseconds since 1970. No value in the header overflows it.
    pub fn sent_ns(&self) -> i64 {
        i64::from(self.sent_seconds) * 1_000_000_000 + i64::from(self.sent_microseconds) * 1_000
    }
}

/// The first words of a datagram, uninterpreted: their meaning depends on the sender's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawDatagram {
    id_low: u32,
    sent_seconds: u32,
    sent_microseconds: u32,
    /// The words at 12, 16 and 20, which identify the dialect. `None` where the datagram is too short.
    marks: [Option<u32>; 3],
}

impl RawDatagram {
    /// Reads the start of a received datagram; `None` below 12 bytes.
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let [id_low, sent_seconds, sent_microseconds] = read_words(payload)?;
        let mark = |at| read_words(payload.get(at..)?).map(|[mark]| mark);
        Some(RawDatagram {
            id_low,
            sent_seconds,
            sent_microseconds,
            marks: [mark(12), mark(16), mark(20)],
        })
    }

    /// The first 16 bytes.
    pub(super) fn head(&self) -> [u8; CLIENT_HEADER_OFFSET] {
        let high = self.marks[0].unwrap_or(0);
        head([self.id_low, self.sent_seconds, self.sent_microseconds, high])
    }
}

fn head(words: [u32; 4]) -> [u8; CLIENT_HEADER_OFFSET] {
    let mut bytes = [0; CLIENT_HEADER_OFFSET];
    write_words(&mut bytes, words);
    bytes
}

/// Prepares a payload to be sent repeatedly: filler, and as much of the client header as fits.
pub fn prepare_payload(payload: &mut [u8], client: &ClientHeader) {
    fill_payload(payload);
    let cleared = payload.len().min(CLEARED_BYTES);
    payload[..cleared].fill(0);
    if let Some(place) = payload.get_mut(CLIENT_HEADER_OFFSET..) {
        client.write_to(place);
    }
}

/// Filler at offset 12, where a client writes nothing.
const FILLER_AT_12: u32 = u32::from_be_bytes(*b"2345");
/// Filler at offset 16.
const FILLER_AT_16: u32 = u32::from_be_bytes(*b"6789");
/// Filler at offset 20.
const FILLER_AT_20: u32 = u32::from_be_bytes(*b"0123");

/// Sign bit in the id of a FIN of 2.0.10 to 2.0.12.
const SIGN: u32 = 0x8000_0000;

/// Length of a datagram header without the upper half of the id, as written up to 2.0.12.
const WITHOUT_UPPER_HALF_BYTES: usize = 12;

/// The variant of the UDP protocol that a version speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// 2.0.2 to 2.0.5, and any client up to 2.0.9. Datagram headers of 12 bytes, 32-bit ids in two's
    /// complement.
    V2_0_2,
    /// 2.0.8 and 2.0.9. The same, but the client header has a separate word for the rate.
    V2_0_8,
    /// 2.0.10 to 2.0.12. Headers of 16 bytes, the last four unwritten. A FIN's id is a sign bit and a
    /// magnitude.
    V2_0_10,
    /// 2.0.13. Headers of 16 bytes, 64-bit ids in two's complement.
    V2_0_13,
    /// 2.1.0 and later. As 2.0.13, but ids count from 1.
    V2_1,
    /// A client of 2.0.2 to 2.0.12 without client header (-C). Its datagram header length is unknown.
    HeaderlessV2_0,
    /// A client of 2.0.13 or later without client header (-C).
    HeaderlessLater,
    /// No known version.
    Unknown,
}

impl Dialect {
    /// Detects a client's dialect from its first datagram.
    pub fn of_client(first: &RawDatagram) -> Self {
        let [at_12, at_16, at_20] = first.marks;
        let (Some(at_12), Some(at_16)) = (at_12, at_16) else {
            // Too short for a client header (-l 18): only filler at 12 identifies a version.
            return match at_12 {
                Some(FILLER_AT_12) => Dialect::HeaderlessV2_0,
                _ => Dialect::Unknown,
            };
        };
        let at_20 = at_20.unwrap_or(0);
        // Clients up to 2.0.9 have the client header at 12: flags, threads (-P), port.
        let is_v1_header = at_12 & !(flags::DUAL | flags::RATE_IN_PACKETS | flags::RUN_NOW) == 0
            && (1..1 << 16).contains(&at_16)
            && (1..1 << 16).contains(&at_20);
        // Later ones have it at 16, after the upper half of the id.
        let asks = at_16 & (flags::DUAL | flags::EXTEND) != 0;
        match (at_12, at_16) {
            _ if is_v1_header => Dialect::V2_0_2,
            (0, FILLER_AT_16) => Dialect::HeaderlessLater,
            (FILLER_AT_12, FILLER_AT_16) => Dialect::HeaderlessV2_0,
            (FILLER_AT_12, 0) => Dialect::V2_0_10,
            (FILLER_AT_12, _) if asks => Dialect::V2_0_10,
            // The 64-bit mode of 2.0.10 to 2.0.12 has no flag: only the upper half of the id is written.
            (0, 0) if at_20 == FILLER_AT_20 => Dialect::V2_0_10,
            (FILLER_AT_12, _) => Dialect::Unknown,
            (_, flags) if flags & flags::IDS_64_BIT == 0 => Dialect::Unknown,
            (_, flags) if flags & flags::HAS_LENGTH != 0 => Dialect::V2_1,
            _ => Dialect::V2_0_13,
        }
    }

    /// The dialect of a server that acknowledged the client header with its version, as servers since 2.0.10
    /// do.
    pub fn of_server(version: Version) -> Self {
        match (version.upper, version.lower >> 16) {
            (0x0002_0000, ..=12) => Dialect::V2_0_10,
            (0x0002_0000, _) => Dialect::V2_0_13,
            _ => Dialect::V2_1,
        }
    }

    /// Id of this version's first datagram. 1 if uncertain; a first datagram with id 0 then shows that it is 0.
    pub fn first_id(self) -> u64 {
        match self {
            Dialect::V2_1 | Dialect::HeaderlessLater | Dialect::Unknown => 1,
            _ => 0,
        }
    }

    /// Offset of the client header.
    pub fn client_header_offset(self) -> usize {
        match self {
            Dialect::V2_0_2 | Dialect::V2_0_8 => WITHOUT_UPPER_HALF_BYTES,
            _ => CLIENT_HEADER_OFFSET,
        }
    }

    /// Interval between repetitions of the FIN, at either end.
    pub fn fin_every(self) -> Duration {
        match self {
            Dialect::V2_1 => Duration::from_millis(10),
            _ => Duration::from_millis(250),
        }
    }

    /// Change of the FIN id's magnitude per repetition by a client; 0 if the version is uncertain. Every
    /// repetition has the send time of the first FIN.
    pub fn fin_id_step(self) -> i64 {
        match self {
            Dialect::V2_0_10 => -1,
            Dialect::V2_0_13 | Dialect::V2_1 => 1,
            _ => 0,
        }
    }

    /// Parses the header of a datagram. Where a FIN's id may be two's complement or sign and magnitude, takes
    /// the reading nearer to `highest_id`, the highest id so far. `None` when the id exceeds [`ID_MAX`].
    pub fn header(self, raw: &RawDatagram, highest_id: u64) -> Option<DatagramHeader> {
        let [at_12, ..] = raw.marks;
        let id = match self {
            Dialect::V2_0_2 | Dialect::V2_0_8 => i64::from(raw.id_low as i32),
            Dialect::V2_0_13 | Dialect::V2_1 | Dialect::HeaderlessLater => match at_12 {
                Some(high) => wide(high, raw.id_low) as i64,
                None => i64::from(raw.id_low as i32),
            },
            Dialect::V2_0_10 | Dialect::HeaderlessV2_0 | Dialect::Unknown => {
                id_of_either_form(raw.id_low, at_12, highest_id)
            }
        };
        (id.unsigned_abs() <= ID_MAX.unsigned_abs()).then_some(DatagramHeader {
            id,
            sent_seconds: raw.sent_seconds,
            sent_microseconds: raw.sent_microseconds,
        })
    }

    /// Prepares a payload to be sent repeatedly, as a client of this version does. 2.0.10 to 2.0.13 write only
    /// their flags word, nothing of `client`.
    pub fn prepare_payload(self, payload: &mut [u8], client: &ClientHeader) {
        let (flag_word, client) = match self {
            Dialect::V2_0_2 | Dialect::V2_0_8 => (None, Some(client)),
            Dialect::V2_0_10 => (Some(0), None),
            Dialect::V2_0_13 => (Some(flags::IDS_64_BIT), None),
            _ => return prepare_payload(payload, client),
        };
        fill_payload(payload);
        let Some(place) = payload.get_mut(self.client_header_offset()..) else {
            return;
        };
        if let Some(client) = client {
            client.write_to(place);
        }
        if let (Some(word), Some(place)) = (flag_word, place.first_chunk_mut()) {
            *place = u32::to_be_bytes(word);
        }
    }

    /// Writes a datagram header over the start of a payload from [`prepare_payload`](Self::prepare_payload).
    ///
    /// # Panics
    /// When the payload is shorter than 16 bytes.
    pub fn write_header(self, header: &DatagramHeader, payload: &mut [u8]) {
        let id = match self {
            Dialect::V2_0_10 if header.id < 0 => i64::from(header.id.unsigned_abs() as u32 | SIGN),
            _ => header.id,
        };
        let length = match self {
            Dialect::V2_0_2 | Dialect::V2_0_8 | Dialect::V2_0_10 => WITHOUT_UPPER_HALF_BYTES,
            _ => CLIENT_HEADER_OFFSET,
        };
        let bytes = DatagramHeader { id, ..*header }.to_bytes();
        payload[..length].copy_from_slice(&bytes[..length]);
    }
}

/// Reads an id whose FIN may be two's complement or sign and magnitude, whichever is nearer to `highest_id`. In
/// 64-bit mode of 2.0.10 to 2.0.12, `at_12` holds the sign; 0 there may also be the upper half of a data id
/// beyond 31 bits.
fn id_of_either_form(low: u32, at_12: Option<u32>, highest_id: u64) -> i64 {
    let magnitude = u64::from(low & !SIGN);
    let last = if low & SIGN != 0 {
        let complement = u64::from(low.wrapping_neg());
        let distance = |reading: u64| reading.abs_diff(highest_id);
        let last = match distance(magnitude) < distance(complement) {
            true => magnitude,
            false => complement,
        };
        if at_12 == Some(0) && distance(low.into()) <= distance(last) {
            return i64::from(low);
        }
        last
    } else if at_12 == Some(SIGN) {
        magnitude
    } else {
        return i64::from(low);
    };
    // A FIN is negative even if no data came before it.
    -(last.max(1) as i64)
}

impl ClientHeader {
    /// Parses the client header after a datagram header; `None` when there is none, or when the client is
    /// 2.0.10 to 2.0.12, whose -d and -r do not work even among themselves.
    pub fn parse_udp(payload: &[u8]) -> Option<Self> {
        let dialect = Dialect::of_client(&RawDatagram::parse(payload)?);
        let place = payload.get(dialect.client_header_offset()..)?;
        let mut header = Self::from_prefix(place)?;
        let is_v1 = dialect == Dialect::V2_0_2;
        if is_v1 {
            header.read_old_rate(&place[BASE_BYTES..]);
        }
        if !is_v1 && header.flags & flags::IDS_64_BIT == 0 {
            return None;
        }
        if is_v1 || header.flags & flags::EXTEND == 0 {
            header.extension = None;
        }
        Some(header)
    }
}
