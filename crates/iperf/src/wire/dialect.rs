//! The dialects of UDP: how a version writes its ids and its end marker, and where it looks for the
//! report.
//!
//! There is no handshake. A server tells a client's dialect by the marks of its first datagram, a
//! client tells a server's by the version that it states, if it states one. What must hold: the
//! ids of every version since 2.0.2 are read as they were meant, whichever bits the version leaves
//! unwritten, and nothing is read where a short datagram has ended.

use std::time::Duration;

use super::datagram::{self, DatagramError, DatagramHeader, ID_MAX, RawDatagram};
use super::{ClientHeader, Version, fill_payload, flags};

/// The filler that stands at offset 12 where a client writes nothing there.
const FILLER_AT_12: u32 = u32::from_be_bytes(*b"2345");
/// At offset 16.
const FILLER_AT_16: u32 = u32::from_be_bytes(*b"6789");
/// At offset 20.
const FILLER_AT_20: u32 = u32::from_be_bytes(*b"0123");

/// Marks a FIN of 2.0.10 to 2.0.12, in front of the id.
const SIGN: u32 = 0x8000_0000;

/// Length of a datagram header without the upper half of the id: all that is written up to 2.0.12.
const WITHOUT_UPPER_HALF_BYTES: usize = 12;

/// How an end of a UDP test speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// 2.0.2 to 2.0.5, and any client up to 2.0.9. Datagram headers of 12 bytes, ids of 32 bits in two's
    /// complement.
    V2_0_2,
    /// 2.0.8 and 2.0.9. The same, but the client header has the rate in a word of its own.
    V2_0_8,
    /// 2.0.10 to 2.0.12. Headers of 16 bytes of which the last four stay unwritten; the FIN's id is
    /// a sign bit and a magnitude.
    V2_0_10,
    /// 2.0.13. Headers of 16 bytes, ids of 64 bits in two's complement.
    V2_0_13,
    /// 2.1.0 and later. As 2.0.13, but ids count from 1.
    V2_1,
    /// A client of 2.0.2 to 2.0.12 that sends no client header (-C). Nothing tells how long its
    /// datagram header is.
    HeaderlessV2_0,
    /// A client of 2.0.13 or later that sends no client header (-C).
    HeaderlessLater,
    /// Without the marks of any version.
    Unknown,
}

impl Dialect {
    /// The dialect of the client whose first datagram this is.
    pub fn of_client(first: &RawDatagram) -> Self {
        let [at_12, at_16, at_20] = first.marks;
        let (Some(at_12), Some(at_16)) = (at_12, at_16) else {
            // Too short for a client header (-l 18): only who leaves filler at 12 is known by that.
            return match at_12 {
                Some(FILLER_AT_12) => Dialect::HeaderlessV2_0,
                _ => Dialect::Unknown,
            };
        };
        let at_20 = at_20.unwrap_or(0);
        // The client header of 2.0.9 and older stands at 12: flags, threads (-P), port.
        let is_v1_header = at_12 & !(flags::DUAL | flags::RATE_IN_PACKETS | flags::RUN_NOW) == 0
            && (1..1 << 16).contains(&at_16)
            && (1..1 << 16).contains(&at_20);
        // From here on it stands at 16, behind the upper half of the id.
        let asks = at_16 & (flags::DUAL | flags::EXTEND) != 0;
        match (at_12, at_16) {
            _ if is_v1_header => Dialect::V2_0_2,
            (0, FILLER_AT_16) => Dialect::HeaderlessLater,
            (FILLER_AT_12, FILLER_AT_16) => Dialect::HeaderlessV2_0,
            (FILLER_AT_12, 0) => Dialect::V2_0_10,
            (FILLER_AT_12, _) if asks => Dialect::V2_0_10,
            // Its mode of 64-bit ids, which nothing announces: only the upper half is written.
            (0, 0) if at_20 == FILLER_AT_20 => Dialect::V2_0_10,
            (FILLER_AT_12, _) => Dialect::Unknown,
            (_, flags) if flags & flags::IDS_64_BIT == 0 => Dialect::Unknown,
            (_, flags) if flags & flags::HAS_LENGTH != 0 => Dialect::V2_1,
            _ => Dialect::V2_0_13,
        }
    }

