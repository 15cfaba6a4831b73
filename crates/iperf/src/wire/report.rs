//! The server's answer to a FIN ("AckFIN") with its counts, and how a UDP client tells it from other replies.
//! 2.1.8 takes any reply for a report and prints nonsense for some; here, flags identify each kind.

use std::time::Duration;

use super::datagram::{Dialect, RawDatagram};
use super::header::{HeaderAck, Version, high, read_words, wide, write_words};

/// Identifies a report.
const REPORT: u32 = 0x8000_0000;
/// The transit time words are valid.
const TRANSIT_VALID: u32 = 0x4000_0000;
/// The upper halves of the counters are valid.
const COUNTERS_64_BIT: u32 = 0x0800_0000;

/// A minimum transit time above a minute: 2.0.8 takes it for a clock offset and omits the transit times.
const TRANSIT_UNKNOWN_SECONDS: u32 = 3600;

/// Offset of the report since 2.0.10: after the datagram header.
const BASE: usize = 16;
/// Offset up to 2.0.9, whose datagram header is 12 bytes long.
const OLD_BASE: usize = 12;

/// Words in all versions: flags, bytes (2), time (2), lost, out of order, datagrams, jitter (2).
const WORDS: usize = 10;
/// Transit time words that 2.0.13 and later add, before the upper halves of lost, out of order and datagrams.
const TRANSIT_WORDS: usize = 15;
/// The same in 2.0.8 and 2.0.9, after the minimum transit time and before the rate.
const OLD_TRANSIT_WORDS: usize = 12;

/// A UDP server's counts, by its own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// Payload received, including the FIN.
    pub bytes: u64,
    /// From the first datagram to the FIN; sent in whole microseconds below 2^32 seconds.
    pub elapsed: Duration,
    /// Datagrams that did not arrive.
    pub lost: u64,
    /// Datagrams that arrived after one with a higher id.
    pub out_of_order: u64,
    /// The highest id, including the FIN's: one more than the client's datagrams of data.
    pub datagrams: u64,
    /// Jitter (RFC 3550 section 6.4.1); sent in whole microseconds below 2^32 seconds.
    pub jitter: Duration,
}

impl ServerReport {
    /// Length of 2.1.8's answer. No older client needs more.
    pub const BYTES: usize = BASE + 4 * (WORDS + TRANSIT_WORDS + 3);

