//! Device polling as FreeBSD schedules it: when to ask which interface for how many packets, while user programs keep
//! their share of the processor.
//!
//! [`Poller`] is `sys/kern/kern_poll.c` (FreeBSD main) state for state: the same knobs with the same refusals, the same
//! counters, the same order of calls. It reads no clock, does no I/O and allocates nothing: the caller gives it the time,
//! and devices to poll. [`Controller`] names how the burst is adapted; all but `freebsd` are this project's own.
//! [`conformance`] tests any [`Device`]. [`StormDetector`] is the interrupt storm detection of `sys/kern/kern_intr.c`.
//!
//! Guarantees that after any sequence of calls the state equals the original's after the same calls. Read `poller` first,
//! then `controller`.
#![no_std]

pub mod conformance;
mod controller;
mod device;
mod knob;
mod poller;
mod storm;

pub use controller::Controller;
pub use device::{Command, Device, DeviceId, Devices, POLL_LIST_LEN, Time};
pub use knob::{Access, Errno, Knob, State};
pub use poller::{HZ_MAX, Poller, Registered};
pub use storm::{Pass, StormDetector};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
