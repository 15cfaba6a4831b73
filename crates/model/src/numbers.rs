//! Figures for readers: three significant figures, thousands separated, decimal units.
//!
//! A missing or infinite figure never prints as a number, and a nonzero figure never prints as a plain 0.

/// Printed in place of a missing figure.
pub const MISSING: &str = "-";

/// Further decimals tell a reader nothing.
const MOST_DECIMALS: usize = 4;

/// Formats a figure with three significant figures: `188,000`, `24.3`, `0.0213`.
pub fn figure(value: f64) -> String {
    if !value.is_finite() {
        return String::from(MISSING);
    }
    if value == 0.0 {
        return String::from("0");
    }
    let scientific = format!("{value:.2e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("`e` notation has an e");
    let exponent: i32 = exponent.parse().expect("the exponent is a whole number");
    let decimals = usize::try_from(2 - exponent).unwrap_or(0);
    if decimals > MOST_DECIMALS && value.abs() < 10f64.powi(-(MOST_DECIMALS as i32)) {
        let sign = if value < 0.0 { ">-" } else { "<" };
        return format!("{sign}0.{:0>MOST_DECIMALS$}", 1);
    }
    let mantissa: f64 = mantissa.parse().expect("the mantissa is a number");
    let decimals = decimals.min(MOST_DECIMALS);
    separated(&format!("{:.decimals$}", mantissa * 10f64.powi(exponent)))
}

/// Formats a figure, or [`MISSING`].
pub fn figure_or_missing(value: Option<f64>) -> String {
    value.map_or_else(|| String::from(MISSING), figure)
}

/// Formats an amount per second; [`MISSING`] for a time of 0.
pub fn per_second(amount: f64, seconds: f64) -> String {
    figure_or_missing((seconds > 0.0).then(|| amount / seconds))
}

/// Formats a whole number with its thousands separated: `1,234,567`.
pub fn count(value: impl ToString) -> String {
    separated(&value.to_string())
}

/// Formats a count with its noun: `1 block`, `6 blocks`.
pub fn counted(count: u32, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Formats a share in whole percent; a nonzero share that would round to 0 shows as `<1`.
pub fn percent(share: f64) -> String {
    let percents = share * 100.0;
    if !percents.is_finite() {
        String::from(MISSING)
    } else if percents > 0.0 && percents < 0.5 {
        String::from("<1")
    } else {
        // Rounding errors may leave a share slightly below 0.
        format!("{:.0}", percents.max(0.0))
    }
}

/// Formats a time span: `45 s`, `12 min 5 s`, `2 h 3 min`.
pub fn span(seconds: f64) -> String {
    if !seconds.is_finite() {
        return String::from(MISSING);
    }
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Formats a number for programs: no separators, three significant figures unless it is whole, `-` when it is missing.
pub fn plain_number(value: Option<f64>) -> String {
    match value.filter(|value| value.is_finite()) {
        None => String::from(MISSING),
        Some(value) if value.fract() == 0.0 || value.abs() >= 100.0 => format!("{value:.0}"),
        Some(value) => {
            let scale = 10f64.powi(2 - value.abs().log10().floor() as i32);
            ((value * scale).round() / scale).to_string()
        }
    }
}

/// Formats a measured time in a suitable unit, with three significant figures: `200 us`, `1.00 ms`; [`MISSING`] for
/// none.
pub fn time_figure(ns: Option<u64>) -> String {
    let Some((number, unit)) = ns.map(in_unit) else {
        return String::from(MISSING);
    };
    format!("{number} {unit}")
}

/// Returns a time's figure and unit.
fn in_unit(ns: u64) -> (String, &'static str) {
    // At each limit three digits would round up to a thousand of the lower unit.
    let (scale, unit) = match ns {
        0..1_000 => return (ns.to_string(), "ns"),
        1_000..999_500 => (1e3, "us"),
        999_500..999_500_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    (figure(ns as f64 / scale), unit)
}

/// Formats a set time in a suitable unit, with up to three significant figures: `200 us`, `1.04 ms`, `0`.
pub fn duration_text(ns: u64) -> String {
    if ns == 0 {
        return String::from("0");
    }
    let (number, unit) = in_unit(ns);
    let number = match number.split_once('.') {
        Some((whole, decimals)) if decimals.trim_end_matches('0').is_empty() => whole,
        Some(_) => number.trim_end_matches('0'),
        None => &number,
    };
    format!("{number} {unit}")
}

/// Formats figures that are compared with one another, such as an interval's, with equal decimals.
///
/// There are enough decimals for three significant figures of the greatest (two from 0.3 to 1: 0.81 says as much as
/// 1.48), for the first and the last, an interval's ends, to differ, for nonzero figures not to print as 0, and for the
/// ends to stay on their side of every threshold: an interval that begins at 1.003 must not print as 1.00 next to the
/// word "better".
pub fn aligned<const N: usize>(values: [f64; N], thresholds: &[f64]) -> [String; N] {
    let greatest = values
        .into_iter()
        .filter(|value| value.is_finite())
        .fold(0.0, |greatest: f64, value| greatest.max(value.abs()));
    let width = match (values.first(), values.last()) {
        (Some(first), Some(last)) if (last - first).is_finite() => (last - first).abs(),
        _ => 0.0,
    };
    let enough = |decimals: usize| {
        let scale = 10f64.powi(decimals as i32);
        let least = if greatest < 0.995 { 30.0 } else { 99.5 };
        let digits = greatest == 0.0 || greatest * scale >= least;
        let apart = width == 0.0 || width * scale >= 2.5;
        let nonzero = values
            .into_iter()
            .all(|value| value == 0.0 || rounded(value, decimals) != 0.0);
        let on_their_side = [values.first(), values.last()]
            .into_iter()
            .flatten()
            .all(|end| {
                let shown = rounded(*end, decimals);
                thresholds.iter().all(|at| (shown >= *at) == (*end >= *at))
            });
        digits && apart && nonzero && on_their_side
    };
    let decimals = (0..MOST_DECIMALS)
        .find(|decimals| enough(*decimals))
        .unwrap_or(MOST_DECIMALS);
    values.map(|value| {
        let text = format!("{value:.decimals$}");
        match text.strip_prefix('-') {
            _ if !value.is_finite() => String::from(MISSING),
            Some(unsigned) if rounded(value, decimals) == 0.0 => String::from(unsigned),
            _ => separated(&text),
        }
    })
}

fn rounded(value: f64, decimals: usize) -> f64 {
    let scale = 10f64.powi(decimals as i32);
    (value * scale).round() / scale
}

/// Puts a comma between groups of three digits of the whole part.
fn separated(number: &str) -> String {
    let whole = number.split('.').next().unwrap_or(number);
    let mut text = String::new();
    for (index, digit) in whole.char_indices() {
        let is_group = index > 0 && (whole.len() - index).is_multiple_of(3);
        if is_group && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text + &number[whole.len()..]
}
