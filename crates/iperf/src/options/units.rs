//! Numbers as they are written on iperf's command line.

use std::ops::RangeInclusive;
use std::time::Duration;

use nicpoll_model::{Rate, RateUnit};

/// Above this a double no longer holds every whole number.
pub const EXACT_MAX: u64 = 1 << 53;
/// What a header's amount can hold: 2^31 ticks of 10 ms.
pub const SECONDS_MAX: f64 = 21_474_836.0;
/// The fastest rate in packets.
const PACKETS_PER_SECOND_MAX: f64 = 1e9;

/// Names of IP_TOS bytes. 2.1.8 forgets to shift the code points of le, nqb and nqb2, and the kernel
/// refuses or misreads the result; here they are the code points it means.
const TOS_NAMES: [(&str, u8); 31] = [
    ("af11", 0x28),
    ("af12", 0x30),
    ("af13", 0x38),
    ("af21", 0x48),
    ("af22", 0x50),
    ("af23", 0x58),
    ("af31", 0x68),
    ("af32", 0x70),
    ("af33", 0x78),
    ("af41", 0x88),
    ("af42", 0x90),
    ("af43", 0x98),
    ("cs0", 0x00),
    ("cs1", 0x20),
    ("cs2", 0x40),
    ("cs3", 0x60),
    ("cs4", 0x80),
    ("cs5", 0xa0),
    ("cs6", 0xc0),
    ("cs7", 0xe0),
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

/// A number that is finite and written in digits, without a unit.
pub fn number(text: &str) -> Option<f64> {
    // Or "inf" and "nan" would be numbers.
    let written = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    if !text.chars().all(written) {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// A number that may end in k, m, g (powers of 1000) or K, M, G (powers of 1024).
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

/// A whole number with a unit; what is behind the point after scaling is cut off.
pub fn count(text: &str, range: RangeInclusive<u64>) -> Option<u64> {
    let value = scaled(text)?;
    // A double that does not fit saturates, and is then out of any range used here.
    let whole = value as u64;
    (value >= 0.0 && range.contains(&whole)).then_some(whole)
}

/// A whole number without a unit.
pub fn integer(text: &str, range: RangeInclusive<u32>) -> Option<u32> {
    text.parse().ok().filter(|number| range.contains(number))
}

/// A time above 0 in seconds, no longer than the wire can say.
pub fn seconds(value: f64) -> Option<Duration> {
    (value > 0.0 && value <= SECONDS_MAX).then(|| Duration::from_secs_f64(value))
}

/// A rate in bits, or in packets if it ends in `pps`.
pub fn rate(text: &str) -> Option<Rate> {
    match text.strip_suffix("pps") {
        Some(packets) => {
            let (digits, factor) = split_factor(packets)?;
            Rate::decimal(RateUnit::PacketsPerSecond, digits, factor)
                .filter(|rate| rate.per_second() <= PACKETS_PER_SECOND_MAX)
        }
        // Below 8 there is not a byte a second.
        None => count(text, 8..=EXACT_MAX).and_then(Rate::bits_per_second),
    }
}

/// An IP_TOS byte: decimal, 0x, 0 for octal, or a name.
pub fn tos(text: &str) -> Option<u8> {
    let lower = text.to_ascii_lowercase();
    if let Some((_, byte)) = TOS_NAMES.iter().find(|(name, _)| *name == lower) {
        return Some(*byte);
    }
    // Or "+" would be let through, even behind 0x.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capital_units_are_of_1024_and_small_ones_of_1000() {
        for (text, value) in [
            ("0", Some(0)),
            ("17", Some(17)),
            ("1.9", Some(1)),
            ("1e3", Some(1000)),
            ("8k", Some(8000)),
            ("8K", Some(8192)),
            ("1.5m", Some(1_500_000)),
            ("10M", Some(10_485_760)),
            ("1g", Some(1_000_000_000)),
            ("2G", Some(2_147_483_648)),
            ("8388608G", Some(EXACT_MAX)),
            ("8388609G", None),
            ("-1", None),
            ("", None),
            ("K", None),
            ("1t", None),
            ("1KB", None),
            ("1 K", None),
            ("0x10", None),
            ("inf", None),
            ("nan", None),
            ("infinityK", None),
            ("1e400", None),
            ("1ü", None),
        ] {
            assert_eq!(count(text, 0..=EXACT_MAX), value, "{text}");
        }
    }

    #[test]
    fn rates_are_of_bits_or_packets() {
        for (text, value) in [
            ("1M", Rate::bits_per_second(1_048_576)),
            ("1m", Rate::bits_per_second(1_000_000)),
            ("100pps", Rate::packets_per_second(100)),
            (
                "0.5pps",
                Rate::decimal(RateUnit::PacketsPerSecond, "0.5", 1),
            ),
            ("2kpps", Rate::packets_per_second(2000)),
            ("0", None),
            ("7", None),
            ("0pps", None),
            ("-1pps", None),
            ("2Gpps", None),
            ("pps", None),
            ("1mbit", None),
        ] {
            assert_eq!(rate(text), value, "{text}");
        }
    }

    #[test]
    fn type_of_service_has_numbers_and_names() {
        for (text, value) in [
            ("16", Some(16)),
            ("0", Some(0)),
            ("0x10", Some(0x10)),
            ("0XB8", Some(0xb8)),
            ("010", Some(8)),
            ("255", Some(255)),
            ("256", None),
            ("0400", None),
            ("08", None),
            ("0x", None),
            ("0x+1", None),
            ("+1", None),
            ("-1", None),
            ("", None),
            ("bogus", None),
            ("EF", Some(0xb8)),
            ("af42", Some(0x90)),
            ("reliability", Some(4)),
        ] {
            assert_eq!(tos(text), value, "{text}");
        }
    }

    #[test]
    fn names_of_code_points_follow_their_rules() {
        for class in 0..8 {
            assert_eq!(tos(&format!("cs{class}")), Some(class << 5));
        }
        for class in 1..=4 {
            for drop in 1..=3 {
                let name = format!("af{class}{drop}");
                assert_eq!(tos(&name), Some((class << 5) | (drop << 3)), "{name}");
            }
        }
    }

    #[test]
    fn times_are_finite() {
        assert_eq!(seconds(0.25), Some(Duration::from_millis(250)));
        for value in [0.0, -1.0, SECONDS_MAX + 1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(seconds(value), None, "{value}");
        }
    }
}
