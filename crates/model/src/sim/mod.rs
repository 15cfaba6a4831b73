//! Documents of the simulator.
//!
//! `run` holds one run, `sweep` has several runs and joins the parts of a sweep, `fit` has the costs that were fitted to
//! a host, and `published` compares the simulation with published tables.

pub(crate) mod fit;
mod published;
mod run;
mod sweep;

pub use fit::*;
pub use published::*;
pub use run::*;
pub use sweep::*;
