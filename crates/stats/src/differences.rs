//! All differences between the values of two sets, in order, without making them: they are as many as the product of
//! the sizes.
//!
//! What must hold: memory follows from the sum of the sizes, and one difference is found in some sixty passes over both
//! sets.

/// The differences of two sets.
pub(crate) struct Differences {
    one: Vec<f64>,
    other: Vec<f64>,
}

impl Differences {
    /// Of two sets without NaN.
    pub fn of(one: &[f64], other: &[f64]) -> Self {
        let sorted = |values: &[f64]| {
            let mut values = values.to_vec();
            values.sort_by(f64::total_cmp);
            values
        };
        Differences {
            one: sorted(one),
            other: sorted(other),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.one.len() * self.other.len()
    }

    /// The one with this number by size, from 0 and below [`Differences::count`].
    pub fn nth(&self, number: usize) -> f64 {
        let (mut low, mut high) = (key(f64::NEG_INFINITY), key(f64::INFINITY));
        while low < high {
            let middle = low.midpoint(high);
            if self.at_most(value(middle)) > number {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        // What is found of 0 and -0 is -0.
        value(low) + 0.0
    }

    /// How many are not above a bound. The greater a value of one set, the fewer of the other are small enough.
    fn at_most(&self, bound: f64) -> usize {
        let mut above = 0;
        let mut count = 0;
        for value in &self.one {
            let rest = self.other[above..].iter();
            above += rest
                .take_while(|it| difference(*value, **it) > bound)
                .count();
            count += self.other.len() - above;
        }
        count
    }
}

/// Two failures of one kind are alike; their difference is no number.
fn difference(one: f64, other: f64) -> f64 {
    if one == other { 0.0 } else { one - other }
}

/// A number that orders values as they are ordered.
fn key(value: f64) -> u64 {
    let bits = value.to_bits();
    match bits >> 63 {
        0 => bits | 1 << 63,
        _ => !bits,
    }
}

/// The value of such a number.
fn value(key: u64) -> f64 {
    f64::from_bits(match key >> 63 {
        0 => !key,
        _ => key & !(1 << 63),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_is_the_one_that_sorting_finds() {
        let noise = |index: usize| ((index as f64 * 0.618_034).fract() * 40.0).round() / 8.0;
        let mut one: Vec<f64> = (0..23).map(noise).collect();
        let other: Vec<f64> = (30..47)
            .map(noise)
            .chain([f64::INFINITY, f64::NEG_INFINITY])
            .collect();
        one.extend([f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, -0.0]);
        let mut all: Vec<f64> = one
            .iter()
            .flat_map(|one| other.iter().map(|other| difference(*one, *other)))
            .collect();
        all.sort_by(f64::total_cmp);
        let differences = Differences::of(&one, &other);
        assert_eq!(differences.count(), all.len());
        for (number, expected) in all.into_iter().enumerate() {
            let found = differences.nth(number);
            assert!(found == expected && found.is_sign_negative() == (expected < 0.0));
        }
    }

    #[test]
    fn sets_are_compared_whose_differences_would_fill_the_memory() {
        // 10,000,000,000 differences, of which the least is -99,999 and the middle one 0.
        let values: Vec<f64> = (0..100_000).map(f64::from).collect();
        let differences = Differences::of(&values, &values);
        assert_eq!(differences.nth(0), -99_999.0);
        assert_eq!(differences.nth(differences.count() / 2), 0.0);
    }
}
