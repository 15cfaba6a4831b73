//! Prints the output of ministat(1) for two sets of values, to the byte.
//!
//! The layout, the pooled Student's t and its table of quantiles with three decimals are P.-H. Kamp's (FreeBSD,
//! usr.bin/ministat). Two editions differ in figures. FreeBSD's current one takes the mean of the middle two values
//! as the median of an even count, sums squares around the mean, and gives the relative difference an error of its
//! own. The one of 2015, which Linux systems package, takes the upper of the two, subtracts the squared sum from the
//! sum of squares, and divides the error by the reference's mean.
//!
//! The output equals the program's, rounding included. Nothing else in this project decides by it.

use std::fmt::Write as _;

use nicpoll_stats::Confidence;

/// Columns of the plot if standard output is no terminal.
pub const WIDTH: usize = 74;
/// Marks of the values of the first set, of the second, and of both.
const SYMBOLS: [char; 4] = [' ', 'x', '+', '*'];
/// Degrees of freedom beyond which the table has the normal quantile.
const STUDENT_MAX: usize = 100;

/// Edition of ministat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edition {
    /// The edition of 2015, in Linux packages.
    Linux,
    /// FreeBSD's current edition.
    Freebsd,
}

struct Set<'a> {
    name: &'a str,
    points: Vec<f64>,
    mean: f64,
    variance: f64,
    edition: Edition,
}

impl<'a> Set<'a> {
    fn new(name: &'a str, values: &[f64], edition: Edition) -> Self {
        // The program sums values as it reads them, before it sorts them.
        let n = values.len() as f64;
        let sum: f64 = values.iter().fold(0.0, |sum, value| sum + value);
        let mut points = values.to_vec();
        points.sort_by(f64::total_cmp);
        let mean = sum / n;
        let add = |sum, square| sum + square;
        let squares = match edition {
            Edition::Linux => {
                let squares = values.iter().map(|value| value * value);
                squares.fold(0.0, add) - sum * sum / n
            }
            Edition::Freebsd => {
                let from_mean = |value: &f64| (value - mean) * (value - mean);
                points.iter().map(from_mean).fold(0.0, add)
            }
        };
        Set {
            name,
            points,
            mean,
            variance: squares / (n - 1.0),
            edition,
        }
    }

    fn n(&self) -> f64 {
        self.points.len() as f64
    }

    fn min(&self) -> f64 {
        self.points[0]
    }

    fn max(&self) -> f64 {
        self.points[self.points.len() - 1]
    }

    fn median(&self) -> f64 {
        let middle = self.points.len() / 2;
        match self.edition {
            Edition::Freebsd if self.points.len().is_multiple_of(2) => {
                (self.points[middle] + self.points[middle - 1]) / 2.0
            }
            _ => self.points[middle],
        }
    }

    fn deviation(&self) -> f64 {
        self.variance.sqrt()
    }

    fn line(&self, symbol: char) -> String {
        let [min, max] = [self.min(), self.max()];
        let figures = [min, max, self.median(), self.mean, self.deviation()];
        let figures = figures.map(|figure| format!(" {:>13}", general(figure, 8)));
        format!("{symbol} {:3}{}\n", self.points.len(), figures.concat())
    }
}

/// Renders the output of `ministat -w WIDTH REFERENCE OTHER`. Each set has three values or more, all finite.
pub fn render_ministat(
    reference: (&str, &[f64]),
    other: (&str, &[f64]),
    edition: Edition,
    width: usize,
) -> String {
    let reference = Set::new(reference.0, reference.1, edition);
    let other = Set::new(other.0, other.1, edition);
    let mut text = format!("x {}\n+ {}\n", reference.name, other.name);
    text += &plot(&[&reference, &other], width);
    text += "    N           Min           Max        Median           Avg        Stddev\n";
    text += &reference.line('x');
    text += &other.line('+');
    text + &relative(&other, &reference)
}

/// Returns whether, and how far, one lies above the other.
fn relative(one: &Set<'_>, reference: &Set<'_>) -> String {
    let (n, m) = (one.n(), reference.n());
    let t = student(one.points.len() + reference.points.len() - 2);
    let squares = (n - 1.0) * one.variance + (m - 1.0) * reference.variance;
    let pooled = (squares / (n + m - 2.0)).sqrt();
    let error = t * (pooled * (1.0 / n + 1.0 / m).sqrt());
    let difference = one.mean - reference.mean;
    if difference.abs() <= error || error.is_nan() {
        return String::from("No difference proven at 95.0% confidence\n");
    }
    let relative_error = match one.edition {
        Edition::Linux => error,
        Edition::Freebsd => {
            let squares = (n - 1.0) * one.variance
                + (m - 1.0) * reference.variance * (one.mean * one.mean)
                    / (reference.mean * reference.mean);
            t * (squares * ((n + m) / (n * m * (n + m - 2.0)))).sqrt()
        }
    };
    let of_reference = |figure: f64| general(figure * 100.0 / reference.mean, 6);
    format!(
        "Difference at 95.0% confidence\n\t{} +/- {}\n\t{}% +/- {}%\n\t(Student's t, pooled s = {})\n",
        general(difference, 6),
        general(error, 6),
        of_reference(difference),
        of_reference(relative_error),
        general(pooled, 6)
    )
}

