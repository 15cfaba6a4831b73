//! Values of knobs: how they are parsed, checked and shown.

use std::fmt;
use std::str::FromStr;

use nicpoll_model::units::{parse_time, show_time};
use nicpoll_sys::schedule::Policy;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The SCHED_DEADLINE period of a CPU share.
const SHARE_PERIOD_NS: u64 = 1_000_000;
/// More than any machine's CPUs or any card's queues.
const RANGE_MAX: u32 = 65_536;
/// Longest text; the kernel takes a page.
const TEXT_MAX: usize = 4096;

/// The value of a knob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// A number in the knob's unit.
    Number(u64),
    /// CPUs, ascending.
    Cpus(Vec<u32>),
    /// The kernel's text, with single spaces.
    Text(String),
    /// A scheduling class with its numbers.
    Policy(Policy),
}

/// The unit of a knob's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnobUnit {
    /// A plain number.
    Count,
    /// Nanoseconds; written with a unit of time.
    Time,
    /// Off or on, as 0 or 1.
    Switch,
    /// CPUs of a thread.
    Cpus,
    /// Class and priority of a thread.
    Scheduling,
    /// Any text that the kernel accepts.
    Text,
}

/// Why a name or a value in a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ValueError(pub(crate) String);

impl ValueError {
    pub(crate) fn out_of_range(value: impl fmt::Display, min: i64, max: u64) -> Self {
        ValueError(format!("{value} is out of range; give {min} to {max}"))
    }

    /// Adds the name of the knob or word to the error.
    pub(crate) fn of(self, name: &str) -> Self {
        ValueError(format!("{name}: {}", self.0))
    }
}

impl Value {
    /// Makes a value of 0 or 1.
    pub fn flag(on: bool) -> Self {
        Value::Number(u64::from(on))
    }

    /// Makes a SCHED_DEADLINE share of a CPU, in percent.
    fn cpu_share(percent: u32) -> Self {
        Value::Policy(Policy::Deadline {
            runtime_ns: SHARE_PERIOD_NS / 100 * u64::from(percent),
            deadline_ns: SHARE_PERIOD_NS,
            period_ns: SHARE_PERIOD_NS,
        })
    }

    /// Returns the number, if the value is one.
    pub fn number(&self) -> Option<u64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Cpus(_) | Value::Policy(_) | Value::Text(_) => None,
        }
    }

    /// Whether a knob of this unit can hold the value.
    pub(crate) fn is_of(&self, unit: KnobUnit) -> bool {
        match self {
            Value::Number(_) => matches!(unit, KnobUnit::Count | KnobUnit::Time | KnobUnit::Switch),
            Value::Cpus(_) => unit == KnobUnit::Cpus,
            Value::Policy(_) => unit == KnobUnit::Scheduling,
            Value::Text(_) => unit == KnobUnit::Text,
        }
    }
}

impl KnobUnit {
    /// Parses a value.
    pub fn parse(self, text: &str) -> Result<Value, ValueError> {
        match self {
            KnobUnit::Count => number(text).map(Value::Number),
            KnobUnit::Time => match parse_time(text) {
                Ok(time) => Ok(Value::Number(time.as_nanos() as u64)),
                Err(error) => Err(ValueError(error.to_string())),
            },
            KnobUnit::Switch => match text {
                "on" | "1" => Ok(Value::flag(true)),
                "off" | "0" => Ok(Value::flag(false)),
                _ => Err(ValueError(format!("'{text}' is neither on nor off"))),
            },
            KnobUnit::Cpus => parse_cpus(text),
            KnobUnit::Scheduling => parse_scheduling(text),
            KnobUnit::Text => text_of(text),
        }
    }

    /// Formats a value as [`KnobUnit::parse`] reads it.
    pub fn show(self, value: &Value) -> String {
        match (self, value) {
            (KnobUnit::Time, Value::Number(ns)) => show_time(*ns),
            (KnobUnit::Switch, Value::Number(0)) => String::from("off"),
            (KnobUnit::Switch, Value::Number(_)) => String::from("on"),
            (_, Value::Policy(policy)) => show_scheduling(*policy),
            (_, value) => value.to_string(),
        }
    }

    /// Describes its values for messages.
    pub fn describe(self) -> &'static str {
        match self {
            KnobUnit::Count => "a number",
            KnobUnit::Time => "a time with its unit",
            KnobUnit::Switch => "on or off",
            KnobUnit::Cpus => "CPUs, such as 1 or 2-3,6",
            KnobUnit::Scheduling => "nice -5, fifo 10 or share 50%",
            KnobUnit::Text => "a number or a word",
        }
    }
}

/// Parses a number within bounds, both included.
pub(crate) fn bounded(text: &str, min: i64, max: i64) -> Result<i64, ValueError> {
    let value: i64 = number(text)?;
    match (min..=max).contains(&value) {
        true => Ok(value),
        false => Err(ValueError::out_of_range(value, min, max as u64)),
    }
}

/// Parses a text of words, with single spaces between them.
pub(crate) fn text_of(text: &str) -> Result<Value, ValueError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() || text.len() > TEXT_MAX || text.chars().any(|c| c == '\0') {
        return Err(ValueError(format!("a value has 1 to {TEXT_MAX} letters")));
    }
    Ok(Value::Text(words.join(" ")))
}

