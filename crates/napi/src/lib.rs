//! The switch: reads, changes and puts back what decides how an interface learns of packets.
#![forbid(unsafe_code)]

mod attributes;
mod control;
mod ethtool_request;

pub use control::{Control, ControlError, Features, Interface, Napi};
