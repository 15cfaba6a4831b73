//! Documents of the simulator.
//!
//! `run` has one run, `sweep` has sweeps and joins their parts, `fit` has costs fitted to a host, and `published`
//! compares the simulation with published tables.

pub(crate) mod fit;
mod published;
mod run;
mod sweep;

pub use fit::*;
pub use published::*;
pub use run::*;
pub use sweep::*;
