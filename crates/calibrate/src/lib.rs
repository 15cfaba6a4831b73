//! Where the numbers of simulated hosts come from, and how well they predict.
//!
//! Published measurements: tables ([`Table`]) hold what others measured, host files what is known of their
//! hosts. [`fit`] finds the costs that no source states from figures under interrupts, and [`rows_of`] compares
//! every figure with a simulation: those under polling are predictions. This machine: [`numbers_of`] turns
//! measured costs into a host, and [`Prediction`] says what a study's traffic does on it. The costs come from
//! [`measure_costs`], which runs traffic on a lab.
//!
//! No figure under polling reaches the fit, and every row says whether it was fitted or predicted. Only `measure` reads a
//! clock or a counter.
#![forbid(unsafe_code)]

mod compare;
mod descent;
mod fit;
mod host_file;
mod library;
mod measure;
mod outcome;
mod quantity;
mod scenario;
mod score;
mod search;
mod table;
mod text;
mod this_machine;

pub use compare::{CompareError, Done, Job, rows_of};
pub use fit::{Fit, FitError, FitPlan, Group, GroupFit, Parameter, fit};
pub use host_file::{fitted_fields, with_fitted};
pub use library::{Library, LibraryError, MarkError};
pub use measure::switching::ticks_per_second;
pub use measure::{HostCosts, PutInForce, measure_costs};
pub use scenario::Length;
pub use score::score_of;
pub use search::{SearchResult, SearchSpan, search};
pub use table::{Figure, Mode, PublishedRun, RunScenario, Table};
pub use this_machine::{
    MeasuredMachine, Prediction, compare, host_of, numbers_of, predict, simulated_figures,
};
