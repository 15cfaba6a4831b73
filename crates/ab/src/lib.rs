//! The live comparison: two settings of an interface in turn, under its own traffic.
//!
//! In: an [`AbRequest`], from [`prepare`] on. Out: a [`nicpoll_model::ab::LiveAb`]. `comparison` goes from one to the
//! other, `plan` sets the lengths, `run` alternates the blocks, `meter` reads every counter, `block` makes figures of two
//! readings, and `alarm` ends a run that harms the traffic. `tune` races
//! candidates by such runs. The statistics are [`nicpoll_stats::ab`]'s.

mod alarm;
mod block;
mod comparison;
mod meter;
mod plan;
mod run;
mod tune;

pub use comparison::{AbError, Prepared, prepare};
pub use plan::{AbRequest, Duty, parse_block, parse_duty, plan};
pub use run::AbProgress;
pub use tune::{LiveTuneProgress, LiveTuneRequest, tune_live};

/// The long help of `nicpoll ab`.
pub const ABOUT: &str = include_str!("help/about.txt");

/// Its examples and exit codes.
pub const EXAMPLES: &str = include_str!("help/examples.txt");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_says_what_may_keep_a_verdict_back() {
        let help = EXAMPLES.replace('\n', " ");
        for reason in [
            "too few blocks",
            "no traffic",
            "below what counting costs",
            "carry-over",
        ] {
            assert!(help.contains(reason), "{reason}");
        }
    }
}
