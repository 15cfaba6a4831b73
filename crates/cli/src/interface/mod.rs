//! Interfaces of this machine and others: switch them, look at them, compare two of their settings.

pub mod ab;
pub mod doctor;
pub mod restore;
pub mod set;
pub mod show;
pub mod watch;

mod freebsd;
mod knobs;
mod report;
