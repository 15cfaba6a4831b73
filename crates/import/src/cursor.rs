//! Parses words, numbers and quantities with units at a position of a text.
//!
//! Each call reads a bounded number of bytes. Bit prefixes are powers of 1000 and byte prefixes powers of 1024,
//! as the tools print them; netblast's `Mib/s` is a million bits, as in its source.

use std::ops::Range;

/// Most spaces and line breaks that count as one gap.
const GAP_MAX: usize = 200;
/// Most digits in a number.
const DIGITS_MAX: usize = 24;
/// Most spaces before the rest of a word wrapped onto the next line.
const INDENT_MAX: usize = 8;

/// A position in a text.
#[derive(Clone)]
pub struct Cursor<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
    /// Whether a number continues on the next line if that begins with a digit.
    pub joins: bool,
    /// Whether a number was read that continues on the next line if `joins`.
    pub has_wrapped: bool,
    /// The last number read. Several recognisers look at one place, and most read its number first.
    last: Option<Number>,
}

/// A number that was read, and where.
#[derive(Clone, Copy)]
struct Number {
    at: usize,
    joins: bool,
    end: usize,
    value: f64,
    has_wrapped: bool,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Cursor {
            bytes,
            at,
            joins: false,
            has_wrapped: false,
            last: None,
        }
    }

    pub fn peek(&self) -> u8 {
        self.ahead(0)
    }

    pub fn ahead(&self, by: usize) -> u8 {
        self.bytes.get(self.at + by).copied().unwrap_or(0)
    }

    /// The previous byte.
    pub fn behind(&self) -> u8 {
        let before = self.at.checked_sub(1).and_then(|at| self.bytes.get(at));
        before.copied().unwrap_or(0)
    }

    /// `None` unless nothing but spaces stands before on the line.
    pub fn begins_line(&self) -> Option<()> {
        let mut before = self.bytes[..self.at].iter().rev();
        let before = before.find(|it| **it != b' ');
        before.is_none_or(|it| *it == b'\n').then_some(())
    }

    /// `None` in the middle of a number.
    pub fn begins_number(&self) -> Option<()> {
        let before = self.behind();
        let is_within = before.is_ascii_digit() || matches!(before, b'.' | b',');
        (!is_within).then_some(())
    }

    /// Skips spaces and line breaks, if any.
    pub fn gap(&mut self) -> &mut Self {
        self.pass(GAP_MAX, |byte| matches!(byte, b' ' | b'\n'));
        self
    }

    /// Skips spaces on the same line.
    pub fn spaces(&mut self) -> &mut Self {
        self.pass(GAP_MAX, |byte| byte == b' ');
        self
    }

    /// Runs `read`; moves back if it returns `None`.
    pub fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let began = self.at;
        let found = read(self);
        if found.is_none() {
            self.at = began;
        }
        found
    }

    /// Skips this byte.
    pub fn byte(&mut self, byte: u8) -> Option<()> {
        (self.peek() == byte).then(|| self.at += 1)
    }

    /// Skips these words, even if wrapped or spaced differently. On failure, skips nothing.
    pub fn words(&mut self, words: &str) -> Option<()> {
        // Most words are refused by their first letter.
        let first = words.as_bytes().first().copied();
        if first.is_some_and(|it| it != b' ' && it != self.peek()) {
            return None;
        }
        self.attempt(|cursor| {
            for (index, letter) in words.bytes().enumerate() {
                if letter == b' ' {
                    cursor.gap();
                    continue;
                }
                if cursor.peek() != letter && cursor.peek() == b'\n' && index > 0 {
                    cursor.at += 1;
                    cursor.pass(INDENT_MAX, |byte| byte == b' ');
                }
                cursor.byte(letter)?;
            }
            Some(())
        })
    }

    /// Skips the first of these that is here, and returns it.
    pub fn any<'w>(&mut self, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
        let mut words = words.into_iter();
        words.find(|words| self.words(words).is_some())
    }

    /// Skips the words of the first matching row; returns the rest of that row.
    pub fn row<'r, T>(&mut self, rows: &'r [(&str, T)]) -> Option<&'r T> {
        let mut rows = rows.iter();
        let found = rows.find(|(words, _)| self.words(words).is_some());
        found.map(|(_, rest)| rest)
    }

    fn digit(&self, by: usize) -> bool {
        self.ahead(by).is_ascii_digit()
    }

    /// Whether exactly three digits are `by` bytes ahead.
    fn is_group(&self, by: usize) -> bool {
        (0..3).all(|more| self.digit(by + more)) && !self.digit(by + 3)
    }

    /// Reads digits, with thousands separated by commas, by apostrophes or, if `by_spaces`, by spaces.
    fn whole(&mut self, by_spaces: bool) -> Option<Digits> {
        let mut digits = Digits {
            bytes: [0; 2 * DIGITS_MAX],
            length: 0,
        };
        let mut has_groups = false;
        while digits.length < DIGITS_MAX {
            if self.digit(0) {
                digits.push(self.peek());
                self.at += 1;
                continue;
            }
            if digits.length == 0 {
                return None;
            }
            let may_part = has_groups || digits.length <= 3;
            let parts = matches!(self.peek(), b',' | b'\'') || (by_spaces && self.peek() == b' ');
            let is_parted = parts && may_part && self.is_group(1);
            if is_parted || self.wraps(0) {
                has_groups |= is_parted;
                self.at += 1;
                continue;
            }
            break;
        }
        (!self.digit(0)).then_some(digits)
    }

    /// Whether the number continues on a line that begins after `by` bytes.
    fn wraps(&mut self, by: usize) -> bool {
        let may_go_on = self.ahead(by) == b'\n' && self.digit(by + 1);
        self.has_wrapped |= may_go_on;
        may_go_on && self.joins
    }

    /// Reads a whole number.
    pub fn count(&mut self, by_spaces: bool) -> Option<f64> {
        self.attempt(|cursor| cursor.whole(by_spaces)?.number())
    }

    /// Reads a number; its decimal point may be a comma.
    pub fn number(&mut self) -> Option<f64> {
        let (at, joins) = (self.at, self.joins);
        if let Some(known) = self.last.filter(|it| it.at == at && it.joins == joins) {
            self.at = known.end;
            self.has_wrapped |= known.has_wrapped;
            return Some(known.value);
        }
        let had_wrapped = std::mem::take(&mut self.has_wrapped);
        let value = self.attempt(Self::decimal);
        self.last = value.map(|value| Number {
            at,
            joins,
            end: self.at,
            value,
            has_wrapped: self.has_wrapped,
        });
        self.has_wrapped |= had_wrapped;
        value
    }

    fn decimal(&mut self) -> Option<f64> {
        let mut digits = self.whole(false)?;
        if matches!(self.peek(), b'.' | b',') && (self.digit(1) || self.wraps(1)) {
            self.at += 1;
            digits.push(b'.');
            while digits.length < 2 * DIGITS_MAX {
                if self.wraps(0) {
                    self.at += 1;
                }
                if !self.digit(0) {
                    break;
                }
                digits.push(self.peek());
                self.at += 1;
            }
        }
        digits.number()
    }

    /// Skips at most `max` bytes that `takes` accepts.
    fn pass(&mut self, max: usize, takes: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        let rest = &rest[..rest.len().min(max)];
        let end = rest.iter().position(|byte| !takes(*byte));
        let passed = &rest[..end.unwrap_or(rest.len())];
        self.at += passed.len();
        passed
    }

    /// Reads `17:05:31`, in seconds.
    pub fn time_of_day(&mut self) -> Option<f64> {
        self.attempt(|cursor| {
            let mut seconds = 0.0;
            for part in 0..3 {
                if part > 0 {
                    cursor.byte(b':')?;
                }
                let digits = cursor.word(2, |it| it.is_ascii_digit())?;
                seconds = 60.0 * seconds + digits.parse::<f64>().ok()?;
            }
            Some(seconds)
        })
    }

    /// Reads at most `max` bytes that `takes` accepts; `None` if there are none.
    pub fn word(&mut self, max: usize, takes: impl Fn(u8) -> bool) -> Option<&'a str> {
        let word = std::str::from_utf8(self.pass(max, takes)).ok();
        word.filter(|word| !word.is_empty())
    }

    /// The text of a range, on one line.
    pub fn shown(bytes: &[u8], range: Range<usize>) -> String {
        let text = String::from_utf8_lossy(&bytes[range]);
        let words: Vec<&str> = text
            .split([' ', '\n'])
            .filter(|it| !it.is_empty())
            .collect();
        let text = words
            .join(" ")
            .replace(|letter: char| letter.is_control(), "?");
        text.chars().take(160).collect()
    }
}

