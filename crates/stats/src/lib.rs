//! Summaries, paired intervals and verdicts: how trials become statements.
//!
//! A *block* runs every setting once, close together in time, so what drifts between blocks cancels
//! within them. Two settings are therefore compared by their difference in each block: of logs for
//! rates and times, of points for shares. [`compare`] does all of it for one metric; the modules
//! hold the parts.
//!
//! What must hold: everything here is a pure function of its arguments, chance included, which comes
//! from an explicit [`Seed`](order::Seed). A figure that cannot be computed is `None` or a typed
//! reason, never NaN or 0. Only the interval of the planned method decides a verdict; Student's intervals
//! stand beside it.

#![forbid(unsafe_code)]

pub mod ab;
mod comparison;
mod confidence;
mod differences;
mod holm;
mod independence;
mod latencies;
mod mann_whitney;
mod method;
mod moments;
mod none_seen;
pub mod order;
mod outliers;
mod paired;
mod power;
mod ranks;
mod sensitivity;
pub mod sequence;
mod series;
mod signed_rank;
mod summary;
mod trimmed;
mod unpaired;
mod verdict;
mod welch;

pub use comparison::{Contrast, compare};
pub use confidence::{Confidence, FAMILY_ALPHA, InvalidConfidence};
pub use holm::holm;
pub use independence::{DEPENDENT_BELOW_P, lag_one_p};
pub use latencies::Latencies;
pub use mann_whitney::{mann_whitney_p, shift_interval, shift_reaches};
pub use method::{p_values_by, planned_method};
pub use moments::{mean, standard_deviation};
pub use none_seen::none_seen_at_most;
pub use outliers::outliers;
pub use paired::{
    BLOCKS_MIN, BadPair, Interval, NoInterval, Pair, log_differences, mean_interval,
    point_differences, points_interval, ratio_interval, t_quantile as student_quantile,
};
pub use power::{BLOCKS_TO_FIND_MAX, Power};
pub use sensitivity::Proofs;
pub use series::{ChangePoint, SERIES_BELOW_P, Series, change_point, dependence_p, drift_p};
pub use signed_rank::{
    hodges_lehmann, signed_rank_blocks_min, signed_rank_interval, signed_rank_p,
};
pub use summary::Summary;
pub use trimmed::trimmed_interval;
pub use unpaired::{Unpaired, compare_unpaired};
pub use verdict::{InvalidMargin, Margin, PValues, verdict};
pub use welch::{welch_interval, welch_p};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
