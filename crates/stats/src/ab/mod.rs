//! Live comparison: two settings in turn on one interface, with a load that nobody controls.
//!
//! The load differs between the two blocks of a pair, drifts and jumps. A plain mean of differences scatters with it,
//! and ranks are deceived by it. [`answer`] therefore always fits `d = delta + beta x (load difference in the pair) +
//! gamma x (the pair's load - mean)`: delta is the difference at equal load. Its errors are HC3's (MacKinnon and White,
//! Journal of Econometrics 29, 1985), since a pair with much load scatters more, and its interval is Student's with
//! pairs - 3 degrees of freedom.
//!
//! The order of each pair is an independent coin ([`Draw`]); with any other order, a load with a period could pass for a
//! difference. Load is judged before CPU time. Nothing is concluded from fewer pairs than were planned, from a run that
//! was given up, or where one setting works on what the other left.

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
