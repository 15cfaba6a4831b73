//! The live comparison: two settings of an interface in turn, with the traffic that it has anyway.
//!
//! In: an [`AbRequest`], from [`prepare`] on. Out: a [`nicpoll_model::ab::LiveAb`]. `comparison` goes from one to the
//! other, `plan` sets the lengths, `run` alternates the blocks, `meter` reads every counter, `block` makes figures of two
//! readings, and `alarm` ends a run that harms the traffic. The statistics are [`nicpoll_stats::ab`]'s.

mod alarm;
mod block;
mod comparison;
mod help;
mod meter;
mod plan;
mod run;

pub use comparison::{AbError, Prepared, prepare};
pub use help::{ABOUT, EXAMPLES};
pub use plan::{AbRequest, BlockError, Duty, DutyError, parse_block, parse_duty, plan};
pub use run::AbProgress;
