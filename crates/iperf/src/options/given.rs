//! A value as it was given, and what it is read as.

use std::path::PathBuf;

use nicpoll_model::Rate;

use super::error::OptionError;
use super::units::{self, SECONDS_MAX};
use crate::text::Style;
use crate::wire::Dialect;

/// A value, and how to complain about it.
pub struct Given<'a> {
    /// The value.
    pub value: &'a str,
    /// The option or the variable that it came with.
    pub source: &'a str,
}

impl Given<'_> {
    /// The refusal of a value that is none.
    pub fn invalid(&self, expected: impl Into<String>) -> OptionError {
        OptionError::Value {
            option: self.source.to_owned(),
            value: self.value.to_owned(),
            expected: expected.into(),
        }
    }

    /// The refusal of a value of iperf's that is left out.
    pub fn left_out(&self, instead: &'static str) -> OptionError {
        OptionError::NotYet {
            option: format!("{} {}", self.source, self.value),
            instead,
        }
    }

    /// A number with a unit, cut to a whole one.
    pub fn count(&self, least: u64, most: u64) -> Result<u64, OptionError> {
        units::count(self.value, least..=most).ok_or_else(|| {
            self.invalid(format!(
                "a number from {least} to {most}, with k, m, g, K, M or G behind it if you like"
            ))
        })
    }

    /// A whole number without a unit.
    pub fn integer(&self, least: u32, most: u32) -> Result<u32, OptionError> {
        units::integer(self.value, least..=most)
            .ok_or_else(|| self.invalid(format!("a whole number from {least} to {most}")))
    }

    /// Seconds, which may be 0 and below.
    pub fn seconds(&self) -> Result<f64, OptionError> {
        units::number(self.value)
            .filter(|seconds| *seconds <= SECONDS_MAX)
            .ok_or_else(|| self.invalid(format!("seconds, at most {SECONDS_MAX}")))
    }

    /// Something that has a name.
    pub fn name(&self, expected: &str) -> Result<String, OptionError> {
        if self.value.is_empty() || self.value.contains('\0') {
            return Err(self.invalid(expected));
        }
        Ok(self.value.to_owned())
    }

    /// A file.
    pub fn file(&self) -> Result<PathBuf, OptionError> {
        Ok(self.name("the name of a file")?.into())
    }

    /// A port.
    pub fn port(&self) -> Result<u16, OptionError> {
        Ok(self.integer(1, u16::MAX.into())? as u16)
    }

    /// A port, or the first and the last one of a range.
    pub fn ports(&self) -> Result<(u16, Option<u16>), OptionError> {
        let Some((first, last)) = self.value.split_once('-') else {
            return Ok((self.port()?, None));
        };
        let number = |text: &str| units::integer(text, 1..=u16::MAX.into()).map(|port| port as u16);
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => {
                Ok((first, Some(last).filter(|last| *last > first)))
            }
            _ => Err(self.invalid("a port from 1 to 65535, or the first and the last of a range")),
        }
    }

    /// Whose lines to print.
    pub fn style(&self) -> Result<Style, OptionError> {
        match self.value {
            "2.0" => Ok(Style::V2_0),
            "2.1" => Ok(Style::V2_1),
            _ => Err(self.invalid("2.0 or 2.1")),
        }
    }

    /// The dialect of a version before 2.1, which is spoken without being asked for.
    pub fn dialect(&self) -> Result<Dialect, OptionError> {
        let patch = self.value.strip_prefix("2.0.");
        match patch.and_then(|patch| units::integer(patch, 2..=13)) {
            Some(..=7) => Ok(Dialect::V2_0_2),
            Some(8 | 9) => Ok(Dialect::V2_0_8),
            Some(..=12) => Ok(Dialect::V2_0_10),
            Some(_) => Ok(Dialect::V2_0_13),
            None => Err(self.invalid("the server's version, 2.0.2 to 2.0.13; 2.1 needs none")),
        }
    }

    /// A rate in bits or packets.
    pub fn rate(&self) -> Result<Rate, OptionError> {
        if self.value.contains(',') {
            return Err(self.left_out("give one rate, which does not vary"));
        }
        units::rate(self.value).ok_or_else(|| {
            self.invalid(
                "bits a second from 8, with k, m, g, K, M or G behind it if you like, or packets \
                 a second up to 1000000000 with pps behind it",
            )
        })
    }

    /// An IP_TOS byte.
    pub fn type_of_service(&self) -> Result<u8, OptionError> {
        units::tos(self.value).ok_or_else(|| {
            self.invalid("a byte (decimal, 0x hex, 0 octal) or a name such as cs1 or ef")
        })
    }
}