    /// Returns the answer to a FIN in the layout of the client's version, without transit times. For versions
    /// up to 2.0.12, it starts with the FIN's own header, as their servers leave it there.
    pub fn answer(&self, client: Dialect, fin: &RawDatagram) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        match client {
            Dialect::V2_0_2 | Dialect::V2_0_8 | Dialect::HeaderlessV2_0 => {
                bytes[..OLD_BASE].copy_from_slice(&fin.head()[..OLD_BASE]);
                let words = self.words(REPORT, saturated).into_iter();
                let words = words.chain([TRANSIT_UNKNOWN_SECONDS]);
                let words = words.chain([0; OLD_TRANSIT_WORDS]);
                // Such a client divides the rate by the last word; if either is 0, it prints garbage for the
                // loss.
                let rate = self.datagrams as f64 / self.elapsed.as_secs_f64();
                let rate = (rate.min(f64::from(i32::MAX)) as u32).max(1);
                write_words(&mut bytes[OLD_BASE..], words.chain([rate, 1]));
            }
            // The upper half of the datagram count comes before the jitter.
            Dialect::V2_0_10 => {
                bytes[..BASE].copy_from_slice(&fin.head());
                let words = self.words(REPORT, saturated);
                let [before @ .., _, jitter_seconds, jitter_microseconds] = words;
                let datagrams = [self.datagrams as u32, high(self.datagrams)];
                let words = before.into_iter().chain(datagrams);
                let words = words.chain([jitter_seconds, jitter_microseconds]);
                write_words(&mut bytes[BASE..], words);
            }
            Dialect::V2_0_13 | Dialect::V2_1 | Dialect::HeaderlessLater | Dialect::Unknown => {
                return self.to_bytes();
            }
        }
        bytes
    }

    /// The answer as 2.1.8 sends it, without transit times.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let words = self.words(REPORT | COUNTERS_64_BIT, |counter| counter as u32);
        let words = words.into_iter().chain([0; TRANSIT_WORDS]);
        let upper = [self.lost, self.out_of_order, self.datagrams].map(high);
        let mut bytes = [0; Self::BYTES];
        write_words(&mut bytes[BASE..], words.chain(upper));
        bytes
    }

    /// The words of all versions; `narrow` makes the counters 32 bits wide.
    fn words(&self, flags: u32, narrow: fn(u64) -> u32) -> [u32; WORDS] {
        [
            flags,
            high(self.bytes),
            self.bytes as u32,
            self.elapsed.as_secs() as u32,
            self.elapsed.subsec_micros(),
            narrow(self.lost),
            narrow(self.out_of_order),
            narrow(self.datagrams),
            self.jitter.as_secs() as u32,
            self.jitter.subsec_micros(),
        ]
    }

    /// Parses the answer of any version; `None` when neither offset has a report's flags. Answers of 2.0.10 to
    /// 2.0.12 have the same flags as one of 2.0.13 with 32-bit counters. If the server's version is unknown,
    /// an answer whose jitter would be 0 in the latter's layout is taken for the former.
    pub fn parse(message: &[u8], server: Dialect) -> Option<Self> {
        Self::parse_at(message, OLD_BASE)
            .or_else(|| Self::parse_v2_0_10(message, server))
            .or_else(|| Self::parse_at(message, BASE))
    }

    fn parse_v2_0_10(message: &[u8], server: Dialect) -> Option<Self> {
        let words = read_words(message.get(BASE..)?)?;
        let [
            before @ ..,
            datagrams_high,
            jitter_seconds,
            jitter_microseconds,
        ]: [_; WORDS + 1] = words;
        let [flags, .., datagrams]: [_; WORDS - 2] = before;
        let is_plausible = datagrams_high == 0 && jitter_seconds == 0;
        if flags & !TRANSIT_VALID != REPORT || server != Dialect::V2_0_10 && !is_plausible {
            return None;
        }
        let mut words = [0; WORDS];
        words[..before.len()].copy_from_slice(&before);
        words[before.len()..].copy_from_slice(&[jitter_seconds, jitter_microseconds]);
        Some(ServerReport {
            datagrams: wide(datagrams_high, datagrams),
            ..Self::of(words, [0; 3])
        })
    }

    fn parse_at(message: &[u8], base: usize) -> Option<Self> {
        let message = message.get(base..)?;
        let words: [u32; WORDS] = read_words(message)?;
        let known = REPORT | TRANSIT_VALID | COUNTERS_64_BIT;
        if words[0] & REPORT == 0 || words[0] & !known != 0 {
            return None;
        }
        let upper = message
            .get(4 * (WORDS + TRANSIT_WORDS)..)
            .and_then(read_words);
        let upper = upper.filter(|_| words[0] & COUNTERS_64_BIT != 0);
        Some(Self::of(words, upper.unwrap_or([0; 3])))
    }

    fn of(words: [u32; WORDS], upper: [u32; 3]) -> Self {
        let [
            _,
            bytes_high,
            bytes_low,
            seconds,
            micros,
            lost,
            out_of_order,
            datagrams,
            ..,
        ] = words;
        let [.., jitter_seconds, jitter_micros] = words;
        let [lost_high, out_of_order_high, datagrams_high] = upper;
        ServerReport {
            bytes: wide(bytes_high, bytes_low),
            elapsed: time(seconds, micros),
            lost: wide(lost_high, lost),
            out_of_order: wide(out_of_order_high, out_of_order),
            datagrams: wide(datagrams_high, datagrams),
            jitter: time(jitter_seconds, jitter_micros),
        }
    }
}

/// A counter for clients that read only the lower half.
fn saturated(value: u64) -> u32 {
    value.try_into().unwrap_or(u32::MAX)
}

fn time(seconds: u32, microseconds: u32) -> Duration {
    Duration::from_secs(seconds.into()) + Duration::from_micros(microseconds.into())
}

/// Bytes of the client header that identify an echo.
const ECHO: std::ops::Range<usize> = 16..40;

/// A reply from a UDP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A header acknowledgement of 2.0.10 to 2.0.13 with the server's version; not an answer to a FIN.
    HeaderAck(Version),
    /// The client's FIN sent back: 2.1.8's second and later answers. Acknowledges without a report.
    Echo,
    /// Acknowledges with the server's report.
    Report(ServerReport),
    /// Acknowledges without a report.
    BareAck,
}

/// Classifies a reply to a client whose payload was `sent`. `server` is the server's dialect, as far as known:
/// from a [`Reply::HeaderAck`], or as the client chose.
pub fn classify(reply: &[u8], sent: &[u8], server: Dialect) -> Reply {
    if let Some(ack) = HeaderAck::parse(reply) {
        return Reply::HeaderAck(ack.version);
    }
    if let (Some(theirs), Some(ours)) = (reply.get(ECHO), sent.get(ECHO))
        && theirs == ours
    {
        return Reply::Echo;
    }
    ServerReport::parse(reply, server).map_or(Reply::BareAck, Reply::Report)
}
