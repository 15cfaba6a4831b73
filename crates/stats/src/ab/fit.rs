//! Differences of pairs, adjusted for the load of their blocks by least squares.
//!
//! The intercept is the difference at equal load, whichever way the load went. A column without scatter (a load that
//! never differs) is left out of the fit; the degrees of freedom stay those of the full one.

use nicpoll_model::ab::AbWindow;

use crate::interval::{Confidence, Interval, student_quantile};
use crate::summary;

/// Columns of the fit: intercept, load difference, pair's load.
const COLUMNS: usize = 3;
/// The fewest pairs for a fit: one degree of freedom tells nothing.
const FIT_PAIRS_MIN: usize = COLUMNS + 2;
/// A load whose standard deviation is below this share of the greatest load counts as constant.
const NO_SCATTER: f64 = 1e-9;
/// A pair with a leverage closer to 1 than this decides a slope alone, and its error is unknown.
const FREE_MIN: f64 = 1e-9;

/// The data of one pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LoadedDifference {
    /// Judged minus reference, of whatever is compared.
    pub difference: f64,
    /// Load under the judged setting.
    pub judged_load: f64,
    /// Load under the reference.
    pub reference_load: f64,
}

impl LoadedDifference {
    /// Combines a difference with the loads of its windows.
    pub fn of(difference: f64, judged: &AbWindow, reference: &AbWindow) -> Self {
        LoadedDifference {
            difference,
            judged_load: judged.packets_per_second(),
            reference_load: reference.packets_per_second(),
        }
    }

    fn pair_load(&self) -> f64 {
        f64::midpoint(self.judged_load, self.reference_load)
    }
}

/// The fitted coefficients.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoadFit {
    /// The difference at equal load.
    pub delta: Interval,
    /// Difference per unit of load that the judged block has more.
    pub beta: f64,
    /// Difference per unit of the pair's load.
    pub gamma: f64,
    /// Mean load of the pairs.
    pub mean_load: f64,
}

impl LoadFit {
    /// Fits by ordinary least squares, with HC3 errors. `None` with fewer than [`FIT_PAIRS_MIN`] pairs, with values
    /// that are not finite, or when one pair alone decides a coefficient.
    pub fn of(pairs: &[LoadedDifference], confidence: Confidence) -> Option<Self> {
        if pairs.len() < FIT_PAIRS_MIN {
            return None;
        }
        let loads: Vec<f64> = pairs.iter().map(LoadedDifference::pair_load).collect();
        let mean_load = summary::mean(&loads)?;
        // In units of the greatest load all columns have one size, and the inverse is precise.
        let greatest = pairs
            .iter()
            .flat_map(|pair| [pair.judged_load.abs(), pair.reference_load.abs()])
            .fold(0.0, f64::max);
        let unit = if greatest > 0.0 { greatest } else { 1.0 };
        let wide = |pair: &LoadedDifference| {
            [
                1.0,
                (pair.judged_load - pair.reference_load) / unit,
                (pair.pair_load() - mean_load) / unit,
            ]
        };
        let all: Vec<[f64; COLUMNS]> = pairs.iter().map(wide).collect();
        let mut rows = all.clone();
        for column in 1..COLUMNS {
            let values: Vec<f64> = all.iter().map(|row| row[column]).collect();
            if summary::standard_deviation(&values)? < NO_SCATTER {
                rows.iter_mut().for_each(|row| row[column] = 0.0);
            }
        }
        let values: Vec<f64> = pairs.iter().map(|pair| pair.difference).collect();
        let (coefficients, variance) = least_squares(&rows, &values)?;
        let half = student_quantile(pairs.len() - COLUMNS, confidence) * variance.sqrt();
        let [delta, beta, gamma] = coefficients;
        let finite = [delta, beta, gamma, half].iter().all(|it| it.is_finite());
        finite.then_some(LoadFit {
            delta: Interval::around(delta, half, confidence, pairs.len()),
            beta: beta / unit,
            gamma: gamma / unit,
            mean_load,
        })
    }

    /// Returns the pairs' differences as they would be at equal load, and at the mean load.
    pub fn adjusted(&self, pairs: &[LoadedDifference]) -> Vec<f64> {
        let adjusted = |pair: &LoadedDifference| {
            pair.difference
                - self.beta * (pair.judged_load - pair.reference_load)
                - self.gamma * (pair.pair_load() - self.mean_load)
        };
        pairs.iter().map(adjusted).collect()
    }
}

type Matrix = [[f64; COLUMNS]; COLUMNS];

/// Returns the coefficients, and the variance of the first one by HC3. A column of zeros has coefficient 0.
fn least_squares(rows: &[[f64; COLUMNS]], values: &[f64]) -> Option<([f64; COLUMNS], f64)> {
    let mut normal: Matrix = [[0.0; COLUMNS]; COLUMNS];
    let mut right = [0.0; COLUMNS];
    for (row, value) in rows.iter().zip(values) {
        for i in 0..COLUMNS {
            right[i] += row[i] * value;
            for j in 0..COLUMNS {
                normal[i][j] += row[i] * row[j];
            }
        }
    }
    for (column, line) in normal.iter_mut().enumerate() {
        if line[column] == 0.0 {
            line[column] = 1.0;
        }
    }
    let inverse = inverse(&normal)?;
    let times = |vector: &[f64; COLUMNS]| inverse.map(|line| dot(&line, vector));
    let coefficients = times(&right);
    let mut variance = 0.0;
    for (row, value) in rows.iter().zip(values) {
        let spread = times(row);
        let free = 1.0 - dot(row, &spread);
        if free < FREE_MIN {
            return None;
        }
        let residual = (value - dot(row, &coefficients)) / free;
        variance += (spread[0] * residual).powi(2);
    }
    Some((coefficients, variance))
}

fn dot(one: &[f64; COLUMNS], other: &[f64; COLUMNS]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// Inverts by cofactors; `None` when the matrix is close to singular.
fn inverse(m: &Matrix) -> Option<Matrix> {
    let cofactor = |i: usize, j: usize| {
        let (a, b) = ((i + 1) % COLUMNS, (i + 2) % COLUMNS);
        let (c, d) = ((j + 1) % COLUMNS, (j + 2) % COLUMNS);
        m[a][c] * m[b][d] - m[a][d] * m[b][c]
    };
    let determinant: f64 = (0..COLUMNS).map(|j| m[0][j] * cofactor(0, j)).sum();
    let size: f64 = (0..COLUMNS).map(|i| m[i][i]).product();
    // The determinant over the product of the diagonal tells how little the columns depend on each other.
    if determinant.abs() <= size * 1e-12 {
        return None;
    }
    let mut inverse = [[0.0; COLUMNS]; COLUMNS];
    for (i, line) in inverse.iter_mut().enumerate() {
        for (j, cell) in line.iter_mut().enumerate() {
            *cell = cofactor(j, i) / determinant;
        }
    }
    Some(inverse)
}

#[cfg(test)]
mod tests;
