//! Times as options and files write them: a number with a unit.

use std::time::Duration;

use thiserror::Error;

/// Beyond any sense, and where the conversion would no longer be exact: 11 days.
const NANOSECONDS_MAX: f64 = 1e15;

/// Why a text is not a time.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TimeError {
    /// A number alone could mean any unit.
    #[error("a unit is needed, such as '{number}{first}' or '{number}{second}'", first = .like[0], second = .like[1])]
    NoUnit {
        /// What was written.
        number: String,
        /// Units that are likely meant.
        like: [&'static str; 2],
    },
    /// No such unit.
    #[error("'{unit}' is not a unit of time here; use {known}")]
    Unit {
        /// What was written.
        unit: String,
        /// What is one.
        known: &'static str,
    },
    /// No number.
    #[error("a number and a unit were expected, such as 200us")]
    Number,
    /// Too long.
    #[error("{0} is out of range")]
    Range(String),
}

/// Reads a time with a unit: `200us`, `0.5ms`. Minutes are no unit of a period: `50m` is likely to be a `50ms` that
/// lost a letter.
///
/// # Errors
/// [`TimeError::NoUnit`] without a unit.
pub fn parse_time(text: &str) -> Result<Duration, TimeError> {
    let (number, unit) = with_unit(text, ["us", "ms"])?;
    time(number, unit, &PERIODS)
}

/// Reads the length of a whole run, with a unit: `150s`, `10m`, `2h`, `3d`.
///
/// # Errors
/// [`TimeError::NoUnit`] without a unit.
pub fn parse_length(text: &str) -> Result<Duration, TimeError> {
    let (number, unit) = with_unit(text, ["s", "m"])?;
    time(number, unit, &LENGTHS)
}

/// Reads a time in seconds, or with another unit: `1.5`, `250ms`, `10m`, `2h`, `3d`.
pub fn parse_seconds(text: &str) -> Result<Duration, TimeError> {
    match split_unit(text) {
        (number, "") => time(number, "s", &LENGTHS),
        (number, unit) => time(number, unit, &LENGTHS),
    }
}

/// Writes a time in the largest unit that keeps it a whole number: `200us`.
pub fn show_time(nanoseconds: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let fits = |(scale, _): &&(u64, &str)| nanoseconds > 0 && nanoseconds.is_multiple_of(*scale);
    match units.iter().find(fits) {
        Some((scale, unit)) => format!("{}{unit}", nanoseconds / scale),
        None => format!("{nanoseconds}ns"),
    }
}

fn split_unit(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim())
}

fn with_unit<'a>(text: &'a str, like: [&'static str; 2]) -> Result<(&'a str, &'a str), TimeError> {
    match split_unit(text) {
        (number, "") => Err(TimeError::NoUnit {
            number: String::from(number),
            like,
        }),
        parts => Ok(parts),
    }
}

/// The units from the shortest, and how many nanoseconds each has.
static NANOS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3_600e9),
    ("d", 86_400e9),
];

/// Those that a time may have.
struct Units {
    known: &'static [(&'static str, f64)],
    named: &'static str,
}

static PERIODS: Units = Units {
    known: NANOS.split_at(5).0,
    named: "ns, us, ms or s",
};
static LENGTHS: Units = Units {
    known: &NANOS,
    named: "ms, s, m, h or d",
};

fn time(number: &str, unit: &str, units: &Units) -> Result<Duration, TimeError> {
    let known = units.known.iter().find(|(name, _)| *name == unit);
    let (_, nanos_per_unit) = known.ok_or_else(|| TimeError::Unit {
        unit: String::from(unit),
        known: units.named,
    })?;
    let value: f64 = number.parse().map_err(|_| TimeError::Number)?;
    let nanos = value * nanos_per_unit;
    if !(0.0..=NANOSECONDS_MAX).contains(&nanos) {
        return Err(TimeError::Range(String::from(number)));
    }
    Ok(Duration::from_nanos(nanos.round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(parse_time("200us"), Ok(Duration::from_micros(200)));
        assert_eq!(parse_time("0.5ms"), Ok(Duration::from_micros(500)));
        assert_eq!(parse_time("50µs"), Ok(Duration::from_micros(50)));
        assert_eq!(parse_seconds("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_seconds("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_seconds("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(parse_seconds("1.5h"), Ok(Duration::from_secs(5_400)));
        assert_eq!(parse_seconds("3d"), Ok(Duration::from_secs(259_200)));
        assert!(parse_time("10m").is_err());
        assert_eq!(parse_length("10m"), Ok(Duration::from_secs(600)));
        let missing = parse_time("200").unwrap_err();
        assert!(missing.to_string().contains("'200us' or '200ms'"));
        let missing = parse_length("200").unwrap_err();
        assert!(missing.to_string().contains("'200s' or '200m'"));
        let unknown = parse_length("2 weeks").unwrap_err();
        assert!(unknown.to_string().contains("'weeks'") && unknown.to_string().contains("h or d"));
        for wrong in [
            "",
            "us",
            "1..2us",
            "-1us",
            "1e3us",
            "5 parsecs",
            "99999999s",
        ] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_reads_as_it_is_written() {
        for (nanoseconds, text) in [
            (0, "0ns"),
            (1_500, "1500ns"),
            (200_000, "200us"),
            (3_000_000_000, "3s"),
        ] {
            assert_eq!(show_time(nanoseconds), text);
            let read = parse_time(text).unwrap();
            assert_eq!(read.as_nanos(), u128::from(nanoseconds));
        }
    }
}
