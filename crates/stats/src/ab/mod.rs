//! Live comparison: two settings in turn on one interface, with a load that nobody controls.
//!
//! The load differs between the two blocks of a pair, drifts and jumps. A plain mean of differences scatters with it,
//! and it misleads ranks. [`answer`] therefore always fits `d = delta + beta x (load difference in the pair) + gamma
//! x (the pair's load - mean)`: delta is the difference at equal load. Its errors are HC3's (MacKinnon and White,
//! Journal of Econometrics 29, 1985), since a pair with much load scatters more, and its interval is Student's with
//! pairs - 3 degrees of freedom.
//!
//! An independent coin decides the order of each pair ([`Draw`]); with any other order, a periodic load could pass
//! for a difference. Load is judged before CPU time. Nothing is concluded from fewer pairs than planned, from an
//! aborted run, or where one setting works on what the other left.

mod answer;
mod fit;
mod load;
mod losses;
mod plan;

pub use answer::answer;
pub use losses::{LossLimit, Losses, TooMany};
pub use plan::{
    BLOCK_SECONDS, Draw, DrawnPair, LEFT_OUT_SECONDS_MIN, MARGIN, PAIRS_MIN, PollCount,
    STEP_SECONDS, settling_seconds,
};