/// Returns Student's two-sided 95 % quantile, from a table with three decimals.
fn student(degrees: usize) -> f64 {
    let quantile = match degrees {
        1..=STUDENT_MAX => nicpoll_stats::student_quantile(degrees, Confidence::PERCENT_95),
        _ => 1.960,
    };
    (quantile * 1e3).round() / 1e3
}

/// Maps values to columns of the plot.
struct Scale {
    start: f64,
    cell: f64,
}

impl Scale {
    fn column(&self, value: f64) -> usize {
        ((value - self.start) / self.cell) as usize
    }
}

fn plot(sets: &[&Set<'_>], width: usize) -> String {
    let ends = sets.iter().flat_map(|set| {
        let (mean, deviation) = (set.mean, set.deviation());
        [set.min(), set.max(), mean - deviation, mean + deviation]
    });
    let (least, greatest) = ends.fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, greatest), it| (least.min(it), greatest.max(it)),
    );
    let span = greatest - least;
    if span == 0.0 {
        return String::from("[no plot, span is zero width]\n");
    }
    let cell = span / (width as f64 - 1.0);
    let scale = Scale {
        start: least - 0.5 * cell,
        cell,
    };
    let (heaps, height) = heaps(sets, &scale, width);
    let frame = format!("+{}+\n", "-".repeat(width));
    let mut text = frame.clone();
    for level in (1..height).rev() {
        let row: String = heaps[level].iter().map(|mark| SYMBOLS[*mark]).collect();
        let _ = writeln!(text, "|{row}|");
    }
    let _ = writeln!(text, "|{}|", bar(sets, &scale, width));
    text + &frame
}

/// Returns which sets have a value at each height of each column, from 1, and the plot's height, which ministat takes
/// from the last set.
fn heaps(sets: &[&Set<'_>], scale: &Scale, width: usize) -> (Vec<Vec<usize>>, usize) {
    let mut heaps: Vec<Vec<usize>> = Vec::new();
    let mut height = 0;
    for (index, set) in sets.iter().enumerate() {
        let columns = set.points.iter().map(|value| scale.column(*value));
        let columns: Vec<usize> = columns.collect();
        let highest = columns
            .chunk_by(|one, other| one == other)
            .map(<[usize]>::len);
        height = 1 + highest.max().unwrap_or(0);
        if heaps.len() < height {
            heaps.resize(height, vec![0; width]);
        }
        for heap in columns.chunk_by(|one, other| one == other) {
            for level in heaps.iter_mut().skip(1).take(heap.len()) {
                level[heap[0].min(width - 1)] |= 1 << index;
            }
        }
    }
    (heaps, height)
}

/// Draws the line of means, medians and deviations, the last set over the first.
fn bar(sets: &[&Set<'_>], scale: &Scale, width: usize) -> String {
    let mut bar = vec![' '; width];
    for set in sets {
        let (mean, deviation) = (set.mean, set.deviation());
        let at = |value: f64| scale.column(value).min(width - 1);
        let ends = [mean - deviation, mean + deviation];
        for end in ends {
            bar[at(end)] = '|';
        }
        let [low, high] = ends.map(|end| scale.column(end));
        let between = bar.iter_mut().take(high).skip(low + 1);
        between
            .filter(|cell| **cell == ' ')
            .for_each(|cell| *cell = '_');
        bar[at(set.median())] = 'M';
        bar[at(mean)] = 'A';
    }
    bar.into_iter().collect()
}

/// Formats a number as C's `%.{digits}g` does.
fn general(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return String::from(if value.is_sign_negative() { "-0" } else { "0" });
    }
    if !value.is_finite() {
        return value.to_string().to_lowercase();
    }
    let scientific = format!("{:.*e}", digits - 1, value);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => String::from(text.trim_end_matches('0').trim_end_matches('.')),
        false => String::from(text),
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    trimmed(&format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_cs() {
        for (value, digits, text) in [
            (100_000_001.0, 8, "1e+08"),
            (123_456_789.0, 8, "1.2345679e+08"),
            (0.000_012_34, 6, "1.234e-05"),
            (3.535_533_9, 8, "3.5355339"),
            (-2.5, 6, "-2.5"),
            (99_999_999.6, 8, "1e+08"),
            (0.0, 6, "0"),
        ] {
            assert_eq!(general(value, digits), text);
        }
    }

    #[test]
    fn the_table_is_kamps() {
        // usr.bin/ministat: rows 1, 4, 9, 30, 61, 100 and infinity of 95 %.
        for (degrees, quantile) in [
            (1, 12.706),
            (4, 2.776),
            (9, 2.262),
            (30, 2.042),
            (61, 2.0),
            (100, 1.984),
            (101, 1.96),
        ] {
            assert_eq!(student(degrees), quantile, "{degrees}");
        }
    }

    #[test]
    fn editions_differ_in_median_and_relative_error() {
        let [a, b] = [[5.0, 6.0, 7.0, 8.0], [15.0, 16.0, 18.0, 19.0]];
        let print = |edition| render_ministat(("a", &a), ("b", &b), edition, 40);
        let (linux, freebsd) = (print(Edition::Linux), print(Edition::Freebsd));
        assert!(linux.contains("x   4             5             8             7           6.5"));
        assert!(freebsd.contains("x   4             5             8           6.5           6.5"));
        assert!(linux.contains("\t161.538% +/- 42.0897%\n"), "{linux}");
        assert!(!freebsd.contains("42.0897%"), "{freebsd}");
    }
}
