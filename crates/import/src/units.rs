//! Units that tools print, in the forms in which people write them.
//!
//! What must hold: bits a second go by thousands, bytes of tools that count memory by 1024. netblast's `Mib/s` is a
//! million bits, as its source reckons.

use crate::transcript::Cursor;

/// What a number with a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A rate.
    BitsPerSecond,
    /// A rate.
    PacketsPerSecond,
    /// An amount.
    Bytes,
}

/// A unit: how it is written behind its prefix, what it is, and what one of it is for each power of the prefix.
struct Form {
    word: &'static str,
    unit: Unit,
    one: f64,
    power: f64,
}

const fn form(word: &'static str, unit: Unit, one: f64, power: f64) -> Form {
    Form {
        word,
        unit,
        one,
        power,
    }
}

/// The longer form before the shorter one that it begins with.
const FORMS: [Form; 24] = [
    form("bits/second", Unit::BitsPerSecond, 1.0, 1e3),
    form("bits/sec", Unit::BitsPerSecond, 1.0, 1e3),
    form("bit/sec", Unit::BitsPerSecond, 1.0, 1e3),
    form("bits/s", Unit::BitsPerSecond, 1.0, 1e3),
    form("bit/s", Unit::BitsPerSecond, 1.0, 1e3),
    form("ib/s", Unit::BitsPerSecond, 1.0, 1e3),
    form("b/sec", Unit::BitsPerSecond, 1.0, 1e3),
    form("b/s", Unit::BitsPerSecond, 1.0, 1e3),
    form("bps", Unit::BitsPerSecond, 1.0, 1e3),
    form("Bytes/sec", Unit::BitsPerSecond, 8.0, 1024.0),
    form("Byte/sec", Unit::BitsPerSecond, 8.0, 1024.0),
    form("Bytes/s", Unit::BitsPerSecond, 8.0, 1024.0),
    form("Byte/s", Unit::BitsPerSecond, 8.0, 1024.0),
    form("B/sec", Unit::BitsPerSecond, 8.0, 1024.0),
    form("B/s", Unit::BitsPerSecond, 8.0, 1024.0),
    form("pkts/sec", Unit::PacketsPerSecond, 1.0, 1e3),
    form("pkts/s", Unit::PacketsPerSecond, 1.0, 1e3),
    form("pkt/s", Unit::PacketsPerSecond, 1.0, 1e3),
    form("packets/s", Unit::PacketsPerSecond, 1.0, 1e3),
    form("pps", Unit::PacketsPerSecond, 1.0, 1e3),
    form("Bytes", Unit::Bytes, 1.0, 1024.0),
    form("Byte", Unit::Bytes, 1.0, 1024.0),
    form("bytes", Unit::Bytes, 1.0, 1024.0),
    form("byte", Unit::Bytes, 1.0, 1024.0),
];

/// The unit that stands here, and what one of it is.
pub fn read(cursor: &mut Cursor) -> Option<(Unit, f64)> {
    let began = cursor.at;
    let prefixes: [(&[u8], i32); 6] = [
        (b"Kk", 1),
        (b"Mm", 2),
        (b"Gg", 3),
        (b"Tt", 4),
        (b"Pp", 5),
        (b"", 0),
    ];
    for (letters, power) in prefixes {
        cursor.at = began;
        if power > 0 {
            if !letters.contains(&cursor.peek()) {
                continue;
            }
            cursor.at += 1;
        }
        for form in &FORMS {
            if cursor.words(form.word).is_some() {
                return Some((form.unit, form.one * form.power.powi(power)));
            }
        }
    }
    cursor.at = began;
    None
}

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The number, in the unit of the kind.
    pub value: f64,
    /// What it is.
    pub unit: Unit,
    /// Half of one in the last digit that is printed, in the same unit.
    pub half_step: f64,
}

impl Measured {
    /// The share by which what was measured may differ from what is printed; without bound for a printed 0.
    pub fn rounding(&self) -> f64 {
        self.half_step / self.value
    }
}

/// A number with its unit, and how finely it is printed.
pub fn measured(cursor: &mut Cursor) -> Option<Measured> {
    let began = cursor.at;
    let number = cursor.number();
    let digits = began..cursor.at;
    let found = number.and_then(|number| {
        cursor.gap();
        let (unit, one) = read(cursor)?;
        let printed = &cursor.bytes[digits];
        Some(Measured {
            value: times(number, printed, one),
            unit,
            half_step: 0.5 * one * 0.1f64.powi(decimals(printed)),
        })
    });
    if found.is_none() {
        cursor.at = began;
    }
    found
}

/// Digits behind the decimal point, which may be a comma; a comma before three digits sets thousands apart.
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

/// A number with its unit, both as they are in the unit of the kind.
pub fn quantity(cursor: &mut Cursor) -> Option<(f64, Unit)> {
    measured(cursor).map(|it| (it.value, it.unit))
}

/// The nearest number to the one that is printed, which a product need not be.
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

    #[test]
    fn every_form_of_a_unit_is_read() {
        for (text, expected) in [
            ("170 Mbits/sec", (170e6, Unit::BitsPerSecond)),
            ("170Mbits/sec[", (170e6, Unit::BitsPerSecond)),
            ("81 Mib/s", (81e6, Unit::BitsPerSecond)),
            ("81.25 Mb/s", (81.25e6, Unit::BitsPerSecond)),
            ("8.87Mbit/s", (8.87e6, Unit::BitsPerSecond)),
            ("8,87 Mbps", (8.87e6, Unit::BitsPerSecond)),
            ("70 Kpps", (70e3, Unit::PacketsPerSecond)),
            ("70,5 kpps", (70.5e3, Unit::PacketsPerSecond)),
            ("32.5 KByte", (33_280.0, Unit::Bytes)),
            ("0.03 MByte", (0.03 * 1048576.0, Unit::Bytes)),
            (
                "1.5 MBytes/sec",
                (1.5 * 1048576.0 * 8.0, Unit::BitsPerSecond),
            ),
            ("9 Mbits/s\nec", (9e6, Unit::BitsPerSecond)),
            ("7244 pps", (7244.0, Unit::PacketsPerSecond)),
        ] {
            let mut cursor = Cursor::new(text.as_bytes(), 0);
            assert_eq!(quantity(&mut cursor), Some(expected), "{text}");
        }
        assert_eq!(quantity(&mut Cursor::new(b"7 apples", 0)), None);
    }
}
