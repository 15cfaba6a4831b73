//! Values of options: their syntax on iperf's command line, and the messages that refuse them.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use nicpoll_model::{Rate, RateUnit};
use thiserror::Error;

use super::types::{Bind, Style};
use crate::wire::Dialect;

/// iperf's usage message.
const USAGE: &str = "Usage: iperf [-s|-c host] [options]\n\
     Try `iperf --help' for more information.";

/// Why a command line was refused, in iperf's words where it has any. Printed unchanged; the exit status is 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct OptionError(String);

impl OptionError {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        OptionError(text.into())
    }

    /// A scanner error followed by the usage; without a line, the usage alone.
    pub fn usage(line: Option<String>) -> Self {
        OptionError(match line {
            Some(line) => format!("iperf: {line}\n{USAGE}"),
            None => String::from(USAGE),
        })
    }

    /// An unusable value, and what is expected.
    pub fn value(option: &str, value: impl fmt::Display, expected: impl fmt::Display) -> Self {
        OptionError(format!(
            "ERROR: invalid value of '{value}' for {option}; give {expected}"
        ))
    }

    /// An option of iperf 2 that is not supported, and what to do instead.
    pub fn left_out(option: &str, instead: &str) -> Self {
        OptionError(format!(
            "ERROR: option {option} is not supported; {instead}"
        ))
    }
}

/// The largest value up to which a double holds every whole number.
pub const EXACT_MAX: u64 = 1 << 53;
/// Limit of the header's amount: 2^31 ticks of 10 ms.
pub const SECONDS_MAX: f64 = 21_474_836.0;
/// Highest rate in packets.
const PACKETS_PER_SECOND_MAX: f64 = 1e9;

/// Names of IP_TOS bytes except afNM and csN, which follow a rule. 2.1.8 does not shift the code points of le,
/// nqb and nqb2, and the kernel refuses or misreads the result; these are the intended values.
const TOS_NAMES: [(&str, u8); 11] = [
    ("ef", 0xb8),
    ("le", 0x04),
    ("nqb", 0x14),
    ("nqb2", 0xb4),
    ("ac_be", 0x00),
    ("ac_bk", 0x20),
    ("ac_vi", 0x80),
    ("ac_vo", 0xb8),
    ("lowdelay", 0x10),
    ("throughput", 0x08),
    ("reliability", 0x04),
];