/// The digits of a number and its decimal point.
struct Digits {
    bytes: [u8; 2 * DIGITS_MAX],
    length: usize,
}

impl Digits {
    fn push(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    fn number(&self) -> Option<f64> {
        let text = std::str::from_utf8(&self.bytes[..self.length]).ok()?;
        text.parse().ok().filter(|it: &f64| it.is_finite())
    }
}

/// The kind of a number with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredUnit {
    /// A rate.
    BitsPerSecond,
    /// A rate.
    PacketsPerSecond,
    /// A rate of interrupts, or of what the text counts.
    EventsPerSecond,
    /// An amount.
    Bytes,
    /// A number of packets, or of what the kernel did for them.
    Count,
    /// A share, in percent.
    Percent,
    /// A time, in seconds.
    Seconds,
}

/// Units: kind, value without a prefix, step between prefixes, and spellings between bars. A longer spelling comes before
/// its own prefix.
const FORMS: [(MeasuredUnit, f64, f64, &str); 11] = [
    (MeasuredUnit::BitsPerSecond, 1.0, 1e3, BITS),
    (MeasuredUnit::BitsPerSecond, 8.0, 1024.0, BYTES),
    (MeasuredUnit::PacketsPerSecond, 1.0, 1e3, PACKETS),
    (MeasuredUnit::EventsPerSecond, 1.0, 1e3, EVENTS),
    (MeasuredUnit::Percent, 1.0, 1.0, "percent|per cent|%"),
    (MeasuredUnit::Count, 1.0, 1e3, COUNTS),
    (MeasuredUnit::Bytes, 1.0, 1024.0, "Bytes|Byte|bytes|byte"),
    (MeasuredUnit::Seconds, 1.0, 1.0, "seconds|second|secs|sec|s"),
    (MeasuredUnit::Seconds, 60.0, 1.0, "minutes|minute|min"),
    (MeasuredUnit::Seconds, 1e-3, 1.0, "milliseconds|msec|ms"),
    (MeasuredUnit::Seconds, 1e-6, 1.0, "microseconds|usec|us"),
];
const BITS: &str = "bits/second|bits/sec|bit/sec|bits/s|bit/s|ib/s|b/sec|b/s|bps";
const BYTES: &str = "Bytes/sec|Byte/sec|Bytes/s|Byte/s|byte/s|B/sec|B/s";
const PACKETS: &str = "packets per second|packets a second|packets/second|packets/sec|packets/s|\
    pkts/sec|pkts/s|pkt/s|frames/s|datagrams per second|datagrams a second|datagrams/s|pps";
