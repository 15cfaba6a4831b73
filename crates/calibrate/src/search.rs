//! Searches for the least sum of squares of functions of a few whole numbers.
//!
//! It evaluates scattered points, descends from the best of them (Levenberg 1944, Marquardt 1963: steps of the linear
//! model, damped the more the worse it predicts), and ends with small steps after Hooke and Jeeves ("Direct search"
//! solution of numerical and statistical problems, Journal of the ACM 8, 1961), which tolerate that simulations count
//! in whole packets.
//!
//! The same functions and start give the same result on every machine: whole numbers, sums, products and quotients in
//! a fixed order, no function of the C library. The result need not be the global minimum.

/// The range of a number, and its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchSpan {
    /// Least value, above 0.
    pub min: u64,
    /// Greatest value.
    pub max: u64,
    /// Value to start from.
    pub start: u64,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// The numbers, in the order of the spans.
    pub values: Vec<u64>,
    /// Evaluations of the functions.
    pub calls: u64,
}

/// Points evaluated first, lest the search start in a valley next to the deepest one.
const POINTS: u32 = 150;
/// Descents, from the best of these points.
const DESCENTS: usize = 16;
/// A mean square of the errors that is small enough.
const ENOUGH: f64 = 0.001;
/// Small steps: fractions by which numbers are multiplied, and divided.
const SMALL_STEPS: [(u64, u64); 4] = [(17, 16), (33, 32), (65, 64), (129, 128)];
/// Most rounds at each step; one without an improvement is the last.
const ROUNDS: u32 = 12;

impl SearchSpan {
    /// Returns the value one step up, and one step down.
    fn stepped(&self, value: u64, (by, of): (u64, u64)) -> [u64; 2] {
        let up = (value.saturating_mul(by) / of).max(value.saturating_add(1));
        let down = (value.saturating_mul(of) / by).min(value.saturating_sub(1));
        [up, down].map(|moved| moved.clamp(self.min, self.max))
    }
}

/// Minimises the sum of squares of what `errors` returns.
pub fn search(spans: &[SearchSpan], mut errors: impl FnMut(&[u64]) -> Vec<f64>) -> SearchResult {
    let mut calls = 0;
    let mut ask = |values: &[u64]| {
        calls += 1;
        errors(values)
    };
    let mut beginnings: Vec<SearchPoint> = Vec::new();
    let mut chance = 0;
    for point in 0..POINTS {
        let values: Vec<u64> = match point {
            0 => spans.iter().map(|span| span.start).collect(),
            _ => spans
                .iter()
                .map(|span| anywhere(span, &mut chance))
                .collect(),
        };
        let place = SearchPoint::at(values, &mut ask);
        let rank = beginnings.partition_point(|other| other.cost() <= place.cost());
        beginnings.insert(rank, place);
        beginnings.truncate(DESCENTS);
    }
    let mut best: Option<SearchPoint> = None;
    for from in beginnings {
        let place = descend(spans, from, &mut ask);
        if best.as_ref().is_none_or(|best| place.cost() < best.cost()) {
            best = Some(place);
        }
        if best.as_ref().is_some_and(is_enough) {
            break;
        }
    }
    let mut best = best.expect("there is at least one point");
    for step in SMALL_STEPS {
        for _ in 0..ROUNDS {
            if !explore(spans, &mut best, step, &mut ask) {
                break;
            }
        }
    }
    SearchResult {
        values: best.values,
        calls,
    }
}

fn is_enough(place: &SearchPoint) -> bool {
    place.cost() <= ENOUGH * place.errors.len() as f64
}

/// Tries each number by itself, up and then down, and keeps improvements. Returns whether there were any.
fn explore(
    spans: &[SearchSpan],
    best: &mut SearchPoint,
    step: (u64, u64),
    ask: &mut impl FnMut(&[u64]) -> Vec<f64>,
) -> bool {
    let mut is_better = false;
    for (index, span) in spans.iter().enumerate() {
        for moved in span.stepped(best.values[index], step) {
            if moved == best.values[index] {
                continue;
            }
            let mut values = best.values.clone();
            values[index] = moved;
            let place = SearchPoint::at(values, ask);
            if place.cost() < best.cost() {
                *best = place;
                is_better = true;
                break;
            }
        }
    }
    is_better
}

/// Draws half the start, the start or twice the start, by a congruential sequence (Knuth's MMIX).
fn anywhere(span: &SearchSpan, chance: &mut u64) -> u64 {
    *chance = chance
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    let power = (*chance >> 33) % 3;
    (span.start.saturating_mul(1 << power) / 2).clamp(span.min, span.max)
}

/// Most steps of a descent.
const STEPS: u32 = 30;
/// Slopes are taken over this part of a number, or of its start if that is greater.
const SLOPE: f64 = 0.1;
/// A step changes a number by at most this multiple of its scale.
const LEAP: f64 = 1.0;
/// A step that reduces the cost by less than this part is the last.
const GAIN_MIN: f64 = 1e-3;
const DAMPING: f64 = 0.01;
const DAMPING_MAX: f64 = 1e8;

/// A point of the search, with its errors.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SearchPoint {
    pub(crate) values: Vec<u64>,
    pub(crate) errors: Vec<f64>,
}

