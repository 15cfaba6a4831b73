//! Lengths of a comparison and of its blocks.
//!
//! What must hold: what is left out never takes more than a quarter of a block.

use std::time::Duration;

use nicpoll_model::ab::AbPlan;
use nicpoll_model::time::{TimeError, parse_seconds};
use nicpoll_stats::ab::{LEFT_OUT_SECONDS_MIN, MARGIN, PAIRS_MIN};
use thiserror::Error;

/// Lengths that a mean block may have. Shorter ones lose too much of their time to what is left out.
const BLOCK: [Duration; 2] = [Duration::from_millis(400), Duration::from_secs(600)];
/// The shortest and the longest block, in mean ones.
const SPREAD: [f64; 2] = [0.5, 1.5];
/// Share of the shortest block that is left out at most.
const LEFT_OUT_SHARE: f64 = 0.25;

/// The plan of a comparison of this length, with blocks of this mean length.
pub fn plan(duration: Duration, block: Duration, seed: u64) -> AbPlan {
    let [shortest, longest] = SPREAD.map(|share| share * block.as_secs_f64());
    AbPlan {
        seed,
        duration_seconds: duration.as_secs_f64(),
        duty_seconds: None,
        block_seconds: [shortest, longest],
        left_out_seconds: LEFT_OUT_SECONDS_MIN.min(LEFT_OUT_SHARE * shortest),
        pairs_min: PAIRS_MIN,
        confidence: 0.95,
        margin: MARGIN,
    }
}

/// Why a text is not the length of a block.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BlockError {
    /// It is no time.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// It is too short or too long.
    #[error("a block lasts from 0.4s to 10m")]
    Range,
}

/// Reads the mean length of a block.
pub fn parse_block(text: &str) -> Result<Duration, BlockError> {
    let block = parse_seconds(text)?;
    let [shortest, longest] = BLOCK;
    match (shortest..=longest).contains(&block) {
        true => Ok(block),
        false => Err(BlockError::Range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_the_method_and_short_ones_keep_most_of_their_time() {
        let of = |millis| plan(Duration::from_secs(600), Duration::from_millis(millis), 1);
        let usual = of(4_000);
        assert_eq!(usual.block_seconds, nicpoll_stats::ab::BLOCK_SECONDS);
        assert_eq!(usual.left_out_seconds, LEFT_OUT_SECONDS_MIN);
        assert_eq!(of(400).left_out_seconds, 0.05);
    }
}
