//! How many blocks a study would need.
//!
//! What must hold: the answer follows from the scatter that was seen, never from the difference that
//! was seen, so it cannot be used to run on until something is significant.

use crate::confidence::Confidence;
use crate::moments;
use crate::paired::{BLOCKS_MIN, half_width};
use crate::verdict::Margin;

/// Blocks beyond which a margin counts as out of reach.
pub const RESOLVABLE_BLOCKS_MAX: u32 = 10_000;

/// Blocks after which Student's interval would reach no further than the margin to either side of
/// its estimate, if the scatter stays what it is in `differences` (of logs for a ratio margin, of
/// points for a points margin). A true difference of just the margin is then proven about every
/// second time.
///
/// The estimate is no more certain than the scatter it rests on, and may be below the number of
/// blocks that there are: then the margin was within reach and the true difference is probably
/// smaller.
///
/// `None` when it would take more than [`RESOLVABLE_BLOCKS_MAX`], and when `differences` have no
/// scatter to tell: fewer than two, or not finite.
pub fn blocks_to_resolve(
    differences: &[f64],
    margin: &Margin,
    confidence: Confidence,
) -> Option<u32> {
    let deviation = moments::standard_deviation(differences)?;
    let resolves =
        |blocks: u32| half_width(deviation, blocks as usize, confidence) <= margin.as_difference();
    // Both the t quantile and 1 / sqrt(n) fall as n grows, so the interval only ever gets narrower
    // and the first number of blocks that resolves can be found by halving.
    let (mut low, mut high) = (BLOCKS_MIN as u32, RESOLVABLE_BLOCKS_MAX);
    if !resolves(high) {
        return None;
    }
    while low < high {
        let middle = low.midpoint(high);
        if resolves(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(deviation: f64, margin: Margin, confidence: f64) -> Option<u32> {
        // Two values that far apart have that standard deviation.
        let differences = [0.0, deviation * 2.0f64.sqrt()];
        blocks_to_resolve(&differences, &margin, Confidence::new(confidence).unwrap())
    }

    #[test]
    fn known_numbers_of_blocks() {
        // scipy 1.17.1: the least n from 3 on with t.isf((1 - confidence) / 2, n - 1) * deviation
        // / sqrt(n) <= ln(1.05), found by trying each.
        let margin = Margin::ratio(1.05).unwrap();
        assert_eq!(blocks(0.1, margin, 0.95), Some(19));
        assert_eq!(blocks(0.1, margin, 0.9875), Some(30));
        assert_eq!(blocks(0.05, margin, 0.95), Some(7));
        assert_eq!(blocks(0.02, margin, 0.9875), Some(5));
        assert_eq!(blocks(2.4, margin, 0.95), Some(9298));
        assert_eq!(blocks(2.489, margin, 0.95), Some(10_000));
        assert_eq!(blocks(2.5, margin, 0.95), None);
        // The same with 0.01 in the place of ln(1.05).
        assert_eq!(blocks(0.02, Margin::points(0.01).unwrap(), 0.95), Some(18));
    }

    #[test]
    fn without_scatter_the_fewest_blocks_do() {
        let margin = Margin::ratio(1.05).unwrap();
        let found = blocks_to_resolve(&[0.01; 4], &margin, Confidence::PERCENT_95);
        assert_eq!(found, Some(3));
    }

    #[test]
    fn unknown_scatter_gives_no_number() {
        let margin = Margin::ratio(1.05).unwrap();
        for differences in [&[][..], &[0.1], &[0.1, f64::NAN, 0.2]] {
            let found = blocks_to_resolve(differences, &margin, Confidence::PERCENT_95);
            assert_eq!(found, None);
        }
    }
}
