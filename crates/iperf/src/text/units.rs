//! Figures with their units.

use super::{Format, Interval, ReceiptFigures, Style, printable};

/// Unit prefixes, each 1000 (bits) or 1024 (bytes) times the one before.
const PREFIXES: [&str; 6] = ["", "K", "M", "G", "T", "P"];
/// Where style 2.0 ends: it knows no more than giga.
const GIGA: usize = 3;

/// An amount of bytes, or of bytes a second, in the unit that a letter stands for: ` 128 KByte`.
///
/// A lower-case letter asks for bits and decimal prefixes, an upper-case one for bytes and binary
/// ones: `b`, `k`, `m`, `g`, and in style 2.1 `t` and `p`. Any other takes the prefix that leaves the
/// fewest digits. The figure fills four columns at least.
pub fn amount(style: Style, bytes: f64, letter: char) -> String {
    let bytes = printable(bytes);
    let (whole, base, unit) = if letter.is_ascii_uppercase() {
        (bytes, 1024.0, "Byte")
    } else {
        (bytes * 8.0, 1000.0, "bit")
    };
    let greatest = match style {
        Style::V2_0 => GIGA,
        Style::V2_1 => PREFIXES.len() - 1,
    };
    let prefix =
        fixed_prefix(letter, greatest).unwrap_or_else(|| fitting_prefix(whole, base, greatest));
    let scaled = printable(whole) / f64::powi(base, prefix as i32);
    let decimals = decimals(style, scaled);
    format!("{scaled:4.decimals$} {}{unit}", PREFIXES[prefix])
}

/// The prefix a letter asks for, if it asks for one that the style knows.
fn fixed_prefix(letter: char, greatest: usize) -> Option<usize> {
    let prefix = match letter.to_ascii_lowercase() {
        'b' => 0,
        'k' => 1,
        'm' => 2,
        'g' => 3,
        't' => 4,
        'p' => 5,
        _ => return None,
    };
    (prefix <= greatest).then_some(prefix)
}

/// The prefix that leaves less than `base`, or the greatest there is.
fn fitting_prefix(mut value: f64, base: f64, greatest: usize) -> usize {
    let mut prefix = 0;
    while value >= base && prefix < greatest {
        value /= base;
        prefix += 1;
    }
    prefix
}

/// How many decimals fit, once rounded, into four columns.
fn decimals(style: Style, scaled: f64) -> usize {
    if style == Style::V2_1 && scaled < 0.9995 {
        3
    } else if scaled < 9.995 {
        2
    } else if scaled < 99.95 {
        1
    } else {
        0
    }
}

/// The Transfer column, always in bytes: `1.19 MBytes`.
pub fn transfer(format: Format, bytes: u64) -> String {
    let letter = format.letter.to_ascii_uppercase();
    format!("{}s", amount(format.style, bytes as f64, letter))
}

/// The Bandwidth column: `9.98 Mbits/sec`; 0 if the interval took no time.
pub fn rate(format: Format, interval: &Interval) -> String {
    let bytes = interval.bytes_per_second();
    format!("{}s/sec", amount(format.style, bytes, format.letter))
}

/// The share of the datagrams that was lost, in percents; 0 if none was sent.
pub fn loss_percent(receipt: &ReceiptFigures) -> f64 {
    if receipt.total == 0 {
        0.0
    } else {
        100.0 * receipt.lost as f64 / receipt.total as f64
    }
}

/// Two significant digits as C's `%.2g` writes them: `0`, `0.059`, `12`, `1e+02`.
pub fn two_digits(value: f64) -> String {
    if value < 0.0 {
        return format!("-{}", two_digits(-value));
    }
    let value = printable(value);
    if value == 0.0 {
        return String::from("0");
    }
    let scientific = format!("{value:.1e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("`e` notation has an e");
    let exponent: i32 = exponent.parse().expect("the exponent is a whole number");
    match exponent {
        // The exponent is the rounded figure's, so as many decimals show the same two digits.
        -4..2 => {
            let decimals = (1 - exponent) as usize;
            String::from(without_zeros(&format!("{value:.decimals$}")))
        }
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            let exponent = exponent.unsigned_abs();
            format!("{}e{sign}{exponent:02}", without_zeros(mantissa))
        }
    }
}

/// A decimal fraction without the zeros that end it.
fn without_zeros(figure: &str) -> &str {
    if figure.contains('.') {
        figure.trim_end_matches('0').trim_end_matches('.')
    } else {
        figure
    }
}
