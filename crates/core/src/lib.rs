//! Device polling as FreeBSD schedules it: when to ask which interface for how many packets, so that
//! user programs keep their share of the processor.
//!
//! [`Poller`] is `sys/kern/kern_poll.c` (FreeBSD main) state for state: the same knobs with the same
//! refusals, the same counters, the same order of calls. It reads no clock, does no I/O and allocates
//! nothing: it sees the time that it is given, and devices as something to poll for packets.
//! [`Controller`] names how the burst is adapted; everything but `freebsd` is this project's own.
//! [`conformance`] tests any [`Device`].
//! [`StormDetector`] is the interrupt storm detection of `sys/kern/kern_intr.c`.
//!
//! What must hold: after any sequence of calls the state equals the original's after the same calls.
#![no_std]
#![forbid(unsafe_code)]

pub mod conformance;
mod controller;
mod device;
mod knob;
mod list;
mod poller;
mod share;
mod storm;
mod time;

pub use controller::Controller;
pub use device::{Command, Device, DeviceId, Devices};
pub use knob::{Access, Errno, Knob};
pub use list::POLL_LIST_LEN;
pub use poller::{HZ_MAX, Poller, Registered, State};
pub use storm::{Pass, StormDetector};
pub use time::Time;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