const EVENTS: &str = "interrupts per second|interrupts a second|interrupts/sec|interrupts/s|ints/s|int/s|intr/s|\
    irqs per second|irqs a second|irqs/s|irq/s|per second|a second|/second|/sec|/s";
const COUNTS: &str = "packets|datagrams|frames|interrupts|retransmits|retransmissions";

/// Reads a unit; returns its kind and value.
pub fn read(cursor: &mut Cursor) -> Option<(MeasuredUnit, f64)> {
    let prefix = cursor.peek().to_ascii_lowercase();
    let power = b"kmgtp".iter().position(|letter| *letter == prefix);
    let prefixed = power.and_then(|power| {
        cursor.attempt(|cursor| {
            cursor.at += 1;
            unit(cursor.spaces(), power as i32 + 1)
        })
    });
    // `41 thousand interrupts/s`
    let thousands = |it: &mut Cursor| {
        let power = 1 + i32::from(it.any(["thousand", "million"])? == "million");
        unit(it.gap(), power)
    };
    let prefixed = prefixed.or_else(|| cursor.attempt(thousands));
    prefixed.or_else(|| unit(cursor, 0))
}

/// Reads what a text counts each second: `requests/s`, `context switches a second`.
fn counted(cursor: &mut Cursor) -> Option<(MeasuredUnit, f64)> {
    const WORD_MAX: usize = 16;
    cursor.attempt(|cursor| {
        for _ in 0..2 {
            cursor.word(WORD_MAX, |it| it.is_ascii_lowercase())?;
            let is_next = cursor.any(["/s", " per second", " a second"]).is_some();
            if is_next && !cursor.peek().is_ascii_alphanumeric() {
                return Some((MeasuredUnit::EventsPerSecond, 1.0));
            }
            cursor.byte(b' ')?;
        }
        None
    })
}

