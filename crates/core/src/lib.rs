//! FreeBSD's device polling: decides when to poll which interface for how many packets, and keeps a share of the
//! processor for user programs.
//!
//! [`Poller`] is `sys/kern/kern_poll.c` (FreeBSD main) state for state: the same knobs, limits, counters and order of
//! calls. It reads no clock, does no I/O and allocates nothing: the caller passes the time and the devices.
//! [`Controller`] selects how the burst is adapted: `freebsd` is the original's way, `share` this project's.
//! [`conformance`] tests any [`Device`]. [`StormDetector`] is the interrupt storm detection of
//! `sys/kern/kern_intr.c`.
//!
//! Guarantees that the state equals the original's after any sequence of calls. Read `poller` first, then
//! `controller`.
#![no_std]

pub mod conformance;
mod controller;
mod device;
mod knob;
mod poller;
mod storm;

pub use controller::Controller;
pub use device::{Command, Device, DeviceId, Devices, NS_PER_SECOND, POLL_LIST_LEN, Time};
pub use knob::{Access, Errno, Knob, State};
pub use poller::{HZ_MAX, Poller, Registered};
pub use storm::{Pass, StormDetector};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