    /// The dialect of a server that acknowledged the client header with its version, which those
    /// before 2.0.10 do not.
    pub fn of_server(version: Version) -> Self {
        match (version.upper, version.lower >> 16) {
            (0x0002_0000, ..=12) => Dialect::V2_0_10,
            (0x0002_0000, _) => Dialect::V2_0_13,
            _ => Dialect::V2_1,
        }
    }

    /// The id that this version gives its first datagram. Where it is not known for certain this is
    /// 1, and a first datagram with id 0 shows that it is 0.
    pub fn first_id(self) -> u64 {
        match self {
            Dialect::V2_0_2
            | Dialect::V2_0_8
            | Dialect::V2_0_10
            | Dialect::V2_0_13
            | Dialect::HeaderlessV2_0 => 0,
            Dialect::V2_1 | Dialect::HeaderlessLater | Dialect::Unknown => 1,
        }
    }

    /// Offset of the client header.
    pub fn client_header_offset(self) -> usize {
        match self {
            Dialect::V2_0_2 | Dialect::V2_0_8 => WITHOUT_UPPER_HALF_BYTES,
            _ => datagram::CLIENT_HEADER_OFFSET,
        }
    }

    /// Silence after which an end of this version sends its FIN again.
    pub fn fin_every(self) -> Duration {
        match self {
            Dialect::V2_1 => Duration::from_millis(10),
            _ => Duration::from_millis(250),
        }
    }

    /// What each repetition of a client's FIN adds to the magnitude of its id. All repetitions bear the
    /// time of the first. 0 where the version is not certain.
    pub fn fin_id_step(self) -> i64 {
        match self {
            Dialect::V2_0_10 => -1,
            Dialect::V2_0_13 | Dialect::V2_1 => 1,
            Dialect::V2_0_2
            | Dialect::V2_0_8
            | Dialect::HeaderlessV2_0
            | Dialect::HeaderlessLater
            | Dialect::Unknown => 0,
        }
    }

    /// Reads the header of a datagram. `highest_id` is the highest id that came so far: where a FIN
    /// may be in two's complement or a sign and a magnitude, the reading nearer to it is taken.
    ///
    /// # Errors
    /// [`DatagramError::Id`] when the id cannot be true.
    pub fn header(
        self,
        raw: &RawDatagram,
        highest_id: u64,
    ) -> Result<DatagramHeader, DatagramError> {
        let [at_12, ..] = raw.marks;
        let id = match self {
            Dialect::V2_0_2 | Dialect::V2_0_8 => i64::from(raw.id_low as i32),
            Dialect::V2_0_13 | Dialect::V2_1 | Dialect::HeaderlessLater => match at_12 {
                Some(high) => (u64::from(high) << 32 | u64::from(raw.id_low)) as i64,
                None => i64::from(raw.id_low as i32),
            },
            Dialect::V2_0_10 | Dialect::HeaderlessV2_0 | Dialect::Unknown => {
                id_of_either_form(raw.id_low, at_12, highest_id)
            }
        };
        if id.unsigned_abs() > ID_MAX.unsigned_abs() {
            return Err(DatagramError::Id { id });
        }
        Ok(DatagramHeader {
            id,
            sent_seconds: raw.sent_seconds,
            sent_microseconds: raw.sent_microseconds,
        })
    }

    /// Makes a payload ready for sending over and over, as a client of this version does. 2.0.10 to
    /// 2.0.13 say nothing of `client` but their flag word.
    pub fn prepare_payload(self, payload: &mut [u8], client: &ClientHeader) {
        let (flag_word, client) = match self {
            Dialect::V2_0_2 | Dialect::V2_0_8 => (None, Some(client)),
            Dialect::V2_0_10 => (Some(0), None),
            Dialect::V2_0_13 => (Some(flags::IDS_64_BIT), None),
            _ => return datagram::prepare_payload(payload, client),
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

    /// Writes a header over the beginning of a payload made ready by
    /// [`prepare_payload`](Self::prepare_payload).
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
            _ => datagram::CLIENT_HEADER_OFFSET,
        };
        let bytes = DatagramHeader { id, ..*header }.to_bytes();
        payload[..length].copy_from_slice(&bytes[..length]);
    }
}

/// An id of a client whose FIN is in two's complement or a sign and a magnitude. `at_12` holds the
/// sign if the client is 2.0.10 to 2.0.12 and counts with 64 bits; 0 there may also be the upper half
/// of an id of data that has passed 31 bits. The reading nearest to `highest_id` is taken.
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
    // A FIN is negative, also one behind no data at all.
    -(last.max(1) as i64)
}
