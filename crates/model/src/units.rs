//! Numbers with units, as options give them. Powers of ten always.

use thiserror::Error;

use crate::{Rate, RateUnit};

/// A text that is no such number: what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NoQuantity(&'static str);

/// A line's speed in bits a second: `100m`, `2.5g`, `10Gbit/s`. Exact, or an error.
pub fn parse_speed(text: &str) -> Result<u64, NoQuantity> {
    let expected = NoQuantity("a speed such as 100m, 2.5g or 10g was expected, in bit/s");
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = split_unit(&lower);
    let scale = scale(without_bits(unit)).ok_or(expected)?;
    let speed = exact(digits, scale).ok_or(expected)?;
    if speed == 0 {
        return Err(NoQuantity("a line of 0 bit/s carries nothing"));
    }
    Ok(speed)
}

/// A rate: packets a second (`70kpps`), or bits a second (`36m`, `36mbit/s`).
pub fn parse_rate(text: &str) -> Result<Rate, NoQuantity> {
    let expected = NoQuantity("a rate such as 70kpps (packets/s) or 36m (bit/s) was expected");
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = split_unit(&lower);
    let (count, prefix) = match unit.strip_suffix("pps") {
        Some(prefix) => (RateUnit::PacketsPerSecond, prefix.trim()),
        None => (RateUnit::BitsPerSecond, without_bits(unit)),
    };
    let rate = scale(prefix).and_then(|scale| Rate::decimal(count, digits, scale));
    rate.ok_or(expected)
}

/// So many a second, above 0 and up to a million: `500`, `10k`, `2.5k/s`.
pub fn parse_count_rate(text: &str) -> Result<Rate, NoQuantity> {
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = split_unit(lower.strip_suffix("/s").unwrap_or(&lower));
    let rate = |scale| Rate::decimal(RateUnit::PacketsPerSecond, digits, scale);
    scale(unit)
        .and_then(rate)
        .filter(|rate| (0.001..=1e6).contains(&rate.per_second()))
        .ok_or(NoQuantity(
            "a rate from 0.001 to 1m a second was expected, such as 10k",
        ))
}

fn without_bits(unit: &str) -> &str {
    ["bit/s", "bps", "bit", "b"]
        .into_iter()
        .find_map(|suffix| unit.strip_suffix(suffix))
        .unwrap_or(unit)
        .trim()
}

fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    (digits, unit.trim())
}

fn scale(letter: &str) -> Option<u64> {
    Some(match letter {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        _ => return None,
    })
}

/// `digits` times `scale`, when that is a whole number.
fn exact(digits: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let unit = 10u64.checked_pow(fraction.len().try_into().ok()?)?;
    let number: u64 = format!("{whole}{fraction}").parse().ok()?;
    let scaled = u128::from(number) * u128::from(scale);
    let is_whole = scaled.is_multiple_of(u128::from(unit));
    is_whole.then(|| u64::try_from(scaled / u128::from(unit)).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_read_exactly() {
        for (text, speed) in [
            ("100m", 100_000_000),
            ("1G", 1_000_000_000),
            ("2.5g", 2_500_000_000),
            ("10 Gbit/s", 10_000_000_000),
            ("1.544mbps", 1_544_000),
            ("9600", 9600),
            ("0.3g", 300_000_000),
        ] {
            assert_eq!(parse_speed(text), Ok(speed), "{text}");
        }
        for wrong in [
            "",
            "g",
            "0",
            "0.0m",
            "1.5",
            "-1g",
            "1e9",
            "1q",
            "1..2g",
            "99999999t",
        ] {
            assert!(parse_speed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_of_requests_are_bounded() {
        for (text, rate) in [("500", 500), ("2.5k/s", 2500), ("1M", 1_000_000)] {
            assert_eq!(
                parse_count_rate(text).ok(),
                Rate::packets_per_second(rate),
                "{text}"
            );
        }
        for wrong in ["", "0", "-1", "2m", "k", "10pps"] {
            assert!(parse_count_rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_say_what_they_count() {
        for (text, rate) in [
            ("70kpps", Rate::packets_per_second(70_000)),
            ("1.5 Mpps", Rate::packets_per_second(1_500_000)),
            ("36m", Rate::bits_per_second(36_000_000)),
            ("36 Mbit/s", Rate::bits_per_second(36_000_000)),
        ] {
            assert_eq!(parse_rate(text).ok(), rate, "{text}");
        }
        for wrong in ["", "0", "pps", "-1pps", "inf", "1e3pps", "5 packets"] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
    }
}
