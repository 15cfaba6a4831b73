//! The server's answer to a FIN ("AckFIN"), which carries what the server counted, and how a UDP client
//! tells it from other replies. 2.1.8 takes any reply for a report and so prints nonsense for some of
//! them; here each is told by its marks.

use std::time::Duration;

use super::datagram::{Dialect, RawDatagram};
use super::header::{HeaderAck, Version, high, read_words, wide, write_words};

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

/// Words that every version sends: flags, bytes (2), time (2), lost, out of order, datagrams, jitter (2).
const WORDS: usize = 10;
/// Words of transit times that 2.0.13 and later send behind them, before the upper halves of lost, out of
/// order and datagrams.
const TRANSIT_WORDS: usize = 15;
/// The same of 2.0.8 and 2.0.9, behind the least time and before the rate.
const OLD_TRANSIT_WORDS: usize = 12;

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
    pub const BYTES: usize = BASE + 4 * (WORDS + TRANSIT_WORDS + 3);

    /// The answer to a FIN, at the place and in the layout that the client's version looks for.
    /// Transit times are not told. Before it, versions up to 2.0.12 find their FIN's header again,
    /// as their own servers leave it there.
    pub fn answer(&self, client: Dialect, fin: &RawDatagram) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        match client {
            Dialect::V2_0_2 | Dialect::V2_0_8 | Dialect::HeaderlessV2_0 => {
                bytes[..OLD_BASE].copy_from_slice(&fin.head()[..OLD_BASE]);
                let words = self.words(REPORT, saturated).into_iter();
                let words = words.chain([TRANSIT_UNKNOWN_SECONDS]);
                let words = words.chain([0; OLD_TRANSIT_WORDS]);
                // At 0 such a client prints garbage instead of the loss in per cent. It divides the
                // rate by the last word.
                let rate = self.datagrams as f64 / self.elapsed.as_secs_f64();
                let rate = (rate.min(f64::from(i32::MAX)) as u32).max(1);
                write_words(&mut bytes[OLD_BASE..], words.chain([rate, 1]));
            }
            // The upper half of the datagrams stands in the middle.
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

    /// The words that every version sends, the counters made 32 bits wide by `narrow`.
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

    /// Reads a whole answer of any version; `None` when the marks of a report are at neither place.
    /// 2.0.10 to 2.0.12 set the same marks as an answer of 2.0.13 with 32-bit counters would have; when
    /// nothing is known of the server, such an answer is theirs if what would be the jitter is 0.
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

/// A counter for a client that knows no upper half.
fn saturated(value: u64) -> u32 {
    value.try_into().unwrap_or(u32::MAX)
}

fn time(seconds: u32, microseconds: u32) -> Duration {
    Duration::from_secs(seconds.into()) + Duration::from_micros(microseconds.into())
}

/// The client header's bytes by which a reply is known for an echo.
const ECHO: std::ops::Range<usize> = 16..40;

/// A reply of a UDP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The header's acknowledgement of 2.0.10 to 2.0.13, with the server's version: not an answer
    /// to a FIN.
    HeaderAck(Version),
    /// The FIN sent back, which is 2.1.8's second and later answer: acknowledged, nothing said.
    Echo,
    /// Acknowledged, with what the server counted.
    Report(ServerReport),
    /// Acknowledged in a way that says nothing.
    BareAck,
}

/// Tells what `reply` is to a client whose payload was `sent`. `server` is what is known of the
/// server: the dialect that a [`Reply::HeaderAck`] told, or the one that the client chose.
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
