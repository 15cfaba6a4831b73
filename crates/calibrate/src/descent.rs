//! Descent to the least sum of squares of several functions (Levenberg 1944, Marquardt 1963): steps of the linear
//! model, damped the more the worse it foretells.
//!
//! What must hold: the same functions and start give the same result on every machine. Only sums, products and
//! quotients are taken, in a fixed order.

use crate::search::SearchSpan;

/// Steps that are tried.
const STEPS: u32 = 30;
/// Slopes are taken over this part of a number, or of where its span begins if that is more.
const SLOPE: f64 = 0.1;
/// A step changes a number by no more than this many times itself.
const LEAP: f64 = 1.0;
/// A step that gains less than this part of what is left is the last.
const GAIN_MIN: f64 = 1e-3;
const DAMPING: f64 = 0.01;
const DAMPING_MAX: f64 = 1e8;

/// Where a descent stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) values: Vec<u64>,
    pub(crate) errors: Vec<f64>,
}

impl Place {
    /// Asks for the errors there.
    pub(crate) fn at(values: Vec<u64>, ask: &mut impl FnMut(&[u64]) -> Vec<f64>) -> Self {
        Place {
            errors: ask(&values),
            values,
        }
    }

    /// The sum of squares.
    pub(crate) fn cost(&self) -> f64 {
        self.errors.iter().map(|error| error * error).sum()
    }
}

/// Goes down from a place.
pub(crate) fn descend(
    spans: &[SearchSpan],
    from: Place,
    ask: &mut impl FnMut(&[u64]) -> Vec<f64>,
) -> Place {
    let mut best = from;
    let mut damping = DAMPING;
    let mut slopes = slopes_at(spans, &best, ask);
    for _ in 0..STEPS {
        if damping > DAMPING_MAX {
            break;
        }
        let Some(step) = step(&slopes, &best.errors, damping) else {
            damping *= 10.0;
            continue;
        };
        let values = moved(spans, &best.values, &step);
        if values == best.values {
            break;
        }
        let place = Place::at(values, ask);
        if place.cost() < best.cost() {
            let is_last = place.cost() > best.cost() * (1.0 - GAIN_MIN);
            best = place;
            if is_last {
                break;
            }
            damping /= 5.0;
            slopes = slopes_at(spans, &best, ask);
        } else {
            damping *= 4.0;
        }
    }
    best
}

/// What a number is measured in: itself, or where its span begins.
fn scale(span: &SearchSpan, value: u64) -> f64 {
    value.max(span.start) as f64
}

/// For each number the change of each error, for a change by the number's scale.
fn slopes_at(
    spans: &[SearchSpan],
    place: &Place,
    ask: &mut impl FnMut(&[u64]) -> Vec<f64>,
) -> Vec<Vec<f64>> {
    let mut slopes = Vec::with_capacity(spans.len());
    for (index, span) in spans.iter().enumerate() {
        let value = place.values[index];
        let scale = scale(span, value);
        let ahead = ((scale * SLOPE) as u64).max(1);
        let mut values = place.values.clone();
        values[index] = match value.saturating_add(ahead) {
            further if further <= span.max => further,
            _ => value.saturating_sub(ahead).max(span.min),
        };
        let distance = (values[index] as f64 - value as f64) / scale;
        let errors = ask(&values);
        let changes = errors.iter().zip(&place.errors);
        slopes.push(
            changes
                .map(|(there, here)| (there - here) / distance)
                .collect(),
        );
    }
    slopes
}

/// The damped step, in scales of the numbers; `None` when it is not determined.
fn step(slopes: &[Vec<f64>], errors: &[f64], damping: f64) -> Option<Vec<f64>> {
    let product = |one: &[f64], other: &[f64]| -> f64 {
        one.iter().zip(other).map(|(one, other)| one * other).sum()
    };
    let count = slopes.len();
    let mut rows: Vec<Vec<f64>> = Vec::with_capacity(count);
    for (index, slope) in slopes.iter().enumerate() {
        let mut row: Vec<f64> = slopes.iter().map(|other| product(slope, other)).collect();
        // A number that changes nothing stays where it is.
        row[index] += damping * (row[index] + 1e-6);
        row.push(-product(slope, errors));
        rows.push(row);
    }
    solved(rows)
}

/// Solves linear equations, each with its right side at its end (Gauss, with the greatest pivot).
fn solved(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let count = rows.len();
    for column in 0..count {
        let greatest = (column..count).max_by(|one, other| {
            rows[*one][column]
                .abs()
                .total_cmp(&rows[*other][column].abs())
        })?;
        rows.swap(column, greatest);
        let pivot = rows[column].clone();
        if pivot[column].abs() < 1e-12 || !pivot[column].is_finite() {
            return None;
        }
        for row in rows.iter_mut().skip(column + 1) {
            let factor = row[column] / pivot[column];
            for (cell, above) in row.iter_mut().zip(&pivot).skip(column) {
                *cell -= factor * above;
            }
        }
    }
    let mut values = vec![0.0; count];
    for index in (0..count).rev() {
        let row = &rows[index];
        let known: f64 = (index + 1..count).map(|at| row[at] * values[at]).sum();
        values[index] = (row[count] - known) / row[index];
    }
    values
        .iter()
        .all(|value| value.is_finite())
        .then_some(values)
}

fn moved(spans: &[SearchSpan], values: &[u64], step: &[f64]) -> Vec<u64> {
    let numbers = spans.iter().zip(values).zip(step);
    let moved = numbers.map(|((span, value), step)| {
        let scale = scale(span, *value);
        let by = step.clamp(-LEAP, LEAP) * scale;
        let to = (*value as f64 + by).max(span.min as f64) + 0.5;
        (to as u64).clamp(span.min, span.max)
    });
    moved.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: SearchSpan = SearchSpan {
        min: 1,
        max: 1_000_000,
        start: 1000,
    };

    #[test]
    fn equations_are_solved() {
        let rows = vec![vec![0.0, 2.0, 4.0], vec![3.0, 1.0, 5.0]];
        assert_eq!(solved(rows), Some(vec![1.0, 2.0]));
        assert_eq!(solved(vec![vec![1.0, 1.0, 1.0], vec![2.0, 2.0, 2.0]]), None);
    }

    #[test]
    fn it_goes_down_a_narrow_valley() {
        // What two numbers make together is known well, and what sets them apart only a little.
        let mut ask = |values: &[u64]| {
            let (a, b) = (values[0] as f64, values[1] as f64);
            vec![(a + 10.0 * b) / 100.0 - 500.0, (a - b) / 1000.0 - 10.0]
        };
        let values = vec![1000, 1000];
        let from = Place::at(values, &mut ask);
        let found = descend(&[WIDE; 2], from, &mut ask);
        assert!(found.values[0].abs_diff(13_636) < 5, "{found:?}");
        assert!(found.values[1].abs_diff(3_636) < 5, "{found:?}");
    }
}
