//! What interfaces and a machine can do, and what they do now: the makers of what `nicpoll show`, `watch` and
//! `doctor` print.
//!
//! What must hold: nothing is changed. What cannot be seen is named with what it takes, and the rest is shown.
//! Everything is read from the network namespace that the calling thread is in.
#![forbid(unsafe_code)]

mod cpu_truth;
mod doctor;
mod error;
mod host_facts;
mod namespace;
mod show;
mod storms;
mod watch;
mod witness;

pub use cpu_truth::cpu_truth;
pub use doctor::doctor;
pub use error::InspectError;
pub use host_facts::{host_facts, is_read_in_user_mode, sysctls};
pub use namespace::inside;
pub use show::{AskedVariables, NOT_WATCHED, ShowOptions, UnknownVariable, asked_variables, show};
pub use storms::STORM_THRESHOLD;
pub use watch::{Watch, WatchOptions, bpf_cpu_ratio};
pub use witness::PollWitness;