/// Reads a unit after a prefix of this power; returns its kind and value.
fn unit(cursor: &mut Cursor, power: i32) -> Option<(MeasuredUnit, f64)> {
    b"bBipfrsmud%a/".contains(&cursor.peek()).then_some(())?;
    FORMS.iter().find_map(|(unit, one, prefix, words)| {
        let is_plain = *prefix == 1.0;
        (power == 0 || !is_plain).then_some(())?;
        cursor.attempt(|cursor| {
            cursor.any(words.split('|'))?;
            // In prose `10 m` or `5 min` may begin a word, and `2/s` a path.
            let is_word =
                is_plain || matches!(unit, MeasuredUnit::EventsPerSecond | MeasuredUnit::Count);
            (!is_word || !cursor.peek().is_ascii_alphanumeric()).then_some(())
        })?;
        Some((*unit, one * prefix.powi(power)))
    })
}

/// A number with a unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredNumber {
    /// In bits per second, packets per second, or bytes.
    pub value: f64,
    /// The kind.
    pub unit: MeasuredUnit,
    /// Half a unit of the last printed digit, in the same unit.
    pub half_step: f64,
}

impl MeasuredNumber {
    /// The relative rounding error of the printed figure; infinite for 0.
    pub fn rounding(&self) -> f64 {
        self.half_step / self.value
    }
}

/// Reads a number with a unit, and its precision.
pub fn measured(cursor: &mut Cursor) -> Option<MeasuredNumber> {
    measured_with(cursor, |cursor| {
        read(cursor.gap()).or_else(|| counted(cursor))
    })
}

/// Reads a number with a unit, or all of a text that is a number of this `unit`.
pub fn measured_or(
    cursor: &mut Cursor,
    unit: impl Fn() -> Option<(MeasuredUnit, f64)>,
) -> Option<MeasuredNumber> {
    let whole = |cursor: &mut Cursor| unit().filter(|_| cursor.at == cursor.bytes.len());
    measured(cursor).or_else(|| measured_with(cursor, whole))
}

fn measured_with(
    cursor: &mut Cursor,
    unit: impl Fn(&mut Cursor) -> Option<(MeasuredUnit, f64)>,
) -> Option<MeasuredNumber> {
    cursor.attempt(|cursor| {
        let began = cursor.at;
        let number = cursor.number()?;
        let printed = &cursor.bytes[began..cursor.at];
        let (unit, one) = unit(cursor)?;
        Some(MeasuredNumber {
            value: times(number, printed, one),
            unit,
            half_step: 0.5 * one * 0.1f64.powi(decimals(printed)),
        })
    })
}

/// Reads several numbers before one unit, or where they are wrapped the first alone, whose value it is: `80 to 90 %`, `18.4, 18.9 and 19.1 Gbit/s`.
pub fn shared(cursor: &mut Cursor) -> Option<MeasuredNumber> {
    const JOINTS: [&str; 5] = ["-", "to ", "and ", "or ", ", "];
    const NUMBERS_MAX: usize = 5;
    cursor.attempt(|cursor| {
        let began = cursor.at;
        let first = cursor.number()?;
        let end = cursor.at;
        for _ in 1..NUMBERS_MAX {
            let joint = cursor.gap().any(JOINTS)?;
            cursor.gap().number()?;
            if let Some((unit, one)) = read(cursor.gap()) {
                // Before a comma alone may stand another thing: `in run 4, 5.9 %`.
                (joint != ", ").then_some(())?;
                if cursor.bytes[began..cursor.at].contains(&b'\n') {
                    cursor.at = end;
                }
                return Some(MeasuredNumber {
                    value: first * one,
                    unit,
                    half_step: 0.0,
                });
            }
        }
        None
    })
}

/// Reads a number with this kind of unit.
pub fn measured_in(cursor: &mut Cursor, unit: MeasuredUnit) -> Option<MeasuredNumber> {
    measured(cursor).filter(|it| it.unit == unit)
}

/// Digits after the decimal point, which may be a comma; a comma before three digits separates thousands.
fn decimals(printed: &[u8]) -> i32 {
    let Some(point) = printed.iter().rposition(|it| matches!(it, b'.' | b',')) else {
        return 0;
    };
    let digits = printed[point + 1..]
        .iter()
        .filter(|it| it.is_ascii_digit())
        .count();
    match (printed[point], digits) {
        (b',', 3) => 0,
        _ => digits as i32,
    }
}

