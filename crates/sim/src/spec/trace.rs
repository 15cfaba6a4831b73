//! A recorded trace: when packets came, and how large they were.
//!
//! The text has a packet a line: its time, then the bytes of its UDP payload, separated by blanks or a comma. A time is in
//! seconds with up to nine decimals (`0.000125`, `1700000000.5`), or in whole nanoseconds with `ns` at its end. Only
//! differences count: the first packet comes at the start. Empty lines and lines that begin with `#` are ignored; so is a
//! first line that names its columns, `time` first.
//!
//! Guarantees, whatever the text: times never run backwards, and memory is bounded by the limits here.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use nicpoll_core::NS_PER_SECOND;
use nicpoll_model::FileError;

use super::options::{SimError, refuse};

/// Most packets of a trace. Each takes 16 bytes.
pub(crate) const TRACE_PACKETS_MAX: usize = 4_000_000;
/// Most bytes of a line.
pub const TRACE_LINE_BYTES_MAX: usize = 256;
/// Most bytes that a UDP datagram carries.
const PAYLOAD_MAX: u32 = 65_507;
/// A day: longer than anything that is simulated.
const SPAN_MAX_NS: u64 = 86_400_000_000_000;
const DECIMALS: usize = 9;

/// Packets in the order of their times, at least one.
#[derive(Clone, PartialEq, Eq)]
pub struct Trace {
    name: String,
    packets: Vec<TracePacket>,
    /// A hash of the packets.
    content: u64,
}

/// Short, and different for different packets.
impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trace({}, {:016x})", self.name, self.content)
    }
}

/// One packet of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TracePacket {
    /// Arrival, since the first packet.
    pub at_ns: u64,
    /// Bytes of UDP payload.
    pub payload_bytes: u32,
}

/// Reads a trace line by line.
/// ```
/// use nicpoll_sim::TraceReader;
///
/// let mut reader = TraceReader::default();
/// for line in ["0.000000 64", "0.000125 64", "0.000250 1500"] {
///     reader.line(line.as_bytes())?;
/// }
/// let trace = reader.finish("three packets")?;
/// assert_eq!(trace.packets().len(), 3);
/// # Ok::<(), nicpoll_model::FileError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TraceReader {
    packets: Vec<TracePacket>,
    /// Lines so far.
    lines: usize,
    /// Time of the first packet, as in the text.
    origin_ns: u64,
}

impl TraceReader {
    /// Reads the next line, without its end.
    ///
    /// # Errors
    /// What is wrong with the line.
    pub fn line(&mut self, line: &[u8]) -> Result<(), FileError> {
        self.lines += 1;
        let packet = self
            .packet(line)
            .map_err(|error| self.wrong(error.to_string()))?;
        self.packets.extend(packet);
        Ok(())
    }

    /// Ends the trace, and names it for reports.
    ///
    /// # Errors
    /// There was no packet.
    pub fn finish(self, name: &str) -> Result<Trace, FileError> {
        if self.packets.is_empty() {
            let message =
                String::from("there is no packet; give one a line, such as '0.000125 64'");
            return Err(FileError {
                line: self.lines.max(1),
                message,
            });
        }
        let mut content = DefaultHasher::new();
        self.packets.hash(&mut content);
        Ok(Trace {
            name: String::from(name),
            content: content.finish(),
            packets: self.packets,
        })
    }

    fn wrong(&self, message: String) -> FileError {
        FileError {
            line: self.lines,
            message,
        }
    }

    fn packet(&mut self, line: &[u8]) -> Result<Option<TracePacket>, SimError> {
        if line.len() > TRACE_LINE_BYTES_MAX {
            return refuse(format!(
                "it has {} bytes; a packet takes no more than {TRACE_LINE_BYTES_MAX}",
                line.len()
            ));
        }
        let line = std::str::from_utf8(line)
            .map_err(|_| SimError(String::from("it is not UTF-8 text")))?;
        let mut words = line
            .split([' ', '\t', ',', '\r'])
            .filter(|word| !word.is_empty());
        let Some(time) = words.next().filter(|word| !word.starts_with('#')) else {
            return Ok(None);
        };
        if self.lines == 1 && time.eq_ignore_ascii_case("time") {
            return Ok(None);
        }
        let (Some(size), None) = (words.next(), words.next()) else {
            return refuse("a time and a size were expected, such as '0.000125 64'");
        };
        let at_ns = self.since_first(parse_time(time)?)?;
        let payload_bytes = parse_size(size)?;
        if self.packets.len() >= TRACE_PACKETS_MAX {
            return refuse(format!(
                "a trace has at most {TRACE_PACKETS_MAX} packets; cut it into shorter ones"
            ));
        }
        Ok(Some(TracePacket {
            at_ns,
            payload_bytes,
        }))
    }