/// Parses a finite number in digits, without a unit.
pub fn number(text: &str) -> Option<f64> {
    // Excludes "inf" and "nan", which `parse` accepts.
    let written = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    if !text.chars().all(written) {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Parses a number with an optional suffix: k, m, g (powers of 1000) or K, M, G (powers of 1024).
fn scaled(text: &str) -> Option<f64> {
    let (digits, factor) = split_factor(text)?;
    Some(number(digits)? * factor as f64)
}

fn split_factor(text: &str) -> Option<(&str, u64)> {
    Some(match text.char_indices().next_back()? {
        (at, 'k') => (&text[..at], 1_000),
        (at, 'm') => (&text[..at], 1_000_000),
        (at, 'g') => (&text[..at], 1_000_000_000),
        (at, 'K') => (&text[..at], 1 << 10),
        (at, 'M') => (&text[..at], 1 << 20),
        (at, 'G') => (&text[..at], 1 << 30),
        _ => (text, 1),
    })
}

/// Parses a number with an optional suffix, truncated to a whole one.
pub fn count(text: &str, range: RangeInclusive<u64>) -> Option<u64> {
    let value = scaled(text)?;
    // The cast saturates, and the result is outside every range used here.
    let whole = value as u64;
    (value >= 0.0 && range.contains(&whole)).then_some(whole)
}

/// Parses a whole number without a unit.
pub fn integer(text: &str, range: RangeInclusive<u32>) -> Option<u32> {
    text.parse().ok().filter(|number| range.contains(number))
}

/// A positive time, no longer than the header can state.
pub fn seconds(value: f64) -> Option<Duration> {
    (value > 0.0 && value <= SECONDS_MAX).then(|| Duration::from_secs_f64(value))
}

/// Parses a rate in bits, or in packets if it ends in `pps`.
pub fn rate(text: &str) -> Option<Rate> {
    match text.strip_suffix("pps") {
        Some(packets) => {
            let (digits, factor) = split_factor(packets)?;
            Rate::decimal(RateUnit::PacketsPerSecond, digits, factor)
                .filter(|rate| rate.per_second() <= PACKETS_PER_SECOND_MAX)
        }
        // Below 8 bit/s is less than a byte per second.
        None => count(text, 8..=EXACT_MAX).and_then(Rate::bits_per_second),
    }
}

/// Parses an IP_TOS byte: decimal, 0x for hex, 0 for octal, or a name.
pub fn tos(text: &str) -> Option<u8> {
    let lower = text.to_ascii_lowercase();
    if let Some((_, byte)) = TOS_NAMES.iter().find(|(name, _)| *name == lower) {
        return Some(*byte);
    }
    match lower.as_bytes() {
        [b'a', b'f', class @ b'1'..=b'4', drop @ b'1'..=b'3'] => {
            return Some((class - b'0') << 5 | (drop - b'0') << 3);
        }
        [b'c', b's', class @ b'0'..=b'7'] => return Some((class - b'0') << 5),
        _ => {}
    }
    // Excludes "+", which `parse` accepts, also after 0x.
    if !lower.starts_with(|c: char| c.is_ascii_digit()) || lower.contains('+') {
        return None;
    }
    if let Some(hex) = lower.strip_prefix("0x") {
        return u8::from_str_radix(hex, 16).ok();
    }
    match lower.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u8::from_str_radix(octal, 8).ok(),
        _ => lower.parse().ok(),
    }
}

/// Longest device name in Linux.
const DEVICE_BYTES_MAX: usize = 15;
/// Longest DNS name; addresses are shorter.
const HOST_BYTES_MAX: usize = 253;

/// Parses `host` or `host%device`.
pub fn host(text: &str) -> Option<(String, Option<String>)> {
    let (host, device) = split(text, '%');
    let host = checked(host, HOST_BYTES_MAX)?;
    Some((host, optional(device.map(checked_device))?))
}

/// Parses `address`, `address:port`, `address%device` or `address:port%device`. An IPv6 address with a port
/// needs brackets.
pub fn bind(text: &str) -> Option<Bind> {
    let (address, port, device) = if let Some(inner) = text.strip_prefix('[') {
        let (inner, behind) = inner.split_once(']')?;
        let (inner, inner_device) = split(inner, '%');
        let (port, device) = split(behind, '%');
        let port = match port {
            "" => None,
            port => Some(port.strip_prefix(':')?),
        };
        (inner, port, device.or(inner_device))
    } else {
        let (address, device) = split(text, '%');
        match address.split_once(':') {
            Some((address, port)) if !port.contains(':') => (address, Some(port), device),
            _ => (address, None, device),
        }
    };
    let port = port.map(|port| port.parse().ok().filter(|port| *port != 0));
    Some(Bind {
        address: checked(address, HOST_BYTES_MAX)?,
        device: optional(device.map(checked_device))?,
        port: optional(port)?,
    })
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, behind)) => (before, Some(behind)),
        None => (text, None),
    }
}

/// Turns an optional value inside out; `None` when it is present but invalid.
fn optional<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        None => Some(None),
        Some(value) => value.map(Some),
    }
}

fn checked(name: &str, bytes_max: usize) -> Option<String> {
    let is_sane = (1..=bytes_max).contains(&name.len())
        && !name.chars().any(|c| c.is_whitespace() || c.is_control());
    is_sane.then(|| name.to_owned())
}

fn checked_device(device: &str) -> Option<String> {
    checked(device, DEVICE_BYTES_MAX).filter(|device| !device.contains('/'))
}

/// An option's value, with what its error message needs.
pub struct Given<'a> {
    /// The value.
    pub value: &'a str,
    /// The option or variable that it belongs to.
    pub source: &'a str,
}