impl SearchPoint {
    /// Evaluates the errors at a point.
    pub(crate) fn at(values: Vec<u64>, ask: &mut impl FnMut(&[u64]) -> Vec<f64>) -> Self {
        SearchPoint {
            errors: ask(&values),
            values,
        }
    }

    /// Returns the sum of squares.
    pub(crate) fn cost(&self) -> f64 {
        self.errors.iter().map(|error| error * error).sum()
    }
}

/// Descends from a point.
pub(crate) fn descend(
    spans: &[SearchSpan],
    from: SearchPoint,
    ask: &mut impl FnMut(&[u64]) -> Vec<f64>,
) -> SearchPoint {
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
        let place = SearchPoint::at(values, ask);
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

/// Returns a number's scale: itself, or its start if that is greater.
fn scale(span: &SearchSpan, value: u64) -> f64 {
    value.max(span.start) as f64
}

/// Returns, for each number, the change of each error per change by the number's scale.
fn slopes_at(
    spans: &[SearchSpan],
    place: &SearchPoint,
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

/// Returns the damped step, in scales of the numbers; `None` when it is not determined.
fn step(slopes: &[Vec<f64>], errors: &[f64], damping: f64) -> Option<Vec<f64>> {
    let product = |one: &[f64], other: &[f64]| -> f64 {
        one.iter().zip(other).map(|(one, other)| one * other).sum()
    };
    let count = slopes.len();
    let mut rows: Vec<Vec<f64>> = Vec::with_capacity(count);
    for (index, slope) in slopes.iter().enumerate() {
        let mut row: Vec<f64> = slopes.iter().map(|other| product(slope, other)).collect();
        // A number without effect stays as it is.
        row[index] += damping * (row[index] + 1e-6);
        row.push(-product(slope, errors));
        rows.push(row);
    }
    solved(rows, 1e-12)
}

/// Solves linear equations, each with its right side last (Gaussian elimination with partial pivoting). `None` when a
/// pivot is below `pivot_min`.
pub(crate) fn solved(mut rows: Vec<Vec<f64>>, pivot_min: f64) -> Option<Vec<f64>> {
    let count = rows.len();
    for column in 0..count {
        let greatest = (column..count).max_by(|one, other| {
            rows[*one][column]
                .abs()
                .total_cmp(&rows[*other][column].abs())
        })?;
        rows.swap(column, greatest);
        let pivot = rows[column].clone();
        if pivot[column].abs() < pivot_min || !pivot[column].is_finite() {
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

    fn ratios(values: &[u64], aims: &[f64]) -> Vec<f64> {
        let both = values.iter().zip(aims);
        both.map(|(value, aim)| *value as f64 / aim - 1.0).collect()
    }

    #[test]
    fn it_finds_the_least_of_a_bowl() {
        let aims = [17_000.0, 90.0, 1000.0];
        let found = search(&[WIDE; 3], |values| ratios(values, &aims));
        for (value, aim) in found.values.iter().zip(aims) {
            assert!((*value as f64 / aim - 1.0).abs() < 0.02, "{found:?}");
        }
    }

    #[test]
    fn it_finds_the_deeper_of_two_valleys() {
        let errors = |values: &[u64]| {
            let mut near = ratios(values, &[1100.0, 900.0]);
            let mut far = ratios(values, &[2100.0, 450.0]);
            near.push(0.3);
            far.push(0.0);
            let cost = |errors: &[f64]| errors.iter().map(|error| error * error).sum::<f64>();
            if cost(&near) < cost(&far) { near } else { far }
        };
        let found = search(&[WIDE; 2], errors);
        assert!(found.values[0].abs_diff(2100) < 50, "{found:?}");
    }

    #[test]
    fn it_stays_within_its_spans_and_ends() {
        let span = SearchSpan {
            min: 10,
            max: 20,
            start: 15,
        };
        let up = search(&[span], |values| vec![100.0 - values[0] as f64]);
        assert_eq!(up.values, [20]);
        let down = search(&[span], |values| vec![values[0] as f64]);
        assert_eq!(down.values, [10]);
        let flat = search(&[span, span], |_| vec![1.0]);
        assert_eq!(flat.values, [15, 15]);
        assert_eq!(search(&[], |_| vec![0.0]).values, [0u64; 0]);
    }

    #[test]
    fn equations_are_solved() {
        let rows = vec![vec![0.0, 2.0, 4.0], vec![3.0, 1.0, 5.0]];
        assert_eq!(solved(rows, 1e-12), Some(vec![1.0, 2.0]));
        let alike = vec![vec![1.0, 1.0, 1.0], vec![2.0, 2.0, 2.0]];
        assert_eq!(solved(alike, 1e-12), None);
    }

    #[test]
    fn it_goes_down_a_narrow_valley() {
        // The weighted sum of two numbers is determined well, their difference hardly.
        let mut ask = |values: &[u64]| {
            let (a, b) = (values[0] as f64, values[1] as f64);
            vec![(a + 10.0 * b) / 100.0 - 500.0, (a - b) / 1000.0 - 10.0]
        };
        let values = vec![1000, 1000];
        let from = SearchPoint::at(values, &mut ask);
        let found = descend(&[WIDE; 2], from, &mut ask);
        assert!(found.values[0].abs_diff(13_636) < 5, "{found:?}");
        assert!(found.values[1].abs_diff(3_636) < 5, "{found:?}");
    }
}
