//! Where the numbers of simulated hosts come from, and how well they predict.
//!
//! Published measurements: tables ([`PublishedTable`]) hold what others measured, host files what is known of their hosts. [`fit()`]
//! finds the costs that no source states from figures under interrupts, and [`rows_of`] compares every figure with a
//! simulation: those under polling are predictions. This machine: [`measure_costs`] measures what the kernel's receive path
//! costs, [`numbers_of`] makes a host file of it, and [`predict`] simulates a study's traffic on it.
//!
//! No figure under polling reaches the fit, and every row says whether it was fitted or predicted. All but `measure` is
//! pure: it reads no file, clock or counter. Reading order: `table`, `scenario`, `fit`, `compare`; then `measure` and
//! `this_machine`.

mod compare;
mod fit;
mod measure;
mod quantity;
mod scenario;
mod search;
mod table;
mod this_machine;

pub use compare::{SimulationJob, SimulationResult, rows_of, score_of};
pub use fit::{FitGroup, FitPlan, Library, Parameter, fit, fitted_fields, with_fitted};
pub use measure::switching::ticks_per_second;
pub use measure::{HostCosts, PutInForce, measure_costs};
pub use scenario::RunLength;
pub use table::{Mode, PublishedFigure, PublishedRun, PublishedTable};
pub use this_machine::{
    MeasuredMachine, Prediction, compare, host_of, numbers_of, predict, simulated_figures,
};
