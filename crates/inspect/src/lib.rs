//! Observes interfaces and the machine without changing anything: `nicpoll show`, `watch`, `doctor` and its
//! `--cpu-truth`.
//!
//! Quantities that cannot be observed are reported with a remedy, and the rest is shown. Everything is read from the
//! calling thread's network namespace. Each command has a module of its name; `discipline` decides how an interface
//! learns of packets, for both `show` and `watch`.

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
pub use interrupts::{STORM_THRESHOLD, device_irqs};
pub use show::{AskedVariables, NOT_WATCHED, ShowOptions, asked_variables, show, watch_polls};
pub use watch::{Watch, WatchOptions, bpf_cpu_ratio};
