//! Commands that switch interfaces, show them, and compare two of their settings.

pub mod ab;
pub mod doctor;
pub mod restore;
pub mod set;
pub mod show;
pub mod watch;

mod freebsd;
mod knobs;
mod metrics;
mod report;
