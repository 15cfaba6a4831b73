//! Two settings in turn on one interface, with a load that nobody controls: the plan of blocks, and what
//! follows from pairs of them.
//!
//! The load differs between the two blocks of a pair, drifts and jumps. A plain mean of differences then
//! scatters with the load, and ranks are deceived by it. [`answer`] therefore fits, always and whatever the
//! data look like, `d = delta + beta x (load difference in the pair) + gamma x (the pair's load - mean)`: delta is
//! the difference at equal load. Its errors are HC3's (MacKinnon and White, Journal of Econometrics 29, 1985),
//! since a pair with much load scatters more, and its interval Student's with pairs - 3 degrees of freedom.
//!
//! What must hold: the order of each pair is an independent coin ([`Draw`]), or a load with a period can pass
//! for a difference. Load is judged before CPU time. Nothing is concluded from fewer pairs than were planned,
//! from a run that was given up, nor where one setting works on what the other left.

mod answer;
mod delays;
mod fit;
mod load;
mod losses;
mod plan;
mod settling;

pub use self::answer::answer;
pub use self::losses::{LossLimit, Losses, TooMany};
pub use self::plan::{
    BLOCK_SECONDS, CARRY_OVER_SHARE, Draw, DrawnPair, LEFT_OUT_SECONDS_MIN, MARGIN, PAIRS_MIN,
};
pub use self::settling::{PollCount, STEP_SECONDS, settling_seconds};
