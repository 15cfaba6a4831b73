//! Names with options, as the command line takes them: `freebsd-polling:user_frac=0:burst_max=1000`.

use thiserror::Error;

/// Why a simulation or its description is refused: what is wrong, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SimError(pub(crate) String);

impl From<String> for SimError {
    fn from(message: String) -> Self {
        SimError(message)
    }
}

/// Fails with a message.
pub(crate) fn refuse<T>(message: impl Into<String>) -> Result<T, SimError> {
    Err(SimError(message.into()))
}

/// A name and its options.
#[derive(Clone, Debug)]
pub(crate) struct NameAndOptions<'a> {
    pub(crate) name: &'a str,
    pub(crate) options: Vec<(&'a str, &'a str)>,
}

impl<'a> NameAndOptions<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, SimError> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let mut options: Vec<(&str, &str)> = Vec::new();
        for part in parts {
            let option = part.split_once('=').ok_or_else(|| {
                SimError(format!(
                    "'{part}' in '{text}' is not an option; options have the form NAME=VALUE"
                ))
            })?;
            if options.iter().any(|(name, _)| *name == option.0) {
                return refuse(format!("{} is given twice in '{text}'", option.0));
            }
            options.push(option);
        }
        Ok(NameAndOptions { name, options })
    }
}

/// Parses a whole number, with or without a unit: a power of ten (`10k`, `1.5m`), or a time, in nanoseconds (`50us`,
/// `1ms`).
///
/// # Errors
/// What was expected.
pub fn number(text: &str) -> Result<u64, SimError> {
    let expected = || {
        SimError(format!(
            "'{text}' is not a whole number; give one such as 500, 10k or 50us"
        ))
    };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    let scale: u64 = match unit {
        "" | "ns" => 1,
        "k" | "us" => 1_000,
        "m" | "ms" => 1_000_000,
        "g" | "s" => 1_000_000_000,
        _ => return Err(expected()),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let divisor = 10u64
        .checked_pow(fraction.len().try_into().unwrap_or(u32::MAX))
        .filter(|divisor| scale.is_multiple_of(*divisor))
        .ok_or_else(expected)?;
    let joined: u64 = format!("{whole}{fraction}")
        .parse()
        .map_err(|_| expected())?;
    joined.checked_mul(scale / divisor).ok_or_else(expected)
}

/// Parses an option's number, and checks its range.
pub(crate) fn ranged(name: &str, text: &str, min: u64, max: u64) -> Result<u64, SimError> {
    let value = number(text).map_err(|error| SimError(format!("{name}: {error}")))?;
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        refuse(format!(
            "{name}={text} is out of range; give {min} to {max}"
        ))
    }
}