impl Given<'_> {
    /// Refuses an invalid value.
    pub fn invalid(&self, expected: impl fmt::Display) -> OptionError {
        OptionError::value(self.source, self.value, expected)
    }

    /// Refuses a value that iperf supports and this does not.
    pub fn left_out(&self, instead: &'static str) -> OptionError {
        OptionError::left_out(&format!("{} {}", self.source, self.value), instead)
    }

    /// Parses the value with `read`.
    pub fn read<T>(
        &self,
        read: impl FnOnce(&str) -> Option<T>,
        expected: impl fmt::Display,
    ) -> Result<T, OptionError> {
        read(self.value).ok_or_else(|| self.invalid(expected))
    }

    /// A number with an optional suffix, truncated to a whole one.
    pub fn count(&self, least: u64, most: u64) -> Result<u64, OptionError> {
        self.read(
            |text| count(text, least..=most),
            format_args!("a number from {least} to {most}, optionally with k, m, g, K, M or G"),
        )
    }

    /// A whole number without a unit.
    pub fn integer(&self, least: u32, most: u32) -> Result<u32, OptionError> {
        let expected = format_args!("a whole number from {least} to {most}");
        self.read(|text| integer(text, least..=most), expected)
    }

    /// Seconds; may be 0 or negative.
    pub fn seconds(&self) -> Result<f64, OptionError> {
        self.read(
            |text| number(text).filter(|seconds| *seconds <= SECONDS_MAX),
            format_args!("seconds, at most {SECONDS_MAX}"),
        )
    }

    /// A non-empty name.
    pub fn name(&self, expected: &str) -> Result<String, OptionError> {
        let is_name = |text: &&str| !text.is_empty() && !text.contains('\0');
        self.read(
            |text| Some(text).filter(is_name).map(String::from),
            expected,
        )
    }

    /// A file name.
    pub fn file(&self) -> Result<PathBuf, OptionError> {
        Ok(self.name("the name of a file")?.into())
    }

    /// A port.
    pub fn port(&self) -> Result<u16, OptionError> {
        Ok(self.integer(1, u16::MAX.into())? as u16)
    }

    /// A single port; refuses a range.
    pub fn port_alone(&self) -> Result<u16, OptionError> {
        match self.value.split_once('-') {
            Some((first, _)) if !first.is_empty() => {
                Err(self.left_out("start one client, or one server, for each port"))
            }
            _ => self.port(),
        }
    }

    /// The version whose lines to print.
    pub fn style(&self) -> Result<Style, OptionError> {
        let style = |text: &str| match text {
            "2.0" => Some(Style::V2_0),
            "2.1" => Some(Style::V2_1),
            _ => None,
        };
        self.read(style, "2.0 or 2.1")
    }

    /// The dialect of a version before 2.1.
    pub fn dialect(&self) -> Result<Dialect, OptionError> {
        let dialect = |text: &str| {
            let patch = integer(text.strip_prefix("2.0.")?, 2..=13)?;
            Some(match patch {
                ..=7 => Dialect::V2_0_2,
                8 | 9 => Dialect::V2_0_8,
                10..=12 => Dialect::V2_0_10,
                _ => Dialect::V2_0_13,
            })
        };
        self.read(
            dialect,
            "the server's version, 2.0.2 to 2.0.13; 2.1 needs none",
        )
    }

    /// A rate in bits or packets.
    pub fn rate(&self) -> Result<Rate, OptionError> {
        if self.value.contains(',') {
            return Err(self.left_out("give one rate, which does not vary"));
        }
        self.read(
            rate,
            "at least 8 bits a second, optionally with k, m, g, K, M or G, or at most 1000000000 packets \
             a second with pps",
        )
    }

    /// An IP_TOS byte.
    pub fn type_of_service(&self) -> Result<u8, OptionError> {
        let expected = "a byte (decimal, 0x hex, 0 octal) or a name such as cs1 or ef";
        self.read(tos, expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that a space-separated list of arguments cannot hold; the rest is in `said.txt`.
    #[test]
    fn what_is_empty_long_or_has_blanks_is_refused() {
        for text in ["", "1 K", "a b", "a\nb"] {
            assert_eq!(count(text, 0..=EXACT_MAX), None, "{text}");
            assert_eq!(tos(text), None, "{text}");
            assert_eq!(bind(text), None, "{text}");
            assert_eq!(host(text), None, "{text}");
        }
        assert_eq!(bind(&"a".repeat(254)), None);
    }

    #[test]
    fn times_are_finite() {
        assert_eq!(seconds(0.25), Some(Duration::from_millis(250)));
        for value in [0.0, -1.0, SECONDS_MAX + 1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(seconds(value), None, "{value}");
        }
    }
}