fn number<T: FromStr>(text: &str) -> Result<T, ValueError> {
    text.parse()
        .map_err(|_| ValueError(format!("'{text}' is not a number")))
}

/// Parses a list of CPUs in the kernel's form: `0`, `2-3`, `0,2-3`.
pub(crate) fn parse_cpus(text: &str) -> Result<Value, ValueError> {
    let mut cpus = parse_numbers(text)?;
    cpus.sort_unstable();
    cpus.dedup();
    Ok(Value::Cpus(cpus))
}

/// Parses numbers and ranges, separated by commas.
pub(crate) fn parse_numbers(text: &str) -> Result<Vec<u32>, ValueError> {
    let mut numbers: Vec<u32> = Vec::new();
    for piece in text.split(',') {
        match piece.split_once('-') {
            Some((first, last)) => {
                let (first, last): (u32, u32) = (number(first)?, number(last)?);
                if first > last || last - first >= RANGE_MAX {
                    let wrong = format!("'{piece}' is not a range of 1 to {RANGE_MAX} numbers");
                    return Err(ValueError(wrong));
                }
                numbers.extend(first..=last);
            }
            None => numbers.push(number(piece)?),
        }
    }
    Ok(numbers)
}

/// Parses a nice value: the weight of a thread that shares the CPU.
pub(crate) fn parse_nice(text: &str) -> Result<Value, ValueError> {
    let nice = bounded(text, -20, 19)? as i32;
    Ok(Value::Policy(Policy::Fair { nice }))
}

/// Parses the priority of a real-time thread.
pub(crate) fn parse_fifo(text: &str) -> Result<Value, ValueError> {
    let priority = bounded(text, 1, 99)? as u32;
    Ok(Value::Policy(Policy::Fifo { priority }))
}

/// Parses the CPU share of a thread in percent. The kernel grants 95 % at most.
pub(crate) fn parse_share(text: &str) -> Result<Value, ValueError> {
    Ok(Value::cpu_share(bounded(text, 1, 95)? as u32))
}

fn parse_scheduling(text: &str) -> Result<Value, ValueError> {
    let wrong = || {
        ValueError(format!(
            "'{text}' is not a scheduling policy; write 'nice -5', 'fifo 10' or 'share 50%'"
        ))
    };
    let (class, number) = text.split_once(' ').ok_or_else(wrong)?;
    match class {
        "nice" => parse_nice(number),
        "fifo" => parse_fifo(number),
        "share" => parse_share(number.strip_suffix('%').ok_or_else(wrong)?),
        _ => Err(wrong()),
    }
}

fn show_scheduling(policy: Policy) -> String {
    match policy {
        Policy::Fifo { priority } => format!("fifo {priority}"),
        Policy::Deadline { runtime_ns, .. } => {
            format!("share {}%", runtime_ns * 100 / SHARE_PERIOD_NS)
        }
        other => Value::Policy(other).to_string(),
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Cpus(cpus) => {
                let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
                f.write_str(&cpus.join(","))
            }
            Value::Text(text) => f.write_str(text),
            Value::Policy(Policy::Fair { nice }) => write!(f, "nice {nice}"),
            Value::Policy(Policy::Batch { nice }) => write!(f, "batch, nice {nice}"),
            Value::Policy(Policy::Idle) => f.write_str("idle"),
            Value::Policy(Policy::Fifo { priority }) => write!(f, "FIFO {priority}"),
            Value::Policy(Policy::RoundRobin { priority }) => write!(f, "RR {priority}"),
            Value::Policy(Policy::Deadline {
                runtime_ns,
                period_ns,
                ..
            }) => write!(f, "deadline, {runtime_ns} ns in {period_ns} ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_cpus("2-3,0,2"), Ok(Value::Cpus(vec![0, 2, 3])));
        assert_eq!(parse_numbers("7"), Ok(vec![7]));
        for wrong in ["", "a", "3-1", "1,,2", "-1", "0-99999999", "4294967296"] {
            assert!(parse_numbers(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_value_reads_as_it_is_written() {
        for (unit, text) in [
            (KnobUnit::Count, "7"),
            (KnobUnit::Time, "200us"),
            (KnobUnit::Switch, "on"),
            (KnobUnit::Switch, "off"),
            (KnobUnit::Cpus, "0,2,3"),
            (KnobUnit::Scheduling, "nice -5"),
            (KnobUnit::Scheduling, "fifo 10"),
            (KnobUnit::Scheduling, "share 50%"),
            (KnobUnit::Text, "4096 131072 6291456"),
        ] {
            let value = unit.parse(text).unwrap();
            assert!(value.is_of(unit));
            assert_eq!(unit.show(&value), text);
        }
        for (unit, text) in [
            (KnobUnit::Count, "-1"),
            (KnobUnit::Time, "200"),
            (KnobUnit::Switch, "yes"),
            (KnobUnit::Scheduling, "nice 40"),
            (KnobUnit::Scheduling, "share 50"),
        ] {
            assert!(unit.parse(text).is_err(), "{text}");
        }
    }
}
