//! Commands that send, receive and forward past the kernel's stack, and `sysctl` for a running engine.

pub mod blast;
pub mod forward;
pub mod sink;
pub mod sysctl;

mod options;
