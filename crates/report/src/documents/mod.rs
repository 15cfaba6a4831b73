//! One module for each document builds its page or, for output of running commands, its lines.
//!
//! Nothing is run, measured or decided here. Read `study` first, the largest; `data` has the columns of CSV and the files
//! that a page holds.

pub mod ab;
mod compared;
pub mod data;
pub mod host;
pub mod imported;
pub mod line_rates;
pub mod running;
pub mod sim;
pub mod stored;
pub mod study;
pub mod switch;
pub mod watch;
