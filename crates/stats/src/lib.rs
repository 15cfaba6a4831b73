//! Summaries, paired intervals and verdicts: from trials to statements.
//!
//! A *block* runs every setting once, close together in time: drift between blocks cancels out. Two settings are
//! compared by their difference in each block: of logs for rates and times, of points for shares. [`compare`] does
//! all of it for one metric; read `comparison` first, then `method`, `rank` and `interval`.
//!
//! Everything is a pure function of its arguments; random draws follow from an explicit [`Seed`](order::Seed). A
//! figure that cannot be computed is `None` or a typed reason, never NaN or 0. Only the interval of the planned
//! method decides a verdict; Student's intervals are shown next to it.

pub mod ab;
mod comparison;
mod interval;
mod latencies;
mod method;
pub mod order;
mod rank;
pub mod search;
pub mod sequence;
mod series;
mod summary;
mod verdict;

pub use comparison::unpaired::{Unpaired, compare_unpaired, welch_interval, welch_p};
pub use comparison::{Contrast, Proofs, compare};
pub use interval::{
    BLOCKS_MIN, BadPair, Confidence, Interval, InvalidConfidence, NoInterval, Pair,
    log_differences, mean_interval, points_interval, ratio_interval, student_quantile,
};
pub use latencies::Latencies;
pub use method::{Power, interval_by, planned_method};
pub use rank::{
    VALUES_MIN, hodges_lehmann, mann_whitney_p, shift_interval, signed_rank_blocks_min,
    signed_rank_interval,
};
pub use series::{ChangePoint, SERIES_BELOW_P, Series, lag_one_p};
pub use summary::{Summary, mean, outliers, standard_deviation};
pub use verdict::{InvalidMargin, Margin, holm, verdict};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
