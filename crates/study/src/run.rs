//! Runs the trials of a plan on a lab, and stores each as it ends.
//!
//! In: a design and its plan. Out: a [`nicpoll_model::Study`]. `session` is the whole from start or resumption to the
//! end; `conditions` decides whether it may resume. It calls `knee` and `preparation` once, then `trial` for each
//! place in the order, which uses `timer` and `series`. `search` seeks the highest load instead, `tune` the best
//! setting.

pub mod conditions;
pub mod knee;
pub mod preparation;
pub mod search;
pub mod series;
pub mod session;
pub mod timer;
pub mod trial;
pub mod tune;
