//! This machine: its measured costs as a host, and what the demo's traffic does on that.

mod check;
mod numbers;

pub use check::{Prediction, compare, predict, simulated_figures};
pub use numbers::{MeasuredMachine, host_of, numbers_of};
