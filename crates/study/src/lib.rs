//! The lab: hosts in namespaces, the link between them, trials, and the runner of a study.
//!
//! What must hold: the host machine's own interfaces are never touched; whatever ends a study, every
//! setting is put back, and nothing outlives the process unless it was asked to be kept.
#![forbid(unsafe_code)]

mod calibrate;
mod cost;
mod cpu_window;
mod facts;
mod fit;
mod host;
mod judge;
mod lab;
mod link;
mod plan;
mod run;
mod setting;
mod study;
mod trial;
mod void;

pub use fit::{HostCosts, measure_costs, ticks_per_second};
pub use host::{Host, Resident};
pub use lab::{Lab, VETH_RING_SLOTS, why_not_here};
pub use link::Addresses;
pub use plan::{DEFAULT_BLOCKS, DEFAULT_PERIOD, Options, PlanError, QUICK_BLOCKS, plan};
pub use run::{Run, Running};
pub use setting::{Applied, apply};
pub use study::{Cancelled, Identity, Progress, run_study};
pub use trial::{Place, Trials};

/// The name of both ends of the link.
pub const INTERFACE: &str = "em0";
