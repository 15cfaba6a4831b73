//! Packets past the kernel's stack: send, receive, forward, and the knobs of what runs.

pub mod blast;
pub mod forward;
pub mod sink;
pub mod sysctl;

mod options;
