//! Least squares for a handful of unknowns: what each of a few kinds of work costs, from runs that mix them.
//!
//! Every run counts alike whatever it took, so errors are relative: a row is divided by its own sum.

/// A run: how often each kind of work was done, and the time of all together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<const N: usize> {
    /// How often.
    pub counts: [f64; N],
    /// Together, in nanoseconds.
    pub ns: f64,
}

/// Below this share of the largest pivot a kind of work cannot be told apart from the others.
const PIVOT_MIN: f64 = 1e-9;

/// What each kind of work costs, in nanoseconds, with the least sum of squared relative errors. `None` when the
/// runs do not tell the kinds apart, or hold no time.
pub fn costs<const N: usize>(rows: &[Row<N>]) -> Option<[f64; N]> {
    let mut matrix = [[0.0; N]; N];
    let mut right = [0.0; N];
    for row in rows.iter().filter(|row| row.ns > 0.0) {
        let of = row.counts.map(|count| count / row.ns);
        for i in 0..N {
            for j in 0..N {
                matrix[i][j] += of[i] * of[j];
            }
            right[i] += of[i];
        }
    }
    solve(matrix, right)
}

/// Gauss's elimination, of a symmetric matrix whose columns are first brought to one scale.
fn solve<const N: usize>(mut matrix: [[f64; N]; N], mut right: [f64; N]) -> Option<[f64; N]> {
    let scale: [f64; N] = std::array::from_fn(|i| matrix[i][i].sqrt());
    if scale.iter().any(|scale| scale.is_nan() || *scale <= 0.0) {
        return None;
    }
    for i in 0..N {
        for j in 0..N {
            matrix[i][j] /= scale[i] * scale[j];
        }
        right[i] /= scale[i];
    }
    for i in 0..N {
        let pivot = (i..N).max_by(|a, b| matrix[*a][i].abs().total_cmp(&matrix[*b][i].abs()))?;
        matrix.swap(i, pivot);
        right.swap(i, pivot);
        if matrix[i][i].abs() < PIVOT_MIN {
            return None;
        }
        let (pivot_row, pivot_right) = (matrix[i], right[i]);
        for j in (0..N).filter(|j| *j != i) {
            let part = matrix[j][i] / pivot_row[i];
            for (value, of_pivot) in matrix[j].iter_mut().zip(pivot_row) {
                *value -= part * of_pivot;
            }
            right[j] -= part * pivot_right;
        }
    }
    Some(std::array::from_fn(|i| right[i] / matrix[i][i] / scale[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<const N: usize>(counts: [f64; N], costs: [f64; N], error: f64) -> Row<N> {
        let ns: f64 = counts
            .iter()
            .zip(costs)
            .map(|(count, cost)| count * cost)
            .sum();
        Row {
            counts,
            ns: ns * error,
        }
    }

    #[test]
    fn costs_that_runs_were_made_of_are_found_again() {
        let made_of = [900.0, 1200.0, 2500.0];
        let runs = [
            [1500.0, 0.0, 0.0],
            [500.0, 40_000.0, 500.0],
            [50_000.0, 50_000.0, 48_000.0],
            [220_000.0, 220_000.0, 70_000.0],
        ];
        let rows = runs.map(|counts| row(counts, made_of, 1.0));
        let found = costs(&rows).unwrap();
        for (found, made_of) in found.iter().zip(made_of) {
            assert!((found / made_of - 1.0).abs() < 1e-6, "{found} of {made_of}");
        }
    }

    #[test]
    fn errors_of_a_few_per_cent_stay_so() {
        let made_of = [800.0, 150.0];
        let runs = [
            ([100.0, 100.0], 1.02),
            ([30.0, 300.0], 0.98),
            ([10.0, 900.0], 1.01),
        ];
        let rows = runs.map(|(counts, error)| row(counts, made_of, error));
        let found = costs(&rows).unwrap();
        for (found, made_of) in found.iter().zip(made_of) {
            assert!((found / made_of - 1.0).abs() < 0.08, "{found} of {made_of}");
        }
    }

    #[test]
    fn what_runs_do_not_tell_apart_has_no_costs() {
        let alike = [[10.0, 10.0], [500.0, 500.0]].map(|counts| row(counts, [3.0, 4.0], 1.0));
        assert_eq!(costs(&alike), None);
        let never = [[10.0, 0.0], [500.0, 0.0]].map(|counts| row(counts, [3.0, 4.0], 1.0));
        assert_eq!(costs(&never), None);
        assert_eq!(costs::<2>(&[]), None);
        let nothing = Row {
            counts: [1.0, 2.0],
            ns: 0.0,
        };
        assert_eq!(costs(&[nothing]), None);
    }
}
