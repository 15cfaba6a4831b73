//! Interfaces and a machine, looked at without changing anything: `nicpoll show`, `watch`, `doctor` and its
//! `--cpu-truth`.
//!
//! What cannot be seen is named with its remedy, and the rest is shown. Everything is read from the network namespace
//! that the calling thread is in. Each command has a module of its name; `discipline` judges how an interface learns of
//! packets, for both `show` and `watch`.

mod cpu_truth;
mod discipline;
mod doctor;
mod error;
mod host_facts;
mod interrupts;
mod show;
mod watch;

pub use cpu_truth::cpu_truth;
pub use doctor::doctor;
pub use error::{InspectError, inside};
pub use host_facts::{host_facts, is_read_in_user_mode, sysctls};
pub use interrupts::STORM_THRESHOLD;
pub use show::{AskedVariables, NOT_WATCHED, ShowOptions, asked_variables, show, watch_polls};
pub use watch::{Watch, WatchOptions, bpf_cpu_ratio};
