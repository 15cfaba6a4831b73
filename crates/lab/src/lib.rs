//! The lab: hosts in namespaces, the link between them, trials, and the runner of a study.
#![forbid(unsafe_code)]

mod host;
mod link;

pub use host::{Host, Resident};
pub use link::{Addresses, join};

/// The name of both ends of the link.
pub const INTERFACE: &str = "em0";
