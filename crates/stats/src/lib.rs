//! Summaries, paired intervals and verdicts: how trials become statements.
//!
//! A *block* runs every setting once, close together in time, so what drifts between blocks cancels
//! within them. Two settings are therefore compared by their difference in each block: of logs for
//! rates and times, of points for shares. [`compare`] does all of it for one metric; the modules
//! hold the parts.
//!
//! What must hold: everything here is a pure function of its arguments, chance included, which comes
//! from an explicit [`Seed`](order::Seed). A figure that cannot be computed is `None` or a typed
//! reason, never NaN, infinity or 0. Only the interval decides a verdict; the sign-flip p value and
//! the bootstrap stand beside it.

#![forbid(unsafe_code)]

mod bootstrap;
mod comparison;
mod confidence;
mod independence;
mod latencies;
mod moments;
pub mod order;
mod paired;
mod resolution;
mod sign_flip;
mod signed_rank;
mod summary;
mod trimmed;
mod verdict;

pub use bootstrap::bca_interval;
pub use comparison::{BCA_BLOCKS_MIN, BCA_RESAMPLES, Contrast, SIGN_FLIP_BLOCKS_MIN, compare};
pub use confidence::{Confidence, FAMILY_ALPHA, InvalidConfidence};
pub use independence::lag_one_p;
pub use latencies::Latencies;
pub use paired::{
    BLOCKS_MIN, BadPair, Interval, NoInterval, Pair, log_differences, mean_interval,
    point_differences, points_interval, ratio_interval,
};
pub use resolution::{RESOLVABLE_BLOCKS_MAX, blocks_to_resolve};
pub use sign_flip::{SIGN_FLIP_BLOCKS_MAX, sign_flip_p};
pub use signed_rank::{hodges_lehmann, signed_rank_blocks_min, signed_rank_interval};
pub use summary::Summary;
pub use trimmed::trimmed_interval;
pub use verdict::{InvalidMargin, Margin, verdict};
