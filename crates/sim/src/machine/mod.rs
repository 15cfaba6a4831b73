//! A simulated machine, one processor of a host: its events, and who does what when.
//!
//! Virtual time jumps from event to event: a step of the processor ends, or a timer is due. At the same time the
//! step's end comes first, then the timers in their order. A packet is in exactly one queue, or its end is counted.
//! Host, plan and seed alone determine the state.
//!
//! Open [`state`] first: the machine and its event loop. Its parts: [`cpu`], [`card`], [`programs`] and [`kernel`]
//! (the state of FreeBSD's disciplines and of NAPI). Its work: [`receive`] and [`transmit`] for packets, [`freebsd`]
//! and [`napi`] for each kernel, [`run_programs`], and [`tcp`]. [`figures`] adds up the results.

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
