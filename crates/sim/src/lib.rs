//! Simulates hosts that receive and send packets, in virtual time: what interrupts, polling and their variants would
//! do on hardware known only by its numbers.
//!
//! [`HostModel`] holds the numbers, [`ReceiveDiscipline`] says how the host learns of packets, [`TrafficModel`] what is
//! sent, [`Simulation`] between which hosts and for how long. [`simulate`] runs it, [`explain`] says what limited it.
//! `freebsd-polling` is not modelled: the [`nicpoll_core`] poller itself runs, against a simulated card and clock.
//!
//! Hosts, plan and seed determine a run to the last digit, on every machine. Each packet keeps its own times, and
//! ends in exactly one line of the ledger. Memory depends on the host's limits, never on the length of a run. Nothing
//! here reads a clock or does I/O.
//!
//! Reading order: `spec` (what is simulated), `world` (how a run goes), `machine` (what a processor does), `bottleneck`.

mod account;
mod bottleneck;
mod cost;
mod link;
mod machine;
mod source;
mod spec;
mod tcp;
mod ticks;
pub mod workers;
mod world;

pub use bottleneck::{bottleneck, explain, explain_work, resource};
pub use cost::{SimulationCost, warmup_ns};
pub use spec::discipline::{DEFER_MAX, ReceiveDiscipline, initial_knob};
pub use spec::host::{Field, HostModel};
pub use spec::host_file::{EmbeddedHost, list_presets};
pub use spec::options::{SimError, number};
pub use spec::simulation::{PathHost, Simulation};
pub use spec::trace::{TRACE_LINE_BYTES_MAX, Trace, TracePacket, TraceReader};
pub use spec::traffic::{IperfTcp, Pattern, TrafficModel};
pub use ticks::{Ticks, sample_ticks};
pub use world::run::simulate;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