/// Multiplies by `one`. For powers of ten, returns the float nearest to the printed number, which the product
/// may miss.
fn times(number: f64, printed: &[u8], one: f64) -> f64 {
    let power = one.log10();
    let plain = std::str::from_utf8(printed)
        .ok()
        .filter(|it| !it.contains([',', '\n', ' ']));
    match plain.filter(|_| power.fract() == 0.0) {
        Some(plain) => format!("{plain}e{power}").parse().unwrap_or(number * one),
        None => number * one,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Cursor<'_> {
        Cursor::new(text.as_bytes(), 0)
    }

    #[test]
    fn words_are_found_wrapped_and_with_any_spaces() {
        for text in [
            "Server Report:",
            "ServerReport:",
            "Server   Re\n  port:",
            "Server\nReport:",
        ] {
            assert!(at(text).words("Server Report:").is_some(), "{text:?}");
        }
        let mut short = at("Server Rep");
        assert!(short.words("Server Report:").is_none() && short.at == 0);
    }

    #[test]
    fn numbers_are_read_with_thousands_decimals_and_wraps() {
        let count = |text: &str, by_spaces| at(text).count(by_spaces);
        assert_eq!(count("1,125,481 x", false), Some(1_125_481.0));
        assert_eq!(count("1 125 481x", true), Some(1_125_481.0));
        assert_eq!(count("80635053 1057", true), Some(80_635_053.0));
        assert_eq!(count("3 100", false), Some(3.0));
        assert_eq!(at("8,87 Mb").number(), Some(8.87));
        assert_eq!(at("0.0- 5").number(), Some(0.0));
        assert_eq!(at("7.").number(), Some(7.0));
        let mut wrapped = at("14\n4.\n5 M");
        assert_eq!(wrapped.number(), Some(14.0));
        wrapped = Cursor {
            joins: true,
            ..at("14\n4.\n5 M")
        };
        assert_eq!(wrapped.number(), Some(144.5));
    }

    #[test]
    fn every_form_of_a_unit_is_read() {
        for (text, expected) in [
            ("170 Mbits/sec", (170e6, MeasuredUnit::BitsPerSecond)),
            ("170Mbits/sec[", (170e6, MeasuredUnit::BitsPerSecond)),
            ("81 Mib/s", (81e6, MeasuredUnit::BitsPerSecond)),
            ("81.25 Mb/s", (81.25e6, MeasuredUnit::BitsPerSecond)),
            ("8.87Mbit/s", (8.87e6, MeasuredUnit::BitsPerSecond)),
            ("8,87 Mbps", (8.87e6, MeasuredUnit::BitsPerSecond)),
            ("70 Kpps", (70e3, MeasuredUnit::PacketsPerSecond)),
            ("70,5 kpps", (70.5e3, MeasuredUnit::PacketsPerSecond)),
            ("32.5 KByte", (33_280.0, MeasuredUnit::Bytes)),
            ("0.03 MByte", (0.03 * 1048576.0, MeasuredUnit::Bytes)),
            (
                "1.5 MBytes/sec",
                (1.5 * 1048576.0 * 8.0, MeasuredUnit::BitsPerSecond),
            ),
            ("9 Mbits/s\nec", (9e6, MeasuredUnit::BitsPerSecond)),
            ("7244 pps", (7244.0, MeasuredUnit::PacketsPerSecond)),
            ("21k packets/s", (21e3, MeasuredUnit::PacketsPerSecond)),
            ("9k irq/s", (9e3, MeasuredUnit::EventsPerSecond)),
            ("1.1k/s", (1100.0, MeasuredUnit::EventsPerSecond)),
            ("31,000 a second", (31e3, MeasuredUnit::EventsPerSecond)),
            ("20 requests/s", (20.0, MeasuredUnit::EventsPerSecond)),
            (
                "88000 context switches a second",
                (88e3, MeasuredUnit::EventsPerSecond),
            ),
        ] {
            let mut cursor = Cursor::new(text.as_bytes(), 0);
            let found = measured(&mut cursor).map(|it| (it.value, it.unit));
            assert_eq!(found, Some(expected), "{text}");
        }
        for text in ["7 apples", "2/sys/class", "2 hosts/site"] {
            assert_eq!(measured(&mut Cursor::new(text.as_bytes(), 0)), None);
        }
    }

    #[test]
    fn numbers_share_a_unit() {
        for (text, expected) in [
            ("80 to 90 %", Some((80.0, MeasuredUnit::Percent))),
            ("24-40%", Some((24.0, MeasuredUnit::Percent))),
            (
                "18.4, 18.9 and\n19 Gbit/s",
                Some((18.4e9, MeasuredUnit::BitsPerSecond)),
            ),
            ("10 and a few kpps", None),
            ("4, 5.9 %", None),
        ] {
            let mut cursor = Cursor::new(text.as_bytes(), 0);
            let found = shared(&mut cursor).map(|it| (it.value, it.unit));
            assert_eq!(found, expected, "{text}");
        }
    }
}
