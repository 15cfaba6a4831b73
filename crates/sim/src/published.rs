//! Published measurements, and what the simulator makes of them.
//!
//! Tables ([`Table`]) hold what others measured, host files what is known of their hosts. [`fit`] finds costs
//! that no source states from figures under interrupts, and [`rows_of`] holds every figure against a
//! simulation: those under polling are predictions.
//!
//! What must hold: no figure under polling reaches the fit, and what was fitted stays told from what was
//! predicted in every row.

mod compare;
mod descent;
mod fit;
mod host_file;
mod library;
mod outcome;
mod quantity;
mod scenario;
mod search;
mod table;
mod text;

pub use compare::rows_of;
pub use fit::{Fit, FitPlan, Group, GroupFit, Parameter, fit};
pub use host_file::{fitted_fields, with_fitted};
pub use library::Library;
pub use scenario::Length;
pub use search::{Found, Span, search};
pub use table::{Figure, Mode, Run, Scenario, Table};
pub use text::FileError;
