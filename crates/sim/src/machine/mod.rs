//! A simulated machine, one processor of a host: its events, and who does what when.
//!
//! Virtual time goes from one moment to the next at which something can change: a step of the processor ends, or a
//! timer is due. At the same moment the step's end comes first, then the timers in their order. A packet is in exactly
//! one queue, or its end is counted. Host, plan and seed alone decide the state.
//!
//! Open [`state`] first: the machine and its event loop. What it is made of: [`cpu`], [`card`], [`programs`] and
//! [`kernel`] (what FreeBSD's disciplines and NAPI remember). What it does: [`receive`] and [`transmit`] for packets,
//! [`freebsd`] and [`napi`] for each kernel, [`run_programs`], and [`tcp`]. [`figures`] says what came out.

pub mod card;
#[cfg(test)]
mod conformance;
pub mod cpu;
pub mod figures;
mod freebsd;
pub mod kernel;
mod napi;
pub mod programs;
mod receive;
mod run_programs;
pub mod state;
mod tcp;
mod transmit;
