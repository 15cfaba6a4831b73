//! A host that receives and sends packets in virtual time: what interrupts, polling and their like would
//! do on hardware that is known by its numbers only.
//!
//! [`HostModel`] holds the numbers, [`ReceiveDiscipline`] says how the host learns of packets, [`TrafficModel`] what
//! is sent, [`Simulation`] between which hosts and for how long. [`simulate`] runs it, [`explain`] says what held
//! it back. `freebsd-polling` is not modelled: the [`nicpoll_core`] poller itself runs, against a simulated card and
//! clock.
//!
//! What must hold: host, plan and seed decide a run to the last digit, on every machine. Each packet
//! keeps its own times, and each ends in exactly one line of the ledger. Memory follows from the
//! host's limits, never from the length of a run. Nothing here reads a clock or does I/O.
#![forbid(unsafe_code)]

mod bottleneck;
mod build;
mod chance;
mod clients;
mod connections;
mod cpu;
mod discipline;
mod host;
mod line;
mod machine;
mod memory;
mod packet;
mod plan;
mod processors;
mod queue;
mod run;
mod shared;
mod source;
mod spec;
mod spread;
mod tally;
mod tcp;
mod ticks;
mod trace;
mod work;
pub mod workers;
mod workload;
mod world;

pub use bottleneck::{bottleneck, explain, explain_work, resource};
pub use discipline::{DEFER_MAX, ReceiveDiscipline};
pub use host::{EmbeddedHost, Field, HostError, HostModel, list_presets};
pub use plan::{PathHost, Simulation, SimulationError, initial_knob};
pub use run::simulate;
pub use spec::{SpecError, number};
pub use spread::Spread;
pub use ticks::{Ticks, sample_ticks};
pub use trace::{
    TRACE_LINE_BYTES_MAX, TRACE_PACKETS_MAX, Trace, TraceError, TracePacket, TraceReader,
};
pub use work::{Need, TooLarge, warmup_ns};
pub use workload::{IperfTcp, Pattern, TrafficModel};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
