//! nicpoll's shared types: measured quantities, and the JSON documents that studies and programs print.
//!
//! A *study* compares *settings* under *workloads*. One run of one workload under one setting is a *trial*; a trial
//! yields figures of both ends and one *ledger* that says where each offered packet ended. Nothing here measures,
//! prints or reads a clock.
//!
//! A figure that was not measured is `None` (JSON `null`), never 0. Field names carry their unit. Rates are of UDP or
//! TCP payload unless the name says otherwise.
//!
//! Read `document` first (parts that documents share), then `study`; `units` and `line` have the arithmetic.

pub mod ab;
pub mod cpu;
mod document;
pub mod engine;
mod interface;
pub mod line;
mod loss;
pub mod numbers;
pub mod sim;
mod study;
pub mod traffic;
pub mod units;

pub use cpu::*;
pub use document::*;
pub use interface::*;
pub use loss::*;
pub use study::tune;
pub use study::*;
pub use traffic::{HostDelta, InterfaceDelta, ProcessCpu};
pub use units::{Pace, Rate, RateUnit, Refused};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
