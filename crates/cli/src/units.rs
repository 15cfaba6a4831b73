//! Numbers with units, as options give them. Powers of ten always.

use nicpoll_model::line::Rate;

/// A line's speed in bits a second: `100m`, `2.5g`, `10Gbit/s`. Exact, or an error.
pub fn parse_speed(text: &str) -> Result<u64, String> {
    let expected = "a speed such as 100m, 2.5g or 10g was expected, in bit/s";
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = split_unit(&lower);
    let scale = scale(without_bits(unit)).ok_or(expected)?;
    let speed = exact(digits, scale).ok_or(expected)?;
    if speed == 0 {
        return Err(String::from("a line of 0 bit/s carries nothing"));
    }
    Ok(speed)
}

/// A rate: packets a second (`70kpps`), or bits a second (`36m`, `36mbit/s`).
pub fn parse_rate(text: &str) -> Result<Rate, String> {
    let expected = "a rate such as 70kpps (packets/s) or 36m (bit/s) was expected";
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = split_unit(&lower);
    let rate = |unit| -> Option<f64> {
        let scale = scale(unit)?;
        let number: f64 = digits.parse().ok()?;
        Some(number * scale as f64)
    };
    let rate = match unit.strip_suffix("pps") {
        Some(unit) => rate(unit.trim()).map(Rate::PacketsPerSecond),
        None => rate(without_bits(unit)).map(Rate::BitsPerSecond),
    };
    rate.ok_or_else(|| String::from(expected))
}

/// So many a second, above 0 and up to a million: `500`, `10k`, `2.5k/s`.
pub fn parse_count_rate(text: &str) -> Result<f64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = split_unit(lower.strip_suffix("/s").unwrap_or(&lower));
    let scale = scale(unit);
    let rate = digits.parse().ok().zip(scale);
    rate.map(|(number, scale): (f64, u64)| number * scale as f64)
        .filter(|rate| (0.001..=1e6).contains(rate))
        .ok_or_else(|| String::from("a rate from 0.001 to 1m a second was expected, such as 10k"))
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
        assert_eq!(parse_count_rate("500"), Ok(500.0));
        assert_eq!(parse_count_rate("2.5k/s"), Ok(2500.0));
        assert_eq!(parse_count_rate("1M"), Ok(1e6));
        for wrong in ["", "0", "-1", "2m", "k", "10pps"] {
            assert!(parse_count_rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_say_what_they_count() {
        assert_eq!(parse_rate("70kpps"), Ok(Rate::PacketsPerSecond(70e3)));
        assert_eq!(parse_rate("1.5 Mpps"), Ok(Rate::PacketsPerSecond(1.5e6)));
        assert_eq!(parse_rate("36m"), Ok(Rate::BitsPerSecond(36e6)));
        assert_eq!(parse_rate("36 Mbit/s"), Ok(Rate::BitsPerSecond(36e6)));
        for wrong in ["", "pps", "-1pps", "inf", "1e3pps", "5 packets"] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
    }
}