    /// Returns a packet's time since the first; it must not be before the previous packet's.
    fn since_first(&mut self, time_ns: u64) -> Result<u64, SimError> {
        let Some(last) = self.packets.last() else {
            self.origin_ns = time_ns;
            return Ok(0);
        };
        let last_ns = last.at_ns;
        let at_ns = time_ns.checked_sub(self.origin_ns);
        let Some(at_ns) = at_ns.filter(|at_ns| *at_ns >= last_ns) else {
            return refuse("time: it is before the previous packet's; sort the packets by time");
        };
        if at_ns > SPAN_MAX_NS {
            return refuse(
                "time: it is more than a day after the first packet's; cut the trace into shorter ones",
            );
        }
        Ok(at_ns)
    }
}

fn parse_time(word: &str) -> Result<u64, SimError> {
    let expected = || {
        SimError(format!(
            "time: '{word}' is not a time; give seconds with up to nine decimals, or nanoseconds such as 125000ns"
        ))
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(ns) = word.strip_suffix("ns") {
        return ns.parse().ok().filter(|_| digits(ns)).ok_or_else(expected);
    }
    let (whole, decimals) = word.split_once('.').unwrap_or((word, "0"));
    let is_number = digits(whole) && digits(decimals) && decimals.len() <= DECIMALS;
    let parsed = || -> Option<u64> {
        let seconds: u64 = whole.parse().ok()?;
        let padded: u64 = format!("{decimals:0<DECIMALS$}").parse().ok()?;
        seconds.checked_mul(NS_PER_SECOND)?.checked_add(padded)
    };
    parsed().filter(|_| is_number).ok_or_else(expected)
}

fn parse_size(word: &str) -> Result<u32, SimError> {
    let size = word.parse().ok().filter(|_| !word.starts_with('+'));
    size.filter(|size| *size <= PAYLOAD_MAX).ok_or_else(|| {
        SimError(format!(
            "size: '{word}' is not a size; give bytes of UDP payload, 0 to {PAYLOAD_MAX}"
        ))
    })
}

impl Trace {
    /// All packets.
    pub fn packets(&self) -> &[TracePacket] {
        &self.packets
    }

    /// Its name in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Largest payload, in bytes.
    pub fn payload_bytes_max(&self) -> u32 {
        let sizes = self.packets.iter().map(|packet| packet.payload_bytes);
        sizes.max().unwrap_or(0)
    }

    /// Mean packets a second, rounded up.
    pub(crate) fn mean_pps(&self) -> u64 {
        let packets = self.packets.len() as u64;
        // A few million packets: no overflow.
        (packets * NS_PER_SECOND).div_ceil(self.period_ns())
    }

    /// Time from the first packet to the last.
    pub fn span_ns(&self) -> u64 {
        self.packets.last().map_or(0, |packet| packet.at_ns)
    }

    /// Time from the first packet to its repetition: the span and a mean gap, of at least 1 ns.
    pub fn period_ns(&self) -> u64 {
        let gaps = self.packets.len().saturating_sub(1).max(1) as u64;
        self.span_ns() + (self.span_ns() / gaps).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_an_end_and_is_text() {
        let mut reader = TraceReader::default();
        for _ in 0..TRACE_PACKETS_MAX {
            reader.line(b"0 64").unwrap();
        }
        let error = reader.line(b"0 64").unwrap_err();
        assert!(error.message.contains("shorter"), "{error}");
        let error = TraceReader::default().line(b"0 \xff").unwrap_err();
        assert!(error.to_string().contains("line 1: it is not UTF-8 text"));
    }
}
